//! The `punctual` program as a library: what its `main` calls.

#![forbid(unsafe_code)]
// A write to a place that stalls would hold up a stream: `output` writes.
#![warn(clippy::print_stderr, clippy::print_stdout)]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program has clocks and locks"
)]

mod args;
mod companion;
mod completions;
mod demo;
mod emulate;
mod file;
mod generate;
mod last_rows;
mod live;
mod options;
mod plot;
mod probe;
mod receive;
mod route;
mod stats;
mod uris;
mod usage;
mod watching;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::CommandFactory;
use punctual_program::{exit, hangup, line, log, output, run as runs, stop, timepoint, written};

use args::{Cli, Command};
use exit::{Failure, FailureKind};
use output::{print, print_wrapped};

/// The command line, for the manual pages.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the program with this command line, its own name first, and gives its exit code.
pub fn run(command_line: impl IntoIterator<Item = OsString>) -> ExitCode {
    let command_line: Vec<OsString> = command_line.into_iter().collect();
    if let Some((companion, arguments)) = companion::of(&command_line) {
        return companion.run(&arguments);
    }
    let explained = |error| usage::explained(error, &command_line);
    let cli = match runs::parse::<Cli>(&command_line, explained) {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    #[cfg(target_os = "linux")]
    if let Command::RunInNamespace { arguments } = cli.command {
        return emulate::run_in_namespace(arguments);
    }
    runs::program("punctual", || execute(cli).map_err(with_options))
}

/// The same failure, with the options that help.
fn with_options(failure: Failure) -> Failure {
    match failure.kind() {
        FailureKind::Exists => failure.with_advice("--overwrite replaces it, --append adds to it"),
        FailureKind::NoClock => failure.with_advice(
            "give its bit rate by --pace 5Mbps, or send it as fast as possible by --pace none",
        ),
        _ => failure,
    }
}

fn execute(cli: Cli) -> Result<(), Failure> {
    let quiet = cli.log.quiet;
    // The demonstration has a story of its own to tell.
    let level = if matches!(cli.command, Command::Demo(_)) { "warn" } else { "info" };
    log::start(&cli.log, level)?;
    match cli.command {
        Command::Completions { shell } => print(completions::script(shell)),
        Command::Plot(args) => plot::run(&args),
        Command::Options(args) => options::run(&args),
        Command::Uri => print_wrapped(&(punctual_uri::topic() + "\n")),
        Command::Generate(args) => runs::on_threads(args.threads(), generate::run(args, quiet)),
        Command::Receive(args) => runs::on_threads(args.threads(), receive::run(args, quiet)),
        Command::Route(args) => runs::on_threads(args.threads(), route::run(args, quiet)),
        Command::File(args) => runs::on_runtime(file::run(args, quiet)),
        Command::Probe(args) => runs::on_runtime(probe::run(args, quiet)),
        Command::Emulate(args) => runs::on_runtime(emulate::run(args, quiet)),
        Command::Demo(args) => runs::on_runtime(demo::run(args, quiet)),
        // Both have been run.
        Command::Lab { .. } | Command::Relay { .. } => Ok(()),
        #[cfg(target_os = "linux")]
        Command::RunInNamespace { .. } => Ok(()),
    }
}
