//! One endpoint of a carriage, such as a UDP port: a listener, callers and their connections.

mod admission;
mod allowance;
mod connections;
mod departed;
mod derivations;
mod incoming;
mod links;
mod path_updates;
mod paths;
mod places;
mod rendezvous;
mod timers;
mod transmit;

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Buf, Bytes};
use punctual_crypto::KekCache;
use punctual_units::Instant;
use punctual_wire::{Control, ControlPacket, DataHeader, Packet, RejectReason, SeqNo, SocketId};

use self::admission::Admission;
pub use self::connections::ConnectionId;
use self::connections::Connections;
use self::departed::{Call, Departed};
use self::derivations::Derivations;
pub use self::derivations::{DerivedKey, KeyDerivation};
use self::incoming::Listener;
use self::path_updates::OffPathPacket;
use self::paths::Paths;
use self::places::Claims;
use self::timers::TimerQueue;
use self::transmit::Outbox;
pub use self::transmit::Transmit;
use crate::chance::Chance;
use crate::config::{Config, EndpointConfig};
use crate::connection::{Connection, Signals};
use crate::error::{
    AcceptError, CloseReason, ConfigError, ConnectError, PeerError, RecvError, SendError,
};
use crate::event::{ConnectionInfo, Event, IncomingId, Message, Readiness, SendOptions};
use crate::group::Membership;
use crate::handshake::caller::Caller;
use crate::handshake::keys::KeyTools;
use crate::path::{PathId, PathProperties};
use crate::statistics::Statistics;
use crate::wake_up::WakeUp;

/// A listener, callers and their connections at one endpoint of a carriage, such as a UDP port.
///
/// - in: [`handle_datagram`](Self::handle_datagram), [`handle_timeout`](Self::handle_timeout)
/// - out: [`poll_transmit`](Self::poll_transmit), [`poll_event`](Self::poll_event),
///   [`poll_timeout`](Self::poll_timeout)
/// - the application's verbs: [`listen`](Self::listen), [`connect`](Self::connect),
///   [`accept`](Self::accept), [`reject`](Self::reject), [`send`](Self::send),
///   [`recv`](Self::recv), [`close`](Self::close), [`release`](Self::release),
///   [`rendezvous`](Self::rendezvous)
/// - getters: [`info`](Self::info), [`statistics`](Self::statistics),
///   [`connection_count`](Self::connection_count)
///
/// Mutate, drain, sleep: after any call that takes `&mut self`, drain `poll_transmit` and
/// `poll_event`, then sleep until `poll_timeout` or the next input. Instants never go back.
#[derive(Debug)]
pub struct Endpoint {
    config: EndpointConfig,
    chance: Chance,
    /// The keys that follow from callers' passphrases.
    keks: KekCache,
    connections: Connections,
    paths: Paths,
    listener: Listener,
    admission: Admission,
    derivations: Derivations,
    claims: Claims,
    departed: Departed,
    timers: TimerQueue,
    outbox: Outbox,
    /// How long before its time a message is delivered together with others.
    early_delivery: Duration,
    events: VecDeque<Event>,
}

impl Endpoint {
    /// An endpoint that neither listens nor calls yet.
    pub fn new(config: EndpointConfig, now: Instant) -> Self {
        let mut chance = Chance::new(config.seed);
        let mut key = [0; 16];
        chance.fill(&mut key);
        Self {
            listener: Listener::new(key, now, config.backlog),
            admission: Admission::new(now, config.callers_per_second),
            derivations: Derivations::new(now, config.key_derivations),
            config,
            chance,
            keks: KekCache::default(),
            claims: Claims::default(),
            departed: Departed::default(),
            connections: Connections::default(),
            paths: Paths::default(),
            timers: TimerQueue::default(),
            outbox: Outbox::default(),
            early_delivery: Duration::ZERO,
            events: VecDeque::new(),
        }
    }

    /// Takes in one datagram from `path`. A datagram that is no SRT packet, or belongs to no
    /// connection, is dropped.
    pub fn handle_datagram(&mut self, now: Instant, path: impl Into<PathId>, mut datagram: Bytes) {
        let path = path.into();
        let size = datagram.len();
        let header = match Packet::parse(&datagram) {
            Ok(Packet::Data(data)) => data.header,
            Ok(Packet::Control(control)) => {
                self.handle_control(now, path, control, size);
                return;
            }
            Err(_) => return,
        };
        if let Some(index) = self.route(now, path, header.dest, OffPathPacket::Other { size }) {
            // Unlike a slice, this does not count references.
            datagram.advance(DataHeader::LEN);
            if self.connections[index].connection.handle_data(now, header, datagram) {
                self.settle(now, index);
            }
        }
    }

