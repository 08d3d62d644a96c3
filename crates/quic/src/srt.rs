//! SRT over QUIC: one SRT packet in one DATAGRAM frame.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use punctual_proto::{PathId, PathProperties, WakeUp};
use punctual_units::Instant;

use crate::config::TransportConfig;
use crate::endpoint::{ConnectionId, Event, QuicConnectError, QuicEndpoint, QuicTransmit};
use crate::tls::simulated::InsecureSimulatedClient;
use crate::tls::{ClientTls, Protocol};
use crate::{EcnCodepoint, QuicCloseReason};

/// Bytes of QUIC around the payload of a DATAGRAM frame: first byte, connection ID, packet number
/// of two bytes, type and length of the frame, and the authentication tag.
const QUIC_OVERHEAD: usize = 1 + 8 + 2 + 3 + 16;
/// Bytes that a QUIC packet may have around the payload at most: a packet number of four bytes, and
/// nine for type and length of the frame.
const MOST_OVERHEAD: usize = 1 + 8 + 4 + 9 + 16;

/// The time after which a QUIC connection without an SRT connection is closed.
const UNUSED_TIMEOUT: Duration = Duration::from_secs(5);
/// The code with which it is closed.
const UNUSED: u32 = 1;

/// An event of SRT or of QUIC below it.
#[derive(Clone, Debug)]
pub enum SrtEvent {
    /// An event of the SRT machine.
    Srt(punctual_proto::Event),
    /// An event of a QUIC connection, except [`Event::Readable`].
    Quic(Event),
}

/// A QUIC endpoint and an SRT endpoint above it. The number of a QUIC connection is the path of its
/// SRT connections ([`path`](Self::path)).
///
/// The application uses the SRT endpoint by [`srt`](Self::srt) as over UDP. It must not call its
/// `poll_transmit`, `poll_event` and `handle_*` itself.
#[derive(Debug)]
pub struct SrtEndpoint {
    quic: QuicEndpoint,
    srt: punctual_proto::Endpoint,
    carriers: BTreeMap<PathId, Carrier>,
    /// The carriers to be looked at, by the time, which is the same for all after it is set. One
    /// that has ended or whose time was set again has an older entry as well.
    checks: VecDeque<(Instant, PathId)>,
    events: VecDeque<SrtEvent>,
    /// Whether QUIC had nothing to send when it was last polled.
    is_drained: bool,
}

/// A QUIC connection that carries SRT connections.
#[derive(Clone, Copy, Debug)]
struct Carrier {
    id: ConnectionId,
    remote: SocketAddr,
    /// The protocol, once the QUIC connection is established.
    protocol: Option<Protocol>,
    /// Bytes of the largest SRT packet that SRT knows of.
    agreed: usize,
    /// When to look whether an SRT connection uses it.
    check: Instant,
}

impl SrtEndpoint {
    /// Joins a QUIC endpoint and an SRT endpoint, which both have no connections yet.
    pub const fn new(quic: QuicEndpoint, srt: punctual_proto::Endpoint) -> Self {
        Self {
            quic,
            srt,
            carriers: BTreeMap::new(),
            checks: VecDeque::new(),
            events: VecDeque::new(),
            is_drained: true,
        }
    }

    /// The SRT endpoint, for the verbs of the application.
    pub const fn srt(&mut self) -> &mut punctual_proto::Endpoint {
        &mut self.srt
    }

    /// The SRT endpoint, for getters.
    pub const fn as_srt(&self) -> &punctual_proto::Endpoint {
        &self.srt
    }

    /// The QUIC endpoint, for getters.
    pub const fn as_quic(&self) -> &QuicEndpoint {
        &self.quic
    }

    /// The QUIC endpoint, for listening, closing and statistics.
    pub const fn quic(&mut self) -> &mut QuicEndpoint {
        &mut self.quic
    }

    /// The path of the SRT connections of a QUIC connection.
    pub const fn path(id: ConnectionId) -> PathId {
        PathId::numbered(id.serial())
    }

    /// Opens a QUIC connection to the server at `remote`, and returns the path of the SRT
    /// connections over it. An SRT call by this path may begin at once: its first packets wait for
    /// QUIC's handshake, and its timeout covers both handshakes.
    ///
    /// # Errors
    ///
    /// The address or the name is invalid, or the endpoint is full.
    pub fn open(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        name: &str,
        tls: &ClientTls,
        transport: &TransportConfig,
    ) -> Result<PathId, QuicConnectError> {
        let id = self.quic.connect(now, remote, name, tls, transport)?;
        Ok(self.add(now, id, remote, transport.initial_mtu))
    }

