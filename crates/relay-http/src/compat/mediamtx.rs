//! The part of MediaMTX's control API that other programs read, in its shapes, with the fields
//! that it calls deprecated. NOALBS fails if one is missing.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Query, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::app::Shared;
use crate::problem::Problem;
use crate::report::{
    ConnectionReport, ConnectionRole, SourceKind, SrtStatistics, StreamReport, StreamState,
    TrackReport,
};

/// `GET /v3/info`.
pub(super) async fn info(State(app): State<Shared>) -> Json<Value> {
    let server = app.relay().server().await;
    Json(json!({ "version": server.version, "started": server.started_at }))
}

/// A page of a list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageOf {
    #[serde(default)]
    page: usize,
    #[serde(default = "hundred")]
    items_per_page: usize,
}

fn hundred() -> usize {
    100
}

/// `GET /v3/paths/list`.
pub(super) async fn paths(State(app): State<Shared>, Query(page): Query<PageOf>) -> Response {
    let streams = app.relay().streams().await;
    let connections = app.relay().connections(None).await;
    let items: Vec<Value> =
        streams.iter().map(|stream| path_object(stream, &connections)).collect();
    listed(&page, &items)
}

/// `GET /v3/paths/get/{name}`.
pub(super) async fn path(State(app): State<Shared>, Path(name): Path<String>) -> Response {
    let Some(stream) = app.relay().stream(&name).await else { return not_found("path not found") };
    let connections = app.relay().connections(Some(&name)).await;
    Json(path_object(&stream, &connections)).into_response()
}

/// `GET /v3/srtconns/list`.
pub(super) async fn connections(State(app): State<Shared>, Query(page): Query<PageOf>) -> Response {
    let connections = app.relay().connections(None).await;
    let items: Vec<Value> = connections.iter().filter_map(srt_connection).collect();
    listed(&page, &items)
}

/// `GET /v3/srtconns/get/{id}`.
pub(super) async fn connection(State(app): State<Shared>, Path(id): Path<String>) -> Response {
    let connection = app.relay().connection(&id).await;
    match connection.as_ref().and_then(srt_connection) {
        Some(connection) => Json(connection).into_response(),
        None => not_found("connection not found"),
    }
}

/// `POST /v3/srtconns/kick/{id}`.
pub(super) async fn kick(State(app): State<Shared>, Path(id): Path<String>) -> Response {
    match app.relay().kick(&id, None).await {
        Ok(()) => Json(json!({ "status": "ok" })).into_response(),
        Err(fault) => {
            let problem = Problem::from(fault);
            error(problem.status(), problem.detail())
        }
    }
}

/// All else under `/v3`: 501 with the name of our endpoint.
pub(super) async fn not_here(request: Request) -> Response {
    let path = request.uri().path();
    let ours = OURS.iter().find(|(prefix, _)| path.starts_with(prefix)).map(|(_, ours)| *ours);
    let text = match ours {
        Some(ours) => format!("this relay is not MediaMTX: use {ours}"),
        None => "this relay is not MediaMTX and has nothing like it; `/v1/openapi.json` lists its \
                 API"
        .to_owned(),
    };
    error(StatusCode::NOT_IMPLEMENTED, &text)
}

/// The endpoints of MediaMTX by their beginnings, with ours.
const OURS: &[(&str, &str)] = &[
    ("/v3/config/paths", "`/v1/config/streams/{name}`"),
    ("/v3/config/pathdefaults", "`/v1/config/streams/{name}` and the section `[defaults]`"),
    ("/v3/config", "`GET /v1/config` and `POST /v1/reload`"),
    ("/v3/paths/forward", "`GET /v1/streams/{name}`, field `forwards`"),
    ("/v3/paths", "`GET /v1/streams`"),
    ("/v3/srtconns", "`GET /v1/connections`"),
    ("/v3/recordings", "`GET /v1/recordings`"),
    ("/v3/hls", "`GET /v1/connections`"),
    ("/v3/auth", "`POST /v1/reload`"),
];

fn not_found(text: &str) -> Response {
    error(StatusCode::NOT_FOUND, text)
}

fn error(status: StatusCode, text: &str) -> Response {
    (status, Json(json!({ "status": "error", "error": text }))).into_response()
}

