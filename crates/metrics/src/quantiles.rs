/// A distribution of non-negative whole numbers, such as timing errors in nanoseconds. It takes
/// 30 KB, however many values are recorded.
///
/// Values are counted in buckets. Below 128 each value has a bucket of its own; above that, each
/// power of two is divided into 64 equal buckets. A quantile is the middle of a bucket, so it is
/// within 1 % of the value that sorting would give. The least and the largest value are exact.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Quantiles {
    buckets: Vec<u64>,
    count: u64,
    min: u64,
    max: u64,
}

impl Quantiles {
    /// Records a value, in the caller's unit.
    pub fn record(&mut self, value: u64) {
        self.buckets[bucket_of(value)] += 1;
        self.count += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds all values that `other` has recorded.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// The number of values that were recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The least value; `None` before the first one.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// The largest value; `None` before the first one.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// The median: the least value that half of all values do not exceed.
    pub fn median(&self) -> Option<u64> {
        self.quantile(500_000)
    }

    /// The least value that 99 % of all values do not exceed.
    pub fn p99(&self) -> Option<u64> {
        self.quantile(990_000)
    }

    /// The least value that 99.9 % of all values do not exceed.
    pub fn p999(&self) -> Option<u64> {
        self.quantile(999_000)
    }

    /// The least value that `per_million` millionths of all values do not exceed; more than a
    /// million counts as a million. `None` before the first value.
    pub fn quantile(&self, per_million: u32) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let rank = (u128::from(self.count) * u128::from(per_million.min(MILLION)))
            .div_ceil(u128::from(MILLION))
            .max(1);
        let mut below = 0;
        let bucket = self.buckets.iter().position(|&values| {
            below += u128::from(values);
            below >= rank
        })?;
        Some(middle_of(bucket).clamp(self.min, self.max))
    }
}

impl Default for Quantiles {
    fn default() -> Self {
        Self { buckets: vec![0; BUCKETS], count: 0, min: u64::MAX, max: 0 }
    }
}

const MILLION: u32 = 1_000_000;

/// The logarithm to base two of the number of buckets in a power of two.
const PRECISION: u32 = 6;

/// The number of buckets: one row of them for each exponent from `PRECISION` to 63, and one for the
/// values below.
const BUCKETS: usize = ((64 - PRECISION as usize) + 1) << PRECISION;

fn bucket_of(value: u64) -> usize {
    let shift = value.max(1).ilog2().saturating_sub(PRECISION);
    let bucket = (u64::from(shift) << PRECISION) + (value >> shift);
    usize::try_from(bucket).expect("there are 3776 buckets")
}

fn middle_of(bucket: usize) -> u64 {
    let shift = (bucket >> PRECISION).saturating_sub(1);
    let lowest = ((bucket - (shift << PRECISION)) as u64) << shift;
    lowest + ((1_u64 << shift) - 1) / 2
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Quantiles {
        let mut quantiles = Quantiles::default();
        values.into_iter().for_each(|value| quantiles.record(value));
        quantiles
    }

    #[test]
    fn small_numbers_are_exact() {
        let quantiles = of(1..=100);
        assert_eq!(quantiles.count(), 100);
        assert_eq!(quantiles.median(), Some(50));
        assert_eq!(quantiles.p99(), Some(99));
        assert_eq!(quantiles.p999(), Some(100));
        assert_eq!((quantiles.min(), quantiles.max()), (Some(1), Some(100)));
        assert_eq!(quantiles.quantile(0), Some(1));
        assert_eq!(quantiles.quantile(u32::MAX), Some(100));
    }

    #[test]
    fn nothing_has_no_quantile() {
        let nothing = Quantiles::default();
        assert_eq!((nothing.median(), nothing.min(), nothing.max()), (None, None, None));
        let mut merged = nothing.clone();
        merged.merge(&nothing);
        assert_eq!(merged, nothing);
    }

    #[test]
    fn buckets_are_contiguous_and_hold_every_value() {
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
        for exponent in 6..64 {
            let power = 1_u64 << exponent;
            assert_eq!(bucket_of(power), bucket_of(power - 1) + 1, "at 2^{exponent}");
        }
        for bucket in 0..BUCKETS {
            assert_eq!(bucket_of(middle_of(bucket)), bucket);
        }
    }

    proptest! {
        #[test]
        fn within_one_percent_of_sorting(
            values in proptest::collection::vec((0_u32..64, any::<u64>()), 1..300),
            per_million in 0_u32..=1_000_000,
        ) {
            let mut values: Vec<u64> = values.into_iter().map(|(shift, v)| v >> shift).collect();
            let quantiles = of(values.iter().copied());
            values.sort_unstable();
            let rank = (values.len() as u64 * u64::from(per_million)).div_ceil(1_000_000).max(1);
            let exact = values[usize::try_from(rank).unwrap() - 1];
            let found = quantiles.quantile(per_million).unwrap();
            prop_assert!(found.abs_diff(exact) <= exact / 100, "{found} for {exact}");
        }

        #[test]
        fn merging_is_recording_both(
            left: Vec<u64>, right: Vec<u64>,
        ) {
            let mut merged = of(left.iter().copied());
            merged.merge(&of(right.iter().copied()));
            prop_assert_eq!(merged, of(left.into_iter().chain(right)));
        }
    }
}
