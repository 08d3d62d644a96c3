//! `punctual file`: transfers that are stopped, refused or without room, and ends that adapt.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;

use crate::files::{assert_well, contents, wait_for_part};
use crate::program::{Ended, Folder, Program, free_port, rows, run};

/// A transfer of `bytes` bytes at 4 Mb/s, in the middle: the sender and the receiver, each with its
/// options.
fn in_the_middle(folder: &Folder, bytes: usize, [sends, receives]: [&[&str]; 2]) -> [Program; 2] {
    let (source, target) = (folder.file("clip.ts"), folder.file("target"));
    fs::write(&source, contents(bytes, 3)).expect("a file");
    let port = free_port();
    let receive = ["file", "receive", &format!("srt://:{port}"), &target];
    let mut receiver = Program::start(&[&receive[..], receives].concat());
    receiver.wait_for("listening");
    let call = format!("srt://127.0.0.1:{port}?maxbw=4Mbps");
    let send = ["file", "send", &source, &call, "--segment", "50000"];
    let sender = Program::start(&[&send, sends].concat());
    wait_for_part(&target, 100_000);
    [sender, receiver]
}

#[test]
fn an_interrupted_end_tells_the_other_end_at_once() {
    // Of the smaller file all waits in the send buffer, the larger one is still read.
    for bytes in [4_000_000, 30_000_000] {
        for protocol in [&[][..], &["--protocol", "segments"], &["--protocol", "stream"]] {
            for interrupted in [0, 1] {
                let folder = Folder::new("file-interrupted");
                let ends = in_the_middle(&folder, bytes, [protocol; 2]);
                ends[interrupted].interrupt();
                let ends = ends.map(Program::end);
                let why = format!("{bytes} {protocol:?} {interrupted}: {ends:?}");
                assert_eq!(ends.each_ref().map(|end| end.code), [Some(1), Some(1)], "{why}");
                assert!(
                    ends[interrupted].stderr.contains("stopped before everything had arrived"),
                    "{why}"
                );
                // It would be silent for five seconds else.
                let told = ["the other end left", "the sender left", "gave up in the middle"];
                let other = &ends[1 - interrupted].stderr;
                assert!(told.iter().any(|told| other.contains(told)), "{why}");
                assert!(!Path::new(&folder.file("target/clip.ts")).exists(), "{why}");
                wait_for_part(&folder.file("target"), 100_000);
            }
        }
    }
}

#[test]
fn an_interrupted_end_writes_a_last_row_of_statistics() {
    for interrupted in [0, 1] {
        let folder = Folder::new("file-interrupted-statistics");
        let files = ["sender.csv", "receiver.csv"].map(|name| folder.file(name));
        // No row is due before the end.
        let options = files.each_ref().map(|file| ["--statsfile", file, "--statsfreq", "600s"]);
        let ends = in_the_middle(&folder, 30_000_000, options.each_ref().map(|all| &all[..]));
        ends[interrupted].interrupt();
        let ends = ends.map(Program::end);
        for (file, count) in files.iter().zip(["pktSent", "pktRecv"]) {
            let csv = fs::read_to_string(file).expect("the file of statistics");
            let rows = rows(&csv);
            assert_eq!(rows.len(), 1, "{file}: {ends:?}");
            let packets: u64 = rows[0][count].parse().expect("a number");
            assert!(packets > 50, "{file}: {packets} packets");
        }
    }
}

#[test]
fn a_call_and_a_wait_that_are_interrupted_end_with_the_truth() {
    let folder = Folder::new("file-interrupted-call");
    let source = folder.file("clip.ts");
    fs::write(&source, "clip").expect("a file");
    let deaf = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let call = format!("srt://{}?conntimeo=60000", deaf.local_addr().expect("it has one"));
    let caller = Program::start(&["file", "send", &source, &call]);
    deaf.recv(&mut [0; 2_048]).expect("it calls");
    caller.interrupt();
    let listen = format!("srt://:{}", free_port());
    let mut listener = Program::start(&["file", "receive", &listen, &folder.file("target")]);
    listener.wait_for("listening");
    listener.interrupt();
    for (end, told) in [
        (caller, "stopped before the call was answered"),
        (listener, "stopped before anybody called"),
    ] {
        let end = end.end();
        assert_eq!(end.code, Some(1), "{}", end.stderr);
        assert!(end.stderr.contains(told), "{}", end.stderr);
    }
}

