use super::{AudioConfig, FoundFrame, aac};

/// A frame of MPEG audio of layer 1 to 3 (ISO/IEC 11172-3 section 2.4.1.3, 13818-3) at the begin of
/// `bytes`.
pub(super) fn find(bytes: &[u8]) -> FoundFrame {
    let Some(&[first, b, c, d]) = bytes.first_chunk::<4>() else {
        let starts_like_one =
            bytes[0] == 0xFF && bytes.get(1).is_none_or(|byte| byte & 0xE0 == 0xE0);
        return if starts_like_one { FoundFrame::Part } else { FoundFrame::Unknown };
    };
    let Some(header) = Header::read(first, b, c, d) else { return FoundFrame::Unknown };
    let Some(frame) = bytes.get(..header.length) else { return FoundFrame::Part };
    let next = bytes.get(header.length..header.length + 2);
    if next.is_some_and(|next| next[0] != 0xFF || next[1] & 0xFE != b & 0xFE) {
        return FoundFrame::Unknown;
    }
    FoundFrame::Frame {
        length: header.length,
        data: frame.to_vec(),
        samples: header.samples,
        config: Some(header.config()),
    }
}

struct Header {
    layer: u8,
    is_mpeg_1: bool,
    sample_rate: u32,
    channels: u8,
    samples: u32,
    length: usize,
}

impl Header {
    fn read(first: u8, b: u8, c: u8, d: u8) -> Option<Self> {
        if first != 0xFF || b & 0xE0 != 0xE0 {
            return None;
        }
        let is_mpeg_1 = b & 0x18 == 0x18;
        let divisor = match b >> 3 & 3 {
            3 => 1,
            2 => 2,
            0 => 4,
            _ => return None,
        };
        let layer = 4 - (b >> 1 & 3);
        let full_rate = *[44_100, 48_000, 32_000].get(usize::from(c >> 2 & 3))?;
        let sample_rate: u32 = full_rate / divisor;
        let rates = match (is_mpeg_1, layer) {
            (_, 4) => return None,
            (true, 1) => &MPEG_1_LAYER_1,
            (true, 2) => &MPEG_1_LAYER_2,
            (true, _) => &MPEG_1_LAYER_3,
            (false, 1) => &MPEG_2_LAYER_1,
            (false, _) => &MPEG_2_LAYERS_2_AND_3,
        };
        let bit_rate = match rates.get(usize::from(c >> 4))? {
            0 => return None,
            kilobits => 1000 * kilobits,
        };
        let padding = u32::from(c >> 1 & 1);
        let (samples, length) = match layer {
            1 => (384, 4 * (12 * bit_rate / sample_rate + padding)),
            3 if !is_mpeg_1 => (576, 72 * bit_rate / sample_rate + padding),
            _ => (1152, 144 * bit_rate / sample_rate + padding),
        };
        let channels = if d >> 6 == 3 { 1 } else { 2 };
        let length = usize::try_from(length).ok()?;
        Some(Self { layer, is_mpeg_1, sample_rate, channels, samples, length })
    }

    fn config(&self) -> AudioConfig {
        // MPEG-1 audio, and MPEG-2's lower rates.
        let object = if self.is_mpeg_1 { 0x6B } else { 0x69 };
        AudioConfig {
            name: ["", "MP1", "MP2", "MP3"][usize::from(self.layer)],
            codec: format!("mp4a.{object:X}"),
            sample_rate: self.sample_rate,
            channels: self.channels,
            entry: aac::entry(object, None, self.sample_rate, self.channels).into(),
        }
    }
}

/// Kilobits a second; 0 is "free", which nobody sends.
const MPEG_1_LAYER_1: [u32; 15] =
    [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448];
const MPEG_1_LAYER_2: [u32; 15] =
    [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384];
const MPEG_1_LAYER_3: [u32; 15] =
    [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const MPEG_2_LAYER_1: [u32; 15] =
    [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256];
const MPEG_2_LAYERS_2_AND_3: [u32; 15] =
    [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_tell_length_and_duration() {
        let read = |b, c| Header::read(0xFF, b, c, 0x04).unwrap();
        let layer_2 = read(0xFD, 0xA4);
        assert_eq!((layer_2.length, layer_2.samples, layer_2.sample_rate), (576, 1152, 48_000));
        assert_eq!(layer_2.config().codec, "mp4a.6B");
        let layer_3 = read(0xFB, 0x92);
        assert_eq!((layer_3.length, layer_3.samples, layer_3.config().name), (418, 1152, "MP3"));
        let low = read(0xF3, 0x84);
        assert_eq!((low.length, low.samples, low.sample_rate), (192, 576, 24_000));
        assert_eq!(low.config().codec, "mp4a.69");
        assert!(Header::read(0xFF, 0xFD, 0x04, 0).is_none(), "free");
    }
}
