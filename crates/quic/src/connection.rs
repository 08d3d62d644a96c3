//! One QUIC connection of an endpoint.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use punctual_units::{Instant, one_line};
use quinn_proto::crypto::rustls::HandshakeData;
use quinn_proto::{ConnectionError, Dir, StreamEvent, VarInt};
use thiserror::Error;

use crate::clock::Clock;
use crate::config::TransportConfig;
use crate::congestion;
use crate::datagrams::DatagramQueue;
use crate::endpoint::ConnectionId;
use crate::messages::Messages;
use crate::path_probe::PathProbe;
use crate::tls::{Fault, Protocol, TlsFailure, failure_of};

/// The reason for which a QUIC connection ended.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum QuicCloseReason {
    /// This end closed it.
    #[error("closed by this end")]
    Local,
    /// The peer closed it with this code and reason.
    #[error("closed by the peer with code {code}{}", shown(.reason))]
    Peer {
        /// The code of the application.
        code: u64,
        /// The words of the peer.
        reason: String,
    },
    /// TLS failed.
    #[error(transparent)]
    Tls(TlsFailure),
    /// No packet came from the peer for the idle timeout, or no answer to the first packets.
    #[error("no answer from the other end")]
    TimedOut,
    /// The peer has forgotten the connection, after a restart for example.
    #[error("the other end does not know the connection any more")]
    Reset,
    /// The peer speaks other versions of QUIC.
    #[error("the other end speaks no version of QUIC that this end speaks")]
    Version,
    /// The server has too many connections.
    #[error("the server refuses further connections")]
    Refused,
    /// An end broke the rules of QUIC.
    #[error("an error of QUIC: {0}")]
    Transport(String),
}

fn shown(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {}", one_line(reason)) }
}

impl QuicCloseReason {
    /// The code `CONNECTION_REFUSED` (RFC 9000, section 20.1).
    const CONNECTION_REFUSED: u64 = 2;

    fn new(error: &ConnectionError, fault: Option<&Fault>) -> Self {
        if let Some(failure) = failure_of(error, fault) {
            return Self::Tls(failure);
        }
        match error {
            ConnectionError::LocallyClosed => Self::Local,
            ConnectionError::ApplicationClosed(close) => Self::Peer {
                code: close.error_code.into_inner(),
                reason: String::from_utf8_lossy(&close.reason).into_owned(),
            },
            ConnectionError::ConnectionClosed(close)
                if u64::from(close.error_code) == Self::CONNECTION_REFUSED =>
            {
                Self::Refused
            }
            ConnectionError::TimedOut => Self::TimedOut,
            ConnectionError::Reset => Self::Reset,
            ConnectionError::VersionMismatch => Self::Version,
            error => Self::Transport(one_line(&error.to_string()).into_owned()),
        }
    }
}

/// The state of a connection and QUIC's own statistics.
#[derive(Clone, Debug)]
pub struct QuicInfo {
    /// The peer's address.
    pub remote: SocketAddr,
    /// The protocol of the application; `None` before the handshake is complete.
    pub protocol: Option<Protocol>,
    /// Bytes of the largest datagram of the application; `None` before the handshake is complete.
    pub largest_datagram: Option<usize>,
    /// Bytes of the largest UDP payload on the present path.
    pub mtu: u16,
    /// QUIC's smoothed round-trip time.
    pub rtt: Duration,
    /// The congestion window, bytes; `None` without QUIC's congestion control.
    pub congestion_window: Option<u64>,
    /// QUIC packets sent and lost.
    pub packets_sent: u64,
    /// QUIC packets that were sent and declared lost.
    pub packets_lost: u64,
    /// Datagrams of the application that were sent.
    pub datagrams_sent: u64,
    /// Datagrams of the application that were dropped before they were sent, because the queue was
    /// full or the path had become too small.
    pub datagrams_dropped: u64,
    /// Messages that were sent on streams; over SRT, packets that were too long for a datagram.
    pub messages_sent: u64,
    /// Falls of the MTU because packets of its size were lost again and again.
    pub black_holes: u64,
}