/// Sends `source` with these options and receives it with those; `calls` if the receiver does.
fn ends(folder: &Folder, calls: bool, send: &[&str], receive: &[&str]) -> [Ended; 2] {
    let (source, target) = (folder.file("clip.ts"), folder.file("target"));
    let port = free_port();
    let (listen, call) = (format!("srt://:{port}"), format!("srt://127.0.0.1:{port}"));
    let [from, to] = if calls { [&call, &listen] } else { [&listen, &call] };
    let receive = [&["file", "receive", from, &target], receive].concat();
    let send = [&["file", "send", &source, to], send].concat();
    let (first, second) = if calls { (send, receive) } else { (receive, send) };
    let mut first = Program::start(&first);
    first.wait_for("listening");
    let (second, first) = (run(&second, b""), first.end());
    if calls { [first, second] } else { [second, first] }
}

#[test]
fn a_receiver_takes_files_as_they_are_sent() {
    let folder = Folder::new("file-adapts");
    fs::write(folder.file("clip.ts"), contents(2_000_000, 7)).expect("a file");
    let stream = ["--protocol", "stream"];
    for (calls, send, receive, name) in [
        (false, &stream[..], &[][..], "clip.ts"),
        (false, &stream, &["--name", "a/b.ts"], "a/b.ts"),
        (true, &stream, &["--name", "c.ts"], "c.ts"),
        // A caller that asks for a stream gets the one file.
        (true, &[], &["--protocol", "stream", "--name", "d.ts"], "d.ts"),
        // These files have names of their own.
        (false, &["--protocol", "segments"], &["--name", "e.ts"], "clip.ts"),
    ] {
        assert_well(ends(&folder, calls, send, receive));
        let path = folder.file(&format!("target/{name}"));
        let same = fs::read(&path).expect("it came") == contents(2_000_000, 7);
        assert!(same, "{name}: not the same bytes");
        fs::remove_file(path).expect("it is there");
    }
}

#[test]
fn a_refused_sender_is_told_the_right_protocol() {
    let folder = Folder::new("file-refused");
    let (source, target) = (folder.file("clip.ts"), folder.file("target"));
    fs::write(&source, "clip").expect("a file");
    for (receives, sends, advice) in [
        ("stream", &[][..], "as a stream of bytes: --protocol stream"),
        ("segments", &["--protocol", "stream"], "leave --protocol stream out"),
    ] {
        let port = free_port();
        let listen = format!("srt://:{port}");
        let receive = ["file", "receive", &listen, &target, "--protocol", receives];
        let mut receiver = Program::start(&receive);
        receiver.wait_for("listening");
        let call = format!("srt://127.0.0.1:{port}");
        let sent = run(&[&["file", "send", &source, &call], sends].concat(), b"");
        assert_eq!(sent.code, Some(3), "{}", sent.stderr);
        assert!(sent.stderr.contains(advice), "{}", sent.stderr);
    }
}

#[test]
fn a_full_disk_ends_both_ends_that_reconnect() {
    let folder = Folder::new("disk-full-again");
    let (source, target) = (folder.file("large"), folder.file("target"));
    fs::write(&source, contents(10_000_000, 1)).expect("a file");
    let port = free_port();
    let (listen, call) = (format!("srt://:{port}"), format!("srt://127.0.0.1:{port}"));
    let receive = ["file", "receive", &listen, &target, "--reconnect"];
    let mut receiver = Program::start_on_small_disk(2_000, &receive);
    receiver.wait_for("listening");
    let sent = run(&["file", "send", &source, &call, "--reconnect"], b"");
    for end in [receiver.end(), sent] {
        assert_eq!(end.code, Some(1), "{}", end.stderr);
        assert!(end.stderr.contains("given up after 3 tries: make room"), "{}", end.stderr);
        assert_eq!(end.stderr.matches("connected with").count(), 3, "{}", end.stderr);
    }
}

#[test]
fn files_with_the_longest_names_arrive() {
    let folder = Folder::new("file-long-names");
    let (source, target) = (folder.file("source"), folder.file("target"));
    fs::create_dir(&source).expect("a folder");
    let names = [249, 250, 255].map(|length| "n".repeat(length));
    let names = names.iter().chain([&"日".repeat(85)]).cloned().collect::<Vec<_>>();
    for name in &names {
        fs::write(format!("{source}/{name}"), contents(100_000, 5)).expect("a file");
    }
    let port = free_port();
    let mut receiver = Program::start(&["file", "receive", &format!("srt://:{port}"), &target]);
    receiver.wait_for("listening");
    let sent = run(&["file", "send", &source, &format!("srt://127.0.0.1:{port}")], b"");
    assert_well([sent, receiver.end()]);
    for name in names {
        assert!(fs::read(format!("{target}/{name}")).expect("it came") == contents(100_000, 5));
    }
}
