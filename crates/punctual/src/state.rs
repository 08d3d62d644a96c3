//! The state of a port: its protocol machine, its connections, and its schedule.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use punctual_io::Datagram;
use punctual_proto::{CloseReason, Config, ConnectionGuard, ConnectionId, Endpoint, Event, WakeUp};
use punctual_units::Instant;
use rustc_hash::FxHashMap;

use crate::error::Error;
use crate::machine::Machine;
use crate::memory::{self, ConnectionPeak};
use crate::notice::Notice;
use crate::outbox::Outbox;
use crate::schedule::{Schedule, Work};
use crate::shared::{Handle, Shared};
use crate::signals::Signals;
use crate::waiting_caller::{CallerHandler, WaitingCaller};

/// The address of a peer whose path has ended before its event was handled.
const NO_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// The state of a port.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) machine: Machine,
    /// The latest time that the protocol was called with.
    reached: Instant,
    /// Every connection of the endpoint. No peer chooses the numbers, so their hash need not resist
    /// attacks.
    connections: FxHashMap<ConnectionId, Connection>,
    /// The number of [`Handle`]s.
    pub(crate) handles: usize,
    /// The listener, while there is one.
    callers: Option<Arc<dyn CallerHandler>>,
    /// The listener's options for accepted connections.
    listening: Option<Config>,
    /// Orphaned connections that have ended and are to be released.
    releases: Vec<ConnectionId>,
    peak: ConnectionPeak,
    pub(crate) schedule: Schedule,
    /// Wakes the task of the driver.
    pub(crate) driver: Option<Waker>,
    /// Whether the driver is gone, which happens early if the runtime is shut down.
    pub(crate) stopped: bool,
}

/// A connection from the point of view of the tasks that use it.
#[derive(Debug)]
struct Connection {
    signals: Arc<Signals>,
    phase: Phase,
    /// Whether the handshake was done, even if the connection has ended since.
    connected: bool,
    /// Whether its last [`Socket`](crate::Socket) was dropped.
    orphaned: bool,
    /// The peer's address at the beginning.
    remote: SocketAddr,
}

/// The phase of a connection: see [`Socket::phase`](crate::Socket::phase).
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Phase {
    /// The handshake is under way.
    Connecting,
    /// The connection is established.
    Connected,
    /// The connection has ended for this reason, or was never established. Messages that were
    /// received before can still be read.
    Closed(CloseReason),
}

impl State {
    /// The state of a port with this machine and [`coalesce`](crate::PortConfig::coalesce) time.
    pub(crate) fn new(machine: Machine, coalesce: Duration) -> Self {
        Self {
            machine,
            reached: Instant::ORIGIN,
            connections: FxHashMap::default(),
            handles: 0,
            callers: None,
            listening: None,
            releases: Vec::new(),
            peak: ConnectionPeak::default(),
            schedule: Schedule::new(coalesce),
            driver: None,
            stopped: false,
        }
    }

    /// The SRT endpoint, for the verbs of the application.
    pub(crate) const fn endpoint(&mut self) -> &mut Endpoint {
        self.machine.endpoint()
    }

