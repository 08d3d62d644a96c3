use super::bits::{Bits, without_emulation_prevention};
use super::facts::{VideoFormat, rate, size};

/// Reads a sequence parameter set, from its NAL unit's header on (ITU-T H.265 section 7.3.2.2).
pub(crate) fn read(nal: &[u8]) -> Option<VideoFormat> {
    let plain = without_emulation_prevention(nal.get(2..)?);
    let mut bits = Bits::new(&plain);
    bits.skip(4);
    let sub_layers = bits.bits(3);
    bits.skip(1);
    bits.skip(3);
    let profile_number = bits.bits(5) as u8;
    bits.skip(32 + 48);
    let level = bits.bits(8) as u8;
    skip_sub_layers(&mut bits, sub_layers);
    bits.ue();
    let chroma = bits.ue();
    let has_separate_planes = chroma == 3 && bits.flag();
    let (width, height) = (u64::from(bits.ue()), u64::from(bits.ue()));
    let (mut cut_width, mut cut_height) = (0, 0);
    if bits.flag() {
        let across = if !has_separate_planes && (1..3).contains(&chroma) { 2 } else { 1 };
        let down = if !has_separate_planes && chroma == 1 { 2 } else { 1 };
        cut_width = across * (u64::from(bits.ue()) + u64::from(bits.ue()));
        cut_height = down * (u64::from(bits.ue()) + u64::from(bits.ue()));
    }
    let (width, height) = size(width.checked_sub(cut_width)?, height.checked_sub(cut_height)?)?;
    if bits.is_past_end() {
        return None;
    }
    let frame_rate = frame_rate(&mut bits, sub_layers);
    let profile = match profile_number {
        1 => "Main",
        2 => "Main 10",
        3 => "Main Still Picture",
        4 => "Range Extensions",
        _ => "",
    };
    Some(VideoFormat { profile, profile_number, level, width, height, frame_rate })
}

fn skip_sub_layers(bits: &mut Bits<'_>, sub_layers: u32) {
    let present: Vec<_> = (0..sub_layers).map(|_| (bits.flag(), bits.flag())).collect();
    if sub_layers > 0 {
        bits.skip(2 * (8 - sub_layers as usize));
    }
    for (has_profile, has_level) in present {
        bits.skip(if has_profile { 88 } else { 0 });
        bits.skip(if has_level { 8 } else { 0 });
    }
}

/// The frame rate in the usability information, which stands after everything else.
fn frame_rate(bits: &mut Bits<'_>, sub_layers: u32) -> Option<(u32, u32)> {
    bits.ue();
    bits.ue();
    let order_bits = bits.ue().checked_add(4).filter(|it| *it <= 16)?;
    let first = if bits.flag() { 0 } else { sub_layers };
    for _ in 0..3 * (sub_layers - first + 1) {
        bits.ue();
    }
    for _ in 0..6 {
        bits.ue();
    }
    if bits.flag() && bits.flag() {
        skip_scaling_lists(bits);
    }
    bits.skip(2);
    if bits.flag() {
        bits.skip(8);
        bits.ue();
        bits.ue();
        bits.skip(1);
    }
    skip_reference_sets(bits)?;
    if bits.flag() {
        let count = bits.ue();
        (count <= 32).then_some(())?;
        bits.skip(count as usize * (order_bits as usize + 1));
    }
    bits.skip(2);
    if !bits.flag() {
        return None;
    }
    skip_display(bits);
    if !bits.flag() {
        return None;
    }
    let (ticks, scale) = (bits.bits(32), bits.bits(32));
    if bits.is_past_end() { None } else { rate(scale.into(), ticks.into()) }
}

fn skip_scaling_lists(bits: &mut Bits<'_>) {
    for size in 0..4 {
        for _ in 0..if size == 3 { 2 } else { 6 } {
            if !bits.flag() {
                bits.ue();
                continue;
            }
            if size > 1 {
                bits.se();
            }
            for _ in 0..64.min(1 << (4 + 2 * size)) {
                bits.se();
            }
        }
    }
}

/// Short-term reference picture sets (section 7.3.7).
fn skip_reference_sets(bits: &mut Bits<'_>) -> Option<()> {
    let count = bits.ue();
    (count <= 64).then_some(())?;
    let mut pictures = 0;
    for set in 0..count {
        if set > 0 && bits.flag() {
            bits.skip(1);
            bits.ue();
            let mut kept = 0;
            for _ in 0..=pictures {
                let is_used = bits.flag();
                if is_used || bits.flag() {
                    kept += 1;
                }
            }
            pictures = kept;
        } else {
            let (before, after) = (bits.ue(), bits.ue());
            (before <= 16 && after <= 16).then_some(())?;
            pictures = before + after;
            for _ in 0..pictures {
                bits.ue();
                bits.skip(1);
            }
        }
    }
    Some(())
}

/// Aspect, range, colours, chroma and the default window (annex E.2.1).
fn skip_display(bits: &mut Bits<'_>) {
    const OWN_ASPECT: u32 = 255;
    if bits.flag() && bits.bits(8) == OWN_ASPECT {
        bits.skip(32);
    }
    if bits.flag() {
        bits.skip(1);
    }
    if bits.flag() {
        bits.skip(4);
        if bits.flag() {
            bits.skip(24);
        }
    }
    if bits.flag() {
        bits.ue();
        bits.ue();
    }
    bits.skip(3);
    if bits.flag() {
        for _ in 0..4 {
            bits.ue();
        }
    }
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
