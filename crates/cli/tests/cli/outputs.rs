//! Standard error, standard output and files of rows that take nothing: streams go on, and signals
//! end the program.

use std::fs::File;
use std::io::{ErrorKind, Read, Write, pipe};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::program::{Folder, Program, free_port, rows};

/// A place that takes no messages and no rows.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// A pipe whose reader is gone.
    Gone,
    /// A disk without room.
    Full,
    /// A pipe that is full and that nobody reads, like a terminal after Ctrl-S.
    Stalled,
}

impl Place {
    /// The place, and its reader if there is one.
    fn open(self) -> (Stdio, Option<OwnedFd>) {
        match self {
            Self::Gone => (pipe().expect("a pipe").1.into(), None),
            Self::Full => {
                let disk = File::options().write(true).open("/dev/full");
                (disk.expect("Linux has one").into(), None)
            }
            Self::Stalled => {
                let (reader, writer) = pipe().expect("a pipe");
                fill(&writer);
                (writer.into(), Some(reader.into()))
            }
        }
    }
}

fn fill(mut pipe: &std::io::PipeWriter) {
    let flags = fcntl_getfl(pipe).expect("it has flags");
    fcntl_setfl(pipe, flags | OFlags::NONBLOCK).expect("they can be set");
    while pipe.write(&[b'\n'; 4_096]).is_ok() {}
    let full = pipe.write(b"\n").expect_err("it is full");
    assert_eq!(full.kind(), ErrorKind::WouldBlock);
    fcntl_setfl(pipe, flags).expect("they can be set");
}

/// A command whose standard error and output take nothing.
struct Mute {
    name: String,
    child: Child,
    _readers: [Option<OwnedFd>; 2],
}

impl Mute {
    fn start(place: Place, args: &[&str]) -> Self {
        let ((stderr, one), (stdout, other)) = (place.open(), place.open());
        let child = Command::new(env!("CARGO_BIN_EXE_punctual"))
            .args(args)
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .spawn()
            .expect("the program starts");
        Self { name: format!("{place:?}: {args:?}"), child, _readers: [one, other] }
    }

    /// Sends a signal, and gives the exit code with which the command ends soon.
    fn end_by(self, signal: interop::Signal) -> Option<i32> {
        interop::send(self.child.id(), signal);
        self.end()
    }

    /// Gives the exit code of a command that has done its work and its result: a reader that stalls
    /// is waited for until a signal comes.
    fn end_with_result(self, place: Place) -> Option<i32> {
        match place {
            Place::Gone | Place::Full => self.end(),
            Place::Stalled => self.end_by(interop::Signal::TERM),
        }
    }

