//! The size of a driver's turns.

use std::time::Duration;

use punctual_units::Instant;

/// Divides a high load into more turns.
///
/// Under a moderate load, rare turns save wake-ups. But a turn receives all its datagrams before it
/// passes them on, and the application reads them after that; likewise a turn writes all datagrams
/// before it sends them. If they do not fit into the processor's cache, each of these steps waits
/// for memory. And a turn that takes long may be interrupted for longer than the UDP socket's
/// buffer lasts. So the times between turns are divided such that each moves about [`TURN`] bytes.
#[derive(Debug)]
pub(crate) struct TurnSize {
    divisor: u32,
    /// When the measurement of the load began, and the bytes moved since.
    since: Instant,
    moved: u64,
}

impl TurnSize {
    /// Takes note of a turn at `now` that received and sent this number of bytes. `longest` is the
    /// time between turns under a moderate load.
    pub(crate) fn follow(&mut self, now: Instant, bytes: usize, longest: Duration) {
        self.moved += bytes as u64;
        let time = now.saturating_since(self.since);
        if time >= MEASURED {
            let turns = self.moved * nanos(longest) / (nanos(time) * TURN);
            self.divisor = u32::try_from(turns).map_or(MOST, |turns| turns.clamp(1, MOST));
            self.since = now;
            self.moved = 0;
        }
    }

    /// The time between turns at the present load.
    pub(crate) fn shorten(&self, time: Duration) -> Duration {
        time / self.divisor
    }

    /// Whether the load is moderate, so that turns are as rare as they may be.
    pub(crate) const fn is_moderate(&self) -> bool {
        self.divisor == 1
    }
}

impl Default for TurnSize {
    fn default() -> Self {
        Self { divisor: 1, since: Instant::ORIGIN, moved: 0 }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The bytes that a turn should move: a fraction of a core's second-level cache.
const TURN: u64 = 96 * 1_024;
/// The largest number of turns in the place of one.
const MOST: u32 = 8;
/// The time over which the load is measured, at least.
const MEASURED: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_micros(800);

    /// The time between turns after a second of this load.
    fn settled(bytes_per_second: u64) -> Duration {
        let (mut size, mut now) = (TurnSize::default(), Instant::from_millis(5_000));
        for _ in 0..10_000 {
            let time = size.shorten(LONGEST);
            now += time;
            let bytes = bytes_per_second * nanos(time) / 1_000_000_000;
            size.follow(now, usize::try_from(bytes).unwrap(), LONGEST);
        }
        size.shorten(LONGEST)
    }

    #[test]
    fn a_high_load_has_more_turns() {
        assert_eq!(settled(125_000_000), LONGEST, "1 Gb/s");
        assert_eq!(settled(500_000_000), Duration::from_micros(200), "4 Gb/s");
        assert_eq!(settled(5_000_000_000), Duration::from_micros(100), "40 Gb/s");
    }

    #[test]
    fn a_pause_makes_a_high_load_moderate() {
        let (mut size, now) = (TurnSize::default(), Instant::from_millis(5_000));
        size.follow(now, 0, LONGEST);
        size.follow(now + Duration::from_millis(1), 1_000_000, LONGEST);
        assert!(!size.is_moderate());
        size.follow(now + Duration::from_secs(1), 1_332, LONGEST);
        assert!(size.is_moderate());
    }
}
