//! Frames of sound as samples of MP4: headers are taken off, what a decoder must know stands in the
//! sample entry.

mod aac;
mod adts;
mod latm;
mod mpeg;
mod opus;

use mp4_atom::{Audio, Codec, FixedPoint};

/// The coding of a sound stream, and its form in the transport stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum AudioCoding {
    AacAdts,
    AacLatm,
    Opus,
    Mpeg,
}

/// The needs of a decoder before the first frame.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AudioConfig {
    /// The usual name, such as `AAC`.
    pub(crate) name: &'static str,
    /// As RFC 6381 and browsers name it.
    pub(crate) codec: String,
    pub(crate) sample_rate: u32,
    pub(crate) channels: u8,
    pub(crate) entry: Codec,
}

/// A frame as a sample of MP4.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SoundFrame {
    pub(crate) data: Vec<u8>,
    /// How long the frame plays, in samples of each channel.
    pub(crate) samples: u32,
    /// Whether the frame is the first that begins in the PES packet, so that its time is the
    /// packet's.
    pub(crate) is_timed: bool,
}

/// Splits the payloads of PES packets into frames, which may lie across them.
#[derive(Debug)]
pub(crate) struct AudioReader {
    format: Format,
    /// The begin of a frame that goes on in the next PES packet.
    rest: Vec<u8>,
    config: Option<AudioConfig>,
}

#[derive(Debug)]
enum Format {
    Adts,
    Latm(Box<latm::Reader>),
    Opus,
    Mpeg,
}

/// The finding at the begin of some bytes.
#[expect(clippy::large_enum_variant, reason = "it lives until the frame is taken")]
enum FoundFrame {
    /// A frame in the first `length` bytes; the configuration if it may have changed.
    Frame { length: usize, data: Vec<u8>, samples: u32, config: Option<AudioConfig> },
    /// A frame that is not whole yet, or the begin of one.
    Part,
    /// Nothing that is known.
    Unknown,
}

impl AudioReader {
    pub(crate) fn new(coding: AudioCoding) -> Self {
        let format = match coding {
            AudioCoding::AacAdts => Format::Adts,
            AudioCoding::AacLatm => Format::Latm(Box::default()),
            AudioCoding::Opus => Format::Opus,
            AudioCoding::Mpeg => Format::Mpeg,
        };
        Self { format, rest: Vec::new(), config: None }
    }

    /// The configuration of the latest frames; `None` until there was one.
    pub(crate) fn config(&self) -> Option<&AudioConfig> {
        self.config.as_ref()
    }

    /// Forgets the begin of a frame, as its end will not come.
    pub(crate) fn forget_part(&mut self) {
        self.rest.clear();
    }

    /// The frames that the payload of the next PES packet completes. Bytes that are no frame are
    /// skipped. Frames of another configuration than the first of them are left for the next call.
    pub(crate) fn read(&mut self, payload: &[u8]) -> Vec<SoundFrame> {
        let mut at = 0;
        let begin = self.rest.len();
        let mut bytes = std::mem::take(&mut self.rest);
        bytes.extend_from_slice(payload);
        let mut frames: Vec<SoundFrame> = Vec::new();
        let mut has_timed = false;
        while at < bytes.len() {
            match self.format.find(&bytes[at..]) {
                FoundFrame::Frame { length, data, samples, config } => {
                    let is_timed = at >= begin && !has_timed;
                    has_timed |= is_timed;
                    if config.is_some() && config != self.config {
                        frames.clear();
                        self.config = config;
                    }
                    if self.config.is_some() {
                        frames.push(SoundFrame { data, samples, is_timed });
                    }
                    at += length.max(1);
                }
                FoundFrame::Part if bytes.len() - at <= LONGEST_FRAME => break,
                FoundFrame::Part | FoundFrame::Unknown => at += 1,
            }
        }
        bytes.drain(..at.min(bytes.len()));
        self.rest = if self.format.crosses_packets() { bytes } else { Vec::new() };
        frames
    }
}

impl Format {
    fn find(&mut self, bytes: &[u8]) -> FoundFrame {
        match self {
            Self::Adts => adts::find(bytes),
            Self::Latm(reader) => reader.find(bytes),
            Self::Opus => opus::find(bytes),
            Self::Mpeg => mpeg::find(bytes),
        }
    }

    fn crosses_packets(&self) -> bool {
        !matches!(self, Self::Opus)
    }
}

/// The common fields of an audio sample entry.
fn audio(sample_rate: u32, channels: u8) -> Audio {
    Audio {
        data_reference_index: 1,
        channel_count: channels.into(),
        sample_size: 16,
        // Rates above 16 bits do not fit; decoders read the codec's own.
        sample_rate: FixedPoint::new(u16::try_from(sample_rate).unwrap_or(0), 0),
    }
}

/// Frames of ADTS and LATM tell lengths of 13 bits; those of MPEG audio are shorter.
const LONGEST_FRAME: usize = 16_384;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A frame of ADTS: LC, 48 kHz, stereo, with `length` bytes in it.
    fn adts(length: usize) -> Vec<u8> {
        let total = length + 7;
        let byte = |value: usize| u8::try_from(value & 0xFF).unwrap();
        let mut frame = vec![0xFF, 0xF1, 0x4C, 0x80 | byte(total >> 11), byte(total >> 3)];
        frame.extend([byte(total << 5) | 0x1F, 0xFC]);
        frame.extend((0..length).map(|at| u8::try_from(at % 250).unwrap()));
        frame
    }

    #[test]
    fn frames_cross_packets_and_the_first_that_begins_has_the_time() {
        let stream = [adts(100), adts(50), adts(70)].concat();
        let mut reader = AudioReader::new(AudioCoding::AacAdts);
        let first = reader.read(&stream[..130]);
        assert_eq!(first.len(), 1);
        assert!(first[0].is_timed && first[0].data.len() == 100 && first[0].samples == 1024);
        let second = reader.read(&stream[130..]);
        let seen: Vec<_> = second.iter().map(|it| (it.data.len(), it.is_timed)).collect();
        assert_eq!(seen, [(50, false), (70, true)]);
        let config = reader.config().unwrap();
        assert_eq!((config.codec.as_str(), config.sample_rate), ("mp4a.40.2", 48_000));
    }

    #[test]
    fn bytes_that_are_no_frame_are_skipped() {
        let mut reader = AudioReader::new(AudioCoding::AacAdts);
        let stream = [&[1, 2, 0xFF, 3][..], &adts(30), &adts(25), &[0; 40], &adts(20)].concat();
        let lengths: Vec<_> = reader.read(&stream).iter().map(|it| it.data.len()).collect();
        assert_eq!(lengths, [30, 20], "the second is followed by no header");
    }

    proptest! {
        #[test]
        fn any_payloads_are_read(
            payloads in proptest::collection::vec(
                proptest::collection::vec(
                    prop_oneof![Just(0xFF), Just(0x56), Just(0xE0), Just(0x7F), any::<u8>()],
                    0..200,
                ),
                0..10,
            ),
        ) {
            use AudioCoding::{AacAdts, AacLatm, Mpeg, Opus};
            for coding in [AacAdts, AacLatm, Opus, Mpeg] {
                let mut reader = AudioReader::new(coding);
                for payload in &payloads {
                    for frame in reader.read(payload) {
                        prop_assert!(frame.samples > 0);
                    }
                    prop_assert!(reader.rest.len() <= LONGEST_FRAME);
                }
            }
        }
    }
}
