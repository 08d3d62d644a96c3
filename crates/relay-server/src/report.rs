//! Streams and connections as the API reports them.

use std::time::Duration;

use punctual::{CipherMode, ConnectionInfo, GroupKind};
use punctual_ends::SrtEnd;
use punctual_mpegts::{ElementaryStream, Fault, Inspector};
use punctual_relay_http::report::{
    ConnectionReport, ConnectionRole, ForwardReport, GroupReport, LatencyReport, LinkReport,
    LinkState, RecordingReport, SourceKind, SourceReport, SrtStatistics, StreamHealth,
    StreamReport, StreamState, Tally, TrackKind, TrackReport, Traffic, ViewerCount,
};

use crate::connections::ServedConnection;
use crate::hub::Hub;
use crate::live_stream::LiveStream;
use crate::wall;

/// The report of a stream.
pub(crate) fn stream(
    hub: &Hub,
    stream: &LiveStream,
    forwards: Vec<ForwardReport>,
    recording: Option<RecordingReport>,
) -> StreamReport {
    let now = punctual::now();
    let state = stream.state();
    let (connections, [counted_in, counted_out]) = hub.connections.counted(stream.name());
    let source = state.publisher.and_then(|id| connections.iter().find(|it| it.id == id.0));
    let (inbound_rate, tracks, health_in, health_out) = stream.look(|machine| {
        let inspector = machine.inspector();
        let at = Duration::from_nanos(now.as_nanos());
        let (way_in, way_out) = (health(inspector, now), health(machine.way_out(), now));
        (inspector.total_bit_rate(at), tracks(inspector, at), way_in, way_out)
    });
    let mut inbound = Traffic { bytes: state.received_bytes, ..counted_in };
    if let Some(source) = source {
        add_levels(&mut inbound, source);
    }
    inbound.rate_bps = inbound_rate;
    let mut outbound = Traffic { bytes: state.sent_bytes, ..counted_out };
    let outs: Vec<_> = connections.iter().filter(|it| !it.role.is_inbound()).collect();
    let mut rtts: Vec<f64> = Vec::new();
    for out in &outs {
        add_levels(&mut outbound, out);
        rtts.extend(outbound.rtt_ms.take());
    }
    rtts.sort_by(f64::total_cmp);
    outbound.rtt_ms = rtts.get(rtts.len() / 2).copied();
    let is_there = state.publisher.is_some();
    StreamReport {
        name: stream.name().to_string(),
        state: match (state.is_online, is_there || state.online_since.is_some()) {
            (true, _) => StreamState::Online,
            (false, true) => StreamState::Waiting,
            (false, false) => StreamState::Offline,
        },
        since: state.online_since.map(|since| wall::at(since).into()),
        source: source.map(|it| source_report(hub, it)),
        tracks,
        viewers: viewer_counts(&connections),
        inbound,
        outbound,
        health_in,
        health_out,
        viewer_skips: vec![Tally { reason: "slow".to_owned(), count: state.skips }],
        source_switches: vec![Tally { reason: "publisher".to_owned(), count: state.switches }],
        forwards,
        recording,
        counters_since: stream.since().into(),
    }
}

fn source_report(hub: &Hub, it: &ServedConnection) -> SourceReport {
    let kind = match (it.role, it.protocol) {
        (ConnectionRole::Pull, "file") => SourceKind::File,
        (ConnectionRole::Pull, _) => SourceKind::Pull,
        _ => SourceKind::Publisher,
    };
    SourceReport {
        kind,
        input: "primary".to_owned(),
        connection: Some(hub.api_id(it.id)),
        address: it.peer(),
        user: it.user.clone(),
    }
}

fn viewer_counts(connections: &[std::sync::Arc<ServedConnection>]) -> Vec<ViewerCount> {
    let mut counts: Vec<ViewerCount> = Vec::new();
    for it in connections.iter().filter(|it| it.role == ConnectionRole::Viewer) {
        match counts.iter_mut().find(|count| count.protocol == it.protocol) {
            Some(count) => count.viewers += 1,
            None => counts.push(ViewerCount { protocol: it.protocol.to_owned(), viewers: 1 }),
        }
    }
    counts
}

