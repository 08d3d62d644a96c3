//! `punctual lab`, `punctual model` and `punctual latency`: commands of the program `punctual-lab`,
//! which lies beside this one or in `PATH`.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use punctual_program::run as runs;

use crate::exit::Failure;

/// The arguments for `punctual-lab`, if the command line names one of its commands.
pub(crate) fn arguments(command_line: &[OsString]) -> Option<Vec<OsString>> {
    let words = command_line.get(1..)?;
    let is_option = |word: &OsString| text(word).starts_with('-');
    let is_value = |place: usize| place > 0 && LEVELS.contains(&text(&words[place - 1]));
    let mut place = (0..words.len()).find(|it| !is_option(&words[*it]) && !is_value(*it))?;
    if text(&words[place]) == "help" {
        place += 1;
    }
    let mut arguments = words.to_vec();
    match text(words.get(place)?) {
        "lab" => drop(arguments.remove(place)),
        "model" | "latency" => {}
        _ => return None,
    }
    Some(arguments)
}

/// Lets `punctual-lab` do the work in place of this process; comes back only where it cannot start.
#[cfg(unix)]
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    use std::os::unix::process::CommandExt;
    let error = Command::new(program()).args(arguments).exec();
    runs::program("punctual", || Err(failure(&error)))
}

/// Lets `punctual-lab` do the work, and gives its exit code.
#[cfg(not(unix))]
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    match Command::new(program()).args(arguments).status() {
        Ok(status) => {
            ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
        }
        Err(error) => runs::program("punctual", || Err(failure(&error))),
    }
}

/// Lets `punctual-lab` do a part of this program's work, and waits for it.
///
/// # Errors
///
/// It is missing, or its own failure.
pub(crate) fn call(arguments: &[OsString]) -> Result<(), Failure> {
    let ended =
        Command::new(program()).args(arguments).output().map_err(|error| failure(&error))?;
    if ended.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    let said = said.trim_end();
    let said = said.strip_prefix("punctual-lab: ").unwrap_or(said);
    Err(match ended.status.code() {
        Some(2) => Failure::usage(said),
        _ => Failure::runtime(said),
    })
}

/// The program beside this one, or its name, by which the system looks for it in `PATH`.
fn program() -> PathBuf {
    let name = format!("punctual-lab{}", std::env::consts::EXE_SUFFIX);
    let beside = std::env::current_exe().map(|own| own.with_file_name(&name));
    beside.ok().filter(|program| program.is_file()).unwrap_or_else(|| name.into())
}

fn failure(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => Failure::runtime(
            "the program `punctual-lab`, which does this, is neither beside this one nor in PATH; \
             `cargo install --path crates/lab-cli` installs it",
        ),
        _ => Failure::runtime(format!("punctual-lab: {error}")),
    }
}

/// A word that is no text is no command.
fn text(word: &OsString) -> &str {
    word.to_str().unwrap_or_default()
}

/// Options that take the word behind them.
const LEVELS: [&str; 2] = ["--loglevel", "--ll"];

#[cfg(test)]
mod tests {
    use super::*;

    fn handed_over(line: &str) -> Option<String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let arguments = arguments(&words)?;
        Some(arguments.iter().map(text).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn commands_of_the_lab_are_handed_over_with_all_options() {
        for (line, expected) in [
            ("punctual lab", Some("")),
            ("punctual lab list", Some("list")),
            ("punctual -q lab run lab -o model", Some("-q run lab -o model")),
            ("punctual --loglevel lab lab list", Some("--loglevel lab list")),
            ("punctual model --rtt 1s", Some("model --rtt 1s")),
            ("punctual latency -h", Some("latency -h")),
            ("punctual help lab run", Some("help run")),
            ("punctual help model", Some("help model")),
            ("punctual", None),
            ("punctual help", None),
            ("punctual help uri", None),
            ("punctual route lab model", None),
            ("punctual --version lab", Some("--version")),
        ] {
            assert_eq!(handed_over(line).as_deref(), expected, "{line}");
        }
    }
}
