//! Equations 1 to 8, and the same with requests that are lost.

use std::time::Duration;

/// Equation 1, for any number of blocks: the probability that all of them arrive within `rounds`
/// round trips, (1 − P^(M+1))^N. The paper prints it for N = 2.
///
/// `loss` is the share of blocks that are lost, 0 to 1; it counts for one direction only, as if no
/// request was lost.
pub fn received(loss: f64, rounds: u32, blocks: f64) -> f64 {
    none_of(power(loss, rounds.saturating_add(1)), blocks)
}

/// Equation 2: the probability that of this number of blocks at least one takes more than `rounds`
/// round trips, 1 − (1 − P^(M+1))^N.
///
/// The paper writes P(M,N) for it as for equation 1, of which it is the complement.
pub fn glitch_probability(loss: f64, rounds: u32, blocks: f64) -> f64 {
    any_of(power(loss, rounds.saturating_add(1)), blocks)
}

/// Equations 3 to 5 as they are printed: equation 2 with the exponent M in place of M + 1, that is
/// equation 2 at one round fewer than is said.
pub fn printed_glitch_probability(loss: f64, rounds: u32, blocks: f64) -> f64 {
    any_of(power(loss, rounds), blocks)
}

/// Equations 6 to 8: the expected number of skips in `transfers` transfers of `chunks` readchunks.
///
/// The paper reads it as a share of the time. It is a mean number, which may exceed 1; the
/// probability of any skip at all is [`at_least_one`].
pub fn expected_skips(probability: f64, chunks: u32, transfers: u32) -> f64 {
    probability * f64::from(chunks) * f64::from(transfers)
}

/// The probability that at least one of this number of readchunks skips.
pub fn at_least_one(probability: f64, chunks: f64) -> f64 {
    any_of(probability, chunks)
}

/// The paper's "time before expected skip", in seconds: the mean of the time to the first skip.
/// Half of all streams skip within 0.693 of it. Infinite if the probability is 0.
pub fn mean_time_to_skip(probability: f64, readchunk: Duration) -> f64 {
    readchunk.as_secs_f64() / probability
}

/// The probability that a round fails: all `datagrams` of the request are lost, or the answer is.
/// With two datagrams and one share of loss both ways it is 1 − (1 − p²)(1 − p).
pub fn round_failure(loss: f64, return_loss: f64, datagrams: u32) -> f64 {
    let request_lost = power(return_loss, datagrams);
    request_lost + (1.0 - request_lost) * share(loss)
}

/// Equation 2 with rounds that fail as they do: a block is late if it is lost, and each of `rounds`
/// rounds fails with this probability.
pub fn glitch_probability_by_rounds(loss: f64, failure: f64, rounds: u32, blocks: f64) -> f64 {
    any_of(share(loss) * power(failure, rounds), blocks)
}

/// Blocks that are expected to arrive at once, after one round trip, and later: the paper's
/// reckoning of 2500 blocks in the section on the start-up delay, where requests may be lost.
///
/// It is rounded to whole blocks there (2450, 48, 2). In less than 500 blocks no block is expected
/// in the third group, and in an hour many are expected beyond it: it bounds nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlocksByRound {
    /// Blocks that are not lost.
    pub at_once: f64,
    /// Blocks whose first round succeeds.
    pub after_one: f64,
    /// Blocks whose first request is lost.
    pub request_lost: f64,
    /// Blocks whose first answer is lost.
    pub answer_lost: f64,
}

impl BlocksByRound {
    /// The groups of this number of blocks, with the same share of loss in both directions.
    pub fn of(blocks: f64, loss: f64) -> Self {
        let (lost, arrives) = (share(loss), 1.0 - share(loss));
        Self {
            at_once: blocks * arrives,
            after_one: blocks * lost * arrives * arrives,
            request_lost: blocks * lost * lost,
            answer_lost: blocks * lost * arrives * lost,
        }
    }
}

/// The blocks in each second of a stream of this many bits per second, whose blocks carry `payload`
/// bytes. The paper's 547, 911 and 3641 are those of 1371 to 1373 bytes; with the 1464 bytes that
/// it says, they would be 512, 854 and 3415.
pub fn blocks_per_second(bits_per_second: f64, payload: usize) -> f64 {
    let bytes = u32::try_from(payload).unwrap_or(u32::MAX);
    bits_per_second / 8.0 / f64::from(bytes)
}

