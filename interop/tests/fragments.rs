//! Fragmented MP4 of transport streams, read back by FFmpeg: it decodes every picture and all sound
//! without a word, and finds the times of the source.

#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use interop::{Folder, Tool, have_all};
use punctual_fmp4::{Fragmenter, Output, Segmenter, Track};
use punctual_mpegts::{Framer, Inspector};

const H264: &str = "-c:v libx264 -preset ultrafast -g 25 -bf 0";
const B_FRAMES: &str = "-c:v libx264 -preset veryfast -g 25 -bf 3";
const HEVC: &str = "-c:v libx265 -preset ultrafast -x265-params log-level=none:keyint=25:bframes=3";
const AAC: &str = "-c:a aac";

#[test]
fn h264_with_aac() {
    check("h264_with_aac", &format!("{H264} {AAC}"), "avc1.42c00d,mp4a.40.2");
}

#[test]
fn b_frames_with_aac_of_44100_hz() {
    check("b_frames", &format!("{B_FRAMES} {AAC} -ar 44100"), "avc1.64000d,mp4a.40.2");
}

#[test]
fn hevc_with_aac_in_latm() {
    let codecs = format!("{HEVC} {AAC} -mpegts_flags +latm");
    check("hevc_latm", &codecs, "hvc1.1.6.L60.90,mp4a.40.2");
}

#[test]
fn h264_with_opus() {
    check("h264_opus", &format!("{H264} -c:a libopus -ac 2"), "avc1.42c00d,opus");
}

#[test]
fn h264_with_mp2() {
    check("h264_mp2", &format!("{H264} -c:a mp2"), "avc1.42c00d,mp4a.6B");
}

#[test]
fn h264_with_mp3() {
    check("h264_mp3", &format!("{H264} -c:a libmp3lame"), "avc1.42c00d,mp4a.6B");
}

#[test]
fn radio() {
    check("radio", &format!("-vn {AAC}"), "mp4a.40.2");
}

#[test]
fn silent_pictures() {
    check("silent", &format!("{H264} -an"), "avc1.42c00d");
}

#[test]
fn sound_that_no_browser_decodes_is_named() {
    if !have_all(&[Tool::Ffmpeg]) {
        return;
    }
    let folder = Folder::of("fragments_ac3");
    let source = encode(&folder, &format!("{H264} -c:a ac3"));
    let outputs = outputs_of(&source);
    let Some(Output::Init(init)) = outputs.first() else { panic!("{:?}", outputs.first()) };
    assert_eq!(init.codecs(), "avc1.42c00d");
    assert_eq!(init.left_out, ["AC-3"]);

    let source = encode(&folder, "-c:v mpeg2video -an");
    let outputs = outputs_of(&source);
    let [Output::Unplayable(names)] = &outputs[..] else { panic!("{outputs:?}") };
    assert_eq!(names, &["MPEG-2 video"]);
}

#[test]
fn a_lost_packet_leaves_out_pictures_up_to_the_next_key_frame() {
    if !have_all(&[Tool::Ffmpeg]) {
        return;
    }
    let folder = Folder::of("fragments_loss");
    let source = encode(&folder, &format!("{B_FRAMES} {AAC}"));
    let mut bytes = fs::read(&source).expect("the source is there");
    // A packet of video in the middle of the second group of pictures.
    let from = 188 * (bytes.len() / 188 * 2 / 5);
    let packet = bytes[from..].chunks(188).position(|packet| packet[1] == 1 && packet[2] == 0);
    let at = from + 188 * packet.expect("there is video");
    bytes.drain(at..at + 188);
    fs::write(&source, bytes).expect("the source can be written");
    let outputs = outputs_of(&source);
    let keys = pictures(&outputs).filter(|(is_key, _)| *is_key).count();
    let all = pictures(&outputs).count();
    assert_eq!(keys, 4);
    assert!((75..100).contains(&all), "{all} pictures");
    let target = write(&folder, &outputs);
    assert_eq!(words_of(&target), "");
}

/// Encodes four seconds with `codecs`, and compares what FFmpeg finds in the fragments and in the
/// source.
fn check(name: &str, codecs: &str, expected: &str) {
    if !have_all(&[Tool::Ffmpeg]) {
        return;
    }
    let folder = Folder::of(&format!("fragments_{name}"));
    let source = encode(&folder, codecs);
    let outputs = outputs_of(&source);
    let inits: Vec<_> = outputs
        .iter()
        .filter_map(|output| match output {
            Output::Init(init) => Some(init.codecs()),
            _ => None,
        })
        .collect();
    assert_eq!(inits, [expected]);
    let target = write(&folder, &outputs);
    assert_eq!(words_of(&target), "");
    for track in ["v", "a"] {
        let (mut was, is) = (times_of(&source, track), times_of(&target, track));
        // Sound from before the first picture is left out.
        let early =
            was.iter().take_while(|&&time| is.first().is_some_and(|first| time + 0.001 < *first));
        let early = if track == "a" { early.count() } else { 0 };
        assert!(early < 4, "{early} frames of sound are missing");
        was.drain(..early);
        assert_eq!(is.len(), was.len(), "{track}: {was:?} became {is:?}");
        let differs = was.iter().zip(&is).find(|(was, is)| (*was - *is).abs() > 0.000_1);
        assert_eq!(differs, None, "{track}");
    }
    check_hls(&folder, &outputs);
}

