//! Events, and refused calls.

use serde::Serialize;
use utoipa::ToSchema;

use super::Timestamp;

/// Something that happened on the relay.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Event {
    /// The event's number: one more than that of the event before, from 1 at the relay's start.
    pub id: u64,
    /// The time.
    pub at: Timestamp,
    /// The kind of event.
    pub kind: EventKind,
    /// The stream's name; `null` if it concerns none.
    pub stream: Option<String>,
    /// The ID of the connection; `null` if it concerns none.
    pub connection: Option<String>,
    /// One sentence for people.
    pub text: String,
}

/// The kinds of events: those of hooks, and those that only people read.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// A caller connected.
    Connect,
    /// A connection ended.
    Disconnect,
    /// A call was refused.
    Refused,
    /// A stream can be viewed.
    Available,
    /// A stream cannot be viewed any more.
    Unavailable,
    /// A stream has a source.
    Online,
    /// A stream lost its source.
    Offline,
    /// A stream comes from another source.
    Switch,
    /// A viewer began to view.
    Read,
    /// A viewer ended.
    Unread,
    /// A viewer was too slow and jumped to a later random access point.
    Skip,
    /// A recording began a file.
    RecordSegmentCreate,
    /// A recording ended a file.
    RecordSegmentComplete,
    /// A recording failed.
    RecordFailed,
    /// A destination is connected.
    ForwardUp,
    /// A destination is lost.
    ForwardDown,
    /// The configuration was read again.
    Reload,
    /// The relay drains.
    Drain,
}

/// A call that was refused.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, ToSchema)]
pub struct RefusalReport {
    /// The time.
    pub at: Timestamp,
    /// The caller's address.
    pub address: String,
    /// The stream ID as it came, with secrets masked.
    pub stream_id: String,
    /// The stream's name, if the stream ID has one.
    pub stream: Option<String>,
    /// The reason as a word, as the label of the metric has it.
    pub reason: String,
    /// SRT's rejection code, such as 1403; `null` if the caller got no answer.
    pub code: Option<u16>,
    /// One sentence for people.
    pub text: String,
    /// The number of equal calls in a row that this line stands for.
    pub count: u64,
}
