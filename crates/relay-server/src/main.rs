//! The `punctual-relay` program.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    punctual_relay_server::run(std::env::args_os())
}
