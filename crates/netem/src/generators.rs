//! The random numbers of a link: one generator for each impairment, all from one seed.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;

/// The generators of a link.
///
/// Each impairment has one, and each packet a place in it, given by the packet's number: so the
/// random numbers of a packet depend neither on the other packets' fate nor on the other
/// impairments. Nothing is drawn for an unused impairment: its generator is moved on to the right
/// place when it is needed.
#[derive(Clone, Debug)]
pub(crate) struct Generators {
    pub(crate) loss: Draws,
    pub(crate) duplicate: Draws,
    pub(crate) original: FateDraws,
    pub(crate) copy: FateDraws,
}

/// The random numbers for a packet's way through the link after its entrance.
#[derive(Clone, Debug)]
pub(crate) struct FateDraws {
    pub(crate) corrupt: Draws,
    pub(crate) reorder: Draws,
    pub(crate) jitter: Draws,
}

/// The generator of one impairment: a fixed number of draws for each packet.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    generator: Pcg64Mcg,
    /// Number of the packet whose draws come next.
    next: u64,
}

impl Generators {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            loss: Draws::new(seed, 0),
            duplicate: Draws::new(seed, 1),
            original: FateDraws::new(seed, 2),
            copy: FateDraws::new(seed, 5),
        }
    }
}

impl FateDraws {
    fn new(seed: u64, first: u64) -> Self {
        Self {
            corrupt: Draws::new(seed, first),
            reorder: Draws::new(seed, first + 1),
            jitter: Draws::new(seed, first + 2),
        }
    }
}

impl Draws {
    fn new(seed: u64, number: u64) -> Self {
        Self { generator: generator(seed, number), next: 0 }
    }

    /// The draw of a packet, where each packet has one. Numbers must not fall from call to call.
    pub(crate) fn one(&mut self, packet: u64) -> u64 {
        self.skip_to(packet, 1);
        self.generator.next_u64()
    }

    /// The draws of a packet, where each packet has two. Numbers must not fall from call to call.
    pub(crate) fn two(&mut self, packet: u64) -> [u64; 2] {
        self.skip_to(packet, 2);
        [self.generator.next_u64(), self.generator.next_u64()]
    }

    fn skip_to(&mut self, packet: u64, draws: u128) {
        let skipped = packet.wrapping_sub(self.next);
        if skipped != 0 {
            self.generator.advance(u128::from(skipped) * draws);
        }
        self.next = packet.wrapping_add(1);
    }
}

/// Whether an event of this probability happens, by a uniform draw. Never at 0, always at 1; other
/// values count as the nearest bound, and NaN as 0.
///
/// One comparison of two 53-bit fractions: exact, hence the same everywhere.
#[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
pub(crate) fn happens(probability: f64, draw: u64) -> bool {
    ((draw >> 11) as f64) < probability * (1_u64 << 53) as f64
}

/// A uniform integer of `-spread..=spread`.
pub(crate) fn uniform(spread: i64, draw: u64) -> i64 {
    let span = 2 * u128::from(spread.unsigned_abs()) + 1;
    narrow(((u128::from(draw) * span) >> 64).cast_signed() - i128::from(spread))
}

/// A normal variate with mean 0, within `NORMAL_LIMIT` standard deviations.
///
/// Coins instead of logarithms, because integers are the same on every machine: the heads among 64
/// coins are binomial with standard deviation 4, and two uniforms of one coin's width smooth the
/// steps between them. The excess kurtosis is -0.03; a true normal's is 0.
pub(crate) fn normal(std_dev: i64, draws: [u64; 2]) -> i64 {
    let heads = i64::from(draws[0].count_ones()) - 32;
    let smoothing = (draws[1] >> 32).cast_signed() + (draws[1] & 0xFFFF_FFFF).cast_signed();
    let coins = (heads << 32) + smoothing - (1 << 32);
    let limit = i128::from(std_dev) * i128::from(NORMAL_LIMIT);
    let standard = (i128::from(coins) * ONE_OVER_COIN_DEVIATION) >> 32;
    narrow(((standard * i128::from(std_dev)) >> 32).clamp(-limit, limit))
}