    /// Gives the exit code with which the command ends soon.
    fn end(mut self) -> Option<i32> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                return status.code();
            }
            assert!(start.elapsed() < SOON, "{} does not end", self.name);
            sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Mute {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A stream through a command that cannot write, between programs that can.
struct Scenario {
    mute: Mute,
    /// The receiver of the stream, whose metrics tell that it went on.
    receiver: Option<Program>,
    /// The sender, if the command is not the sender.
    sender: Option<Program>,
    /// Its exit code.
    code: i32,
}

/// The commands that carry a stream from a sender to a receiver or are one of them.
fn scenarios(place: Place) -> Vec<Scenario> {
    let stream = ["--sendrate", "1Mbps", "--enable-metrics"];
    let receive = |port: u16| {
        let uri = format!("srt://127.0.0.1:{port}?mode=listener");
        let mut receiver = Program::start(&["receive", &uri, "--enable-metrics"]);
        receiver.wait_for("listening");
        receiver
    };
    let send = |port: u16| {
        let uri = format!("srt://127.0.0.1:{port}?conntimeo=20s");
        Program::start(&[&["generate", &uri], &stream[..]].concat())
    };
    // Many messages and rows.
    let talk = ["-vv", "--statsfile", "-", "--statsfreq", "20ms"];
    let mut all = Vec::new();
    for reconnect in [&[][..], &["--reconnect"]] {
        let to = free_port();
        let receiver = receive(to);
        let uri = format!("srt://127.0.0.1:{to}");
        let args = [&["generate", &uri], &stream[..], &talk, reconnect].concat();
        let mute = Mute::start(place, &args);
        all.push(Scenario { mute, receiver: Some(receiver), sender: None, code: 0 });

        let (from, to) = (free_port(), free_port());
        let receiver = receive(to);
        let [from_uri, to_uri] =
            [format!("srt://127.0.0.1:{from}?mode=listener"), format!("srt://127.0.0.1:{to}")];
        let args = [&["route", &from_uri, &to_uri], &talk[..], reconnect].concat();
        let mute = Mute::start(place, &args);
        let sender = Some(send(from));
        all.push(Scenario { mute, receiver: Some(receiver), sender, code: 0 });
    }
    let (from, to) = (free_port(), free_port());
    let receiver = receive(to);
    let [from_uri, to_uri] = [from, to].map(|port| format!("127.0.0.1:{port}"));
    let mute = Mute::start(place, &["emulate", &from_uri, &to_uri, "-vv"]);
    // Its report is a result.
    let code = if let Place::Full = place { 1 } else { 0 };
    all.push(Scenario { mute, receiver: Some(receiver), sender: Some(send(from)), code });

    let [from, to] = [free_port(), free_port()];
    let [from_uri, to_uri] = [from, to].map(|port| format!("srt://127.0.0.1:{port}?mode=listener"));
    let args = [&["route", &from_uri, &to_uri, "--viewers", "2"], &talk[..]].concat();
    let mute = Mute::start(place, &args);
    let viewer = format!("srt://127.0.0.1:{to}?conntimeo=20s");
    let receiver = Some(Program::start(&["receive", &viewer, "--enable-metrics"]));
    all.push(Scenario { mute, receiver, sender: Some(send(from)), code: 0 });

    let measure = ["--enable-metrics", "--metricsfreq", "20ms", "--printmsg", "-vv"];
    for reconnect in [&[][..], &["--reconnect"]] {
        let from = free_port();
        let uri = format!("srt://127.0.0.1:{from}?mode=listener");
        let args = [&["receive", &uri], &measure[..], reconnect].concat();
        let mute = Mute::start(place, &args);
        all.push(Scenario { mute, receiver: None, sender: Some(send(from)), code: 0 });
    }
    all
}

fn streams_go_on_and_signals_end_them(place: Place) {
    let mut all = scenarios(place);
    for Scenario { sender, receiver, .. } in &mut all {
        [sender, receiver].into_iter().flatten().for_each(|it| it.wait_for("connected"));
    }
    sleep(Duration::from_secs(2));
    for (number, Scenario { mute, receiver, sender, code }) in all.into_iter().enumerate() {
        let name = mute.name.clone();
        // A receiver that ends has told its sender that it does.
        if let (Some(sender), None) = (&sender, &receiver) {
            assert_eq!(mute.end_by(interop::Signal::TERM), Some(0), "{name}");
            let start = Instant::now();
            let ended = sender_ends(sender);
            assert!(start.elapsed() < Duration::from_secs(3), "{name}: {ended:?}");
            continue;
        }
        let signal = if number % 2 == 0 { interop::Signal::INT } else { interop::Signal::TERM };
        assert_eq!(mute.end_by(signal), Some(code), "{name}");
        if let Some(sender) = &sender {
            sender.interrupt();
        }
        let receiver = receiver.expect("the others have one");
        receiver.interrupt();
        let ended = receiver.end();
        let metrics = rows(&String::from_utf8(ended.stdout).expect("rows are text"));
        let last = metrics.last().expect("there is a last row");
        let count = |column: &str| last[column].parse::<u64>().expect("a number");
        // 95 a second.
        assert!(count("pktReceived") > 120, "{name}: {last:?}");
        assert_eq!(count("pktLost"), 0, "{name}: {last:?}");
    }
}

/// Waits for the end of a sender whose receiver has ended.
fn sender_ends(sender: &Program) -> bool {
    let path = format!("/proc/{}/stat", sender.id());
    let start = Instant::now();
    // A process that has ended is a zombie until it is waited for.
    let has_ended = || std::fs::read_to_string(&path).is_ok_and(|stat| stat.contains(") Z "));
    while !has_ended() && start.elapsed() < SOON {
        sleep(Duration::from_millis(20));
    }
    has_ended()
}

#[test]
fn streams_go_on_when_the_reader_of_messages_and_rows_is_gone() {
    streams_go_on_and_signals_end_them(Place::Gone);
}

#[test]
fn streams_go_on_when_the_disk_of_messages_and_rows_is_full() {
    streams_go_on_and_signals_end_them(Place::Full);
}

#[test]
fn streams_go_on_when_nobody_takes_messages_and_rows() {
    streams_go_on_and_signals_end_them(Place::Stalled);
}

#[test]
fn files_and_probes_are_done_although_nobody_takes_messages() {
    for place in [Place::Gone, Place::Full, Place::Stalled] {
        let folder = Folder::new("mute-files");
        let file = folder.file("a.bin");
        std::fs::write(&file, vec![7; 300_000]).expect("the folder can be written");
        let into = folder.file("in");
        let port = free_port();
        let [called, listener] =
            ["", "?mode=listener"].map(|mode| format!("srt://127.0.0.1:{port}{mode}"));
        let mut receiver = Mute::start(place, &["file", "receive", &listener, &into, "-vv"]);
        let sender = Program::start(&["file", "send", &file, &called]);
        assert_eq!(sender.end().code, Some(0), "{place:?}");
        assert_eq!(receiver.child.wait().expect("it ends").code(), Some(0), "{place:?}");
        assert_eq!(std::fs::read(folder.file("in/a.bin")).expect("it is there").len(), 300_000);

        let mut receiver = Program::start(&["file", "receive", &listener, &into, "--overwrite"]);
        receiver.wait_for("listening");
        let mut sender = Mute::start(place, &["file", "send", &file, &called, "-vv"]);
        assert_eq!(receiver.end().code, Some(0), "{place:?}");
        assert_eq!(sender.child.wait().expect("it ends").code(), Some(0), "{place:?}");

        let port = free_port();
        let address = format!("127.0.0.1:{port}");
        let probed = Mute::start(place, &["probe", "--listen", &address, "-vv"]);
        let uri = format!("srt://{address}");
        let mut probe = Program::start(&["probe", &uri]);
        probe.wait_for("the other end is Punctual and reports");
        probe.interrupt();
        assert_eq!(probed.end_by(interop::Signal::TERM), Some(0));

        let demo = Mute::start(place, &["demo", "--output", &folder.file("demo"), "-vv"]);
        sleep(Duration::from_millis(500));
        assert_eq!(demo.end_by(interop::Signal::INT), Some(1), "stopped before the end");
    }
}

#[test]
fn probes_and_sweeps_are_done_although_nobody_takes_messages_and_results() {
    for place in [Place::Gone, Place::Full, Place::Stalled] {
        let folder = Folder::new("mute-results");
        let plan = folder.file("tiny.toml");
        std::fs::write(&plan, crate::lab::plan()).expect("the folder can be written");
        let results = folder.file("results");
        let sweep = Mute::start(place, &["lab", "run", &plan, "--output", &results, "-vv"]);
        let (mut listener, uri) = probe_listener();
        let probe = [&["probe", &uri, "--soak", "0", "-vv"], crate::probe::QUICK].concat();
        let probe = Mute::start(place, &probe);
        listener.wait_for("packets arrived");
        assert_eq!(listener.end().code, Some(0), "{place:?}");
        // Their results are lost on a full disk.
        let code = if let Place::Full = place { 1 } else { 0 };
        assert_eq!(probe.end_with_result(place), Some(code), "{place:?}");
        assert_eq!(sweep.end_with_result(place), Some(code), "{place:?}");
        let written = std::fs::read_to_string(folder.file("results/results.csv"));
        assert_eq!(rows(&written.expect("it is there")).len(), 4, "{place:?}");
    }
}

#[test]
fn signals_end_probes_and_sweeps_although_nobody_takes_messages() {
    for place in [Place::Gone, Place::Full, Place::Stalled] {
        let folder = Folder::new("mute-stopped");
        let plan = folder.file("tiny.toml");
        std::fs::write(&plan, crate::lab::plan()).expect("the folder can be written");
        let sweeps = ["2s", "60s"].map(|duration| {
            let results = folder.file(duration);
            let duration = format!("duration={duration}");
            let sweep = ["lab", "run", &plan, "--output", &results, "--backend", "net", "-vv"];
            Mute::start(place, &[&sweep[..], &["--set", &duration, "--repeats", "50"]].concat())
        });
        let (mut listener, uri) = probe_listener();
        let probe = Mute::start(place, &["probe", &uri, "-vv"]);
        listener.wait_for("connected");
        sleep(Duration::from_secs(2));
        let stopped = Instant::now();
        // Less was measured than a recommendation needs.
        assert_eq!(probe.end_by(interop::Signal::INT), Some(1), "{place:?}");
        let ended = listener.end();
        // It has told its listener, which need not find out.
        assert_eq!((ended.code, ended.stderr.contains("silent")), (Some(0), false), "{place:?}");
        assert!(stopped.elapsed() < SOON, "{place:?}: {:?}", stopped.elapsed());
        let [short, long] = sweeps;
        assert_eq!(short.end_by(interop::Signal::INT), Some(1), "runs under way are done");
        interop::send(long.child.id(), interop::Signal::INT);
        sleep(Duration::from_millis(500));
        assert_eq!(long.end_by(interop::Signal::INT), Some(130), "they are not waited for");
    }
}

/// The listening end of one probe, and its URI.
fn probe_listener() -> (Program, String) {
    let address = format!("127.0.0.1:{}", free_port());
    let mut listener = Program::start(&["probe", "--listen", &address, "--once"]);
    listener.wait_for("listening");
    (listener, format!("srt://{address}"))
}

#[test]
fn rows_without_room_are_told_once_and_the_stream_goes_on() {
    let folder = Folder::new("rows-without-room");
    let stats = folder.file("stats.csv");
    let port = free_port();
    let uri = format!("srt://127.0.0.1:{port}");
    let mut receiver = Program::start(&["receive", &format!("{uri}?mode=listener")]);
    receiver.wait_for("listening");
    let args =
        ["generate", &uri, "--sendrate", "1Mbps", "--statsfile", &stats, "--statsfreq", "50ms"];
    // The header and a few rows have room.
    let mut sender = Program::start_on_small_disk(6, &args);
    sender.wait_for("stats.csv: rows cannot be written and are left out: File too large");
    sleep(Duration::from_secs(1));
    sender.interrupt();
    let ended = sender.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stderr.matches("cannot be written").count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("rows could not be written"), "{}", ended.stderr);
    let received = receiver.end();
    assert!(received.stderr.contains("unrecovered 0"), "{}", received.stderr);
}

