//! One endpoint of a carriage, such as a UDP port: a listener, callers and their connections.

mod callers;
mod config;
mod connections;
#[cfg(test)]
mod testing;

use std::time::Duration;

use bytes::{Buf, Bytes};
use punctual_units::Instant;
use punctual_wire::{
    Control, ControlPacket, DataHeader, Handshake, MsgNo, Packet, RejectReason, SeqNo, SocketId,
};

use self::callers::Callers;
pub use self::config::{EndpointConfig, Shard};
use self::connections::Connections;
pub use self::connections::Transmit;
use crate::chance::Chance;
use crate::config::Config;
use crate::connection::Connection;
use crate::error::{
    AcceptError, CloseReason, ConfigError, ConnectError, PeerError, RecvError, SendError,
};
use crate::event::{ConnectionInfo, Event, Message, Readiness, SendOptions};
use crate::group::{LinkAction, LinkStatus, LinkTerms};
use crate::handshake::caller::Caller;
use crate::handshake::derivation::{DerivedKey, KeyDerivation};
use crate::handshake::membership::Membership;
use crate::handshake::rendezvous::Rendezvous;
use crate::ids::{ConnectionId, IncomingId};
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
    chance: Chance,
    connections: Connections,
    callers: Callers,
}

impl Endpoint {
    /// An endpoint that neither listens nor calls yet.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "of one seed there is one endpoint: two would have the same keys"
    )]
    pub fn new(config: EndpointConfig, now: Instant) -> Self {
        let mut chance = Chance::new(config.seed);
        let mut key = [0; 16];
        chance.fill(&mut key);
        let callers = Callers::new(&config, key, now);
        Self { chance, connections: Connections::new(&config), callers }
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
        // Unlike a slice, this does not count references.
        datagram.advance(DataHeader::LEN);
        self.connections.handle_data(now, path, header, datagram, self.callers.cookies());
    }

    /// Handles the timers that are due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.connections.handle_timeout(now);
        self.callers.handle_timeout(now, &mut self.connections);
    }

    /// Whether [`poll_event`](Self::poll_event) has an event.
    pub fn has_events(&self) -> bool {
        self.connections.has_events()
    }

    /// The next event, if any.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.connections.poll_event()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), or `poll_transmit`: now, while
    /// datagrams wait to be sent.
    pub fn poll_timeout(&self) -> WakeUp {
        if self.connections.has_datagrams() {
            return WakeUp::Now;
        }
        earlier(self.connections.next_timeout(), self.callers.next_timeout()).into()
    }

    /// The delivery time of the next message, if no connection waits for an earlier time. A driver
    /// may do other work together with that wake-up.
    pub fn next_delivery(&self) -> Option<Instant> {
        self.connections.next_delivery()
    }

    /// Lets [`recv`](Self::recv) return live messages up to this time before they are due, together
    /// with messages that are, so that fast streams need fewer wake-ups. Zero at first.
    pub fn set_early_delivery(&mut self, early: Duration) {
        self.connections.set_early_delivery(early);
    }

    /// Sets the properties of a path, also while connections use it. Messages are then cut into
    /// packets that fit its largest datagram; longer packets that are already in a send buffer are
    /// handed back ([`poll_oversized`](Self::poll_oversized)). UDP paths need no properties.
    pub fn set_path(&mut self, now: Instant, path: impl Into<PathId>, properties: PathProperties) {
        self.connections.set_path(now, path.into(), properties);
    }

    /// The carriage has lost a path for good, for this reason: all its connections end, and its
    /// waiting callers are forgotten. Received messages can still be read.
    pub fn lose_path(&mut self, now: Instant, path: impl Into<PathId>, reason: &str) {
        let path = path.into();
        self.connections.lose_path(now, path, &CloseReason::PathLost(reason.into()));
        self.callers.lose_path(path, &mut self.connections);
    }

    /// Whether a connection that has not ended, or a waiting caller, uses a path.
    pub fn uses_path(&self, path: impl Into<PathId>) -> bool {
        let path = path.into();
        self.connections.uses_path(path) || self.callers.uses_path(path)
    }

    /// Forgets the properties of a path that no connection uses any more.
    pub fn forget_path(&mut self, path: impl Into<PathId>) {
        self.connections.forget_path(path.into());
    }

    /// Appends up to `max_segments` datagrams for one path to `buffer`; `None` if there are none to
    /// send now. All have the same size, except the last, which may be shorter, as one segmenting
    /// send call takes them. They may belong to several connections.
    #[inline]
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        max_segments: usize,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        if !self.connections.has_datagrams() {
            return None;
        }
        self.connections.write_batch(now, max_segments, buffer)
    }

    /// The next datagram that is too long for its path. The carriage may take it another way; if
    /// not, the packet is lost, and its retransmissions as well. The newest 64 are kept;
    /// [`Statistics::packets_oversized`] counts all of them.
    pub fn poll_oversized(&mut self) -> Option<(PathId, Vec<u8>)> {
        self.connections.poll_oversized()
    }

    /// Starts listening, with `config` as the default of accepted connections; `None` stops
    /// listening. Established connections are not touched.
    pub fn listen(&mut self, config: Option<Config>) {
        self.callers.listen(config);
    }

    /// The default of accepted connections, if the endpoint listens.
    pub fn listening(&self) -> Option<&Config> {
        self.callers.config()
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
        let socket_id = self.connections.draw_socket_id(&mut self.chance);
        let isn = self.draw_isn();
        let caller = Caller::new(socket_id, isn, self.chance.fork());
        let path = self.connections.path(path);
        let connection = Connection::call(now, path, caller, socket_id, config);
        Ok(self.connections.insert(now, connection, None))
    }

    /// Calls the listener at `path` for a link of a group, otherwise as [`connect`](Self::connect).
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub fn connect_link(
        &mut self,
        now: Instant,
        path: impl Into<PathId>,
        config: Config,
        membership: &Membership,
    ) -> Result<ConnectionId, ConnectError> {
        let path = path.into();
        self.check_callable(path)?;
        let socket_id = self.connections.draw_socket_id(&mut self.chance);
        let caller = Caller::of_link(socket_id, membership.clone(), self.chance.fork());
        let path = self.connections.path(path);
        let mut connection = Connection::call(now, path, caller, socket_id, config);
        connection.join_group(membership);
        Ok(self.connections.insert(now, connection, None))
    }

    /// Meets the end at `path`, which meets this one: both call at about the same time, each from
    /// the port that the other calls, and neither listens. So a connection passes two firewalls or
    /// address translators that let out calls only. [`Event::Connected`] or [`Event::Closed`]
    /// follows.
    ///
    /// It waits for the other end ten times as long as a call waits for an answer
    /// ([`connect_timeout`](Config::connect_timeout)). The endpoint may listen, call and meet
    /// others at the same time.
    ///
    /// # Errors
    ///
    /// The address cannot be called, a rendezvous with it is under way already, or the endpoint is
    /// full.
    pub fn rendezvous(
        &mut self,
        now: Instant,
        path: impl Into<PathId>,
        config: Config,
    ) -> Result<ConnectionId, ConnectError> {
        let path = path.into();
        self.check_callable(path)?;
        let earlier = self.connections.rendezvous_by(path);
        if earlier.and_then(|id| self.connections.get(id)).is_some_and(Connection::is_meeting) {
            return Err(ConnectError::RendezvousUnderWay(path));
        }
        let socket_id = self.connections.draw_socket_id(&mut self.chance);
        let cookie = self.chance.number().max(1);
        let isn = self.draw_isn();
        let rendezvous = Rendezvous::new(socket_id, isn, cookie, self.chance.fork());
        let by = self.connections.path(path);
        let connection = Connection::rendezvous(now, by, rendezvous, socket_id, config);
        Ok(self.connections.insert_rendezvous(now, connection, path))
    }

    /// Limits the number of callers at a time from now on, links of groups not counted: see
    /// [`EndpointConfig::max_callers`]. Established connections are not touched.
    pub fn limit_callers(&mut self, limit: Option<usize>) {
        self.callers.limit(limit);
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
        self.callers.accept(now, id, config, None, &mut self.chance, &mut self.connections)
    }

    /// Accepts a waiting caller as a link of a group. Its request must be one for a link
    /// ([`Incoming::group`](crate::Incoming::group)).
    ///
    /// # Errors
    ///
    /// As [`accept`](Self::accept); also if the caller is no link, or one of another group.
    pub fn accept_link(
        &mut self,
        now: Instant,
        id: IncomingId,
        config: Option<Config>,
        membership: &Membership,
    ) -> Result<ConnectionId, AcceptError> {
        let membership = Some(membership);
        self.callers.accept(now, id, config, membership, &mut self.chance, &mut self.connections)
    }

    /// Rejects a waiting caller; nothing happens if it is gone.
    pub fn reject(&mut self, id: IncomingId, reason: RejectReason) {
        self.callers.reject(id, reason, &mut self.connections);
    }

    /// The next key to be derived for a caller, one at a time, if
    /// [`EndpointConfig::key_derivations`] is set. The [result](KeyDerivation::run) goes to
    /// [`handle_derived_key`](Self::handle_derived_key).
    /// [`poll_timeout`](Self::poll_timeout) covers the time of the next one.
    pub fn poll_key_derivation(&mut self, now: Instant) -> Option<KeyDerivation> {
        self.callers.poll_key_derivation(now, &mut self.connections)
    }

    /// Takes in a derived key. [`Event::Incoming`] follows, if the caller still waits.
    pub fn handle_derived_key(&mut self, derived: DerivedKey) {
        self.callers.handle_derived_key(derived, &mut self.connections);
    }

    /// The key that accepting a caller with this configuration takes, if it was not derived yet.
    /// Without it [`accept`](Self::accept) derives it.
    pub fn key_derivation_for(&self, id: IncomingId, config: &Config) -> Option<KeyDerivation> {
        self.callers.key_derivation_for(id, config)
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
        self.connections.send(now, id, payload, options)
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
        self.connections.write(now, id, data)
    }

    /// The next message that is due at `now`, if any; the next bytes of a stream, in pieces of
    /// packets. After a close, received messages can still be read.
    ///
    /// # Errors
    ///
    /// The connection is closed and everything received has been read.
    pub fn recv(&mut self, now: Instant, id: ConnectionId) -> Result<Option<Message>, RecvError> {
        self.connections.recv(now, id)
    }

    /// Whether a connection is readable, writable or broken at `now`; `None` for a connection that
    /// was released.
    pub fn readiness(&mut self, now: Instant, id: ConnectionId) -> Option<Readiness> {
        self.connections.readiness(now, id)
    }

    /// Whether a packet can be submitted to a connection now. If not,
    /// [`Event::Writable`] follows when there is room.
    pub fn await_room(&mut self, id: ConnectionId) -> bool {
        self.connections.get_mut(id).is_some_and(Connection::await_room)
    }

    /// The numbers that the next message of a connection gets: the sequence number of its first
    /// packet, and its message number. `None` if the connection is not established.
    pub fn next_message(&self, id: ConnectionId) -> Option<(SeqNo, MsgNo)> {
        self.connections.get(id)?.next_message()
    }

    /// Gives the next message of an established connection this message number; those after it
    /// count from there.
    pub fn set_next_msgno(&mut self, id: ConnectionId, msgno: MsgNo) {
        if let Some(connection) = self.connections.get_mut(id) {
            connection.count_from(msgno);
        }
    }

    /// The options of a connection; `None` for a connection that was released.
    pub fn connection_config(&self, id: ConnectionId) -> Option<&Config> {
        Some(self.connections.get(id)?.config())
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
        let configured = self.connections.change(now, id, |connection| {
            let config = change(connection.config().clone())?;
            connection.configure(now, config)
        });
        configured.unwrap_or(Ok(()))
    }

    /// The terms of a link; `None` before it is established, and for a connection without group.
    pub fn link_terms(&self, id: ConnectionId) -> Option<LinkTerms> {
        self.connections.get(id)?.link_terms()
    }

    /// The status of a link; `None` before it is established.
    pub fn link_status(&self, id: ConnectionId) -> Option<LinkStatus> {
        self.connections.get(id)?.link_status()
    }

    /// The messages that arrived over a link of a balancing group, due or not, for
    /// [`Group::handle_message`](crate::Group::handle_message); none for any other link. Read
    /// messages of such a link by [`recv`](Self::recv) as well, which makes room in its buffer:
    /// those are empty.
    pub fn take_link_messages(&mut self, id: ConnectionId) -> Vec<Message> {
        self.connections.get_mut(id).map(Connection::take_bypassed).unwrap_or_default()
    }

    /// The packets of a link of a balancing group that were reported lost and given up since the
    /// last call, for [`Group::handle_losses`](crate::Group::handle_losses).
    pub fn take_link_losses(&mut self, id: ConnectionId) -> Vec<SeqNo> {
        self.connections.get_mut(id).map(Connection::take_returned).unwrap_or_default()
    }

    /// Carries out an action of the group at a link. A message for which there is no room is not
    /// sent by this link.
    ///
    /// # Errors
    ///
    /// There is no room, or the link is not established.
    pub fn apply(
        &mut self,
        now: Instant,
        id: ConnectionId,
        action: LinkAction,
    ) -> Result<(), SendError> {
        let applied = self.connections.change(now, id, |connection| connection.apply(now, action));
        applied.unwrap_or(Err(SendError::NotConnected))
    }

    /// Reports an error to the peer by a PEERERROR packet, such as a full disk: the peer's next
    /// send call fails, or the one that waits. The connection stays open. In live mode no packet is
    /// sent. The packet may be lost and is not repeated, so that an application that gives up must
    /// close the connection as well.
    pub fn tell_error(&mut self, now: Instant, id: ConnectionId, error: PeerError) {
        self.connections.change(now, id, |connection| connection.report_error(error));
    }

    /// Closes a connection: buffered messages may go out for the configured linger, then SHUTDOWN
    /// is sent and [`Event::Closed`] follows. Received messages can still be read.
    pub fn close(&mut self, now: Instant, id: ConnectionId) {
        self.connections.change(now, id, |connection| connection.close(now));
    }

    /// Closes a connection at once by SHUTDOWN: buffered messages are not sent, even if a linger is
    /// configured. Also ends a [`close`](Self::close) that lingers. Received messages can still be
    /// read.
    pub fn abort(&mut self, now: Instant, id: ConnectionId) {
        self.connections.change(now, id, |connection| connection.abort(now));
    }

    /// Forgets a connection, after a SHUTDOWN if it was not closed. No event follows.
    pub fn release(&mut self, now: Instant, id: ConnectionId) {
        self.connections.release(now, id);
    }

    /// The terms of a connection; `None` for a connection that was released.
    pub fn info(&self, id: ConnectionId) -> Option<ConnectionInfo> {
        Some(self.connections.get(id)?.info())
    }

    /// Frees the memory that tables keep for connections that were released. Useful after many of
    /// them.
    pub fn shrink(&mut self) {
        self.connections.shrink();
    }

    /// A snapshot of a connection's statistics; `None` for a connection that was released.
    pub fn statistics(&self, now: Instant, id: ConnectionId) -> Option<Statistics> {
        Some(self.connections.get(id)?.statistics(now))
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
        if packet.dest != SocketId::LISTENER {
            self.connections.handle_control(now, path, packet, size, self.callers.cookies());
            return;
        }
        let ControlPacket { timestamp, dest, control: Control::Handshake(handshake) } = packet
        else {
            return;
        };
        if let Some(id) = self.find_rendezvous(now, path, &handshake) {
            let control = Control::Handshake(handshake);
            let packet = ControlPacket { timestamp, dest, control };
            self.connections.change(now, id, |connection| connection.handle_control(now, packet));
        } else {
            let connections = &mut self.connections;
            self.callers.handle_handshake(now, path, timestamp, *handshake, connections);
        }
    }

    /// The rendezvous that a handshake to the listener's socket ID belongs to. Calls by the same
    /// path go to the listener, if there is one.
    fn find_rendezvous(
        &self,
        now: Instant,
        path: PathId,
        handshake: &Handshake,
    ) -> Option<ConnectionId> {
        let id = self.connections.rendezvous_by(path)?;
        (!self.callers.is_call(now, path, handshake)).then_some(id)
    }

    fn check_callable(&self, path: PathId) -> Result<(), ConnectError> {
        if !path.is_callable() {
            return Err(ConnectError::InvalidAddress(path));
        }
        self.connections.check_room().map_err(ConnectError::TooManyConnections)
    }

    /// A first sequence number: any except the largest, which is invalid in a handshake.
    fn draw_isn(&mut self) -> SeqNo {
        SeqNo::new(self.chance.number() % SeqNo::MAX.value())
    }
}

/// The earlier one of two times, of which one or both may be missing.
fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
