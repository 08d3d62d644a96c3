//! The connections of the relay, as an operator sees them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

use punctual::{Bitrate, Instant, Statistics};
use punctual_ends::{MessageTraffic, SrtEnd, Stop};
use punctual_relay_access::Admitted;
use punctual_relay_http::report::{ConnectionRole, DurationCounts, Traffic};

use crate::wall;

/// A connection of a publisher, a viewer, a source that is pulled, or a destination.
pub(crate) struct ServedConnection {
    pub(crate) id: u64,
    pub(crate) role: ConnectionRole,
    /// `srt`, `srt+quic`, `http`, `player` or `hls`.
    pub(crate) protocol: &'static str,
    pub(crate) stream: Arc<str>,
    pub(crate) user: Option<String>,
    pub(crate) address: String,
    /// The stream ID without secrets.
    pub(crate) stream_id: String,
    pub(crate) opened_at: SystemTime,
    /// The latency that the relay asked for, in milliseconds.
    pub(crate) latency_wish_ms: u32,
    pub(crate) end: Option<SrtEnd>,
    pub(crate) traffic: Arc<MessageTraffic>,
    /// The rights of a caller; `None` for a connection that the relay made.
    pub(crate) admitted: Option<Admitted>,
    /// Ends it.
    pub(crate) stop: Stop,
    /// Why the relay ended it.
    ended_for: OnceLock<String>,
    /// The statistics of the last second and of the look before.
    looks: Mutex<Looks>,
}

/// The statistics at the last two looks.
#[derive(Default)]
struct Looks {
    last: Statistics,
    last_second: Statistics,
    /// When, and how many bytes of the stream it had carried by then.
    bytes: Option<(Instant, u64)>,
    rate: Bitrate,
    /// The round trip at each look.
    rtts: DurationCounts,
}

/// The description of a connection that begins.
pub(crate) struct NewConnection {
    pub(crate) role: ConnectionRole,
    pub(crate) protocol: &'static str,
    pub(crate) stream: Arc<str>,
    pub(crate) user: Option<String>,
    pub(crate) address: String,
    pub(crate) stream_id: String,
    pub(crate) latency_wish_ms: u32,
    pub(crate) end: Option<SrtEnd>,
    pub(crate) traffic: Arc<MessageTraffic>,
    pub(crate) admitted: Option<Admitted>,
}

impl ServedConnection {
    /// Its part in one word.
    pub(crate) fn part(&self) -> &'static str {
        match self.role {
            ConnectionRole::Publisher => "publisher",
            ConnectionRole::Viewer => "viewer",
            ConnectionRole::Pull => "source",
            ConnectionRole::Forward => "destination",
        }
    }

    /// Ends the connection, for this reason.
    pub(crate) fn end(&self, reason: impl Into<String>) {
        let _ = self.ended_for.set(reason.into());
        self.stop.tell();
    }

    /// The address of the other end now, or the addresses of a group's links.
    pub(crate) fn peer(&self) -> String {
        let peer = self.end.as_ref().map(SrtEnd::peer);
        peer.filter(|peer| !peer.is_empty()).unwrap_or_else(|| self.address.clone())
    }

    /// Why the relay ended it, if it did.
    pub(crate) fn ended_for(&self) -> Option<&str> {
        self.ended_for.get().map(String::as_str)
    }

    /// The statistics since the handshake and those of the last second, if it is SRT's.
    pub(crate) fn statistics(&self) -> Option<(Statistics, Statistics)> {
        let total = self.end.as_ref()?.statistics();
        let looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        Some((total, looks.last_second.clone()))
    }

    /// The rate of the stream itself over the last second.
    pub(crate) fn rate(&self) -> Bitrate {
        self.looks.lock().unwrap_or_else(PoisonError::into_inner).rate
    }

    /// Adds what it has counted since the handshake.
    pub(crate) fn count_into(&self, traffic: &mut Traffic) {
        let Some((total, _)) = self.statistics() else { return };
        if self.role.is_inbound() {
            traffic.packets += total.packets_received;
            traffic.packets_lost += total.packets_receive_lost;
            traffic.packets_unrecovered += total.packets_receive_dropped;
            traffic.packets_retransmitted += total.packets_received_retransmitted;
            traffic.packets_undecryptable += total.packets_undecrypted;
        } else {
            traffic.packets += total.packets_sent;
            traffic.packets_lost += total.packets_send_lost;
            traffic.packets_unrecovered += total.packets_send_dropped;
            traffic.packets_retransmitted += total.packets_retransmitted;
        }
        let looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        traffic.rtts.add(&looks.rtts);
    }

    /// Looks at the statistics, once a second.
    fn look(&self) {
        let statistics = self.end.as_ref().map(SrtEnd::statistics);
        let (now, bytes) = (punctual::now(), self.traffic.bytes());
        let mut looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, before)) = looks.bytes.replace((now, bytes)) {
            looks.rate = Bitrate::of(bytes - before, now.saturating_since(at));
        }
        if let Some(statistics) = statistics {
            if let Some(rtt) = statistics.measured_rtt() {
                looks.rtts.observe(rtt);
            }
            looks.last_second = statistics.since(&looks.last);
            looks.last = statistics;
        }
    }
}

