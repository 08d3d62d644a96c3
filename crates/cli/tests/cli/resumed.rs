//! Streams that go on after outages, and after both ends were killed and started again.

use std::fs::{self, File};
use std::io::Write;
use std::net::UdpSocket;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use crate::program::{Folder, Program, free_port, is_installed, run};

/// A file that another program writes, 10 Mb/s.
struct GrowingFile {
    is_complete: Arc<AtomicBool>,
    writer: JoinHandle<Vec<u8>>,
}

impl GrowingFile {
    fn begin(path: String) -> Self {
        let mut file = File::create(&path).expect("it is created");
        let is_complete = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_complete);
        let writer = thread::spawn(move || {
            let mut all = Vec::new();
            for number in 0_u32.. {
                let part: Vec<u8> =
                    (0..6_250_u32).flat_map(|at| (at ^ number).to_be_bytes()).collect();
                file.write_all(&part).expect("it is written");
                all.extend(part);
                if ends.load(Ordering::Relaxed) {
                    break;
                }
                sleep(Duration::from_millis(20));
            }
            fs::write(format!("{path}.done"), "").expect("it is written");
            all
        });
        Self { is_complete, writer }
    }

    /// Ends the file, and returns its bytes.
    fn complete(self) -> Vec<u8> {
        self.is_complete.store(true, Ordering::Relaxed);
        self.writer.join().expect("it is written")
    }
}

/// The two routes of a stream from a file that grows to a recording.
struct Routes {
    folder: Folder,
    port: u16,
}

impl Routes {
    fn new(name: &str) -> Self {
        Self { folder: Folder::new(name), port: free_port() }
    }

    fn sender(&self) -> Program {
        let file = self.folder.file("in.bin");
        let source = format!("file://{file}?grow=wait&marker={file}.done");
        let call = format!("srt://127.0.0.1:{}?transtype=stream&peeridletimeo=1s", self.port);
        let spool = self.folder.file("spool");
        Program::start(&["route", &source, &call, "--reconnect", "--spool", &spool])
    }

    fn receiver(&self) -> Program {
        let listen = format!(
            "srt://127.0.0.1:{}?mode=listener&transtype=stream&peeridletimeo=1s",
            self.port
        );
        let copy = self.folder.file("out.bin");
        let mut receiver = Program::start(&["route", &listen, &copy, "--reconnect", "--append"]);
        receiver.wait_for("listening");
        receiver
    }

