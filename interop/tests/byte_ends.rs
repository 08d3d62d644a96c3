//! FFmpeg at each end of a stream of bytes, over pipes and over TCP: what it writes at one end, it
//! reads at the other, byte for byte, over a link that loses.

#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use interop::{Clip, Folder, Process, Tool, emulator, free_port, have_all, wait_until_bound};

#[test]
fn ffmpeg_writes_to_a_pipe_and_reads_from_one() {
    let Some(folder) = prepare("ffmpeg_writes_to_a_pipe_and_reads_from_one") else { return };
    let link = Link::start(&folder);
    let receiver = piped(&[
        &punctual(&["route", &link.listener(), "-"]),
        &ffmpeg_reads("pipe:0", &folder.file("received")),
    ]);
    let mut receiver = Process::start("receiver", receiver, &folder);
    wait_until_bound(link.port);
    let sender = piped(&[
        &ffmpeg_writes("pipe:1", &folder.file("sent")),
        &punctual(&["route", "-", &link.caller()]),
    ]);
    let mut sender = Process::start("sender", sender, &folder);
    assert!(sender.wait(LIMIT).success());
    assert!(receiver.wait(LIMIT).success());
    assert_same(&folder);
}

#[test]
fn ffmpeg_writes_to_tcp_and_reads_from_tcp() {
    let Some(folder) = prepare("ffmpeg_writes_to_tcp_and_reads_from_tcp") else { return };
    let link = Link::start(&folder);
    let [input, output] = [(); 2].map(|()| format!("127.0.0.1:{}", free_port()));
    let to = format!("tcp://{output}?listen");
    let route = piped(&[&punctual(&["route", &link.listener(), &to])]);
    let mut receiver = Process::start("receiver", route, &folder);
    receiver.wait_for_line(&format!("listening on {output}"));
    wait_until_bound(link.port);
    let reads = ffmpeg_reads(&format!("tcp://{output}"), &folder.file("received"));
    let mut reader = Process::start("reader", piped(&[&reads]), &folder);
    let route = piped(&[&punctual(&["route", &format!("tcp://{input}?listen"), &link.caller()])]);
    let mut sender = Process::start("sender", route, &folder);
    sender.wait_for_line(&format!("listening on {input}"));
    let writes = ffmpeg_writes(&format!("tcp://{input}"), &folder.file("sent"));
    let mut writer = Process::start("writer", piped(&[&writes]), &folder);
    assert!(writer.wait(LIMIT).success());
    assert!(sender.wait(LIMIT).success());
    assert!(receiver.wait(LIMIT).success());
    assert!(reader.wait(LIMIT).success());
    assert_same(&folder);
}

/// A link of 40 ms RTT that loses 2 % each way, before the port of a receiver.
struct Link {
    entry: u16,
    port: u16,
    _emulator: Process,
}

impl Link {
    fn start(folder: &Folder) -> Self {
        let (entry, port) = (free_port(), free_port());
        let link = emulator(entry, port, &["--delay", "20ms", "--loss", "2%", "--seed", "1"]);
        let mut emulator = Process::start("emulator", link, folder);
        emulator.wait_for_line("relaying");
        Self { entry, port, _emulator: emulator }
    }

    fn caller(&self) -> String {
        format!("srt://127.0.0.1:{}?transtype=stream", self.entry)
    }

    fn listener(&self) -> String {
        format!("srt://127.0.0.1:{}?mode=listener&transtype=stream", self.port)
    }
}

fn prepare(test: &str) -> Option<Folder> {
    have_all(&[Tool::Ffmpeg]).then(|| Folder::of(test))
}

fn punctual(args: &[&str]) -> String {
    let program = interop::punctual();
    let program = program.display().to_string();
    let words = std::iter::once(&*program).chain(args.iter().copied());
    words.map(quoted).collect::<Vec<_>>().join(" ")
}

/// FFmpeg makes a transport stream of the clip for `output`, and the same bytes for `reference`.
fn ffmpeg_writes(output: &str, reference: &Path) -> String {
    let mux = "[f=mpegts:muxrate=5000000]";
    let tee = format!("{mux}{}|{mux}{output}", reference.display());
    let clip = Clip::get().path().display().to_string();
    let options = "-hide_banner -nostdin -loglevel error -y";
    format!("ffmpeg {options} -i {} -map 0 -c copy -f tee {}", quoted(&clip), quoted(&tee))
}

/// FFmpeg copies the bytes of `input` to `file`.
fn ffmpeg_reads(input: &str, file: &Path) -> String {
    let file = quoted(&file.display().to_string());
    let options = "-hide_banner -loglevel error -y";
    format!("ffmpeg {options} -f data -i {} -map 0 -c copy -f data {file}", quoted(input))
}

/// A word of a shell's command.
fn quoted(word: &str) -> String {
    assert!(!word.contains('\''), "{word}");
    format!("'{word}'")
}

/// The commands, each reading what the one before writes.
fn piped(commands: &[&str]) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &commands.join(" | ")]);
    shell
}

fn assert_same(folder: &Folder) {
    let read = |name| fs::read(folder.file(name)).expect("FFmpeg has written it");
    let [sent, received] = ["sent", "received"].map(read);
    assert!(sent.len() > 5_000_000, "FFmpeg wrote {} bytes", sent.len());
    assert!(sent == received, "{} bytes of {} came", received.len(), sent.len());
}

const LIMIT: Duration = Duration::from_secs(30);
