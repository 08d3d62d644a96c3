//! The task that drives a UDP port with bare QUIC.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::{Bytes, BytesMut};
use punctual_io::{ReceiveBuffers, Room, Timer, UdpSocket};
use punctual_proto::WakeUp;
use punctual_quic::{
    CloseReason, ConnectionId, ConnectionInfo, Endpoint, EndpointConfig, Event, TransportConfig,
};
use punctual_units::Instant;
use tokio::sync::Notify;

use crate::error::Error;
use crate::outbox::{Batch, Outbox};
use crate::port::seed;
use crate::transmitter::Transmitter;

/// Opens the port: its driver runs until the last handle is dropped and all connections have ended.
pub(super) fn start(udp: Arc<UdpSocket>, transport: TransportConfig) -> Result<Handle, Error> {
    let mut config = EndpointConfig::new(seed()?, super::epoch());
    config.transport = transport;
    let state = State {
        endpoint: Endpoint::new(config),
        reached: Instant::ORIGIN,
        connections: HashMap::new(),
        callers: None,
        blocked: Vec::new(),
        stopped: false,
    };
    let shared = Arc::new(Shared {
        udp,
        state: Mutex::new(state),
        work: Notify::new(),
        accepted: Notify::new(),
    });
    let owner = Arc::new(Owner { shared: Arc::clone(&shared) });
    let driver = Driver {
        transmitter: Transmitter::new(Arc::clone(&shared.udp), Arc::default()),
        owner: Arc::downgrade(&owner),
        shared,
        buffers: ReceiveBuffers::default(),
        outbox: Outbox::default(),
        outbox_has_all: false,
        closed: Vec::new(),
    };
    tokio::spawn(driver.run(Timer::new()?));
    Ok(Handle { owner })
}

/// Keeps a port open. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Handle {
    owner: Arc<Owner>,
}

/// Wakes the driver when the last handle is dropped.
#[derive(Debug)]
struct Owner {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    udp: Arc<UdpSocket>,
    state: Mutex<State>,
    /// The application has made a call that the driver has to act on.
    work: Notify,
    /// A caller has come, or the driver is gone.
    accepted: Notify,
}

/// The state that the driver shares with the connections.
#[derive(Debug)]
pub(super) struct State {
    pub(super) endpoint: Endpoint,
    /// The latest time that the endpoint was called with.
    reached: Instant,
    connections: HashMap<ConnectionId, Connection>,
    /// Callers that wait to be accepted, if somebody listens.
    callers: Option<VecDeque<ConnectionId>>,
    /// Connections whose senders wait for room.
    blocked: Vec<ConnectionId>,
    /// Whether the driver is gone.
    pub(super) stopped: bool,
}

/// A connection from the point of view of the tasks that use it.
#[derive(Debug, Default)]
struct Connection {
    /// Something has changed.
    signal: Arc<Notify>,
    /// Messages that had arrived when the connection ended.
    rest: VecDeque<Bytes>,
    closed: Option<CloseReason>,
    /// Whether the socket has taken the last packets of the closed connection.
    has_left: bool,
    /// Its state and statistics when it ended.
    last_info: Option<ConnectionInfo>,
}

impl Handle {
    /// Makes a call of the application under the lock, and wakes the driver.
    pub(super) fn act<R>(&self, call: impl FnOnce(&mut State, Instant) -> R) -> R {
        self.owner.shared.act(call)
    }

    pub(super) fn accept_callers(&self) {
        self.act(|state, _| state.callers = Some(VecDeque::new()));
    }

    pub(super) fn accepted(&self) -> &Notify {
        &self.owner.shared.accepted
    }

    pub(super) fn local_addr(&self) -> SocketAddr {
        self.owner.shared.udp.local_addr()
    }

    pub(super) fn check_family(&self, remote: SocketAddr) -> Result<(), Error> {
        Ok(self.owner.shared.udp.check_family(remote)?)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.work.notify_one();
    }
}

impl Shared {
    fn act<R>(&self, call: impl FnOnce(&mut State, Instant) -> R) -> R {
        let result = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            // Read under the lock, so that the endpoint's time never runs backwards.
            let now = state.reach(punctual_io::now());
            call(&mut state, now)
        };
        self.work.notify_one();
        result
    }
}

impl State {
    /// Sets the endpoint's time to `now`, unless it is later already. Returns it.
    fn reach(&mut self, now: Instant) -> Instant {
        self.reached = self.reached.max(now);
        self.reached
    }

    /// A connection that this end has begun.
    pub(super) fn add(&mut self, id: ConnectionId) {
        self.connections.entry(id).or_default();
    }

