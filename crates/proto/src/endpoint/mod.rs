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

    /// Takes in one datagram from `path`. Whatever does not belong here is dropped.
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
            // Moving the start costs nothing; a slice would count references.
            datagram.advance(DataHeader::LEN);
            if self.connections[index].connection.handle_data(now, header, datagram) {
                self.settle(now, index);
            }
        }
    }

    /// Does what is due at `now`.
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

    /// When [`handle_timeout`](Self::handle_timeout) or `poll_transmit` has something to do: now as
    /// long as something waits to be sent.
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

    /// When the next message is to be delivered at its time, if that comes before everything else
    /// that connections wait for: a driver that wakes up then may do other work together with it.
    pub fn next_delivery(&self) -> Option<Instant> {
        let (at, index) = self.timers.first()?;
        self.connections[index].connection.delivers_at(at).then_some(at)
    }

    /// From now on [`recv`](Self::recv) gives live messages together with others up to this time
    /// before they are due, so that fast streams need fewer wake-ups. Zero at first.
    pub fn set_early_delivery(&mut self, early: Duration) {
        self.early_delivery = early;
    }

    /// Sets the properties of a path, also while connections use it: from now on packets are cut
    /// to its largest datagram, and longer ones that wait in a send buffer are handed back
    /// ([`poll_oversized`](Self::poll_oversized)). A path of UDP needs none.
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

    /// Forgets the properties of a path that no connection uses any more.
    pub fn forget_path(&mut self, path: impl Into<PathId>) {
        self.paths.remove(path.into());
    }

    /// A datagram that is longer than its path carries, if there is one: the carriage takes it
    /// another way, or drops it and has the connection retransmit it in vain. At most 64 are kept;
    /// [`Statistics::packets_oversized`] counts all of them.
    pub fn poll_oversized(&mut self) -> Option<(PathId, Vec<u8>)> {
        self.outbox.pop_oversized()
    }

    /// Answers callers from now on, with `config` as the default of accepted connections; `None`
    /// stops listening. Connections that stand are not touched.
    pub fn listen(&mut self, config: Option<Config>) {
        self.listener.listen(config);
    }

    /// With which default of accepted connections it listens, if it does.
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
    /// The caller is gone, does not fit the configuration, or the endpoint is full; in the last two
    /// cases it is told so.
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
        let path = waiting.path;
        match waiting.proposal.accept(&config, socket_id, path, membership, &mut tools) {
            Ok((response, negotiated)) => {
                let conclusion = &waiting.proposal.conclusion;
                let caller = (waiting.path, conclusion.socket_id, conclusion.isn);
                let mut connection =
                    Connection::accepted(now, self.paths.get(path), config, negotiated, response);
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
    /// The connection does not stand, the message is too large, the buffer is full, or the peer has
    /// said that something went wrong there.
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

    /// Takes bytes of a stream for sending from the front of `data`, as many as there is room for;
    /// returns how many. For connections whose [`Transmission`](crate::Transmission) is `Stream`.
    ///
    /// # Errors
    ///
    /// The connection does not stand or carries messages, the buffer is full, or the peer has said
    /// that something went wrong there.
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

    /// The next message that is due at `now`, if any; of a stream, its next bytes, in pieces as
    /// they came. After a close, what was received comes first.
    ///
    /// # Errors
    ///
    /// The connection is closed and everything received has been read.
    pub fn recv(&mut self, now: Instant, id: ConnectionId) -> Result<Option<Message>, RecvError> {
        let Some(index) = self.index(id) else { return Ok(None) };
        let connection = &mut self.connections[index].connection;
        // Only the end of what is due moves a timer; an ACK that tells of room is written at once.
        match connection.recv(now, now + self.early_delivery) {
            Ok(Some(message)) => {
                if connection.owes_ack() {
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

    /// Changes options of a connection that is under way or established: `change` gets its options
    /// and returns them with other values, which take effect at once. Nothing happens to a
    /// connection that was released.
    ///
    /// # Errors
    ///
    /// That of `change`; or an option has another value that can only be set before connecting
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

    /// Tells the peer that something went wrong with what it sends, such as a full disk, by a
    /// PEERERROR packet: its next attempt to send fails, or the one that waits. The connection goes
    /// on. In live mode nothing is sent. The packet may be lost, and does not come again: whoever
    /// gives up closes the connection as well.
    pub fn tell_error(&mut self, now: Instant, id: ConnectionId, error: PeerError) {
        if let Some(index) = self.index(id) {
            self.connections[index].connection.report_error(error);
            self.settle(now, index);
        }
    }

    /// Closes a connection: what is buffered may go out for the configured linger, then SHUTDOWN is
    /// sent and [`Event::Closed`] follows. Received messages may still be read.
    pub fn close(&mut self, now: Instant, id: ConnectionId) {
        if let Some(index) = self.index(id) {
            self.connections[index].connection.close(now);
            self.settle(now, index);
        }
    }

    /// Closes a connection at once: what is buffered does not go out, whatever the configured
    /// linger, and SHUTDOWN is what the peer hears next. It ends a [`close`](Self::close) that
    /// waits, too. Received messages may still be read.
    pub fn abort(&mut self, now: Instant, id: ConnectionId) {
        if let Some(index) = self.index(id) {
            self.connections[index].connection.abort(now);
            self.settle(now, index);
        }
    }

    /// Forgets a connection, saying SHUTDOWN first if it was not closed. No event follows.
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

    /// Gives the memory back that tables hold for connections which are gone: for whoever has seen
    /// many of them go.
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

    /// Connections held, in whatever state.
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

    /// The connection that `dest` names, if `path` is its peer: a spoofed source reaches nothing.
    /// `stray` is what the packet means if it is not.
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

    /// After a connection was touched: tells its events, sets its timer, queues it for sending.
    fn settle(&mut self, now: Instant, index: usize) {
        let slot = &mut self.connections[index];
        self.timers.set(index, slot.connection.next_timeout());
        if slot.connection.signals.any() {
            let signals = std::mem::take(&mut slot.connection.signals);
            if let (Some(call), Some(CloseReason::Peer)) = (slot.caller, &signals.closed) {
                self.departed.insert(now, call);
            }
            tell(&mut self.events, slot.id, slot.connection.path.id, signals);
        }
        self.enqueue(now, index);
    }

    /// After the application submitted something: where it goes out now, the timers are set when
    /// all of it has.
    #[inline(always)]
    fn settle_send(&mut self, now: Instant, index: usize) {
        if !self.connections[index].queued && !self.enqueue(now, index) {
            let connection = &mut self.connections[index].connection;
            connection.schedule_after_send(now);
            self.timers.set(index, connection.next_timeout());
        }
    }

    /// Queues a connection that has something to send; whether it is in the queue.
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

    /// A socket ID of 30 random bits: some peers tell connections apart by it alone, so it must not
    /// follow from another one.
    fn draw_socket_id(&mut self) -> SocketId {
        loop {
            let id = self.config.shard.own_id(self.chance.number());
            if id != SocketId::LISTENER && self.connections.of_socket(id).is_none() {
                return id;
            }
        }
    }

    /// A first sequence number: any but the largest, which no handshake may carry.
    fn draw_isn(&mut self) -> SeqNo {
        SeqNo::new(self.chance.number() % SeqNo::MAX.value())
    }
}

fn tell(events: &mut VecDeque<Event>, id: ConnectionId, path: PathId, signals: Signals) {
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
