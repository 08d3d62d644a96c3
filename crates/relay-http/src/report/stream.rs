//! A stream, with its source, tracks, destinations and recording.

use serde::Serialize;
use utoipa::ToSchema;

use super::{StreamHealth, Tally, Timestamp, Traffic};

/// A stream.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct StreamReport {
    /// The stream's name.
    pub name: String,
    /// Whether the stream has a source.
    pub state: StreamState,
    /// The time of the latest change of `state`; `null` if there was none.
    pub since: Option<Timestamp>,
    /// The end that sends the stream; `null` while there is none.
    pub source: Option<SourceReport>,
    /// The tracks of the stream: those of the first program of its transport stream first.
    pub tracks: Vec<TrackReport>,
    /// The viewers, by protocol.
    pub viewers: Vec<ViewerCount>,
    /// Packets from the source.
    pub inbound: Traffic,
    /// Packets to all viewers and destinations.
    pub outbound: Traffic,
    /// The transport stream as the source sends it. It counts from the start of the present source.
    pub health_in: StreamHealth,
    /// The transport stream as a viewer gets it that is never too slow: over all sources, with the
    /// silence and the splices between them.
    pub health_out: StreamHealth,
    /// Jumps of slow viewers to a later random access point, by reason.
    pub viewer_skips: Vec<Tally>,
    /// Changes of the source, by reason.
    pub source_switches: Vec<Tally>,
    /// The destinations to which the relay sends the stream.
    pub forwards: Vec<ForwardReport>,
    /// The running or latest recording; `null` if there was none.
    pub recording: Option<RecordingReport>,
    /// The time since which the counters of this report count.
    pub counters_since: Timestamp,
}

impl StreamReport {
    /// The number of viewers over all protocols.
    pub fn viewer_count(&self) -> u32 {
        self.viewers.iter().map(|it| it.viewers).sum()
    }
}

/// The state of a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamState {
    /// Its source sends.
    Online,
    /// Its source is gone for less than `keep-viewers`; the viewers wait.
    Waiting,
    /// It has no source.
    Offline,
}

/// The end that sends a stream.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, ToSchema)]
pub struct SourceReport {
    /// The kind of source.
    pub kind: SourceKind,
    /// The input's name; `primary` for the only one.
    pub input: String,
    /// The ID of the connection; `null` for a source without a connection.
    pub connection: Option<String>,
    /// The address or the URI, without secrets.
    pub address: String,
    /// The publisher's name, if the publisher told one.
    pub user: Option<String>,
}

/// The kind of a source.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// A caller that publishes.
    Publisher,
    /// The relay calls the source.
    Pull,
    /// A file, in a loop.
    File,
}

/// A track of a stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct TrackReport {
    /// The packet identifier in the transport stream.
    pub pid: u16,
    /// The kind of content.
    pub kind: TrackKind,
    /// The codec by its name: `H.264`, `AAC`, `SCTE-35`.
    pub codec: String,
    /// The codec's profile, if known.
    pub profile: Option<String>,
    /// The language as the stream tells it: ISO 639-2.
    pub language: Option<String>,
    /// The width of the picture in pixels.
    pub width: Option<u32>,
    /// The height of the picture in pixels.
    pub height: Option<u32>,
    /// Pictures a second.
    pub frame_rate: Option<f64>,
    /// Samples a second.
    pub sample_rate_hz: Option<u32>,
    /// The channels of the sound.
    pub channels: Option<u8>,
    /// The rate over the last second, in bits a second.
    pub rate_bps: Option<u64>,
}

/// The kind of a track's content.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrackKind {
    /// A picture.
    Video,
    /// Sound.
    Audio,
    /// Subtitles, markers, metadata and all other data.
    #[default]
    Data,
}

/// The viewers of a stream by one protocol.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, ToSchema)]
pub struct ViewerCount {
    /// `srt`, `srt+quic`, `http`, `player` or `hls`.
    pub protocol: String,
    /// Their number.
    pub viewers: u32,
}

/// A destination to which the relay sends a stream.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ForwardReport {
    /// The ID for the API: short, and unique within the stream.
    pub id: String,
    /// The URI, without secrets.
    pub to: String,
    /// Whether it is to run; an operator may have stopped it.
    pub wanted: bool,
    /// Whether it is connected and sends.
    pub up: bool,
    /// The time of the latest change of `up`; `null` if there was none.
    pub since: Option<Timestamp>,
    /// The bytes sent, without headers and retransmissions.
    pub bytes: u64,
    /// The round-trip time.
    pub rtt_ms: Option<f64>,
    /// The reason of the latest failure.
    pub last_error: Option<String>,
    /// The ID of the connection while there is one.
    pub connection: Option<String>,
}

/// A recording of a stream.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, ToSchema)]
pub struct RecordingReport {
    /// The stream's name.
    pub stream: String,
    /// Whether it runs.
    pub state: RecordingState,
    /// The time of its first packet.
    pub started_at: Timestamp,
    /// The time of its last packet; `null` while it runs.
    pub ended_at: Option<Timestamp>,
    /// The files so far.
    pub segments: u32,
    /// The bytes so far.
    pub bytes: u64,
    /// The latest file.
    pub file: String,
    /// The bytes free where it is written; `null` if unknown.
    pub free_bytes: Option<u64>,
    /// The errors of writing so far.
    pub errors: u64,
    /// The latest error.
    pub last_error: Option<String>,
}

/// The state of a recording.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecordingState {
    /// It is being written.
    Running,
    /// It is whole.
    Ended,
    /// An error ended it.
    Failed,
}