    /// The application does not use a connection any more.
    pub(super) fn forget(&mut self, id: ConnectionId) {
        self.connections.remove(&id);
    }

    /// The oldest caller that waits.
    pub(super) fn next_caller(&mut self) -> Option<ConnectionId> {
        self.callers.as_mut()?.pop_front()
    }

    /// The signal of the changes of a connection.
    pub(super) fn signal(&self, id: ConnectionId) -> Option<Arc<Notify>> {
        Some(Arc::clone(&self.connections.get(&id)?.signal))
    }

    /// Why a connection has ended, if it has.
    pub(super) fn end(&self, id: ConnectionId) -> Option<Error> {
        match self.connections.get(&id) {
            Some(Connection { closed: Some(reason), .. }) => {
                Some(Error::QuicClosed(reason.clone()))
            }
            _ if self.stopped => Some(Error::Stopped),
            _ => None,
        }
    }

    /// Whether the socket has taken the last packets of a connection that was closed.
    pub(super) fn has_left(&self, id: ConnectionId) -> bool {
        self.connections.get(&id).is_none_or(|connection| connection.has_left)
    }

    /// The socket has taken everything that was to be sent when these connections were closed.
    fn note_left(&mut self, closed: &mut Vec<ConnectionId>) {
        for id in closed.drain(..) {
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.has_left = true;
                connection.signal.notify_waiters();
            }
        }
    }

    /// The state and the statistics of a connection, after its end those at its end.
    pub(super) fn info(&self, id: ConnectionId) -> Option<ConnectionInfo> {
        let kept = || self.connections.get(&id)?.last_info.clone();
        self.endpoint.info(id).or_else(kept)
    }

    /// Whether a connection has room for a message on a stream. If not, its signal comes when it
    /// has.
    pub(super) fn has_room(&mut self, id: ConnectionId) -> bool {
        let has_room = self.endpoint.unsent_messages(id) <= UNSENT;
        if !has_room && !self.blocked.contains(&id) {
            self.blocked.push(id);
        }
        has_room
    }

    /// Signals to the senders that have room again.
    fn signal_room(&mut self) {
        let Self { endpoint, connections, blocked, .. } = self;
        for id in blocked.extract_if(.., |id| endpoint.unsent_messages(*id) <= UNSENT) {
            if let Some(connection) = connections.get(&id) {
                connection.signal.notify_waiters();
            }
        }
    }

    /// The next message of a connection.
    pub(super) fn recv(&mut self, id: ConnectionId) -> Option<Bytes> {
        next(&mut self.endpoint, id).or_else(|| self.connections.get_mut(&id)?.rest.pop_front())
    }

    /// Returns the connection if it was closed.
    fn handle_event(&mut self, event: Event, accepted: &Notify) -> Option<ConnectionId> {
        let id = match &event {
            Event::Established(id, _)
            | Event::Readable(id)
            | Event::LargestDatagram(id, _)
            | Event::Moved(id, _)
            | Event::Closed(id, _) => *id,
        };
        super::log(&event);
        match event {
            Event::Established(..) if !self.connections.contains_key(&id) => {
                if let Some(callers) = &mut self.callers {
                    self.connections.insert(id, Connection::default());
                    callers.push_back(id);
                    accepted.notify_one();
                }
            }
            Event::Closed(_, reason) => {
                if let Some(connection) = self.connections.get_mut(&id) {
                    connection.closed = Some(reason);
                    connection.last_info = self.endpoint.info(id);
                }
            }
            _ => {}
        }
        if let Some(connection) = self.connections.get_mut(&id) {
            if connection.closed.is_some() {
                // The endpoint forgets the connection soon.
                let endpoint = &mut self.endpoint;
                connection.rest.extend(std::iter::from_fn(|| next(endpoint, id)));
            }
            connection.signal.notify_waiters();
            return connection.closed.is_some().then_some(id);
        }
        None
    }
}

fn next(endpoint: &mut Endpoint, id: ConnectionId) -> Option<Bytes> {
    endpoint.recv_datagram(id).or_else(|| endpoint.recv_message(id))
}

/// Moves datagrams between the socket and the endpoint.
struct Driver {
    shared: Arc<Shared>,
    owner: Weak<Owner>,
    transmitter: Transmitter,
    buffers: ReceiveBuffers,
    /// Datagrams that the socket has not taken yet.
    outbox: Outbox,
    /// Whether the endpoint had no more to send when the outbox was filled last.
    outbox_has_all: bool,
    /// Closed connections whose last packets the socket may not have taken yet.
    closed: Vec<ConnectionId>,
}

