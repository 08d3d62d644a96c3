use std::time::Duration;

use bytes::Bytes;

/// A piece of the stream for its players.
#[derive(Clone, Debug)]
pub enum Output {
    /// Goes before the fragments that follow it, and replaces an earlier one.
    Init(Init),
    /// Some samples of one track.
    Fragment(Fragment),
    /// The program has streams, and no browser decodes one of them: their names.
    Unplayable(Vec<&'static str>),
}

/// The header of the fragments that follow, and what it says in words.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Init {
    /// The picture; `None` for radio.
    pub video: Option<VideoInfo>,
    /// The sound; `None` for a silent stream.
    pub audio: Option<AudioInfo>,
    /// The names of video and sound that the program has and no browser decodes.
    pub left_out: Vec<&'static str>,
    /// The initialization segment.
    pub bytes: Bytes,
    /// That of the picture alone.
    pub(crate) video_bytes: Option<Bytes>,
}

impl Init {
    /// The MIME type with codecs, as `MediaSource.isTypeSupported` asks for it.
    pub fn mime_type(&self) -> String {
        let kind = if self.video.is_some() { "video" } else { "audio" };
        format!("{kind}/mp4; codecs=\"{}\"", self.codecs())
    }

    /// The same for a player that leaves the sound out; `None` without a picture.
    pub fn without_audio(&self) -> Option<Self> {
        Some(Self { audio: None, bytes: self.video_bytes.clone()?, ..self.clone() })
    }

    /// The codecs by RFC 6381, as `CODECS` of HLS has them.
    pub fn codecs(&self) -> String {
        let video = self.video.iter().map(|video| video.codec.as_str());
        let audio = self.audio.iter().map(|audio| audio.codec.as_str());
        video.chain(audio).collect::<Vec<_>>().join(",")
    }
}

/// The picture of a stream.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct VideoInfo {
    /// The usual name of the codec, such as `H.264`.
    pub name: &'static str,
    /// By RFC 6381, such as `avc1.64001f`.
    pub codec: String,
    /// Width in samples.
    pub width: u16,
    /// Height in samples.
    pub height: u16,
}

/// The sound of a stream.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AudioInfo {
    /// The usual name of the codec, such as `AAC`.
    pub name: &'static str,
    /// By RFC 6381, such as `mp4a.40.2`.
    pub codec: String,
    /// Samples in a second.
    pub sample_rate: u32,
    /// The number of channels; 0 where only the frames tell.
    pub channels: u8,
}

/// One access unit of video, or the sound of one PES packet: `moof` and `mdat`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fragment {
    /// The track of its samples.
    pub track: Track,
    /// Whether a player may start here: a key frame, or any sound of a stream without picture.
    pub is_key: bool,
    /// Whether the picture is shown before the key frame that it follows: who starts at that key
    /// frame leaves it out.
    pub is_leading: bool,
    /// The time of decoding on the stream's own line.
    pub start: Duration,
    /// The time that the samples play.
    pub duration: Duration,
    /// The boxes.
    pub bytes: Bytes,
}

/// A track of the output.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Track {
    /// The picture.
    Video,
    /// The sound.
    Audio,
}

impl Track {
    /// Its number in the boxes.
    pub(crate) fn id(self) -> u32 {
        match self {
            Self::Video => 1,
            Self::Audio => 2,
        }
    }
}
