//! Files: srt-file-transmit sends to us and receives from us, called and calling, in the clear and
//! encrypted, and every byte is the same.

#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "real programs run in real time")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use interop::{
    Folder, Process, Role, Tool, emulator, free_port, have_all, punctual, wait_until_bound,
};

/// Bytes of a large file.
const LARGE: usize = 200_000_000;
const SMALL: usize = 3_000_000;
/// Long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);

#[test]
fn srt_file_transmit_sends_200_mb_to_us() {
    send_to_us("srt_file_transmit_sends_200_mb_to_us", Role::Listener, LARGE, "");
}

/// The name is that of the stream ID, which srt-file-transmit sends where it calls. It sets the
/// stream ID after it has begun to call, so that a fast listener receives a call without one.
#[test]
fn srt_file_transmit_sends_to_us_without_a_name() {
    if !have_all(&[Tool::SrtLiveTransmit]) {
        return;
    }
    for attempt in 1.. {
        let bed =
            Bed::new(&format!("receiver_without_options_{attempt}"), Role::Listener, SMALL, "");
        let log = bed.run_and_log(receive(&bed), file_transmit(&file_uri(&bed.source), &bed.peer));
        match log {
            Ok(()) => return bed.assert_arrived("source.ts"),
            Err(log) if log.contains("stream ID does not say") && attempt < 5 => {}
            Err(log) => panic!("{log}"),
        }
    }
}

#[test]
fn srt_file_transmit_listens_and_sends_to_us_by_name() {
    if !have_all(&[Tool::SrtLiveTransmit]) {
        return;
    }
    let bed = Bed::new("receiver_with_a_name", Role::Caller, SMALL, "");
    let mut command = receive(&bed);
    command.args(["--name", "clip.ts"]);
    bed.run(command, file_transmit(&file_uri(&bed.source), &bed.peer));
    bed.assert_arrived("clip.ts");
}

#[test]
fn srt_file_transmit_receives_200_mb_from_us() {
    send_from_us("srt_file_transmit_receives_200_mb_from_us", Role::Caller, LARGE, "");
}

#[test]
fn srt_file_transmit_sends_to_us_when_we_call() {
    send_to_us("srt_file_transmit_sends_to_us_when_we_call", Role::Caller, SMALL, "");
}

#[test]
fn srt_file_transmit_receives_from_us_when_it_calls() {
    send_from_us("srt_file_transmit_receives_from_us_when_it_calls", Role::Listener, SMALL, "");
}

#[test]
fn files_are_encrypted_both_ways() {
    for length in [16, 24, 32] {
        let query = format!("?passphrase=correct-horse&pbkeylen={length}");
        let test = format!("files_are_encrypted_both_ways_{length}");
        send_to_us(&test, Role::Listener, SMALL, &query);
        send_from_us(&test, Role::Caller, SMALL, &query);
    }
}

#[test]
fn an_empty_file_and_one_that_fills_its_last_packet_arrive() {
    for size in [0, 1_456, 1_456_000] {
        let test = format!("an_empty_file_and_one_that_fills_its_last_packet_arrive_{size}");
        send_to_us(&test, Role::Listener, size, "");
        send_from_us(&test, Role::Caller, size, "");
    }
}

/// Over 200 ms and 2 % of loss each way, by FileCC and by delay, and from libsrt.
#[test]
fn every_byte_arrives_over_a_long_link_that_loses() {
    if !have_all(&[Tool::SrtLiveTransmit]) {
        return;
    }
    let link = ["--rtt", "200ms", "--loss", "2%", "--rate", "100Mbps"];
    for (name, query, rate) in [
        ("long_filecc", "?ratecontrol=file", None),
        ("long_delay", "", None),
        ("long_target", "", Some("50Mbps")),
    ] {
        let bed = Bed::over(name, &link, SMALL);
        let mut command = Command::new(punctual());
        let own = format!("{}{query}", bed.own);
        command.args(["file", "send"]).arg(&bed.source).args([&own, "--protocol", "stream"]);
        command.args(rate.into_iter().flat_map(|rate| ["--targetrate", rate]));
        bed.run(command, file_transmit(&bed.peer, &file_uri(&bed.target.join("clip.ts"))));
        bed.assert_arrived("source.ts");
    }
    let bed = Bed::over("long_from_libsrt", &link, SMALL / 4);
    let mut command = receive(&bed);
    command.args(["--protocol", "stream", "--name", "clip.ts"]);
    bed.run(command, file_transmit(&file_uri(&bed.source), &bed.peer));
    bed.assert_arrived("clip.ts");
}

