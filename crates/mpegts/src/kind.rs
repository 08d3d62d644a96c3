/// The meaning of an elementary stream, by its type and descriptors in the program map.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum StreamKind {
    /// H.264 video (ISO/IEC 14496-10).
    H264,
    /// HEVC video, H.265 (ISO/IEC 23008-2).
    Hevc,
    /// AV1 video, by the registration `AV01`.
    Av1,
    /// MPEG-1 or MPEG-2 video (ISO/IEC 11172-2, 13818-2).
    Mpeg2Video,
    /// AAC in ADTS frames (ISO/IEC 13818-7).
    AacAdts,
    /// AAC in LATM (ISO/IEC 14496-3).
    AacLatm,
    /// Opus, by its registration.
    Opus,
    /// MPEG audio of layer 1 to 3: MP2, MP3 (ISO/IEC 11172-3, 13818-3).
    MpegAudio,
    /// AC-3 (ETSI TS 102 366).
    Ac3,
    /// Enhanced AC-3 (ETSI TS 102 366 annex E).
    Eac3,
    /// Teletext (ETSI EN 300 472).
    Teletext,
    /// Subtitles of DVB (ETSI EN 300 743).
    DvbSubtitles,
    /// Cues for advertisements (SCTE 35).
    Scte35,
    /// Metadata in key, length and value (SMPTE 336), by the registration `KLVA`.
    Klv,
    /// Timed ID3 tags.
    Id3,
    /// Anything else, with its stream type.
    Unknown(u8),
}

impl StreamKind {
    /// Whether the stream is video.
    pub fn is_video(self) -> bool {
        matches!(self, Self::H264 | Self::Hevc | Self::Av1 | Self::Mpeg2Video)
    }

    /// Whether the stream is sound.
    pub fn is_audio(self) -> bool {
        matches!(
            self,
            Self::AacAdts | Self::AacLatm | Self::Opus | Self::MpegAudio | Self::Ac3 | Self::Eac3
        )
    }

    /// The usual name, such as `H.264`; that of an unknown kind is `unknown`.
    pub fn name(self) -> &'static str {
        match self {
            Self::H264 => "H.264",
            Self::Hevc => "HEVC",
            Self::Av1 => "AV1",
            Self::Mpeg2Video => "MPEG-2 video",
            Self::AacAdts => "AAC",
            Self::AacLatm => "AAC (LATM)",
            Self::Opus => "Opus",
            Self::MpegAudio => "MPEG audio",
            Self::Ac3 => "AC-3",
            Self::Eac3 => "E-AC-3",
            Self::Teletext => "teletext",
            Self::DvbSubtitles => "DVB subtitles",
            Self::Scte35 => "SCTE-35",
            Self::Klv => "KLV",
            Self::Id3 => "ID3",
            Self::Unknown(_) => "unknown",
        }
    }

    /// The kind by stream type (ISO/IEC 13818-1 table 2-34 and registrations) and the descriptors
    /// of the stream and of its program.
    pub(crate) fn new(stream_type: u8, own: &[u8], of_program: &[u8]) -> Self {
        match stream_type {
            0x01 | 0x02 => Self::Mpeg2Video,
            0x03 | 0x04 => Self::MpegAudio,
            0x0F => Self::AacAdts,
            0x11 => Self::AacLatm,
            0x1B => Self::H264,
            0x24 => Self::Hevc,
            // ATSC A/53 part 3; the same numbers are scrambled private streams elsewhere.
            0x81 => Self::Ac3,
            0x87 => Self::Eac3,
            0x86 if registration(of_program) == Some(*b"CUEI") || own.is_empty() => Self::Scte35,
            _ => Self::by_descriptors(own).unwrap_or(match stream_type {
                0x86 => Self::Scte35,
                other => Self::Unknown(other),
            }),
        }
    }

    fn by_descriptors(own: &[u8]) -> Option<Self> {
        descriptors(own).find_map(|(tag, body)| match tag {
            REGISTRATION => match body.get(..4)? {
                b"AV01" => Some(Self::Av1),
                b"HEVC" => Some(Self::Hevc),
                b"Opus" => Some(Self::Opus),
                b"AC-3" => Some(Self::Ac3),
                b"EAC3" => Some(Self::Eac3),
                b"CUEI" => Some(Self::Scte35),
                b"KLVA" => Some(Self::Klv),
                b"ID3 " => Some(Self::Id3),
                _ => None,
            },
            // Metadata descriptor: the format identifier follows the application's.
            0x26 if body.windows(4).any(|it| it == b"KLVA") => Some(Self::Klv),
            0x26 if body.windows(4).any(|it| it == b"ID3 ") => Some(Self::Id3),
            TELETEXT | VBI_TELETEXT => Some(Self::Teletext),
            SUBTITLING => Some(Self::DvbSubtitles),
            0x6A => Some(Self::Ac3),
            0x7A => Some(Self::Eac3),
            0x7C => Some(Self::AacLatm),
            EXTENSION if body.first() == Some(&OPUS_EXTENSION) => Some(Self::Opus),
            _ => None,
        })
    }
}

