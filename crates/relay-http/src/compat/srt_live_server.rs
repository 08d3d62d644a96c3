//! The statistics of srt-live-server and of its fork by OpenIRL, as NOALBS and overlays read them.
//!
//! Publishers are named as those servers name them in their usual configuration, `publish/` before
//! the stream's name. A path may also have the stream's name alone.

use axum::Json;
use axum::extract::{Path, State};
use serde_json::{Map, Value, json};

use crate::app::Shared;
use crate::report::{ConnectionReport, ConnectionRole};

/// `GET /stats`: all publishers.
pub(super) async fn all(State(app): State<Shared>) -> Json<Value> {
    let connections = app.relay().connections(None).await;
    let publishers: Map<String, Value> = connections
        .iter()
        .filter_map(|it| Some((format!("publish/{}", it.stream), statistics(it)?)))
        .collect();
    Json(json!({ "publishers": publishers, "status": "ok" }))
}

/// `GET /stats/{publisher}`: one publisher, under the name in the path, and as OpenIRL's fork has
/// it. Without `publisher` the stream is offline.
pub(super) async fn one(State(app): State<Shared>, Path(asked): Path<String>) -> Json<Value> {
    let mut found = None;
    for name in [asked.strip_prefix("publish/"), Some(&asked)].into_iter().flatten() {
        let connections = app.relay().connections(Some(name)).await;
        found = found.or_else(|| connections.iter().find_map(statistics));
    }
    Json(match found {
        Some(it) => json!({ "publishers": { (asked): &it }, "publisher": &it, "status": "ok" }),
        None => json!({ "publishers": {}, "status": "ok" }),
    })
}

fn statistics(connection: &ConnectionReport) -> Option<Value> {
    if connection.role != ConnectionRole::Publisher {
        return None;
    }
    let statistics = connection.statistics.as_ref()?;
    let total = &statistics.total;
    let rate = statistics.last_second.receive_rate();
    Some(json!({
        "bitrate": rate.as_bits_per_sec() / 1_000,
        "buffer": total.receive_buffer_span.as_millis(),
        "bytesRcvDrop": total.bytes_receive_dropped,
        "bytesRcvLoss": total.bytes_receive_lost,
        "dropped_pkts": total.packets_receive_dropped,
        "latency": total.receive_latency.as_millis(),
        "mbpsBandwidth": total.link_capacity.as_mbps(),
        "mbpsRecvRate": rate.as_mbps(),
        "msRcvBuf": total.receive_buffer_span.as_millis(),
        "pktRcvDrop": total.packets_receive_dropped,
        "pktRcvLoss": total.packets_receive_lost,
        "rtt": total.rtt.as_secs_f64() * 1e3,
        "uptime": total.elapsed.as_secs(),
    }))
}
