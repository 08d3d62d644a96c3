//! The equations of the FASPstream paper as printed, and where they are wrong.

use std::fmt::Write;
use std::time::Duration;

use punctual_probe::model::glitch::paper::{
    BLOCK_BYTES, BlocksByRound, CHUNKS, Case, LOSS, READCHUNK, ROUND_TRIP, TRANSFERS, at_least_one,
    blocks_per_second, expected_skips, glitch_probability, glitch_probability_by_rounds,
    mean_time_to_skip, printed_glitch_probability, received, round_failure, rounds_within,
};
use punctual_probe::model::glitch::{Conditions, DisplayMeanTime, Setting};
use serde_json::{Value, json};

use super::text::small_share;

/// An equation, or a statement, of the paper.
pub(super) struct Equation {
    /// Its number, or the part of the paper.
    pub(super) number: &'static str,
    /// As it is printed.
    pub(super) formula: &'static str,
    /// Figures for 6, 10 and 40 Mb/s.
    pub(super) figures: Vec<(&'static str, [String; 3])>,
    /// Its errors, and where they matter.
    pub(super) note: &'static str,
}

/// The paper's name and setting.
pub(super) const TITLE: &str = "The model of \"Aspera FASPstream for near-live and live video \
    streaming\" (white paper, 2015)";
pub(super) const SUBJECT: &str = "Round trip 200 ms, loss P = 2 % each way, readchunks of 1 s \
    with N = 547, 911 and 3641 blocks at 6, 10 and 40 Mb/s. M counts round trips of waiting after \
    the first one-way delay.";

/// All equations in the paper's order, and its statements about them.
pub(super) fn equations() -> Vec<Equation> {
    let mut equations = probabilities();
    equations.extend(consequences());
    equations.extend(lateness());
    equations
}

/// Equations 1 to 8.
fn probabilities() -> Vec<Equation> {
    let printed = |blocks| printed_glitch_probability(LOSS, 5, blocks);
    let skips = |probability: f64| expected_skips(probability, CHUNKS, TRANSFERS);
    vec![
        Equation {
            number: "start-up delay",
            formula: "of 2500 blocks 2450 are on time, 48 after 1 RTT, 2 after 2 RTT",
            figures: vec![("of one second's blocks, after more than 1 RTT", each(later_than_one))],
            note: "The two count one lost request and one lost answer (1.00 and 0.98). \"Three \
                   fifths of a second\" for them is 2 RTT + OWD = 0.5 s; and it is an expectation \
                   for 2500 blocks, 0.7 to 4.6 s of video, not a worst case.",
        },
        Equation {
            number: "(1)",
            formula: "P(M,2) = (1 − P^(M+1))^2",
            figures: vec![(
                "all N blocks within 5 RTT",
                each(|n| format!("{:.9}", received(LOSS, 5, n))),
            )],
            note: "The probability of success, by the symbol that equation 2 gives to failure. \
                   Blocks count as independent, which losses in bursts are not.",
        },
        Equation {
            number: "(2)",
            formula: "P(M,N) = 1 − (1 − P^(M+1))^N",
            figures: vec![
                ("at M = 5", each(|n| small(glitch_probability(LOSS, 5, n)))),
                ("with lost requests, P r^5", each(|n| small(by_rounds(5, n)))),
            ],
            note: "It forgets that requests are lost, too, as the section on the start-up delay \
                   counts: a round fails with r = 1 − (1 − P)^2 = 0.0396, so that a block is late \
                   with P r^M: 30 times as many glitches.",
        },
        Equation {
            number: "(3) to (5)",
            formula: "P(5,N) = 1 − (1 − 0.02^5)^N = 0.00000175, 0.00000292, 0.00001165",
            figures: vec![
                ("as printed", each(|n| small(printed(n)))),
                ("equation 2 at M = 4", each(|n| small(glitch_probability(LOSS, 4, n)))),
            ],
            note: "The exponent is 5, where equation 2 has M + 1 = 6: this is equation 2 at M = 4, \
                   0.8 s of buffer in place of 1 s, and 50 times as many glitches. By chance it is \
                   on the safe side of the figures with lost requests.",
        },
        Equation {
            number: "(6) to (8)",
            formula: "P(5,N) × 30 × 100 = 0.00525, 0.00875, 0.03495",
            figures: vec![
                ("expected skips", each(|n| format!("{:.5}", skips(printed(n))))),
                ("probability of any", each(|n| format!("{:.5}", any_in_test(printed(n))))),
                ("share of readchunks that skip", each(|n| small_share(printed(n)))),
            ],
            note: "These are expected numbers of skips in 3000 readchunks. \"Skip less than 1 (4) \
                   percent of the time\" reads them as a share of the time.",
        },
    ]
}

/// The table of days, the advice, and the blocks.
fn consequences() -> Vec<Equation> {
    let times = |probability: fn(u32, f64) -> f64, buffer| {
        let rounds = rounds_within(buffer, ROUND_TRIP);
        each(move |n| time(mean_time_to_skip(probability(rounds, n), READCHUNK)))
    };
    let (half, second) = (Duration::from_millis(500), Duration::from_secs(1));
    let printed = |rounds, n| printed_glitch_probability(LOSS, rounds, n);
    let own = |rounds, n| glitch_probability(LOSS, rounds, n);
    vec![
        Equation {
            number: "table",
            formula: "time before expected skip: 6.6, 3.96 and 0.99 days",
            figures: vec![
                ("as printed", times(printed, second)),
                ("equation 2 at M = 5", times(own, second)),
                ("with lost requests", times(by_rounds, second)),
                ("NAK timers (1 s is 4 rounds)", ours(second, 1, 0)),
                ("and 3 copies of the last answer", ours(second, 4, 3)),
            ],
            note: "The mean time to the first skip. Half of all streams skip within 0.69 of it.",
        },
        Equation {
            number: "advice",
            formula: "the buffer time can be reduced under a second (on the order of 0.5 seconds)",
            figures: vec![
                ("equation 2 at M = 2", times(own, half)),
                ("with lost requests", times(by_rounds, half)),
                ("requests in two datagrams", ours(half, 2, 0)),
                ("four for the last, 3 copies", ours(half, 4, 3)),
            ],
            note: "Half a second has room for two rounds of 200 ms: by the paper's own model a \
                   skip each few minutes or less. With a last request in four datagrams and three \
                   copies of its answer the advice becomes true, for 0.12 % more sent.",
        },
        Equation {
            number: "blocks",
            formula: "547, 911 and 3641 blocks per second, of 1464 bytes",
            figures: vec![
                ("bytes in a block", per_case(|case| case.payload().to_string())),
                (
                    "blocks/s of 1464 bytes",
                    per_case(|case| {
                        let bits = case.rate.as_mbps() * 1e6;
                        format!("{:.0}", blocks_per_second(bits, BLOCK_BYTES))
                    }),
                ),
            ],
            note: "The numbers of blocks belong to about 1372 bytes of payload.",
        },
    ]
}

/// Equations 9 and 10.
fn lateness() -> Vec<Equation> {
    vec![
        Equation {
            number: "(9)",
            formula: "RexCount × RTT ≤ Lateness = FinalRexTime − SenderTime − OneWayDelay",
            figures: Vec::new(),
            note: "An inequality, since a loss is noticed only by the next block, and a request is \
                   repeated somewhat later than a round trip. RexCount may only count requests up \
                   to the one that was answered, and all times need one clock.",
        },
        Equation {
            number: "(10)",
            formula: "ChunksLastRexTime − ChunksFirstTime − BufferTime × ChNum = ChunkLate",
            figures: Vec::new(),
            note: "ChunksFirstTime has to be the first arrival of the stream, not of the readchunk. \
                   A readchunk in time then scores a readchunk's duration if they are numbered from \
                   0, and zero if from 1.",
        },
    ]
}

/// The equations as text.
pub(super) fn text() -> String {
    let mut text = format!("{TITLE}\n");
    text += &wrapped(SUBJECT, "");
    let _ = writeln!(text, "\n{:<45}{:>13}{:>13}{:>13}", "", "6 Mb/s", "10 Mb/s", "40 Mb/s");
    for Equation { number, formula, figures, note } in equations() {
        let _ = writeln!(text, "\n{number}  {formula}");
        for (name, [one, two, three]) in figures {
            let _ = writeln!(text, "    {name:<41}{one:>13}{two:>13}{three:>13}");
        }
        text += &wrapped(note, "    ");
    }
    text
}

/// The equations as JSON.
pub(super) fn document() -> Value {
    let figures = |figures: Vec<(&str, [String; 3])>| {
        let figure = |(name, values)| json!({ "name": name, "values": values });
        figures.into_iter().map(figure).collect::<Vec<_>>()
    };
    let equation = |equation: Equation| {
        json!({
            "equation": equation.number,
            "formula": equation.formula,
            "note": equation.note,
            "figures": figures(equation.figures),
        })
    };
    equations().into_iter().map(equation).collect()
}

/// The mean times with NAK timers: NAKs in two datagrams if the last one is in more than one.
fn ours(buffer: Duration, last_datagrams: u32, copies: u32) -> [String; 3] {
    per_case(|case| {
        let datagrams = last_datagrams.min(2);
        let setting =
            Setting { block: case.payload(), datagrams, last_datagrams, ..Setting::default() };
        let conditions =
            Conditions { rate: case.rate, loss: LOSS, rtt: ROUND_TRIP, buffer, copies };
        let outcome = conditions.outcome(&setting).expect("the paper's setting is in range");
        time(outcome.mean_time)
    })
}

fn by_rounds(rounds: u32, blocks: f64) -> f64 {
    glitch_probability_by_rounds(LOSS, round_failure(LOSS, LOSS, 1), rounds, blocks)
}

fn any_in_test(probability: f64) -> f64 {
    at_least_one(probability, f64::from(CHUNKS * TRANSFERS))
}

fn later_than_one(blocks: f64) -> String {
    let BlocksByRound { request_lost, answer_lost, .. } = BlocksByRound::of(blocks, LOSS);
    format!("{:.2}", request_lost + answer_lost)
}

/// A text for each of the three streams, from its number of blocks.
fn each(text: impl Fn(f64) -> String) -> [String; 3] {
    per_case(|case| text(f64::from(case.blocks)))
}

fn per_case(text: impl Fn(Case) -> String) -> [String; 3] {
    Case::ALL.map(text)
}

fn small(probability: f64) -> String {
    format!("{probability:.3e}")
}

fn time(seconds: f64) -> String {
    DisplayMeanTime(seconds).to_string()
}

/// A paragraph of lines of up to 88 characters behind this indentation.
fn wrapped(paragraph: &str, indentation: &str) -> String {
    let mut text = String::new();
    let mut line = String::new();
    for word in paragraph.split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > LINE {
            let _ = writeln!(text, "{indentation}{line}");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    let _ = writeln!(text, "{indentation}{line}");
    text
}

const LINE: usize = 88;
