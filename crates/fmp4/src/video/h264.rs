use mp4_atom::{Avc1, Avcc, AvccExt};
use punctual_mpegts::{BitReader, h264_format, has_recovery_point};

use super::nal::{append_with_length, nal_units};
use super::parameter_sets::ParameterSets;
use super::{Picture, VideoCoding, VideoConfig, size, visual};

/// Reads access units of H.264 (ISO/IEC 14496-10), and writes samples of `avc1`
/// (ISO/IEC 14496-15).
#[derive(Debug, Default)]
pub(crate) struct Reader {
    sps: ParameterSets,
    pps: ParameterSets,
    config: Option<VideoConfig>,
}

impl Reader {
    pub(super) fn read(&mut self, access_unit: &[u8]) -> Picture {
        let mut picture = Picture::default();
        let (mut changed, mut has_picture) = (false, false);
        for nal in nal_units(access_unit) {
            match nal[0] & 0x1F {
                SPS => {
                    changed |= set_number(&nal[4.min(nal.len())..])
                        .is_some_and(|id| self.sps.insert(id, nal));
                }
                PPS => {
                    changed |= set_number(&nal[1..]).is_some_and(|id| self.pps.insert(id, nal));
                }
                DELIMITER | END_OF_SEQUENCE | END_OF_STREAM | FILLER => {}
                kind => {
                    picture.is_key |=
                        kind == IDR_SLICE || (kind == SEI && has_recovery_point(&nal[1..]));
                    has_picture |= (SLICE..=IDR_SLICE).contains(&kind);
                    append_with_length(nal, &mut picture.data);
                }
            }
        }
        if changed {
            self.config = self.make_config();
        }
        if has_picture { picture } else { Picture::default() }
    }

    pub(super) fn config(&self) -> Option<&VideoConfig> {
        self.config.as_ref()
    }

    fn make_config(&self) -> Option<VideoConfig> {
        let sps = self.sps.first()?;
        self.pps.first()?;
        let format = h264_format(sps)?;
        let samples = format.samples?;
        let &[_, profile, compatibility, level, ..] = sps else { return None };
        let ext = matches!(profile, 100 | 110 | 122 | 144).then(|| AvccExt {
            chroma_format: samples.chroma,
            bit_depth_luma: samples.luma_bits,
            bit_depth_chroma: samples.chroma_bits,
            sequence_parameter_sets_ext: Vec::new(),
        });
        let avcc = Avcc {
            configuration_version: 1,
            avc_profile_indication: profile,
            profile_compatibility: compatibility,
            avc_level_indication: level,
            length_size: 4,
            sequence_parameter_sets: self.sps.to_vec(),
            picture_parameter_sets: self.pps.to_vec(),
            ext,
        };
        let (width, height) = size(&format)?;
        let entry = Avc1 {
            visual: visual(width, height),
            avcc,
            btrt: None,
            colr: None,
            pasp: None,
            taic: None,
            fiel: None,
            spatial: None,
        };
        Some(VideoConfig {
            coding: VideoCoding::H264,
            codec: format!("avc1.{profile:02x}{compatibility:02x}{level:02x}"),
            width,
            height,
            entry: entry.into(),
        })
    }
}

/// The number at the start of a parameter set.
fn set_number(bytes: &[u8]) -> Option<u8> {
    u8::try_from(BitReader::new(bytes).unsigned()?).ok()
}

const SLICE: u8 = 1;
const IDR_SLICE: u8 = 5;
const SEI: u8 = 6;
const SPS: u8 = 7;
const PPS: u8 = 8;
const DELIMITER: u8 = 9;
const END_OF_SEQUENCE: u8 = 10;
const END_OF_STREAM: u8 = 11;
const FILLER: u8 = 12;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 1280 × 720, High, level 3.1, from a file of x264.
    const HIGH: &[u8] = &[
        103, 100, 0, 31, 172, 217, 128, 80, 5, 187, 1, 106, 2, 2, 2, 128, 0, 0, 3, 0, 128, 0, 0,
        30, 7, 140, 24, 205,
    ];

    fn stream(nals: &[&[u8]]) -> Vec<u8> {
        nals.iter().flat_map(|nal| [&[0, 0, 0, 1][..], nal].concat()).collect()
    }

    #[test]
    fn parameter_sets_become_the_config_and_leave_the_sample() {
        let mut reader = Reader::default();
        let unit = stream(&[&[9, 0xF0], HIGH, &[104, 233, 123], &[0x65, 1, 2], &[12, 255, 128]]);
        let picture = reader.read(&unit);
        assert!(picture.is_key);
        assert_eq!(picture.data, [0, 0, 0, 3, 0x65, 1, 2]);
        let config = reader.config().unwrap();
        assert_eq!(config.codec, "avc1.64001f");
        assert_eq!((config.width, config.height), (1280, 720));

        let picture = reader.read(&stream(&[&[0x41, 9]]));
        assert!(!picture.is_key);
        assert_eq!(picture.data, [0, 0, 0, 2, 0x41, 9]);
        assert_eq!(reader.read(&stream(&[&[6, 1, 1, 0]])), Picture::default(), "no picture");
    }

    #[test]
    fn a_recovery_point_is_a_place_to_start() {
        let mut reader = Reader::default();
        let point = [6, 5, 2, 0, 0, 6, 1, 0x84, 0x80];
        assert!(reader.read(&stream(&[&point, &[0x41, 9]])).is_key);
        let other = [6, 5, 2, 6, 6, 1, 1, 0x84, 0x80];
        assert!(!reader.read(&stream(&[&other, &[0x41, 9]])).is_key);
    }

    proptest! {
        #[test]
        fn any_parameter_set_is_read(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let mut nal = HIGH[..6].to_vec();
            nal.extend(bytes);
            Reader::default().read(&stream(&[&nal, &[104, 233], &nal[3..]]));
        }
    }
}
