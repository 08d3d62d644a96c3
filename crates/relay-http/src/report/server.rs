//! The relay as a whole.

use serde::Serialize;
use utoipa::ToSchema;

use super::{DurationCounts, Tally, Timestamp};

/// The relay as a whole.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ServerReport {
    /// The version of the program.
    pub version: String,
    /// The time of the relay's start.
    pub started_at: Timestamp,
    /// Whether the relay drains: it takes no new calls and will end.
    pub draining: bool,
    /// The ports on which it listens.
    pub listeners: Vec<ListenerReport>,
    /// Streams with a source.
    pub streams_online: u32,
    /// Viewers of all streams, over all protocols.
    pub viewers: u32,
    /// The rate from all sources over the last second, in bits a second.
    pub inbound_bps: u64,
    /// The rate to all viewers and destinations over the last second, in bits a second.
    pub outbound_bps: u64,
    /// Calls that were admitted.
    pub calls_admitted: u64,
    /// Calls that were refused, by reason.
    pub calls_refused: Vec<Tally>,
    /// Runs of hooks.
    pub hook_runs: Vec<HookTally>,
    /// The times that decisions of other servers about calls took, for metrics.
    #[serde(skip)]
    #[schema(ignore)]
    pub auth_requests: DurationCounts,
    /// The URI with which encoders publish, with `NAME` for the stream.
    pub publish_uri: Option<String>,
    /// The URI with which players play, with `NAME` for the stream.
    pub play_uri: Option<String>,
}

/// Runs of hooks for one event with one result.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, ToSchema)]
pub struct HookTally {
    /// The event.
    pub event: String,
    /// `ok` or `failed`.
    pub result: String,
    /// The number.
    pub count: u64,
}

/// A port on which the relay listens.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, ToSchema)]
pub struct ListenerReport {
    /// `srt` or `srt+quic`.
    pub protocol: String,
    /// The address.
    pub address: String,
    /// The only stream of this port; `null` if the stream ID decides.
    pub stream: Option<String>,
    /// The hash of its certificate, by which callers over QUIC can verify it.
    pub certhash: Option<String>,
}

/// Whether the relay is able to do its work.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, ToSchema)]
pub struct HealthReport {
    /// Whether the relay should get calls: it listens, its configuration is loaded, recordings can
    /// be written, and it does not drain.
    pub ready: bool,
    /// The reasons why it is not ready.
    pub problems: Vec<String>,
    /// Faults with which it goes on, such as a hook that fails.
    pub warnings: Vec<String>,
}

/// A fault of a configuration.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, ToSchema)]
pub struct ConfigProblem {
    /// The line, from 1; `null` without a file.
    pub line: Option<u32>,
    /// The column, from 1; `null` without a file.
    pub column: Option<u32>,
    /// The key with its sections: `stream."live/*".latency`.
    pub key: Option<String>,
    /// The fault, and a value that would be right.
    pub message: String,
}

/// The result of reading the configuration again.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, ToSchema)]
pub struct ReloadReport {
    /// The keys that changed and are in force.
    pub changed: Vec<String>,
    /// The keys that changed and need a restart.
    pub needs_restart: Vec<String>,
    /// The streams whose connections ended by the change.
    pub cut: Vec<String>,
}
