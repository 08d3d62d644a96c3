use super::bits::{Bits, without_emulation_prevention};
use super::facts::{VideoFormat, rate, size};

/// Reads a sequence parameter set, from the byte of its type on (ISO/IEC 14496-10 section
/// 7.3.2.1.1).
pub(crate) fn read(nal: &[u8]) -> Option<VideoFormat> {
    let plain = without_emulation_prevention(nal.get(1..)?);
    let mut bits = Bits::new(&plain);
    let profile_number = bits.bits(8) as u8;
    let constraints = bits.bits(8) as u8;
    let level = bits.bits(8) as u8;
    bits.ue();
    let mut chroma = 1;
    let mut has_separate_planes = false;
    if HIGH_PROFILES.contains(&profile_number) {
        chroma = bits.ue();
        has_separate_planes = chroma == 3 && bits.flag();
        bits.ue();
        bits.ue();
        bits.skip(1);
        if bits.flag() {
            skip_scaling_lists(&mut bits, if chroma == 3 { 12 } else { 8 });
        }
    }
    bits.ue();
    skip_order_count(&mut bits)?;
    bits.ue();
    bits.skip(1);
    let width = (u64::from(bits.ue()) + 1) * 16;
    let map_height = u64::from(bits.ue()) + 1;
    let is_frame_only = bits.flag();
    if !is_frame_only {
        bits.skip(1);
    }
    let fields = if is_frame_only { 1 } else { 2 };
    bits.skip(1);
    let (mut cut_width, mut cut_height) = (0, 0);
    if bits.flag() {
        let is_mono = chroma == 0 || has_separate_planes;
        let across = if !is_mono && chroma < 3 { 2 } else { 1 };
        let down = if !is_mono && chroma == 1 { 2 } else { 1 };
        cut_width = across * (u64::from(bits.ue()) + u64::from(bits.ue()));
        cut_height = down * fields * (u64::from(bits.ue()) + u64::from(bits.ue()));
    }
    let height = map_height * 16 * fields;
    let (width, height) = size(width.checked_sub(cut_width)?, height.checked_sub(cut_height)?)?;
    if bits.is_past_end() {
        return None;
    }
    let frame_rate = if bits.flag() { frame_rate(&mut bits) } else { None };
    let profile = profile(profile_number, constraints);
    Some(VideoFormat { profile, profile_number, level, width, height, frame_rate })
}

fn skip_scaling_lists(bits: &mut Bits<'_>, count: usize) {
    for list in 0..count {
        if !bits.flag() {
            continue;
        }
        let (mut last, mut next) = (8, 8);
        for _ in 0..if list < 6 { 16 } else { 64 } {
            if next != 0 {
                next = (last + bits.se() + 256) % 256;
            }
            last = if next == 0 { last } else { next };
        }
    }
}

fn skip_order_count(bits: &mut Bits<'_>) -> Option<()> {
    match bits.ue() {
        0 => {
            bits.ue();
        }
        1 => {
            bits.skip(1);
            bits.se();
            bits.se();
            let cycle = bits.ue();
            (cycle <= 255).then_some(())?;
            for _ in 0..cycle {
                bits.se();
            }
        }
        _ => {}
    }
    Some(())
}

/// The frame rate in the usability information (annex E.1.1): the ticks are those of fields.
fn frame_rate(bits: &mut Bits<'_>) -> Option<(u32, u32)> {
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
    if !bits.flag() {
        return None;
    }
    let (ticks, scale) = (bits.bits(32), bits.bits(32));
    if bits.is_past_end() { None } else { rate(scale.into(), 2 * u64::from(ticks)) }
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
const HIGH_PROFILES: [u8; 13] = [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135];

/// The type of a slice, from the byte of its NAL unit's type on (section 7.3.3).
pub(crate) fn slice_type(nal: &[u8]) -> u32 {
    let plain = without_emulation_prevention(nal.get(1..).unwrap_or_default());
    let mut bits = Bits::new(&plain);
    bits.ue();
    bits.ue()
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
            for format in [read(&bytes), crate::format::hevc(&bytes), crate::format::av1(&bytes)] {
                prop_assert!(format.is_none_or(|it| it.width > 0 && it.height <= 65_536));
            }
        }
    }
}
