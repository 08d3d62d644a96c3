use std::time::Duration;

use punctual_units::Instant;

use crate::adjust::DelayFilter;
use crate::epoch::Epoch;
use crate::estimate::Rtt;
use crate::estimator::{RttEstimator, RttSample};
use crate::number::PacketNumber;

/// An estimator that updates exactly once in a round trip (C. Huitema, "Update QUIC timers once per
/// RTT", 2023).
///
/// Samples that share a flight are much alike. Counted one by one they pull the mean to themselves
/// and make the deviation small. So the samples of an epoch make one update: with their mean, and
/// with the greatest deviation of one of them from the smoothed value before. An epoch begins with
/// the next packet to be sent and ends when that packet or a later one is acknowledged.
///
/// Where the text is silent or contradicts itself:
///
/// - The first sample is the estimate, and a new epoch begins after it; otherwise an epoch without
///   samples could end. It counts as an update, so that timers follow it at once.
/// - The acknowledgement of the very packet with which an epoch begins also ends it.
/// - Reported delays are believed up to the peer's `max_ack_delay`, as RFC 9002 says.
#[derive(Debug, Default)]
pub struct OnceStrictRtt {
    filter: DelayFilter,
    /// The packet after the last that was sent.
    next: PacketNumber,
    epoch: Option<Epoch>,
    estimate: Option<Rtt>,
    updates: u64,
}

impl OnceStrictRtt {
    /// An estimator that believes reported delays up to the peer's `max_ack_delay`; `None` believes
    /// any.
    pub fn new(max_ack_delay: Option<Duration>) -> Self {
        Self { filter: DelayFilter::new(max_ack_delay), ..Self::default() }
    }
}

impl RttEstimator for OnceStrictRtt {
    fn sent(&mut self, _: Instant, number: PacketNumber) {
        self.next = self.next.max(number.next());
    }

    fn acknowledged(&mut self, sample: &RttSample) {
        let adjusted = self.filter.adjust(sample);
        self.next = self.next.max(sample.number.next());
        let (Some(before), Some(epoch)) = (self.estimate, &mut self.epoch) else {
            self.estimate = Some(Rtt::first(sample.rtt));
            self.epoch = Some(Epoch::beginning(self.next));
            self.updates += 1;
            return;
        };
        epoch.count(adjusted);
        if epoch.ends_with(sample.number) {
            if let Some(samples) = epoch.summary() {
                self.estimate = Some(samples.update(before));
                self.updates += 1;
            }
            self.epoch = Some(Epoch::beginning(self.next));
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
    use crate::testing::{
        MS, US, history, sample, sample_with_delay, send_to, stays_within_its_samples,
    };

    #[test]
    fn the_samples_of_an_epoch_make_one_update_with_their_greatest_deviation() {
        let mut estimator = OnceStrictRtt::new(None);
        send_to(&mut estimator, 10);
        estimator.acknowledged(&sample(3, 100));
        let first = Some(Rtt { smoothed: MS(100), variance: MS(50) });
        assert_eq!((estimator.estimate(), estimator.updates()), (first, Some(1)));
        // The epoch begins with packet 11. Packets 5 to 10 belong to the flight before it.
        send_to(&mut estimator, 20);
        for (number, rtt) in [(5, 120), (8, 180), (10, 132)] {
            estimator.acknowledged(&sample(number, rtt));
            assert_eq!((estimator.estimate(), estimator.updates()), (first, Some(1)));
        }
        // (120 + 180 + 132 + 88) / 4 = 130; the greatest deviation from 100 is 80.
        estimator.acknowledged(&sample(11, 88));
        let second = Some(Rtt { smoothed: US(103_750), variance: US(57_500) });
        assert_eq!((estimator.estimate(), estimator.updates()), (second, Some(2)));
        // The next epoch begins with packet 21, and 20 does not end it.
        estimator.acknowledged(&sample(20, 500));
        assert_eq!(estimator.updates(), Some(2));
    }

    #[test]
    fn an_epoch_whose_first_packet_is_lost_ends_with_a_later_one() {
        let mut estimator = OnceStrictRtt::new(None);
        send_to(&mut estimator, 4);
        estimator.acknowledged(&sample(4, 100));
        send_to(&mut estimator, 9);
        estimator.acknowledged(&sample(7, 100));
        // (3 × 50 + 0) / 4.
        assert_eq!(estimator.estimate(), Some(Rtt { smoothed: MS(100), variance: US(37_500) }));
    }

    #[test]
    fn the_delay_of_the_peer_is_no_part_of_the_round_trip() {
        let mut estimator = OnceStrictRtt::new(Some(MS(10)));
        send_to(&mut estimator, 1);
        estimator.acknowledged(&sample_with_delay(1, 100, 10));
        send_to(&mut estimator, 2);
        estimator.acknowledged(&sample_with_delay(2, 118, 300));
        // 118 - 10 = 108; (7 × 100 + 108) / 8 = 101 and (150 + 8) / 4 = 39.5.
        assert_eq!(estimator.estimate(), Some(Rtt { smoothed: MS(101), variance: US(39_500) }));
    }

    #[test]
    fn packets_one_at_a_time_update_with_each_sample() {
        let mut estimator = OnceStrictRtt::new(None);
        for number in 1..=20 {
            send_to(&mut estimator, number);
            estimator.acknowledged(&sample(number, 50));
            assert_eq!(estimator.updates(), Some(number));
        }
    }

    proptest! {
        #[test]
        fn the_estimate_stays_within_the_samples(history in history(), max in 0..1_000_u64) {
            stays_within_its_samples(&mut OnceStrictRtt::new(Some(MS(max))), &history)?;
        }

        #[test]
        fn a_flight_makes_one_update_however_often_it_is_acknowledged(
            sizes in proptest::collection::vec(1..50_u64, 1..20),
        ) {
            let mut estimator = OnceStrictRtt::new(None);
            let mut sent = 0;
            for (flight, size) in (1..).zip(&sizes) {
                send_to(&mut estimator, sent + size);
                for number in sent + 1..=sent + size {
                    estimator.acknowledged(&sample(number, 20 + number % 7));
                }
                sent += size;
                prop_assert_eq!(estimator.updates(), Some(flight));
            }
        }
    }
}
