//! Wireshark's dissector, which is nobody's implementation of SRT, finds nothing wrong with what we
//! put on the wire.

#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "real programs run in real time")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use std::{fs, str};

use interop::{
    Clip, End, Folder, Process, Program, Role, Tap, Tool, free_port, have_all, wait_until_bound,
};

/// A session of our program with itself, with losses and pauses, so that every kind of packet of a
/// live stream occurs.
#[test]
fn every_packet_of_a_session_is_well_formed() {
    if !have_all(&[Tool::Ffmpeg, Tool::Tshark]) {
        return;
    }
    let folder = Folder::of("every_packet_of_a_session_is_well_formed");
    let capture = folder.file("session.pcap");
    let received = folder.file("received.ts");
    let port = free_port();
    let (command, _) = Program::Punctual.receiver(&End::new(Role::Listener, port), &received);
    let receiver = Process::start("receiver", command, &folder);
    wait_until_bound(port);
    let tap = Tap::start(port, 40, &capture);
    let end = End::new(Role::Caller, tap.port()).with_stream_id(STREAM_ID);
    let command = Program::Punctual.sender(&end, &folder.file("reference.ts"));
    let mut sender = Process::start("sender", command, &folder);
    let feed = Clip::get().feed(sender.stdin());
    wait_for_size(&received, 3_000_000);
    drop(feed);
    // The sender ends with its input and says so to the receiver.
    sender.wait(Duration::from_secs(10));
    drop(receiver);
    tap.stop();

    let not_understood = dissect(&capture, port, "!srt", &["frame.number"]);
    assert_eq!(not_understood, "", "frames that are not SRT");
    let wrong = "_ws.malformed || _ws.expert.severity >= 6291456";
    let malformed = dissect(&capture, port, wrong, &["frame.number", "_ws.expert.message"]);
    assert_eq!(malformed, "", "frames with something wrong");

    let kinds = dissect(&capture, port, "srt.iscontrol == 1", &["srt.type"]);
    let kinds: BTreeSet<&str> = kinds.lines().collect();
    for (name, kind) in CONTROL_TYPES {
        assert!(kinds.contains(kind), "no {name} in the capture: {kinds:?}");
    }
    let again = dissect(&capture, port, "srt.msg.rexmit == 1", &["frame.number"]);
    assert!(again.lines().count() > 10, "hardly any retransmission in the capture");
    let ids = dissect(&capture, port, "srt.hs.sid", &["srt.hs.sid"]);
    assert_eq!(ids.lines().next(), Some(STREAM_ID));
}

/// The chosen fields of the packets that the filter selects, as tshark prints them.
fn dissect(capture: &Path, port: u16, filter: &str, fields: &[&str]) -> String {
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(capture).args(["-d", &format!("udp.port=={port},srt")]);
    // A heuristic would take the flow for UDT, SRT's ancestor.
    tshark.args(["--disable-protocol", "udt", "-Y", filter, "-T", "fields"]);
    for field in fields {
        tshark.args(["-e", field]);
    }
    let output = tshark.output().expect("tshark is installed");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{tshark:?}: {errors}");
    str::from_utf8(&output.stdout).expect("tshark prints text").to_owned()
}

fn wait_for_size(path: &Path, size: u64) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while fs::metadata(path).map_or(0, |file| file.len()) < size {
        assert!(Instant::now() < deadline, "the stream does not arrive");
        thread::sleep(Duration::from_millis(50));
    }
}

const STREAM_ID: &str = "#!::r=live/camera1,m=publish";

/// The control types of a live session, as tshark numbers them.
const CONTROL_TYPES: [(&str, &str); 5] = [
    ("handshake", "0x0000"),
    ("ACK", "0x0002"),
    ("NAK", "0x0003"),
    ("SHUTDOWN", "0x0005"),
    ("ACKACK", "0x0006"),
];
