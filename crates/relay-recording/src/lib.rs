//! Recordings of a relay's streams: transport packets as they were received, in segments, with an
//! index beside each.
//!
//! - A [`Recorder`] writes a stream, on a thread of its own. It cuts it at random access points
//!   ([`RecordedAccess`]) into segments that each can be played alone, and reports
//!   [`RecordingEvent`]s.
//! - [`SegmentNames`] is the pattern of the names of segments, and an [`Archive`] the segments that
//!   have such names: it lists them, closes segments that a crash left open, and removes what the
//!   [`Retention`] does not keep.
//! - A [`Playback`] gives the messages of a recording from a time on, at the pace at which they
//!   were received, and an [`Excerpt`] the bytes between two times.
//!
//! The index is made of lines of JSON, of which [`IndexEntry`] is one.
//!
//! No clock is read here: the times come with the messages.

#![forbid(unsafe_code)]
#![expect(clippy::disallowed_types, reason = "a recording has a thread of its own")]
#![cfg_attr(test, expect(clippy::cast_possible_truncation, reason = "numbers in tests are small"))]

mod archive;
mod byte_clock;
mod cutter;
mod event;
mod excerpt;
mod index;
mod playback;
mod recorder;
mod retention;
mod segment_file;
mod segment_name;

pub use archive::{Archive, RecordedSegment, StreamRecording};
pub use cutter::{RecordedAccess, RecordedMessage};
pub use event::RecordingEvent;
pub use excerpt::Excerpt;
pub use index::{Discontinuity, IndexEntry};
pub use playback::{Playback, PlaybackError, PlayedPart};
pub use recorder::{Recorder, RecorderReport, RecorderSettings};
pub use retention::Retention;
pub use segment_name::{SegmentNames, SegmentNamesError};
