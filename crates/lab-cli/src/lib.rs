//! The `punctual-lab` program as a library: what its `main` calls.

#![forbid(unsafe_code)]
// The outputs of `punctual_program` write.
#![warn(clippy::print_stderr, clippy::print_stdout)]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program has clocks and locks"
)]

mod args;
mod completions;
mod lab;
mod latency;
mod model;
mod png;
mod usage;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::CommandFactory;
use punctual_program::exit::Failure;
use punctual_program::output::print;
use punctual_program::{log, run as runs};

use args::{LabCli, LabCommand};

/// The command line, for the manual pages.
pub fn command() -> clap::Command {
    LabCli::command()
}

/// Runs the program with this command line, its own name first, and gives its exit code.
pub fn run(command_line: impl IntoIterator<Item = OsString>) -> ExitCode {
    let command_line: Vec<OsString> = command_line.into_iter().collect();
    match runs::parse(&command_line, |error| usage::explained(error, &command_line)) {
        Ok(cli) => runs::program("punctual-lab", || execute(cli)),
        Err(code) => code,
    }
}

fn execute(cli: LabCli) -> Result<(), Failure> {
    let quiet = cli.log.quiet;
    log::start(&cli.log, "info")?;
    match cli.command {
        LabCommand::List => print(lab::list()),
        LabCommand::Show(args) => lab::show(&args),
        LabCommand::Run(args) => runs::on_runtime(lab::run(*args, quiet)),
        LabCommand::Merge(args) => lab::put_together(&args),
        LabCommand::Report(args) => lab::report(&args),
        LabCommand::Model(args) => model::run(&args),
        LabCommand::Latency(args) => latency::run(&args),
        LabCommand::Png(args) => png::run(&args),
        LabCommand::Completions { shell } => print(completions::script(shell)),
    }
}