/// srt-file-transmit sends, and we receive in this role.
fn send_to_us(test: &str, ours: Role, size: usize, query: &str) {
    if !have_all(&[Tool::SrtLiveTransmit]) {
        return;
    }
    let bed = Bed::new(test, ours, size, query);
    let mut command = Command::new(punctual());
    command.args(["file", "receive", &bed.own]).arg(&bed.target);
    command.args(["--protocol", "stream", "--name", "clip.ts"]);
    let peer = file_transmit(&file_uri(&bed.source), &bed.peer);
    bed.run(command, peer);
    bed.assert_arrived("clip.ts");
}

/// We send in this role, and srt-file-transmit receives.
fn send_from_us(test: &str, ours: Role, size: usize, query: &str) {
    if !have_all(&[Tool::SrtLiveTransmit]) {
        return;
    }
    let bed = Bed::new(test, ours, size, query);
    let mut command = Command::new(punctual());
    command.args(["file", "send"]).arg(&bed.source).args([&bed.own, "--protocol", "stream"]);
    let peer = file_transmit(&bed.peer, &file_uri(&bed.target.join("clip.ts")));
    bed.run(command, peer);
    // A listener calls the file as the caller's stream ID does.
    bed.assert_arrived(if ours == Role::Caller { "source.ts" } else { "clip.ts" });
}

/// A file to send, and where both ends find each other.
struct Bed {
    folder: Folder,
    ours: Role,
    /// The listener's port.
    port: u16,
    /// The emulated link to it, and the port of its other side.
    link: Option<(Vec<String>, u16)>,
    own: String,
    peer: String,
    source: PathBuf,
    target: PathBuf,
}

impl Bed {
    fn new(test: &str, ours: Role, size: usize, query: &str) -> Self {
        let folder = Folder::of(test);
        let (source, target) = (folder.file("source.ts"), folder.file("target"));
        fs::create_dir(&target).expect("a folder can be made");
        fs::write(&source, contents(size)).expect("a file can be written");
        let port = free_port();
        let uri = |role| match role {
            Role::Caller => format!("srt://127.0.0.1:{port}{query}"),
            Role::Listener => format!("srt://:{port}{query}"),
        };
        let (own, peer) = (uri(ours), uri(ours.other()));
        Self { folder, ours, port, link: None, own, peer, source, target }
    }

    /// We call over an emulated link.
    fn over(test: &str, link: &[&str], size: usize) -> Self {
        let bed = Self::new(test, Role::Caller, size, "");
        let calling = free_port();
        let link = link.iter().map(ToString::to_string).collect();
        Self { own: format!("srt://127.0.0.1:{calling}"), link: Some((link, calling)), ..bed }
    }

    fn start_link(&self) -> Option<Process> {
        let (link, calling) = self.link.as_ref()?;
        let link: Vec<&str> = link.iter().map(String::as_str).collect();
        let link = Process::start("link", emulator(*calling, self.port, &link), &self.folder);
        wait_until_bound(*calling);
        Some(link)
    }

    /// Runs both ends until they have ended with success.
    fn run(&self, own: Command, peer: Command) {
        self.run_and_log(own, peer).expect("our end ends with success");
    }

    /// Runs both ends until they have ended; the listener is started first. Fails with the log of
    /// our end if that fails.
    fn run_and_log(&self, own: Command, peer: Command) -> Result<(), String> {
        let start = |name, command| Process::start(name, command, &self.folder);
        let begin = Instant::now();
        let mut link = None;
        let (mut own, mut peer) = match self.ours {
            Role::Listener => {
                let own = start("punctual", own);
                wait_until_bound(self.port);
                (own, start("srt-file-transmit", peer))
            }
            Role::Caller => {
                let peer = start("srt-file-transmit", peer);
                wait_until_bound(self.port);
                link = self.start_link();
                (start("punctual", own), peer)
            }
        };
        if !own.wait(TIMEOUT).success() {
            return Err(own.log());
        }
        assert!(peer.wait(TIMEOUT).success());
        println!("both ends took {:?}", begin.elapsed());
        drop(link);
        Ok(())
    }

    fn assert_arrived(&self, name: &str) {
        let sent = fs::read(&self.source).expect("it was written");
        let received = fs::read(self.target.join(name)).expect("it came");
        assert_eq!(received.len(), sent.len());
        assert!(received == sent, "not the same bytes");
    }
}

/// Our end, which was told no more than the address and the folder.
fn receive(bed: &Bed) -> Command {
    let mut command = Command::new(punctual());
    command.args(["file", "receive", &bed.own]).arg(&bed.target);
    command
}

fn file_transmit(from: &str, to: &str) -> Command {
    let mut command = Command::new("srt-file-transmit");
    command.args([from, to]);
    command
}

fn file_uri(path: &Path) -> String {
    format!("file://{}", path.display())
}

/// Bytes that no other part of the file is like.
fn contents(len: usize) -> Vec<u8> {
    let mut whole = Vec::with_capacity(len + 8);
    let mut state = 1_u64;
    while whole.len() < len {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        whole.extend_from_slice(&(state >> 11).to_be_bytes());
    }
    whole.truncate(len);
    whole
}
