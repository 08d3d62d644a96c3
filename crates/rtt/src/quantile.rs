use std::collections::VecDeque;
use std::time::Duration;

use crate::adjust::DelayFilter;
use crate::estimate::Rtt;
use crate::estimator::{RttEstimator, RttSample};

/// An estimator of this project: the median of the latest samples, and a deviation by which the
/// median + 4 × variance ([`Rtt::bound`]) is a high quantile of them.
///
/// Means say little about samples that are not distributed like those of a Gaussian, and delays are
/// not: they have a least value and a long tail. This estimator counts instead: a given share of
/// the samples, 99 % by default, was not above the bound. Few samples say little about so high a
/// quantile, so half of the first sample, the initial deviation of RFC 9002, counts as if it had
/// been measured a few times.
#[derive(Debug)]
pub struct QuantileRtt {
    filter: DelayFilter,
    share: f64,
    /// The latest samples in the order of their arrival.
    window: VecDeque<Duration>,
    /// The same samples in ascending order.
    sorted: Vec<Duration>,
    first: Option<Duration>,
}

impl QuantileRtt {
    /// The samples that count.
    pub const WINDOW: usize = 256;

    /// An estimator that believes reported delays up to the peer's `max_ack_delay`; `None` believes
    /// any.
    pub fn new(max_ack_delay: Option<Duration>) -> Self {
        Self {
            filter: DelayFilter::new(max_ack_delay),
            share: 0.99,
            window: VecDeque::with_capacity(Self::WINDOW),
            sorted: Vec::with_capacity(Self::WINDOW),
            first: None,
        }
    }

    /// The same with another share of the samples below the bound, which is brought into the range
    /// 0.5 to 1; at 1 the bound is the greatest sample.
    #[must_use]
    pub fn with_share(mut self, share: f64) -> Self {
        self.share = if share.is_nan() { 1.0 } else { share.clamp(0.5, 1.0) };
        self
    }

    /// The least sample of the window that this share of its samples does not exceed.
    fn quantile(&self, share: f64) -> Option<Duration> {
        let last = self.sorted.len().checked_sub(1)?;
        // The place of the first sample that has the share before and with it.
        let place = (0..last).find(|&place| to_f64(place + 1) >= share * to_f64(last + 1));
        self.sorted.get(place.unwrap_or(last)).copied()
    }
}

impl RttEstimator for QuantileRtt {
    fn acknowledged(&mut self, sample: &RttSample) {
        let adjusted = self.filter.adjust(sample);
        self.first.get_or_insert(sample.rtt);
        if self.window.len() == Self::WINDOW {
            let oldest = self.window.pop_front().and_then(|it| self.sorted.binary_search(&it).ok());
            oldest.into_iter().for_each(|place| {
                self.sorted.remove(place);
            });
        }
        self.window.push_back(adjusted);
        let place = self.sorted.partition_point(|&it| it < adjusted);
        self.sorted.insert(place, adjusted);
    }

    fn estimate(&self) -> Option<Rtt> {
        let (median, bound) = (self.quantile(0.5)?, self.quantile(self.share)?);
        let counted = u32::try_from(self.sorted.len()).unwrap_or(u32::MAX);
        // The first sample itself says nothing about the deviation.
        let measured = (bound - median) / 4 * (counted - 1);
        let assumed = self.first? / 2 * PRIOR;
        Some(Rtt { smoothed: median, variance: (measured + assumed) / (counted - 1 + PRIOR) })
    }
}

/// How often the initial deviation counts.
const PRIOR: u32 = 4;

fn to_f64(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{MS, US, history, sample, stays_within_its_samples};

    fn fed(samples: impl IntoIterator<Item = u64>) -> QuantileRtt {
        let mut estimator = QuantileRtt::new(None);
        for (number, rtt) in (1..).zip(samples) {
            estimator.acknowledged(&sample(number, rtt));
        }
        estimator
    }

    #[test]
    fn few_samples_are_completed_by_the_initial_deviation() {
        assert_eq!(fed([100]).estimate(), Some(Rtt { smoothed: MS(100), variance: MS(50) }));
        // The median is the first of two. (1 × 8 / 4 + 4 × 50) / 5.
        let second = Some(Rtt { smoothed: MS(100), variance: US(40_400) });
        assert_eq!(fed([100, 108]).estimate(), second);
        // (4 × 12 / 4 + 4 × 50) / 8.
        let fifth = Some(Rtt { smoothed: MS(104), variance: US(26_500) });
        assert_eq!(fed([100, 108, 104, 102, 116]).estimate(), fifth);
    }

    #[test]
    fn quantiles_are_counted() {
        let estimator = fed(1..=200);
        let at = |share| estimator.quantile(share);
        assert_eq!([at(0.5), at(0.99), at(1.0)], [MS(100), MS(198), MS(200)].map(Some));
        assert_eq!(at(0.0), Some(MS(1)));
    }

    #[test]
    fn only_the_latest_samples_count() {
        let estimator = fed((0..1_000).map(|it| if it < 744 { 900 } else { 20 }));
        assert_eq!(estimator.quantile(1.0), Some(MS(20)));
        assert_eq!(estimator.window.len(), QuantileRtt::WINDOW);
        assert_eq!(estimator.sorted.len(), QuantileRtt::WINDOW);
    }

    #[test]
    fn a_share_out_of_range_is_brought_into_it() {
        let share = |share| QuantileRtt::new(None).with_share(share).share;
        let found = [share(0.1), share(0.9), share(3.0), share(f64::NAN)];
        assert_eq!(found, [0.5, 0.9, 1.0, 1.0]);
    }

    proptest! {
        #[test]
        fn the_estimate_stays_within_the_samples(history in history(), max in 0..1_000_u64) {
            stays_within_its_samples(&mut QuantileRtt::new(Some(MS(max))), &history)?;
        }

        #[test]
        fn the_bound_is_at_least_its_share_of_the_samples(
            samples in proptest::collection::vec(1..5_000_u64, 1..400),
        ) {
            let estimator = fed(samples.iter().copied());
            let bound = estimator.estimate().expect("there were samples").bound();
            let recent = &samples[samples.len().saturating_sub(QuantileRtt::WINDOW)..];
            let above = recent.iter().filter(|&&it| MS(it) > bound).count();
            // The initial deviation may hold the bound down while it counts much.
            let initial = MS(samples[0]).mul_f64(2.0);
            let wide = estimator.quantile(0.99).expect("the same") - estimator.quantile(0.5)
                .expect("the same") > initial;
            prop_assert!(wide || above * 100 <= recent.len(), "{above} of {}", recent.len());
        }
    }
}
