//! The acknowledgement delay that a sample contains.

use std::time::Duration;

use crate::estimator::RttSample;

/// Takes the peer's delay of acknowledgements out of samples (RFC 9002 section 5.3).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DelayFilter {
    /// The greatest delay that is believed; `None` for any.
    max_ack_delay: Option<Duration>,
    least: Option<Duration>,
}

impl DelayFilter {
    /// Believes delays up to `max_ack_delay`, or any if it is `None`.
    pub(crate) fn new(max_ack_delay: Option<Duration>) -> Self {
        Self { max_ack_delay, least: None }
    }

    /// The sample without the peer's delay. The result is never less than the least sample so far,
    /// so a peer that exaggerates its delay cannot make the estimate shorter than the path.
    pub(crate) fn adjust(&mut self, sample: &RttSample) -> Duration {
        // The least is of samples as measured: a delay that was reported wrongly would stay in it.
        let least = self.least.map_or(sample.rtt, |least| least.min(sample.rtt));
        self.least = Some(least);
        let delay = self.max_ack_delay.map_or(sample.ack_delay, |max| max.min(sample.ack_delay));
        match least.checked_add(delay) {
            Some(sum) if sample.rtt >= sum => sample.rtt - delay,
            _ => sample.rtt,
        }
    }

    /// The least sample so far (RFC 9002 section 5.2); `None` before the first.
    pub(crate) fn least(&self) -> Option<Duration> {
        self.least
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MS, sample_with_delay};

    #[test]
    fn a_delay_is_taken_out_unless_the_sample_would_be_less_than_the_least() {
        let mut filter = DelayFilter::new(Some(MS(25)));
        assert_eq!(filter.adjust(&sample_with_delay(1, 100, 10)), MS(100), "nothing is less yet");
        assert_eq!(filter.adjust(&sample_with_delay(2, 110, 10)), MS(100));
        assert_eq!(filter.adjust(&sample_with_delay(3, 109, 10)), MS(109), "99 would be less");
        assert_eq!(filter.adjust(&sample_with_delay(4, 140, 80)), MS(115), "25 of 80 are believed");
        assert_eq!(filter.least(), Some(MS(100)));
    }

    #[test]
    fn without_a_limit_any_delay_is_believed() {
        let mut filter = DelayFilter::new(None);
        filter.adjust(&sample_with_delay(1, 100, 0));
        assert_eq!(filter.adjust(&sample_with_delay(2, 500, 380)), MS(120));
    }
}
