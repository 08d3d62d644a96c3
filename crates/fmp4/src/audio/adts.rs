use super::{FoundFrame, aac};

/// A frame of ADTS (ISO/IEC 13818-7 section 6.2) at the begin of `bytes`.
pub(super) fn find(bytes: &[u8]) -> FoundFrame {
    let Some(header) = bytes.first_chunk::<7>() else {
        let starts_like_one =
            bytes[0] == 0xFF && bytes.get(1).is_none_or(|byte| byte & 0xF6 == 0xF0);
        return if starts_like_one { FoundFrame::Part } else { FoundFrame::Unknown };
    };
    let &[0xFF, b, c, d, e, f, g] = header else { return FoundFrame::Unknown };
    if b & 0xF6 != 0xF0 {
        return FoundFrame::Unknown;
    }
    let header_length = if b & 1 == 0 { 9 } else { 7 };
    let (profile, rate_index) = (c >> 6, c >> 2 & 0x0F);
    let configuration = (c & 1) << 2 | d >> 6;
    let length = usize::from(d & 3) << 11 | usize::from(e) << 3 | usize::from(f >> 5);
    let Some(&sample_rate) = aac::SAMPLE_RATES.get(usize::from(rate_index)) else {
        return FoundFrame::Unknown;
    };
    if length <= header_length {
        return FoundFrame::Unknown;
    }
    let Some(frame) = bytes.get(..length) else { return FoundFrame::Part };
    // A header in the middle of a frame is followed by no other.
    if bytes.get(length..length + 2).is_some_and(|next| next[0] != 0xFF || next[1] & 0xF6 != 0xF0) {
        return FoundFrame::Unknown;
    }
    let object_type = profile + 1;
    let specific = vec![object_type << 3 | rate_index >> 1, rate_index << 7 | configuration << 3];
    // One frame of ADTS may hold up to four raw data blocks, which no sample of MP4 may.
    let blocks = u32::from(g & 3) + 1;
    let channels = aac::channels(configuration);
    FoundFrame::Frame {
        length,
        data: frame[header_length..].to_vec(),
        samples: 1024 * blocks,
        config: Some(aac::config(specific, object_type, sample_rate, channels)),
    }
}
