use super::bit_reader::BitReader;
use super::emulation_prevention::without_emulation_prevention;
use super::facts::{SampleFormat, VideoFormat, cut_size, rate, subsampling};
use super::usability::skip_first_fields;

/// The format in a sequence parameter set of HEVC, which begins with its NAL unit's header, if it
/// can be read (ITU-T H.265 section 7.3.2.2).
pub fn read(nal: &[u8]) -> Option<VideoFormat> {
    let plain = without_emulation_prevention(nal.get(2..)?);
    let mut bits = BitReader::new(&plain);
    bits.skip(4)?;
    let sub_layers = bits.bits(3)?;
    bits.skip(1 + 2)?;
    let is_high_tier = bits.bit()?;
    let profile_number = bits.bits(5)? as u8;
    bits.skip(32 + 48)?;
    let level = bits.byte()?;
    skip_sub_layers(&mut bits, sub_layers)?;
    bits.unsigned()?;
    let chroma = bits.unsigned().filter(|format| *format <= 3)?;
    if chroma == 3 {
        bits.bit()?;
    }
    let size = [bits.unsigned()?.into(), bits.unsigned()?.into()];
    let mut cut = [0; 4];
    if bits.bit()? {
        for side in &mut cut {
            *side = bits.unsigned()?;
        }
    }
    let (width, height) = cut_size(size, cut, subsampling(chroma))?;
    let mut depth = || Some(8 + bits.unsigned().filter(|more| *more <= 8)? as u8);
    let samples = SampleFormat {
        chroma: chroma as u8,
        luma_bits: depth()?,
        chroma_bits: depth()?,
        chroma_position: 0,
    };
    let profile = match profile_number {
        1 => "Main",
        2 => "Main 10",
        3 => "Main Still Picture",
        4 => "Range Extensions",
        _ => "",
    };
    Some(VideoFormat {
        profile,
        profile_number,
        level,
        is_high_tier,
        width,
        height,
        frame_rate: frame_rate(&mut bits, sub_layers),
        samples: Some(samples),
    })
}

/// Profiles and levels of temporal layers (section 7.3.3).
fn skip_sub_layers(bits: &mut BitReader<'_>, sub_layers: u32) -> Option<()> {
    let mut length = 0;
    for _ in 0..sub_layers {
        length += if bits.bit()? { 88 } else { 0 };
        length += if bits.bit()? { 8 } else { 0 };
    }
    if sub_layers > 0 {
        bits.skip(2 * (8 - sub_layers))?;
    }
    bits.skip(length)
}

/// The frame rate in the usability information, which stands after everything else.
fn frame_rate(bits: &mut BitReader<'_>, sub_layers: u32) -> Option<(u32, u32)> {
    let order_bits = bits.unsigned()?.checked_add(4).filter(|it| *it <= 16)?;
    let first = if bits.bit()? { 0 } else { sub_layers };
    for _ in 0..3 * (sub_layers - first + 1) {
        bits.unsigned()?;
    }
    for _ in 0..6 {
        bits.unsigned()?;
    }
    if bits.bit()? && bits.bit()? {
        skip_scaling_lists(bits)?;
    }
    bits.skip(2)?;
    if bits.bit()? {
        bits.skip(8)?;
        bits.unsigned()?;
        bits.unsigned()?;
        bits.skip(1)?;
    }
    skip_reference_sets(bits)?;
    if bits.bit()? {
        let count = bits.unsigned().filter(|count| *count <= 32)?;
        bits.skip(count * (order_bits + 1))?;
    }
    bits.skip(2)?;
    if !bits.bit()? {
        return None;
    }
    skip_first_fields(bits)?;
    bits.skip(3)?;
    if bits.bit()? {
        for _ in 0..4 {
            bits.unsigned()?;
        }
    }
    if !bits.bit()? {
        return None;
    }
    let (ticks, scale) = (bits.bits(32)?, bits.bits(32)?);
    rate(scale.into(), ticks.into())
}

fn skip_scaling_lists(bits: &mut BitReader<'_>) -> Option<()> {
    for size in 0..4 {
        for _ in 0..if size == 3 { 2 } else { 6 } {
            if !bits.bit()? {
                bits.unsigned()?;
                continue;
            }
            if size > 1 {
                bits.signed()?;
            }
            for _ in 0..64.min(1 << (4 + 2 * size)) {
                bits.signed()?;
            }
        }
    }
    Some(())
}

/// Short-term reference picture sets (section 7.3.7).
fn skip_reference_sets(bits: &mut BitReader<'_>) -> Option<()> {
    let mut pictures = 0;
    for set in 0..bits.unsigned().filter(|count| *count <= 64)? {
        if set > 0 && bits.bit()? {
            bits.skip(1)?;
            bits.unsigned()?;
            let mut kept = 0;
            for _ in 0..=pictures {
                let is_used = bits.bit()?;
                if is_used || bits.bit()? {
                    kept += 1;
                }
            }
            pictures = kept;
        } else {
            let mut count = || bits.unsigned().filter(|count| *count <= 16);
            pictures = count()? + count()?;
            for _ in 0..pictures {
                bits.unsigned()?;
                bits.skip(1)?;
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_set_tells_size_and_rate() {
        // That of x265 for 320 by 180 at 25 frames a second.
        let set = [
            0x42, 0x01, 0x01, 0x01, 0x60, 0x00, 0x00, 0x03, 0x00, 0x90, 0x00, 0x00, 0x03, 0x00,
            0x00, 0x03, 0x00, 0x3C, 0xA0, 0x0A, 0x08, 0x0C, 0x1F, 0x3E, 0x59, 0x59, 0x52, 0x93,
            0x0B, 0xC0, 0x5A, 0x02, 0x00, 0x00, 0x03, 0x00, 0x02, 0x00, 0x00, 0x03, 0x00, 0x32,
            0x10,
        ];
        let format = read(&set).unwrap();
        assert_eq!((format.profile, format.level), ("Main", 60));
        assert_eq!((format.width, format.height), (320, 180));
        assert_eq!(format.frame_rate, Some((25, 1)));
        assert_eq!(read(&set[..20]), None, "cut short");
    }
}