/// A change of a connection, for its endpoint.
#[derive(Debug)]
pub(crate) enum ConnectionChange {
    /// The handshake is complete.
    Established(Protocol),
    /// Datagrams or messages have arrived.
    Readable,
    /// The largest datagram has changed.
    LargestDatagram(usize),
    /// The peer is at another address.
    Moved(SocketAddr),
    Closed(QuicCloseReason),
}

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) id: ConnectionId,
    pub(crate) quinn: quinn_proto::Connection,
    datagrams: DatagramQueue,
    messages: Messages,
    probe: PathProbe,
    fault: Option<Fault>,
    protocol: Option<Protocol>,
    largest_datagram: Option<usize>,
    /// Datagrams that were queued when the path became too small for them.
    oversized: Vec<Bytes>,
    remote: SocketAddr,
    /// The instant at which the endpoint wakes the connection up.
    pub(crate) timer: Option<Instant>,
    pub(crate) is_queued: bool,
}

impl Connection {
    pub(crate) fn new(
        id: ConnectionId,
        quinn: quinn_proto::Connection,
        config: &TransportConfig,
        fault: Option<Fault>,
    ) -> Self {
        Self {
            id,
            remote: quinn.remote_address(),
            quinn,
            datagrams: DatagramQueue::new(config.send_queue),
            messages: Messages::new(config.max_message, config.receive_queue),
            probe: PathProbe::default(),
            fault,
            protocol: None,
            largest_datagram: None,
            oversized: Vec::new(),
            timer: None,
            is_queued: false,
        }
    }

    pub(crate) const fn is_established(&self) -> bool {
        self.protocol.is_some()
    }

    /// Bytes of the largest datagram; `None` before the handshake is complete.
    pub(crate) const fn largest_datagram(&self) -> Option<usize> {
        self.largest_datagram
    }

    /// Queues a datagram that fits the path, or comes before the handshake is complete.
    pub(crate) fn send_datagram(&mut self, datagram: Bytes) {
        self.datagrams.push(datagram);
    }