#[test]
fn a_caller_to_nobody_says_so_once_and_then_gathers_its_tries() {
    let uri = format!("srt://127.0.0.1:{}?conntimeo=100ms", free_port());
    let commands: [&[&str]; 3] = [
        &["generate", &uri, "--sendrate", "1Mbps", "--reconnect"],
        &["receive", &uri, "--reconnect"],
        &["file", "send", env!("CARGO_BIN_EXE_punctual"), &uri, "--reconnect"],
    ];
    let callers = commands.map(|command| (command, Program::start(command)));
    sleep(Duration::from_secs(4));
    for (command, caller) in callers {
        caller.interrupt();
        let stderr = caller.end().stderr;
        assert_eq!(stderr.matches("trying again").count(), 1, "{command:?}: {stderr}");
    }
}

#[test]
fn a_result_that_cannot_be_written_is_an_error_and_a_reader_may_leave() {
    let start = |args: &[&str], stdout: Stdio| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
        let child = command.args(args).stdout(stdout).stderr(Stdio::piped()).spawn();
        let output = child.and_then(Child::wait_with_output).expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let commands: [&[&str]; 7] = [
        &["uri"],
        &["options"],
        &["completions", "bash"],
        &["latency", "--rtt", "40ms", "--loss", "1%"],
        &["model", "--rate", "5Mbps", "--rtt", "40ms", "--loss", "1%"],
        &["lab", "list"],
        &["lab", "show", "retransmission-policies"],
    ];
    for args in commands {
        let (code, stderr) = start(args, Place::Full.open().0);
        assert_eq!(code, Some(1), "{args:?}");
        assert!(stderr.contains("standard output: No space left on device"), "{args:?}: {stderr}");
        assert_eq!(start(args, Place::Gone.open().0), (Some(0), String::new()), "{args:?}");
    }
}

