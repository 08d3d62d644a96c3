//! Files of statistics, metrics and messages that are rotated while they are written.

use std::fs::{self, File};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use interop::Signal;

use crate::program::{Folder, Program, free_port, is_installed, rows, run};

/// A receiver that writes statistics and metrics twenty times a second, and its sender.
struct Bench {
    folder: Folder,
    receiver: Program,
    _sender: Program,
}

impl Bench {
    fn start(name: &str) -> Self {
        let folder = Folder::new(name);
        let (receiver, sender) = stream(&folder, &free_port().to_string());
        let bench = Self { folder, receiver, _sender: sender };
        bench.wait_for_rows(3);
        bench
    }

    /// Waits until both files have more than this number of lines.
    fn wait_for_rows(&self, count: usize) {
        for file in FILES {
            let start = Instant::now();
            while self.text(file).lines().count() <= count {
                assert!(start.elapsed() < Duration::from_secs(20), "{file}: {}", self.text(file));
                sleep(Duration::from_millis(20));
            }
        }
    }

    fn text(&self, file: &str) -> String {
        fs::read_to_string(self.folder.file(file)).unwrap_or_default()
    }

    /// Runs logrotate on both files once, with these directives.
    fn rotate(&self, directives: &str) {
        let files = FILES.map(|file| self.folder.file(file)).join(" ");
        logrotate(&self.folder, &format!("{files} {{\n{directives}\n}}\n"));
    }

    /// The old and the new file are whole, each with its header, and no row is missing or doubled.
    fn assert_whole(&self) {
        self.wait_for_rows(3);
        for file in FILES {
            let (old, new) = (self.text(&format!("{file}.1")), self.text(file));
            assert!(!new.contains('\0') && !old.contains('\0'), "{file} has a hole");
            for text in [&old, &new] {
                assert_eq!(text.matches("Timepoint").count(), 1, "{file}: {text}");
                assert!(text.starts_with("Timepoint,"), "{file}: {text}");
            }
            assert!(rows(&old).len() > 2, "{old}");
            let (whole, _cut) = new.rsplit_once('\n').expect("there are lines");
            assert!(rows(whole).len() > 2, "{new}");
        }
    }
}

/// Runs logrotate once.
fn logrotate(folder: &Folder, configuration: &str) {
    let (config, state) = (folder.file("logrotate.conf"), folder.file("logrotate.state"));
    // The folders of tests may be open to all.
    let head = "su root root\nrotate 3\n";
    let me = Command::new("id").arg("-u").output().expect("there is id");
    let head = if me.stdout == b"0\n" { head } else { "rotate 3\n" };
    fs::write(&config, format!("{head}{configuration}")).expect("the folder can be written");
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(&config, fs::Permissions::from_mode(0o644)).expect("it is ours");
    let output = Command::new("logrotate").args(["-f", "-s", &state, &config]).output();
    let output = output.expect("logrotate runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn stream(folder: &Folder, port: &str) -> (Program, Program) {
    let uri = format!("srt://127.0.0.1:{port}");
    let [stats, metrics] = FILES.map(|file| folder.file(file));
    let mut receiver = Program::start(&[
        "receive",
        &format!("{uri}?mode=listener"),
        "--statsfile",
        &stats,
        "--statsfreq",
        "50ms",
        "--enable-metrics",
        "--metricsfile",
        &metrics,
        "--metricsfreq",
        "50ms",
    ]);
    receiver.wait_for("listening");
    let sender = Program::start(&["generate", &uri, "--sendrate", "1Mbps", "--enable-metrics"]);
    (receiver, sender)
}

#[test]
fn copytruncate_leaves_no_hole_and_a_new_header() {
    if is_installed("logrotate") {
        let bench = Bench::start("copytruncate");
        bench.rotate("copytruncate");
        bench.assert_whole();
    }
}

#[test]
fn a_file_made_anew_is_opened_at_sighup() {
    if is_installed("logrotate") {
        let bench = Bench::start("create");
        let receiver = bench.receiver.id();
        bench
            .rotate(&format!("create\nsharedscripts\npostrotate\nkill -HUP {receiver}\nendscript"));
        bench.assert_whole();
    }
}

#[test]
fn a_file_renamed_without_a_signal_is_followed() {
    if is_installed("logrotate") {
        for directive in ["nocreate", "create"] {
            let bench = Bench::start(&format!("renamed-{directive}"));
            bench.rotate(directive);
            bench.assert_whole();
        }
    }
}

#[test]
fn a_restart_adds_to_the_files_of_the_run_before() {
    let bench = Bench::start("restarted");
    let before = FILES.map(|file| bench.text(file));
    let Bench { folder, receiver, _sender } = bench;
    receiver.interrupt();
    assert_eq!(receiver.end().code, Some(0));
    let (receiver, _sender) = stream(&folder, &free_port().to_string());
    let bench = Bench { folder, receiver, _sender };
    for (file, before) in FILES.iter().zip(before) {
        let count = before.lines().count() + 5;
        while bench.text(file).lines().count() < count {
            sleep(Duration::from_millis(20));
        }
        let text = bench.text(file);
        assert!(text.starts_with(&before) && text.matches("Timepoint").count() == 1, "{text}");
    }
}

#[test]
fn messages_in_a_file_that_is_copied_and_emptied_have_no_hole() {
    if !is_installed("logrotate") {
        return;
    }
    let folder = Folder::new("log-rotated");
    let log = folder.file("log");
    let uri = format!("srt://:{}", free_port());
    // As the shell's `2>` opens it.
    let mut receiver = Command::new(env!("CARGO_BIN_EXE_punctual"))
        .args(["receive", &uri])
        .env("TZ", "XYZ-3:30")
        .stderr(File::create(&log).expect("the folder can be written"))
        .spawn()
        .expect("the program starts");
    let read = || fs::read_to_string(&log).expect("messages are text");
    let start = Instant::now();
    while !read().contains("listening") && start.elapsed() < Duration::from_secs(20) {
        sleep(Duration::from_millis(20));
    }
    logrotate(&folder, &format!("{log} {{\ncopytruncate\n}}\n"));
    interop::send(receiver.id(), Signal::INT);
    receiver.wait().expect("it ends");
    let text = read();
    assert!(!text.contains('\0') && text.contains("stopping"), "{text:?}");
    // Messages have the local time with its offset.
    assert!(text.contains("+0330  INFO stopping"), "{text}");
}

#[test]
fn a_named_pipe_is_opened_when_it_has_a_reader_and_holds_up_nobody() {
    if !is_installed("mkfifo") {
        return;
    }
    let folder = Folder::new("named-pipe");
    let fifo = folder.file("rows");
    let made = Command::new("mkfifo").arg(&fifo).status().expect("there is mkfifo");
    assert!(made.success());
    let uri = format!("udp://127.0.0.1:{}", free_port());
    let generate = ["generate", &uri, "--num", "3", "--statsfile", &fifo];
    let ended = run(&generate, b"");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

const FILES: [&str; 2] = ["stats.csv", "metrics.csv"];
