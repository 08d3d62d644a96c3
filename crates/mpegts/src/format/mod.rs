//! The formats of video and sound, as far as a list of streams and a sample entry of MP4 need them:
//! the fields of the headers that come with each random access point.
//!
//! The headers are read here and not by a crate such as `h264-reader`: that one reads H.264 only,
//! and needs five more crates. The few fields of all codecs need one reader of bits.

#![expect(clippy::cast_possible_truncation, reason = "fields are no wider than their types")]

mod audio;
mod av1;
mod bit_reader;
mod emulation_prevention;
mod facts;
mod h264;
mod hevc;
mod mpeg2;
mod usability;

pub(crate) use audio::read as audio;
pub use av1::read as av1_format;
pub use bit_reader::BitReader;
pub use emulation_prevention::without_emulation_prevention;
pub use facts::{AudioFormat, SampleFormat, VideoFormat};
pub(crate) use h264::slice_type;
pub use h264::{has_recovery_point, read as h264_format};
pub use hevc::read as hevc_format;
pub(crate) use mpeg2::read as mpeg2;