    /// A connection, for its verbs.
    pub(crate) fn connection(&mut self, now: Instant, id: ConnectionId) -> ConnectionGuard<'_> {
        let connection = self.machine.endpoint().connection(now, id);
        connection.expect("a connection is released only after its last socket is dropped")
    }

    /// A connection, for reading.
    pub(crate) fn read(&mut self, id: ConnectionId) -> &punctual_proto::Connection {
        let connection = self.machine.endpoint().connections().get(id);
        connection.expect("a connection is released only after its last socket is dropped")
    }

    /// Sets the protocol's time to `now`, unless it is later already.
    pub(crate) fn has_reached(&mut self, now: Instant) {
        self.reached = self.reached.max(now);
    }

    /// The next work of the endpoint, and its time.
    pub(crate) fn next_work(&mut self) -> Option<Work> {
        let wake_up = self.machine.poll_timeout();
        let delivery = self.machine.endpoint().next_delivery().map(WakeUp::At);
        Some(Work { due: wake_up.instant(self.reached)?, is_delivery: delivery == Some(wake_up) })
    }

    /// Takes transmits until `outbox` is full. Returns whether these were all.
    pub(crate) fn take_transmits(
        &mut self,
        now: Instant,
        max_segments: usize,
        outbox: &mut Outbox,
    ) -> bool {
        while !outbox.is_full() {
            match self.machine.poll_transmit(now, max_segments, &mut outbox.bytes) {
                Some(batch) => outbox.push(batch),
                None => return true,
            }
        }
        false
    }

    /// Passes a datagram to the protocol, with the time of its arrival or the latest time that the
    /// protocol was called with.
    pub(crate) fn handle_datagram(&mut self, datagram: Datagram) {
        let Datagram { from, arrived, payload, .. } = datagram;
        self.has_reached(arrived);
        self.machine.handle_datagram(self.reached, from, payload);
    }

    /// Adds a new connection of the endpoint, with a peer at `remote`.
    pub(crate) fn open(
        &mut self,
        id: ConnectionId,
        phase: Phase,
        remote: SocketAddr,
    ) -> Arc<Signals> {
        let signals = Arc::new(Signals::new());
        let connected = matches!(phase, Phase::Connected);
        let connection =
            Connection { signals: Arc::clone(&signals), phase, connected, orphaned: false, remote };
        self.connections.insert(id, connection);
        self.peak.grow(self.connections.len());
        signals
    }

    /// The peer's address of a connection: where its path leads, or led at the beginning if the
    /// path has ended.
    pub(crate) fn peer_addr(&mut self, id: ConnectionId) -> Option<SocketAddr> {
        let path = self.endpoint().connections().get(id).map(|connection| connection.info().path);
        let present = path.and_then(|path| self.machine.remote(path));
        present.or_else(|| Some(self.connections.get(&id)?.remote))
    }

    /// The phase of a connection.
    pub(crate) fn phase(&self, id: ConnectionId) -> Phase {
        match self.connections.get(&id) {
            Some(connection) => connection.phase.clone(),
            None => Phase::Closed(CloseReason::Local),
        }
    }

    /// Whether the handshake of a connection was done, even if it has ended since.
    pub(crate) fn was_connected(&self, id: ConnectionId) -> bool {
        self.connections.get(&id).is_some_and(|connection| connection.connected)
    }

    /// Closes a connection whose last socket was dropped.
    pub(crate) fn orphan(&mut self, now: Instant, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.orphaned = true;
        match connection.phase {
            Phase::Closed(_) => self.releases.push(id),
            Phase::Connecting | Phase::Connected => self.connection(now, id).close(),
        }
    }

    /// Begins to listen, with these options for accepted connections: `callers` hears of callers.
    pub(crate) fn listen(
        &mut self,
        config: Config,
        callers: Arc<dyn CallerHandler>,
    ) -> Result<(), Error> {
        self.machine.listen(Some(config.clone()))?;
        self.listening = Some(config);
        self.callers = Some(callers);
        Ok(())
    }

    /// Stops listening.
    pub(crate) fn stop_listening(&mut self) {
        // Without an identity, which only listening needs, this cannot fail.
        let _ = self.machine.listen(None);
        self.listening = None;
        self.callers = None;
    }

    /// The options of accepted connections, if there is a listener.
    pub(crate) const fn listening(&self) -> Option<&Config> {
        self.listening.as_ref()
    }

    /// Whether the driver has no work left.
    pub(crate) fn is_finished(&self) -> bool {
        self.handles == 0 && self.connections.is_empty()
    }

    /// Takes the events of the endpoint, and adds the notices that follow from them.
    pub(crate) fn drain_events(&mut self, shared: &Arc<Shared>, notices: &mut Vec<Notice>) {
        while let Some(event) = self.machine.poll_event() {
            match event {
                Event::Readable(id) => {
                    self.notice(id, notices, |signals| {
                        signals.set_announced(true);
                        Notice::Readable(signals)
                    });
                }
                Event::Writable(id) => self.notice(id, notices, Notice::Writable),
                Event::LinkNews(id) => self.notice(id, notices, Notice::News),
                Event::Connected(id) => {
                    self.set_phase(id, Phase::Connected);
                    self.notice(id, notices, Notice::Phase);
                }
                Event::Closed(id, reason) => {
                    self.set_phase(id, Phase::Closed(reason));
                    self.notice(id, notices, |signals| {
                        signals.set_announced(true);
                        Notice::Closed(signals)
                    });
                }
                Event::PeerMoved(_, path) => {
                    let remote = self.machine.remote(path).unwrap_or(NO_ADDRESS);
                    notices.push(Notice::Moved(self.callers.clone(), remote));
                }
                Event::Incoming(incoming) => {
                    let remote = self.machine.remote(incoming.path).unwrap_or(NO_ADDRESS);
                    let caller = WaitingCaller::new(Handle::adopt(shared, self), incoming, remote);
                    match &self.callers {
                        Some(callers) => notices.push(Notice::Caller(Arc::clone(callers), caller)),
                        None => notices.push(Notice::Unwanted(caller)),
                    }
                }
                Event::IncomingGone(id) => {
                    if let Some(callers) = &self.callers {
                        let (callers, port) = (Arc::clone(callers), Arc::clone(shared));
                        notices.push(Notice::CallerGone(callers, port, id));
                    }
                }
                Event::CallerRefused(path, reason) => {
                    if let Some(callers) = &self.callers {
                        let remote = self.machine.remote(path).unwrap_or(NO_ADDRESS);
                        notices.push(Notice::Refused(Arc::clone(callers), remote, reason));
                    }
                }
                other => tracing::debug!(event = ?other, "an event without a receiver"),
            }
        }
    }

    /// Once there is no work left, closes what the port keeps open besides SRT connections. Returns
    /// whether there was any.
    pub(crate) fn shut_down(&mut self, now: Instant) -> bool {
        self.is_finished() && self.machine.shut_down(now)
    }

    /// Releases orphaned connections that have ended. Returns whether there were any.
    pub(crate) fn release_orphans(&mut self, now: Instant) -> bool {
        let any = !self.releases.is_empty();
        for id in self.releases.drain(..) {
            if let Some(connection) = self.machine.endpoint().connection(now, id) {
                connection.release();
            }
            self.connections.remove(&id);
        }
        if any && self.peak.has_fallen(self.connections.len()) {
            self.machine.endpoint().shrink();
            self.connections.shrink_to_fit();
            self.releases.shrink_to_fit();
            memory::give_back_memory_soon();
        }
        any
    }

    fn set_phase(&mut self, id: ConnectionId, phase: Phase) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if connection.orphaned && matches!(phase, Phase::Closed(_)) {
            self.releases.push(id);
        }
        connection.connected |= matches!(phase, Phase::Connected);
        connection.phase = phase;
    }

    fn notice(
        &self,
        id: ConnectionId,
        notices: &mut Vec<Notice>,
        notice: impl FnOnce(Arc<Signals>) -> Notice,
    ) {
        if let Some(connection) = self.connections.get(&id).filter(|it| !it.orphaned) {
            notices.push(notice(Arc::clone(&connection.signals)));
        }
    }

    /// Notes that the driver is gone. The result wakes every waiting task: it is called without the
    /// lock, since watchers may ask for the phase.
    pub(crate) fn stop(&mut self) -> impl FnOnce() + use<> {
        self.stopped = true;
        let connections = self.connections.values();
        let signals: Vec<_> = connections.map(|it| Arc::clone(&it.signals)).collect();
        let callers = self.callers.clone();
        move || {
            for signals in signals {
                signals.set_announced(true);
                signals.signal_all();
            }
            if let Some(callers) = callers {
                callers.end();
            }
        }
    }
}
