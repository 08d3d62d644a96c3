use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::folder::shared;

/// A real MPEG transport stream: 11 seconds of H.264 and AAC at a constant 5 Mb/s.
///
/// Its length is a whole number of messages of 1316 bytes.
#[derive(Clone, Debug)]
pub struct Clip {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Clip {
    /// The clip, which FFmpeg makes from its test sources at the first use.
    ///
    /// # Panics
    ///
    /// If FFmpeg is not installed or fails.
    pub fn get() -> &'static Self {
        static CLIP: OnceLock<Clip> = OnceLock::new();
        CLIP.get_or_init(|| {
            let path = shared().join("clip-of-11-s.ts");
            if !path.exists() {
                make(&path);
            }
            let bytes = fs::read(&path).expect("the clip can be read");
            Clip { path, bytes }
        })
    }

    /// The clip's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The clip's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The first five seconds of the clip: whole messages.
    pub fn beginning(&self) -> &[u8] {
        let messages = self.bytes.len() / MESSAGE / 2;
        &self.bytes[..messages * MESSAGE]
    }

    /// The clip's play time.
    pub fn duration(&self) -> Duration {
        time_of(self.bytes.len())
    }

    /// Writes the clip into a program's standard input at the clip's bit rate, a message at a time,
    /// and endless padding after it: a live stream does not stop, and programs hold back the last
    /// data that they get.
    pub fn feed(&'static self, pipe: ChildStdin) -> Feed {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::spawn(move || self.write(pipe, &stopped));
        Feed { stop, thread: Some(thread) }
    }

    fn write(&self, mut pipe: ChildStdin, stop: &AtomicBool) {
        let padding = NULL_PACKET.repeat(MESSAGE / NULL_PACKET.len());
        let clip = self.bytes.chunks(MESSAGE);
        let start = Instant::now();
        for (index, message) in clip.chain(std::iter::repeat(&padding[..])).enumerate() {
            let due = start + time_of(index * MESSAGE);
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if stop.load(Ordering::Relaxed) || pipe.write_all(message).is_err() {
                break; // If the reader is gone, what it did is for the test to judge.
            }
        }
    }
}

/// The clip on its way into a program. Dropped, it closes the pipe.
#[derive(Debug)]
pub struct Feed {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It does not panic, and a test that is failing must not panic twice.
            let _ = thread.join();
        }
    }
}

fn make(path: &Path) {
    let unfinished = path.with_extension("unfinished");
    let mut ffmpeg = Command::new("ffmpeg");
    ffmpeg.args(["-hide_banner", "-nostdin", "-loglevel", "error", "-y"]);
    ffmpeg.args(["-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25"]);
    ffmpeg.args(["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000", "-t", "11"]);
    ffmpeg.args(["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "25"]);
    ffmpeg.args(["-b:v", "3500k", "-maxrate", "3500k", "-bufsize", "1750k"]);
    ffmpeg.args(["-c:a", "aac", "-b:a", "128k"]);
    ffmpeg.args(["-f", "mpegts", "-muxrate", &BITRATE.to_string()]).arg(&unfinished);
    let status = ffmpeg.stdin(Stdio::null()).status().expect("ffmpeg is installed");
    assert!(status.success(), "ffmpeg could not make the clip: {status}");

    let mut bytes = fs::read(&unfinished).expect("ffmpeg wrote the clip");
    while !bytes.len().is_multiple_of(MESSAGE) {
        bytes.extend(NULL_PACKET);
    }
    fs::write(&unfinished, bytes).expect("the clip can be written");
    fs::rename(&unfinished, path).expect("the clip can be renamed");
}

/// The time that this number of the clip's bytes takes.
fn time_of(bytes: usize) -> Duration {
    let bits = u64::try_from(bytes).expect("a clip is small") * 8;
    Duration::from_micros(bits * 1_000_000 / BITRATE)
}

/// The checksum at the end of a table of a transport stream (ISO/IEC 13818-1 annex A).
pub fn crc32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ (u32::from(*byte) << 24), |sum, _| {
            let next = sum << 1;
            if sum & 0x8000_0000 == 0 { next } else { next ^ 0x04C1_1DB7 }
        })
    })
}

/// Seven MPEG-TS packets: what one live message holds.
const MESSAGE: usize = 1_316;
/// An MPEG-TS packet without content.
const NULL_PACKET: [u8; 188] = {
    let mut packet = [0xFF; 188];
    packet[0] = 0x47;
    packet[1] = 0x1F;
    packet[3] = 0x10;
    packet
};

/// Bits per second.
const BITRATE: u64 = 5_000_000;