fn listed(page: &PageOf, items: &[Value]) -> Response {
    if page.items_per_page == 0 {
        return error(StatusCode::BAD_REQUEST, "invalid items per page");
    }
    let pages = items.len().div_ceil(page.items_per_page);
    let shown: Vec<&Value> = items
        .iter()
        .skip(page.page.saturating_mul(page.items_per_page))
        .take(page.items_per_page)
        .collect();
    Json(json!({ "itemCount": items.len(), "pageCount": pages, "items": shown })).into_response()
}

fn path_object(stream: &StreamReport, connections: &[ConnectionReport]) -> Value {
    let is_online = stream.state == StreamState::Online;
    // Viewers of a stream that waits for its publisher's return stay.
    let is_available = stream.state != StreamState::Offline;
    let since = stream.since.filter(|_| is_available);
    let source = stream.source.as_ref().map(|source| {
        let kind = match source.kind {
            SourceKind::Publisher => "srtConn",
            SourceKind::Pull | SourceKind::File => "srtSource",
        };
        json!({ "type": kind, "id": source.connection.as_deref().unwrap_or_default() })
    });
    let readers: Vec<Value> = connections
        .iter()
        .filter(|it| it.stream == stream.name && !it.role.is_inbound() && it.statistics.is_some())
        .map(|it| json!({ "type": "srtConn", "id": it.id }))
        .collect();
    let tracks: Vec<Value> = stream.tracks.iter().map(|it| codec_name(it).into()).collect();
    let tracks2: Vec<Value> = stream
        .tracks
        .iter()
        .map(|track| json!({ "codec": codec_name(track), "codecProps": codec_properties(track) }))
        .collect();
    let (received, sent) = (stream.inbound.bytes, stream.outbound.bytes);
    json!({
        "name": stream.name,
        "confName": "all_others",
        "source": source,
        "ready": is_available,
        "readyTime": since,
        "available": is_available,
        "availableTime": since,
        "online": is_online,
        "onlineTime": stream.since.filter(|_| is_online),
        "tracks": tracks,
        "tracks2": tracks2,
        "readers": readers,
        "inboundBytes": received,
        "outboundBytes": sent,
        "inboundFramesInError": stream.health_in.continuity_errors,
        "bytesReceived": received,
        "bytesSent": sent,
    })
}

/// A codec under MediaMTX's name.
fn codec_name(track: &TrackReport) -> &str {
    match track.codec.as_str() {
        "H.264" => "H264",
        "HEVC" => "H265",
        "AAC" => "MPEG-4 Audio",
        "MP2" | "MP3" => "MPEG-1/2 Audio",
        "MPEG-2 video" => "MPEG-1/2 Video",
        other => other,
    }
}

fn codec_properties(track: &TrackReport) -> Value {
    let properties = [
        ("width", track.width.map(Value::from)),
        ("height", track.height.map(Value::from)),
        ("profile", track.profile.clone().map(Value::from)),
        ("sampleRate", track.sample_rate_hz.map(Value::from)),
        ("channelCount", track.channels.map(Value::from)),
    ];
    let known = properties.into_iter().filter_map(|(name, it)| Some((name.to_owned(), it?)));
    Value::Object(known.collect())
}

/// MediaMTX's object for an SRT connection; `None` for a viewer by HTTP.
fn srt_connection(connection: &ConnectionReport) -> Option<Value> {
    let statistics = connection.statistics.as_ref()?;
    let is_called = matches!(connection.role, ConnectionRole::Publisher | ConnectionRole::Viewer);
    if !is_called {
        return None;
    }
    let state = if connection.role.is_inbound() { "publish" } else { "read" };
    let query = connection.stream_id.split_once('?').map_or("", |it| it.1);
    // MediaMTX has no groups: of several addresses, the first.
    let address = connection.address.split(" + ").next().unwrap_or_default();
    let mut object = Map::new();
    for (name, value) in [
        ("id", connection.id.as_str()),
        ("remoteAddr", address),
        ("state", state),
        ("path", &connection.stream),
        ("query", query),
        ("user", connection.user.as_deref().unwrap_or_default()),
    ] {
        object.insert(name.to_owned(), value.into());
    }
    object.insert("created".to_owned(), json!(connection.opened_at));
    object.insert("outboundFramesDiscarded".to_owned(), connection.skips.into());
    let counts = counts(statistics).into_iter().map(|(name, count)| (name, count.into()));
    let measures = measures(statistics).into_iter().map(|(name, it)| (name, it.into()));
    object.extend(counts.chain(measures).map(|(name, value): (&str, Value)| (name.into(), value)));
    Some(Value::Object(object))
}

