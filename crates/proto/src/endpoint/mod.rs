//! One endpoint of a carriage, such as a UDP port: a listener, callers and their connections.

mod attempt;
mod callers;
mod config;
mod connections;
mod recent_calls;
#[cfg(test)]
mod testing;

use std::time::Duration;

use bytes::{Buf, Bytes};
use punctual_units::Instant;
use punctual_wire::{
    Control, ControlPacket, DataHeader, Handshake, Packet, RejectReason, SocketId,
};

pub use self::attempt::{Acceptance, Attempt};
use self::callers::Callers;
pub use self::config::{EndpointConfig, Shard};
pub use self::connections::{ConnectionGuard, Connections, Transmit};
use crate::chance::Chance;
use crate::config::Config;
use crate::error::{AcceptError, CloseReason, ConnectError};
use crate::event::Event;
use crate::handshake::derivation::{DerivedKey, KeyDerivation};
use crate::ids::{ConnectionId, IncomingId};
use crate::path::{PathId, PathProperties};
use crate::wake_up::WakeUp;

/// A listener, callers and their connections at one endpoint of a carriage, such as a UDP port.
///
/// - in: [`handle_datagram`](Self::handle_datagram), [`handle_timeout`](Self::handle_timeout)
/// - out: [`poll_transmit`](Self::poll_transmit), [`poll_event`](Self::poll_event),
///   [`poll_timeout`](Self::poll_timeout)
/// - connections: [`listen`](Self::listen), [`connect`](Self::connect), [`accept`](Self::accept),
///   [`reject`](Self::reject)
/// - one of them: [`connection`](Self::connection) hands it out for its verbs, such as
///   [`send`](crate::Connection::send), [`recv`](crate::Connection::recv) and
///   [`close`](crate::Connection::close); [`connections`](Self::connections) is for reading
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

    /// Lets [`recv`](crate::Connection::recv) return live messages up to this time before they are
    /// due, together with messages that are, so that fast streams need fewer wake-ups. Zero at
    /// first.
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
    /// waiting callers and its properties are forgotten. Received messages can still be read.
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
    /// [`Statistics::packets_oversized`](crate::Statistics::packets_oversized) counts all of them.
    pub fn poll_oversized(&mut self) -> Option<(PathId, Vec<u8>)> {
        self.connections.poll_oversized()
    }

    /// Starts listening, with `config` as the default of accepted connections; `None` stops
    /// listening. Established connections are not touched.
    pub fn listen(&mut self, config: Option<Config>) {
        self.callers.listen(config);
    }

    /// Connects by `path`: calls the listener there with these options, or makes another
    /// [`Attempt`]. [`Event::Connected`] or [`Event::Closed`] follows.
    ///
    /// # Errors
    ///
    /// The address cannot be called, a rendezvous with it is under way already, or the endpoint is
    /// full.
    pub fn connect<'a>(
        &mut self,
        now: Instant,
        path: impl Into<PathId>,
        attempt: impl Into<Attempt<'a>>,
    ) -> Result<ConnectionId, ConnectError> {
        let (path, attempt) = (path.into(), attempt.into());
        if !path.is_callable() {
            return Err(ConnectError::InvalidAddress(path));
        }
        self.connections.check_room().map_err(ConnectError::TooManyConnections)?;
        attempt.begin(now, path, &mut self.chance, &mut self.connections)
    }

    /// Limits the number of callers at a time from now on, links of groups not counted: see
    /// [`EndpointConfig::max_callers`]. Established connections are not touched.
    pub fn limit_callers(&mut self, limit: Option<usize>) {
        self.callers.limit(limit);
    }

    /// Accepts a waiting caller: with the listener's configuration or another one, or as a link of
    /// a group ([`Acceptance::link`]).
    ///
    /// # Errors
    ///
    /// The caller is gone, does not fit the configuration or the group, or the endpoint is full. In
    /// the cases after the first, the caller gets a rejection.
    pub fn accept<'a>(
        &mut self,
        now: Instant,
        id: IncomingId,
        acceptance: impl Into<Acceptance<'a>>,
    ) -> Result<ConnectionId, AcceptError> {
        let Acceptance { config, membership } = acceptance.into();
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

    /// Hands out a connection, whose verbs the application calls at `now`; `None` for a connection
    /// that was released. When it is given back, the consequences of the verbs are dealt with.
    #[inline]
    pub fn connection(&mut self, now: Instant, id: ConnectionId) -> Option<ConnectionGuard<'_>> {
        self.connections.hand_out(now, id)
    }

    /// The connections, for reading.
    pub const fn connections(&self) -> &Connections {
        &self.connections
    }

    /// Frees the memory that tables keep for connections that were released. Useful after many of
    /// them.
    pub fn shrink(&mut self) {
        self.connections.shrink();
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
}

/// The earlier one of two times, of which one or both may be missing.
fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
