use mp4_atom::{Avc1, Avcc, AvccExt};
use punctual_mpegts::without_emulation_prevention;

use super::nal::{append_with_length, nal_units};
use super::parameter_sets::ParameterSets;
use super::{Picture, VideoCoding, VideoConfig, visual};
use crate::bits::BitReader;

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
        let fields = Sps::read(sps)?;
        let &[_, profile, compatibility, level, ..] = sps else { return None };
        let ext = matches!(profile, 100 | 110 | 122 | 144).then(|| AvccExt {
            chroma_format: fields.chroma_format,
            bit_depth_luma: fields.bit_depth_luma,
            bit_depth_chroma: fields.bit_depth_chroma,
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
        let (width, height) = (fields.width, fields.height);
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

/// Whether an SEI message says that decoding may start here (recovery point, payload type 6).
fn has_recovery_point(mut messages: &[u8]) -> bool {
    // Each message has a type and a size, in bytes of 255 and a last one.
    while messages.len() > 2 {
        let Some(kind) = sei_number(&mut messages) else { return false };
        let Some(size) = sei_number(&mut messages) else { return false };
        if kind == 6 {
            return true;
        }
        messages = messages.get(size..).unwrap_or_default();
    }
    false
}

fn sei_number(bytes: &mut &[u8]) -> Option<usize> {
    let mut number = 0;
    loop {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number += usize::from(byte);
        if byte != 255 {
            return Some(number);
        }
    }
}

/// The fields of a sequence parameter set that a sample entry repeats.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Sps {
    chroma_format: u8,
    bit_depth_luma: u8,
    bit_depth_chroma: u8,
    width: u16,
    height: u16,
}

impl Sps {
    /// Section 7.3.2.1.1, up to the cropping.
    fn read(nal: &[u8]) -> Option<Self> {
        let raw = without_emulation_prevention(nal);
        let mut bits = BitReader::new(raw.get(1..)?);
        let profile = bits.bits(8)?;
        bits.skip(16)?;
        bits.unsigned()?;
        let (mut chroma_format, mut depths) = (1, [8, 8]);
        if HAS_CHROMA_FORMAT.contains(&profile) {
            chroma_format = bits.unsigned().filter(|&format| format <= 3)?;
            if chroma_format == 3 {
                bits.bit()?;
            }
            for depth in &mut depths {
                *depth = 8 + bits.unsigned().filter(|&depth| depth <= 6)?;
            }
            bits.bit()?;
            skip_scaling_matrix(&mut bits, chroma_format)?;
        }
        bits.unsigned()?;
        skip_picture_order(&mut bits)?;
        bits.unsigned()?;
        bits.bit()?;
        let (width, height) = read_size(&mut bits, chroma_format)?;
        Some(Self {
            chroma_format: u8::try_from(chroma_format).ok()?,
            bit_depth_luma: u8::try_from(depths[0]).ok()?,
            bit_depth_chroma: u8::try_from(depths[1]).ok()?,
            width,
            height,
        })
    }
}

fn skip_scaling_matrix(bits: &mut BitReader<'_>, chroma_format: u32) -> Option<()> {
    if !bits.bit()? {
        return Some(());
    }
    for list in 0..if chroma_format == 3 { 12 } else { 8 } {
        if !bits.bit()? {
            continue;
        }
        let (mut last, mut next) = (8, 8);
        for _ in 0..if list < 6 { 16 } else { 64 } {
            if next != 0 {
                next = (last + bits.signed()?.clamp(-128, 127)).rem_euclid(256);
            }
            last = if next == 0 { last } else { next };
        }
    }
    Some(())
}

fn skip_picture_order(bits: &mut BitReader<'_>) -> Option<()> {
    match bits.unsigned()? {
        0 => {
            bits.unsigned()?;
        }
        1 => {
            bits.bit()?;
            bits.signed()?;
            bits.signed()?;
            for _ in 0..bits.unsigned().filter(|&count| count <= 255)? {
                bits.signed()?;
            }
        }
        _ => {}
    }
    Some(())
}

/// Width and height without what is cropped.
fn read_size(bits: &mut BitReader<'_>, chroma_format: u32) -> Option<(u16, u16)> {
    let wide = bits.unsigned()?.checked_add(1)?.checked_mul(16)?;
    let rows = bits.unsigned()?.checked_add(1)?.checked_mul(16)?;
    let is_frames_only = bits.bit()?;
    let fields = if is_frames_only { 1 } else { 2 };
    if !is_frames_only {
        bits.bit()?;
    }
    bits.bit()?;
    let mut crop = [0; 4];
    if bits.bit()? {
        for side in &mut crop {
            *side = bits.unsigned()?;
        }
    }
    let unit_x = if matches!(chroma_format, 1 | 2) { 2 } else { 1 };
    let unit_y = if chroma_format == 1 { 2 } else { 1 } * fields;
    let [left, right, top, bottom] = crop;
    let width = wide.checked_sub(left.checked_add(right)?.checked_mul(unit_x)?)?;
    let height =
        rows.checked_mul(fields)?.checked_sub(top.checked_add(bottom)?.checked_mul(unit_y)?)?;
    Some((u16::try_from(width).ok()?, u16::try_from(height).ok()?))
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

/// Profiles whose sequence parameter set has chroma format and bit depths.
const HAS_CHROMA_FORMAT: [u32; 13] = [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135];

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
            let _ = Sps::read(&nal);
            Reader::default().read(&stream(&[&nal, &[104, 233], &nal[3..]]));
        }
    }
}
