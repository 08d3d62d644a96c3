//! The relay as the API sees it: reports to read, and verbs to act.

use std::fmt;
use std::ops::Range;
use std::pin::Pin;
use std::time::Duration;

use axum::body::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use utoipa::ToSchema;

use crate::event_log::EventLog;
use crate::play::PlayMessage;
use crate::report::{
    ConfigProblem, ConnectionReport, HealthReport, RecordingReport, RefusalReport, ReloadReport,
    ServerReport, StreamReport, Timestamp,
};

/// The answer of a relay that may have to ask its other tasks first.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A running relay.
///
/// Reports hold no secret. Names of streams are as callers write them, without percent-encoding.
pub trait Relay: Send + Sync + 'static {
    /// The relay as a whole.
    fn server(&self) -> Answer<'_, ServerReport>;

    /// Whether the relay is able to do its work.
    fn health(&self) -> Answer<'_, HealthReport>;

    /// All streams, in the order of their names: those with a source, with viewers, or with a
    /// configuration of their own.
    fn streams(&self) -> Answer<'_, Vec<StreamReport>>;

    /// One stream; `None` if there is no such stream.
    fn stream<'a>(&'a self, name: &'a str) -> Answer<'a, Option<StreamReport>>;

    /// The connections of a stream, or all of them, oldest first.
    fn connections<'a>(&'a self, stream: Option<&'a str>) -> Answer<'a, Vec<ConnectionReport>>;

    /// One connection; `None` if there is no such connection.
    fn connection<'a>(&'a self, id: &'a str) -> Answer<'a, Option<ConnectionReport>>;

    /// The latest refused calls, newest first; a bounded number.
    fn refusals(&self) -> Answer<'_, Vec<RefusalReport>>;

    /// The recordings on the disk of a stream, or all of them, newest first.
    fn recordings<'a>(&'a self, stream: Option<&'a str>) -> Answer<'a, Vec<RecordingReport>>;

    /// The latest events, and those to come.
    fn events(&self) -> &EventLog;

    /// Ends a connection. With a ban its address may not call for that time.
    fn kick<'a>(&'a self, id: &'a str, ban: Option<Duration>) -> Answer<'a, Done>;

    /// Acts on a stream.
    fn act<'a>(&'a self, stream: &'a str, act: StreamAct) -> Answer<'a, Done>;

    /// The configuration in force, with the origin of each value.
    fn configuration(&self) -> Answer<'_, serde_json::Value>;

    /// The section of the configuration for this name or pattern; `None` if there is none.
    fn stream_section<'a>(&'a self, name: &'a str) -> Answer<'a, Option<ConfigSection>>;

    /// Changes the section of a name or pattern, and gives the section after it.
    fn change_section(&self, change: SectionChange) -> Answer<'_, Result<ConfigSection, Fault>>;

    /// The faults of a configuration file; none if the relay would take it.
    fn check<'a>(&'a self, file: &'a str) -> Answer<'a, Vec<ConfigProblem>>;

    /// Reads the configuration again and applies the difference, or changes nothing.
    fn reload(&self) -> Answer<'_, Result<ReloadReport, Fault>>;

    /// Begins to drain: no new calls, viewers end in slices, publishers last.
    fn drain(&self) -> Answer<'_, Done>;

    /// The stream as packets of a transport stream, from a random access point on. A receiver that
    /// is dropped ends the view; a full channel makes the relay jump to a later random access
    /// point.
    fn view_ts(&self, view: View) -> Answer<'_, Result<mpsc::Receiver<Bytes>, Fault>>;

    /// The stream for the browser's player.
    fn view_player(&self, view: View) -> Answer<'_, Result<mpsc::Receiver<PlayMessage>, Fault>>;

    /// The stream's recordings from a time on, for the browser's player, at their own pace.
    fn view_recording<'a>(
        &'a self,
        view: View,
        at: &'a str,
    ) -> Answer<'a, Result<mpsc::Receiver<PlayMessage>, Fault>>;

    /// The stream's recordings between two times, as a file.
    fn excerpt<'a>(
        &'a self,
        view: View,
        times: &'a ExcerptTimes,
    ) -> Answer<'a, Result<ExcerptFile, Fault>>;

    /// A file of the stream's HLS: `index.m3u8`, or a file that the playlist names.
    fn hls<'a>(&'a self, view: View, file: &'a str) -> Answer<'a, Result<HlsFile, Fault>>;
}

