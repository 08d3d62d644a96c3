use super::facts::AudioFormat;
use crate::StreamKind;

/// Reads the header of the first frame in a PES packet's payload; `channels` is what a descriptor
/// tells.
pub(crate) fn read(kind: StreamKind, payload: &[u8], channels: Option<u8>) -> Option<AudioFormat> {
    match kind {
        StreamKind::AacAdts => adts(payload),
        StreamKind::MpegAudio => mpeg(payload),
        StreamKind::Ac3 | StreamKind::Eac3 => ac3(payload),
        StreamKind::Opus => {
            let channels = channels.unwrap_or(0);
            Some(AudioFormat { profile: "", sample_rate: 48_000, channels })
        }
        _ => None,
    }
}

/// The header of ADTS (ISO/IEC 13818-7 section 6.2).
fn adts(payload: &[u8]) -> Option<AudioFormat> {
    let &[0xFF, second, third, fourth, ..] = payload else { return None };
    if second & 0xF6 != 0xF0 {
        return None;
    }
    let sample_rate = *AAC_RATES.get(usize::from(third >> 2 & 0x0F))?;
    let profile = ["Main", "LC", "SSR", "LTP"][usize::from(third >> 6)];
    let channels = match (third & 1) << 2 | fourth >> 6 {
        7 => 8,
        code => code,
    };
    Some(AudioFormat { profile, sample_rate, channels })
}

/// The header of MPEG audio (ISO/IEC 11172-3 section 2.4.1.3).
fn mpeg(payload: &[u8]) -> Option<AudioFormat> {
    let &[0xFF, second, third, fourth, ..] = payload else { return None };
    let profile = match second >> 1 & 3 {
        _ if second < 0xE0 => return None,
        0 => return None,
        1 => "layer 3",
        2 => "layer 2",
        _ => "layer 1",
    };
    let full = *[44_100, 48_000, 32_000].get(usize::from(third >> 2 & 3))?;
    let sample_rate = match second >> 3 & 3 {
        3 => full,
        2 => full / 2,
        0 => full / 4,
        _ => return None,
    };
    let channels = if fourth >> 6 == 3 { 1 } else { 2 };
    Some(AudioFormat { profile, sample_rate, channels })
}

/// The header of AC-3 and E-AC-3 (ETSI TS 102 366 sections 4.3 and E.1.2).
fn ac3(payload: &[u8]) -> Option<AudioFormat> {
    let &[0x0B, 0x77, _, _, fifth, sixth, seventh, eighth, ..] = payload else { return None };
    let rates = [48_000, 44_100, 32_000];
    let is_enhanced = sixth >> 3 > 10;
    let (sample_rate, mode, has_low) = if is_enhanced {
        let rate = match fifth >> 6 {
            3 => *rates.get(usize::from(fifth >> 4 & 3))? / 2,
            code => rates[usize::from(code)],
        };
        (rate, fifth >> 1 & 7, fifth & 1)
    } else {
        let rate = *rates.get(usize::from(fifth >> 6))?;
        let mode = seventh >> 5;
        // Mix levels stand between the mode and the flag of the low channel.
        let mut before = 3;
        before += if mode & 1 != 0 && mode != 1 { 2 } else { 0 };
        before += if mode & 4 != 0 { 2 } else { 0 };
        before += if mode == 2 { 2 } else { 0 };
        let word = u16::from_be_bytes([seventh, eighth]);
        (rate, mode, (word >> (15 - before) & 1) as u8)
    };
    let channels = [2, 1, 2, 3, 3, 4, 4, 5][usize::from(mode)] + has_low;
    Some(AudioFormat { profile: "", sample_rate, channels })
}

const AAC_RATES: [u32; 13] = [
    96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000,
    7_350,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_tell_rate_and_channels() {
        let format = |kind, payload: &[u8]| {
            read(kind, payload, None).map(|it| (it.profile, it.sample_rate, it.channels))
        };
        let adts = [0xFF, 0xF1, 0x4C, 0x80, 0x0B, 0x7F, 0xFC];
        assert_eq!(format(StreamKind::AacAdts, &adts), Some(("LC", 48_000, 2)));
        assert_eq!(format(StreamKind::AacAdts, &[0xFF, 0xF1, 0x7C, 0x80]), None);
        let mp2 = [0xFF, 0xFD, 0xA4, 0x00];
        assert_eq!(format(StreamKind::MpegAudio, &mp2), Some(("layer 2", 48_000, 2)));
        // 3/2 with low channel: mode 7, two mix levels, flag.
        let ac3 = [0x0B, 0x77, 0, 0, 0x1E, 0x40, 0xE1, 0];
        assert_eq!(format(StreamKind::Ac3, &ac3), Some(("", 48_000, 6)));
        let eac3 = [0x0B, 0x77, 0, 0, 0x3F, 0x80, 0, 0];
        assert_eq!(format(StreamKind::Eac3, &eac3), Some(("", 48_000, 6)));
        assert_eq!(format(StreamKind::Opus, &[]), Some(("", 48_000, 0)));
        assert_eq!(format(StreamKind::Ac3, &[0x0B]), None);
    }
}
