//! Instructions that the protocol machine executes a packet, counted by callgrind: the same on a
//! busy machine as on a quiet one.

use std::process::Command;

use crate::Result;
use crate::hot_path::Counts;
use crate::report::{Row, Sample, Target};

pub(super) fn run() -> Vec<Row> {
    eprint!("instructions: send, receive, ACK, repair: ");
    let figures = match measure() {
        Ok(figures) => {
            eprintln!("{figures:.0?}");
            figures.map(Some)
        }
        Err(failure) => {
            eprintln!("failed: {failure}");
            [None; 4]
        }
    };
    let rows = NAMES.into_iter().zip(figures);
    rows.map(|(what, figure)| Row {
        what,
        unit: "instructions",
        target: Target::None,
        samples: vec![Sample::punctual(figure)],
    })
    .collect()
}

fn measure() -> Result<[f64; 4]> {
    let send = marginal("*Pair::send_path*", 0)?;
    let receive = marginal("*Pair::receive_path*", 0)?;
    let feedback = marginal("*Pair::feedback_path*", 0)?;
    let lossy = marginal("*Pair::*_path*", LOSE_EACH)?;
    let clean_a_message =
        (send.instructions + receive.instructions + feedback.instructions) / send.messages;
    Ok([
        send.instructions / send.messages,
        receive.instructions / receive.messages,
        feedback.instructions / feedback.acks,
        (lossy.instructions - clean_a_message * lossy.messages) / lossy.losses,
    ])
}

/// The difference between a longer run and a shorter one, in which set-up and warming up cancel.
#[derive(Clone, Copy, Debug)]
struct Marginal {
    instructions: f64,
    messages: f64,
    acks: f64,
    losses: f64,
}

#[expect(clippy::cast_precision_loss, reason = "counts of a run lie far below 2^53")]
fn marginal(functions: &str, lose_each: u64) -> Result<Marginal> {
    let (short, short_counts) = collect(functions, MESSAGES, lose_each)?;
    let (long, long_counts) = collect(functions, 2 * MESSAGES, lose_each)?;
    Ok(Marginal {
        instructions: (long - short) as f64,
        messages: (long_counts.messages - short_counts.messages) as f64,
        acks: (long_counts.acks - short_counts.acks) as f64,
        losses: (long_counts.losses - short_counts.losses) as f64,
    })
}

/// Instructions inside `functions` and what happened.
fn collect(functions: &str, messages: u64, lose_each: u64) -> Result<(u64, Counts)> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(format!("--toggle-collect={functions}"))
        .arg(std::env::current_exe()?)
        .args(["hot-path", &messages.to_string(), &lose_each.to_string()])
        .output()
        .map_err(|error| format!("valgrind, which counts, does not start: {error}"))?;
    let log = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("valgrind failed: {}", log.trim()).into());
    }
    let collected = log
        .lines()
        .find_map(|line| line.split_once("Collected :"))
        .and_then(|(_, count)| count.trim().parse().ok())
        .filter(|&count| count > 0)
        .ok_or_else(|| format!("valgrind counted nothing in {functions}"))?;
    Ok((collected, serde_json::from_slice(&output.stdout)?))
}

const NAMES: [&str; 4] = [
    "protocol machine, a packet: send",
    "protocol machine, a packet: receive and deliver",
    "protocol machine, an ACK: both ends, with ACKACK",
    "protocol machine, a lost packet: NAK and retransmission, both ends",
];
/// A second of stream.
const MESSAGES: u64 = 10_000;
const LOSE_EACH: u64 = 50;
