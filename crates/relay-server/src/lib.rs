//! The relay on sockets: listeners, sources that are pulled, destinations, recordings, players and
//! the API; and the program `punctual-relay`.

#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program has clocks and locks"
)]

mod admitted_call;
mod api;
mod args;
mod attached;
mod caller_rules;
mod calls;
mod commands;
mod connections;
mod demo;
mod forward;
mod group_calls;
mod hooks;
mod hub;
mod live_stream;
mod operation;
mod outlet;
mod play;
mod playback;
mod pull;
mod quic;
mod recording;
mod report;
mod rights;
mod serve;
mod settings;
mod start;
mod wall;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::CommandFactory;
use punctual_program::exit::Failure;
use punctual_program::output::print;
use punctual_program::{log, run as runs};

use args::{Cli, Command};

/// The command line, for the manual pages.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the program with this command line, its own name first, and gives its exit code.
pub fn run(command_line: impl IntoIterator<Item = OsString>) -> ExitCode {
    let command_line: Vec<OsString> = command_line.into_iter().collect();
    match runs::parse(&command_line, |error| error) {
        Ok(cli) => runs::program("punctual-relay", || execute(cli)),
        Err(code) => code,
    }
}

fn execute(cli: Cli) -> Result<(), Failure> {
    log::start(&cli.log, "info")?;
    match cli.command {
        None => runs::on_runtime(start::run(cli.run)),
        Some(Command::Check { file, explain }) => {
            commands::check(file.as_deref(), explain.as_deref())
        }
        Some(Command::PrintConfig { file }) => commands::print_config(file.as_deref()),
        Some(Command::Token(args)) => commands::token(&args),
        Some(Command::Health { url, config }) => runs::on_runtime(commands::health(url, config)),
        Some(Command::Import { file }) => commands::import(&file),
        Some(Command::Completions { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "punctual-relay", &mut script);
            print(String::from_utf8_lossy(&script))
        }
    }
}
