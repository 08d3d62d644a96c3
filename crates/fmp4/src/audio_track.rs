use punctual_mpegts::{Packet, PesPacket, PesReader};

use crate::audio::{AudioCoding, AudioConfig, AudioReader};
use crate::boxes::Sample;
use crate::timeline::Timeline;

/// The sound of a stream, from its PES packets to samples.
///
/// Times count samples from the first frame on, so that frames stand edge to edge; where the
/// stream's own times differ by more than [`TOLERANCE`], they count again.
#[derive(Debug)]
pub(crate) struct AudioTrack {
    pid: u16,
    packets: PesReader,
    language: Option<String>,
    reader: AudioReader,
    /// The end of the latest frame, in samples, by the configuration that it belongs to.
    next: Option<i64>,
    /// The end of all frames so far, in ticks of 90 kHz: no frame goes back behind it.
    latest_end: Option<i64>,
    config: Option<AudioConfig>,
}

/// Frames that stand edge to edge.
#[derive(Debug)]
pub(crate) struct Sound {
    /// The begin of the first frame, in samples.
    pub(crate) time: i64,
    pub(crate) frames: Vec<Sample>,
}

impl Sound {
    /// How long the frames play, in samples.
    pub(crate) fn length(&self) -> i64 {
        self.frames.iter().map(|frame| i64::from(frame.duration)).sum()
    }
}

impl AudioTrack {
    pub(crate) fn new(pid: u16, coding: AudioCoding, language: Option<String>) -> Self {
        let (packets, reader) = (PesReader::default(), AudioReader::new(coding));
        Self { pid, packets, language, reader, next: None, latest_end: None, config: None }
    }

    /// The PID of its packets.
    pub(crate) fn pid(&self) -> u16 {
        self.pid
    }

    /// Its language, or the code for an unknown one.
    pub(crate) fn language(&self) -> &str {
        self.language.as_deref().unwrap_or("und")
    }

    /// The PES packets that the next packet completes.
    pub(crate) fn join(&mut self, packet: Packet<'_>) -> [Option<PesPacket>; 2] {
        self.packets.push(packet)
    }

    /// The last PES packet.
    pub(crate) fn finish(&mut self) -> Option<PesPacket> {
        self.packets.finish()
    }

    /// The configuration of the latest frames.
    pub(crate) fn config(&self) -> Option<&AudioConfig> {
        self.config.as_ref()
    }

    /// The end of the latest frame, in ticks of 90 kHz.
    pub(crate) fn end(&self) -> Option<i64> {
        self.latest_end
    }

    /// The next PES packet; it `leads` where the stream has no picture.
    pub(crate) fn read(&mut self, pes: &PesPacket, line: &mut Timeline, leads: bool) -> Vec<Sound> {
        if pes.is_damaged {
            self.reader.forget_part();
            return Vec::new();
        }
        let start = match pes.pts {
            Some(pts) if leads => Some(line.lead(pts, self.end()).time),
            Some(pts) => line.place(pts),
            None => None,
        };
        let frames = self.reader.read(&pes.payload);
        if self.config.as_ref() != self.reader.config() {
            self.config = self.reader.config().cloned();
            self.next = None;
        }
        let Some(rate) = self.config.as_ref().map(|config| i64::from(config.sample_rate)) else {
            return Vec::new();
        };
        if pes.pts.is_some() && start.is_none() {
            self.next = None;
            return Vec::new();
        }
        let mut sounds: Vec<Sound> = Vec::new();
        let mut time = self.next;
        for frame in frames {
            if let (true, Some(start)) = (frame.is_timed, start) {
                let start = start.saturating_mul(rate) / i64::from(Timeline::HZ);
                let differs = time.is_none_or(|time| (start - time).abs() > rate / TOLERANCE);
                time = if differs { Some(start) } else { time };
            }
            let Some(begin) = time else { continue };
            let end = begin + i64::from(frame.samples);
            time = Some(end);
            // A frame that overlaps the latest one was played already.
            let is_played = match self.next {
                Some(next) => begin < next,
                None => self.latest_end.is_some_and(|end| ticks(begin, rate) < end),
            };
            if begin < 0 || is_played {
                continue;
            }
            let sample =
                Sample { duration: frame.samples, offset: 0, is_key: true, data: frame.data };
            match sounds.last_mut().filter(|_| self.next == Some(begin)) {
                Some(sound) => sound.frames.push(sample),
                None => sounds.push(Sound { time: begin, frames: vec![sample] }),
            }
            self.next = Some(end);
            self.latest_end = Some(ticks(end, rate));
        }
        sounds
    }
}

/// The time of a number of samples, in ticks of 90 kHz.
fn ticks(samples: i64, rate: i64) -> i64 {
    samples.saturating_mul(Timeline::HZ.into()) / rate
}

/// 20 ms, as a part of a second: what careless encoders differ by, and nobody hears.
const TOLERANCE: i64 = 50;
