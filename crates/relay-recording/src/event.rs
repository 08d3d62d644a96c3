//! The events of a recording.

use std::path::PathBuf;
use std::time::Duration;

/// An event of a recording, for the log, hooks and alarms.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum RecordingEvent {
    /// A segment begins.
    SegmentBegan {
        /// Its file.
        path: PathBuf,
    },
    /// A segment is complete.
    SegmentCompleted {
        /// Its file.
        path: PathBuf,
        /// The time from its start to its end.
        duration: Duration,
        /// Its length in bytes.
        bytes: u64,
    },
    /// The disk is too slow: messages are left out from now on.
    FellBehind,
    /// The disk has caught up: messages are recorded again.
    CaughtUp {
        /// The number of messages that were left out.
        lost: u64,
    },
    /// Segments were removed, as the retention asks.
    Removed {
        /// Their files.
        paths: Vec<PathBuf>,
    },
    /// The disk is full or fails. The recording has ended; the stream goes on.
    Failed {
        /// The file or folder, and the reason.
        reason: String,
    },
    /// The recording has ended.
    Ended,
}
