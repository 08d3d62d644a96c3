//! A QUIC endpoint of one UDP port, without the port.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use punctual_proto::WakeUp;
use punctual_units::Instant;
use quinn_proto::{
    ClientConfig, ConnectError as QuinnConnectError, ConnectionHandle, DatagramEvent, EcnCodepoint,
    EndpointEvent, Incoming, ServerConfig, crypto,
};
use thiserror::Error;

use crate::chance::Secrets;
use crate::clock::Clock;
use crate::config::{QuicEndpointConfig, TransportConfig};
use crate::connection::{Connection, ConnectionChange, QuicCloseReason, QuicInfo};
use crate::handshakes::{CallerDecision, QuicHandshakes};
use crate::initials::Initials;
use crate::tls::simulated::{InsecureSimulatedClient, InsecureSimulatedServer};
use crate::tls::{ClientTls, Fault, Protocol, ServerTls, TlsConfigError};

/// Answers of the endpoint itself that wait to be sent. More are dropped; the peers repeat.
const REPLIES: usize = 1_024;

/// Names a connection of one endpoint. Never used again for another connection.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ConnectionId {
    serial: u64,
    handle: usize,
}

impl ConnectionId {
    /// The number of the connection: 0 for the first one of its endpoint.
    pub const fn serial(self) -> u64 {
        self.serial
    }
}

/// An event of an endpoint.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Event {
    /// The handshake of a connection is complete, and the ends have agreed on this protocol.
    Established(ConnectionId, Protocol),
    /// Datagrams or messages can be read.
    Readable(ConnectionId),
    /// Datagrams of at most this many bytes fit the path from now on. Datagrams that are queued and
    /// longer can be taken by [`take_oversized`](QuicEndpoint::take_oversized).
    LargestDatagram(ConnectionId, usize),
    /// The peer has moved to another address.
    Moved(ConnectionId, SocketAddr),
    /// The connection has ended. Its ID is not valid any more.
    Closed(ConnectionId, QuicCloseReason),
}

/// UDP datagrams to send: the last `size` bytes of the caller's buffer, cut into datagrams of
/// `segment_size` bytes, the last one possibly shorter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct QuicTransmit {
    /// The destination.
    pub remote: SocketAddr,
    /// Bytes of all the datagrams together.
    pub size: usize,
    /// Bytes of each datagram but the last.
    pub segment_size: usize,
    /// The ECN codepoint of all the datagrams.
    pub ecn: Option<EcnCodepoint>,
}

/// A call that could not be begun.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum QuicConnectError {
    /// The address cannot be called.
    #[error("{0} cannot be called")]
    InvalidAddress(SocketAddr),
    /// The name is no DNS name or IP address.
    #[error("{0:?} is no name of a server")]
    InvalidName(String),
    /// The endpoint has as many connections as it may have.
    #[error("there are already {0} connections, as many as are allowed")]
    TooManyConnections(usize),
    /// The TLS configuration cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsConfigError),
}

/// A datagram or a message that could not be sent.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum QuicSendError {
    /// There is no such connection, or it has ended.
    #[error("the connection has ended")]
    Closed,
    /// The datagram is too long for the path, or the message for a stream.
    #[error("a message of {size} bytes is too long: {largest} is the most here")]
    TooLong {
        /// Bytes of the datagram.
        size: usize,
        /// Bytes of the largest datagram.
        largest: usize,
    },
}

/// A QUIC server, clients and their connections at one UDP port.
///
/// *Mutate, drain, sleep*: after any call that takes `&mut self`, drain
/// [`poll_transmit`](Self::poll_transmit) and [`poll_event`](Self::poll_event), then sleep until
/// [`poll_timeout`](Self::poll_timeout) or the next input. Instants never go back.
#[derive(Debug)]
pub struct QuicEndpoint {
    config: QuicEndpointConfig,
    quinn: quinn_proto::Endpoint,
    secrets: Secrets,
    clock: Clock,
    connections: BTreeMap<usize, Connection>,
    /// The limit on callers' first packets, while the endpoint listens.
    initials: Option<Initials>,
    handshakes: QuicHandshakes,
    next_serial: u64,
    /// Connections that may have packets to send.
    ready: VecDeque<usize>,
    timers: BTreeSet<(Instant, usize)>,
    replies: VecDeque<(SocketAddr, Vec<u8>)>,
    events: VecDeque<Event>,
    /// Packets of one connection, before they are appended to the caller's buffer.
    scratch: Vec<u8>,
}

