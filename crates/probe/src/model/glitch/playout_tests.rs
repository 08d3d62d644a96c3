use proptest::prelude::*;
use punctual_units::Bitrate;

use super::super::super::TimedRounds;
use super::super::paper::{self, CHUNKS, Case, LOSS, ROUND_TRIP, TRANSFERS};
use super::super::recovery::Effort;
use super::*;

const MS: fn(u64) -> Duration = Duration::from_millis;
const DAY: f64 = 86_400.0;

/// A path with the round trip of the paper, and exactly its number of blocks.
fn path_of(case: Case, loss: f64) -> PathFigures {
    let bits = u64::from(case.blocks) * 8 * 1_000;
    let path =
        PathFigures::new(ROUND_TRIP, Duration::ZERO, Bitrate::from_bits_per_sec(bits), 1_000);
    path.and_then(|path| path.with_loss(loss, loss, 1.0)).expect("a path")
}

fn playout(case: Case, buffer: u64, recovery: RecoveryEffort) -> Playout {
    Playout::new(path_of(case, LOSS), MS(buffer), recovery).expect("a playout")
}

/// With the rounds of the paper, of which each fails if a request or its answer is lost.
fn of_paper(case: Case, buffer: u64) -> Outcome {
    playout(case, buffer, RecoveryEffort::once()).with_timing(RoundTiming::EXACT).outcome()
}

fn path(mbps: u64, rtt: u64, loss: f64, burst: f64) -> PathFigures {
    let path = PathFigures::new(MS(rtt), Duration::ZERO, Bitrate::from_mbps(mbps), 1_316);
    path.and_then(|path| path.with_loss(loss, loss, burst)).expect("a path")
}

fn close(one: f64, other: f64, tolerance: f64) -> bool {
    (one / other - 1.0).abs() < tolerance
}

#[test]
fn with_the_papers_rounds_it_is_equation_2_with_lost_requests() {
    for (buffer, mean_times) in [
        (500, [59.0, 36.0, 9.3]),
        (600, [1_473.0, 884.0, 222.0]),
        (800, [10.3 * 3_600.0, 6.2 * 3_600.0, 1.55 * 3_600.0]),
        (1_000, [10.9 * DAY, 6.5 * DAY, 1.63 * DAY]),
    ] {
        for (case, expected) in Case::ALL.into_iter().zip(mean_times) {
            let outcome = of_paper(case, buffer);
            assert!(close(outcome.mean_time, expected, 0.015), "{buffer}, {case:?}: {outcome:?}");
            let rounds = paper::rounds_within(MS(buffer), ROUND_TRIP);
            assert_eq!(outcome.rounds, rounds);
            let failure = paper::round_failure(LOSS, LOSS, 1);
            let blocks = f64::from(case.blocks);
            let q = paper::glitch_probability_by_rounds(LOSS, failure, rounds, blocks);
            assert!(close(outcome.glitch_probability, q, 1e-6), "{outcome:?}, {q}");
        }
    }
}

#[test]
fn bands_of_lateness_have_the_numbers_of_blocks_of_the_paper() {
    let expected =
        [[1_300.0, 51.0, 2.0, 0.08], [2_165.0, 86.0, 3.4, 0.13], [8_651.0, 343.0, 13.6, 0.54]];
    for (case, expected) in Case::ALL.into_iter().zip(expected) {
        let playout = playout(case, 1_000, RecoveryEffort::once()).with_timing(RoundTiming::EXACT);
        let blocks = f64::from(case.blocks * CHUNKS * TRANSFERS);
        for (rounds, expected) in (1..).zip(expected) {
            let later = blocks * playout.later_than(rounds);
            assert!(close(later, expected, 0.04), "{case:?}, {rounds}: {later}");
        }
        assert!(close(playout.later_than(0), LOSS, 1e-12));
    }
}

/// The claim: a glitch each half minute without a playout point, and one in some three weeks with
/// it, for 0.12 % more sent.
#[test]
fn copies_of_the_second_answer_make_half_a_minute_three_weeks() {
    let fast = Case::ALL[2];
    let plain = RecoveryEffort::deadline(0).with_last(Effort { datagrams: 2, copies: 0 });
    let without = playout(fast, 500, plain).outcome();
    let with = playout(fast, 500, RecoveryEffort::deadline(3)).outcome();
    assert_eq!((without.rounds, with.rounds), (2, 2));
    let r: f64 = 1.0 - (1.0 - 0.0004) * 0.98;
    assert!(close(without.late, 0.02 * r * r, 1e-9), "{without:?}");
    assert!(close(with.late, 0.02 * r * (1.6e-7 + (1.0 - 1.6e-7) * 1.6e-7), 1e-9), "{with:?}");
    assert!(close(without.mean_time, 33.53, 1e-3), "{without:?}");
    assert!(close(with.mean_time / DAY, 24.36, 1e-3), "{with:?}");
    assert!(close(with.copies, 3.0 * 0.02 * r, 1e-6), "{with:?}");
    assert!(close(with.overhead - without.overhead, 0.001_216, 1e-3), "{with:?} {without:?}");
    // Without copies everything is retransmitted until it comes, whatever is lost on the way back.
    assert!(close(without.overhead, 0.02 / 0.98, 1e-9), "{without:?}");
}