/// All connections, by their numbers.
#[derive(Default)]
pub(crate) struct ServedConnections {
    all: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    next: u64,
    open: BTreeMap<u64, Arc<ServedConnection>>,
    /// The counts of connections that have ended, for each stream that goes on.
    past: BTreeMap<Arc<str>, StreamTraffic>,
}

/// The counts of a stream's connections, by direction.
#[derive(Clone, Default)]
struct StreamTraffic {
    inbound: Traffic,
    outbound: Traffic,
}

impl StreamTraffic {
    fn add(&mut self, connection: &ServedConnection) {
        match connection.role.is_inbound() {
            true => connection.count_into(&mut self.inbound),
            false => connection.count_into(&mut self.outbound),
        }
    }
}

impl ServedConnections {
    pub(crate) fn add(&self, new: NewConnection) -> Arc<ServedConnection> {
        let mut table = self.lock();
        table.next += 1;
        let id = table.next;
        let connection = Arc::new(ServedConnection {
            id,
            role: new.role,
            protocol: new.protocol,
            stream: new.stream,
            user: new.user,
            address: new.address,
            stream_id: new.stream_id,
            opened_at: wall::now(),
            latency_wish_ms: new.latency_wish_ms,
            end: new.end,
            traffic: new.traffic,
            admitted: new.admitted,
            stop: Stop::default(),
            ended_for: OnceLock::new(),
            looks: Mutex::default(),
        });
        table.open.insert(id, Arc::clone(&connection));
        connection
    }

    /// A number that no connection has.
    pub(crate) fn next_id(&self) -> u64 {
        let mut table = self.lock();
        table.next += 1;
        table.next
    }

    /// Removes a connection. Its stream keeps what it has counted, so that no counter goes back.
    pub(crate) fn remove(&self, id: u64) {
        let mut table = self.lock();
        if let Some(connection) = table.open.remove(&id)
            && let Some(past) = table.past.get_mut(&connection.stream)
        {
            past.add(&connection);
        }
    }

    /// Counts the connections of a stream that begins.
    pub(crate) fn begin_counting(&self, stream: &Arc<str>) {
        self.lock().past.insert(Arc::clone(stream), StreamTraffic::default());
    }

    /// Forgets what the connections of a stream had counted that is over.
    pub(crate) fn end_counting(&self, stream: &str) {
        self.lock().past.remove(stream);
    }

    /// The connections of a stream, oldest first, and what they and those before them have counted,
    /// inbound and outbound.
    pub(crate) fn counted(&self, stream: &str) -> (Vec<Arc<ServedConnection>>, [Traffic; 2]) {
        let table = self.lock();
        let of_stream = table.open.values().filter(|it| *it.stream == *stream);
        let of_stream: Vec<_> = of_stream.cloned().collect();
        let mut traffic = table.past.get(stream).cloned().unwrap_or_default();
        of_stream.iter().for_each(|connection| traffic.add(connection));
        (of_stream, [traffic.inbound, traffic.outbound])
    }

    pub(crate) fn get(&self, id: u64) -> Option<Arc<ServedConnection>> {
        self.lock().open.get(&id).cloned()
    }

    /// Those of a stream, or all, oldest first.
    pub(crate) fn of(&self, stream: Option<&str>) -> Vec<Arc<ServedConnection>> {
        let is_of = |it: &&Arc<ServedConnection>| stream.is_none_or(|stream| *it.stream == *stream);
        self.lock().open.values().filter(is_of).cloned().collect()
    }

    /// Looks at the statistics of all, once a second.
    pub(crate) fn look(&self) {
        self.of(None).iter().for_each(|connection| connection.look());
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