impl QuicEndpoint {
    /// An endpoint that neither listens nor calls yet.
    pub fn new(config: QuicEndpointConfig) -> Self {
        let secrets = Secrets::new(config.seed);
        let ids = secrets.ids.clone();
        let mut quinn_config =
            quinn_proto::EndpointConfig::new(Arc::new(secrets.reset_key.clone()));
        quinn_config.cid_generator(move || Box::new(ids.clone()));
        quinn_config.rng_seed(Some(secrets.quinn_seed));
        Self {
            quinn: quinn_proto::Endpoint::new(Arc::new(quinn_config), None, true, None),
            clock: Clock::new(config.epoch),
            secrets,
            initials: None,
            handshakes: QuicHandshakes::new(config.retry_above),
            config,
            connections: BTreeMap::new(),
            next_serial: 0,
            ready: VecDeque::new(),
            timers: BTreeSet::new(),
            replies: VecDeque::new(),
            events: VecDeque::new(),
            scratch: Vec::new(),
        }
    }

    /// Accepts callers from now on; `None` stops. Connections are not touched.
    ///
    /// # Errors
    ///
    /// The certificate, its key or the authorities cannot be used.
    pub fn listen(&mut self, tls: Option<&ServerTls>) -> Result<(), TlsConfigError> {
        let crypto = match tls {
            Some(tls) => Some(Arc::new(tls.build()?) as Arc<dyn crypto::ServerConfig>),
            None => None,
        };
        self.listen_with(crypto);
        Ok(())
    }

    /// Accepts callers of a simulated network, without cryptography: see
    /// [`simulated`](crate::tls::simulated).
    pub fn listen_insecure_simulated(&mut self, tls: InsecureSimulatedServer) {
        self.listen_with(Some(Arc::new(tls)));
    }

    fn listen_with(&mut self, crypto: Option<Arc<dyn crypto::ServerConfig>>) {
        self.initials = crypto.is_some().then(Initials::default);
        let server = crypto.map(|crypto| {
            let token_key = Arc::new(self.secrets.token_key.clone());
            let mut server = ServerConfig::new(crypto, token_key);
            server
                .transport_config(self.config.transport.build())
                .time_source(Arc::new(self.clock.clone()))
                .max_incoming(REPLIES);
            Arc::new(server)
        });
        self.quinn.set_server_config(server);
    }

    /// Calls the server at `remote`, whose certificate has to be for `name`.
    /// [`Event::Established`] or [`Event::Closed`] follows.
    ///
    /// # Errors
    ///
    /// The address or the name is invalid, or the endpoint is full.
    pub fn connect(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        name: &str,
        tls: &ClientTls,
        transport: &TransportConfig,
    ) -> Result<ConnectionId, QuicConnectError> {
        let (crypto, fault) = tls.build()?;
        self.connect_with(now, remote, name, Arc::new(crypto), transport, Some(fault))
    }

    /// Calls a server in a simulated network, without cryptography: see
    /// [`simulated`](crate::tls::simulated).
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub fn connect_insecure_simulated(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        tls: InsecureSimulatedClient,
        transport: &TransportConfig,
    ) -> Result<ConnectionId, QuicConnectError> {
        self.connect_with(now, remote, "simulated", Arc::new(tls), transport, None)
    }

