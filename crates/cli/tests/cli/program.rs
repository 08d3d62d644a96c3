//! Running the built program: with its messages read, its end waited for, its ports free.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// A program that runs. It is killed when it is dropped.
pub(crate) struct Program {
    child: Child,
    messages: Receiver<String>,
    heard: String,
}

impl Program {
    /// Starts the program.
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::spawn(command(args))
    }

    /// Starts the program on a disk that seems full: writing fails after this number of blocks of
    /// 512 bytes of a file.
    pub(crate) fn start_on_small_disk(blocks: u32, args: &[&str]) -> Self {
        Self::start_after(&format!("trap '' XFSZ; ulimit -S -f {blocks}"), args)
    }

    /// Starts the program with SIGHUP ignored, as `nohup` does.
    pub(crate) fn start_without_hangups(args: &[&str]) -> Self {
        Self::start_after("trap '' HUP", args)
    }

    /// Starts the program after these commands of a shell.
    pub(crate) fn start_after(commands: &str, args: &[&str]) -> Self {
        let mut shell = Command::new("/bin/sh");
        let script = format!("{commands}; exec \"$0\" \"$@\"");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_punctual")]).args(args);
        shell.env_remove("RUST_LOG");
        Self::spawn(shell)
    }

    /// Starts this command, which is the program or becomes it.
    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stderr = BufReader::new(child.stderr.take().expect("it is a pipe"));
        let (teller, messages) = channel();
        thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let _ = teller.send(line);
            }
        });
        Self { child, messages, heard: String::new() }
    }

    /// Makes room on the small disk.
    pub(crate) fn make_room(&self) {
        let id = self.id().to_string();
        let made = Command::new("prlimit").args(["--pid", &id, "--fsize=unlimited"]).status();
        assert!(made.expect("util-linux is installed").success());
    }

    /// Waits until it says something with `text` in it.
    pub(crate) fn wait_for(&mut self, text: &str) {
        self.wait_for_times(1, text);
    }

    /// Waits until it says something with one of `texts` in it, and gives that one.
    pub(crate) fn wait_for_one_of<'a>(&mut self, texts: &[&'a str]) -> &'a str {
        loop {
            if let Some(text) = texts.iter().find(|text| self.heard.contains(**text)) {
                return text;
            }
            self.hear(&format!("one of {texts:?}"));
        }
    }

    /// Waits until its messages have `text` this number of times since its start.
    pub(crate) fn wait_for_times(&mut self, times: usize, text: &str) {
        while self.heard.matches(text).count() < times {
            self.hear(&format!("`{text}`"));
        }
    }

    /// Takes its next line, while `wanted` is waited for.
    fn hear(&mut self, wanted: &str) {
        match self.messages.recv_timeout(PATIENCE) {
            Ok(line) => self.heard += &(line + "\n"),
            Err(error) => panic!("{wanted} is not said ({error}), but:\n{}", self.heard),
        }
    }

    /// Waits until it has written this number of lines to its standard output, and gives them.
    pub(crate) fn read_lines(&mut self, count: usize) -> String {
        let stdout = self.child.stdout.as_mut().expect("it is a pipe");
        let (mut lines, mut byte) = (Vec::new(), [0]);
        let mut left = count;
        while left > 0 {
            stdout.read_exact(&mut byte).expect("it goes on writing");
            left -= usize::from(byte == *b"\n");
            lines.extend(byte);
        }
        String::from_utf8(lines).expect("the output is text")
    }

    /// Its messages so far, up to the last that was waited for.
    pub(crate) fn heard(&self) -> &str {
        &self.heard
    }

    /// Asks it to end as Ctrl-C does.
    pub(crate) fn interrupt(&self) {
        interop::send(self.id(), interop::Signal::INT);
    }

    /// Its process ID.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it at once, by a signal that it cannot handle.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }

    /// Waits for its end, and gives its exit code, its output and its messages. A program that does
    /// not end is killed, and fails the test.
    pub(crate) fn end(mut self) -> Ended {
        let id = self.id();
        let (ended, end) = channel::<()>();
        let guard = thread::spawn(move || {
            let is_late = end.recv_timeout(LIFETIME) == Err(RecvTimeoutError::Timeout);
            if is_late {
                interop::send(id, interop::Signal::KILL);
            }
            is_late
        });
        let mut stdout = Vec::new();
        let mut pipe = self.child.stdout.take().expect("it is a pipe");
        pipe.read_to_end(&mut stdout).expect("the output can be read");
        let status = self.child.wait().expect("it ends");
        drop(ended);
        self.heard.extend(self.messages.iter().map(|line| line + "\n"));
        let is_late = guard.join().expect("the guard ends");
        assert!(!is_late, "the program has not ended for {LIFETIME:?}, but said:\n{}", self.heard);
        Ended { code: status.code(), stdout, stderr: std::mem::take(&mut self.heard) }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The end of a program.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Ended {
    /// Its output as text, if it ended well.
    pub(crate) fn text(self) -> String {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        String::from_utf8(self.stdout).expect("the output is text")
    }
}

/// Whether this program is installed; says that the test is skipped if it is not.
pub(crate) fn is_installed(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    let is_there = command.status().is_ok();
    if !is_there {
        interop::skip(&format!("{program} is not installed"));
    }
    is_there
}

/// Runs the program to its end, with `input` on its standard input.
pub(crate) fn run(args: &[&str], input: &[u8]) -> Ended {
    let mut child = command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("it is a pipe");
    let input = input.to_vec();
    let writer = thread::spawn(move || {
        // The program may end without reading.
        let _ = stdin.write_all(&input);
    });
    let Output { status, stdout, stderr } = child.wait_with_output().expect("it ends");
    writer.join().expect("the writer does not panic");
    let stderr = String::from_utf8_lossy(&stderr).into_owned();
    Ended { code: status.code(), stdout, stderr }
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
    command.args(args).env_remove("RUST_LOG");
    command
}

/// A UDP port on loopback that nobody uses.
pub(crate) fn free_port() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    socket.local_addr().expect("it is bound").port()
}

/// A folder for one test, which is removed at its end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// A new folder for the test of this name.
    pub(crate) fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("punctual-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the folder can be made");
        Self(path)
    }

    /// The path of a file in it.
    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("the path is text").to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Rows of CSV under its header, each as a map from column to value; of two columns with one name,
/// the last counts.
pub(crate) fn rows(csv: &str) -> Vec<std::collections::BTreeMap<String, String>> {
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().expect("there is a header").split(',').collect();
    lines
        .map(|line| {
            let values: Vec<&str> = line.split(',').collect();
            assert_eq!(values.len(), header.len(), "{line}");
            header
                .iter()
                .map(ToString::to_string)
                .zip(values.iter().map(ToString::to_string))
                .collect()
        })
        .collect()
}

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Longer than any program of a test runs after the last that was waited for.
const LIFETIME: Duration = Duration::from_secs(180);
