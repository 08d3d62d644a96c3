//! The stream is not touched, whoever publishes and whoever plays.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use interop::{
    CProgram, Clip, End, Folder, Process, Program, Relay, Role, SrtLibrary, Tool, crc32, have_all,
    retry_if_stalled, wait_for_silence, wait_for_size,
};
use punctual_mpegts::{PACKET_LEN, Packet};

use crate::common::{TURNS, WANTED, assert_got_its_part, assert_same_packets, by_pid};

/// The stream begins at any packet for these viewers, so that each byte can be compared.
const LIVE: &str = "[defaults]\nstart = \"live\"\n";

/// A program of other people's, or ours, and the library with libsrt's functions that it loads.
type Peer = (Program, SrtLibrary);

const ALL: [Peer; 5] = [
    (Program::Ffmpeg, SrtLibrary::Libsrt),
    (Program::GStreamer, SrtLibrary::Libsrt),
    (Program::Punctual, SrtLibrary::Libsrt),
    (Program::SrtLiveTransmit, SrtLibrary::Libsrt),
    (Program::Vlc, SrtLibrary::Libsrt),
];

/// Programs on Punctual's C library in libsrt's place.
const ON_OURS: [Peer; 3] = [
    (Program::Ffmpeg, SrtLibrary::Punctual),
    (Program::GStreamer, SrtLibrary::Punctual),
    (Program::Vlc, SrtLibrary::Punctual),
];

macro_rules! publishers {
    ($($name:ident: $peer:ident;)*) => {
        $(#[test]
        fn $name() {
            let publisher = (Program::$peer, SrtLibrary::Libsrt);
            retry_if_stalled(|| pass(stringify!($name), publisher, &ALL));
        })*
    };
}

publishers! {
    ffmpeg_publishes_and_all_play: Ffmpeg;
    gstreamer_publishes_and_all_play: GStreamer;
    punctual_publishes_and_all_play: Punctual;
    srt_live_transmit_publishes_and_all_play: SrtLiveTransmit;
}

#[test]
fn programs_on_our_c_library_publish_and_play() {
    for (number, publisher) in ON_OURS.into_iter().take(2).enumerate() {
        let test = format!("programs_on_our_c_library-{number}");
        retry_if_stalled(|| pass(&test, publisher, &ON_OURS));
    }
}

#[test]
fn obs_publishes_and_all_play() {
    for library in [SrtLibrary::Libsrt, SrtLibrary::Punctual] {
        if !library.is_there_with(&[Tool::CompilerAndLibsrt, Tool::Ffmpeg, Tool::Vlc]) {
            return;
        }
        retry_if_stalled(|| {
            let _turn = TURNS.take(2);
            let folder = library.folder_of("obs_publishes_and_all_play");
            let relay = Relay::start(&folder, LIVE);
            let words = ["caller", &relay.port.to_string(), "streamid=publish:live"];
            let mut obs = CProgram::ObsOutput.start(library, &words, &folder);
            let _feed = Clip::get().feed(obs.stdin());
            relay.wait_online("live");
            let viewers = view_all(&[ALL[0], ALL[4]], &relay, &folder);
            judge(viewers, Clip::get().bytes());
        });
    }
}

/// One program publishes the clip, these play it, and what they get is a part of it.
fn pass(test: &str, (publisher, library): Peer, viewers: &[Peer]) {
    let tools = [Tool::Ffmpeg, Tool::GStreamer, Tool::SrtLiveTransmit, Tool::Vlc];
    if !library.is_there_with(&tools) {
        return;
    }
    let _turn = TURNS.take(2);
    let folder = Folder::of(test);
    let relay = Relay::start(&folder, LIVE);
    let end = End::new(Role::Caller, relay.port);
    let reference = folder.file("sent.ts");
    let mut command = publisher.sender(&end.with_stream_id("publish:live"), &reference);
    library.put_under(&mut command);
    let mut sender = Process::start("publisher", command, &folder);
    let feed = publisher.reads_standard_input().then(|| Clip::get().feed(sender.stdin()));
    relay.wait_online("live");
    let viewers = view_all(viewers, &relay, &folder);
    if feed.is_some() {
        judge(viewers, Clip::get().bytes());
        return;
    }
    viewers.iter().for_each(|(_, output)| wait_for_size(output, WANTED, LIMIT));
    // The file of what FFmpeg sent is complete when it has ended.
    sender.stop();
    judge(viewers, &fs::read(&reference).expect("FFmpeg wrote what it sent"));
}