    /// Waits until the stream goes on: half a megabyte more has arrived.
    fn wait_for_more(&self) {
        let copy = self.folder.file("out.bin");
        let size = || fs::metadata(&copy).map_or(0, |file| file.len());
        let (before, deadline) = (size(), Instant::now() + Duration::from_secs(60));
        while size() < before + 500_000 {
            assert!(Instant::now() < deadline, "the stream does not go on");
            sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn both_ends_are_killed_and_no_byte_is_lost_or_comes_twice() {
    let routes = Routes::new("resumed-killed");
    let file = GrowingFile::begin(routes.folder.file("in.bin"));
    let (mut receiver, mut sender) = (routes.receiver(), routes.sender());
    for _ in 0..2 {
        routes.wait_for_more();
        sender.kill();
        sender = routes.sender();
        routes.wait_for_more();
        receiver.kill();
        receiver = routes.receiver();
    }
    // In good order as well.
    sender.wait_for("goes on at byte");
    sender.interrupt();
    let stopped = sender.end();
    assert_eq!(stopped.code, Some(0), "{}", stopped.stderr);
    assert!(stopped.stderr.contains("goes on with the next start"), "{}", stopped.stderr);
    let written = file.complete();
    let ended = routes.sender().end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    receiver.interrupt();
    assert_eq!(receiver.end().code, Some(0));
    let copy = fs::read(routes.folder.file("out.bin")).unwrap();
    assert!(copy == written, "{} bytes", copy.len());
    assert!(!Path::new(&routes.folder.file("spool")).exists(), "the whole stream is confirmed");
}

#[test]
fn strangers_change_nothing_between_two_connections_of_a_stream() {
    let routes = Routes::new("resumed-strangers");
    let file = GrowingFile::begin(routes.folder.file("in.bin"));
    let (mut receiver, sender) = (routes.receiver(), routes.sender());
    routes.wait_for_more();
    sender.kill();
    receiver.wait_for("waiting for it to come back");
    let copy = || fs::read(routes.folder.file("out.bin")).unwrap();
    let before = copy();
    let foreign = routes.folder.file("foreign.bin");
    fs::write(&foreign, [0xEE; 500_000]).unwrap();
    let port = routes.port;
    // One that resumes a stream of its own, one that sends frames alone, and one bytes alone.
    for (keys, reconnects) in [("", true), ("", false), ("&framing=off", false)] {
        let call = format!("srt://127.0.0.1:{port}?transtype=stream{keys}");
        if reconnects {
            let mut stranger = Program::start(&["route", &foreign, &call, "--reconnect"]);
            stranger.wait_for("the peer refuses this end");
            stranger.kill();
        } else {
            let ended = Program::start(&["route", &foreign, &call]).end();
            assert!(ended.stderr.contains("connected"), "{}", ended.stderr);
        }
    }
    receiver.wait_for("out.bin.resume and start this end again");
    assert!(copy() == before, "a stranger's bytes are in the recording");
    // A new start of the receiver does not forget the sender.
    receiver.kill();
    let receiver = routes.receiver();
    let written = file.complete();
    let ended = routes.sender().end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    receiver.interrupt();
    assert_eq!(receiver.end().code, Some(0));
    assert!(copy() == written);
}

#[test]
fn a_stream_goes_on_after_an_outage() {
    let folder = Folder::new("resumed-outage");
    let [file, copy] = ["in.bin", "out.bin"].map(|name| folder.file(name));
    let growing = GrowingFile::begin(file.clone());
    let (port, relay) = (free_port(), free_port());
    let keys = "transtype=stream&peeridletimeo=1s";
    let listen = format!("srt://127.0.0.1:{port}?mode=listener&{keys}");
    let mut receiver = Program::start(&["route", &listen, &copy, "--reconnect"]);
    receiver.wait_for("listening");
    let mut link = Program::start(&[
        "emulate",
        &format!("127.0.0.1:{relay}"),
        &format!("127.0.0.1:{port}"),
        "--at",
        "2s: outage 2s",
    ]);
    link.wait_for("relaying");
    let source = format!("file://{file}?grow=wait&marker={file}.done");
    // From one port: each client of the relay has a link with a time of its own.
    let call = format!("srt://127.0.0.1:{relay}?{keys}&port={}", free_port());
    let mut sender = Program::start(&["route", &source, &call, "--reconnect"]);
    sender.wait_for("goes on at byte");
    let written = growing.complete();
    let ended = sender.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    receiver.interrupt();
    assert_eq!(receiver.end().code, Some(0));
    link.interrupt();
    assert!(fs::read(copy).unwrap() == written);
}

#[test]
fn a_live_source_that_finds_no_room_is_counted() {
    let (port, source) = (free_port(), free_port());
    let listen = format!("srt://127.0.0.1:{port}?mode=listener&transtype=stream&peeridletimeo=1s");
    let sink = UdpSocket::bind("127.0.0.1:0").expect("loopback works");
    let to = format!("udp://{}", sink.local_addr().expect("loopback works"));
    let mut receiver = Program::start(&["route", &listen, &to, "--reconnect"]);
    receiver.wait_for("listening");
    let call = format!("srt://127.0.0.1:{port}?transtype=stream&peeridletimeo=1s");
    let from = format!("udp://127.0.0.1:{source}");
    let mut sender =
        Program::start(&["route", &from, &call, "--reconnect", "--spool-memory", "1MiB"]);
    sender.wait_for("connected");
    receiver.kill();
    let input = UdpSocket::bind("127.0.0.1:0").expect("loopback works");
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(2) {
        input.send_to(&[7; 1_316], ("127.0.0.1", source)).expect("loopback works");
        sleep(Duration::from_millis(1));
    }
    sender.wait_for("the spool is full: messages are discarded");
    sender.interrupt();
    let ended = sender.end();
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("messages, "), "{}", ended.stderr);
    assert!(ended.stderr.contains("bytes are not confirmed and lost"), "{}", ended.stderr);
}

#[test]
fn a_spool_that_cannot_be_used_is_explained() {
    let folder = Folder::new("resumed-wrong");
    let [file, spool, foreign] = ["in.bin", "spool", "foreign"].map(|name| folder.file(name));
    fs::write(&file, [7; 1_000]).unwrap();
    fs::write(&foreign, "not a spool").unwrap();
    let call = "srt://127.0.0.1:9?transtype=stream";
    let live = "srt://127.0.0.1:9";
    for (args, code, expected) in [
        (&[&file, call, "--spool", &spool][..], 2, "--reconnect"),
        (&[&file, live, "--reconnect", "--spool", &spool], 2, "transtype=stream"),
        (&[&file, call, call, "--reconnect", "--spool", &spool], 2, "exactly one destination"),
        (&[&file, call, "--reconnect", "--spool-memory", "1kB"], 2, "at least 1MiB"),
        (&[&file, call, "--reconnect", "--spool", &spool, "--loop"], 2, "--loop"),
        (&[&file, call, "--reconnect", "--spool", &foreign], 1, "no spool of Punctual"),
    ] {
        let ended = run(&[&["route"], args].concat(), b"");
        assert_eq!(ended.code, Some(code), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{args:?}: {}", ended.stderr);
    }
    assert_eq!(fs::read(foreign).unwrap(), b"not a spool");
}

#[test]
fn a_recording_goes_on_when_its_full_disk_has_room_again() {
    if !is_installed("prlimit") {
        return;
    }
    let folder = Folder::new("resumed-full-recording");
    let [file, copy] = ["in.bin", "out.bin"].map(|name| folder.file(name));
    let bytes: Vec<u8> = (0..700_000_u32).flat_map(u32::to_be_bytes).collect();
    fs::write(&file, &bytes).unwrap();
    let port = free_port();
    let listen = format!("srt://127.0.0.1:{port}?mode=listener&transtype=stream");
    let receive = ["route", &listen, &copy, "--reconnect", "--append"];
    let mut receiver = Program::start_on_small_disk(1_000, &receive);
    receiver.wait_for("listening");
    let call = format!("srt://127.0.0.1:{port}?transtype=stream");
    let sender = Program::start(&["route", &file, &call, "--reconnect", "--pace", "none"]);
    receiver.wait_for("trying again once a second");
    receiver.make_room();
    receiver.wait_for("the recording goes on");
    let ended = sender.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    receiver.interrupt();
    let ended = receiver.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(fs::read(copy).unwrap() == bytes);
}

#[test]
fn a_sender_whose_spool_is_on_a_full_disk_waits_for_room() {
    if !is_installed("prlimit") {
        return;
    }
    let folder = Folder::new("resumed-full-spool");
    let [file, copy, spool] = ["in.bin", "out.bin", "spool"].map(|name| folder.file(name));
    let bytes: Vec<u8> = (0..700_000_u32).flat_map(u32::to_be_bytes).collect();
    fs::write(&file, &bytes).unwrap();
    let port = free_port();
    let listen = format!("srt://127.0.0.1:{port}?mode=listener&transtype=stream");
    let mut receiver = Program::start(&["route", &listen, &copy, "--reconnect"]);
    receiver.wait_for("listening");
    let call = format!("srt://127.0.0.1:{port}?transtype=stream");
    let send = ["route", &file, &call, "--reconnect", "--spool", &spool, "--pace", "none"];
    let mut sender = Program::start_on_small_disk(1_000, &send);
    sender.wait_for("the source waits until it is written");
    sender.make_room();
    sender.wait_for("the spool is written again");
    let ended = sender.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    receiver.interrupt();
    assert_eq!(receiver.end().code, Some(0));
    assert!(fs::read(copy).unwrap() == bytes);
}
