//! Running other programs: every command is printed before it runs, in a form to copy.

#![expect(clippy::disallowed_methods, reason = "a thread reads the output of tests")]

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
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

/// A call of cargo as [`cargo`] makes it, to whose processes the system prefers others.
pub(crate) fn cargo_that_gives_way<I: IntoIterator<Item: AsRef<OsStr>>>(arguments: I) -> Command {
    let cargo = cargo(arguments);
    if !cfg!(unix) {
        return cargo;
    }
    let mut command = Command::new("nice");
    command.args(["-n", "10"]).arg(cargo.get_program()).args(cargo.get_args());
    command.current_dir(root());
    command
}

/// Runs `command` to its end; a non-zero code is an error.
pub(crate) fn run(command: &mut Command) -> Outcome {
    announce(command);
    let status = command.status().map_err(|error| not_started(command, &error))?;
    if status.success() { Ok(()) } else { Err(format!("{} failed ({status})", shown(command))) }
}

/// Runs `command`, which runs tests, to its end, prints each line of its output and hands it to
/// `line`, and says whether it succeeded.
///
/// # Errors
///
/// As of [`read`].
pub(crate) fn run_and_read(
    command: &mut Command,
    mut line: impl FnMut(&str),
) -> Result<bool, String> {
    read(command, |text| {
        say(text);
        line(text);
    })
}

/// Runs `command`, which runs tests, to its end, hands each line of its output to `line`, and says
/// whether it succeeded. Standard output and standard error are one, so that cargo's line about a
/// test program comes before the program's own.
///
/// # Errors
///
/// If tests say nothing for [`SILENCE`]: one of them hangs.
pub(crate) fn read(command: &mut Command, mut line: impl FnMut(&str)) -> Result<bool, String> {
    announce(command);
    let failed = |error: io::Error| error.to_string();
    let (output, input) = io::pipe().map_err(failed)?;
    command.stdout(input.try_clone().map_err(failed)?).stderr(input);
    let child = command.spawn().map_err(|error| not_started(command, &error));
    // The command holds the input, which would keep the output from ending.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = child?;
    let lines = lines_of(output);
    let mut silence = None;
    loop {
        match lines.recv_timeout(LOOK) {
            Ok(text) => {
                line(&text);
                // Before the first test runs they are compiled, which may take long.
                let is_first = text.starts_with("running ");
                silence = (silence.is_some() || is_first).then_some(Duration::ZERO);
            }
            Err(RecvTimeoutError::Disconnected) => break,
            // A process that a test left behind may hold the output open.
            Err(RecvTimeoutError::Timeout) if child.try_wait().map_err(failed)?.is_some() => break,
            Err(RecvTimeoutError::Timeout) => silence = silence.map(|silence| silence + LOOK),
        }
        if silence >= Some(SILENCE) {
            return Err(format!("no test has ended for {SILENCE:?}, so one of them hangs"));
        }
    }
    let status = child.wait().map_err(|error| format!("{}: {error}", shown(command)))?;
    Ok(status.success())
}

/// The lines that another thread reads from `output`, until it ends.
fn lines_of(output: io::PipeReader) -> Receiver<String> {
    let (sender, lines) = channel();
    thread::spawn(move || {
        for text in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            if sender.send(String::from_utf8_lossy(&text).into_owned()).is_err() {
                break;
            }
        }
    });
    lines
}

/// Runs this number of tests at a time, unless the user has said how many.
pub(crate) fn run_at_a_time(tests: &mut Command, threads: usize) {
    if std::env::var_os(THREADS).is_none() {
        tests.env(THREADS, threads.to_string());
    }
}

/// Twice as many tests as there are processors: tests in real time wait for programs and timers
/// most of the time.
pub(crate) fn threads_in_real_time() -> usize {
    2 * processors()
}

/// The number of processors.
pub(crate) fn processors() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Several times as long as the slowest test takes on a busy machine.
const SILENCE: Duration = Duration::from_secs(600);
/// The variable by which libtest takes the number of threads.
const THREADS: &str = "RUST_TEST_THREADS";
/// The time between two looks at a program that says nothing.
const LOOK: Duration = Duration::from_secs(1);

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

#[cfg(all(test, unix))]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn both_outputs_of_a_command_are_read_in_order_until_it_ends() {
        let mut lines = Vec::new();
        let mut command = Command::new("sh");
        // The process in the background keeps the output open.
        command.args(["-c", "echo one; echo two >&2; echo three; sleep 30 & exit 3"]);
        let begin = Instant::now();
        assert_eq!(run_and_read(&mut command, |line| lines.push(line.to_owned())), Ok(false));
        assert_eq!(lines, ["one", "two", "three"]);
        assert!(begin.elapsed() < Duration::from_secs(20), "it waited for the background");
    }
}
