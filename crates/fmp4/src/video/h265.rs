use mp4_atom::{Hvc1, HvcCArray, Hvcc};
use punctual_mpegts::{BitReader, hevc_format, without_emulation_prevention};

use super::nal::{append_with_length, nal_units};
use super::parameter_sets::ParameterSets;
use super::{Picture, VideoCoding, VideoConfig, size, visual};

/// Reads access units of HEVC (ISO/IEC 23008-2), and writes samples of `hvc1` (ISO/IEC 14496-15).
#[derive(Debug, Default)]
pub(crate) struct Reader {
    vps: ParameterSets,
    sps: ParameterSets,
    pps: ParameterSets,
    config: Option<VideoConfig>,
}

impl Reader {
    pub(super) fn read(&mut self, access_unit: &[u8]) -> Picture {
        let mut picture = Picture::default();
        let (mut changed, mut has_picture) = (false, false);
        for nal in nal_units(access_unit).filter(|nal| nal.len() > 2) {
            let kind = nal[0] >> 1 & 0x3F;
            match kind {
                // Their numbers: four bits; behind the profile; an Exp-Golomb code.
                VPS => changed |= self.vps.insert(nal[2] >> 4, nal),
                SPS => changed |= self.sps.insert(0, nal),
                PPS => {
                    let id = BitReader::new(&nal[2..]).unsigned();
                    let id = id.and_then(|id| u8::try_from(id).ok());
                    changed |= id.is_some_and(|id| self.pps.insert(id, nal));
                }
                DELIMITER | END_OF_SEQUENCE | END_OF_STREAM | FILLER => {}
                _ => {
                    picture.is_key |= INTRA_RANDOM_ACCESS.contains(&kind);
                    picture.is_skipped_leading |= SKIPPED_LEADING.contains(&kind);
                    has_picture |= kind < VPS;
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
        self.vps.first()?;
        self.pps.first()?;
        let sps = self.sps.first()?;
        let format = hevc_format(sps)?;
        let samples = format.samples?;
        let (width, height) = size(&format)?;
        let plain = without_emulation_prevention(sps);
        // Behind the header: number and layers, then profile, tier and level as they stand.
        let (&layers, profile) = plain.get(2..)?.split_first()?;
        let profile: &[u8; 12] = profile.first_chunk()?;
        let array = |kind, sets: &ParameterSets| HvcCArray {
            completeness: true,
            nal_unit_type: kind,
            nalus: sets.to_vec(),
        };
        let hvcc = Hvcc {
            configuration_version: 1,
            general_profile_space: profile[0] >> 6,
            general_tier_flag: format.is_high_tier,
            general_profile_idc: format.profile_number,
            general_profile_compatibility_flags: profile[1..5].try_into().ok()?,
            general_constraint_indicator_flags: profile[5..11].try_into().ok()?,
            general_level_idc: format.level,
            chroma_format_idc: samples.chroma,
            bit_depth_luma_minus8: samples.luma_bits - 8,
            bit_depth_chroma_minus8: samples.chroma_bits - 8,
            num_temporal_layers: (layers >> 1 & 7) + 1,
            temporal_id_nested: layers & 1 != 0,
            length_size_minus_one: 3,
            arrays: vec![array(VPS, &self.vps), array(SPS, &self.sps), array(PPS, &self.pps)],
            ..Hvcc::default()
        };
        let codec = codec_name(profile);
        let entry = Hvc1 {
            visual: visual(width, height),
            hvcc,
            lhvc: None,
            btrt: None,
            colr: None,
            pasp: None,
            taic: None,
            fiel: None,
            ccst: None,
            spatial: None,
        };
        Some(VideoConfig { coding: VideoCoding::Hevc, codec, width, height, entry: entry.into() })
    }
}

/// The name by ISO/IEC 14496-15 annex E: profile, compatibility with its bits reversed, tier and
/// level, constraints without trailing zeros.
fn codec_name(profile: &[u8; 12]) -> String {
    let space = ["", "A", "B", "C"][usize::from(profile[0] >> 6)];
    let compatibility =
        u32::from_be_bytes([profile[1], profile[2], profile[3], profile[4]]).reverse_bits();
    let tier = if profile[0] & 0x20 != 0 { 'H' } else { 'L' };
    let mut name =
        format!("hvc1.{space}{}.{compatibility:X}.{tier}{}", profile[0] & 0x1F, profile[11]);
    let constraints = &profile[5..11];
    let used = constraints.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    for byte in &constraints[..used] {
        name.push_str(&format!(".{byte:X}"));
    }
    name
}

const VPS: u8 = 32;
const SPS: u8 = 33;
const PPS: u8 = 34;
const DELIMITER: u8 = 35;
const END_OF_SEQUENCE: u8 = 36;
const END_OF_STREAM: u8 = 37;
const FILLER: u8 = 38;

/// BLA, IDR and CRA pictures.
const INTRA_RANDOM_ACCESS: std::ops::RangeInclusive<u8> = 16..=21;

/// RASL pictures.
const SKIPPED_LEADING: std::ops::RangeInclusive<u8> = 8..=9;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 1920 × 1080, Main, level 4, from x265.
    const MAIN: &[u8] = &[
        0x42, 1, 1, 1, 0x60, 0, 0, 3, 0, 0x90, 0, 0, 3, 0, 0, 3, 0, 0x78, 0xA0, 3, 0xC0, 0x80,
        0x10, 0xE5, 0x96, 0x66, 0x69, 0x24, 0xCA, 0xE0, 0x10, 0, 0, 3, 0, 0x10, 0, 0, 3, 1, 0xE0,
        0x80,
    ];

    fn stream(nals: &[&[u8]]) -> Vec<u8> {
        nals.iter().flat_map(|nal| [&[0, 0, 0, 1][..], nal].concat()).collect()
    }

    #[test]
    fn parameter_sets_become_the_config_and_leave_the_sample() {
        let mut reader = Reader::default();
        let unit = stream(&[
            &[0x46, 1, 0x50],
            &[0x40, 1, 0x0C, 1],
            MAIN,
            &[0x44, 1, 0xC1, 0x72],
            &[0x26, 1, 0xAF],
        ]);
        let picture = reader.read(&unit);
        assert!(picture.is_key && !picture.is_skipped_leading);
        assert_eq!(picture.data, [0, 0, 0, 3, 0x26, 1, 0xAF]);
        let config = reader.config().unwrap();
        assert_eq!(config.codec, "hvc1.1.6.L120.90");
        assert_eq!((config.width, config.height), (1920, 1080));
        assert!(reader.read(&stream(&[&[0x10, 1, 9]])).is_skipped_leading);
        assert!(!reader.read(&stream(&[&[0x02, 1, 9]])).is_key);
    }

    proptest! {
        #[test]
        fn any_parameter_set_is_read(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let mut nal = MAIN[..2].to_vec();
            nal.extend(bytes);
            Reader::default().read(&stream(&[&nal, &[0x40, 1, 0x0C], &nal[1..], &[0x44, 1, 9]]));
        }
    }
}
