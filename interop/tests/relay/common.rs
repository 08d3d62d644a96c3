//! Publishers and viewers of the tests, and the judgement on what a viewer got.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use interop::{Folder, Process, Relay, Turns};
use punctual_mpegts::{Checker, PACKET_LEN, Packet};

/// More tests at a time would make packets late: the programs are debug builds.
pub(crate) static TURNS: Turns = Turns::new(2);

/// Tells FFmpeg to publish the demo clip in a loop.
pub(crate) fn publish(_relay: &Relay, name: &str, uri: &str, folder: &Folder) -> Process {
    let clip = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/clip.ts");
    let mut ffmpeg = ffmpeg();
    ffmpeg.args(["-loglevel", "error", "-re", "-stream_loop", "-1", "-i", clip]);
    ffmpeg.args(["-map", "0", "-c", "copy", "-f", "mpegts"]).arg(format!("{uri}&pkt_size=1316"));
    Process::start(name, ffmpeg, folder)
}

/// Tells FFmpeg to decode a stream for this number of seconds, and to say all that is wrong.
pub(crate) fn decode(name: &str, uri: &str, seconds: u32, folder: &Folder) -> Process {
    let mut ffmpeg = ffmpeg();
    ffmpeg.args(["-loglevel", "level+warning", "-i", uri, "-t", &seconds.to_string()]);
    ffmpeg.args(["-f", "null", "-"]);
    Process::start(name, ffmpeg, folder)
}

/// Asserts that a decoder found no fault in its packets and pictures.
pub(crate) fn assert_decoded(log: &str) {
    for fault in ["Continuity", "orrupt", "error while decoding", "concealing", "non-existing"] {
        assert!(!log.contains(fault), "the decoder says {fault:?}:\n{log}");
    }
}

pub(crate) fn ffmpeg() -> Command {
    let mut command = Command::new("ffmpeg");
    command.args(["-hide_banner", "-nostdin", "-nostats"]);
    command
}

/// Tells libsrt's own program to write a stream to a file.
pub(crate) fn record(name: &str, uri: &str, output: &Path, folder: &Folder) -> Process {
    let mut command = Command::new("srt-live-transmit");
    command.args(["-a:no", "-v", "-chunk:1316", uri, "file://con"]);
    Process::start_with_output(name, command, folder, Some(output))
}

/// Asserts that the packets of each PID in `received` are a part of those in `sent`, without a
/// gap, and at least `least` packets in all.
pub(crate) fn assert_same_packets(received: &[u8], sent: &[u8], least: usize) {
    let (received, sent) = (by_pid(received), by_pid(sent));
    let count: usize = received.values().map(Vec::len).sum();
    assert!(count >= least, "{count} packets, {least} wanted");
    for (pid, packets) in &received {
        let all = sent.get(pid).unwrap_or_else(|| panic!("nobody sent PID {pid:#x}"));
        let is_part = all.windows(packets.len()).any(|part| part == packets);
        assert!(is_part, "PID {pid:#x}: {} packets are no part of those sent", packets.len());
    }
}

/// The packets of each PID.
pub(crate) fn by_pid(bytes: &[u8]) -> BTreeMap<u16, Vec<&[u8; PACKET_LEN]>> {
    let mut all: BTreeMap<u16, Vec<_>> = BTreeMap::new();
    for bytes in bytes.as_chunks::<PACKET_LEN>().0 {
        let packet = Packet::new(bytes).expect("a viewer gets packets");
        all.entry(packet.pid()).or_default().push(bytes);
    }
    all
}

/// Asserts that no counter and no clock jumps in a stream that was received, and that it has at
/// least this number of packets.
pub(crate) fn assert_continuous(bytes: &[u8], least: u64) {
    let mut checker = Checker::default();
    checker.push(bytes);
    let report = checker.report();
    let total = report.total();
    assert!(report.packets >= least, "{} packets, {least} wanted", report.packets);
    assert_eq!((report.sync_losses, report.skipped_bytes), (0, 0), "{report:?}");
    assert_eq!((total.continuity_errors, total.pcr_discontinuities), (0, 0), "{report:?}");
}

/// Three seconds of the clip, in whole messages.
pub(crate) const WANTED: usize = 1_900_000 / MESSAGE * MESSAGE;

/// Seven packets of a transport stream.
const MESSAGE: usize = 1_316;

/// Asserts that a viewer got [`WANTED`] bytes of what was sent, without a gap.
pub(crate) fn assert_got_its_part(output: &Path, sent: &[u8]) {
    let received = fs::read(output).expect("it received something");
    println!("{}: {} bytes", output.display(), received.len());
    let whole = received.len().min(WANTED) / PACKET_LEN * PACKET_LEN;
    assert_same_packets(&received[..whole], sent, WANTED / PACKET_LEN);
}

/// The port and the certificate's hash of the relay's listener with this number.
pub(crate) fn listener(relay: &Relay, number: usize) -> (u16, Option<String>) {
    let listener = relay.json("/v1/server")["listeners"][number].clone();
    let address = listener["address"].as_str().and_then(|it| it.parse::<SocketAddr>().ok());
    let port = address.expect("a listener has an address").port();
    (port, listener["certhash"].as_str().map(str::to_owned))
}