/// A Pareto variate of shape 3 with mean 0, up to `PARETO_LIMIT` standard deviations.
///
/// One by the cube root of a uniform, an integer root, has such a distribution from 1 up, with mean
/// 3/2 and variance 3/4.
pub(crate) fn pareto(std_dev: i64, draw: u64) -> i64 {
    // 2^20 by the cube root of (draw + 1) / 2^64.
    let variate = cube_root((1_u128 << 124) / (u128::from(draw) + 1));
    let deviation = i128::from(variate) - 3 * (1 << 19);
    let scaled = (deviation * ONE_OVER_PARETO_DEVIATION) >> 20;
    let limit = i128::from(std_dev) * i128::from(PARETO_LIMIT);
    narrow(((scaled * i128::from(std_dev)) >> 32).min(limit))
}

/// The least that [`pareto`] gives.
pub(crate) fn pareto_least(std_dev: i64) -> i64 {
    pareto(std_dev, u64::MAX)
}

/// The largest integer whose cube is not more than `value`, which is less than 2^126: one bit after
/// the other, from the highest.
fn cube_root(mut value: u128) -> u64 {
    let mut root = 0_u128;
    for shift in (0..=126).rev().step_by(3).skip(1) {
        root *= 2;
        let step = (3 * root * (root + 1) + 1) << shift;
        if value >= step {
            value -= step;
            root += 1;
        }
    }
    u64::try_from(root).unwrap_or(u64::MAX)
}

/// An independent generator for each `number`: seeds that differ in one bit give unrelated ones.
pub(crate) fn generator(seed: u64, number: u64) -> Pcg64Mcg {
    let half = |n| u128::from(mix(mix(seed) ^ n));
    Pcg64Mcg::new(half(2 * number) << 64 | half(2 * number + 1))
}

