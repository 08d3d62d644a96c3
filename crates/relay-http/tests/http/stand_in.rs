//! A relay without sockets: five streams whose numbers move with the time since its start.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use axum::body::Bytes;
use punctual_relay_http::report::{
    ConfigProblem, ConnectionReport, ConnectionRole, DurationCounts, EventKind, ForwardReport,
    GroupReport, HealthReport, HookTally, LatencyReport, LinkReport, LinkState, ListenerReport,
    RecordingReport, RecordingState, RefusalReport, ReloadReport, ServerReport, SourceKind,
    SourceReport, SrtStatistics, StreamHealth, StreamReport, StreamState, Tally, Timestamp,
    TrackKind, TrackReport, Traffic, ViewerCount,
};
use punctual_relay_http::{
    Access, Allowed, Answer, Caller, ConfigSection, Credential, Done, EventLog, ExcerptFile,
    ExcerptTimes, Fault, HlsFile, PlayMessage, Relay, Right, SectionChange, SectionEdit, StreamAct,
    Ticket, Verdict, View,
};
use serde_json::json;
use tokio::sync::mpsc;

/// A relay of the tests.
pub(crate) struct StandIn {
    started: Instant,
    started_at: SystemTime,
    events: EventLog,
    /// The verbs that were called, in words.
    done: Mutex<Vec<String>>,
    health: Mutex<HealthReport>,
}

impl StandIn {
    pub(crate) fn new() -> Arc<Self> {
        let started_at = SystemTime::now();
        Arc::new(Self {
            started: Instant::now(),
            started_at,
            events: EventLog::new(started_at.into()),
            done: Mutex::default(),
            health: Mutex::new(HealthReport { ready: true, ..HealthReport::default() }),
        })
    }

    /// The verbs that were called so far.
    pub(crate) fn done(&self) -> Vec<String> {
        self.done.lock().unwrap().clone()
    }

    pub(crate) fn set_health(&self, health: HealthReport) {
        *self.health.lock().unwrap() = health;
    }

    /// Adds an event about a stream.
    pub(crate) fn tell(&self, kind: EventKind, stream: &str, text: &str) -> u64 {
        self.events.push(SystemTime::now().into(), kind, Some(stream), None, text)
    }

    fn note(&self, verb: String) -> Done {
        self.done.lock().unwrap().push(verb);
        Ok(())
    }

    fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    fn ago(&self, seconds: u64) -> Timestamp {
        (self.started_at - Duration::from_secs(seconds)).into()
    }

    fn all_streams(&self) -> Vec<StreamReport> {
        let now = self.seconds();
        let mut streams = vec![
            self.stream("live/backup", StreamState::Offline, 0.0, 0.0),
            self.stream("live/field cam", StreamState::Waiting, 0.0, 0.0),
            self.stream("live/studio", StreamState::Online, 6.2, 0.4 * (now / 5.0).sin()),
            self.stream("radio", StreamState::Online, 0.192, 0.0),
            self.stream("tower", StreamState::Online, 18.4, 2.0 * (now / 9.0).sin()),
        ];
        streams[2].tracks = vec![
            video("H.264", "High", 1920, 1080, 25.0),
            TrackReport { language: Some("eng".to_owned()), ..audio("AAC") },
            TrackReport { pid: 500, codec: "SCTE-35".to_owned(), ..TrackReport::default() },
        ];
        streams[2].forwards = vec![self.forward("cdn", true), self.forward("archive", false)];
        streams[2].recording = Some(self.recording("live/studio", RecordingState::Running));
        streams[3].tracks = vec![audio("MP2")];
        streams[4].tracks = vec![video("HEVC", "Main 10", 3840, 2160, 50.0), audio("AAC")];
        streams
    }

