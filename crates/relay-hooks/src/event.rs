//! The events of a relay, as hooks are told of them.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use punctual_units::UtcTime;
use serde::Serialize;
use thiserror::Error;

/// The kind of an event.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HookEventKind {
    /// A caller is connected.
    Connect,
    /// The connection of a caller has ended.
    Disconnect,
    /// A caller was refused.
    Refused,
    /// A stream can be viewed.
    Available,
    /// A stream can no longer be viewed.
    Unavailable,
    /// A stream has a source that sends.
    Online,
    /// A stream has lost its source.
    Offline,
    /// A viewer begins.
    Read,
    /// A viewer has ended.
    Unread,
    /// A segment of a recording begins.
    RecordSegmentCreate,
    /// A segment of a recording is complete.
    RecordSegmentComplete,
    /// A destination of a stream is connected.
    ForwardUp,
    /// A destination of a stream is lost.
    ForwardDown,
    /// The relay begins to drain.
    Drain,
}

/// A text that names no kind of events.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("`{0}` is no event of a relay")]
pub struct UnknownHookEvent(String);

impl HookEventKind {
    /// All kinds.
    pub const ALL: [Self; 14] = [
        Self::Connect,
        Self::Disconnect,
        Self::Refused,
        Self::Available,
        Self::Unavailable,
        Self::Online,
        Self::Offline,
        Self::Read,
        Self::Unread,
        Self::RecordSegmentCreate,
        Self::RecordSegmentComplete,
        Self::ForwardUp,
        Self::ForwardDown,
        Self::Drain,
    ];

    /// Its word, such as `record-segment-create`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Disconnect => "disconnect",
            Self::Refused => "refused",
            Self::Available => "available",
            Self::Unavailable => "unavailable",
            Self::Online => "online",
            Self::Offline => "offline",
            Self::Read => "read",
            Self::Unread => "unread",
            Self::RecordSegmentCreate => "record-segment-create",
            Self::RecordSegmentComplete => "record-segment-complete",
            Self::ForwardUp => "forward-up",
            Self::ForwardDown => "forward-down",
            Self::Drain => "drain",
        }
    }

    /// The kind of the event that ends the state which this one begins, if there is such a state.
    pub fn end(self) -> Option<Self> {
        match self {
            Self::Connect => Some(Self::Disconnect),
            Self::Available => Some(Self::Unavailable),
            Self::Online => Some(Self::Offline),
            Self::Read => Some(Self::Unread),
            Self::ForwardUp => Some(Self::ForwardDown),
            _ => None,
        }
    }
}

impl fmt::Display for HookEventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for HookEventKind {
    type Err = UnknownHookEvent;

    fn from_str(text: &str) -> Result<Self, UnknownHookEvent> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == text);
        found.ok_or_else(|| UnknownHookEvent(punctual_units::one_line(text).into_owned()))
    }
}

/// An event, with all that is known about it. Texts of strangers, such as names and queries, come
/// as they are: hooks get them without secrets and without control characters.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HookEvent {
    /// Its kind.
    pub kind: HookEventKind,
    /// Its time.
    pub time: UtcTime,
    /// The name of the stream.
    pub stream: Option<String>,
    /// The connection: the caller, the source or the viewer.
    pub connection: Option<HookConnection>,
    /// The reason, in words.
    pub reason: Option<String>,
    /// The segment of a recording.
    pub segment: Option<HookSegment>,
    /// The URI of a destination.
    pub destination: Option<String>,
    /// The groups of the regular expression by which the stream is configured.
    pub groups: Vec<String>,
}

/// The connection of an event.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HookConnection {
    /// Its ID in the API.
    pub id: String,
    /// Its protocol, such as `srt` or `http`.
    pub protocol: String,
    /// Whether the relay called, to pull a stream.
    pub is_pull: bool,
    /// The address of the other end.
    pub address: Option<String>,
    /// The user.
    pub user: Option<String>,
    /// The query of the stream ID.
    pub query: Option<String>,
}

/// The segment of an event.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HookSegment {
    /// Its file.
    pub path: PathBuf,
    /// The time from its start to its end, of one that is complete.
    pub duration: Option<Duration>,
    /// Its length, of one that is complete.
    pub bytes: Option<u64>,
}

impl HookEvent {
    /// An event without details.
    pub fn new(kind: HookEventKind, time: UtcTime) -> Self {
        let (stream, connection, reason, segment, destination) = (None, None, None, None, None);
        let groups = Vec::new();
        Self { kind, time, stream, connection, reason, segment, destination, groups }
    }

    /// The same, of this stream.
    pub fn of_stream(self, name: impl Into<String>) -> Self {
        Self { stream: Some(name.into()), ..self }
    }

    /// The same, of this connection.
    pub fn of_connection(self, connection: HookConnection) -> Self {
        Self { connection: Some(connection), ..self }
    }

    /// The thing that the event is about: an event that begins a state and the one that ends it
    /// have the same.
    pub(crate) fn subject(&self) -> HookSubject {
        let part = match self.kind {
            HookEventKind::Available
            | HookEventKind::Unavailable
            | HookEventKind::Online
            | HookEventKind::Offline
            | HookEventKind::Drain => None,
            HookEventKind::ForwardUp | HookEventKind::ForwardDown => self.destination.clone(),
            HookEventKind::RecordSegmentCreate | HookEventKind::RecordSegmentComplete => {
                self.segment.as_ref().map(|segment| segment.path.display().to_string())
            }
            HookEventKind::Connect
            | HookEventKind::Disconnect
            | HookEventKind::Refused
            | HookEventKind::Read
            | HookEventKind::Unread => self.connection.as_ref().map(|it| it.id.clone()),
        };
        // A connection has one ID, and may not have had a stream yet when it began.
        let has_own_id = matches!(self.kind, HookEventKind::Connect | HookEventKind::Disconnect);
        HookSubject { stream: self.stream.clone().filter(|_| !has_own_id), part }
    }
}

/// The thing that an event is about.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct HookSubject {
    stream: Option<String>,
    part: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_names_that_are_read_and_serialized() {
        for kind in HookEventKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{kind}\""));
        }
        let error = "Ready\n".parse::<HookEventKind>().unwrap_err();
        assert_eq!(error.to_string(), "`Ready\\n` is no event of a relay");
    }

    #[test]
    fn a_beginning_and_its_end_are_about_the_same() {
        let time = UtcTime::default();
        let connection = HookConnection { id: "7".to_owned(), ..HookConnection::default() };
        for begin in HookEventKind::ALL {
            let Some(end) = begin.end() else { continue };
            let event = |kind, id: &str| {
                let connection = HookConnection { id: id.to_owned(), ..connection.clone() };
                let mut event = HookEvent::new(kind, time).of_stream("a").of_connection(connection);
                event.destination = Some(id.to_owned());
                event.subject()
            };
            assert_eq!(event(begin, "7"), event(end, "7"));
            let is_of_stream = matches!(begin, HookEventKind::Available | HookEventKind::Online);
            assert_eq!(event(begin, "7") == event(end, "8"), is_of_stream, "{begin}");
        }
    }
}