    /// The same in a simulated network, without cryptography: see
    /// [`simulated`](crate::tls::simulated).
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_insecure_simulated(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        tls: InsecureSimulatedClient,
        transport: &TransportConfig,
    ) -> Result<PathId, QuicConnectError> {
        let id = self.quic.connect_insecure_simulated(now, remote, tls, transport)?;
        Ok(self.add(now, id, remote, transport.initial_mtu))
    }

    fn add(&mut self, now: Instant, id: ConnectionId, remote: SocketAddr, mtu: u16) -> PathId {
        let path = Self::path(id);
        let agreed = usize::from(mtu).saturating_sub(MOST_OVERHEAD);
        let check = self.check_later(now, path);
        self.carriers.insert(path, Carrier { id, remote, protocol: None, agreed, check });
        self.srt.set_path(now, path, properties(remote, agreed));
        path
    }

    /// The path to the server at `remote` by a QUIC connection that this end has opened.
    pub fn path_to(&self, remote: SocketAddr) -> Option<PathId> {
        let mut opened = self.carriers.iter().filter(|(_, carrier)| carrier.remote == remote);
        opened.next().map(|(&path, _)| path)
    }

    /// The peer's address of a path; `None` if its QUIC connection has ended.
    pub fn remote(&self, path: PathId) -> Option<SocketAddr> {
        Some(self.carriers.get(&path)?.remote)
    }

    /// The QUIC connection of a path; `None` if it has ended.
    pub fn carrier(&self, path: PathId) -> Option<ConnectionId> {
        Some(self.carriers.get(&path)?.id)
    }

    /// Closes all QUIC connections at once. Returns whether there were any.
    pub fn close_all(&mut self, now: Instant) -> bool {
        let ids: Vec<_> = self.carriers.values().map(|carrier| carrier.id).collect();
        for &id in &ids {
            self.quic.close(now, id, UNUSED, "closed");
        }
        self.handle_quic_events(now);
        !ids.is_empty()
    }