    /// A stream of this mean rate, which differs by `more` now.
    fn stream(&self, name: &str, state: StreamState, mbps: f64, more: f64) -> StreamReport {
        let (now, online) = (self.seconds(), state == StreamState::Online);
        let viewers = if online { name.len() as u32 } else { 0 };
        let rate = (1e6 * (mbps + more)) as u64;
        let bytes = (1e6 * mbps / 8.0 * (now + 600.0)) as u64;
        let source = online.then(|| SourceReport {
            kind: SourceKind::Publisher,
            input: "primary".to_owned(),
            connection: Some(id_of(name, "publisher")),
            address: "192.0.2.17:41022".to_owned(),
            user: Some("obs".to_owned()),
        });
        StreamReport {
            name: name.to_owned(),
            state,
            since: Some(self.ago(4_000)),
            source,
            tracks: Vec::new(),
            viewers: vec![
                ViewerCount { protocol: "srt".to_owned(), viewers },
                ViewerCount { protocol: "player".to_owned(), viewers: u32::from(online) },
            ],
            inbound: traffic(rate, bytes, now),
            outbound: traffic(rate * u64::from(viewers), bytes * u64::from(viewers), now),
            health_in: StreamHealth {
                packets: bytes / 188,
                continuity_errors: (now / 20.0) as u64,
                random_access_interval_ms: Some(2_000),
                ..StreamHealth::default()
            },
            health_out: StreamHealth { packets: bytes / 188, ..StreamHealth::default() },
            viewer_skips: vec![Tally { reason: "slow".to_owned(), count: 2 }],
            source_switches: vec![Tally { reason: "replaced".to_owned(), count: 1 }],
            forwards: Vec::new(),
            recording: None,
            counters_since: self.ago(4_000),
        }
    }

    fn forward(&self, id: &str, up: bool) -> ForwardReport {
        ForwardReport {
            id: id.to_owned(),
            to: format!("srt://{id}.example:9000"),
            wanted: true,
            up,
            since: Some(self.ago(100)),
            bytes: 123_456_789,
            rtt_ms: up.then_some(31.5),
            last_error: (!up).then(|| "connection timed out; next try in 8 s".to_owned()),
            connection: up.then(|| id_of(id, "forward")),
        }
    }

    fn recording(&self, stream: &str, state: RecordingState) -> RecordingReport {
        RecordingReport {
            stream: stream.to_owned(),
            state,
            started_at: self.ago(500),
            ended_at: None,
            segments: 1,
            bytes: (775_000.0 * (500.0 + self.seconds())) as u64,
            file: format!("recordings/{stream}/2026-11-28_10-00-00-000000.ts"),
            free_bytes: Some(80_000_000_000),
            errors: 0,
            last_error: None,
        }
    }

    fn all_connections(&self) -> Vec<ConnectionReport> {
        let mut all = Vec::new();
        for stream in self.all_streams() {
            if stream.state != StreamState::Online {
                continue;
            }
            all.push(self.connection_of(&stream.name, ConnectionRole::Publisher, 0));
            for viewer in 1..=stream.viewers[0].viewers {
                all.push(self.connection_of(&stream.name, ConnectionRole::Viewer, viewer));
            }
        }
        all
    }

    fn connection_of(&self, stream: &str, role: ConnectionRole, number: u32) -> ConnectionReport {
        let is_in = role.is_inbound();
        let id =
            if is_in { id_of(stream, "publisher") } else { id_of(stream, &number.to_string()) };
        ConnectionReport {
            id,
            role,
            protocol: "srt".to_owned(),
            stream: stream.to_owned(),
            user: is_in.then(|| "obs".to_owned()),
            address: match number {
                2 => "192.0.2.19:41030 + 192.0.2.19:41031".to_owned(),
                _ => format!("192.0.2.{}:41022", 17 + number),
            },
            stream_id: format!("{}:{stream}", if is_in { "publish" } else { "read" }),
            opened_at: self.ago(4_000),
            latency: Some(LatencyReport { relay_ms: 120, peer_ms: 200, agreed_ms: 200 }),
            encryption: Some("AES-128-CTR".to_owned()),
            peer_version: Some("1.5.3".to_owned()),
            bytes: 1_000_000,
            skips: 0,
            statistics: Some(self.statistics()),
            group: (number == 2).then(backup_group),
        }
    }

