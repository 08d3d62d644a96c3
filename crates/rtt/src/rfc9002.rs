use std::time::Duration;

use crate::adjust::DelayFilter;
use crate::estimate::Rtt;
use crate::estimator::{RttEstimator, RttSample};

/// QUIC's estimator: the means of [`ClassicRtt`](crate::ClassicRtt) over samples from which the
/// peer's delay has been taken (RFC 9002 section 5.3).
///
/// A delay is taken out as far as the result is not less than the least sample.
#[derive(Debug, Default)]
pub struct Rfc9002Rtt {
    filter: DelayFilter,
    estimate: Option<Rtt>,
}

impl Rfc9002Rtt {
    /// An estimator that believes reported delays up to the peer's `max_ack_delay`. `None` believes
    /// any delay, as QUIC does before the handshake is confirmed.
    pub fn new(max_ack_delay: Option<Duration>) -> Self {
        Self { filter: DelayFilter::new(max_ack_delay), estimate: None }
    }

    /// The least sample so far, delays included (RFC 9002 section 5.2); `None` before the first.
    pub fn least(&self) -> Option<Duration> {
        self.filter.least()
    }
}

impl RttEstimator for Rfc9002Rtt {
    fn acknowledged(&mut self, sample: &RttSample) {
        let adjusted = self.filter.adjust(sample);
        self.estimate = Some(match self.estimate {
            None => Rtt::first(sample.rtt),
            Some(before) => before.updated(adjusted, before.smoothed.abs_diff(adjusted)),
        });
    }

    fn estimate(&self) -> Option<Rtt> {
        self.estimate
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{MS, US, history, sample_with_delay, stays_within_its_samples};

    #[test]
    fn samples_are_smoothed_without_the_delay_of_the_peer() {
        let mut estimator = Rfc9002Rtt::new(Some(MS(25)));
        // The sequence by hand: |100 - 108| = 8 and (3 × 50 + 8) / 4; |101 - 125| = 24.
        let steps = [
            (100, 10, MS(100), MS(50)),
            (128, 20, MS(101), US(39_500)),
            (150, 60, MS(104), US(35_625)),
        ];
        for (number, (rtt, delay, smoothed, variance)) in (1..).zip(steps) {
            estimator.acknowledged(&sample_with_delay(number, rtt, delay));
            assert_eq!(estimator.estimate(), Some(Rtt { smoothed, variance }));
        }
        assert_eq!(estimator.least(), Some(MS(100)));
    }

    proptest! {
        #[test]
        fn the_estimate_stays_within_the_samples(history in history(), max in 0..1_000_u64) {
            stays_within_its_samples(&mut Rfc9002Rtt::new(Some(MS(max))), &history)?;
            stays_within_its_samples(&mut Rfc9002Rtt::new(None), &history)?;
        }
    }
}
