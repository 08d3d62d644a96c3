//! Everything in a world that is left to chance comes from one seed, by names and not by order.

use std::time::Duration;

/// The use of a seed. The numbers never change, so that a run can be repeated.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    Endpoint = 1,
    Link = 2,
    Lateness = 3,
    Traffic = 4,
    Stream = 5,
    Application = 6,
    Group = 7,
}

/// The seed for `purpose` of the thing numbered `index`.
pub(crate) fn derive(seed: u64, purpose: Purpose, index: usize) -> u64 {
    mix(mix(mix(seed) ^ purpose as u64) ^ index as u64)
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): each bit of the result depends on each of
/// the argument's, and no two arguments give the same.
pub(crate) const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(GOLDEN);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// The golden ratio's fraction, as SplitMix64 takes it.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// A generator of random numbers for rare draws (G. L. Steele, D. Lea and C. H. Flood, Fast
/// splittable pseudorandom number generators, 2014).
#[derive(Clone, Debug)]
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        let drawn = mix(self.0);
        self.0 = self.0.wrapping_add(GOLDEN);
        drawn
    }

    /// A duration that is exponentially distributed around `mean`, to within a tenth of a percent.
    pub(crate) fn exponential(&mut self, mean: Duration) -> Duration {
        let nanos = mean.as_nanos() * u128::from(negative_log2(self.next()));
        // log2 has 32 bits after the point, and ln 2 is 2977044472 in as many.
        let nanos = ((nanos >> 32) * LN_2) >> 32;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

const LN_2: u128 = 2_977_044_472;

/// -log2 of `value` / 2^64 with 32 bits after the point: the place of the highest bit, and between
/// two powers of two a parabola through both ends and the middle. Integers only, so that it is the
/// same on each machine.
fn negative_log2(value: u64) -> u64 {
    let value = value.max(1);
    let zeros = u64::from(value.leading_zeros());
    // The fraction behind the highest bit, 0 to 1.
    let fraction = ((value << zeros) & (u64::MAX >> 1)) >> 31;
    // log2(1 + f) is f + 0.3399 f (1 - f) to within 0.009.
    let bow = (((fraction * ((1 << 32) - fraction)) >> 32) * 1_459_860_000) >> 32;
    ((zeros + 1) << 32) - fraction - bow
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_differ_by_purpose_and_number() {
        let mut seeds: Vec<u64> = (0..100)
            .flat_map(|index| {
                [Purpose::Endpoint, Purpose::Link].map(|purpose| derive(7, purpose, index))
            })
            .collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 200);
        assert_ne!(derive(7, Purpose::Link, 0), derive(8, Purpose::Link, 0));
    }

    #[test]
    fn seeds_stay_what_they_are() {
        // SplitMix64's first number from seed 0.
        assert_eq!(mix(0), 0xE220_A839_7B1D_CDAF);
    }

    #[test]
    fn exponential_durations_have_their_mean_and_their_median() {
        let mut chance = SplitMix64::new(3);
        let mean = Duration::from_millis(10);
        let mut drawn: Vec<Duration> = (0..20_001).map(|_| chance.exponential(mean)).collect();
        let average = drawn.iter().sum::<Duration>() / 20_001;
        assert!(average.abs_diff(mean) < Duration::from_micros(200), "{average:?}");
        drawn.sort_unstable();
        let median = drawn[10_000];
        assert!(median.abs_diff(Duration::from_micros(6_931)) < Duration::from_micros(200));
    }

    #[test]
    fn the_extremes_of_chance_are_taken() {
        assert_eq!(negative_log2(0), 64 << 32);
        assert!(negative_log2(u64::MAX) <= 1);
    }
}
