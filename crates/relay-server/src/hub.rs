//! The relay: its streams, its connections, and what changes them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use punctual::{Bitrate, Gathered};
use punctual_relay::{
    NotAdmitted, Place, Places, PublisherId, Refusals, RefusedCall, Stream, StreamEvent, ViewerId,
};
use punctual_relay_access::{Admitted, StreamName};
use punctual_relay_config::{AbsentStream, Configuration, StreamSettings};
use punctual_relay_hooks::{HookEvent, HookSegment, Hooks};
use punctual_relay_http::EventLog;
use punctual_relay_http::report::EventKind;
use tokio::sync::Notify;

use crate::connections::{NewConnection, ServedConnection, ServedConnections};
use crate::group_calls::GroupCalls;
use crate::hooks;
use crate::live_stream::{LiveStream, StreamTurn};
use crate::settings::rules;
use crate::wall;

/// Follows the streams of a relay, with sources that are pulled, destinations and recordings.
pub(crate) trait StreamFollower: Send + Sync {
    /// The stream has a source. Returns whether it had none before.
    fn begin(&self, hub: &Arc<Hub>, stream: &Arc<LiveStream>, settings: &StreamSettings) -> bool;

    /// Somebody wants a stream that is absent.
    fn pull(&self, hub: &Arc<Hub>, name: &StreamName, settings: &StreamSettings);

    /// The stream is over.
    fn end(&self, name: &str);
}

/// The relay, as all its tasks share it.
pub(crate) struct Hub {
    configuration: Mutex<Arc<Configuration>>,
    streams: Mutex<BTreeMap<Arc<str>, Arc<LiveStream>>>,
    /// Told when a stream is added, and when somebody wants one that is absent.
    changed: Notify,
    pub(crate) connections: ServedConnections,
    pub(crate) groups: GroupCalls,
    follower: OnceLock<Arc<dyn StreamFollower>>,
    refusals: Mutex<Refusals>,
    /// Limits the lines in the log about them.
    refused_log: Gathered,
    pub(crate) events: EventLog,
    pub(crate) hooks: Hooks,
    pub(crate) started_at: SystemTime,
    /// Until when callers from these addresses are refused.
    places: Mutex<Places>,
    bans: Mutex<BTreeMap<std::net::IpAddr, std::time::Instant>>,
    calls_admitted: AtomicU64,
    is_draining: AtomicBool,
}

impl Hub {
    pub(crate) fn new(configuration: Configuration) -> Self {
        let started_at = wall::now();
        Self {
            configuration: Mutex::new(Arc::new(configuration)),
            streams: Mutex::default(),
            changed: Notify::new(),
            connections: ServedConnections::default(),
            groups: GroupCalls::default(),
            follower: OnceLock::new(),
            refusals: Mutex::default(),
            refused_log: Gathered::new(BURST, |more| {
                tracing::info!("… and {more} more callers were refused in the last second");
            }),
            events: EventLog::new(started_at.into()),
            hooks: Hooks::new(started_at.into(), tokio::runtime::Handle::current()),
            started_at,
            places: Mutex::default(),
            bans: Mutex::default(),
            calls_admitted: AtomicU64::new(0),
            is_draining: AtomicBool::new(false),
        }
    }

    /// Tells `follower` of streams from now on.
    pub(crate) fn be_followed_by(&self, follower: Arc<dyn StreamFollower>) {
        // There is one, which is set at the start.
        let _ = self.follower.set(follower);
    }

    /// The configuration in force.
    pub(crate) fn configuration(&self) -> Arc<Configuration> {
        Arc::clone(&lock(&self.configuration))
    }

    /// Takes another configuration. Streams get their new rules; connections stay.
    pub(crate) fn set_configuration(&self, configuration: Configuration) {
        *lock(&self.configuration) = Arc::new(configuration);
        for stream in self.streams() {
            if let Ok(name) = StreamName::new(stream.name()) {
                stream.set_rules(rules(&self.settings(&name)));
            }
        }
    }

    /// The settings of a stream.
    pub(crate) fn settings(&self, name: &StreamName) -> StreamSettings {
        self.configuration().stream(name)
    }

    /// All streams, in the order of their names.
    pub(crate) fn streams(&self) -> Vec<Arc<LiveStream>> {
        lock(&self.streams).values().cloned().collect()
    }

