use super::bits::Bits;
use super::facts::{VideoFormat, rate, size};

/// Reads the payload of a sequence header (AV1 section 5.5.1).
pub(crate) fn read(payload: &[u8]) -> Option<VideoFormat> {
    let mut bits = Bits::new(payload);
    let profile_number = bits.bits(3) as u8;
    bits.skip(1);
    let is_reduced = bits.flag();
    let mut frame_rate = None;
    let level = if is_reduced {
        bits.bits(5)
    } else {
        let mut decoder_delay_bits = None;
        if bits.flag() {
            frame_rate = timing(&mut bits);
            if bits.flag() {
                decoder_delay_bits = Some(bits.bits(5) as usize + 1);
                bits.skip(32 + 5 + 5);
            }
        }
        operating_points(&mut bits, decoder_delay_bits)
    };
    let (width_bits, height_bits) = (bits.bits(4) + 1, bits.bits(4) + 1);
    let width = u64::from(bits.bits(width_bits)) + 1;
    let height = u64::from(bits.bits(height_bits)) + 1;
    let (width, height) = size(width, height)?;
    if bits.is_past_end() {
        return None;
    }
    let profile = match profile_number {
        0 => "Main",
        1 => "High",
        2 => "Professional",
        _ => "",
    };
    let level = level as u8;
    Some(VideoFormat { profile, profile_number, level, width, height, frame_rate })
}

/// Timing information (section 5.5.3): the rate, if all pictures take the same time.
fn timing(bits: &mut Bits<'_>) -> Option<(u32, u32)> {
    let (ticks, scale) = (bits.bits(32), bits.bits(32));
    if !bits.flag() {
        return None;
    }
    let ticks_in_picture = u64::from(bits.uvlc()) + 1;
    rate(scale.into(), u64::from(ticks).checked_mul(ticks_in_picture)?)
}

/// Skips the operating points and gives the level of the first.
fn operating_points(bits: &mut Bits<'_>, decoder_delay_bits: Option<usize>) -> u32 {
    let has_display_delay = bits.flag();
    let mut first = 0;
    for point in 0..=bits.bits(5) {
        bits.skip(12);
        let level = bits.bits(5);
        if point == 0 {
            first = level;
        }
        if level > 7 {
            bits.skip(1);
        }
        if let Some(delay_bits) = decoder_delay_bits
            && bits.flag()
        {
            bits.skip(2 * delay_bits + 1);
        }
        if has_display_delay && bits.flag() {
            bits.skip(4);
        }
    }
    first
}

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
