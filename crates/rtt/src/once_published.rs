use std::time::Duration;

use punctual_units::Instant;

use crate::epoch::Epoch;
use crate::estimate::Rtt;
use crate::estimator::{RttEstimator, RttSample};
use crate::number::PacketNumber;

/// The estimator whose results were published as "once per RTT" (picoquic of June 2023), which in
/// fact updates with nearly each sample.
///
/// It differs from [`OnceStrictRtt`](crate::OnceStrictRtt) in the end of a period. A period also
/// ends with a sample that comes within a quarter of its round trip after the end of the period
/// before. So where acknowledgements come that quickly one after the other, each of them ends a
/// period of its own.
///
/// The first sample is the estimate but does not count as an update: timers keep their initial
/// value until the second. A reported delay is taken out of a sample only if the rest is greater
/// than the least sample.
#[derive(Debug, Default)]
pub struct OncePublishedRtt {
    max_ack_delay: Option<Duration>,
    least: Option<Duration>,
    /// The packet after the last that was sent.
    next: PacketNumber,
    highest_acknowledged: PacketNumber,
    /// The period, and when the one before ended.
    period: Option<(Epoch, Instant)>,
    estimate: Option<Rtt>,
    updates: u64,
}

impl OncePublishedRtt {
    /// An estimator that believes reported delays up to `max_ack_delay`; `None` believes any. The
    /// published code believed delays up to this end's own, not the peer's.
    pub fn new(max_ack_delay: Option<Duration>) -> Self {
        Self { max_ack_delay, ..Self::default() }
    }

    fn adjust(&mut self, sample: &RttSample) -> Duration {
        let delay = self.max_ack_delay.map_or(sample.ack_delay, |max| max.min(sample.ack_delay));
        let limit = self.least.and_then(|least| least.checked_add(delay));
        let adjusted = match limit {
            Some(limit) if limit < sample.rtt => sample.rtt - delay,
            _ => sample.rtt,
        };
        self.least = Some(self.least.map_or(adjusted, |least| least.min(adjusted)));
        adjusted
    }
}

impl RttEstimator for OncePublishedRtt {
    fn sent(&mut self, _: Instant, number: PacketNumber) {
        self.next = self.next.max(number.next());
    }

    fn acknowledged(&mut self, sample: &RttSample) {
        let adjusted = self.adjust(sample);
        self.next = self.next.max(sample.number.next());
        self.highest_acknowledged = self.highest_acknowledged.max(sample.number);
        let (Some(before), Some((period, began))) = (self.estimate, &mut self.period) else {
            self.estimate = Some(Rtt::first(adjusted));
            self.period = Some((Epoch::beginning(self.next), sample.now));
            return;
        };
        period.count(adjusted);
        let follows_closely = sample.now.saturating_since(*began) < adjusted / 4;
        if period.ends_with(self.highest_acknowledged) || follows_closely {
            if let Some(samples) = period.summary() {
                self.estimate = Some(samples.update(before));
                self.updates += 1;
            }
            self.period = Some((Epoch::beginning(self.next), sample.now));
        }
    }

    fn estimate(&self) -> Option<Rtt> {
        self.estimate
    }

    fn updates(&self) -> Option<u64> {
        Some(self.updates)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{MS, US, history, send_to, stays_within_its_samples};

    /// The packet `number` is acknowledged at `now` after `rtt`, in milliseconds.
    fn at(now: u64, number: u64, rtt: u64) -> RttSample {
        RttSample {
            now: Instant::from_millis(now),
            number: PacketNumber::new(number),
            rtt: MS(rtt),
            ack_delay: Duration::ZERO,
        }
    }

    #[test]
    fn samples_in_quick_succession_end_a_period_each() {
        let mut estimator = OncePublishedRtt::new(None);
        send_to(&mut estimator, 20);
        estimator.acknowledged(&at(100, 1, 100));
        let first = Some(Rtt { smoothed: MS(100), variance: MS(50) });
        assert_eq!((estimator.estimate(), estimator.updates()), (first, Some(0)));
        // 24 ms after the first, which is less than a quarter of 108 ms.
        estimator.acknowledged(&at(124, 2, 108));
        let second = Some(Rtt { smoothed: MS(101), variance: US(39_500) });
        assert_eq!((estimator.estimate(), estimator.updates()), (second, Some(1)));
        estimator.acknowledged(&at(125, 3, 101));
        let third = Some(Rtt { smoothed: MS(101), variance: US(29_625) });
        assert_eq!((estimator.estimate(), estimator.updates()), (third, Some(2)));
    }

    #[test]
    fn after_a_pause_a_period_is_a_round_trip_until_samples_come_quickly() {
        let mut estimator = OncePublishedRtt::new(None);
        send_to(&mut estimator, 20);
        estimator.acknowledged(&at(100, 1, 100));
        send_to(&mut estimator, 30);
        // Packets 2 and 3 come 30 ms and 31 ms after the period began: neither ends it, even though
        // they come 1 ms apart.
        estimator.acknowledged(&at(130, 2, 100));
        estimator.acknowledged(&at(131, 3, 104));
        assert_eq!(estimator.updates(), Some(0));
        estimator.acknowledged(&at(200, 21, 96));
        // The mean is 100, the greatest deviation 4: (3 × 50 + 4) / 4.
        let expected = Some(Rtt { smoothed: MS(100), variance: US(38_500) });
        assert_eq!((estimator.estimate(), estimator.updates()), (expected, Some(1)));
    }

    #[test]
    fn a_delay_that_leaves_exactly_the_least_sample_stays_in() {
        let mut estimator = OncePublishedRtt::new(Some(MS(10)));
        send_to(&mut estimator, 1);
        estimator.acknowledged(&at(100, 1, 100));
        send_to(&mut estimator, 2);
        estimator.acknowledged(&RttSample { ack_delay: MS(10), ..at(300, 2, 110) });
        assert_eq!(estimator.estimate().map(|it| it.smoothed), Some(US(101_250)), "110, not 100");
    }

    proptest! {
        #[test]
        fn the_estimate_stays_within_the_samples(history in history(), max in 0..1_000_u64) {
            stays_within_its_samples(&mut OncePublishedRtt::new(Some(MS(max))), &history)?;
        }
    }
}
