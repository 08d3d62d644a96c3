//! The cost of simulated worlds: time, memory, and instructions a packet.

use std::process::{Child, Command, Stdio};

use tokio::time::Instant;

use super::{Bench, STREAM_RATE};
use crate::Result;
use crate::report::{Row, Sample, Target};
use crate::world::Cost;

pub(super) fn run(bench: &Bench) -> Vec<Row> {
    let repeats = bench.effort.repeats.min(3);
    let taken = |what: &str, repeats, measure: fn() -> Result<f64>| -> Vec<Sample> {
        eprint!("{what}: ");
        let figure = || measure().inspect_err(|failure| eprint!("({failure}) ")).ok();
        let figures: Vec<Option<f64>> = (0..repeats).map(|_| figure()).collect();
        eprintln!("{figures:.2?}");
        figures.into_iter().map(Sample::punctual).collect()
    };
    vec![
        Row {
            what: "simulated: one stream of 10 Mb/s, seconds a second of CPU time",
            unit: "×",
            target: Target::AtLeast(1_000.0),
            samples: taken("simulation, speed", repeats, speed),
        },
        Row {
            what: "simulated: 72 runs of 120 s with losses, on two cores",
            unit: "s",
            target: Target::AtMost(15.0),
            samples: taken("simulation, the grid of 72 runs", repeats, grid),
        },
        Row {
            what: "simulated: memory of 200 streams of 5 Mb/s in one world",
            unit: "MB",
            target: Target::AtMost(4_295.0),
            samples: taken("simulation, memory", 1, memory),
        },
        Row {
            what: "simulated: instructions for twice the packets",
            unit: "×",
            target: Target::AtMost(2.02),
            samples: taken("simulation, twice the packets", 1, doubling),
        },
        Row {
            what: "simulated: a packet, all of the world",
            unit: "instructions",
            target: Target::None,
            samples: taken("simulation, instructions a packet", 1, instructions),
        },
    ]
}

fn speed() -> Result<f64> {
    Ok(600.0 / cost(&["world", "--seconds", "600"])?.cpu)
}

/// Two processes, each with every second run.
fn grid() -> Result<f64> {
    let begin = Instant::now();
    for half in [start(&["world-grid", "0"])?, start(&["world-grid", "1"])?] {
        finish(half)?;
    }
    Ok(begin.elapsed().as_secs_f64())
}

#[expect(clippy::cast_precision_loss, reason = "memory lies far below 2^53 bytes")]
fn memory() -> Result<f64> {
    let rate = STREAM_RATE.to_string();
    let cost = cost(&["world", "--streams", "200", "--seconds", "5", "--rate", &rate])?;
    Ok(cost.memory as f64 / 1e6)
}

#[expect(clippy::cast_precision_loss, reason = "counts of a run lie far below 2^53")]
fn doubling() -> Result<f64> {
    let [(none, _), (short, _), (long, _)] =
        [counted(0)?, counted(SECONDS)?, counted(2 * SECONDS)?];
    Ok((long - none) as f64 / (short - none) as f64)
}

#[expect(clippy::cast_precision_loss, reason = "counts of a run lie far below 2^53")]
fn instructions() -> Result<f64> {
    let [(short, few), (long, many)] = [counted(SECONDS)?, counted(2 * SECONDS)?];
    Ok((long - short) as f64 / (many.messages - few.messages) as f64)
}

fn cost(arguments: &[&str]) -> Result<Cost> {
    finish(start(arguments)?)
}

/// A process of this program, which tells what it cost.
fn start(arguments: &[&str]) -> Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    Ok(command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
}

fn finish(process: Child) -> Result<Cost> {
    let output = process.wait_with_output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Instructions of a process that simulates this number of seconds.
fn counted(seconds: u64) -> Result<(u64, Cost)> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe()?)
        .args(["world", "--seconds", &seconds.to_string()])
        .output()
        .map_err(|error| format!("valgrind, which counts, does not start: {error}"))?;
    let log = String::from_utf8_lossy(&output.stderr);
    let collected = log
        .lines()
        .find_map(|line| line.split_once("Collected :"))
        .and_then(|(_, count)| count.trim().parse().ok())
        .ok_or_else(|| format!("valgrind counted nothing: {}", log.trim()))?;
    Ok((collected, serde_json::from_slice(&output.stdout)?))
}

/// Virtual seconds of a run that is counted.
const SECONDS: u64 = 10;
