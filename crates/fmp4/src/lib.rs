//! Transport streams as fragmented MP4 (ISO/IEC 14496-12), for the Media Source Extensions of
//! browsers and for HLS. Nothing is decoded or coded anew.
//!
//! - [`Fragmenter`] makes an initialization segment and short fragments of a program's packets,
//!   each as early as the stream allows.
//! - [`Recent`] keeps what a player that comes now starts with: the fragments from the newest key
//!   frame on.
//! - [`Segmenter`] joins the same fragments to segments of HLS, with a playlist.

#![forbid(unsafe_code)]

mod audio;
mod audio_track;
mod boxes;
mod fragmenter;
mod hls;
mod output;
mod recent;
#[cfg(test)]
mod testing;
mod timeline;
mod video;
mod video_track;

pub use fragmenter::Fragmenter;
pub use hls::{Segment, Segmenter};
pub use output::{AudioInfo, Fragment, Init, Output, Track, VideoInfo};
pub use recent::Recent;
