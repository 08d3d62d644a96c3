//! Access units of video as samples of MP4: parameter sets and time codes are taken out, what a
//! decoder must know stands in the sample entry.

mod av1;
mod h264;
mod h265;
mod nal;
mod parameter_sets;

use mp4_atom::{Codec, FixedPoint, Visual};
use punctual_mpegts::VideoFormat;

/// The coding of a video stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum VideoCoding {
    H264,
    Hevc,
    Av1,
}

impl VideoCoding {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::H264 => "H.264",
            Self::Hevc => "HEVC",
            Self::Av1 => "AV1",
        }
    }
}

/// Reads the access units of a video stream.
#[derive(Debug)]
pub(crate) enum VideoReader {
    H264(h264::Reader),
    Hevc(h265::Reader),
    Av1(av1::Reader),
}

impl VideoReader {
    pub(crate) fn new(coding: VideoCoding) -> Self {
        match coding {
            VideoCoding::H264 => Self::H264(h264::Reader::default()),
            VideoCoding::Hevc => Self::Hevc(h265::Reader::default()),
            VideoCoding::Av1 => Self::Av1(av1::Reader::default()),
        }
    }

    /// The next access unit, with start codes as a transport stream has them.
    pub(crate) fn read(&mut self, access_unit: &[u8]) -> Picture {
        match self {
            Self::H264(reader) => reader.read(access_unit),
            Self::Hevc(reader) => reader.read(access_unit),
            Self::Av1(reader) => reader.read(access_unit),
        }
    }

    /// The configuration of the latest access unit; `None` until the stream told.
    pub(crate) fn config(&self) -> Option<&VideoConfig> {
        match self {
            Self::H264(reader) => reader.config(),
            Self::Hevc(reader) => reader.config(),
            Self::Av1(reader) => reader.config(),
        }
    }
}

/// An access unit as a sample of MP4.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Picture {
    /// Empty if there was no picture in the access unit.
    pub(crate) data: Vec<u8>,
    /// Whether a decoder can start here.
    pub(crate) is_key: bool,
    /// Whether the picture can be decoded only if the decoder started earlier than at the key frame
    /// before it.
    pub(crate) is_skipped_leading: bool,
}

/// The needs of a decoder before the first picture.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct VideoConfig {
    pub(crate) coding: VideoCoding,
    /// As RFC 6381 and browsers name it.
    pub(crate) codec: String,
    pub(crate) width: u16,
    pub(crate) height: u16,
    pub(crate) entry: Codec,
}

/// Width and height as sample entries have them, if they fit.
fn size(format: &VideoFormat) -> Option<(u16, u16)> {
    Some((format.width.try_into().ok()?, format.height.try_into().ok()?))
}

/// The common fields of a visual sample entry.
fn visual(width: u16, height: u16) -> Visual {
    Visual {
        data_reference_index: 1,
        width,
        height,
        horizresolution: FixedPoint::new(72, 0),
        vertresolution: FixedPoint::new(72, 0),
        frame_count: 1,
        compressor: "".into(),
        depth: 24,
    }
}
