//! Running other programs: every command is printed before it runs, in a form to copy.

#![expect(clippy::disallowed_methods, reason = "a thread of its own notices tests that hang")]

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// `Err` says in one sentence what went wrong.
pub(crate) type Outcome = Result<(), String>;

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().expect("xtask lies in the repository").to_path_buf()
}

/// A call of the cargo that runs this program, at the repository's root.
pub(crate) fn cargo<I: IntoIterator<Item: AsRef<OsStr>>>(arguments: I) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// Runs `command` to its end; a non-zero code is an error.
pub(crate) fn run(command: &mut Command) -> Outcome {
    announce(command);
    let status = command.status().map_err(|error| not_started(command, &error))?;
    if status.success() { Ok(()) } else { Err(format!("{} failed ({status})", shown(command))) }
}

/// Runs `command`, which runs tests, to its end, hands each line of its standard output to `line`
/// after printing it, and says whether it succeeded. If tests say nothing for [`SILENCE`], this
/// process ends: one of them never will.
pub(crate) fn run_and_read(
    command: &mut Command,
    mut line: impl FnMut(&str),
) -> Result<bool, String> {
    announce(command);
    let mut child =
        command.stdout(Stdio::piped()).spawn().map_err(|error| not_started(command, &error))?;
    let output = child.stdout.take().expect("standard output is piped");
    let (heard, lines) = channel();
    thread::spawn(move || {
        // Before the first line the tests are compiled, which may take long.
        let mut next = lines.recv().map_err(|_| RecvTimeoutError::Disconnected);
        while next.is_ok() {
            next = lines.recv_timeout(SILENCE);
        }
        if next == Err(RecvTimeoutError::Timeout) {
            say(&format!("no test has ended for {SILENCE:?}, so one of them hangs"));
            process::exit(1);
        }
    });
    for text in BufReader::new(output).split(b'\n') {
        let text = text.map_err(|error| format!("reading from {}: {error}", shown(command)))?;
        let text = String::from_utf8_lossy(&text);
        say(&text);
        line(&text);
        let _ = heard.send(());
    }
    drop(heard);
    let status = child.wait().map_err(|error| format!("{}: {error}", shown(command)))?;
    Ok(status.success())
}

/// Several times as long as the slowest test takes on a busy machine.
const SILENCE: Duration = Duration::from_secs(600);

/// The output of `command`, if it can be run and succeeds.
pub(crate) fn output_of(command: &mut Command) -> Option<String> {
    let output = command.stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Prints one line. A reader that went away is no reason to stop a chore.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

fn announce(command: &Command) {
    say(&format!("$ {}", shown(command)));
}

fn not_started(command: &Command, error: &io::Error) -> String {
    format!("{} could not be started: {error}", shown(command))
}

/// The command as one would type it.
fn shown(command: &Command) -> String {
    let mut words: Vec<String> = command
        .get_envs()
        .filter_map(|(name, value)| {
            Some(format!("{}={:?}", name.to_string_lossy(), value?.to_string_lossy()))
        })
        .collect();
    let program = Path::new(command.get_program());
    words.push(program.file_stem().unwrap_or(command.get_program()).to_string_lossy().into_owned());
    words.extend(command.get_args().map(|word| word.to_string_lossy().into_owned()));
    words.join(" ")
}