    fn connect_with(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        name: &str,
        crypto: Arc<dyn crypto::ClientConfig>,
        transport: &TransportConfig,
        fault: Option<Fault>,
    ) -> Result<ConnectionId, QuicConnectError> {
        if self.connections.len() >= self.config.max_connections {
            return Err(QuicConnectError::TooManyConnections(self.config.max_connections));
        }
        let mut client = ClientConfig::new(crypto);
        let ids = self.secrets.ids.clone();
        client.transport_config(transport.build());
        client.initial_dst_cid_provider(Arc::new(move || ids.next()));
        let at = self.clock.to_quinn(now);
        let (handle, quinn) =
            self.quinn.connect(at, client, remote, name).map_err(|error| match error {
                QuinnConnectError::InvalidServerName(name) => QuicConnectError::InvalidName(name),
                _ => QuicConnectError::InvalidAddress(remote),
            })?;
        Ok(self.insert(handle, quinn, transport, fault))
    }

    fn insert(
        &mut self,
        handle: ConnectionHandle,
        quinn: quinn_proto::Connection,
        transport: &TransportConfig,
        fault: Option<Fault>,
    ) -> ConnectionId {
        let id = ConnectionId { serial: self.next_serial, handle: handle.0 };
        self.next_serial += 1;
        self.connections.insert(handle.0, Connection::new(id, quinn, transport, fault));
        self.settle(handle.0);
        id
    }

