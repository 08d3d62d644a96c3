use std::time::Duration;

use punctual_units::Instant;

use super::unloaded::{Packets, UnloadedRoundTrip};

/// The time over which the least round trip is the present one: a few samples, which come every
/// 10 ms. A delay that not all packets have, such as that of a host or a radio link, is no queue.
pub(crate) const PRESENT: Duration = Duration::from_millis(45);
/// Samples of that time that are remembered.
const SAMPLES: usize = 8;

/// The newest round trips of a path, and the one without a queue.
#[derive(Debug, Default)]
pub(crate) struct RoundTrips {
    latest: Duration,
    /// The latest samples, in a ring.
    recent: [(Instant, Duration); SAMPLES],
    samples: usize,
    unloaded: UnloadedRoundTrip,
}

impl RoundTrips {
    /// Takes in a round trip that was measured or reported by the peer; `totals` counts since the
    /// connection began.
    pub(crate) fn sample(&mut self, now: Instant, rtt: Duration, totals: Packets) {
        self.latest = rtt;
        self.recent[self.samples % SAMPLES] = (now, rtt);
        self.samples += 1;
        self.unloaded.sample(now, rtt, totals);
    }

    /// The newest round trip; zero before the first.
    pub(crate) const fn latest(&self) -> Duration {
        self.latest
    }

    /// The least round trip of the last ten minutes with samples; zero before the first.
    pub(crate) fn least(&self) -> Duration {
        self.unloaded.least()
    }

    /// The time that packets wait in queues along the path: the present round trip less the one
    /// without a queue. Zero before the first sample.
    pub(crate) fn queueing_delay(&self) -> Duration {
        let Some(newest) = self.samples.checked_sub(1) else { return Duration::ZERO };
        let since = self.recent[newest % SAMPLES].0.saturating_sub(PRESENT);
        let known = &self.recent[..self.samples.min(SAMPLES)];
        let present = known.iter().filter(|(at, _)| *at >= since).map(|&(_, rtt)| rtt).min();
        present.unwrap_or_default().saturating_sub(self.unloaded.get())
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
}
