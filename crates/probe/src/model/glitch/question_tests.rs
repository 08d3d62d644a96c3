use proptest::prelude::*;

use super::super::Effort;
use super::*;

const MS: fn(u64) -> Duration = Duration::from_millis;
const DAY: f64 = 86_400.0;

/// The paper's network, and its block.
fn of_paper() -> Question {
    Question { loss: Some(0.02), rtt: Some(MS(200)), ..Question::default() }
}

fn setting() -> Setting {
    Setting { block: 1_373, ..Setting::default() }
}

fn ask(question: Question) -> Answers {
    question.answers(&setting()).expect("there are answers")
}

#[test]
fn all_four_figures_give_a_row_for_each_number_of_copies() {
    let question =
        Question { rate: Some(Bitrate::from_mbps(40)), buffer: Some(MS(500)), ..of_paper() };
    let Answers { solved, varied, answers } = ask(question);
    assert_eq!((solved, varied.len(), answers.len()), (None, 0, 5));
    let mean_times: Vec<f64> = answers.iter().map(|it| it.outcome.mean_time).collect();
    assert!((mean_times[0] - 34.2).abs() < 0.1, "{mean_times:?}");
    assert!((mean_times[3] / DAY - 24.4).abs() < 0.1, "{mean_times:?}");
    let once = question.answers(&Setting { block: 1_373, ..Setting::of_paper() });
    let once = once.expect("answers").answers[0].outcome;
    assert!((once.mean_time - 9.3).abs() < 0.1, "{once:?}");
}

#[test]
fn a_mean_time_has_the_least_buffer_with_and_without_copies() {
    let question =
        Question { rate: Some(Bitrate::from_mbps(40)), mean_time: Some(DAY), ..of_paper() };
    let Answers { solved, answers, .. } = ask(question);
    assert_eq!(solved, Some(SolvableFigure::Buffer));
    let buffers: Vec<Duration> = answers.iter().map(|it| it.conditions.buffer).collect();
    // Five rounds without copies, two with three of them.
    assert_eq!(answers[0].outcome.rounds, 5);
    assert_eq!(answers[3].outcome.rounds, 2);
    assert!(buffers[3] > MS(420) && buffers[3] < MS(430), "{buffers:?}");
    for answer in answers {
        let shorter = Conditions { buffer: answer.conditions.buffer - MS(1), ..answer.conditions };
        let shorter = shorter.outcome(&setting()).expect("an outcome");
        assert!(answer.is_enough && shorter.mean_time < DAY, "{answer:?} {shorter:?}");
    }
}

#[test]
fn each_figure_left_open_is_found() {
    let all = Question {
        rate: Some(Bitrate::from_mbps(10)),
        buffer: Some(MS(900)),
        mean_time: Some(DAY),
        copies: Some(1),
        ..of_paper()
    };
    for (question, solved) in [
        (Question { loss: None, ..all }, SolvableFigure::Loss),
        (Question { rtt: None, ..all }, SolvableFigure::RoundTrip),
        (Question { rate: None, ..all }, SolvableFigure::Rate),
        (Question { buffer: None, ..all }, SolvableFigure::Buffer),
    ] {
        let answers = ask(question);
        assert_eq!((answers.solved, answers.answers.len()), (Some(solved), 1));
        let answer = answers.answers[0];
        assert!(answer.outcome.mean_time >= DAY, "{answer:?}");
        if !answer.is_at_bound {
            let Conditions { rate, loss, rtt, buffer, copies } = answer.conditions;
            let worse = match solved {
                SolvableFigure::Loss => Conditions { loss: loss * 1.01, ..answer.conditions },
                SolvableFigure::RoundTrip => {
                    Conditions { rtt: rtt.mul_f64(1.01), ..answer.conditions }
                }
                SolvableFigure::Rate => {
                    let rate = Bitrate::from_bits_per_sec(rate.as_bits_per_sec() / 99 * 100);
                    Conditions { rate, ..answer.conditions }
                }
                SolvableFigure::Buffer => {
                    Conditions { buffer: buffer.mul_f64(0.99), ..answer.conditions }
                }
            };
            let worse = worse.outcome(&setting()).expect("an outcome");
            assert!(worse.mean_time < DAY && copies == 1, "{answer:?} {worse:?}");
        }
    }
}