    /// Takes in one UDP datagram from `remote`.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        ecn: Option<EcnCodepoint>,
        datagram: BytesMut,
    ) {
        if let Some(initials) = &mut self.initials
            && !initials.admits(now, remote, &datagram)
        {
            return;
        }
        let at = self.clock.to_quinn(now);
        let mut buffer = Vec::new();
        match self.quinn.handle(at, remote, None, ecn, datagram, &mut buffer) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(connection) = self.connections.get_mut(&handle.0) {
                    connection.quinn.handle_event(event);
                    self.settle(handle.0);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.handle_incoming(now, incoming),
            Some(DatagramEvent::Response(transmit)) => self.reply(transmit.destination, buffer),
            None => {}
        }
    }

    /// A caller has sent its first packet. While many handshakes are under way or have failed, it
    /// has to prove its address first, which costs this end no memory.
    fn handle_incoming(&mut self, now: Instant, incoming: Incoming) {
        let mut buffer = Vec::new();
        let remote = incoming.remote_address();
        if self.connections.len() >= self.config.max_connections {
            let _ = self.quinn.refuse(incoming, &mut buffer);
            self.reply(remote, buffer);
            return;
        }
        let is_proved = incoming.remote_address_validated();
        match self.handshakes.judge(now, remote, is_proved) {
            CallerDecision::Begin => {}
            CallerDecision::Prove => {
                if self.quinn.retry(incoming, &mut buffer).is_ok() {
                    self.reply(remote, buffer);
                }
                return;
            }
            CallerDecision::Ignore => return self.quinn.ignore(incoming),
        }
        let proved = is_proved.then_some(remote);
        let at = self.clock.to_quinn(now);
        match self.quinn.accept(incoming, at, &mut buffer, None) {
            Ok((handle, quinn)) => {
                let transport = self.config.transport;
                let id = self.insert(handle, quinn, &transport, None);
                let given_up = self.handshakes.begun(now, id.serial, id.handle, proved);
                given_up.into_iter().for_each(|handle| self.forget(handle));
            }
            Err(error) => {
                self.handshakes.refused(proved);
                if error.response.is_some() {
                    self.reply(remote, buffer);
                }
            }
        }
    }

    /// Gives up the handshake of a caller without a packet to it.
    fn forget(&mut self, handle: usize) {
        let Some(connection) = self.connections.remove(&handle) else { return };
        if let Some(at) = connection.timer {
            self.timers.remove(&(at, handle));
        }
        self.quinn.handle_event(ConnectionHandle(handle), EndpointEvent::drained());
        self.events.push_back(Event::Closed(connection.id, QuicCloseReason::TimedOut));
    }

    fn reply(&mut self, remote: SocketAddr, datagram: Vec<u8>) {
        if self.replies.len() < REPLIES {
            self.replies.push_back((remote, datagram));
        }
    }

    /// Handles the timers that are due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(at, handle)) = self.timers.first()
            && at <= now
        {
            self.timers.pop_first();
            if let Some(connection) = self.connections.get_mut(&handle) {
                connection.timer = None;
                connection.handle_timeout(now, &self.clock);
                self.settle(handle);
            }
        }
        while let Some(handle) = self.handshakes.take_overdue(now) {
            self.forget(handle);
        }
    }

    /// The next event, if any.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), or `poll_transmit`: now, while
    /// packets wait to be sent.
    pub fn poll_timeout(&self) -> WakeUp {
        if !self.ready.is_empty() || !self.replies.is_empty() {
            return WakeUp::Now;
        }
        let timer = self.timers.first().map(|&(at, _)| at);
        timer.into_iter().chain(self.handshakes.next_deadline()).min().into()
    }

    /// Appends up to `max_segments` UDP datagrams for one peer to `buffer`; `None` if there are
    /// none to send now. All have the same size, except the last, which may be shorter.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        max_segments: usize,
        buffer: &mut Vec<u8>,
    ) -> Option<QuicTransmit> {
        if let Some((remote, datagram)) = self.replies.pop_front() {
            buffer.extend_from_slice(&datagram);
            let size = datagram.len();
            return Some(QuicTransmit { remote, size, segment_size: size, ecn: None });
        }
        let at = self.clock.to_quinn(now);
        while let Some(&handle) = self.ready.front() {
            let Some(connection) = self.connections.get_mut(&handle) else {
                self.ready.pop_front();
                continue;
            };
            connection.hand_over(now);
            self.scratch.clear();
            if let Some(transmit) =
                connection.quinn.poll_transmit(at, max_segments.max(1), &mut self.scratch)
            {
                buffer.extend_from_slice(&self.scratch[..transmit.size]);
                return Some(QuicTransmit {
                    remote: transmit.destination,
                    size: transmit.size,
                    segment_size: transmit.segment_size.unwrap_or(transmit.size),
                    ecn: transmit.ecn,
                });
            }
            self.ready.pop_front();
            connection.is_queued = false;
            self.set_timer(handle);
        }
        None
    }

    /// Sends a datagram; it waits while the handshake is under way.
    ///
    /// # Errors
    ///
    /// The datagram is too long for the path, or the connection has ended.
    pub fn send_datagram(
        &mut self,
        id: ConnectionId,
        datagram: Bytes,
    ) -> Result<(), QuicSendError> {
        let connection = self.get_open(id)?;
        if let Some(largest) = connection.largest_datagram().filter(|&it| it < datagram.len()) {
            return Err(QuicSendError::TooLong { size: datagram.len(), largest });
        }
        connection.send_datagram(datagram);
        self.queue(id.handle);
        Ok(())
    }

    /// The next datagram that has arrived.
    pub fn recv_datagram(&mut self, id: ConnectionId) -> Option<Bytes> {
        self.get_mut(id)?.recv_datagram()
    }

    /// Sends a message on a unidirectional stream of its own: it arrives whole, and neither waits
    /// for other messages nor keeps its place among them.
    ///
    /// # Errors
    ///
    /// The connection has ended, or the message is longer than
    /// [`max_message`](TransportConfig::max_message).
    pub fn send_message(&mut self, id: ConnectionId, message: Bytes) -> Result<(), QuicSendError> {
        let largest = self.config.transport.max_message;
        let connection = self.get_open(id)?;
        if message.len() > largest {
            return Err(QuicSendError::TooLong { size: message.len(), largest });
        }
        connection.send_message(message);
        self.settle(id.handle);
        Ok(())
    }

    /// Messages that wait for the peer's flow control.
    pub fn unsent_messages(&self, id: ConnectionId) -> usize {
        self.get(id).map_or(0, Connection::unsent_messages)
    }

    /// The next message that has arrived whole.
    pub fn recv_message(&mut self, id: ConnectionId) -> Option<Bytes> {
        let message = self.get_mut(id)?.recv_message()?;
        // The peer may be told that there is room.
        self.queue(id.handle);
        Some(message)
    }

    /// Takes the datagrams that were queued when the path became too small for them
    /// ([`Event::LargestDatagram`]).
    pub fn take_oversized(&mut self, id: ConnectionId) -> Vec<Bytes> {
        self.get_mut(id).map(Connection::take_oversized).unwrap_or_default()
    }

    /// Closes a connection at once with a code and a reason for the peer. [`Event::Closed`]
    /// follows.
    pub fn close(&mut self, now: Instant, id: ConnectionId, code: u32, reason: &str) {
        let at = self.clock.to_quinn(now);
        if let Some(connection) = self.get_mut(id)
            && !connection.quinn.is_closed()
        {
            connection.close(at, code, reason);
            self.events.push_back(Event::Closed(id, QuicCloseReason::Local));
            self.settle(id.handle);
        }
    }

    /// The state of a connection; `None` after its end.
    pub fn info(&self, id: ConnectionId) -> Option<QuicInfo> {
        self.get(id).map(Connection::info)
    }

    /// Bytes of the largest datagram of a connection; `None` before it is established.
    pub fn largest_datagram(&self, id: ConnectionId) -> Option<usize> {
        self.get(id)?.largest_datagram()
    }

    /// The number of connections, closing ones included.
    pub fn connection_count(&self) -> usize {
        self.connections.len()
    }

    fn get(&self, id: ConnectionId) -> Option<&Connection> {
        self.connections.get(&id.handle).filter(|connection| connection.id == id)
    }

    fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.connections.get_mut(&id.handle).filter(|connection| connection.id == id)
    }

    /// A connection that has not been closed.
    fn get_open(&mut self, id: ConnectionId) -> Result<&mut Connection, QuicSendError> {
        let open = self.get_mut(id).filter(|connection| !connection.quinn.is_closed());
        open.ok_or(QuicSendError::Closed)
    }

    /// Follows each change of a connection: exchanges quinn's events between endpoint and
    /// connection, queues events for the application, and queues the connection for sending.
    fn settle(&mut self, handle: usize) {
        let Some(connection) = self.connections.get_mut(&handle) else { return };
        while let Some(event) = connection.quinn.poll_endpoint_events() {
            if let Some(event) = self.quinn.handle_event(ConnectionHandle(handle), event) {
                connection.quinn.handle_event(event);
            }
        }
        let id = connection.id;
        while let Some(progress) = connection.poll() {
            match progress {
                ConnectionChange::Established(_) => self.handshakes.completed(id.serial),
                ConnectionChange::Closed(_) => self.handshakes.ended(id.serial),
                _ => {}
            }
            self.events.push_back(match progress {
                ConnectionChange::Established(protocol) => Event::Established(id, protocol),
                ConnectionChange::Readable => Event::Readable(id),
                ConnectionChange::LargestDatagram(largest) => Event::LargestDatagram(id, largest),
                ConnectionChange::Moved(remote) => Event::Moved(id, remote),
                ConnectionChange::Closed(reason) => Event::Closed(id, reason),
            });
        }
        if connection.quinn.is_drained() {
            if let Some(at) = connection.timer.take() {
                self.timers.remove(&(at, handle));
            }
            self.handshakes.ended(id.serial);
            self.connections.remove(&handle);
            return;
        }
        self.queue(handle);
    }

    /// Queues a connection for [`poll_transmit`](Self::poll_transmit), which sets its timer when it
    /// has no more packets to send.
    fn queue(&mut self, handle: usize) {
        let Some(connection) = self.connections.get_mut(&handle) else { return };
        if !std::mem::replace(&mut connection.is_queued, true) {
            self.ready.push_back(handle);
        }
    }

    fn set_timer(&mut self, handle: usize) {
        let Some(connection) = self.connections.get_mut(&handle) else { return };
        let at = connection.next_timeout(&self.clock);
        if connection.timer != at {
            if let Some(before) = std::mem::replace(&mut connection.timer, at) {
                self.timers.remove(&(before, handle));
            }
            if let Some(at) = at {
                self.timers.insert((at, handle));
            }
        }
    }
}
