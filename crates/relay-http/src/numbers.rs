//! The numbers of all streams at one moment, for charts.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::Mutex;
use tokio::time::Instant;
use utoipa::ToSchema;

use crate::relay::Relay;
use crate::report::{StreamReport, StreamState};

/// The numbers of all streams at one moment.
#[derive(Serialize, ToSchema)]
pub(crate) struct NumbersReport {
    /// The numbers of each stream.
    streams: Vec<StreamNumbers>,
}

/// The numbers of a stream at one moment, for charts.
#[derive(Serialize, ToSchema)]
struct StreamNumbers {
    /// The stream's name.
    name: String,
    /// Whether the stream has a source.
    state: StreamState,
    /// Its viewers.
    viewers: u32,
    /// The rate from the source, in bits a second.
    in_bps: u64,
    /// The rate to viewers and destinations, in bits a second.
    out_bps: u64,
    /// The source's round-trip time.
    rtt_ms: Option<f64>,
    /// The time span in the receive buffer.
    buffer_ms: Option<u32>,
    /// Packets from the source so far.
    packets: u64,
    /// Packets from the source that were lost at first, so far.
    lost: u64,
    /// Retransmissions of the source so far.
    retransmitted: u64,
    /// Packets from the source that were not repaired in time, so far.
    unrecovered: u64,
    /// Errors of the transport stream's first priority, so far.
    errors: u64,
}

impl From<StreamReport> for StreamNumbers {
    fn from(stream: StreamReport) -> Self {
        Self {
            viewers: stream.viewer_count(),
            errors: stream.health_in.first_priority(),
            name: stream.name,
            state: stream.state,
            in_bps: stream.inbound.rate_bps,
            out_bps: stream.outbound.rate_bps,
            rtt_ms: stream.inbound.rtt_ms,
            buffer_ms: stream.inbound.buffer_ms,
            packets: stream.inbound.packets,
            lost: stream.inbound.packets_lost,
            retransmitted: stream.inbound.packets_retransmitted,
            unrecovered: stream.inbound.packets_unrecovered,
        }
    }
}

/// The numbers of all streams as text, made at most about once a second for all clients.
#[derive(Default)]
pub(crate) struct Numbers {
    latest: Mutex<Option<(Instant, Arc<str>)>>,
}

impl Numbers {
    /// The numbers, at most about a second old.
    pub(crate) async fn latest(&self, relay: &dyn Relay) -> Arc<str> {
        let mut latest = self.latest.lock().await;
        if let Some((at, text)) = &*latest
            && at.elapsed() < FRESH
        {
            return Arc::clone(text);
        }
        let streams = relay.streams().await.into_iter().map(StreamNumbers::from).collect();
        let text: Arc<str> =
            serde_json::to_string(&NumbersReport { streams }).unwrap_or_default().into();
        *latest = Some((Instant::now(), Arc::clone(&text)));
        text
    }
}

/// The age up to which numbers serve another client.
const FRESH: Duration = Duration::from_millis(700);