#[test]
fn a_result_waits_for_its_reader_until_a_signal_comes() {
    let port = free_port();
    let listen = format!("127.0.0.1:{port}");
    let emulator = Mute::start(Place::Stalled, &["emulate", &listen, "127.0.0.1:9"]);
    interop::wait_until_bound(port);
    assert_eq!(emulator.end_by(interop::Signal::INT), Some(0));
}

#[test]
fn a_stream_to_standard_output_that_nobody_reads_ends_on_one_signal() {
    let port = free_port();
    let from = format!("srt://127.0.0.1:{port}?mode=listener");
    let route = Mute::start(Place::Stalled, &["route", &from, "-"]);
    let mut sender =
        Program::start(&["generate", &format!("srt://127.0.0.1:{port}"), "--sendrate", "1Mbps"]);
    sender.wait_for("connected");
    sleep(Duration::from_secs(1));
    // The stream was not written as a whole.
    assert_eq!(route.end_by(interop::Signal::TERM), Some(1));
}

#[test]
fn messages_left_out_of_a_stalled_pipe_are_counted_at_their_place() {
    let (mut reader, writer) = pipe().expect("a pipe");
    fill(&writer);
    let port = free_port();
    let uri = format!("srt://127.0.0.1:{port}?mode=listener");
    let mut receiver = Command::new(env!("CARGO_BIN_EXE_punctual"))
        .args(["receive", &uri, "--printmsg"])
        .stdout(Stdio::from(writer.try_clone().expect("it can be cloned")))
        .stderr(Stdio::from(writer))
        .spawn()
        .expect("the program starts");
    let called = format!("srt://127.0.0.1:{port}?conntimeo=20s");
    // 45 bytes are printed for each message.
    let stream = ["--sendrate", "40Mbps", "--msgsize", "316", "--num", "40000"];
    let sender = Program::start(&[&["generate", &called], &stream[..]].concat());
    assert_eq!(sender.end().code, Some(0));
    let read = thread::spawn(move || {
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("messages are text");
        text
    });
    receiver.wait().expect("it ends");
    let text = read.join().expect("it reads");
    assert!(text.contains("messages are missing here"), "{} bytes", text.len());
}

/// The end of a program whose other end has ended.
const SOON: Duration = Duration::from_secs(10);
