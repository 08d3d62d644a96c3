use super::bit_reader::BitReader;
use super::emulation_prevention::without_emulation_prevention;
use super::facts::{SampleFormat, VideoFormat, cut_size, rate, subsampling};
use super::usability::skip_first_fields;

/// The format in a sequence parameter set of H.264, which begins with the byte of its type, if it
/// can be read (ISO/IEC 14496-10 section 7.3.2.1.1).
pub fn read(nal: &[u8]) -> Option<VideoFormat> {
    let plain = without_emulation_prevention(nal.get(1..)?);
    let mut bits = BitReader::new(&plain);
    let [profile_number, constraints, level] = [bits.byte()?, bits.byte()?, bits.byte()?];
    bits.unsigned()?;
    let (mut chroma, mut depths) = (1, [8, 8]);
    if HAS_CHROMA_FORMAT.contains(&profile_number) {
        chroma = bits.unsigned().filter(|format| *format <= 3)?;
        if chroma == 3 {
            bits.bit()?;
        }
        for depth in &mut depths {
            *depth = 8 + bits.unsigned().filter(|more| *more <= 6)? as u8;
        }
        bits.bit()?;
        if bits.bit()? {
            skip_scaling_lists(&mut bits, if chroma == 3 { 12 } else { 8 })?;
        }
    }
    bits.unsigned()?;
    skip_order_count(&mut bits)?;
    bits.unsigned()?;
    bits.bit()?;
    let (width, height) = read_size(&mut bits, chroma)?;
    let samples = SampleFormat {
        chroma: chroma as u8,
        luma_bits: depths[0],
        chroma_bits: depths[1],
        chroma_position: 0,
    };
    Some(VideoFormat {
        profile: profile(profile_number, constraints),
        profile_number,
        level,
        is_high_tier: false,
        width,
        height,
        frame_rate: frame_rate(&mut bits),
        samples: Some(samples),
    })
}

fn skip_scaling_lists(bits: &mut BitReader<'_>, count: usize) -> Option<()> {
    for list in 0..count {
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

fn skip_order_count(bits: &mut BitReader<'_>) -> Option<()> {
    match bits.unsigned()? {
        0 => {
            bits.unsigned()?;
        }
        1 => {
            bits.bit()?;
            bits.signed()?;
            bits.signed()?;
            for _ in 0..bits.unsigned().filter(|count| *count <= 255)? {
                bits.signed()?;
            }
        }
        _ => {}
    }
    Some(())
}

/// Width and height without what is cut off.
fn read_size(bits: &mut BitReader<'_>, chroma: u32) -> Option<(u32, u32)> {
    let width = (u64::from(bits.unsigned()?) + 1) * 16;
    let map_height = (u64::from(bits.unsigned()?) + 1) * 16;
    let is_frames_only = bits.bit()?;
    if !is_frames_only {
        bits.bit()?;
    }
    let fields = if is_frames_only { 1 } else { 2 };
    bits.bit()?;
    let mut cut = [0; 4];
    if bits.bit()? {
        for side in &mut cut {
            *side = bits.unsigned()?;
        }
    }
    let [across, down] = subsampling(chroma);
    cut_size([width, map_height * fields], cut, [across, down * fields])
}

/// The frame rate in the usability information (annex E.1.1): the ticks are those of fields.
fn frame_rate(bits: &mut BitReader<'_>) -> Option<(u32, u32)> {
    if !bits.bit()? {
        return None;
    }
    skip_first_fields(bits)?;
    if !bits.bit()? {
        return None;
    }
    let (ticks, scale) = (bits.bits(32)?, bits.bits(32)?);
    rate(scale.into(), 2 * u64::from(ticks))
}

fn profile(number: u8, constraints: u8) -> &'static str {
    match number {
        66 if constraints & 0x40 != 0 => "Constrained Baseline",
        66 => "Baseline",
        77 => "Main",
        88 => "Extended",
        100 => "High",
        110 => "High 10",
        122 => "High 4:2:2",
        244 => "High 4:4:4 Predictive",
        _ => "",
    }
}

/// Those with the fields of chroma and scaling.
const HAS_CHROMA_FORMAT: [u8; 13] = [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135];

/// The type of a slice, from the byte of its NAL unit's type on (section 7.3.3).
pub(crate) fn slice_type(nal: &[u8]) -> Option<u32> {
    let plain = without_emulation_prevention(nal.get(1..)?);
    let mut bits = BitReader::new(&plain);
    bits.unsigned()?;
    bits.unsigned()
}

/// Whether a unit of supplemental information, from behind its type on, says that decoding may
/// begin here (section 7.3.2.3 and annex D). Bytes that keep start codes out make a message longer,
/// which does not matter for its type.
pub fn has_recovery_point(mut messages: &[u8]) -> bool {
    const RECOVERY_POINT: usize = 6;
    while messages.len() > 1 {
        let Some(kind) = message_number(&mut messages) else { return false };
        if kind == RECOVERY_POINT {
            return true;
        }
        let Some(length) = message_number(&mut messages) else { return false };
        messages = messages.get(length..).unwrap_or_default();
    }
    false
}

/// The type or the length of a message: bytes of 255, and a last one.
fn message_number(bytes: &mut &[u8]) -> Option<usize> {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// That of x264 for 320 by 180 at 25 frames a second.
    const SET: [u8; 28] = [
        0x67, 0x64, 0x00, 0x0D, 0xAC, 0xD9, 0x41, 0x41, 0x9F, 0x9F, 0x01, 0x10, 0x00, 0x00, 0x03,
        0x00, 0x10, 0x00, 0x00, 0x03, 0x03, 0x20, 0xF1, 0x42, 0x99, 0x60, 0x00, 0x00,
    ];

    #[test]
    fn a_parameter_set_tells_size_and_rate() {
        let format = read(&SET).unwrap();
        assert_eq!((format.profile, format.level), ("High", 13));
        assert_eq!((format.width, format.height), (320, 180));
        assert_eq!(format.frame_rate, Some((25, 1)));
        assert_eq!(read(&SET[..8]), None, "cut short");
    }

    proptest! {
        #[test]
        fn any_parameter_set_is_read(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            for format in [read(&bytes), crate::format::hevc_format(&bytes), crate::format::av1_format(&bytes)] {
                prop_assert!(format.is_none_or(|it| it.width > 0 && it.height <= 65_536));
            }
        }
    }
}
