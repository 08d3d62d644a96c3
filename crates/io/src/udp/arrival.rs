//! The times at which datagrams came, on the process's clock.

use std::time::Duration;

use punctual_units::Instant;

use crate::clock::now;

/// Turns the kernel's receive timestamps, which are on the clock of the day, into instants of the
/// [monotonic clock](now).
#[derive(Clone, Copy, Debug)]
pub(super) struct ArrivalClock {
    now: Instant,
    /// The same time since 1970.
    time_of_day: Duration,
}

impl ArrivalClock {
    /// Reads both clocks. For datagrams that were received just before.
    pub(super) fn read() -> Self {
        Self { time_of_day: time_of_day(), now: now() }
    }

    /// The time at which a datagram with this timestamp came. It is now if there is no timestamp,
    /// or one that cannot be right because the system's clock was set meanwhile.
    pub(super) fn arrival(&self, timestamp: Option<Duration>) -> Instant {
        let age = timestamp.and_then(|timestamp| self.time_of_day.checked_sub(timestamp));
        self.now - age.filter(|&age| age <= OLDEST).unwrap_or_default()
    }
}

/// No datagram waits so long to be received by a program that does its work.
const OLDEST: Duration = Duration::from_secs(1);

#[cfg(any(target_os = "linux", target_os = "android"))]
fn time_of_day() -> Duration {
    use rustix::time::{ClockId, clock_gettime};

    let time = clock_gettime(ClockId::Realtime);
    Duration::new(
        time.tv_sec.try_into().unwrap_or_default(),
        time.tv_nsec.try_into().unwrap_or_default(),
    )
}

/// Elsewhere there are no timestamps.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const fn time_of_day() -> Duration {
    Duration::ZERO
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_millis(50_000);
    const DAY: Duration = Duration::from_secs(1_790_000_000);

    fn clock() -> ArrivalClock {
        ArrivalClock { now: NOW, time_of_day: DAY }
    }

    #[test]
    fn a_datagram_came_as_long_ago_as_its_timestamp_says() {
        let age = Duration::from_micros(1_234);
        assert_eq!(clock().arrival(Some(DAY - age)), NOW - age);
        assert_eq!(clock().arrival(Some(DAY)), NOW);
    }

    #[test]
    fn a_timestamp_of_another_clock_is_no_arrival() {
        assert_eq!(clock().arrival(None), NOW);
        assert_eq!(clock().arrival(Some(DAY + Duration::from_millis(1))), NOW);
        assert_eq!(clock().arrival(Some(DAY - Duration::from_secs(3_600))), NOW);
    }
}
