use std::time::Duration;

use punctual_units::Instant;

use crate::adjust::DelayFilter;
use crate::epoch::Epoch;
use crate::estimate::Rtt;
use crate::estimator::{RttEstimator, RttSample};
use crate::number::PacketNumber;

/// An estimator of this project: samples that are alike because they share a flight count as one.
///
/// A sample that depends on the one before brings less news. If their correlation is `r`, a row of
/// samples is worth as much as (1 - r) / (1 + r) times as many independent ones (the variance of
/// the mean of an autoregressive process). So the gains 1/8 and 1/4 of RFC 9002 are multiplied by
/// this factor, which follows from the correlation of each sample's deviation with that of the one
/// before. It is never less than one sample in a flight, nor more than 1. Other than with
/// [`OnceStrictRtt`](crate::OnceStrictRtt) the estimate follows each sample at once, and where
/// samples are independent it is RFC 9002's.
#[derive(Debug, Default)]
pub struct AutocorrelationRtt {
    filter: DelayFilter,
    flight: Flight,
    correlation: Correlation,
    /// Smoothed round-trip time and mean deviation in seconds.
    estimate: Option<(f64, f64)>,
}

/// How many samples a flight has.
#[derive(Debug, Default)]
struct Flight {
    /// The packet after the last that was sent.
    next: PacketNumber,
    epoch: Option<Epoch>,
    /// Samples of the epoch before, and of this one so far.
    before: u32,
    now: u32,
}

/// The correlation of neighbouring deviations, from exponentially weighted means of products.
#[derive(Debug, Default)]
struct Correlation {
    last: f64,
    product: f64,
    square: f64,
}

impl AutocorrelationRtt {
    /// An estimator that believes reported delays up to the peer's `max_ack_delay`; `None` believes
    /// any.
    pub fn new(max_ack_delay: Option<Duration>) -> Self {
        Self { filter: DelayFilter::new(max_ack_delay), ..Self::default() }
    }
}

impl RttEstimator for AutocorrelationRtt {
    fn sent(&mut self, _: Instant, number: PacketNumber) {
        self.flight.next = self.flight.next.max(number.next());
    }

    fn acknowledged(&mut self, sample: &RttSample) {
        let adjusted = self.filter.adjust(sample);
        self.flight.count(sample.number);
        let Some((smoothed, variance)) = &mut self.estimate else {
            let first = Rtt::first(sample.rtt);
            self.estimate = Some((first.smoothed.as_secs_f64(), first.variance.as_secs_f64()));
            return;
        };
        let deviation = adjusted.as_secs_f64() - *smoothed;
        self.correlation.count(deviation);
        let weight = self.correlation.independent_share().max(self.flight.least_weight());
        *variance += (deviation.abs() - *variance) * weight / 4.0;
        *smoothed += deviation * weight / 8.0;
    }

    fn estimate(&self) -> Option<Rtt> {
        self.estimate.map(|(smoothed, variance)| Rtt {
            smoothed: Duration::from_secs_f64(smoothed),
            variance: Duration::from_secs_f64(variance),
        })
    }
}

impl Flight {
    fn count(&mut self, number: PacketNumber) {
        self.next = self.next.max(number.next());
        self.now = self.now.saturating_add(1);
        if self.epoch.is_none_or(|epoch| epoch.ends_with(number)) {
            self.before = self.now;
            self.now = 0;
            self.epoch = Some(Epoch::beginning(self.next));
        }
    }

    /// The share of a sample if a whole flight counts as one.
    fn least_weight(&self) -> f64 {
        1.0 / f64::from(self.before.max(self.now).max(1))
    }
}

impl Correlation {
    fn count(&mut self, deviation: f64) {
        self.product += (self.last * deviation - self.product) * Self::GAIN;
        self.square += (deviation * deviation - self.square) * Self::GAIN;
        self.last = deviation;
    }

    /// (1 - r) / (1 + r) with the correlation r, and 1 if r is negative or unknown.
    fn independent_share(&self) -> f64 {
        if self.product <= 0.0 || self.square <= 0.0 {
            return 1.0;
        }
        let correlation = (self.product / self.square).min(1.0);
        (1.0 - correlation) / (1.0 + correlation)
    }

    const GAIN: f64 = 1.0 / 16.0;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::OnceStrictRtt;
    use crate::rfc9002::Rfc9002Rtt;
    use crate::testing::{MS, US, history, sample, send_to, stays_within_its_samples};

    /// Flights of 32 packets whose samples rise from 200 to 262 ms within a flight.
    fn in_flights(estimator: &mut dyn RttEstimator, flights: u64) {
        for flight in 0..flights {
            send_to(estimator, (flight + 1) * 32);
            for number in 0..32 {
                estimator.acknowledged(&sample(flight * 32 + number + 1, 200 + 2 * number));
            }
        }
    }

    #[test]
    fn the_second_sample_counts_like_that_of_rfc_9002() {
        let mut estimator = AutocorrelationRtt::new(None);
        for (number, rtt) in [(1, 100), (2, 108)] {
            send_to(&mut estimator, number);
            estimator.acknowledged(&sample(number, rtt));
        }
        let expected = Some(Rtt { smoothed: MS(101), variance: US(39_500) });
        assert_eq!(estimator.estimate(), expected);
    }

    #[test]
    fn samples_of_both_signs_count_whole_and_like_ones_less() {
        let mut correlation = Correlation::default();
        [1.0, -1.0, 1.0].into_iter().for_each(|it| correlation.count(it));
        assert!((correlation.independent_share() - 1.0).abs() < 1e-12);
        let mut correlation = Correlation::default();
        // By hand: after 1, 1 the products are 1/16 and the squares 1/16 + 15/256 = 31/256; so r is
        // 16/31 and the share (31 - 16) / (31 + 16).
        [1.0, 1.0].into_iter().for_each(|it| correlation.count(it));
        assert!((correlation.independent_share() - 15.0 / 47.0).abs() < 1e-12);
    }

    #[test]
    fn a_rise_within_each_flight_is_seen_as_variation_of_the_path() {
        let mut ours = AutocorrelationRtt::new(None);
        let (mut rfc9002, mut strict) = (Rfc9002Rtt::new(None), OnceStrictRtt::new(None));
        in_flights(&mut ours, 40);
        in_flights(&mut rfc9002, 40);
        in_flights(&mut strict, 40);
        let distance = |it: &dyn RttEstimator| {
            // The mean of a flight is 231 ms.
            it.estimate().expect("there were samples").smoothed.abs_diff(MS(231))
        };
        assert!(distance(&ours) < MS(6), "{ours:?}");
        assert!(distance(&rfc9002) > MS(14), "it follows the last samples: {rfc9002:?}");
        assert!(distance(&strict) < MS(1), "{strict:?}");
    }

    proptest! {
        #[test]
        fn the_estimate_stays_within_the_samples(history in history(), max in 0..1_000_u64) {
            stays_within_its_samples(&mut AutocorrelationRtt::new(Some(MS(max))), &history)?;
        }
    }
}