#[test]
fn the_model_agrees_with_the_rounds_of_the_deadline_aware_algorithm() {
    for (loss, buffer, copies) in [(0.05, 450, 0), (0.1, 700, 2), (0.02, 1_100, 3)] {
        let path = path(10, 200, loss, 1.0);
        let timed = path.timed_rounds();
        // There, a loss is noticed when the next packet comes, but has as much more time.
        let late = MS(buffer) + path.packet;
        let ours = Playout::new(path, late, RecoveryEffort::deadline(copies)).expect("a playout");
        let (ours, theirs) = (ours.outcome(), timed.outcome(MS(buffer), copies));
        assert_eq!(ours.rounds, TimedRounds::within(&timed, MS(buffer)));
        assert!(close(ours.late, loss * theirs.missing, 1e-9), "{ours:?} {theirs:?}");
    }
}

#[test]
fn players_that_get_whole_chunks_have_fewer_glitches() {
    let by_packet = playout(Case::ALL[0], 500, RecoveryEffort::once());
    let by = |ms| {
        let chunks = by_packet.clone().with_readchunk(MS(ms), WantedTime::ByChunk);
        chunks.expect("a readchunk").outcome()
    };
    let all = by_packet.outcome();
    // After a fifth of the second a further round fits, after two fifths another one.
    let later: Vec<f64> = (0..5).map(|more| by_packet.later_than(all.rounds + more)).collect();
    let needed = |rounds: u32| by_packet.needed(rounds).as_secs_f64() - 0.5;
    let first = needed(3) * later[0] + (needed(4) - needed(3)) * later[1];
    assert!(close(by(1_000).late, first, 0.005), "{} {first}", by(1_000).late);
    // Tiny readchunks make no difference.
    assert!(close(by(2).late, all.late, 1e-9));
    assert!(close(by(100).late, all.late, 1e-9), "no further round fits");
    let counted = |ms| by_packet.clone().with_readchunk(MS(ms), WantedTime::ByPacket).expect("one");
    let (long, short) = (counted(1_000).outcome(), counted(2).outcome());
    assert!(close(long.mean_time, short.mean_time, 0.02), "{long:?} {short:?}");
}

#[test]
fn bursts_cost_copies_their_worth_and_make_one_glitch_of_many_packets() {
    let at = |burst, copies| {
        let playout =
            Playout::new(path(10, 60, 0.02, burst), MS(170), RecoveryEffort::deadline(copies));
        playout.expect("a playout").outcome()
    };
    let (single, burst) = (at(1.0, 0), at(10.0, 0));
    assert_eq!((single.rounds, burst.rounds), (2, 2));
    let packets = 10e6 / 8.0 / 1_316.0;
    let packets_in_glitch = burst.late * packets / burst.glitch_probability;
    assert!((2.0..10.0).contains(&packets_in_glitch), "{packets_in_glitch}");
    assert!(close(single.late * packets, single.glitch_probability, 0.01));
    // Without losses on the way back: three copies within 40 ms, where a burst of 10 packets lasts
    // 10 ms and one of 100 packets 105 ms.
    let late = |burst, copies| {
        let path = path(10, 60, 0.02, 1.0).with_loss(0.02, 0.0, burst).expect("a loss");
        let playout = Playout::new(path, MS(170), RecoveryEffort::deadline(copies));
        playout.expect("a playout").outcome().late
    };
    let gain = |burst| late(burst, 0) / late(burst, 3);
    let gains = [1.0, 10.0, 100.0].map(gain);
    assert!(gains[0] > 100_000.0, "{gains:?}");
    assert!(gains[1] < gains[0] / 100.0 && gains[1] > 3.0, "{gains:?}");
    assert!(gains[2] < 2.0, "{gains:?}");
}

