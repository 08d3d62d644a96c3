//! One UDP port's worth of protocol.

use std::net::SocketAddr;

use bytes::Bytes;
use punctual_units::Instant;
use punctual_wire::RejectReason;

use crate::config::{Config, EndpointConfig};
use crate::error::{AcceptError, ConnectError, RecvError, SendError};
use crate::event::{ConnectionInfo, Event, IncomingId, Message, SendOptions};
use crate::statistics::Statistics;

/// Names a connection of one endpoint. Never reused for another connection.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ConnectionId(pub(crate) u64);

/// Datagrams to send: `size` bytes in the caller's buffer, cut into datagrams of `segment_size`
/// bytes, the last one possibly shorter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Transmit {
    /// Where to send them.
    pub remote: SocketAddr,
    /// Bytes of all the datagrams together.
    pub size: usize,
    /// Bytes of each datagram but the last.
    pub segment_size: usize,
}

/// One UDP port's worth of protocol: a listener, callers and their connections.
///
/// - in: [`handle_datagram`](Self::handle_datagram), [`handle_timeout`](Self::handle_timeout)
/// - out: [`poll_transmit`](Self::poll_transmit), [`poll_event`](Self::poll_event),
///   [`poll_timeout`](Self::poll_timeout)
/// - the application's verbs: `listen`, `connect`, `accept`, `reject`, `send`, `recv`, `close`,
///   `release`, `info`, `statistics`
///
/// Mutate, drain, sleep: after any call that takes `&mut self`, drain `poll_transmit` and
/// `poll_event`, then sleep until `poll_timeout` or the next input.
#[derive(Debug)]
pub struct Endpoint;

#[expect(clippy::todo, unused_variables, missing_docs, clippy::pedantic, reason = "contract only")]
impl Endpoint {
    pub fn new(config: EndpointConfig, now: Instant) -> Self {
        todo!()
    }
    /// Takes in one datagram from `remote`.
    pub fn handle_datagram(&mut self, now: Instant, remote: SocketAddr, datagram: Bytes) {
        todo!()
    }
    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        todo!()
    }
    /// Writes up to `max_segments` datagrams for one address to the end of `buffer`; `None` if
    /// nothing is to be sent now.
    pub fn poll_transmit(&mut self, now: Instant, max_segments: usize, buffer: &mut Vec<u8>) -> Option<Transmit> {
        todo!()
    }
    /// The next event, if any.
    pub fn poll_event(&mut self) -> Option<Event> {
        todo!()
    }
    /// When `handle_timeout` is due; `None` for never. May lie in the past.
    pub fn poll_timeout(&self) -> Option<Instant> {
        todo!()
    }
    /// Answers callers from now on with `config` as the default of accepted connections; `None` stops listening.
    pub fn listen(&mut self, config: Option<Config>) {
        todo!()
    }
    /// Calls the listener at `remote`; `Event::Connected` or `Event::Closed` follows.
    pub fn connect(&mut self, now: Instant, remote: SocketAddr, config: Config) -> Result<ConnectionId, ConnectError> {
        todo!()
    }
    /// Accepts a waiting caller, with the listener's configuration or another one.
    pub fn accept(&mut self, now: Instant, id: IncomingId, config: Option<Config>) -> Result<ConnectionId, AcceptError> {
        todo!()
    }
    /// Rejects a waiting caller.
    pub fn reject(&mut self, now: Instant, id: IncomingId, reason: RejectReason) {
        todo!()
    }
    /// Takes a message for sending.
    pub fn send(&mut self, now: Instant, id: ConnectionId, payload: Bytes, options: SendOptions) -> Result<(), SendError> {
        todo!()
    }
    /// The next message that is due at `now`, if any. After a close, what was received comes first.
    pub fn recv(&mut self, now: Instant, id: ConnectionId) -> Result<Option<Message>, RecvError> {
        todo!()
    }
    /// Closes a connection: after `linger` or when everything is acknowledged SHUTDOWN is sent, and
    /// `Event::Closed(_, CloseReason::Local)` follows. Received messages may still be read.
    pub fn close(&mut self, now: Instant, id: ConnectionId) {
        todo!()
    }
    /// Forgets a connection, closing it first if need be (then without linger). No event follows.
    pub fn release(&mut self, now: Instant, id: ConnectionId) {
        todo!()
    }
    /// What the ends of a connection agreed on; `None` for a connection that was released.
    pub fn info(&self, id: ConnectionId) -> Option<ConnectionInfo> {
        todo!()
    }
    /// A snapshot of a connection's statistics; `None` for a connection that was released.
    pub fn statistics(&self, now: Instant, id: ConnectionId) -> Option<Statistics> {
        todo!()
    }
    /// Connections held, in whatever state.
    pub fn connection_count(&self) -> usize {
        todo!()
    }
}