/// The output function of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
/// generators, 2014).
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn narrow(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

/// Standard deviations beyond which [`normal`] does not go.
pub(crate) const NORMAL_LIMIT: u32 = 4;

/// 2^32 / sqrt(16 + 1/6): the variance of 64 coins is 16, of the two smoothing uniforms 1/12 each.
const ONE_OVER_COIN_DEVIATION: i128 = 1_068_192_733;

/// Standard deviations beyond which [`pareto`] does not go: one packet in a million would.
const PARETO_LIMIT: u32 = 100;

/// 2^32 / sqrt(3/4).
const ONE_OVER_PARETO_DEVIATION: i128 = 4_959_401_049;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_draws_are_what_they_always_were() {
        let mut chance = Generators::new(1);
        assert_eq!(chance.loss.two(1), [0x9AC4_7313_05DC_BBE1, 0x8349_E930_5D54_610D]);
        assert_eq!(chance.duplicate.one(1), 0xE446_11A5_F809_44E4);
        let original = &mut chance.original;
        assert_eq!(original.corrupt.two(1), [0x3673_5102_D239_FF00, 0x6D46_565D_4883_D6C0]);
        assert_eq!(original.reorder.one(1), 0x06FF_87BE_E99A_7974);
        assert_eq!(original.jitter.two(1), [0xA16C_C7CA_CA7D_2507, 0x5A3A_DC61_CF50_81C2]);
        let copy = &mut chance.copy;
        assert_eq!(copy.corrupt.two(1)[0], 0xB06A_2509_83E1_964A);
        assert_eq!(copy.reorder.one(1), 0x01C0_8182_93AD_6303);
        assert_eq!(copy.jitter.two(1), [0x377C_3059_C844_EAFD, 0xBB71_8D9E_FBEF_A1C0]);
    }

    #[test]
    fn the_draws_of_a_packet_do_not_depend_on_other_packets() {
        let each: Vec<_> = {
            let mut draws = Generators::new(9).loss;
            (0..1_000).map(|n| draws.two(n)).collect()
        };
        let mut draws = Generators::new(9).loss;
        for n in [0, 1, 5, 6, 100, 999] {
            assert_eq!(draws.two(n), each[usize::try_from(n).unwrap()], "packet {n}");
        }
    }

    #[test]
    fn probabilities_zero_and_one_are_certain() {
        assert!(!happens(0.0, 0) && !happens(-1.0, 0) && !happens(f64::NAN, 0));
        assert!(happens(1.0, u64::MAX) && happens(2.0, u64::MAX));
        assert!(happens(0.5, u64::MAX / 2) && !happens(0.5, u64::MAX / 2 + 1));
    }

    #[test]
    fn uniform_reaches_both_ends_and_no_further() {
        assert_eq!(uniform(1_000, 0), -1_000);
        assert_eq!(uniform(1_000, u64::MAX), 1_000);
        assert_eq!(uniform(0, u64::MAX), 0);
        assert_eq!(uniform(i64::MAX, u64::MAX), i64::MAX);
    }

    #[test]
    fn normal_has_the_moments_of_a_normal() {
        let mut rng = generator(7, 0);
        let count = 200_000;
        let unit = 1_000_000;
        let values: Vec<f64> = (0..count)
            .map(|_| normal(unit, [rng.next_u64(), rng.next_u64()]) as f64 / unit as f64)
            .collect();
        let moment = |n| values.iter().map(|v| libm::pow(*v, n)).sum::<f64>() / f64::from(count);
        let within =
            |k: f64| values.iter().filter(|v| v.abs() < k).count() as f64 / f64::from(count);
        assert!(moment(1.0).abs() < 0.01, "mean {}", moment(1.0));
        assert!((moment(2.0) - 1.0).abs() < 0.015, "variance {}", moment(2.0));
        assert!(moment(3.0).abs() < 0.03, "skewness {}", moment(3.0));
        assert!((moment(4.0) - 2.97).abs() < 0.08, "kurtosis {}", moment(4.0));
        assert!((within(1.0) - 0.6827).abs() < 0.005, "one sigma {}", within(1.0));
        assert!((within(2.0) - 0.9545).abs() < 0.003, "two sigmas {}", within(2.0));
        assert_eq!(normal(unit, [0, 0]), -4 * unit);
        assert_eq!(normal(unit, [u64::MAX, u64::MAX]), 4 * unit);
    }

    #[test]
    fn pareto_has_the_tail_and_the_bounds_of_a_pareto() {
        let mut rng = generator(7, 0);
        let unit = 1_000_000;
        let count = 200_000;
        let values: Vec<_> = (0..count).map(|_| pareto(unit, rng.next_u64())).collect();
        let mean = values.iter().sum::<i64>() / count;
        assert!(mean.abs() < unit / 50, "mean {mean}");
        // One in a thousand is more than ten times the scale, which is 1 / sqrt(0.75).
        let tail = values.iter().filter(|&&value| value > 9_814_955).count();
        assert!(tail.abs_diff(200) < 70, "{tail}");
        assert_eq!(pareto(unit, 0), 100 * unit);
        assert_eq!(pareto_least(unit), -577_351);
        assert!(values.iter().all(|&value| value >= -577_351));
        assert_eq!(pareto(i64::MAX, 0), i64::MAX);
    }

    #[test]
    fn cube_roots_are_exact() {
        for root in [0_u128, 1, 2, 9, 1_000_003, (1 << 41) - 1, (1 << 42) - 1] {
            let cube = root.pow(3);
            assert_eq!(u128::from(cube_root(cube)), root);
            assert_eq!(u128::from(cube_root(cube + 3 * root * root)), root);
            if root > 0 {
                assert_eq!(u128::from(cube_root(cube - 1)), root - 1);
            }
        }
    }
}
