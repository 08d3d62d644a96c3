use crate::estimate::Rtt;
use crate::estimator::{RttEstimator, RttSample};

/// The draft's estimator: exponentially weighted means with gains of 1/8 and 1/4, which begin with
/// the first sample and half of it (draft section 4.10).
#[derive(Debug, Default)]
pub struct ClassicRtt {
    estimate: Option<Rtt>,
}

impl RttEstimator for ClassicRtt {
    fn acknowledged(&mut self, sample: &RttSample) {
        let sample = sample.rtt;
        self.estimate = Some(match self.estimate {
            None => Rtt::first(sample),
            Some(before) => before.updated(sample, before.smoothed.abs_diff(sample)),
        });
    }

    fn estimate(&self) -> Option<Rtt> {
        self.estimate
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use punctual_units::Instant;

    use super::*;
    use crate::number::PacketNumber;
    use crate::testing::{MS, history, stays_within_its_samples};

    #[test]
    fn the_first_sample_is_taken_whole_and_later_ones_are_smoothed() {
        let mut classic = ClassicRtt::default();
        assert_eq!(classic.estimate(), None);
        let samples = [
            (20, Rtt { smoothed: MS(20), variance: MS(10) }),
            (28, Rtt { smoothed: MS(21), variance: Duration::from_micros(9_500) }),
        ];
        for (number, (ms, expected)) in (1..).zip(samples) {
            classic.acknowledged(&RttSample {
                now: Instant::from_millis(1_000 * number),
                number: PacketNumber::new(number),
                rtt: MS(ms),
                ack_delay: Duration::ZERO,
            });
            assert_eq!(classic.estimate(), Some(expected));
        }
    }

    #[test]
    fn the_report_of_the_peer_replaces_the_estimate_until_the_next_sample() {
        let mut classic = ClassicRtt::default();
        let reported = Rtt { smoothed: MS(33), variance: MS(2) };
        assert_eq!(classic.peer_reported(Instant::ORIGIN, reported), Some(reported));
        assert_eq!(classic.estimate(), None, "nothing was measured");
    }

    proptest! {
        #[test]
        fn the_estimate_stays_within_the_samples(history in history()) {
            stays_within_its_samples(&mut ClassicRtt::default(), &history)?;
        }
    }
}