    fn statistics(&self) -> SrtStatistics {
        let seconds = self.seconds() + 600.0;
        let mut total = punctual_proto::Statistics::default();
        total.elapsed = Duration::from_secs_f64(seconds);
        total.rtt = Duration::from_micros(20_125);
        total.packets_received = (650.0 * seconds) as u64;
        total.packets_sent = total.packets_received;
        total.bytes_received = 1_360 * total.packets_received;
        total.bytes_sent = total.bytes_received;
        total.packets_receive_lost = (seconds / 2.0) as u64;
        total.receive_latency = Duration::from_millis(200);
        let mut before = total.clone();
        before.elapsed -= Duration::from_secs(1);
        before.packets_received -= 650;
        before.bytes_received -= 650 * 1_360;
        before.bytes_sent -= 650 * 1_360;
        SrtStatistics { last_second: total.since(&before), total, quic: None }
    }
}

/// A group whose second link waits.
fn backup_group() -> GroupReport {
    let link = |number: u16, state| LinkReport {
        address: format!("192.0.2.19:{}", 41_030 + number),
        state,
        weight: 10 - number,
        rtt_ms: Some(20.0),
        packets: 1_000,
        packets_lost: 0,
        packets_retransmitted: 0,
    };
    let links = vec![link(0, LinkState::Active), link(1, LinkState::Standby)];
    GroupReport { kind: "backup".to_owned(), links }
}

