use super::bit_reader::BitReader;
use super::facts::{VideoFormat, rate, size};

/// Reads a sequence header, from the byte of its start code on (ISO/IEC 13818-2 section 6.2.2.1).
pub(crate) fn read(unit: &[u8]) -> Option<VideoFormat> {
    let mut bits = BitReader::new(unit.get(1..8)?);
    let (width, height) = (bits.bits(12)?, bits.bits(12)?);
    bits.skip(4)?;
    let frame_rate = match bits.bits(4)? {
        1 => rate(24_000, 1_001),
        2 => rate(24, 1),
        3 => rate(25, 1),
        4 => rate(30_000, 1_001),
        5 => rate(30, 1),
        6 => rate(50, 1),
        7 => rate(60_000, 1_001),
        8 => rate(60, 1),
        _ => None,
    };
    let (width, height) = size(width.into(), height.into())?;
    Some(VideoFormat {
        profile: "",
        profile_number: 0,
        level: 0,
        is_high_tier: false,
        width,
        height,
        frame_rate,
        samples: None,
    })
}
