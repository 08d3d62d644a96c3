use std::collections::VecDeque;
use std::time::Duration;

use punctual_units::Instant;

use super::unloaded::{Packets, UnloadedRoundTrip};

/// The time over which the least round trip is the present one: a few samples, which come every
/// 10 ms. A delay that not all packets have, such as that of a host or a radio link, is no queue.
const PRESENT: Duration = Duration::from_millis(45);
/// The most round trips that are remembered.
const SAMPLES: usize = 64;

/// The latest round trips of a path.
#[derive(Debug, Default)]
pub(crate) struct LatestRoundTrips(VecDeque<(Instant, Duration)>);

impl LatestRoundTrips {
    /// Takes in a round trip that was measured or reported by the peer.
    pub(crate) fn sample(&mut self, now: Instant, rtt: Duration) {
        while self.0.front().is_some_and(|&(at, _)| at + PRESENT < now) || self.0.len() == SAMPLES {
            self.0.pop_front();
        }
        self.0.push_back((now, rtt));
    }

    /// The present round trip, which is the least of the latest; `None` before the first.
    pub(crate) fn present(&self) -> Option<Duration> {
        self.0.iter().map(|&(_, rtt)| rtt).min()
    }

    /// The newest round trip, and when it was taken in; `None` before the first.
    pub(crate) fn newest(&self) -> Option<(Instant, Duration)> {
        self.0.back().copied()
    }

    /// The latest round trips, the newest first.
    pub(crate) fn newest_first(&self) -> impl Iterator<Item = Duration> {
        self.0.iter().rev().map(|&(_, rtt)| rtt)
    }
}

/// The newest round trips of a path, and the one without a queue.
#[derive(Debug, Default)]
pub(crate) struct RoundTrips {
    latest: LatestRoundTrips,
    unloaded: UnloadedRoundTrip,
}

impl RoundTrips {
    /// Takes in a round trip that was measured or reported by the peer; `totals` counts since the
    /// connection began.
    pub(crate) fn sample(&mut self, now: Instant, rtt: Duration, totals: Packets) {
        self.latest.sample(now, rtt);
        self.unloaded.sample(now, rtt, totals);
    }

    /// The newest round trip; zero before the first.
    pub(crate) fn latest(&self) -> Duration {
        self.latest.newest().map_or(Duration::ZERO, |(_, rtt)| rtt)
    }

    /// The least round trip of the last ten minutes with samples; zero before the first.
    pub(crate) fn least(&self) -> Duration {
        self.unloaded.least()
    }

    /// The time that packets wait in queues along the path: the present round trip less the one
    /// without a queue. Zero before the first sample.
    pub(crate) fn queueing_delay(&self) -> Duration {
        let present = self.latest.present().unwrap_or_default();
        present.saturating_sub(self.unloaded.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn a_delay_of_single_packets_is_no_queue() {
        let mut trips = RoundTrips::default();
        assert_eq!((trips.latest(), trips.least()), (MS(0), MS(0)));
        let mut sample = |n: u64, base: u64| {
            let rtt = MS(base + n % 4 * 10);
            trips.sample(Instant::from_millis(10 * n), rtt, Packets::default());
            (trips.latest(), trips.least(), trips.queueing_delay())
        };
        let last = (0..20).map(|n| sample(n, 50)).last();
        assert_eq!(last, Some((MS(80), MS(50), MS(0))));
        let last = (20..26).map(|n| sample(n, 70)).last();
        assert_eq!(last, Some((MS(80), MS(50), MS(20))));
    }

    #[test]
    fn one_packet_without_a_queue_among_twenty_shows_that_there_is_none() {
        let mut trips = RoundTrips::default();
        let mut sample = |n: u64, rtt: u64| {
            trips.sample(Instant::from_millis(2 * n), MS(rtt), Packets::default());
            trips.queueing_delay()
        };
        let last = (0..20).map(|n| sample(n, if n == 3 { 50 } else { 60 })).last();
        assert_eq!(last, Some(MS(0)));
        let last = (20..30).map(|n| sample(n, 60)).last();
        assert_eq!(last, Some(MS(10)), "45 ms later");
    }
}
