use mp4_atom::{Av01, Av1c};
use punctual_mpegts::{av1_format, without_emulation_prevention};

use super::nal::nal_units;
use super::{Picture, VideoCoding, VideoConfig, size, visual};

/// Reads temporal units of AV1, and writes samples of `av01` (AV1 in ISO BMFF).
///
/// "Carriage of AV1 in MPEG-2 TS" puts a start code before each OBU and keeps start codes out of
/// its bytes, as in H.264. Multiplexers from before that document write the OBUs as in a file; both
/// are read.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    sequence: Vec<u8>,
    config: Option<VideoConfig>,
}

impl Reader {
    pub(super) fn read(&mut self, temporal_unit: &[u8]) -> Picture {
        let mut picture = Picture::default();
        let mut has_frame = false;
        let mut take = |header: &[u8], payload: &[u8]| {
            match header[0] >> 3 & 0x0F {
                SEQUENCE_HEADER => self.take_sequence(payload),
                FRAME | FRAME_HEADER if !has_frame => {
                    has_frame = true;
                    picture.is_key = is_key_frame(payload, self.is_still());
                }
                FRAME | FRAME_HEADER | TILE_GROUP | METADATA => {}
                // Temporal delimiters, tile lists and padding do not belong into a sample.
                _ => return,
            }
            append_obu(header, payload, &mut picture.data);
        };
        if temporal_unit.starts_with(&[0, 0, 1]) || temporal_unit.starts_with(&[0, 0, 0, 1]) {
            for nal in nal_units(temporal_unit) {
                let obu = without_emulation_prevention(nal);
                if let Some((header, payload, _)) = split_obu(&obu) {
                    take(header, payload);
                }
            }
        } else {
            let mut rest = temporal_unit;
            while let Some((header, payload, after)) = split_obu(rest) {
                take(header, payload);
                rest = after;
            }
        }
        if has_frame { picture } else { Picture::default() }
    }

    pub(super) fn config(&self) -> Option<&VideoConfig> {
        self.config.as_ref()
    }

    fn is_still(&self) -> bool {
        // reduced_still_picture_header is the bit after the profile and still_picture.
        self.sequence.first().is_some_and(|byte| byte & 0x08 != 0)
    }

    fn take_sequence(&mut self, payload: &[u8]) {
        if self.sequence != payload && payload.len() <= LONGEST_SEQUENCE {
            self.sequence = payload.to_vec();
            self.config = make_config(payload);
        }
    }
}

/// The header, the payload and the bytes after an OBU (section 5.3). One without a size goes up to
/// the end.
fn split_obu(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let first = *bytes.first()?;
    if first & 0x80 != 0 {
        return None;
    }
    let header = if first & 0x04 != 0 { 2 } else { 1 };
    let (header, rest) = bytes.split_at_checked(header)?;
    if first & 0x02 == 0 {
        return Some((header, rest, &[]));
    }
    let mut size = 0;
    for (index, &byte) in rest.iter().take(5).enumerate() {
        size |= usize::from(byte & 0x7F) << (7 * index);
        if byte & 0x80 == 0 {
            let (payload, after) = rest[index + 1..].split_at_checked(size)?;
            return Some((header, payload, after));
        }
    }
    None
}

/// Appends an OBU that tells its size.
fn append_obu(header: &[u8], payload: &[u8], to: &mut Vec<u8>) {
    to.push(header[0] | 0x02);
    to.extend_from_slice(&header[1..]);
    let mut size = payload.len();
    while size > 0x7F {
        to.push(0x80 | size.to_le_bytes()[0] & 0x7F);
        size >>= 7;
    }
    to.push(size.to_le_bytes()[0]);
    to.extend_from_slice(payload);
}

/// Whether a frame header begins with a key frame that is shown.
fn is_key_frame(header: &[u8], is_still: bool) -> bool {
    // show_existing_frame, frame_type (0: key frame), show_frame
    is_still || header.first().is_some_and(|byte| byte & 0b1111_0000 == 0b0001_0000)
}

/// The sample entry for the payload of a sequence header.
fn make_config(payload: &[u8]) -> Option<VideoConfig> {
    let format = av1_format(payload)?;
    let samples = format.samples?;
    let (width, height) = size(&format)?;
    let mut config_obus = Vec::new();
    append_obu(&[SEQUENCE_HEADER << 3], payload, &mut config_obus);
    let entry = Av01 {
        visual: visual(width, height),
        av1c: Av1c {
            seq_profile: format.profile_number,
            seq_level_idx_0: format.level,
            seq_tier_0: format.is_high_tier,
            high_bitdepth: samples.luma_bits > 8,
            twelve_bit: samples.luma_bits == 12,
            monochrome: samples.chroma == 0,
            chroma_subsampling_x: samples.chroma < 3,
            chroma_subsampling_y: samples.chroma < 2,
            chroma_sample_position: samples.chroma_position,
            initial_presentation_delay: None,
            config_obus,
        },
        btrt: None,
        ccst: None,
        colr: None,
        pasp: None,
        taic: None,
        spatial: None,
    };
    let tier = if format.is_high_tier { 'H' } else { 'M' };
    let (profile, level, depth) = (format.profile_number, format.level, samples.luma_bits);
    Some(VideoConfig {
        coding: VideoCoding::Av1,
        codec: format!("av01.{profile}.{level:02}{tier}.{depth:02}"),
        width,
        height,
        entry: entry.into(),
    })
}

const SEQUENCE_HEADER: u8 = 1;
const FRAME_HEADER: u8 = 3;
const TILE_GROUP: u8 = 4;
const METADATA: u8 = 5;
const FRAME: u8 = 6;

/// Real sequence headers have a dozen bytes.
const LONGEST_SEQUENCE: usize = 4096;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 320 × 240, main profile, 8 bits, from SVT-AV1.
    const SEQUENCE: &[u8] =
        &[0x0A, 0x0B, 0x00, 0x00, 0x00, 0x04, 0x3C, 0xFE, 0xEF, 0xFF, 0x9B, 0xFF, 0x30];

    #[test]
    fn both_forms_become_a_sample() {
        let key = [0x32, 3, 0x10, 0, 1];
        let plain = [&[0x12, 0][..], SEQUENCE, &key].concat();
        let mut reader = Reader::default();
        let picture = reader.read(&plain);
        assert!(picture.is_key);
        assert_eq!(picture.data, [SEQUENCE, &key].concat());

        let coded =
            [&[0, 0, 1, 0x12, 0, 0, 0, 1][..], SEQUENCE, &[0, 0, 1, 0x30, 0x10, 0, 0, 3, 1]];
        let picture = Reader::default().read(&coded.concat());
        assert!(picture.is_key);
        assert_eq!(picture.data[SEQUENCE.len()..], [0x32, 4, 0x10, 0, 0, 1]);

        let delta = reader.read(&[0x12, 0, 0x32, 2, 0x30, 1]);
        assert!(!delta.is_key);
        assert_eq!(reader.read(&[0x12, 0]), Picture::default());
    }

    proptest! {
        #[test]
        fn any_unit_is_read(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let mut reader = Reader::default();
            reader.read(&bytes);
            reader.read(&[&[0, 0, 1, 0x0A][..], &bytes].concat());
            let obu = [&[0x0A, u8::try_from(bytes.len()).unwrap()][..], &bytes].concat();
            reader.read(&obu);
        }
    }
}
