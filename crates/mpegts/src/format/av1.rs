use super::bit_reader::BitReader;
use super::facts::{SampleFormat, VideoFormat, rate, size};

/// The format in the payload of a sequence header of AV1, if it can be read (AV1 section 5.5.1).
pub fn read(payload: &[u8]) -> Option<VideoFormat> {
    let mut bits = BitReader::new(payload);
    let profile_number = bits.bits(3)? as u8;
    bits.skip(1)?;
    let is_reduced = bits.bit()?;
    let (mut frame_rate, mut is_high_tier) = (None, false);
    let level = if is_reduced {
        bits.bits(5)?
    } else {
        let mut decoder_delay_bits = None;
        if bits.bit()? {
            frame_rate = timing(&mut bits)?;
            if bits.bit()? {
                decoder_delay_bits = Some(bits.bits(5)? + 1);
                bits.skip(32 + 5 + 5)?;
            }
        }
        let first = operating_points(&mut bits, decoder_delay_bits)?;
        is_high_tier = first.is_high_tier;
        first.level
    };
    let (width_bits, height_bits) = (bits.bits(4)? + 1, bits.bits(4)? + 1);
    let width = u64::from(bits.bits(width_bits)?) + 1;
    let height = u64::from(bits.bits(height_bits)?) + 1;
    let (width, height) = size(width, height)?;
    skip_tools(&mut bits, is_reduced)?;
    let profile = match profile_number {
        0 => "Main",
        1 => "High",
        2 => "Professional",
        _ => "",
    };
    Some(VideoFormat {
        profile,
        profile_number,
        level: level as u8,
        is_high_tier,
        width,
        height,
        frame_rate,
        samples: Some(samples(&mut bits, profile_number)?),
    })
}

/// Timing information (section 5.5.3): the rate, if all pictures take the same time.
fn timing(bits: &mut BitReader<'_>) -> Option<Option<(u32, u32)>> {
    let (ticks, scale) = (bits.bits(32)?, bits.bits(32)?);
    if !bits.bit()? {
        return Some(None);
    }
    let ticks_in_picture = u64::from(bits.unsigned()?) + 1;
    let ticks = u64::from(ticks).checked_mul(ticks_in_picture);
    Some(ticks.and_then(|ticks| rate(scale.into(), ticks)))
}

#[derive(Clone, Copy)]
struct OperatingPoint {
    level: u32,
    is_high_tier: bool,
}

/// Passes over the operating points and gives the first.
fn operating_points(
    bits: &mut BitReader<'_>,
    decoder_delay_bits: Option<u32>,
) -> Option<OperatingPoint> {
    let has_display_delay = bits.bit()?;
    let mut first = None;
    for _ in 0..=bits.bits(5)? {
        bits.skip(12)?;
        let level = bits.bits(5)?;
        let is_high_tier = level > 7 && bits.bit()?;
        first.get_or_insert(OperatingPoint { level, is_high_tier });
        if let Some(delay_bits) = decoder_delay_bits
            && bits.bit()?
        {
            bits.skip(2 * delay_bits + 1)?;
        }
        if has_display_delay && bits.bit()? {
            bits.skip(4)?;
        }
    }
    first
}

/// Passes over the tools of coding, up to the format of the samples.
fn skip_tools(bits: &mut BitReader<'_>, is_reduced: bool) -> Option<()> {
    if is_reduced {
        return bits.skip(3 + 3);
    }
    if bits.bit()? {
        bits.skip(7)?;
    }
    bits.skip(3 + 4)?;
    let has_order_hint = bits.bit()?;
    if has_order_hint {
        bits.skip(2)?;
    }
    let chooses_tools = bits.bit()?;
    let forces_tools = chooses_tools || bits.bit()?;
    if forces_tools && !bits.bit()? {
        bits.skip(1)?;
    }
    bits.skip(if has_order_hint { 3 + 3 } else { 3 })
}

/// The format of the samples (section 5.5.2).
fn samples(bits: &mut BitReader<'_>, profile: u8) -> Option<SampleFormat> {
    let has_high_depth = bits.bit()?;
    let depth = match has_high_depth {
        false => 8,
        true if profile == 2 && bits.bit()? => 12,
        true => 10,
    };
    let is_monochrome = profile != 1 && bits.bit()?;
    let description = if bits.bit()? { bits.bits(24)? } else { 0 };
    let (chroma, position) = if is_monochrome {
        (0, 0)
    } else if description == SRGB {
        (3, 0)
    } else {
        bits.bit()?;
        let chroma = match profile {
            0 => 1,
            1 => 3,
            _ if depth < 12 => 2,
            _ if !bits.bit()? => 3,
            _ if bits.bit()? => 1,
            _ => 2,
        };
        (chroma, if chroma == 1 { bits.bits(2)? as u8 } else { 0 })
    };
    Some(SampleFormat { chroma, luma_bits: depth, chroma_bits: depth, chroma_position: position })
}

/// BT.709 primaries, the sRGB curve and the identity matrix: red, green and blue.
const SRGB: u32 = 1 << 16 | 13 << 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_header_tells_the_size() {
        // That of SVT-AV1 for 320 by 180.
        let header = [0x00, 0x00, 0x00, 0x04, 0x3C, 0xFE, 0xCC, 0xFB, 0xF9, 0x00, 0x40];
        let format = read(&header).unwrap();
        assert_eq!((format.profile, format.level), ("Main", 0));
        assert_eq!((format.width, format.height), (320, 180));
        assert_eq!(format.frame_rate, None);
        assert_eq!(read(&header[..4]), None, "cut short");
    }
}