/// The language that descriptors name by three letters of ISO 639-2: that of sound, teletext or
/// subtitles.
pub(crate) fn language(own: &[u8]) -> Option<String> {
    let code = descriptors(own).find_map(|(tag, body)| match tag {
        0x0A | TELETEXT | VBI_TELETEXT | SUBTITLING => body.get(..3),
        _ => None,
    })?;
    code.iter().all(u8::is_ascii_alphabetic).then(|| String::from_utf8_lossy(code).into_owned())
}

/// The number of channels that the extension descriptor of Opus gives; it is the channel
/// configuration code if this is 1 to 8, and 0 is two separate channels.
pub(crate) fn opus_channels(own: &[u8]) -> Option<u8> {
    descriptors(own).find_map(|(tag, body)| match (tag, body) {
        (EXTENSION, [OPUS_EXTENSION, 0, ..]) => Some(2),
        (EXTENSION, [OPUS_EXTENSION, code @ 1..=8, ..]) => Some(*code),
        _ => None,
    })
}

fn registration(all: &[u8]) -> Option<[u8; 4]> {
    descriptors(all).find_map(|(tag, body)| match tag {
        REGISTRATION => body.first_chunk().copied(),
        _ => None,
    })
}

/// The tags and bodies of descriptors, as far as they are whole.
pub(crate) fn descriptors(mut bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let (&[tag, len], rest) = bytes.split_first_chunk()?;
        let body = rest.get(..len.into())?;
        bytes = &rest[body.len()..];
        Some((tag, body))
    })
}

const REGISTRATION: u8 = 0x05;
const VBI_TELETEXT: u8 = 0x46;
const TELETEXT: u8 = 0x56;
const SUBTITLING: u8 = 0x59;
const EXTENSION: u8 = 0x7F;
/// The extension tag that is provisionally used for Opus.
const OPUS_EXTENSION: u8 = 0x80;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_follow_from_type_and_descriptors() {
        let kind = |stream_type, own: &[u8]| StreamKind::new(stream_type, own, &[]);
        assert_eq!(kind(0x1B, &[]), StreamKind::H264);
        assert_eq!(kind(0x24, &[]), StreamKind::Hevc);
        assert_eq!(kind(0x06, b"\x05\x04AV01"), StreamKind::Av1);
        assert_eq!(kind(0x06, b"\x0A\x04deu\x00\x05\x04Opus\x7F\x02\x80\x02"), StreamKind::Opus);
        assert_eq!(kind(0x06, b"\x7F\x02\x80\x02"), StreamKind::Opus);
        assert_eq!(kind(0x06, b"\x6A\x01\x00"), StreamKind::Ac3);
        assert_eq!(kind(0x06, b"\x05\x04KLVA"), StreamKind::Klv);
        assert_eq!(kind(0x15, b"\x26\x0D\xFF\xFFID3 \xFFID3 \x00\x0F"), StreamKind::Id3);
        assert_eq!(kind(0x06, b"\x56\x05deu\x09\x00"), StreamKind::Teletext);
        assert_eq!(kind(0x06, b"\x59\x08deu\x10\x00\x01\x00\x01"), StreamKind::DvbSubtitles);
        assert_eq!(kind(0x86, b"\x52\x01\x00"), StreamKind::Scte35);
        assert_eq!(kind(0x06, &[]), StreamKind::Unknown(6));
        assert_eq!(kind(0x06, b"\x05\xFFAV01"), StreamKind::Unknown(6), "cut short");
    }

    #[test]
    fn languages_stand_in_three_kinds_of_descriptors() {
        assert_eq!(language(b"\x52\x01\x00\x0A\x04deu\x00").as_deref(), Some("deu"));
        assert_eq!(language(b"\x59\x08fra\x10\x00\x01\x00\x01").as_deref(), Some("fra"));
        assert_eq!(language(b"\x0A\x04\x00\x01\x02\x00"), None);
        assert_eq!(language(b""), None);
    }
}