    /// The stream of this name, if it has a publisher, or had one a short time ago.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<LiveStream>> {
        let stream = lock(&self.streams).get(name).cloned();
        stream.filter(|stream| !stream.look(Stream::is_over))
    }

    /// Seats a publisher in the stream of this name, which begins if it is not there. A caller
    /// comes with what it was admitted for, a source that is pulled without.
    ///
    /// # Errors
    ///
    /// Another publisher is active, and the rules keep it.
    pub(crate) fn publish(
        self: &Arc<Self>,
        name: &StreamName,
        id: PublisherId,
        admitted: Option<&Admitted>,
        is_backup: bool,
    ) -> Result<Arc<LiveStream>, NotAdmitted> {
        loop {
            let stream = self.stream(name);
            match stream.publish(id, admitted, is_backup) {
                Ok(turn) => {
                    self.settle(&stream, turn);
                    return Ok(stream);
                }
                // It has ended since: a new one begins.
                Err(NotAdmitted::Ended) => {}
                Err(refused) => return Err(refused),
            }
        }
    }

    /// The stream of this name, which begins if it is not there or has ended.
    fn stream(&self, name: &StreamName) -> Arc<LiveStream> {
        let begin = || {
            self.connections.begin_counting(&name.shared());
            Arc::new(LiveStream::new(name.shared(), rules(&self.settings(name))))
        };
        let mut streams = lock(&self.streams);
        let stream = streams.entry(name.shared()).or_insert_with(begin);
        if stream.look(Stream::is_over) {
            *stream = begin();
        }
        let stream = Arc::clone(stream);
        drop(streams);
        self.changed.notify_waiters();
        stream
    }

    /// The stream that a viewer wants. If it is absent, the viewer waits as long as the rules of
    /// the stream say; `None` if it does not come.
    pub(crate) async fn wanted(self: &Arc<Self>, name: &StreamName) -> Option<Arc<LiveStream>> {
        if let Some(stream) = self.find(name.as_str()) {
            return Some(stream);
        }
        let settings = self.settings(name);
        if let Some(follower) = self.follower.get() {
            follower.pull(self, name, &settings);
        }
        let time = match settings.viewers.absent {
            _ if settings.source.uri.is_some() => settings.source.start_timeout,
            AbsentStream::Refuse => return None,
            AbsentStream::Hold(time) => time,
        };
        let comes = async {
            loop {
                let changed = self.changed.notified();
                if let Some(stream) = self.find(name.as_str()) {
                    return stream;
                }
                changed.await;
            }
        };
        let stream = tokio::time::timeout(time, comes).await.ok()?;
        tokio::time::timeout(time, stream.published()).await.ok()?;
        Some(stream)
    }

    /// Adds a connection.
    pub(crate) fn connected(&self, new: NewConnection) -> Arc<ServedConnection> {
        let connection = self.connections.add(new);
        self.calls_admitted.fetch_add(1, Ordering::Relaxed);
        let text = format!("{} connected as {}", connection.address, connection.part());
        self.tell(EventKind::Connect, Some(&connection.stream), Some(connection.id), text);
        connection
    }

    /// Removes a connection that has ended.
    pub(crate) fn disconnected(&self, connection: &ServedConnection) {
        let why = connection.ended_for().map(|why| format!(": {why}")).unwrap_or_default();
        let text = format!("{} disconnected as {}{why}", connection.address, connection.part());
        self.tell(EventKind::Disconnect, Some(&connection.stream), Some(connection.id), text);
        self.connections.remove(connection.id);
    }

    /// Calls that were admitted.
    pub(crate) fn calls_admitted(&self) -> u64 {
        self.calls_admitted.load(Ordering::Relaxed)
    }

    /// Notes a caller that was refused.
    pub(crate) fn refuse(&self, refusal: RefusedCall) {
        let text = format!(
            "{} was refused ({}): {}; stream ID `{}`",
            refusal.peer, refusal.reason, refusal.text, refusal.stream_id
        );
        self.tell(EventKind::Refused, None, None, text);
        lock(&self.refusals).note(refusal);
    }

    /// Lets `look` see the refusals.
    pub(crate) fn refusals<T>(&self, look: impl FnOnce(&Refusals) -> T) -> T {
        look(&lock(&self.refusals))
    }

    /// Does what a turn of a stream left to do.
    pub(crate) fn settle(self: &Arc<Self>, stream: &Arc<LiveStream>, turn: StreamTurn) {
        for event in turn.events {
            self.follow(stream, event);
        }
    }

    fn follow(self: &Arc<Self>, stream: &Arc<LiveStream>, event: StreamEvent) {
        let name = stream.name();
        let tell = |kind, id: Option<u64>, text: String| self.tell(kind, Some(name), id, text);
        match event {
            StreamEvent::Online(PublisherId(id)) => {
                tell(EventKind::Online, Some(id), format!("`{name}` has a publisher"));
                if self.begin(stream) {
                    tell(EventKind::Available, Some(id), format!("`{name}` can be viewed"));
                }
            }
            StreamEvent::Replaced { old: PublisherId(old), by: PublisherId(by) } => {
                self.end(old, "a newer publisher with the same rights came");
                tell(EventKind::Switch, Some(by), format!("`{name}` has a newer publisher"));
            }
            StreamEvent::Promoted(PublisherId(id)) => {
                let text = format!("`{name}` goes on with the publisher that waited");
                tell(EventKind::Switch, Some(id), text);
            }
            StreamEvent::Offline => {
                tell(EventKind::Offline, None, format!("`{name}` has no publisher; viewers wait"));
            }
            StreamEvent::Stalled(PublisherId(id)) => {
                self.end(id, "the publisher sent no media for 10 s");
            }
            StreamEvent::Skipped { viewer: ViewerId(id), lag } => {
                let text = self.slow(id, lag, "goes on at a later random access point");
                tell(EventKind::Skip, Some(id), text);
            }
            StreamEvent::TooSlow { viewer: ViewerId(id), lag } => {
                let text = self.slow(id, lag, "is disconnected");
                self.end(id, text);
            }
            StreamEvent::Ended { viewers } => {
                for ViewerId(id) in viewers {
                    self.end(id, "the publisher has gone");
                }
                let mut streams = lock(&self.streams);
                if streams.get(name).is_some_and(|it| Arc::ptr_eq(it, stream)) {
                    streams.remove(name);
                    self.connections.end_counting(name);
                }
                drop(streams);
                if let Some(follower) = self.follower.get() {
                    follower.end(name);
                }
                // A publisher may have come since, to a new stream of this name.
                if let Some(newer) = self.find(name) {
                    self.begin(&newer);
                }
                tell(EventKind::Unavailable, None, format!("`{name}` has ended"));
            }
        }
    }

    /// Lets the follower begin with a stream that has a source. Returns whether it had none before.
    fn begin(self: &Arc<Self>, stream: &Arc<LiveStream>) -> bool {
        let (Some(follower), Ok(name)) = (self.follower.get(), StreamName::new(stream.name()))
        else {
            return false;
        };
        follower.begin(self, stream, &self.settings(&name))
    }

    /// Describes a viewer that was too slow, with its rate and round trip.
    fn slow(&self, id: u64, lag: Duration, result: &str) -> String {
        let lag = lag.as_millis();
        let Some(connection) = self.connections.get(id) else {
            return format!("a viewer that was {lag} ms behind {result}");
        };
        let link = connection.statistics().map(|(total, second)| {
            let rate = second.bytes_sent as f64 * 8.0 / 1e6;
            format!(
                " (it takes {rate:.1} Mb/s at a round trip of {:.0} ms; a lower bit rate or a \
                 better link helps)",
                total.rtt.as_secs_f64() * 1e3
            )
        });
        let (address, link) = (&connection.address, link.unwrap_or_default());
        format!("viewer {address} was {lag} ms behind and {result}{link}")
    }

    /// Ends a connection, if it is still there.
    fn end(&self, id: u64, reason: impl Into<String>) {
        if let Some(connection) = self.connections.get(id) {
            connection.end(reason);
        }
    }

    /// Notes an event, writes it to the log, and tells the hooks.
    pub(crate) fn tell(
        &self,
        kind: EventKind,
        stream: Option<&str>,
        connection: Option<u64>,
        text: String,
    ) {
        let known = connection.and_then(|id| self.connections.get(id));
        let known = known.map(|it| hooks::described(&it, self.api_id(it.id)));
        let event = hooks::event(kind, stream, known, &text);
        self.note(kind, stream, connection, text, event);
    }

    /// The same, of a segment of a recording.
    pub(crate) fn tell_segment(
        &self,
        kind: EventKind,
        stream: &str,
        text: String,
        segment: HookSegment,
    ) {
        let event = hooks::event(kind, Some(stream), None, &text);
        let event = event.map(|event| HookEvent { segment: Some(segment), ..event });
        self.note(kind, Some(stream), None, text, event);
    }

    fn note(
        &self,
        kind: EventKind,
        stream: Option<&str>,
        connection: Option<u64>,
        text: String,
        event: Option<HookEvent>,
    ) {
        match kind {
            EventKind::Skip | EventKind::RecordFailed => tracing::warn!("{text}"),
            EventKind::Refused => self.refused_log.say(|| tracing::info!("{text}")),
            _ => tracing::info!("{text}"),
        }
        if let Some(event) = event {
            self.hooks.tell(&event);
        }
        let id = connection.map(|id| self.api_id(id));
        self.events.push(wall::now().into(), kind, stream, id.as_deref(), text);
    }

    /// The ID of a connection in the API: a UUID, as clients of `MediaMTX` expect, with the start
    /// of the relay in front, so that none is given twice.
    pub(crate) fn api_id(&self, id: u64) -> String {
        format!("{}{id:012x}", self.id_start())
    }

    /// The connection with this ID in the API.
    pub(crate) fn by_api_id(&self, id: &str) -> Option<Arc<ServedConnection>> {
        let number = id.strip_prefix(&self.id_start())?;
        self.connections.get(u64::from_str_radix(number, 16).ok()?)
    }

    fn id_start(&self) -> String {
        let since_epoch = self.started_at.duration_since(SystemTime::UNIX_EPOCH);
        let seconds = since_epoch.unwrap_or_default().as_secs() & 0xFFFF_FFFF;
        format!("{seconds:08x}-0000-4000-8000-")
    }

    /// A number for a part of the relay that takes a stream as a viewer does.
    pub(crate) fn internal_viewer(&self) -> ViewerId {
        ViewerId(self.connections.next_id())
    }

    /// A place for a connection from this address, if the address has fewer than `most`.
    pub(crate) fn place(
        self: &Arc<Self>,
        ip: std::net::IpAddr,
        most: Option<usize>,
    ) -> Option<HeldPlace> {
        let place = lock(&self.places).enter(ip, most).ok()?;
        Some(HeldPlace { hub: Arc::clone(self), place: Some(place) })
    }

    /// Refuses callers from this address for a time.
    pub(crate) fn ban(&self, address: &str, time: Duration) {
        let ip = address.parse::<std::net::SocketAddr>().map(|it| it.ip());
        if let Ok(ip) = ip.or_else(|_| address.parse()) {
            let mut bans = lock(&self.bans);
            let now = std::time::Instant::now();
            bans.retain(|_, until| *until > now);
            bans.insert(ip.to_canonical(), now + time);
        }
    }

    /// Whether callers from this address are refused at present.
    pub(crate) fn is_banned(&self, ip: std::net::IpAddr) -> bool {
        lock(&self.bans).get(&ip).is_some_and(|until| *until > std::time::Instant::now())
    }

    /// Whether the relay takes no new calls because it is about to end.
    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    /// Takes no new calls from now on.
    pub(crate) fn begin_drain(&self) {
        if !self.is_draining.swap(true, Ordering::Relaxed) {
            self.tell(EventKind::Drain, None, None, "the relay takes no new calls".to_owned());
        }
    }

    /// Ends publishers that send more than they were admitted for.
    fn end_too_fast(&self) {
        for connection in self.connections.of(None) {
            let most = connection.admitted.as_ref().and_then(Admitted::max_bitrate);
            let Some(most) = most.filter(|_| connection.role.is_inbound()) else { continue };
            if let Some((_, second)) = connection.statistics()
                && Bitrate::of(second.bytes_received_unique, second.elapsed) > most
            {
                connection.end(format!("it sends more than the {most} that it may send"));
            }
        }
    }

    /// Does what is due by time, until the relay ends.
    pub(crate) async fn keep_time(self: Arc<Self>) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut count = 0_u32;
        loop {
            tick.tick().await;
            for stream in self.streams() {
                let turn = stream.tick();
                self.settle(&stream, turn);
            }
            count = count.wrapping_add(1);
            if count.is_multiple_of(LOOK_TICKS) {
                self.connections.look();
                self.end_too_fast();
            }
        }
    }
}

/// The place of a connection, until it is dropped.
pub(crate) struct HeldPlace {
    hub: Arc<Hub>,
    place: Option<Place>,
}

impl Drop for HeldPlace {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            lock(&self.hub.places).leave(place);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The lines about refused callers that may follow each other at once.
const BURST: u32 = 10;

/// The time between two looks at what is due.
const TICK: Duration = Duration::from_millis(200);

/// Ticks of a second.
const LOOK_TICKS: u32 = 5;
