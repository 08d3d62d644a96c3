//! FFmpeg decodes what a receiver gets that misses parts of a stream.

#![forbid(unsafe_code)]

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use interop::{Folder, Tool, have_all};
use punctual_mpegts::{Cut, Inspector, PACKET_LEN, Packet, RandomAccess};

const CUTS: usize = 70;

#[test]
fn ffmpeg_finds_nothing_wrong_after_cuts_of_h264_and_aac() {
    let video = ["-c:v", "libx264", "-preset", "ultrafast", "-bf", "2", "-g", "8"];
    decodes_without_a_line("cuts_of_h264", &video, &["-c:a", "aac"]);
}

/// Open groups: pictures after a random access point need some from before it.
#[test]
fn ffmpeg_finds_nothing_wrong_after_cuts_of_hevc_and_opus() {
    let options = "log-level=error:keyint=8:min-keyint=8:bframes=3:open-gop=1";
    let video = ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", options];
    decodes_without_a_line("cuts_of_hevc", &video, &["-c:a", "libopus"]);
}

#[test]
fn ffmpeg_finds_nothing_wrong_after_cuts_of_mpeg2_and_mp2() {
    let video = ["-c:v", "mpeg2video", "-bf", "2", "-g", "8"];
    decodes_without_a_line("cuts_of_mpeg2", &video, &["-c:a", "mp2"]);
}

fn decodes_without_a_line(test: &str, video: &[&str], audio: &[&str]) {
    if !have_all(&[Tool::Ffmpeg]) {
        return;
    }
    let folder = Folder::of(test);
    let (clip, received) = (folder.file("clip.ts"), folder.file("received.ts"));
    encode(&clip, video, audio);
    let bytes = std::fs::read(&clip).expect("FFmpeg wrote the clip");
    for seed in [1, 2] {
        let (sent, cuts) = receive(&bytes.clone().into(), seed);
        assert!(cuts >= CUTS / 2, "seed {seed}: only {cuts} cuts");
        std::fs::write(&received, sent).expect("the received stream can be written");
        let mut ffmpeg = Command::new("ffmpeg");
        ffmpeg.args(["-nostdin", "-v", "warning", "-xerror", "-f", "mpegts", "-i"]);
        let output = ffmpeg.arg(&received).args(["-f", "null", "-"]).output();
        let output = output.expect("FFmpeg is installed");
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && log.is_empty(), "seed {seed}, {cuts} cuts:\n{log}");
    }
}

fn encode(clip: &Path, video: &[&str], audio: &[&str]) {
    let mut ffmpeg = Command::new("ffmpeg");
    ffmpeg.args(["-nostdin", "-v", "error", "-y", "-f", "lavfi"]);
    ffmpeg.args(["-i", "testsrc2=size=192x108:rate=25", "-f", "lavfi", "-i", "sine=r=48000"]);
    ffmpeg.args(["-t", "25"]).args(video).args(["-b:v", "400k"]).args(audio);
    ffmpeg.args(["-f", "mpegts", "-muxrate", "1500k", "-pcr_period", "20"]);
    let status = ffmpeg.arg(clip).status().expect("FFmpeg is installed");
    assert!(status.success(), "{ffmpeg:?}");
}

/// The stream for a receiver that is away again and again, and its number of cuts.
fn receive(clip: &Bytes, seed: u64) -> (Vec<u8>, usize) {
    let entries = entries(clip);
    let mut chance = Chance(seed);
    let (mut cut, mut sent, mut place, mut cuts) = (Cut::default(), Vec::new(), 0, 0);
    while let Some((access, tables)) = entries.iter().find(|it| it.0.packet >= place) {
        sent.extend(cut.enter(tables, *access));
        let start = usize::try_from(access.packet).expect("the clip is short") * PACKET_LEN;
        let mut rest = clip.slice(start..);
        let stay = (1 + chance.below(400)) * PACKET_LEN;
        sent.extend(cut.pass(&rest.split_to(stay.min(rest.len()))));
        cut.leave();
        while !cut.is_out() && !rest.is_empty() {
            sent.extend(cut.pass(&rest.split_to(rest.len().min(7 * PACKET_LEN))));
        }
        place = ((clip.len() - rest.len()) / PACKET_LEN) as u64;
        cuts += 1;
    }
    (sent, cuts)
}

/// The random access points of a clip, each with the tables to send before it.
fn entries(clip: &Bytes) -> Vec<(RandomAccess, Bytes)> {
    let mut inspector = Inspector::default();
    let mut entries = Vec::new();
    for bytes in clip.as_chunks().0 {
        let packet = Packet::new(bytes).expect("FFmpeg writes packets alone");
        if let Some(access) = inspector.push(packet, Duration::ZERO) {
            entries.push((access, inspector.tables()));
        }
    }
    entries
}

/// Numbers from a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % limit
    }
}