/// An ID as a UUID, made of two words.
fn id_of(stream: &str, part: &str) -> String {
    let sum = stream
        .bytes()
        .chain(part.bytes())
        .fold(7u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    format!("00000000-0000-4000-8000-{:012x}", sum & 0xffff_ffff_ffff)
}

fn traffic(rate_bps: u64, bytes: u64, now: f64) -> Traffic {
    let packets = bytes / 1_316;
    let mut rtts = DurationCounts::default();
    (0..now as u64 + 1).for_each(|_| rtts.observe(Duration::from_millis(21)));
    let flows = rate_bps > 0;
    Traffic {
        bytes,
        rate_bps,
        packets,
        packets_lost: packets / 150,
        packets_unrecovered: (now / 11.0) as u64,
        packets_retransmitted: packets / 140,
        packets_undecryptable: 0,
        rtt_ms: flows.then(|| 21.0 + 3.0 * (now / 3.0).sin()),
        latency_ms: flows.then_some(200),
        buffer_ms: flows.then(|| (140.0 + 40.0 * (now / 4.0).cos()) as u32),
        rtts,
    }
}

fn video(codec: &str, profile: &str, width: u32, height: u32, rate: f64) -> TrackReport {
    TrackReport {
        pid: 256,
        kind: TrackKind::Video,
        codec: codec.to_owned(),
        profile: Some(profile.to_owned()),
        width: Some(width),
        height: Some(height),
        frame_rate: Some(rate),
        rate_bps: Some(5_900_000),
        ..TrackReport::default()
    }
}

fn audio(codec: &str) -> TrackReport {
    TrackReport {
        pid: 257,
        kind: TrackKind::Audio,
        codec: codec.to_owned(),
        sample_rate_hz: Some(48_000),
        channels: Some(2),
        rate_bps: Some(160_000),
        ..TrackReport::default()
    }
}

impl Relay for StandIn {
    fn server(&self) -> Answer<'_, ServerReport> {
        Box::pin(async {
            let streams = self.all_streams();
            let mut auth_requests = DurationCounts::default();
            (0..self.seconds() as u64)
                .for_each(|_| auth_requests.observe(Duration::from_millis(12)));
            ServerReport {
                version: "0.1.0".to_owned(),
                started_at: self.started_at.into(),
                draining: false,
                listeners: vec![ListenerReport {
                    protocol: "srt".to_owned(),
                    address: "[::]:8890".to_owned(),
                    stream: None,
                    certhash: None,
                }],
                streams_online: 3,
                viewers: streams.iter().map(StreamReport::viewer_count).sum(),
                inbound_bps: streams.iter().map(|it| it.inbound.rate_bps).sum(),
                outbound_bps: streams.iter().map(|it| it.outbound.rate_bps).sum(),
                calls_admitted: 40 + self.seconds() as u64,
                calls_refused: vec![Tally {
                    reason: "wrong-passphrase".to_owned(),
                    count: (self.seconds() / 2.0) as u64,
                }],
                hook_runs: vec![HookTally {
                    event: "online".to_owned(),
                    result: "ok".to_owned(),
                    count: 3,
                }],
                auth_requests,
                publish_uri: Some("srt://192.0.2.1:8890?streamid=publish:NAME".to_owned()),
                play_uri: Some("srt://192.0.2.1:8890?streamid=read:NAME".to_owned()),
            }
        })
    }

    fn health(&self) -> Answer<'_, HealthReport> {
        Box::pin(async { self.health.lock().unwrap().clone() })
    }

    fn streams(&self) -> Answer<'_, Vec<StreamReport>> {
        Box::pin(async { self.all_streams() })
    }

    fn stream<'a>(&'a self, name: &'a str) -> Answer<'a, Option<StreamReport>> {
        Box::pin(async move { self.all_streams().into_iter().find(|it| it.name == name) })
    }

    fn connections<'a>(&'a self, stream: Option<&'a str>) -> Answer<'a, Vec<ConnectionReport>> {
        Box::pin(async move {
            let mut all = self.all_connections();
            all.retain(|it| stream.is_none_or(|stream| it.stream == stream));
            all
        })
    }

    fn connection<'a>(&'a self, id: &'a str) -> Answer<'a, Option<ConnectionReport>> {
        Box::pin(async move { self.all_connections().into_iter().find(|it| it.id == id) })
    }

    fn refusals(&self) -> Answer<'_, Vec<RefusalReport>> {
        let refusal = RefusalReport {
            at: self.ago(60),
            address: "198.51.100.9:50111".to_owned(),
            stream_id: "publish:live/studio:obs:***".to_owned(),
            stream: Some("live/studio".to_owned()),
            reason: "wrong-passphrase".to_owned(),
            code: Some(1_010),
            text: "the passphrase is wrong".to_owned(),
            count: 4,
        };
        Box::pin(async { vec![refusal] })
    }

    fn recordings<'a>(&'a self, stream: Option<&'a str>) -> Answer<'a, Vec<RecordingReport>> {
        let recording = self.recording("live/studio", RecordingState::Running);
        Box::pin(async move {
            let is_asked = stream.is_none_or(|it| it == recording.stream);
            is_asked.then_some(recording).into_iter().collect()
        })
    }

    fn events(&self) -> &EventLog {
        &self.events
    }

    fn kick<'a>(&'a self, id: &'a str, ban: Option<Duration>) -> Answer<'a, Done> {
        Box::pin(async move {
            if !self.all_connections().iter().any(|it| it.id == id) {
                return Err(Fault::NotFound(format!("there is no connection `{id}`")));
            }
            self.note(format!("kick {id} {ban:?}"))
        })
    }

    fn act<'a>(&'a self, stream: &'a str, act: StreamAct) -> Answer<'a, Done> {
        Box::pin(async move {
            if !self.all_streams().iter().any(|it| it.name == stream) {
                return Err(Fault::NotFound(format!("there is no stream `{stream}`")));
            }
            self.note(format!("{stream}: {act:?}"))
        })
    }

    fn configuration(&self) -> Answer<'_, serde_json::Value> {
        Box::pin(async { json!({ "http": { "listen": "127.0.0.1:9997" } }) })
    }

    fn stream_section<'a>(&'a self, name: &'a str) -> Answer<'a, Option<ConfigSection>> {
        Box::pin(async move {
            (name == "live/*").then(|| ConfigSection {
                values: json!({ "latency": "200ms" }),
                version: "v7".to_owned(),
            })
        })
    }

    fn change_section(&self, change: SectionChange) -> Answer<'_, Result<ConfigSection, Fault>> {
        Box::pin(async move {
            if change.if_version.as_deref().is_some_and(|version| version != "v7") {
                return Err(Fault::Stale("the section has changed since".to_owned()));
            }
            if let SectionEdit::Put(values) | SectionEdit::Patch(values) = &change.edit
                && values.get("latencie").is_some()
            {
                let problem = ConfigProblem {
                    key: Some("stream.\"live/*\".latencie".to_owned()),
                    message: "unknown key; did you mean `latency`?".to_owned(),
                    ..ConfigProblem::default()
                };
                return Err(Fault::Invalid("the section has a fault".to_owned(), vec![problem]));
            }
            self.note(format!("{} {:?} {}", change.name, change.edit, change.persist))?;
            Ok(ConfigSection { values: json!({}), version: "v8".to_owned() })
        })
    }

    fn check<'a>(&'a self, file: &'a str) -> Answer<'a, Vec<ConfigProblem>> {
        Box::pin(async move {
            let is_wrong = file.contains("latencie");
            let problem = ConfigProblem {
                line: Some(2),
                column: Some(1),
                key: Some("defaults.latencie".to_owned()),
                message: "unknown key; did you mean `latency`?".to_owned(),
            };
            is_wrong.then_some(problem).into_iter().collect()
        })
    }

    fn reload(&self) -> Answer<'_, Result<ReloadReport, Fault>> {
        Box::pin(async {
            self.note("reload".to_owned())?;
            Ok(ReloadReport { changed: vec!["http.origins".to_owned()], ..ReloadReport::default() })
        })
    }

    fn drain(&self) -> Answer<'_, Done> {
        Box::pin(async { self.note("drain".to_owned()) })
    }

    fn view_ts(&self, view: View) -> Answer<'_, Result<mpsc::Receiver<Bytes>, Fault>> {
        Box::pin(async move {
            if !view.stream.starts_with("live/") {
                return Err(Fault::NotFound(format!("there is no stream `{}`", view.stream)));
            }
            let (sender, receiver) = mpsc::channel(4);
            tokio::spawn(async move {
                // As fast as the client takes them.
                while sender.send(Bytes::from_static(&[0x47; 188 * 70])).await.is_ok() {}
            });
            Ok(receiver)
        })
    }

    fn view_player(&self, view: View) -> Answer<'_, Result<mpsc::Receiver<PlayMessage>, Fault>> {
        Box::pin(async move {
            self.note(format!("play {}", view.stream))?;
            let (sender, receiver) = mpsc::channel(4);
            match view.stream.as_str() {
                "tower" => {
                    let play = "ffplay 'srt://192.0.2.1:8890?streamid=read:tower'";
                    let reason = "The stream is HEVC, which this browser does not play.";
                    let text = json!({ "type": "unplayable", "reason": reason, "play": play });
                    tokio::spawn(async move {
                        let _ = sender.send(PlayMessage::Text(text.to_string())).await;
                        sender.closed().await;
                    });
                }
                "live/studio" => {
                    let init = json!({ "type": "init", "sound": view.sound }).to_string();
                    let bytes = Bytes::from_static(&[1, 2, 3]);
                    let _ = sender.try_send(PlayMessage::Text(init));
                    let _ = sender.try_send(PlayMessage::Binary(bytes));
                }
                name => return Err(Fault::NotFound(format!("there is no stream `{name}`"))),
            }
            Ok(receiver)
        })
    }

    fn view_recording<'a>(
        &'a self,
        view: View,
        at: &'a str,
    ) -> Answer<'a, Result<mpsc::Receiver<PlayMessage>, Fault>> {
        Box::pin(async move {
            self.note(format!("play {} at {at}", view.stream))?;
            let (_, receiver) = mpsc::channel(1);
            Ok(receiver)
        })
    }

    fn excerpt<'a>(
        &'a self,
        view: View,
        times: &'a ExcerptTimes,
    ) -> Answer<'a, Result<ExcerptFile, Fault>> {
        Box::pin(async move {
            if view.stream != "live/studio" {
                return Err(Fault::NotFound(format!("nothing of `{}` was recorded", view.stream)));
            }
            self.note(format!("excerpt {} {:?}", times.from, times.until))?;
            let bytes = Bytes::from_static(b"0123456789");
            let read = move |range: std::ops::Range<u64>| {
                let (sender, receiver) = mpsc::channel(1);
                let part = bytes.slice(range.start as usize..range.end as usize);
                let _ = sender.try_send(part);
                receiver
            };
            Ok(ExcerptFile {
                start: SystemTime::UNIX_EPOCH.into(),
                len: 10,
                version: "v7".to_owned(),
                read: Box::new(read),
            })
        })
    }

    fn hls<'a>(&'a self, view: View, file: &'a str) -> Answer<'a, Result<HlsFile, Fault>> {
        Box::pin(async move {
            if (view.stream.as_str(), file) != ("live/studio", "index.m3u8") {
                return Err(Fault::NotFound(format!("there is no file `{file}`")));
            }
            Ok(HlsFile {
                content_type: "application/vnd.apple.mpegurl",
                max_age: Duration::from_secs(1),
                body: Bytes::from_static(b"#EXTM3U\n"),
            })
        })
    }
}

