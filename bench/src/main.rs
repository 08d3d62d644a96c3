//! Punctual and libsrt side by side, in the same scenarios, on the same two cores.
//!
//! `bench all` runs each scenario in turn, libsrt and Punctual alternating, prints a table and
//! writes it with `--write`. A scenario's name runs that one alone. Each run is a pair of
//! processes: a receiver that listens and a sender that calls it and sends paced messages. Both
//! come in two forms with the same arguments and output: this program's own `send` and `receive`
//! over the `punctual` crate, and `libsrt-bench`, a C program that is compiled when needed and runs
//! with libsrt or with Punctual's C library in its place. CPU time and memory are read from
//! outside, by the same code for all.

#![forbid(unsafe_code)]

mod calls;
mod flood;
mod hot_path;
mod libsrt;
mod machine;
mod messages;
mod pair;
mod probe;
mod program;
mod quic_flood;
mod receive;
mod report;
mod scenario;
mod search;
mod send;
mod traffic;
mod world;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::calls::Calls;
use crate::flood::Flood;
use crate::pair::Pairs;
use crate::report::Row;
use crate::scenario::{Bench, Effort, Scenario};
use crate::traffic::Traffic;
use crate::world::Scene;

/// Why something could not be measured, in words for the person who runs the bench.
type Failure = Box<dyn Error + Send + Sync>;
type Result<T> = std::result::Result<T, Failure>;

#[derive(Debug, Parser)]
#[command(about = "Measures Punctual and libsrt side by side")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs all scenarios.
    All(Selection),
    /// Runs the named scenarios.
    Run {
        #[arg(required = true, value_enum)]
        scenarios: Vec<Scenario>,
        #[command(flatten)]
        selection: Selection,
    },
    /// Our sending process.
    #[command(hide = true)]
    Send(Traffic),
    /// Our receiving process.
    #[command(hide = true)]
    Receive(Traffic),
    /// Complete handshakes in masses.
    #[command(hide = true)]
    Flood(Flood),
    /// Calls that stay connected.
    #[command(hide = true)]
    Calls(Calls),
    /// The cost of the calls for one message.
    #[command(hide = true)]
    Messages(Traffic),
    /// Two endpoints in virtual time, for callgrind.
    #[command(hide = true)]
    HotPath { messages: u64, lose_each: u64 },
    /// A simulated world.
    #[command(hide = true)]
    World(Scene),
    /// Every second cell of a grid of simulated worlds.
    #[command(hide = true)]
    WorldGrid { first: usize },
}

#[derive(Args, Debug)]
struct Selection {
    /// Under two minutes: one repeat of shorter runs. The figures are rough.
    #[arg(long)]
    quick: bool,
    /// Writes the table and how it was measured to this Markdown file.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::All(selection) => measure(Scenario::ALL, &selection),
        Command::Run { scenarios, selection } => measure(&scenarios, &selection),
        Command::Send(traffic) => send::run(&traffic),
        Command::Receive(traffic) => receive::run(&traffic),
        Command::Flood(attack) => flood::run(&attack),
        Command::Calls(made) => calls::run(&made),
        Command::Messages(traffic) => messages::run(&traffic),
        Command::HotPath { messages, lose_each } => hot_path::run(messages, lose_each),
        Command::World(scene) => world::run(scene),
        Command::WorldGrid { first } => world::grid(first),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn measure(scenarios: &[Scenario], selection: &Selection) -> Result<()> {
    let cores = machine::keep_to_two_cores()?;
    let libsrt = libsrt::build();
    if let Err(reason) = &libsrt {
        eprintln!("bench: {reason}; only Punctual is measured");
    }
    let machine = machine::describe(&cores, libsrt.as_ref().ok());
    eprintln!("{machine}");
    if let Some(load) = machine::load().filter(|&load| load > BUSY) {
        eprintln!("bench: the machine is busy (load average {load}): the figures will be rough");
    }

    let c_library = libsrt::build_c_library();
    if let Err(reason) = &c_library {
        eprintln!("bench: {reason}; the C library is not measured");
    }
    let pairs = Pairs::new(libsrt.ok().map(|libsrt| libsrt.program), c_library.ok())?;
    let effort = if selection.quick { Effort::QUICK } else { Effort::FULL };
    let mut bench = Bench { pairs, effort };
    let rows = runtime()?.block_on(async {
        let mut rows: Vec<Row> = Vec::new();
        for scenario in scenarios {
            rows.extend(scenario.run(&mut bench).await);
        }
        rows
    });

    println!("{}", report::tables(&rows));
    match &selection.write {
        Some(path) => write(path, &report::document(&rows, &machine, selection.quick)),
        None => Ok(()),
    }
}

/// Load average above which a machine is not left alone.
const BUSY: f64 = 0.7;

fn write(path: &Path, document: &str) -> Result<()> {
    std::fs::write(path, document)
        .map_err(|error| format!("{} cannot be written: {error}", path.display()).into())
}

/// One thread: what is not measured shall not disturb, and what is measured shows its cost a core.
fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}
