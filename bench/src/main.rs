//! Punctual and libsrt side by side, in the same scenarios, on the same two cores.
//!
//! `bench all` runs each scenario in turn, libsrt and Punctual alternating, prints tables, and with
//! `--write` puts them between the marks of a page. A scenario's name runs that one alone. Each run
//! is a pair of processes: a receiver that listens and a sender that calls it and sends paced
//! messages. Both come in two forms with the same arguments and output: this program's own `send`
//! and `receive` over the `punctual` crate, and `libsrt-bench`, a C program that is compiled when
//! needed and runs with libsrt or with Punctual's C library in its place. CPU time and memory are
//! read from outside, by the same code for all.

#![forbid(unsafe_code)]

mod calls;
mod flood;
mod hot_path;
mod libsrt;
mod machine;
mod messages;
mod page;
mod pair;
mod probe;
mod program;
mod quic_flood;
mod receive;
mod relay_ends;
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
use crate::relay_ends::RelayEnds;
use crate::report::Section;
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
    All {
        #[command(flatten)]
        selection: Selection,
        /// Puts the tables between the marks of this Markdown file.
        #[arg(long, value_name = "FILE")]
        write: Option<PathBuf>,
    },
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
    /// Publishers of a relay.
    #[command(hide = true)]
    Publish(RelayEnds),
    /// Viewers of a relay.
    #[command(hide = true)]
    View(RelayEnds),
    /// Callers of a relay that ask for absent streams.
    #[command(hide = true)]
    CallAbsent(RelayEnds),
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
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::All { selection, write } => measure(Scenario::ALL, &selection, write.as_deref()),
        Command::Run { scenarios, selection } => measure(&scenarios, &selection, None),
        Command::Send(traffic) => send::run(&traffic),
        Command::Receive(traffic) => receive::run(&traffic),
        Command::Flood(attack) => flood::run(&attack),
        Command::Calls(made) => calls::run(&made),
        Command::Publish(ends) => relay_ends::publish(&ends),
        Command::View(ends) => relay_ends::view(&ends),
        Command::CallAbsent(ends) => relay_ends::call_absent(&ends),
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

/// Measures, prints the tables, and puts them into `page`.
fn measure(scenarios: &[Scenario], selection: &Selection, page: Option<&Path>) -> Result<()> {
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
    let sections = runtime()?.block_on(async {
        let mut sections: Vec<Section> = Vec::new();
        for scenario in scenarios {
            let rows = scenario.run(&mut bench).await;
            let heading = scenario.heading();
            match sections.iter_mut().find(|section| section.heading == heading) {
                Some(section) => section.rows.extend(rows),
                None => sections.push(Section { heading, reference: scenario.reference(), rows }),
            }
        }
        sections
    });

    println!("{}", report::tables(&sections));
    match page {
        Some(page) => page::write(page, &report::text(&sections, &machine, selection.quick)),
        None => Ok(()),
    }
}

/// Load average above which a machine is not left alone.
const BUSY: f64 = 0.7;

/// One thread: what is not measured shall not disturb, and what is measured shows its cost a core.
fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}