impl Driver {
    async fn run(mut self, mut timer: Timer) {
        let mut room: Option<Room> = None;
        let mut datagrams = Vec::new();
        loop {
            let wake_up = self.turn(&mut datagrams);
            let is_blocked = !self.transmitter.flush(&mut self.outbox);
            if is_blocked && room.is_none() {
                // If this fails, the next attempt is made with the next turn.
                room = self.shared.udp.room().ok();
            }
            if !is_blocked {
                self.note_left();
                room = None;
                if wake_up == WakeUp::Now {
                    tokio::task::yield_now().await;
                    self.receive_what_is_there(&mut datagrams).await;
                    continue;
                }
            }
            if self.is_finished() {
                return;
            }
            let Self { shared, buffers, transmitter, .. } = &mut self;
            tokio::select! {
                _ = buffers.wait(
                    &shared.udp,
                    |datagram| {
                        transmitter.learn(datagram.from, datagram.to);
                        datagrams.push(datagram);
                    },
                    |error| tracing::debug!("receiving UDP: {error}"),
                ) => {}
                () = shared.work.notified() => {}
                () = sleep(&mut timer, wake_up), if !is_blocked => {}
                () = has_room(room.as_ref()), if is_blocked => room = None,
            }
        }
    }

    /// Passes datagrams to the endpoint, handles the timers that are due, and takes out what is to
    /// be sent. Returns when the next turn is due.
    fn turn(&mut self, datagrams: &mut Vec<punctual_io::Datagram>) -> WakeUp {
        let Shared { udp, state, accepted, .. } = &*self.shared;
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        for datagram in datagrams.drain(..) {
            let at = state.reach(datagram.arrived);
            let payload = BytesMut::from(datagram.payload);
            state.endpoint.handle_datagram(at, datagram.from, None, payload);
        }
        let now = state.reach(punctual_io::now());
        if state.endpoint.poll_timeout().is_due(now) {
            state.endpoint.handle_timeout(now);
        }
        let outbox = &mut self.outbox;
        self.outbox_has_all = false;
        while outbox.is_empty() || !outbox.is_full() {
            let segments = udp.max_segments();
            let Some(transmit) = state.endpoint.poll_transmit(now, segments, &mut outbox.bytes)
            else {
                self.outbox_has_all = true;
                break;
            };
            let punctual_quic::Transmit { remote, size, segment_size, .. } = transmit;
            outbox.push(Batch { remote, size, segment_size });
        }
        while let Some(event) = state.endpoint.poll_event() {
            self.closed.extend(state.handle_event(event, accepted));
        }
        state.signal_room();
        state.endpoint.poll_timeout()
    }

    /// Receives without waiting, while there is always something to send.
    async fn receive_what_is_there(&mut self, datagrams: &mut Vec<punctual_io::Datagram>) {
        let Self { shared, buffers, transmitter, .. } = self;
        std::future::poll_fn(|cx| {
            let take = |datagram: punctual_io::Datagram| {
                transmitter.learn(datagram.from, datagram.to);
                datagrams.push(datagram);
            };
            let report = |error: &std::io::Error| tracing::debug!("receiving UDP: {error}");
            if shared.udp.poll_readable(cx).is_ready() {
                buffers.receive(cx, &shared.udp, take, report);
            }
            std::task::Poll::Ready(())
        })
        .await;
    }

    /// Tells those who wait for it that the outbox, now empty, had the last packets of their
    /// connections.
    fn note_left(&mut self) {
        if self.outbox_has_all && !self.closed.is_empty() {
            let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.note_left(&mut self.closed);
        }
    }

    /// Whether nobody uses the port any more, and all connections have ended.
    fn is_finished(&self) -> bool {
        if self.owner.strong_count() > 0 {
            return false;
        }
        let state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.endpoint.connection_count() == 0 && self.outbox.is_empty()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.stopped = true;
        state.connections.values().for_each(|connection| connection.signal.notify_waiters());
        drop(state);
        self.shared.accepted.notify_waiters();
    }
}

/// Messages on streams that quinn has not taken yet, beyond which a sender waits. quinn itself
/// takes 10 MB.
const UNSENT: usize = 64;

async fn sleep(timer: &mut Timer, wake_up: WakeUp) {
    match wake_up {
        WakeUp::Now => {}
        WakeUp::At(at) => timer.sleep_until(at).await,
        WakeUp::Never => std::future::pending().await,
    }
}

async fn has_room(room: Option<&Room>) {
    match room {
        Some(room) => std::future::poll_fn(|cx| room.poll(cx)).await,
        None => tokio::task::yield_now().await,
    }
}
