use super::{AudioConfig, FoundFrame, aac};
use punctual_mpegts::BitReader;

/// Reads AAC in LATM with LOAS as transport streams carry it (ISO/IEC 14496-3 section 1.7): one
/// program, one layer, frames of variable length. Other forms are left out.
#[derive(Debug, Default)]
pub(super) struct Reader {
    config: Option<Mux>,
}

/// The fields of a StreamMuxConfig.
#[derive(Clone, Debug, PartialEq)]
struct Mux {
    frames_minus_1: u32,
    samples: u32,
    config: AudioConfig,
    other_data: u32,
}

impl Reader {
    /// A frame at the begin of `bytes`.
    pub(super) fn find(&mut self, bytes: &[u8]) -> FoundFrame {
        let Some(&[first, b, c]) = bytes.first_chunk() else {
            let starts_like_one =
                bytes[0] == 0x56 && bytes.get(1).is_none_or(|byte| byte & 0xE0 == 0xE0);
            return if starts_like_one { FoundFrame::Part } else { FoundFrame::Unknown };
        };
        if first != 0x56 || b & 0xE0 != 0xE0 {
            return FoundFrame::Unknown;
        }
        let length = 3 + (usize::from(b & 0x1F) << 8 | usize::from(c));
        let Some(element) = bytes.get(3..length) else { return FoundFrame::Part };
        if bytes.get(length..length + 2).is_some_and(|next| next[0] != 0x56 || next[1] < 0xE0) {
            return FoundFrame::Unknown;
        }
        let Some((data, samples)) = self.read_element(element) else { return FoundFrame::Unknown };
        let config = self.config.as_ref().map(|mux| mux.config.clone());
        FoundFrame::Frame { length, data, samples, config }
    }

    /// AudioMuxElement (table 1.44).
    fn read_element(&mut self, element: &[u8]) -> Option<(Vec<u8>, u32)> {
        let mut bits = BitReader::new(element);
        if !bits.bit()? {
            self.config = Some(Mux::read(&mut bits, element)?);
        }
        let mux = self.config.as_ref()?;
        if mux.frames_minus_1 != 0 {
            return None;
        }
        let mut length = 0;
        loop {
            let part = bits.byte()?;
            length += usize::from(part);
            if part != 255 {
                break;
            }
        }
        if length == 0 || length > element.len() {
            return None;
        }
        let data = (0..length).map(|_| bits.byte()).collect::<Option<Vec<u8>>>()?;
        bits.skip(mux.other_data)?;
        Some((data, mux.samples))
    }
}

impl Mux {
    /// StreamMuxConfig (table 1.45).
    fn read(bits: &mut BitReader<'_>, element: &[u8]) -> Option<Self> {
        let version = bits.bit()?;
        if version && bits.bit()? {
            return None;
        }
        if version {
            value(bits)?;
        }
        let has_same_time = bits.bit()?;
        let frames_minus_1 = bits.bits(6)?;
        let (programs_minus_1, layers_minus_1) = (bits.bits(4)?, bits.bits(3)?);
        if !has_same_time || programs_minus_1 != 0 || layers_minus_1 != 0 {
            return None;
        }
        let stated = if version { Some(value(bits)?) } else { None };
        let start = bits.position();
        let specific = Specific::read(bits)?;
        let end = bits.position();
        if let Some(stated) = stated {
            let read = u32::try_from(end - start).ok()?;
            bits.skip(stated.checked_sub(read)?)?;
        }
        if bits.bits(3)? != 0 {
            return None;
        }
        bits.skip(8)?;
        let mut other_data = 0_u32;
        if bits.bit()? {
            if version {
                other_data = value(bits)?;
            } else {
                loop {
                    let goes_on = bits.bit()?;
                    other_data = other_data.checked_mul(256)?.checked_add(bits.bits(8)?)?;
                    if !goes_on {
                        break;
                    }
                }
            }
        }
        if bits.bit()? {
            bits.skip(8)?;
        }
        let raw = copy_bits(element, start, end)?;
        let samples = if specific.is_short { 960 } else { 1024 };
        let config =
            aac::config(raw, specific.object_type, specific.sample_rate, specific.channels);
        Some(Self { frames_minus_1, samples, config, other_data })
    }
}

/// The fields of an AudioSpecificConfig (table 1.15) of AAC LC, SBR or PS.
struct Specific {
    object_type: u8,
    /// Of the coded frames; SBR doubles what is played.
    sample_rate: u32,
    channels: u8,
    is_short: bool,
}

impl Specific {
    fn read(bits: &mut BitReader<'_>) -> Option<Self> {
        let object_type = u8::try_from(bits.bits(5)?).ok()?;
        let sample_rate = sample_rate(bits)?;
        let configuration = u8::try_from(bits.bits(4)?).ok()?;
        let mut core = object_type;
        if matches!(object_type, SBR | PS) {
            self::sample_rate(bits)?;
            core = u8::try_from(bits.bits(5)?).ok()?;
        }
        if core != LC || configuration == 0 {
            return None;
        }
        let is_short = bits.bit()?;
        if bits.bit()? {
            bits.skip(14)?;
        }
        if bits.bit()? {
            return None;
        }
        Some(Self { object_type, sample_rate, channels: aac::channels(configuration), is_short })
    }
}

fn sample_rate(bits: &mut BitReader<'_>) -> Option<u32> {
    match bits.bits(4)? {
        15 => bits.bits(24).filter(|&rate| rate > 0),
        index => aac::SAMPLE_RATES.get(usize::try_from(index).ok()?).copied(),
    }
}

/// LatmGetValue (table 1.46).
fn value(bits: &mut BitReader<'_>) -> Option<u32> {
    let bytes = bits.bits(2)? + 1;
    bits.bits(8 * bytes)
}

/// The bits from `start` to `end`, filled up to whole bytes.
fn copy_bits(bytes: &[u8], start: usize, end: usize) -> Option<Vec<u8>> {
    let mut bits = BitReader::new(bytes);
    bits.skip(u32::try_from(start).ok()?)?;
    let mut copy = Vec::new();
    let mut left = u32::try_from(end - start).ok()?;
    while left > 0 {
        let count = left.min(8);
        copy.push((bits.bits(count)? << (8 - count)).to_be_bytes()[3]);
        left -= count;
    }
    Some(copy)
}

const LC: u8 = 2;
const SBR: u8 = 5;
const PS: u8 = 29;