#[test]
fn a_path_that_loses_nothing_has_no_glitches() {
    let free = Playout::new(path(10, 200, 0.0, 1.0), MS(300), RecoveryEffort::deadline(3));
    let outcome = free.expect("a playout").outcome();
    assert!(outcome.mean_time.is_infinite() && outcome.overhead == 0.0, "{outcome:?}");
    assert!((outcome.glitch_free(MS(1_000_000)) - 1.0).abs() < 1e-15);
}

#[test]
fn senseless_playouts_are_refused_with_the_right_values() {
    let path = path(10, 200, 0.02, 1.0);
    let error = Playout::new(path, MS(50), RecoveryEffort::once()).unwrap_err().to_string();
    assert!(error.contains("50 ms is shorter than a one-way delay of 100 ms"), "{error}");
    assert!(error.contains("201.0528 ms or more would be right"), "{error}");
    assert!(Playout::new(path, MS(3_600_001), RecoveryEffort::once()).is_err());
    let playout = Playout::new(path, MS(500), RecoveryEffort::once()).expect("a playout");
    let error = playout.with_readchunk(MS(1), WantedTime::ByPacket).unwrap_err().to_string();
    assert!(error.contains("at least 1.0528 ms"), "{error}");
}

/// A setting with probabilities that are neither 0 nor 1.
fn settings() -> impl Strategy<Value = (u64, u64, f64, f64, u64, u32)> {
    (
        1..100_u64,
        5..400_u64,
        1e-4..0.4_f64,
        prop_oneof![Just(1.0), 1.0..60.0_f64],
        60..600_u64,
        0..4_u32,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn probabilities_lie_between_0_and_1_and_the_overhead_above_the_bound(
        (mbps, rtt, loss, burst, buffer, copies) in settings(), whole in any::<bool>(),
    ) {
        let path = path(mbps, rtt, loss, burst);
        let buffer = MS(rtt * buffer / 100);
        let wanted = if whole { WantedTime::ByChunk } else { WantedTime::ByPacket };
        let playout = Playout::new(path, buffer, RecoveryEffort::deadline(copies)).expect("a playout");
        let outcome = playout.with_readchunk(MS(500), wanted).expect("a readchunk").outcome();
        for share in [outcome.late, outcome.glitch_probability, outcome.glitch_free(buffer)] {
            prop_assert!((0.0..=1.0).contains(&share), "{outcome:?}");
        }
        prop_assert!(outcome.mean_time >= 0.5 - 1e-9);
        prop_assert!(outcome.late <= loss + 1e-12);
        prop_assert!(outcome.overhead >= loss - 1e-9, "{outcome:?}");
        if burst <= 1.0 {
            prop_assert!(outcome.overhead >= loss / (1.0 - loss) - 1e-9, "{outcome:?}");
        }
        prop_assert!(outcome.overhead >= outcome.copies);
    }

    #[test]
    fn more_buffer_and_less_loss_never_have_more_glitches(
        (mbps, rtt, loss, burst, buffer, copies) in settings(), more in 1..200_u64,
        less in 0.5..1.0_f64, longer in 1..200_u64,
    ) {
        let at = |rtt, loss, buffer| {
            let path = path(mbps, rtt, loss, burst);
            let playout = Playout::new(path, MS(buffer), RecoveryEffort::deadline(copies));
            playout.expect("a playout").outcome().glitch_probability
        };
        let buffer = (rtt + longer) * buffer / 100;
        let here = at(rtt, loss, buffer);
        let tolerance = 1.0 + 1e-9;
        // Copies in a last round that hardly fits may be lost with it in one burst, where more time
        // in the round before helped them; and parts of a burst are reckoned as independent.
        if burst <= 1.0 {
            prop_assert!(at(rtt, loss, buffer + more) <= here * tolerance);
            prop_assert!(at(rtt, loss * less, buffer) <= here * tolerance);
        } else if copies == 0 {
            prop_assert!(at(rtt, loss, buffer + more) <= here * 2.0);
        }
    }

    #[test]
    fn with_as_many_rounds_a_higher_rate_has_more_glitches(
        mbps in 1..100_u64, more in 1..100_u64, rtt in 5..400_u64, loss in 1e-4..0.4_f64,
        buffer in 60..600_u64,
    ) {
        let at = |mbps| {
            let path = path(mbps, rtt, loss, 1.0);
            let playout = Playout::new(path, MS(rtt * buffer / 100), RecoveryEffort::once());
            playout.expect("a playout").with_timing(RoundTiming::EXACT).outcome()
        };
        let (slow, fast) = (at(mbps), at(mbps + more));
        prop_assert_eq!(slow.rounds, fast.rounds);
        prop_assert!(fast.mean_time <= slow.mean_time * (1.0 + 1e-9));
    }
}
