//! Running the built program to its end.

use std::process::{Command, Stdio};

/// The end of a program.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

/// Runs the program to its end.
pub(crate) fn run(args: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_punctual-lab"));
    let command = command.args(args).env_remove("RUST_LOG").stdin(Stdio::null());
    let output = command.output().expect("the program starts");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Ended { code: output.status.code(), stdout: output.stdout, stderr }
}