/// Adds the rate, the round trip, the latency and the buffer of a connection to those of its
/// stream.
fn add_levels(traffic: &mut Traffic, connection: &ServedConnection) {
    traffic.rate_bps += connection.rate().as_bits_per_sec();
    let Some((total, _)) = connection.statistics() else { return };
    let (latency, buffer) = match connection.role.is_inbound() {
        true => (total.receive_latency, total.receive_buffer_span),
        false => (total.peer_latency, total.send_buffer_span),
    };
    traffic.rtt_ms = total.measured_rtt().map(|rtt| rtt.as_secs_f64() * 1e3);
    traffic.latency_ms = traffic.latency_ms.max(Some(millis(latency)));
    traffic.buffer_ms = traffic.buffer_ms.max(Some(millis(buffer)));
}

fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

/// The tracks of a transport stream.
fn tracks(inspector: &Inspector, now: Duration) -> Vec<TrackReport> {
    let streams = inspector.programs().iter().flat_map(|program| &program.streams);
    streams.map(|it| track(inspector, it, now)).collect()
}

fn track(inspector: &Inspector, it: &ElementaryStream, now: Duration) -> TrackReport {
    let mut track = TrackReport {
        pid: it.pid,
        kind: match it.kind {
            kind if kind.is_video() => TrackKind::Video,
            kind if kind.is_audio() => TrackKind::Audio,
            _ => TrackKind::Data,
        },
        codec: it.kind.name().to_owned(),
        language: it.language.clone(),
        rate_bps: Some(inspector.bit_rate(it.pid, now)),
        ..TrackReport::default()
    };
    if let Some(video) = inspector.video(it.pid) {
        (track.width, track.height) = (Some(video.width), Some(video.height));
        track.profile = Some(video.profile.to_owned()).filter(|profile| !profile.is_empty());
        track.frame_rate =
            video.frame_rate.map(|(frames, seconds)| f64::from(frames) / f64::from(seconds));
    }
    if let Some(audio) = inspector.audio(it.pid) {
        track.sample_rate_hz = Some(audio.sample_rate);
        track.channels = Some(audio.channels);
    }
    track
}

/// The faults of a transport stream.
fn health(inspector: &Inspector, now: punctual::Instant) -> StreamHealth {
    let health = inspector.health();
    let count = |fault| health.of(fault).count;
    // Faults that the report does not count have no time in it.
    let is_counted = |fault: Fault| ![Fault::Cat, Fault::PcrInterval].contains(&fault);
    let errors = health.faults().filter(|(fault, _)| is_counted(*fault));
    let last = errors.filter_map(|(_, it)| it.last).max();
    StreamHealth {
        packets: inspector.packets(),
        sync_losses: count(Fault::SyncLoss),
        sync_byte_errors: count(Fault::SyncByte),
        pat_errors: count(Fault::Pat),
        continuity_errors: count(Fault::Continuity),
        pmt_errors: count(Fault::Pmt),
        pid_errors: count(Fault::Pid),
        transport_errors: count(Fault::Transport),
        crc_errors: count(Fault::Crc),
        pcr_repetition_errors: count(Fault::PcrRepetition),
        pcr_discontinuities: count(Fault::PcrDiscontinuity),
        pcr_accuracy_errors: count(Fault::PcrAccuracy),
        pts_errors: count(Fault::Pts),
        random_access_interval_ms: inspector.random_access_interval().map(millis),
        last_error_at: last.map(|at| {
            let at = punctual::Instant::from_nanos(u64::try_from(at.as_nanos()).unwrap_or(0));
            (wall::now() - now.saturating_since(at)).into()
        }),
    }
}