/// The same fragments as segments of HLS: FFmpeg reads as many pictures from the playlist.
fn check_hls(folder: &Folder, outputs: &[Output]) {
    let mut segmenter = Segmenter::default();
    outputs.iter().for_each(|output| segmenter.push(output));
    segmenter.finish();
    let playlist = segmenter.playlist().expect("there are segments");
    for name in playlist.lines().filter(|line| !line.starts_with('#')) {
        let number = name.trim_end_matches(".m4s").parse().expect("segments have numbers");
        let segment = segmenter.segment(number).expect("listed segments are there");
        assert!(segment.duration < Duration::from_millis(1_500), "{segment:?}");
        fs::write(folder.file(name), &segment.bytes).expect("a segment can be written");
        let init = segmenter.init(segment.init).expect("its header is there");
        fs::write(folder.file("init-0.mp4"), &init.bytes).expect("a header can be written");
    }
    let file = folder.file("index.m3u8");
    fs::write(&file, playlist + "#EXT-X-ENDLIST\n").expect("a playlist can be written");
    assert_eq!(words_of(&file), "");
    let count = pictures(outputs).count();
    assert_eq!(times_of(&file, "v").len(), count);
}

/// Whether each picture is a key frame, and when it is decoded.
fn pictures(outputs: &[Output]) -> impl Iterator<Item = (bool, Duration)> {
    outputs.iter().filter_map(|output| match output {
        Output::Fragment(it) if it.track == Track::Video => Some((it.is_key, it.start)),
        _ => None,
    })
}

fn encode(folder: &Folder, codecs: &str) -> PathBuf {
    let target = folder.file("source.ts");
    let mut command = Command::new("ffmpeg");
    command.args(["-hide_banner", "-v", "error", "-y"]);
    command.args(["-f", "lavfi", "-i", "testsrc=size=320x240:rate=25,format=yuv420p"]);
    command.args(["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000"]);
    command.args(["-t", "4"]).args(codecs.split_whitespace()).arg(&target);
    assert!(command.status().expect("ffmpeg runs").success(), "{codecs}");
    target
}

fn outputs_of(source: &Path) -> Vec<Output> {
    let bytes = fs::read(source).expect("the source is there");
    let (mut framer, mut inspector) = (Framer::default(), Inspector::default());
    let mut fragmenter = Fragmenter::default();
    framer.push(&bytes);
    framer.finish();
    while let Some(packet) = framer.next_packet() {
        inspector.push(packet, Duration::ZERO);
        if let Some(program) = inspector.programs().first() {
            fragmenter.set_streams(&program.streams);
        }
        fragmenter.push(packet);
    }
    fragmenter.finish();
    std::iter::from_fn(|| fragmenter.pop()).collect()
}

fn write(folder: &Folder, outputs: &[Output]) -> PathBuf {
    let bytes = |output: &Output| match output {
        Output::Init(init) => init.bytes.to_vec(),
        Output::Fragment(fragment) => fragment.bytes.to_vec(),
        Output::Unplayable(_) => Vec::new(),
    };
    let target = folder.file("target.mp4");
    fs::write(&target, outputs.iter().flat_map(bytes).collect::<Vec<_>>()).expect("writable");
    target
}

/// The words of FFmpeg while it decodes all of a file.
fn words_of(file: &Path) -> String {
    let mut command = Command::new("ffmpeg");
    command.args(["-hide_banner", "-nostdin", "-v", "warning"]);
    command.args(options_for(file));
    command.arg("-i").arg(file).args(["-f", "null", "-"]);
    let output = command.output().expect("ffmpeg runs");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The options with which FFmpeg reads `.m4s` of a playlist.
fn options_for(file: &Path) -> &'static [&'static str] {
    if file.extension().is_some_and(|it| it == "m3u8") {
        &["-allowed_extensions", "ALL"]
    } else {
        &[]
    }
}

/// The presentation times of the packets of a track, in order.
fn times_of(file: &Path, track: &str) -> Vec<f64> {
    let mut command = Command::new("ffprobe");
    command.args(["-v", "error", "-select_streams", track, "-show_entries", "packet=pts_time"]);
    command.args(options_for(file));
    command.args(["-of", "csv=p=0"]).arg(file);
    let output = command.output().expect("ffprobe runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut times: Vec<f64> =
        text.lines().filter_map(|line| line.trim_end_matches(',').parse().ok()).collect();
    times.sort_by(f64::total_cmp);
    times
}