/// The paper's M: the whole round trips that fit into a buffer. It reckons no time to notice a loss
/// and none between the answer to a request and the next request.
pub fn rounds_within(buffer: Duration, rtt: Duration) -> u32 {
    let rounds = buffer.as_nanos() / rtt.as_nanos().max(1);
    u32::try_from(rounds).unwrap_or(u32::MAX)
}

/// The probability that an event of this probability happens in at least one of `times` trials,
/// exact for small probabilities, too.
fn any_of(probability: f64, times: f64) -> f64 {
    -libm::expm1(times * libm::log1p(-share(probability)))
}

fn none_of(probability: f64, times: f64) -> f64 {
    libm::exp(times * libm::log1p(-share(probability)))
}

fn power(base: f64, exponent: u32) -> f64 {
    libm::pow(share(base), f64::from(exponent))
}

fn share(value: f64) -> f64 {
    value.clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::cases::{BLOCK_BYTES, CHUNKS, Case, LOSS, READCHUNK, ROUND_TRIP, TRANSFERS};
    use super::*;

    const DAY: f64 = 86_400.0;

    /// Asserts that the figures of the three streams, rounded as `expected` is written, are those.
    #[track_caller]
    fn assert_figures(figure: impl Fn(f64) -> f64, expected: [&str; 3]) {
        for (case, expected) in Case::ALL.iter().zip(expected) {
            let value = figure(f64::from(case.blocks));
            let decimals = |digits: &str| digits.split_once('.').map_or(0, |(_, it)| it.len());
            let written = match expected.split_once('e') {
                Some((digits, _)) => format!("{value:.*e}", decimals(digits)),
                None => format!("{value:.*}", decimals(expected)),
            };
            assert_eq!(written, expected, "{case:?}: {value}");
        }
    }

    fn days(probability: f64) -> f64 {
        mean_time_to_skip(probability, READCHUNK) / DAY
    }

    #[test]
    fn equations_3_to_8_and_the_table_are_as_printed() {
        let printed = |blocks| printed_glitch_probability(LOSS, 5, blocks);
        assert_figures(printed, ["1.7504e-6", "2.9152e-6", "1.1651e-5"]);
        assert_figures(printed, ["0.00000175", "0.00000292", "0.00001165"]);
        // The paper goes on with the rounded probabilities.
        let rounded = |blocks| (printed(blocks) * 1e8_f64).round() / 1e8;
        let skips = |blocks| expected_skips(rounded(blocks), CHUNKS, TRANSFERS);
        assert_figures(skips, ["0.00525", "0.00876", "0.03495"]);
        // Equation 7 is printed as 0.00875: from the probability before it was rounded.
        assert_eq!(format!("{:.5}", expected_skips(printed(911.0), CHUNKS, TRANSFERS)), "0.00875");
        assert_figures(|blocks| days(rounded(blocks)), ["6.6", "3.96", "0.99"]);
        assert_figures(|blocks| days(printed(blocks)), ["6.612", "3.970", "0.993"]);
    }

    #[test]
    fn the_printed_exponent_is_that_of_one_round_fewer() {
        for case in Case::ALL {
            let blocks = f64::from(case.blocks);
            let (printed, right) =
                (printed_glitch_probability(LOSS, 5, blocks), glitch_probability(LOSS, 4, blocks));
            assert_eq!(printed.to_bits(), right.to_bits());
        }
        let right = |blocks| glitch_probability(LOSS, 5, blocks);
        assert_figures(right, ["3.50e-8", "5.83e-8", "2.33e-7"]);
        assert_figures(|blocks| days(right(blocks)), ["330.6", "198.5", "49.7"]);
    }

    #[test]
    fn skips_of_the_experiment_are_as_likely_as_they_are_few() {
        let chunks = f64::from(CHUNKS * TRANSFERS);
        let any = |blocks| at_least_one(printed_glitch_probability(LOSS, 5, blocks), chunks);
        assert_figures(any, ["0.00524", "0.00871", "0.0343"]);
        // With the probability as printed in equation 5.
        assert_eq!(format!("{:.4}", at_least_one(0.000_011_65, chunks)), "0.0343");
    }

    #[test]
    fn lost_requests_make_a_round_fail_twice_as_often() {
        let failure = round_failure(LOSS, LOSS, 1);
        assert!((failure - 0.0396).abs() < 1e-12, "{failure}");
        let twice = round_failure(LOSS, LOSS, 2);
        assert!((twice - (1.0 - (1.0 - 0.0004) * 0.98)).abs() < 1e-15, "{twice}");
        let by = |rounds| move |blocks| glitch_probability_by_rounds(LOSS, failure, rounds, blocks);
        assert_eq!(format!("{:.3e}", by(5)(1.0)), "1.948e-9");
        assert_figures(by(5), ["1.07e-6", "1.77e-6", "7.09e-6"]);
        assert_figures(|blocks| days(by(5)(blocks)), ["10.9", "6.5", "1.63"]);
    }

    #[test]
    fn half_a_second_is_seconds_between_skips_by_the_papers_own_equation() {
        let failure = round_failure(LOSS, LOSS, 1);
        let full = |rounds| {
            move |blocks| {
                let q = glitch_probability_by_rounds(LOSS, failure, rounds, blocks);
                mean_time_to_skip(q, READCHUNK)
            }
        };
        let own = |rounds| {
            move |blocks| mean_time_to_skip(glitch_probability(LOSS, rounds, blocks), READCHUNK)
        };
        let ms = Duration::from_millis;
        let rounds = [500, 600, 800, 1000].map(|buffer| rounds_within(ms(buffer), ROUND_TRIP));
        assert_eq!(rounds, [2, 3, 4, 5]);
        assert_figures(full(2), ["59", "36", "9.3"]);
        assert_figures(own(2), ["229", "138", "35"]);
        assert_figures(full(3), ["1472", "884", "222"]);
        assert_figures(|blocks| full(4)(blocks) / 3600.0, ["10.3", "6.2", "1.55"]);
    }

    #[test]
    fn of_2500_blocks_two_take_more_than_a_round() {
        let groups = BlocksByRound::of(2500.0, LOSS);
        let BlocksByRound { at_once, after_one, request_lost, answer_lost } = groups;
        assert!((at_once - 2450.0).abs() < 1e-9, "{groups:?}");
        assert!((after_one - 48.02).abs() < 1e-9, "{groups:?}");
        assert!((request_lost - 1.0).abs() < 1e-9, "{groups:?}");
        assert!((answer_lost - 0.98).abs() < 1e-9, "{groups:?}");
    }

    #[test]
    fn few_blocks_of_the_experiment_are_later_than_three_rounds() {
        let failure = round_failure(LOSS, LOSS, 1);
        let chunks = f64::from(CHUNKS * TRANSFERS);
        let later =
            |rounds: i32| move |blocks| chunks * blocks * LOSS * libm::pow(failure, rounds.into());
        assert_figures(later(1), ["1300", "2165", "8651"]);
        assert_figures(later(2), ["51", "86", "343"]);
        assert_figures(later(3), ["2.0", "3.4", "13.6"]);
        assert_figures(later(4), ["0.08", "0.13", "0.54"]);
    }

    #[test]
    fn the_blocks_of_a_second_carry_1372_bytes_and_not_1464() {
        let at = |bytes| {
            let blocks = |case: &Case| blocks_per_second(case.rate.as_mbps() * 1e6, bytes).round();
            Case::ALL.each_ref().map(blocks)
        };
        assert_eq!(at(BLOCK_BYTES), [512.0, 854.0, 3415.0]);
        assert_eq!(Case::ALL.each_ref().map(Case::payload), [1371, 1372, 1373]);
        let wire = f64::from(547) * 1464.0 * 8.0 / 1e6;
        assert!((wire - 6.41).abs() < 0.005, "the rate with 1464 bytes: {wire}");
    }

    proptest! {
        #[test]
        fn equations_1_and_2_are_complements_and_probabilities(
            loss in 0.0..=1.0_f64, rounds in 0..40_u32, blocks in 0.0..1e6_f64,
        ) {
            let (all, late) = (received(loss, rounds, blocks), glitch_probability(loss, rounds, blocks));
            prop_assert!((0.0..=1.0).contains(&all) && (0.0..=1.0).contains(&late));
            prop_assert!((all + late - 1.0).abs() < 1e-9, "{} {}", all, late);
            prop_assert!(late <= printed_glitch_probability(loss, rounds, blocks) + 1e-15);
            prop_assert!(late <= glitch_probability(loss, rounds, blocks + 1.0) + 1e-15);
        }

        #[test]
        fn a_round_fails_more_often_than_its_answer_is_lost(
            loss in 0.0..=1.0_f64, back in 0.0..=1.0_f64, datagrams in 1..9_u32,
        ) {
            let failure = round_failure(loss, back, datagrams);
            prop_assert!((0.0..=1.0).contains(&failure) && failure >= loss - 1e-15);
            prop_assert!(round_failure(loss, back, datagrams + 1) <= failure + 1e-15);
        }
    }
}