/// Whole numbers. MediaMTX counts messages with keys and the bytes of some packets that we do not
/// count: these are 0.
fn counts(SrtStatistics { total, .. }: &SrtStatistics) -> Vec<(&'static str, u64)> {
    let millis = |it: Duration| u64::try_from(it.as_millis()).unwrap_or(u64::MAX);
    vec![
        ("packetsSent", total.packets_sent),
        ("packetsReceived", total.packets_received),
        ("packetsReceivedBelated", total.packets_belated),
        ("packetsSentUnique", total.packets_sent_unique),
        ("packetsReceivedUnique", total.packets_received_unique),
        ("packetsSendLoss", total.packets_send_lost),
        ("packetsReceivedLoss", total.packets_receive_lost),
        ("packetsRetrans", total.packets_retransmitted),
        ("packetsReceivedRetrans", total.packets_received_retransmitted),
        ("packetsSentACK", total.acks_sent),
        ("packetsReceivedACK", total.acks_received),
        ("packetsSentNAK", total.naks_sent),
        ("packetsReceivedNAK", total.naks_received),
        ("packetsSentKM", 0),
        ("packetsReceivedKM", 0),
        ("usSndDuration", millis(total.send_busy).saturating_mul(1_000)),
        ("packetsSendDrop", total.packets_send_dropped),
        ("packetsReceivedDrop", total.packets_receive_dropped),
        ("packetsReceivedUndecrypt", total.packets_undecrypted),
        ("bytesSent", total.bytes_sent),
        ("bytesReceived", total.bytes_received),
        ("bytesReceivedBelated", 0),
        ("bytesSentUnique", total.bytes_sent_unique),
        ("bytesReceivedUnique", total.bytes_received_unique),
        ("bytesReceivedLoss", total.bytes_receive_lost),
        ("bytesRetrans", total.bytes_retransmitted),
        ("bytesReceivedRetrans", 0),
        ("bytesSendDrop", total.bytes_send_dropped),
        ("bytesReceivedDrop", total.bytes_receive_dropped),
        ("bytesReceivedUndecrypt", total.bytes_undecrypted),
        ("packetsFlowWindow", total.flow_window.into()),
        ("packetsFlightSize", total.flight_size.into()),
        ("bytesAvailSendBuf", total.send_buffer_available),
        ("bytesAvailReceiveBuf", total.receive_buffer_available),
        ("byteMSS", total.mss.into()),
        ("packetsSendBuf", total.send_buffer_packets.into()),
        ("bytesSendBuf", total.send_buffer_bytes),
        ("msSendBuf", millis(total.send_buffer_span)),
        ("msSendTsbPdDelay", millis(total.peer_latency)),
        ("packetsReceiveBuf", total.receive_buffer_packets.into()),
        ("bytesReceiveBuf", total.receive_buffer_bytes),
        ("msReceiveBuf", millis(total.receive_buffer_span)),
        ("msReceiveTsbPdDelay", millis(total.receive_latency)),
        ("packetsReorderTolerance", total.reorder_tolerance.into()),
        ("packetsReceivedAvgBelatedTime", millis(total.belated_time)),
    ]
}

/// Measured numbers.
fn measures(statistics: &SrtStatistics) -> [(&'static str, f64); 8] {
    let SrtStatistics { total, last_second, .. } = statistics;
    let percent = |lost: u64, all: u64| if all == 0 { 0.0 } else { 100.0 * ratio(lost, all) };
    [
        ("usPacketsSendPeriod", total.send_period.as_secs_f64() * 1e6),
        ("msRTT", total.rtt.as_secs_f64() * 1e3),
        ("mbpsSendRate", last_second.send_rate().as_mbps()),
        ("mbpsReceiveRate", last_second.receive_rate().as_mbps()),
        ("mbpsLinkCapacity", total.link_capacity.as_mbps()),
        ("mbpsMaxBW", total.max_bandwidth.as_mbps()),
        ("packetsSendLossRate", percent(total.packets_send_lost, total.packets_sent)),
        ("packetsReceivedLossRate", percent(total.packets_receive_lost, total.packets_received)),
    ]
}

#[expect(clippy::cast_precision_loss, reason = "a share of packets needs no more digits")]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}