fn view_all(viewers: &[Peer], relay: &Relay, folder: &Folder) -> Vec<(Process, PathBuf)> {
    let end = End::new(Role::Caller, relay.port).with_stream_id("read:live");
    let view = |(program, library): &Peer| {
        let name = format!("{program:?}-on-{library}");
        let output = folder.file(&format!("{name}.ts"));
        let (mut command, writes_output) = program.receiver(&end, &output);
        library.put_under(&mut command);
        let to = writes_output.then_some(output.as_path());
        let viewer = Process::start_with_output(&name, command, folder, to);
        if *library == SrtLibrary::Punctual {
            library.wait_until_loaded(&viewer);
        }
        (viewer, output)
    };
    viewers.iter().map(view).collect()
}

/// Waits until each viewer has its part, and compares it with what was sent.
fn judge(viewers: Vec<(Process, PathBuf)>, sent: &[u8]) {
    for (_viewer, output) in viewers {
        wait_for_size(&output, WANTED, LIMIT);
        assert_got_its_part(&output, sent);
    }
}

/// The time that a viewer may take for its part.
const LIMIT: Duration = Duration::from_secs(12);

#[test]
fn each_pid_arrives_byte_by_byte_known_or_not() {
    if !have_all(&[Tool::Ffmpeg]) {
        return;
    }
    let _turn = TURNS.take(2);
    let folder = Folder::of("each_pid_arrives");
    let relay = Relay::start(&folder, "");
    let sent = enriched(Clip::get().bytes());
    fs::write(folder.file("sent.ts"), &sent).expect("a file can be written");
    let end = End::new(Role::Caller, relay.port);
    let (viewer, output) = {
        let command =
            Program::Punctual.sender(&end.with_stream_id("publish:a/b"), &output_of(&folder));
        let mut publisher = Process::start("publisher", command, &folder);
        let pipe = publisher.stdin();
        let bytes = sent.clone();
        let feed = std::thread::spawn(move || feed(pipe, &bytes));
        relay.wait_online("a%2Fb");
        let output = output_of(&folder);
        let end = end.with_stream_id("#!::r=a/b,m=request");
        let (command, writes_output) = Program::Punctual.receiver(&end, &output);
        let to = writes_output.then_some(output.as_path());
        let viewer = Process::start_with_output("viewer", command, &folder, to);
        feed.join().expect("the publisher reads all");
        wait_for_silence(&output);
        (viewer, output)
    };
    drop(viewer);
    let received = fs::read(&output).expect("it received something");
    // The tables of the start are copies, and packets that announce the start are the relay's own.
    let received: Vec<u8> = received[2 * PACKET_LEN..]
        .as_chunks::<PACKET_LEN>()
        .0
        .iter()
        .filter(|bytes| {
            Packet::new(bytes).is_ok_and(|it| !it.is_discontinuity() || it.has_payload())
        })
        .flatten()
        .copied()
        .collect();
    assert_same_packets(&received, &sent, 10_000);
    let pids: Vec<u16> = by_pid(&received).into_keys().collect();
    for pid in [0, 0x1000, 0x100, 0x101, SECOND_SOUND, CUES, METADATA, UNKNOWN, 0x1FFF] {
        assert!(pids.contains(&pid), "PID {pid:#x} is among {pids:x?}");
    }
}

fn output_of(folder: &Folder) -> PathBuf {
    folder.file("received.ts")
}

