//! Hosts whose messages travel over QUIC without SRT.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use bytes::Bytes;
use punctual_proto::{CloseReason, SendError};
use punctual_quic::tls::simulated::{InsecureSimulatedClient, InsecureSimulatedServer};
use punctual_quic::{
    ConnectionId, Protocol, QuicConnectError, QuicEndpoint, QuicEndpointConfig, TransportConfig,
};
use punctual_units::Instant;

use crate::seeds::mix;

/// The protocols of a host that carries SRT over QUIC.
pub(crate) const SRT: [Protocol; 2] = [Protocol::SrtWithStreams, Protocol::Srt];

/// The longest message, bytes: a datagram that fits a UDP payload of 1452 bytes with the 38 bytes
/// that QUIC may need at most.
pub(crate) const MAX_PAYLOAD: usize = 1_414;

/// A QUIC endpoint, and the streams that its connections carry: one each.
#[derive(Debug)]
pub(crate) struct BareQuic {
    pub(crate) endpoint: QuicEndpoint,
    transport: TransportConfig,
    streams: BTreeMap<ConnectionId, usize>,
    /// The streams of the callers that this host waits for.
    expected: BTreeMap<SocketAddr, usize>,
}

impl BareQuic {
    /// A host that accepts calls.
    pub(crate) fn new(seed: [u8; 32], transport: TransportConfig) -> Self {
        let mut endpoint = quic_endpoint(seed, transport);
        endpoint.listen_insecure_simulated(InsecureSimulatedServer(vec![Protocol::Datagrams]));
        Self { endpoint, transport, streams: BTreeMap::new(), expected: BTreeMap::new() }
    }

    /// Calls a host for a stream.
    pub(crate) fn call(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        stream: usize,
    ) -> Result<ConnectionId, QuicConnectError> {
        let tls = InsecureSimulatedClient(vec![Protocol::Datagrams]);
        let id = self.endpoint.connect_insecure_simulated(now, remote, tls, &self.transport)?;
        self.streams.insert(id, stream);
        Ok(id)
    }

    /// The host at `caller` is going to call for this stream.
    pub(crate) fn expect(&mut self, caller: SocketAddr, stream: usize) {
        self.expected.insert(caller, stream);
    }

    /// The stream of a connection.
    pub(crate) fn stream(&self, id: ConnectionId) -> Option<usize> {
        self.streams.get(&id).copied()
    }

    /// The connection of a stream.
    pub(crate) fn connection(&self, stream: usize) -> Option<ConnectionId> {
        self.streams.iter().find(|&(_, &it)| it == stream).map(|(&id, _)| id)
    }

    /// A connection is established. Returns its stream.
    pub(crate) fn established(&mut self, id: ConnectionId) -> Option<usize> {
        if let Some(remote) = self.endpoint.info(id).map(|info| info.remote)
            && let Some(stream) = self.expected.remove(&remote)
        {
            self.streams.insert(id, stream);
        }
        self.stream(id)
    }

    /// Sends a message of a stream.
    pub(crate) fn send(&mut self, stream: usize, message: Bytes) -> Result<(), SendError> {
        let id = self.connection(stream).ok_or(SendError::NotConnected)?;
        let size = message.len();
        self.endpoint.send_datagram(id, message).map_err(|error| match error {
            punctual_quic::QuicSendError::TooLong { largest, .. } => {
                SendError::Size { size, max: largest }
            }
            error @ punctual_quic::QuicSendError::Closed => {
                SendError::Closed(CloseReason::PathLost(error.to_string().into()))
            }
        })
    }

    /// The next message that has arrived.
    pub(crate) fn recv(&mut self, id: ConnectionId) -> Option<Bytes> {
        self.endpoint.recv_datagram(id)
    }
}

/// A QUIC endpoint whose chance comes from `seed`, the seed of its host.
pub(crate) fn quic_endpoint(seed: [u8; 32], transport: TransportConfig) -> QuicEndpoint {
    let mut own = [0; 32];
    for (own, word) in own.chunks_exact_mut(8).zip(seed.chunks_exact(8)) {
        let word = word.try_into().map(u64::from_le_bytes).unwrap_or_default();
        own.copy_from_slice(&mix(word).to_le_bytes());
    }
    let mut config = QuicEndpointConfig::new(own, epoch());
    config.transport = transport;
    QuicEndpoint::new(config)
}

#[expect(clippy::disallowed_methods, reason = "any instant serves as the epoch")]
fn epoch() -> std::time::Instant {
    std::time::Instant::now()
}
