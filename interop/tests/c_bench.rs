//! The bench's C program, compiled once against libsrt, counts the same on libsrt and on Punctual's
//! C library, each as sender and as receiver: with blocking calls and with epoll, with a UDP port
//! for each stream and with one for all, in the clear and encrypted.

#![forbid(unsafe_code)]

use std::time::Duration;

use interop::{CProgram, Folder, SrtLibrary, Tool, free_port, retry_if_stalled};

use SrtLibrary::{Libsrt, Punctual};

#[test]
fn libsrt_to_libsrt() {
    count("bench_libsrt_to_libsrt", Libsrt, Libsrt);
}

#[test]
fn punctual_to_punctual() {
    count("bench_punctual_to_punctual", Punctual, Punctual);
}

#[test]
fn punctual_to_libsrt() {
    count("bench_punctual_to_libsrt", Punctual, Libsrt);
}

#[test]
fn libsrt_to_punctual() {
    count("bench_libsrt_to_punctual", Libsrt, Punctual);
}

/// Flags of the sender, of the receiver, and of both.
const WAYS: [[&[&str]; 3]; 2] = [
    [&["--local-ports=1"], &["--threads=1"], &[]],
    [&["--local-ports=0"], &["--threads=0"], &["--key-length=32"]],
];

/// Sends over some connections in each way, and compares the counts of both ends.
fn count(test: &str, sender: SrtLibrary, receiver: SrtLibrary) {
    if !sender.is_there_with(&[Tool::CompilerAndLibsrt]) || !receiver.is_there() {
        return;
    }
    for (number, way) in WAYS.iter().enumerate() {
        retry_if_stalled(|| {
            let folder = Folder::of(&format!("{test}_{number}"));
            let (sent, received) = run(way, sender, receiver, &folder);
            let of = |text: &str, key: &str| value(text, key);
            let expected = f64::from(STREAMS) * RATE * SECONDS / 8.0 / 1_316.0;
            assert!(of(&sent, "sent") > 0.95 * expected, "{expected}: {sent}");
            assert!(of(&sent, "sent") < 1.05 * expected, "{expected}: {sent}");
            assert_eq!(of(&sent, "sent"), of(&received, "received"), "{sent} {received}");
            assert_eq!(of(&sent, "dropped"), 0.0, "{sent}");
            assert_eq!(of(&received, "out_of_order"), 0.0, "{received}");
            let delay = of(&received, "delay_max_us");
            assert!(delay > 119_000.0 && delay < 250_000.0, "120 ms: {received}");
        });
    }
}

/// The lines that sender and receiver print at the end.
fn run(
    [sending, receiving, both]: &[&[&str]; 3],
    sender: SrtLibrary,
    receiver: SrtLibrary,
    folder: &Folder,
) -> (String, String) {
    let common = [
        format!("--port={}", two_free_ports()),
        format!("--streams={STREAMS}"),
        format!("--rate={RATE}"),
        format!("--seconds={SECONDS}"),
    ];
    let start = |name: &str, library: SrtLibrary, role: &str, own: &[&str]| {
        let mut command = CProgram::Bench.command(library);
        command.arg(role).args(&common).args(*both).args(own);
        interop::Process::start(name, command, folder)
    };
    let mut receiver = start("receiver", receiver, "receive", receiving);
    receiver.wait_for_line("ready");
    let mut sender = start("sender", sender, "send", sending);
    assert!(sender.wait(Duration::from_secs(15)).success());
    // It is told that the sender leaves, although the sender's process ends at once.
    assert!(receiver.wait(Duration::from_secs(3)).success());
    (sender.wait_for_line("\"sent\""), receiver.wait_for_line("\"received\""))
}

/// The first of two free ports: callers that share a port take the one behind the listener's.
fn two_free_ports() -> u16 {
    loop {
        let port = free_port();
        if free_port() == port + 1 {
            return port;
        }
    }
}

/// The number behind this key of a JSON object.
fn value(json: &str, key: &str) -> f64 {
    let (_, rest) = json.split_once(&format!("\"{key}\":")).expect("the key is there");
    let end = rest.find([',', '}']).expect("the object ends");
    rest[..end].parse().expect("a number")
}

const STREAMS: u32 = 4;
/// Bits a second of each.
const RATE: f64 = 1_000_000.0;
const SECONDS: f64 = 1.5;
