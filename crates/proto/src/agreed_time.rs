use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use punctual_units::Instant;

/// A time that both ends agreed on, such as a latency, and that may change on an established
/// connection.
///
/// It has one value, which its clones share. So a part that needs the time asks for it where it
/// needs it, and no part keeps a copy that a change would not reach.
#[derive(Clone, Default)]
pub(crate) struct AgreedTime(Arc<AtomicI64>);

impl AgreedTime {
    pub(crate) fn new(time: Duration) -> Self {
        Self(Arc::new(AtomicI64::new(nanos(time))))
    }

    /// The time now.
    pub(crate) fn get(&self) -> Duration {
        Duration::from_nanos(self.nanos().cast_unsigned())
    }

    /// The time now, nanoseconds; never negative.
    #[inline(always)]
    pub(crate) fn nanos(&self) -> i64 {
        // One thread has a connection at any time, so that no other memory waits for this value.
        self.0.load(Ordering::Relaxed)
    }

    /// The time is `time` from now on, for all that ask.
    #[cfg(test)]
    pub(crate) fn set(&self, time: Duration) {
        self.0.store(nanos(time), Ordering::Relaxed);
    }

    /// The instant this time after `instant`.
    pub(crate) fn after(&self, instant: Instant) -> Instant {
        Instant::from_nanos(instant.as_nanos().saturating_add(self.nanos().cast_unsigned()))
    }
}

impl fmt::Debug for AgreedTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_show_the_same_time() {
        let time = AgreedTime::new(Duration::from_millis(120));
        let other = time.clone();
        time.set(Duration::from_millis(200));
        assert_eq!(other.get(), Duration::from_millis(200));
        assert_eq!(other.after(Instant::from_millis(5)), Instant::from_millis(205));
        assert_eq!(format!("{other:?}"), "200ms");
        assert_eq!(AgreedTime::new(Duration::MAX).nanos(), i64::MAX);
    }
}