/// Everybody may do everything.
pub(crate) struct Open;

impl Access for Open {
    fn decide<'a>(&'a self, _: &'a Caller, _: &'a Right) -> Answer<'a, Verdict> {
        Box::pin(async { Verdict::Allowed(Allowed::default()) })
    }

    fn ticket<'a>(&'a self, _: &'a Caller, _: &'a Right) -> Answer<'a, Option<Ticket>> {
        Box::pin(async { Some(Ticket { ticket: "T".to_owned(), expires_in_s: 60 }) })
    }
}

/// The tokens `reader`, `operator` and `admin`; the user `nina` with a password; the tickets `T`,
/// which views `live/studio`, and `R`, which takes its recordings.
pub(crate) struct ByToken;

impl Access for ByToken {
    fn decide<'a>(&'a self, caller: &'a Caller, right: &'a Right) -> Answer<'a, Verdict> {
        let level = match &caller.credential {
            Credential::Bearer(token) => match token.as_str() {
                "reader" => 1,
                "operator" => 2,
                "admin" => 3,
                _ => 0,
            },
            Credential::Basic { user, password } if user == "nina" && password == "a:b" => 1,
            Credential::Ticket(ticket) if ["T", "R"].contains(&ticket.as_str()) => {
                let may = match right {
                    Right::View(stream) => ticket == "T" && stream == "live/studio",
                    Right::Playback(stream) => ticket == "R" && stream == "live/studio",
                    _ => false,
                };
                let verdict =
                    if may { Verdict::Allowed(Allowed::default()) } else { Verdict::Forbidden };
                return Box::pin(async { verdict });
            }
            _ => 0,
        };
        let needed = match right {
            Right::Read | Right::Metrics | Right::View(_) | Right::Playback(_) => 1,
            Right::Operate => 2,
            Right::Administer => 3,
        };
        let verdict = match level {
            0 => Verdict::Unknown,
            level if level < needed => Verdict::Forbidden,
            _ => Verdict::Allowed(Allowed { user: Some("nina".to_owned()), lifetime: None }),
        };
        Box::pin(async { verdict })
    }

    fn ticket<'a>(&'a self, _: &'a Caller, right: &'a Right) -> Answer<'a, Option<Ticket>> {
        let is_full = *right == Right::View("full".to_owned());
        let text = if matches!(right, Right::Playback(_)) { "R" } else { "T" };
        let ticket = (!is_full).then(|| Ticket { ticket: text.to_owned(), expires_in_s: 60 });
        Box::pin(async { ticket })
    }
}
