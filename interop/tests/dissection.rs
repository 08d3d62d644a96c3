//! Wireshark's dissectors, which implement neither SRT nor QUIC, find no fault in our packets.

#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "real programs run in real time")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use std::{fs, str};

use interop::{
    Clip, End, Folder, Process, Program, Role, Tap, Tool, bridge_certificate, free_port, have_all,
    wait_until_bound,
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

    let dissect = |filter, fields| dissect(&capture, &as_srt(port), filter, fields);
    let not_understood = dissect("!srt", &["frame.number"]);
    assert_eq!(not_understood, "", "frames that are not SRT");
    let malformed = dissect(WRONG, &["frame.number", "_ws.expert.message"]);
    assert_eq!(malformed, "", "frames with something wrong");

    let kinds = dissect("srt.iscontrol == 1", &["srt.type"]);
    let kinds: BTreeSet<&str> = kinds.lines().collect();
    for (name, kind) in CONTROL_TYPES {
        assert!(kinds.contains(kind), "no {name} in the capture: {kinds:?}");
    }
    let again = dissect("srt.msg.rexmit == 1", &["frame.number"]);
    assert!(again.lines().count() > 10, "hardly any retransmission in the capture");
    let ids = dissect("srt.hs.sid", &["srt.hs.sid"]);
    assert_eq!(ids.lines().next(), Some(STREAM_ID));
}

/// A session over QUIC with losses, decrypted by the secrets that the caller has logged.
#[test]
fn every_packet_of_a_session_over_quic_is_well_formed() {
    if !have_all(&[Tool::Ffmpeg, Tool::Tshark]) {
        return;
    }
    let folder = Folder::of("every_packet_of_a_session_over_quic_is_well_formed");
    let (capture, secrets) = (folder.file("session.pcap"), folder.file("secrets.log"));
    let received = folder.file("received.ts");
    let port = free_port();
    let (certificate, key) = bridge_certificate();
    let options = format!("cert={}&key={}", certificate.display(), key.display());
    let end = End::new(Role::Listener, port).with_scheme("srt+quic").with_options(&options);
    let (command, _) = Program::Punctual.receiver(&end, &received);
    let receiver = Process::start("receiver", command, &folder);
    wait_until_bound(port);
    let tap = Tap::start(port, 40, &capture);
    let end = End::new(Role::Caller, tap.port());
    let end = end.with_scheme("srt+quic").with_options("insecure=1");
    let mut command = Program::Punctual.sender(&end, &folder.file("reference.ts"));
    command.env("SSLKEYLOGFILE", &secrets);
    let mut sender = Process::start("sender", command, &folder);
    let feed = Clip::get().feed(sender.stdin());
    wait_for_size(&received, 3_000_000);
    drop(feed);
    sender.wait(Duration::from_secs(10));
    drop(receiver);
    tap.stop();

    let options = ["-d", &format!("udp.port=={port},quic")].map(str::to_owned);
    let secrets = format!("tls.keylog_file:{}", secrets.display());
    let options = [&options[..], &["-o".to_owned(), secrets]].concat();
    let dissect = |filter, fields| dissect(&capture, &options, filter, fields);
    let wrong = format!("!quic || quic.decryption_failed || {WRONG}");
    let wrong = dissect(&wrong, &["frame.number", "_ws.expert.message"]);
    assert_eq!(wrong, "", "frames with something wrong");
    let datagrams = dissect("quic.frame_type == 0x30 || quic.frame_type == 0x31", &["quic.dg"]);
    assert!(datagrams.lines().count() > 2_000, "hardly any DATAGRAM frame in the capture");
    let protocol = dissect("tls.handshake.type == 8", &["tls.handshake.extensions_alpn_str"]);
    assert_eq!(protocol.trim(), "punctual-srt");
}

/// Packets that the dissectors find malformed or in error.
const WRONG: &str = "_ws.malformed || _ws.expert.severity >= 6291456";

/// tshark's options for SRT on this port.
fn as_srt(port: u16) -> Vec<String> {
    // A heuristic would take the flow for UDT, SRT's ancestor.
    ["-d", &format!("udp.port=={port},srt"), "--disable-protocol", "udt"].map(str::to_owned).into()
}

/// The chosen fields of the packets that the filter selects, as tshark prints them.
fn dissect(capture: &Path, options: &[String], filter: &str, fields: &[&str]) -> String {
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(capture).args(options).args(["-Y", filter, "-T", "fields"]);
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