    /// Takes in one UDP datagram from `remote`.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        ecn: Option<EcnCodepoint>,
        datagram: BytesMut,
    ) {
        self.quic.handle_datagram(now, remote, ecn, datagram);
        self.handle_quic_events(now);
    }

    /// Handles the timers that are due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.srt.handle_timeout(now);
        self.quic.handle_timeout(now);
        self.close_unused(now);
        self.handle_quic_events(now);
    }

    /// Whether [`poll_event`](Self::poll_event) has an event.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty() || self.srt.has_events()
    }

    /// The next event, if any.
    pub fn poll_event(&mut self) -> Option<SrtEvent> {
        self.events.pop_front().or_else(|| self.srt.poll_event().map(SrtEvent::Srt))
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), or `poll_transmit`: now, while
    /// packets wait to be sent.
    pub fn poll_timeout(&self) -> WakeUp {
        let check = self.checks.front().map(|&(at, _)| at);
        self.quic.poll_timeout().min(self.srt.poll_timeout()).min(check.into())
    }

    /// Appends up to `max_segments` UDP datagrams for one peer to `buffer`; `None` if there are
    /// none to send now. All have the same size, except the last, which may be shorter.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        max_segments: usize,
        buffer: &mut Vec<u8>,
    ) -> Option<QuicTransmit> {
        // New packets of SRT come first, so that QUIC's own frames travel with them.
        if self.is_drained {
            self.hand_srt_packets_over(now, max_segments);
        }
        loop {
            let transmit = self.quic.poll_transmit(now, max_segments, buffer);
            self.is_drained = transmit.is_none();
            if transmit.is_some() || !self.hand_srt_packets_over(now, max_segments) {
                return transmit;
            }
        }
    }

    /// Puts packets that SRT sends now into DATAGRAM frames. Packets that are too long for one are
    /// put into streams, if the peer reads them there. After `limit` packets QUIC sends first: its
    /// queue is for packets that congestion control delays, and must not overflow because of a
    /// burst that could be sent at once. Returns whether there were any packets.
    fn hand_srt_packets_over(&mut self, now: Instant, limit: usize) -> bool {
        let mut buffer = Vec::new();
        let mut handed_over = 0;
        while handed_over < limit
            && let Some(transmit) = self.srt.poll_transmit(now, limit, &mut buffer)
        {
            let mut packets = Bytes::from(std::mem::take(&mut buffer));
            let Some(carrier) = self.carriers.get(&transmit.path).copied() else { continue };
            while !packets.is_empty() {
                handed_over += 1;
                let packet = packets.split_to(transmit.segment_size.min(packets.len()));
                if self.quic.send_datagram(carrier.id, packet.clone()).is_err() {
                    self.send_by_stream(carrier, packet);
                }
            }
        }
        while let Some((path, packet)) = self.srt.poll_oversized() {
            if let Some(carrier) = self.carriers.get(&path).copied() {
                self.send_by_stream(carrier, packet.into());
            }
        }
        self.handle_quic_events(now);
        handed_over > 0
    }

    fn send_by_stream(&mut self, carrier: Carrier, packet: Bytes) {
        if carrier.protocol == Some(Protocol::SrtWithStreams) {
            // A connection that has ended needs no packets.
            let _ = self.quic.send_message(carrier.id, packet);
        }
    }

    fn handle_quic_events(&mut self, now: Instant) {
        while let Some(event) = self.quic.poll_event() {
            match &event {
                Event::Established(id, protocol) => self.handle_established(now, *id, *protocol),
                Event::Readable(id) => {
                    self.handle_received(now, *id);
                    continue;
                }
                Event::LargestDatagram(id, largest) => self.set_largest(now, *id, *largest),
                Event::Moved(id, remote) => {
                    let path = Self::path(*id);
                    if let Some(carrier) = self.carriers.get_mut(&path) {
                        carrier.remote = *remote;
                        if carrier.agreed > 0 {
                            self.srt.set_path(now, path, properties(*remote, carrier.agreed));
                        }
                    }
                }
                Event::Closed(id, reason) => self.handle_closed(now, *id, reason),
            }
            self.events.push_back(SrtEvent::Quic(event));
        }
    }

    fn handle_established(&mut self, now: Instant, id: ConnectionId, protocol: Protocol) {
        let Some(info) = self.quic.info(id) else { return };
        let (remote, protocol, path) = (info.remote, Some(protocol), Self::path(id));
        let check = self.check_later(now, path);
        self.carriers.insert(path, Carrier { id, remote, protocol, agreed: 0, check });
        if let Some(largest) = info.largest_datagram {
            self.set_largest(now, id, largest);
        }
    }

    /// The path carries datagrams of another size. If the peer takes packets from streams, a path
    /// that becomes smaller changes nothing for SRT: packets that do not fit take a stream.
    fn set_largest(&mut self, now: Instant, id: ConnectionId, largest: usize) {
        let path = Self::path(id);
        let Some(carrier) = self.carriers.get_mut(&path) else { return };
        let has_streams = carrier.protocol == Some(Protocol::SrtWithStreams);
        if !has_streams || largest > carrier.agreed {
            carrier.agreed = largest;
            self.srt.set_path(now, path, properties(carrier.remote, largest));
        }
        let carrier = *carrier;
        for packet in self.quic.take_oversized(id) {
            self.send_by_stream(carrier, packet);
        }
    }

    fn handle_received(&mut self, now: Instant, id: ConnectionId) {
        let path = Self::path(id);
        while let Some(packet) = self.quic.recv_datagram(id) {
            self.srt.handle_datagram(now, path, packet);
        }
        while let Some(packet) = self.quic.recv_message(id) {
            self.srt.handle_datagram(now, path, packet);
        }
    }

    fn handle_closed(&mut self, now: Instant, id: ConnectionId, reason: &QuicCloseReason) {
        let path = Self::path(id);
        self.carriers.remove(&path);
        self.srt.lose_path(now, path, &reason.to_string());
    }

    /// Notes when to look at a carrier; returns that time.
    fn check_later(&mut self, now: Instant, path: PathId) -> Instant {
        let check = now + UNUSED_TIMEOUT;
        self.checks.push_back((check, path));
        check
    }

    /// Closes the QUIC connections that no SRT connection has used for a while.
    fn close_unused(&mut self, now: Instant) {
        while let Some(&(at, path)) = self.checks.front()
            && at <= now
        {
            self.checks.pop_front();
            let Some(carrier) = self.carriers.get(&path).copied() else { continue };
            if carrier.check != at {
                continue;
            }
            let check = self.check_later(now, path);
            self.carriers.insert(path, Carrier { check, ..carrier });
            if !self.srt.uses_path(path) {
                self.quic.close(now, carrier.id, UNUSED, "no SRT connection");
            }
        }
    }
}

/// The properties of a path by which datagrams of up to `largest` bytes travel.
fn properties(remote: SocketAddr, largest: usize) -> PathProperties {
    let udp = if remote.is_ipv4() { 28 } else { 48 };
    PathProperties {
        largest_datagram: Some(largest),
        overhead: udp + QUIC_OVERHEAD,
        // QUIC itself follows a peer that moves.
        moves: false,
        host: Some(remote.ip()),
    }
}