/// The report of a connection.
pub(crate) fn connection(hub: &Hub, it: &ServedConnection) -> ConnectionReport {
    let info = it.end.as_ref().and_then(info);
    let viewer =
        hub.find(&it.stream).and_then(|stream| stream.viewer(punctual_relay::ViewerId(it.id)));
    let statistics = it.statistics().map(|(total, last_second)| SrtStatistics {
        total,
        last_second,
        quic: it.end.as_ref().and_then(SrtEnd::quic),
    });
    ConnectionReport {
        id: hub.api_id(it.id),
        role: it.role,
        protocol: it.protocol.to_owned(),
        stream: it.stream.to_string(),
        user: it.user.clone(),
        address: it.peer(),
        stream_id: it.stream_id.clone(),
        opened_at: it.opened_at.into(),
        latency: info.as_ref().map(|info| latency(it, info)),
        encryption: info.as_ref().and_then(encryption),
        peer_version: info.as_ref().map(version),
        bytes: it.traffic.bytes(),
        skips: viewer.map_or(0, |viewer| viewer.skips),
        statistics,
        group: it.end.as_ref().and_then(|end| group(end, it.role.is_inbound())),
    }
}

/// The result of the handshake. The links of a group have the same one.
fn info(end: &SrtEnd) -> Option<ConnectionInfo> {
    match end {
        SrtEnd::Socket(socket) => Some(socket.info()),
        SrtEnd::Group(group) => Some(group.connections().first()?.socket.info()),
    }
}

fn group(end: &SrtEnd, is_inbound: bool) -> Option<GroupReport> {
    let SrtEnd::Group(group) = end else { return None };
    let kind = match group.kind() {
        GroupKind::Broadcast => "broadcast",
        GroupKind::Backup => "backup",
        GroupKind::Balance => "balance",
    };
    let links = end.links_in_all().iter().map(|it| link(it, is_inbound)).collect();
    Some(GroupReport { kind: kind.to_owned(), links })
}

fn link(it: &punctual::LinkReport, is_inbound: bool) -> LinkReport {
    let numbers = &it.statistics;
    let (packets, packets_lost, packets_retransmitted) = match is_inbound {
        true => (
            numbers.packets_received,
            numbers.packets_receive_lost,
            numbers.packets_received_retransmitted,
        ),
        false => (numbers.packets_sent, numbers.packets_send_lost, numbers.packets_retransmitted),
    };
    LinkReport {
        address: it.remote.to_string(),
        state: match it.state {
            punctual::LinkState::Joining => LinkState::Connecting,
            punctual::LinkState::Idle => LinkState::Standby,
            punctual::LinkState::Activating => LinkState::TakingOver,
            punctual::LinkState::Stable => LinkState::Active,
            punctual::LinkState::Unstable => LinkState::WithoutAnswers,
            punctual::LinkState::Wary => LinkState::Recovering,
            punctual::LinkState::Gone => LinkState::Lost,
        },
        weight: it.weight,
        rtt_ms: numbers.measured_rtt().map(|rtt| rtt.as_secs_f64() * 1e3),
        packets,
        packets_lost,
        packets_retransmitted,
    }
}

fn latency(it: &ServedConnection, info: &ConnectionInfo) -> LatencyReport {
    let agreed = match it.role.is_inbound() {
        true => info.receive_latency,
        false => info.peer_latency,
    };
    LatencyReport {
        relay_ms: it.latency_wish_ms,
        peer_ms: info.caller_latency.map_or(0, millis),
        agreed_ms: millis(agreed),
    }
}

fn encryption(info: &ConnectionInfo) -> Option<String> {
    let (mode, length) = info.cipher?;
    let mode = match mode {
        CipherMode::Ctr => "CTR",
        CipherMode::Gcm => "GCM",
    };
    Some(format!("AES-{}-{mode}", 8 * length.bytes()))
}

fn version(info: &ConnectionInfo) -> String {
    let [_, major, minor, patch] = info.peer_version.to_be_bytes();
    format!("{major}.{minor}.{patch}")
}

/// The rate of all connections in one direction over the last second, in bits a second.
pub(crate) fn rate(hub: &Hub, is_inbound: bool) -> u64 {
    let connections = hub.connections.of(None);
    let of_direction = connections.iter().filter(|it| it.role.is_inbound() == is_inbound);
    of_direction.map(|it| it.rate().as_bits_per_sec()).sum()
}
