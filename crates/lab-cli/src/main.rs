//! The `punctual-lab` program.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    punctual_lab_cli::run(std::env::args_os())
}