/// The answer of a verb.
pub type Done = Result<(), Fault>;

/// An act on a stream.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum StreamAct {
    /// Take the stream from this input from now on.
    Switch {
        /// The input's name in the stream's report.
        input: String,
    },
    /// Begin or end the recording.
    Record(bool),
    /// Begin or end forwarding to a destination.
    Forward {
        /// The destination's ID in the stream's report.
        id: String,
        /// Whether to begin.
        start: bool,
    },
    /// Set the counters of the stream's report to zero. Prometheus takes this for a restart.
    ResetCounters,
}

/// A call for a stream by HTTP.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct View {
    /// The stream's name.
    pub stream: String,
    /// The viewer's address, behind trusted proxies.
    pub address: std::net::IpAddr,
    /// The viewer's name, if the viewer told one.
    pub user: Option<String>,
    /// The time after which the view ends.
    pub lifetime: Option<Duration>,
    /// Whether a player wants the sound too.
    pub sound: bool,
}

/// A file of HLS.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HlsFile {
    /// Its media type.
    pub content_type: &'static str,
    /// The time for which caches may keep it.
    pub max_age: Duration,
    /// The file.
    pub body: Bytes,
}

/// The times of an excerpt.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ExcerptTimes {
    /// The start: `2026-11-27T20:15:00`, with a zone or in UTC. The file begins at the random
    /// access point at or before it.
    pub from: String,
    /// The end; the file ends at the random access point at or after it. Without it, the file has
    /// all that is recorded by now.
    pub until: Option<String>,
}

/// An excerpt of recordings.
pub struct ExcerptFile {
    /// The time of its first picture.
    pub start: Timestamp,
    /// Its number of bytes.
    pub len: u64,
    /// Differs from that of a file with other bytes.
    pub version: String,
    /// Begins to read these bytes. A receiver that is dropped ends the reading; a channel that is
    /// closed before the last byte means that the disk failed.
    pub read: Box<dyn FnOnce(Range<u64>) -> mpsc::Receiver<Bytes> + Send>,
}

/// A section of the configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigSection {
    /// Its keys and values.
    pub values: serde_json::Value,
    /// Changes with each change of the section.
    pub version: String,
}

/// A change of a section.
#[derive(Clone, Debug, PartialEq)]
pub struct SectionChange {
    /// The name or pattern of streams.
    pub name: String,
    /// The edit.
    pub edit: SectionEdit,
    /// Change only this version.
    pub if_version: Option<String>,
    /// Keep the change over a restart.
    pub persist: bool,
}

/// An edit of a section.
#[derive(Clone, Debug, PartialEq)]
pub enum SectionEdit {
    /// These values and no others.
    Put(serde_json::Value),
    /// These values besides the others; `null` takes a value away.
    Patch(serde_json::Value),
    /// No section.
    Delete,
}

/// A verb that was not done.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Fault {
    /// The stream, connection, destination or file does not exist.
    NotFound(String),
    /// The request is well formed, and not possible now.
    Conflict(String),
    /// The request's values are wrong.
    Invalid(String, Vec<ConfigProblem>),
    /// The section has another version.
    Stale(String),
    /// The relay cannot do this now, and may later.
    Unavailable(String),
    /// The relay is not built or configured to do this.
    Unsupported(String),
    /// The relay failed.
    Failed(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(text)
            | Self::Conflict(text)
            | Self::Invalid(text, _)
            | Self::Stale(text)
            | Self::Unavailable(text)
            | Self::Unsupported(text)
            | Self::Failed(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Fault {}

/// A short-lived right to view, for players that cannot send a header.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct Ticket {
    /// The text for `?ticket=`.
    pub ticket: String,
    /// The seconds for which it is valid.
    pub expires_in_s: u64,
}
