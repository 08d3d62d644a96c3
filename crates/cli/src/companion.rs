//! Commands that other programs do: `punctual lab`, `punctual model` and `punctual latency` by
//! `punctual-lab`, `punctual relay` by `punctual-relay`. Each program lies beside this one or in
//! `PATH`.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use punctual_program::run as runs;

use crate::exit::Failure;

/// A program that does commands in place of this one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Companion {
    name: &'static str,
    /// The folder of its crate.
    package: &'static str,
    /// The command that stands for the program, and is left out of its arguments.
    own: &'static str,
    /// Commands of it that need no other word.
    commands: &'static [&'static str],
}

/// Experiments and models.
pub(crate) const LAB: Companion = Companion {
    name: "punctual-lab",
    package: "crates/lab-cli",
    own: "lab",
    commands: &["model", "latency"],
};

/// The relay.
const RELAY: Companion = Companion {
    name: "punctual-relay",
    package: "crates/relay-server",
    own: "relay",
    commands: &[],
};

/// The program that does the command of this command line, and its arguments; `None` for a command
/// of this program.
pub(crate) fn of(command_line: &[OsString]) -> Option<(Companion, Vec<OsString>)> {
    let words = command_line.get(1..)?;
    let is_option = |word: &OsString| text(word).starts_with('-');
    let is_value = |place: usize| place > 0 && LEVELS.contains(&text(&words[place - 1]));
    let mut place = (0..words.len()).find(|it| !is_option(&words[*it]) && !is_value(*it))?;
    if text(&words[place]) == "help" {
        place += 1;
    }
    let command = text(words.get(place)?);
    let does = |it: &Companion| it.own == command || it.commands.contains(&command);
    let companion = [LAB, RELAY].into_iter().find(does)?;
    let mut arguments = words.to_vec();
    if companion.own == command {
        arguments.remove(place);
    }
    Some((companion, arguments))
}

impl Companion {
    /// Lets the program do the work in place of this process. Comes back only where it cannot
    /// start.
    #[cfg(unix)]
    pub(crate) fn run(self, arguments: &[OsString]) -> ExitCode {
        use std::os::unix::process::CommandExt;
        let error = Command::new(self.program()).args(arguments).exec();
        runs::program("punctual", || Err(self.failure(&error)))
    }

    /// Lets the program do the work, and gives its exit code.
    #[cfg(not(unix))]
    pub(crate) fn run(self, arguments: &[OsString]) -> ExitCode {
        match Command::new(self.program()).args(arguments).status() {
            Ok(status) => {
                ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
            }
            Err(error) => runs::program("punctual", || Err(self.failure(&error))),
        }
    }

    /// Lets the program do a part of this program's work, and waits for it.
    ///
    /// # Errors
    ///
    /// It is missing, or its own failure.
    pub(crate) fn call(self, arguments: &[OsString]) -> Result<(), Failure> {
        let ended = Command::new(self.program()).args(arguments).output();
        let ended = ended.map_err(|error| self.failure(&error))?;
        if ended.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&ended.stderr);
        let said = said.trim_end();
        let said = said.strip_prefix(&format!("{}: ", self.name)).unwrap_or(said);
        Err(match ended.status.code() {
            Some(2) => Failure::usage(said),
            _ => Failure::runtime(said),
        })
    }

    /// The program beside this one, or its name, by which the system looks for it in `PATH`.
    fn program(self) -> PathBuf {
        let name = format!("{}{}", self.name, std::env::consts::EXE_SUFFIX);
        let beside = std::env::current_exe().map(|own| own.with_file_name(&name));
        beside.ok().filter(|program| program.is_file()).unwrap_or_else(|| name.into())
    }

    fn failure(self, error: &io::Error) -> Failure {
        let Self { name, package, .. } = self;
        match error.kind() {
            io::ErrorKind::NotFound => Failure::runtime(format!(
                "the program `{name}`, which does this, is neither beside this one nor in PATH; \
                 `cargo install --path {package}` installs it"
            )),
            _ => Failure::runtime(format!("{name}: {error}")),
        }
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
        let (companion, arguments) = of(&words)?;
        let words = [companion.name].into_iter().chain(arguments.iter().map(text));
        Some(words.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn commands_of_other_programs_are_handed_over_with_all_options() {
        for (line, expected) in [
            ("punctual lab", Some("punctual-lab")),
            ("punctual lab list", Some("punctual-lab list")),
            ("punctual -q lab run lab -o model", Some("punctual-lab -q run lab -o model")),
            ("punctual --loglevel lab lab list", Some("punctual-lab --loglevel lab list")),
            ("punctual model --rtt 1s", Some("punctual-lab model --rtt 1s")),
            ("punctual latency -h", Some("punctual-lab latency -h")),
            ("punctual help lab run", Some("punctual-lab help run")),
            ("punctual help model", Some("punctual-lab help model")),
            ("punctual relay", Some("punctual-relay")),
            ("punctual -q relay --demo", Some("punctual-relay -q --demo")),
            ("punctual relay check relay.toml", Some("punctual-relay check relay.toml")),
            ("punctual help relay token", Some("punctual-relay help token")),
            ("punctual", None),
            ("punctual help", None),
            ("punctual help uri", None),
            ("punctual route lab model", None),
            ("punctual --version lab", Some("punctual-lab --version")),
        ] {
            assert_eq!(handed_over(line).as_deref(), expected, "{line}");
        }
    }
}
