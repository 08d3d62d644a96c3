use super::bit_reader::BitReader;

/// Passes over the first fields of the usability information, which H.264 (annex E.1.1) and HEVC
/// (annex E.2.1) share: aspect, overscan, colours and the place of chroma samples.
pub(super) fn skip_first_fields(bits: &mut BitReader<'_>) -> Option<()> {
    const OWN_ASPECT: u32 = 255;
    if bits.bit()? && bits.bits(8)? == OWN_ASPECT {
        bits.skip(32)?;
    }
    if bits.bit()? {
        bits.skip(1)?;
    }
    if bits.bit()? {
        bits.skip(4)?;
        if bits.bit()? {
            bits.skip(24)?;
        }
    }
    if bits.bit()? {
        bits.unsigned()?;
        bits.unsigned()?;
    }
    Some(())
}
