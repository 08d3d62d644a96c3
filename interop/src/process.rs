use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::Folder;

/// A running program whose output goes to a log. It is killed when this value is dropped, and its
/// log is printed if the test is failing then.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    shown: String,
}

impl Process {
    /// Starts `command`; standard output and standard error go to `<name>.log` in `folder`,
    /// standard input is a pipe.
    ///
    /// # Panics
    ///
    /// If the program cannot be started.
    pub fn start(name: &str, command: Command, folder: &Folder) -> Self {
        Self::start_with_output(name, command, folder, None)
    }

    /// Like [`start`](Self::start), with standard output going to the file `output`.
    ///
    /// # Panics
    ///
    /// If the program cannot be started.
    pub fn start_with_output(
        name: &str,
        mut command: Command,
        folder: &Folder,
        output: Option<&Path>,
    ) -> Self {
        let log = folder.file(&format!("{name}.log"));
        let file = File::create(&log).expect("a log can be made in the test's folder");
        let stdout = match output {
            Some(path) => File::create(path).expect("a file can be made in the test's folder"),
            None => file.try_clone().expect("a file can be shared"),
        };
        command.stdin(Stdio::piped()).stdout(stdout).stderr(file);
        let shown = shown(&command);
        let child = command.spawn().unwrap_or_else(|error| panic!("{shown}: {error}"));
        Self { name: name.to_owned(), child, log, shown }
    }

    /// The name that the test gave it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number by which the system knows it.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The pipe to its standard input. Once.
    ///
    /// # Panics
    ///
    /// If it was taken before.
    pub fn stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().expect("standard input is taken once")
    }

    /// Its output so far.
    pub fn log(&self) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits until it has written a line with `text` in it, and returns that line.
    ///
    /// # Panics
    ///
    /// If it has not within ten seconds, or ends before.
    pub fn wait_for_line(&mut self, text: &str) -> String {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let ended = self.ended();
            if let Some(line) = self.log().lines().find(|line| line.contains(text)) {
                return line.to_owned();
            }
            assert!(!ended, "{} ended without saying {text:?}", self.name);
            assert!(Instant::now() < deadline, "{} did not say {text:?}", self.name);
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Whether it has ended by itself.
    ///
    /// # Panics
    ///
    /// If the system does not tell.
    pub fn ended(&mut self) -> bool {
        self.child.try_wait().expect("the system knows its processes").is_some()
    }

    /// Waits until it ends by itself.
    ///
    /// # Panics
    ///
    /// If it does not within `limit`.
    pub fn wait(&mut self, limit: Duration) -> ExitStatus {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait().expect("the system knows its processes") {
                return status;
            }
            assert!(Instant::now() < deadline, "{} did not end within {limit:?}", self.name);
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Asks it to end, as a user or a service manager would (SIGTERM), and waits until it has.
    ///
    /// # Panics
    ///
    /// If it does not end within ten seconds.
    pub fn stop(&mut self) -> ExitStatus {
        send(self.child.id(), Signal::TERM);
        self.wait(Duration::from_secs(10))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if the process has ended already, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("--- {}: {}\n{}", self.name, self.shown, tail(&self.log()));
        }
    }
}

/// Sends a signal to a process of ours. One that has ended by itself is as good.
///
/// # Panics
///
/// If `process` is no process's ID.
pub fn send(process: u32, signal: Signal) {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    let _ = kill_process(process.expect("the ID of a process"), signal);
}

/// The end of a log, short enough to read. Progress that a program writes over itself with carriage
/// returns becomes lines.
fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.split(['\n', '\r']).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}

/// The command as one would type it.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_waited_for_and_killed() {
        let folder = Folder::of("a_process_is_read_waited_for_and_killed");
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo ready; read answer; echo got $answer; exit 3"]);
        let mut process = Process::start("sh", command, &folder);
        assert_eq!(process.wait_for_line("rea"), "ready");
        assert!(!process.ended());
        std::io::Write::write_all(&mut process.stdin(), b"it\n").unwrap();
        assert_eq!(process.wait(Duration::from_secs(10)).code(), Some(3));
        assert_eq!(process.log(), "ready\ngot it\n");
    }
}