#[test]
fn three_figures_are_enough_and_the_others_are_varied() {
    let with_time = ask(Question { mean_time: Some(DAY), ..of_paper() });
    assert_eq!(
        (with_time.solved, &*with_time.varied),
        (Some(SolvableFigure::Buffer), &[SolvableFigure::Rate][..])
    );
    let without = ask(Question { rate: Some(Bitrate::from_mbps(40)), ..of_paper() });
    assert_eq!((without.solved, &*without.varied), (None, &[SolvableFigure::Buffer][..]));
    let rounds: Vec<u32> = without
        .answers
        .iter()
        .filter(|it| it.conditions.copies == 0)
        .map(|it| it.outcome.rounds)
        .collect();
    assert_eq!(rounds, [1, 2, 3, 4, 5, 6]);
    let overhead = Question {
        rate: Some(Bitrate::from_mbps(10)),
        mean_time: Some(DAY),
        overhead: Some(0.05),
        ..Question::default()
    };
    let answers = ask(overhead);
    assert_eq!(
        (answers.solved, &*answers.varied),
        (Some(SolvableFigure::Buffer), &[SolvableFigure::Loss, SolvableFigure::RoundTrip][..])
    );
    assert!(answers.answers.iter().all(|it| it.outcome.overhead <= 0.05 && it.is_enough));
}

#[test]
fn an_overhead_bounds_the_loss_and_the_copies() {
    let question = Question {
        rate: Some(Bitrate::from_mbps(10)),
        rtt: Some(MS(200)),
        buffer: Some(MS(500)),
        overhead: Some(0.05),
        copies: Some(0),
        ..Question::default()
    };
    let answer = ask(question).answers[0];
    // p / (1 − p) = 0.05
    assert!((answer.conditions.loss - 0.0476).abs() < 1e-4, "{answer:?}");
    let copies = Question {
        loss: Some(0.02),
        overhead: Some(0.021),
        mean_time: Some(DAY),
        copies: None,
        buffer: None,
        ..question
    };
    assert!(ask(copies).answers.iter().all(|it| it.outcome.overhead <= 0.021));
}

#[test]
fn questions_without_an_answer_say_the_bound() {
    let said = |question: Question| question.answers(&setting()).unwrap_err().to_string();
    let few = said(of_paper());
    assert!(few.starts_with("2 of the six figures are known; name at least three"), "{few}");
    let paper = Question { rate: Some(Bitrate::from_mbps(40)), ..of_paper() };
    let little = said(Question { overhead: Some(0.01), ..paper });
    assert!(little.contains("1.000 % is too little") && little.contains("2.041 %"), "{little}");
    let short = Question { buffer: Some(MS(150)), loss: None, mean_time: Some(1e10), ..paper };
    let short = said(short);
    assert!(short.contains("even with a loss of 0.0000001 %"), "{short}");
    assert!(short.contains("with no retransmission in time"), "{short}");
    let far = Question { buffer: Some(MS(50)), ..paper };
    assert!(said(far).contains("shorter than a one-way delay of 100 ms"));
    let quick = said(Question { mean_time: Some(0.1), ..paper });
    assert!(quick.contains("must be 1 s to 100000 years"), "{quick}");
    let rate = Question {
        rate: Some(Bitrate::from_bits_per_sec(100)),
        buffer: Some(MS(500)),
        ..of_paper()
    };
    assert!(said(rate).contains("10 kb/s to 10 Gb/s"));
}

#[test]
fn conditions_are_the_playout_of_their_figures() {
    let conditions = Conditions {
        rate: Bitrate::from_mbps(10),
        loss: 0.03,
        rtt: MS(100),
        buffer: MS(350),
        copies: 2,
    };
    let setting = Setting { return_loss: Some(0.01), burst: 3.0, ..Setting::default() };
    let path =
        super::super::super::PathFigures::new(MS(100), Duration::ZERO, conditions.rate, 1_456);
    let path = path.and_then(|path| path.with_loss(0.03, 0.01, 3.0)).expect("a path");
    let recovery = super::super::RecoveryEffort::deadline(2);
    let recovery = recovery.with_usual(Effort { datagrams: 2, copies: 0 });
    let playout = super::super::Playout::new(path, MS(350), recovery).expect("a playout");
    assert_eq!(conditions.playout(&setting), Ok(playout));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn solved_figures_give_what_was_wanted(
        mbps in 1..100_u64, loss in 1e-4..0.2_f64, rtt in 5..400_u64, log_time in 0.1..9.0_f64,
        copies in 0..4_u32,
    ) {
        let wanted = libm::exp10(log_time);
        let question = Question {
            rate: Some(Bitrate::from_mbps(mbps)),
            loss: Some(loss),
            rtt: Some(MS(rtt)),
            mean_time: Some(wanted),
            copies: Some(copies),
            ..Question::default()
        };
        let answer = ask(question).answers[0];
        prop_assert!(answer.is_enough && answer.outcome.mean_time >= wanted);
        // The buffer that was found has no worse loss than the one that it was found for.
        let back = Question { loss: None, buffer: Some(answer.conditions.buffer), ..question };
        prop_assert!(ask(back).answers[0].conditions.loss >= loss * 0.99);
    }
}
