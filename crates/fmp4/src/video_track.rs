use punctual_mpegts::{Packet, PesPacket, PesReader, unwrap_timestamp};

use crate::boxes::Sample;
use crate::timeline::Timeline;
use crate::video::{VideoCoding, VideoConfig, VideoReader};

/// The picture of a stream, from its PES packets to samples.
///
/// An access unit with missing bytes is left out, with all up to the next key frame: a decoder
/// never sees a picture whose references are missing.
#[derive(Debug)]
pub(crate) struct VideoTrack {
    pid: u16,
    packets: PesReader,
    language: Option<String>,
    reader: VideoReader,
    /// The configuration of the samples since the latest key frame.
    config: Option<VideoConfig>,
    awaits_key: bool,
    /// The presentation time of the latest key frame, and whether decoding started with it.
    key: Option<(i64, bool)>,
    /// The decoding time of the latest sample.
    latest: Option<i64>,
    /// The time from one sample to the next.
    step: i64,
}

/// A picture in its place.
#[derive(Debug)]
pub(crate) struct TimedPicture {
    /// The time of decoding.
    pub(crate) time: i64,
    pub(crate) is_leading: bool,
    pub(crate) sample: Sample,
}

impl VideoTrack {
    pub(crate) fn new(pid: u16, coding: VideoCoding, language: Option<String>) -> Self {
        Self {
            pid,
            packets: PesReader::default(),
            language,
            reader: VideoReader::new(coding),
            config: None,
            awaits_key: true,
            key: None,
            latest: None,
            step: FIRST_STEP,
        }
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

    /// The configuration of the samples since the latest key frame.
    pub(crate) fn config(&self) -> Option<&VideoConfig> {
        self.config.as_ref()
    }

    /// The end of the latest sample, if its duration is as expected.
    pub(crate) fn end(&self) -> Option<i64> {
        Some(self.latest? + self.step)
    }

    /// Leaves everything out up to the next key frame.
    pub(crate) fn await_key(&mut self) {
        self.awaits_key = true;
    }

    /// The next PES packet.
    pub(crate) fn read(&mut self, pes: &PesPacket, line: &mut Timeline) -> Option<TimedPicture> {
        if pes.is_damaged {
            self.await_key();
            return None;
        }
        let pts = pes.pts?;
        let dts = pes.dts.unwrap_or(pts);
        let picture = self.reader.read(&pes.payload);
        let led = line.lead(dts, self.end());
        if led.has_jumped {
            self.await_key();
        }
        let offset = unwrap_timestamp(pts, dts.cast_signed()) - dts.cast_signed();
        let offset = if (0..=LONGEST_OFFSET).contains(&offset) { offset } else { 0 };
        let shown = led.time + offset;
        if picture.data.is_empty() || led.time < 0 || !self.can_follow(&picture, shown) {
            return None;
        }
        let time = self.latest.map_or(led.time, |latest| led.time.max(latest + 1));
        if let Some(step) = self.latest.map(|latest| time - latest)
            && (2..=LONGEST_STEP).contains(&step)
        {
            self.step = step;
        }
        self.latest = Some(time);
        Some(TimedPicture {
            time,
            is_leading: !picture.is_key && self.key.is_some_and(|(key, _)| shown < key),
            sample: Sample {
                duration: u32::try_from(self.step).unwrap_or(1),
                offset: shown - time,
                is_key: picture.is_key,
                data: picture.data,
            },
        })
    }

    /// Whether a decoder has what it needs for this picture; notes a key frame.
    fn can_follow(&mut self, picture: &crate::video::Picture, shown: i64) -> bool {
        if picture.is_key {
            let Some(config) = self.reader.config() else { return false };
            if self.config.as_ref() != Some(config) {
                self.config = Some(config.clone());
            }
            self.key = Some((shown, self.awaits_key));
            self.awaits_key = false;
            return true;
        }
        let was_start = self.key.is_some_and(|(key, is_start)| is_start && shown < key);
        let skips = picture.is_skipped_leading && self.key.is_some_and(|(_, is_start)| is_start);
        !self.awaits_key && !was_start && !skips
    }
}

/// 40 ms, until the second picture tells.
const FIRST_STEP: i64 = 3_600;

/// Longer steps are gaps.
const LONGEST_STEP: i64 = 90_000;

/// Reordering within 16 pictures of any usual rate.
const LONGEST_OFFSET: i64 = 2 * 90_000;