    /// Hands datagrams over to quinn, as far as it has room.
    pub(crate) fn hand_over(&mut self, now: Instant) {
        if self.is_established() && !self.datagrams.is_empty() {
            self.datagrams.hand_over(&mut self.quinn);
            self.probe.note_sending(now, self.quinn.rtt());
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called.
    pub(crate) fn next_timeout(&mut self, clock: &Clock) -> Option<Instant> {
        let quinn = self.quinn.poll_timeout().map(|at| clock.instant(at));
        [quinn, self.probe.next()].into_iter().flatten().min()
    }

    /// Handles the timers that are due.
    pub(crate) fn handle_timeout(&mut self, now: Instant, clock: &Clock) {
        self.quinn.handle_timeout(clock.to_quinn(now));
        if self.probe.is_due(now) {
            let statistics = self.quinn.stats();
            let acknowledged = congestion::acknowledged(&self.quinn);
            let datagrams = statistics.frame_tx.datagram;
            // While no datagram is in quinn's queue, the packet has nothing else in it.
            if self.probe.check(now, acknowledged, datagrams, statistics.path.rtt) {
                self.quinn.ping();
            }
        }
    }

    pub(crate) fn recv_datagram(&mut self) -> Option<Bytes> {
        self.quinn.datagrams().recv()
    }

    pub(crate) fn send_message(&mut self, message: Bytes) {
        self.messages.send(&mut self.quinn, message);
    }

    pub(crate) fn unsent_messages(&self) -> usize {
        self.messages.unsent()
    }

    pub(crate) fn recv_message(&mut self) -> Option<Bytes> {
        self.messages.recv(&mut self.quinn)
    }

    /// Takes the datagrams that were queued when the path became too small for them.
    pub(crate) fn take_oversized(&mut self) -> Vec<Bytes> {
        std::mem::take(&mut self.oversized)
    }

    pub(crate) fn close(&mut self, now: std::time::Instant, code: u32, reason: &str) {
        self.quinn.close(now, VarInt::from_u32(code), Bytes::copy_from_slice(reason.as_bytes()));
    }

    /// Handles quinn's events. Returns the next change that the endpoint has to handle.
    pub(crate) fn poll(&mut self) -> Option<ConnectionChange> {
        while let Some(event) = self.quinn.poll() {
            match event {
                quinn_proto::Event::Connected => {
                    let Some(protocol) = self.negotiated() else { continue };
                    self.protocol = Some(protocol);
                    self.look_at_largest();
                    self.messages.open_streams(&mut self.quinn);
                    return Some(ConnectionChange::Established(protocol));
                }
                quinn_proto::Event::ConnectionLost { reason } => {
                    let reason = QuicCloseReason::new(&reason, self.fault.as_ref());
                    return Some(ConnectionChange::Closed(reason));
                }
                quinn_proto::Event::DatagramReceived => return Some(ConnectionChange::Readable),
                quinn_proto::Event::Stream(event) => {
                    if self.handle_stream_event(&event) {
                        return Some(ConnectionChange::Readable);
                    }
                }
                quinn_proto::Event::DatagramsUnblocked | quinn_proto::Event::HandshakeDataReady => {
                }
            }
        }
        let remote = self.quinn.remote_address();
        if std::mem::replace(&mut self.remote, remote) != remote {
            return Some(ConnectionChange::Moved(remote));
        }
        (self.is_established() && self.look_at_largest())
            .then(|| ConnectionChange::LargestDatagram(self.largest_datagram.unwrap_or_default()))
    }

    fn negotiated(&self) -> Option<Protocol> {
        let data = self.quinn.crypto_session().handshake_data()?;
        let data = data.downcast::<HandshakeData>().ok()?;
        Protocol::from_name(data.protocol.as_deref()?)
    }

    /// Takes over the size of the largest datagram. Returns whether it has changed.
    fn look_at_largest(&mut self) -> bool {
        let largest = self.quinn.datagrams().max_size();
        if self.largest_datagram == largest {
            return false;
        }
        self.largest_datagram = largest;
        self.oversized.extend(self.datagrams.take_oversized(largest.unwrap_or_default()));
        true
    }

    /// Returns whether a message may be complete.
    fn handle_stream_event(&mut self, event: &StreamEvent) -> bool {
        let is_readable =
            matches!(event, StreamEvent::Opened { .. } | StreamEvent::Readable { .. });
        let quinn = &mut self.quinn;
        match *event {
            StreamEvent::Opened { dir: Dir::Uni } => self.messages.accept(quinn),
            StreamEvent::Readable { id } => self.messages.read(quinn, id),
            StreamEvent::Writable { id } => self.messages.write(quinn, id),
            StreamEvent::Available { dir: Dir::Uni } => self.messages.open_streams(quinn),
            StreamEvent::Stopped { id, .. } => self.messages.give_up(quinn, id),
            StreamEvent::Opened { .. }
            | StreamEvent::Available { .. }
            | StreamEvent::Finished { .. } => {}
        }
        is_readable
    }

    pub(crate) fn info(&self) -> QuicInfo {
        let statistics = self.quinn.stats();
        QuicInfo {
            remote: self.remote,
            protocol: self.protocol,
            largest_datagram: self.largest_datagram,
            mtu: statistics.path.current_mtu,
            rtt: statistics.path.rtt,
            congestion_window: congestion::window(statistics.path.cwnd),
            packets_sent: statistics.path.sent_packets,
            packets_lost: statistics.path.lost_packets,
            datagrams_sent: statistics.frame_tx.datagram,
            datagrams_dropped: self.datagrams.dropped(statistics.frame_tx.datagram),
            messages_sent: self.messages.sent(),
            black_holes: statistics.path.black_holes_detected,
        }
    }
}

#[cfg(test)]
mod tests {
    use quinn_proto::{ApplicationClose, ConnectionClose, TransportErrorCode};

    use super::*;

    #[test]
    fn the_words_of_a_peer_stay_in_one_line() {
        let words = || Bytes::from_static(b"bye\n2026-01-01 ERROR all is lost\x1b[2J");
        let by_application = ApplicationClose { error_code: VarInt::from(7_u32), reason: words() };
        let (error_code, frame_type) = (TransportErrorCode::PROTOCOL_VIOLATION, None);
        let by_quic = ConnectionClose { error_code, frame_type, reason: words() };
        let of_tls =
            ConnectionClose { error_code: TransportErrorCode::crypto(80), ..by_quic.clone() };
        for error in [
            ConnectionError::ApplicationClosed(by_application),
            ConnectionError::ConnectionClosed(by_quic),
            ConnectionError::ConnectionClosed(of_tls),
        ] {
            let shown = QuicCloseReason::new(&error, None).to_string();
            assert!(!shown.contains(char::is_control), "{shown:?}");
            assert!(shown.contains("bye\\n2026"), "{shown:?}");
        }
    }
}