    /// Handles the timers that are due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(index) = self.timers.pop_due(now) {
            self.connections[index].connection.handle_timeout(now);
            self.settle(now, index);
        }
        while let Some(gone) = self.listener.expire(now) {
            self.events.push_back(Event::IncomingGone(gone));
        }
        self.look_at_claims(now);
    }

    /// The next event, if any.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), or `poll_transmit`: now, while
    /// datagrams wait to be sent.
    pub fn poll_timeout(&self) -> WakeUp {
        if self.outbox.is_waiting() {
            return WakeUp::Now;
        }
        let earlier = |first: Option<Instant>, other: Option<Instant>| match (first, other) {
            (Some(first), Some(other)) => Some(first.min(other)),
            (first, other) => first.or(other),
        };
        let first = earlier(self.timers.next(), self.listener.next_expiry());
        earlier(earlier(first, self.derivations.next()), self.next_claim()).into()
    }

    /// The delivery time of the next message, if no connection waits for an earlier time. A driver
    /// may do other work together with that wake-up.
    pub fn next_delivery(&self) -> Option<Instant> {
        let (at, index) = self.timers.first()?;
        self.connections[index].connection.delivers_at(at).then_some(at)
    }

    /// Lets [`recv`](Self::recv) return live messages up to this time before they are due, together
    /// with messages that are, so that fast streams need fewer wake-ups. Zero at first.
    pub fn set_early_delivery(&mut self, early: Duration) {
        self.early_delivery = early;
    }

    /// Sets the properties of a path, also while connections use it. Messages are then cut into
    /// packets that fit its largest datagram; longer packets that are already in a send buffer are
    /// handed back ([`poll_oversized`](Self::poll_oversized)). UDP paths need no properties.
    pub fn set_path(&mut self, now: Instant, path: impl Into<PathId>, properties: PathProperties) {
        let path = path.into();
        self.paths.insert(path, properties);
        for index in self.connections.indices() {
            if self.connections[index].connection.path.id == path {
                self.connections[index].connection.set_path_properties(now, properties);
                self.settle(now, index);
            }
        }
    }

    /// The carriage has lost a path for good, for this reason: all its connections end, and its
    /// waiting callers are forgotten. Received messages can still be read.
    pub fn lose_path(&mut self, now: Instant, path: impl Into<PathId>, reason: &str) {
        let path = path.into();
        let reason = CloseReason::PathLost(reason.into());
        for index in self.connections.indices() {
            if self.connections[index].connection.path.id == path {
                self.connections[index].connection.lose_path(reason.clone());
                self.settle(now, index);
            }
        }
        while let Some(caller) = self.listener.find_by_path(path) {
            self.dismiss(caller);
        }
    }

    /// Whether a connection that has not ended, or a waiting caller, uses a path.
    pub fn uses_path(&self, path: impl Into<PathId>) -> bool {
        let path = path.into();
        self.connections
            .iter()
            .any(|slot| slot.connection.path.id == path && !slot.connection.has_ended())
            || self.listener.find_by_path(path).is_some()
    }

    /// Forgets the properties of a path that no connection uses any more.
    pub fn forget_path(&mut self, path: impl Into<PathId>) {
        self.paths.remove(path.into());
    }

    /// The next datagram that is too long for its path. The carriage may take it another way; if
    /// not, the packet is lost, and its retransmissions as well. The newest 64 are kept;
    /// [`Statistics::packets_oversized`] counts all of them.
    pub fn poll_oversized(&mut self) -> Option<(PathId, Vec<u8>)> {
        self.outbox.pop_oversized()
    }

    /// Starts listening, with `config` as the default of accepted connections; `None` stops
    /// listening. Established connections are not touched.
    pub fn listen(&mut self, config: Option<Config>) {
        self.listener.listen(config);
    }

    /// The default of accepted connections, if the endpoint listens.
    pub fn listening(&self) -> Option<&Config> {
        self.listener.config()
    }

    /// Calls the listener at `path`. [`Event::Connected`] or [`Event::Closed`] follows.
    ///
    /// # Errors
    ///
    /// The address cannot be called, or the endpoint is full.
    pub fn connect(
        &mut self,
        now: Instant,
        path: impl Into<PathId>,
        config: Config,
    ) -> Result<ConnectionId, ConnectError> {
        let path = path.into();
        self.check_callable(path)?;
        let socket_id = self.draw_socket_id();
        let isn = self.draw_isn();
        let caller = Caller::new(socket_id, isn, self.chance.fork());
        let connection = Connection::call(now, self.paths.get(path), caller, socket_id, config);
        Ok(self.insert(now, connection, None))
    }

    /// Accepts a waiting caller, with the listener's configuration or another one.
    ///
    /// # Errors
    ///
    /// The caller is gone, does not fit the configuration, or the endpoint is full. In the last two
    /// cases the caller gets a rejection.
    pub fn accept(
        &mut self,
        now: Instant,
        id: IncomingId,
        config: Option<Config>,
    ) -> Result<ConnectionId, AcceptError> {
        self.accept_as(now, id, config, None)
    }

    fn accept_as(
        &mut self,
        now: Instant,
        id: IncomingId,
        config: Option<Config>,
        membership: Option<&Membership>,
    ) -> Result<ConnectionId, AcceptError> {
        let Some(mut waiting) = self.listener.take(id) else { return Err(AcceptError::Gone) };
        if let Some(derived) = waiting.derived.take() {
            derived.store(&mut self.keks);
        }
        let config = config.unwrap_or_else(|| waiting.config.clone());
        let config = waiting.proposal.request.suit(config);
        if self.is_full() {
            self.refuse(waiting.path, &waiting.proposal.conclusion, RejectReason::RESOURCE);
            return Err(AcceptError::TooManyConnections(self.config.max_connections));
        }
        let socket_id = self.draw_socket_id();
        let mut tools = KeyTools { chance: &mut self.chance, cache: &mut self.keks };
        let path = self.paths.get(waiting.path);
        match waiting.proposal.accept(&config, socket_id, &path, membership, &mut tools) {
            Ok((response, negotiated)) => {
                let conclusion = &waiting.proposal.conclusion;
                let caller = (waiting.path, conclusion.socket_id, conclusion.isn);
                let mut connection = Connection::accepted(now, path, config, negotiated, response);
                if let Some(membership) = membership {
                    connection.join_group(membership);
                }
                Ok(self.insert(now, connection, Some(caller)))
            }
            Err(reason) => {
                self.refuse(waiting.path, &waiting.proposal.conclusion, reason);
                Err(AcceptError::Incompatible(reason))
            }
        }
    }

    /// Rejects a waiting caller; nothing happens if it is gone.
    pub fn reject(&mut self, id: IncomingId, reason: RejectReason) {
        if let Some(waiting) = self.listener.take(id) {
            self.refuse(waiting.path, &waiting.proposal.conclusion, reason);
        }
    }

    /// Takes a message for sending.
    ///
    /// # Errors
    ///
    /// The connection is not established, the message is too large, the buffer is full, or the peer
    /// has reported an error.
    pub fn send(
        &mut self,
        now: Instant,
        id: ConnectionId,
        payload: Bytes,
        options: SendOptions,
    ) -> Result<(), SendError> {
        let index = self.index(id).ok_or(SendError::NotConnected)?;
        let slot = &mut self.connections[index];
        slot.connection.send(now, payload, options)?;
        self.settle_send(now, index);
        Ok(())
    }

    /// Takes bytes of a stream for sending from the front of `data`, as far as there is room, and
    /// returns their number. For connections whose [`Transmission`](crate::Transmission) is
    /// `Stream`.
    ///
    /// # Errors
    ///
    /// The connection is not established or carries messages, the buffer is full, or the peer has
    /// reported an error.
    pub fn write(
        &mut self,
        now: Instant,
        id: ConnectionId,
        data: &mut Bytes,
    ) -> Result<usize, SendError> {
        let index = self.index(id).ok_or(SendError::NotConnected)?;
        let taken = self.connections[index].connection.write(now, data)?;
        self.settle_send(now, index);
        Ok(taken)
    }

    /// The next message that is due at `now`, if any; the next bytes of a stream, in pieces of
    /// packets. After a close, received messages can still be read.
    ///
    /// # Errors
    ///
    /// The connection is closed and everything received has been read.
    pub fn recv(&mut self, now: Instant, id: ConnectionId) -> Result<Option<Message>, RecvError> {
        let Some(index) = self.index(id) else { return Ok(None) };
        let connection = &mut self.connections[index].connection;
        // Only a read that finds no message moves a timer. An ACK that announces new room is
        // written at once.
        match connection.recv(now, now + self.early_delivery) {
            Ok(Some(message)) => {
                if connection.ack_is_due() {
                    self.enqueue(now, index);
                }
                Ok(Some(message))
            }
            end => {
                self.timers.set(index, connection.next_timeout());
                end
            }
        }
    }

    /// Whether a connection is readable, writable or broken at `now`; `None` for a connection that
    /// was released.
    pub fn readiness(&mut self, now: Instant, id: ConnectionId) -> Option<Readiness> {
        let index = self.index(id)?;
        Some(self.connections[index].connection.readiness(now + self.early_delivery))
    }

    /// The options of a connection; `None` for a connection that was released.
    pub fn connection_config(&self, id: ConnectionId) -> Option<&Config> {
        Some(self.connections[self.index(id)?].connection.config())
    }

    /// Changes options of a connection: `change` gets its options and returns them with other
    /// values, which take effect at once. Has no effect on a connection that was released.
    ///
    /// # Errors
    ///
    /// `change` failed, or changed an option that can only be set before connecting
    /// ([`OptionPhase`](crate::OptionPhase)). Then no option is changed.
    pub fn configure(
        &mut self,
        now: Instant,
        id: ConnectionId,
        change: impl FnOnce(Config) -> Result<Config, ConfigError>,
    ) -> Result<(), ConfigError> {
        let Some(index) = self.index(id) else { return Ok(()) };
        let connection = &mut self.connections[index].connection;
        connection.configure(now, change(connection.config().clone())?)?;
        self.settle(now, index);
        Ok(())
    }

    /// Reports an error to the peer by a PEERERROR packet, such as a full disk: the peer's next
    /// send call fails, or the one that waits. The connection stays open. In live mode no packet is
    /// sent. The packet may be lost and is not repeated, so that an application that gives up must
    /// close the connection as well.
    pub fn tell_error(&mut self, now: Instant, id: ConnectionId, error: PeerError) {
        if let Some(index) = self.index(id) {
            self.connections[index].connection.report_error(error);
            self.settle(now, index);
        }
    }

    /// Closes a connection: buffered messages may go out for the configured linger, then SHUTDOWN
    /// is sent and [`Event::Closed`] follows. Received messages can still be read.
    pub fn close(&mut self, now: Instant, id: ConnectionId) {
        if let Some(index) = self.index(id) {
            self.connections[index].connection.close(now);
            self.settle(now, index);
        }
    }

    /// Closes a connection at once by SHUTDOWN: buffered messages are not sent, even if a linger is
    /// configured. Also ends a [`close`](Self::close) that lingers. Received messages can still be
    /// read.
    pub fn abort(&mut self, now: Instant, id: ConnectionId) {
        if let Some(index) = self.index(id) {
            self.connections[index].connection.abort(now);
            self.settle(now, index);
        }
    }

    /// Forgets a connection, after a SHUTDOWN if it was not closed. No event follows.
    pub fn release(&mut self, now: Instant, id: ConnectionId) {
        let Some(index) = self.index(id) else { return };
        let mut slot = self.connections.remove(index);
        if let Some(final_packet) = slot.connection.final_packet(now) {
            self.outbox.reply(slot.connection.path.id, final_packet);
        }
        self.timers.set(index, None);
        self.outbox.forget(index);
    }

    /// The terms of a connection; `None` for a connection that was released.
    pub fn info(&self, id: ConnectionId) -> Option<ConnectionInfo> {
        Some(self.connections[self.index(id)?].connection.info())
    }

    /// Frees the memory that tables keep for connections that were released. Useful after many of
    /// them.
    pub fn shrink(&mut self) {
        self.connections.shrink();
        self.timers.shrink();
        self.outbox.shrink();
        self.events.shrink_to_fit();
    }

    /// A snapshot of a connection's statistics; `None` for a connection that was released.
    pub fn statistics(&self, now: Instant, id: ConnectionId) -> Option<Statistics> {
        Some(self.connections[self.index(id)?].connection.statistics(now))
    }

    /// The number of connections in any state that were not released.
    pub fn connection_count(&self) -> usize {
        self.connections.len()
    }

    fn handle_control(
        &mut self,
        now: Instant,
        path: PathId,
        packet: ControlPacket<'_>,
        size: usize,
    ) {
        if packet.dest == SocketId::LISTENER {
            let Control::Handshake(handshake) = &packet.control else { return };
            if let Some(index) = self.find_rendezvous(now, path, handshake) {
                self.connections[index].connection.handle_control(now, packet);
                self.settle(now, index);
            } else if let Control::Handshake(handshake) = packet.control {
                self.handle_listener_handshake(now, path, packet.timestamp, *handshake);
            }
        } else if let Some(index) =
            self.route(now, path, packet.dest, OffPathPacket::of(&packet.control, size))
        {
            self.connections[index].connection.handle_control(now, packet);
            self.settle(now, index);
        }
    }

    /// The connection with the socket ID `dest`, if `path` leads to its peer: packets from a
    /// spoofed source have no effect. `stray` is the meaning of a packet that came by another path.
    #[inline(always)]
    fn route(
        &mut self,
        now: Instant,
        path: PathId,
        dest: SocketId,
        stray: OffPathPacket<'_>,
    ) -> Option<usize> {
        let index = self.connections.of_socket(dest)?;
        let is_peer = self.connections[index].connection.path.id == path
            || self.handle_stray(now, path, index, stray);
        is_peer.then_some(index)
    }

    fn insert(
        &mut self,
        now: Instant,
        mut connection: Connection,
        caller: Option<Call>,
    ) -> ConnectionId {
        connection.count_messages_from(self.config.first_message);
        let id = self.connections.insert(connection, caller);
        self.settle(now, id.index());
        id
    }

    fn index(&self, id: ConnectionId) -> Option<usize> {
        self.connections.index(id)
    }

    /// Follows each change of a connection: queues its events, sets its timer, queues it for
    /// sending.
    fn settle(&mut self, now: Instant, index: usize) {
        let slot = &mut self.connections[index];
        self.timers.set(index, slot.connection.next_timeout());
        if slot.connection.signals.any() {
            let signals = std::mem::take(&mut slot.connection.signals);
            if let (Some(call), Some(CloseReason::Peer)) = (slot.caller, &signals.closed) {
                self.departed.insert(now, call);
            }
            push_events(&mut self.events, slot.id, slot.connection.path.id, signals);
        }
        self.enqueue(now, index);
    }

    /// Follows a submission. If packets can be sent now, the timers are set after that.
    #[inline(always)]
    fn settle_send(&mut self, now: Instant, index: usize) {
        if !self.connections[index].queued && !self.enqueue(now, index) {
            let connection = &mut self.connections[index].connection;
            connection.schedule_after_send(now);
            self.timers.set(index, connection.next_timeout());
        }
    }

    /// Queues a connection that has packets to send. Returns whether it is in the queue.
    fn enqueue(&mut self, now: Instant, index: usize) -> bool {
        let slot = &mut self.connections[index];
        if !slot.queued && slot.connection.wants_to_write(now) {
            slot.queued = true;
            self.outbox.enqueue(index);
        }
        slot.queued
    }

    fn check_callable(&self, path: PathId) -> Result<(), ConnectError> {
        if !path.is_callable() {
            return Err(ConnectError::InvalidAddress(path));
        }
        if self.is_full() {
            return Err(ConnectError::TooManyConnections(self.config.max_connections));
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.connections.len() >= self.config.max_connections
    }

    /// A socket ID of 30 random bits. Some peers distinguish connections by it alone, so that it
    /// must not be predictable.
    fn draw_socket_id(&mut self) -> SocketId {
        loop {
            let id = self.config.shard.own_id(self.chance.number());
            if id != SocketId::LISTENER && self.connections.of_socket(id).is_none() {
                return id;
            }
        }
    }

    /// A first sequence number: any except the largest, which is invalid in a handshake.
    fn draw_isn(&mut self) -> SeqNo {
        SeqNo::new(self.chance.number() % SeqNo::MAX.value())
    }
}

fn push_events(events: &mut VecDeque<Event>, id: ConnectionId, path: PathId, signals: Signals) {
    if signals.connected {
        events.push_back(Event::Connected(id));
    }
    if signals.moved {
        events.push_back(Event::PeerMoved(id, path));
    }
    if signals.readable {
        events.push_back(Event::Readable(id));
    }
    if signals.news {
        events.push_back(Event::LinkNews(id));
    }
    if signals.writable {
        events.push_back(Event::Writable(id));
    }
    if let Some(reason) = signals.closed {
        events.push_back(Event::Closed(id, reason));
    }
}
