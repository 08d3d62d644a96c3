//! The one clock of the process.

use punctual_units::Instant;

/// The process's monotonic clock as an [`Instant`].
///
/// On Linux and Android it is `CLOCK_MONOTONIC`, so every process of the machine reads the same
/// value; elsewhere it starts at the first call.
pub fn now() -> Instant {
    imp::now()
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod imp {
    use punctual_units::Instant;
    use rustix::time::{ClockId, clock_gettime};

    pub(super) fn now() -> Instant {
        let time = clock_gettime(ClockId::Monotonic);
        // Neither part is negative: the clock starts at boot.
        let (secs, nanos) = (time.tv_sec.cast_unsigned(), time.tv_nsec.cast_unsigned());
        Instant::from_nanos(secs * 1_000_000_000 + nanos)
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[expect(clippy::disallowed_methods, reason = "this crate owns the clock")]
pub(crate) mod imp {
    use std::sync::OnceLock;

    use punctual_units::Instant;

    static ORIGIN: OnceLock<std::time::Instant> = OnceLock::new();

    pub(super) fn now() -> Instant {
        Instant::ORIGIN + origin().elapsed()
    }

    /// The same point in time for tokio's timer.
    pub(crate) fn to_std(instant: Instant) -> std::time::Instant {
        origin() + (instant - Instant::ORIGIN)
    }

    fn origin() -> std::time::Instant {
        *ORIGIN.get_or_init(std::time::Instant::now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_never_runs_backwards() {
        let mut last = now();
        for _ in 0..1_000 {
            let next = now();
            assert!(next >= last);
            last = next;
        }
    }
}
