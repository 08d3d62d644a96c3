use mp4_atom::{Dops, Opus, OpusChannelMapping};

use super::{AudioConfig, FoundFrame, audio};

/// An access unit of Opus with its control header at the begin of `bytes` (ETSI TS 103 491 annex A
/// has the same form as FFmpeg and GStreamer).
///
/// Packets of mono and of stereo may alternate; a decoder with two channels plays both.
pub(super) fn find(bytes: &[u8]) -> FoundFrame {
    let Some((&[first, flags], mut rest)) = bytes.split_first_chunk() else {
        return FoundFrame::Unknown;
    };
    if first != 0x7F || flags & 0xE0 != 0xE0 {
        return FoundFrame::Unknown;
    }
    let mut size = 0;
    loop {
        let Some((&byte, after)) = rest.split_first() else { return FoundFrame::Unknown };
        (size, rest) = (size + usize::from(byte), after);
        if byte != 255 {
            break;
        }
    }
    for trim in [0x10, 0x08] {
        if flags & trim != 0 {
            rest = rest.get(2..).unwrap_or_default();
        }
    }
    if flags & 0x04 != 0 {
        let extension = rest.first().map_or(0, |&length| 1 + usize::from(length));
        rest = rest.get(extension..).unwrap_or_default();
    }
    let Some(data) = rest.get(..size) else { return FoundFrame::Unknown };
    let Some(samples) = duration(data) else { return FoundFrame::Unknown };
    FoundFrame::Frame {
        length: bytes.len() - rest.len() + size,
        data: data.to_vec(),
        samples,
        config: Some(config()),
    }
}

/// The samples of 48 kHz that a packet plays (RFC 6716 section 3.1); `None` for no valid packet.
fn duration(packet: &[u8]) -> Option<u32> {
    let toc = *packet.first()?;
    let frame = match toc >> 3 {
        config @ 0..12 => [480, 960, 1920, 2880][usize::from(config & 3)],
        config @ 12..16 => [480, 960][usize::from(config & 1)],
        config => [120, 240, 480, 960][usize::from(config & 3)],
    };
    let count = match toc & 3 {
        0 => 1,
        1 | 2 => 2,
        _ => u32::from(packet.get(1)? & 0x3F),
    };
    Some(frame * count).filter(|samples| (1..=5760).contains(samples))
}

fn config() -> AudioConfig {
    let channels = 2;
    let dops = Dops {
        output_channel_count: channels,
        pre_skip: 0,
        input_sample_rate: 48_000,
        output_gain: 0,
        channel_mapping: None::<OpusChannelMapping>,
    };
    let entry = Opus { audio: audio(48_000, channels), dops, btrt: None };
    AudioConfig {
        name: "Opus",
        codec: "opus".to_owned(),
        sample_rate: 48_000,
        channels,
        entry: entry.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_headers_are_taken_off() {
        // 20 ms of stereo, 300 bytes, the first 312 samples to be trimmed.
        let mut unit = vec![0x7F, 0xF0, 255, 45, 0x01, 0x38, 0xFC];
        unit.extend([9; 299]);
        unit.extend([0x7F, 0xE0]);
        let FoundFrame::Frame { length, data, samples, config } = find(&unit) else { panic!() };
        assert_eq!((length, data.len(), samples), (306, 300, 960));
        assert_eq!(config.unwrap().channels, 2);
    }

    #[test]
    fn packets_tell_their_duration() {
        assert_eq!(duration(&[0b1111_1000]), Some(960));
        assert_eq!(duration(&[0b0001_1001]), Some(5760));
        assert_eq!(duration(&[0b1000_0011, 6]), Some(720));
        assert_eq!(duration(&[0b0001_1011, 63]), None);
        assert_eq!(duration(&[]), None);
    }
}