/// Writes a stream of 5.4 Mb/s at its rate.
fn feed(mut pipe: std::process::ChildStdin, bytes: &[u8]) {
    let start = std::time::Instant::now();
    for (number, message) in (0_u32..).zip(bytes.chunks(1_316)) {
        let due = start + Duration::from_micros(1_950) * number;
        std::thread::sleep(due.saturating_duration_since(std::time::Instant::now()));
        if std::io::Write::write_all(&mut pipe, message).is_err() {
            return;
        }
    }
}

const SECOND_SOUND: u16 = 0x102;
const CUES: u16 = 0x1F0;
const METADATA: u16 = 0x1F1;
/// A PID that no table names.
const UNKNOWN: u16 = 0x1ABC;

/// The stream with a second language, cues (SCTE-35), metadata (KLV) and packets that no table
/// names, and a map that says so.
fn enriched(clip: &[u8]) -> Vec<u8> {
    let (mut all, mut counters) = (Vec::new(), [0_u8; 3]);
    let mut next = |place: usize, pid: u16, is_start: bool, payload: &[u8]| {
        let mut packet = [0xFF; PACKET_LEN];
        let [high, low] = pid.to_be_bytes();
        let high = high | if is_start { 0x40 } else { 0 };
        packet[..4].copy_from_slice(&[0x47, high, low, 0x10 | counters[place]]);
        packet[4..4 + payload.len()].copy_from_slice(payload);
        counters[place] = (counters[place] + 1) & 0x0F;
        packet
    };
    for (number, bytes) in clip.as_chunks::<PACKET_LEN>().0.iter().enumerate() {
        let packet = Packet::new(bytes).expect("the clip has packets");
        match packet.pid() {
            0x1000 => all.extend(with_map(bytes)),
            0x101 => {
                all.extend(bytes);
                let mut other = *bytes;
                other[2] = 0x02;
                all.extend(other);
            }
            _ => all.extend(bytes),
        }
        match number % 300 {
            100 => all.extend(next(0, CUES, true, &cue())),
            150 => all.extend(next(1, METADATA, true, &metadata(number))),
            200 => all.extend(next(2, UNKNOWN, false, &number.to_be_bytes())),
            _ => {}
        }
    }
    all
}

/// A packet of the map with two languages, cues and metadata.
fn with_map(bytes: &[u8; PACKET_LEN]) -> [u8; PACKET_LEN] {
    let mut section = vec![0x02, 0xB0, 0, 0, 1, 0xC1, 0, 0, 0xE1, 0x00, 0xF0, 6];
    section.extend(b"\x05\x04CUEI");
    section.extend([0x1B, 0xE1, 0x00, 0xF0, 0]);
    section.extend(b"\x0F\xE1\x01\xF0\x06\x0A\x04eng\0");
    section.extend(b"\x0F\xE1\x02\xF0\x06\x0A\x04deu\0");
    section.extend([0x86, 0xE1, 0xF0, 0xF0, 0]);
    section.extend(b"\x06\xE1\xF1\xF0\x06\x05\x04KLVA");
    section[2] = u8::try_from(section.len() + 1).expect("a short section");
    section.extend(crc32(&section).to_be_bytes());
    let mut packet = [0xFF; PACKET_LEN];
    packet[..4].copy_from_slice(&bytes[..4]);
    packet[4] = 0;
    packet[5..5 + section.len()].copy_from_slice(&section);
    packet
}

/// A section of SCTE-35: `splice_null`.
fn cue() -> Vec<u8> {
    let mut section = vec![0xFC, 0x30, 0x11, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xF0, 0, 0, 0, 0];
    section.truncate(16);
    section.extend(crc32(&section).to_be_bytes());
    [&[0][..], &section].concat()
}

/// A PES packet with metadata.
fn metadata(number: usize) -> Vec<u8> {
    let mut unit = vec![0, 0, 1, 0xFC, 0, 0, 0x84, 0, 0];
    unit.extend(number.to_be_bytes().repeat(20));
    let length = u16::try_from(unit.len() - 6).expect("a short unit").to_be_bytes();
    unit[4..6].copy_from_slice(&length);
    // Stuffing of the payload would belong to the unit: it ends here by its length.
    unit
}
