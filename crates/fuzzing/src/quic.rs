//! A peer that has established a QUIC connection and sends whatever it likes in DATAGRAM frames and
//! on streams: an SRT listener over QUIC never panics, becomes idle, stores no more than its
//! configuration allows, and serves the next caller.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use punctual_proto::{Config, Event as Srt, PathId, SendOptions, SeqNo};
use punctual_quic::tls::simulated::{InsecureSimulatedClient, InsecureSimulatedServer};
use punctual_quic::{
    ConnectionId, Protocol, QuicEndpoint, QuicEndpointConfig, SrtEndpoint, SrtEvent,
    TransportConfig,
};
use punctual_testbed::settle;
use punctual_units::Instant;

use crate::forge::{self, FORGED};
use crate::input::{FuzzInput, START};
use crate::packet_cost::of_one_packet;

const PROTOCOLS: [Protocol; 2] = [Protocol::SrtWithStreams, Protocol::Srt];
const CONNECTIONS: usize = 8;
/// UDP datagrams that one step may cause: replies, acknowledgements, and probes of the MTU.
const MOST_DATAGRAMS: usize = 2_000;
const PAYLOAD: &[u8] = b"the next caller";

/// The first byte chooses the peer's protocol; the rest is what it does.
pub(crate) fn run(input: &[u8]) {
    let mut input = FuzzInput(input);
    let mut world = World::connected(PROTOCOLS[usize::from(input.byte() % 2)]);
    while let Some(step) = input.next() {
        let mut handle = || {
            world.step(step, &mut input);
            world.exchange();
        };
        if step >= FORGED {
            of_one_packet(handle);
        } else {
            handle();
        }
        world.check();
    }
    world.serve_the_next_caller();
}

struct World {
    now: Instant,
    listener: SrtEndpoint,
    /// The peer's QUIC, which is honest, and its connection.
    peer: QuicEndpoint,
    connection: ConnectionId,
    /// An SRT caller whose packets the peer sends, changed or not.
    caller: punctual_proto::Endpoint,
    call: punctual_proto::ConnectionId,
    /// The number of the caller's first packet.
    isn: SeqNo,
    /// The latest packet of the caller, to be changed.
    latest: Vec<u8>,
    accepted: Vec<punctual_proto::ConnectionId>,
}

fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, host], 443))
}

/// The path of the caller, whatever it is called at the listener.
const PATH: PathId = PathId::numbered(0);

fn quic(seed: u8) -> QuicEndpoint {
    QuicEndpoint::new(QuicEndpointConfig::new([seed; 32], epoch()))
}

fn srt(seed: u8) -> punctual_proto::Endpoint {
    let limits = punctual_proto::EndpointConfig {
        backlog: 4,
        max_connections: CONNECTIONS,
        ..punctual_proto::EndpointConfig::new([seed; 32])
    };
    punctual_proto::Endpoint::new(limits, START)
}

impl World {
    /// A listener, and a peer that has established a QUIC connection.
    fn connected(protocol: Protocol) -> Self {
        let mut listener = SrtEndpoint::new(quic(1), srt(2));
        let tls = InsecureSimulatedServer(PROTOCOLS.to_vec());
        listener.quic().listen_insecure_simulated(tls);
        listener.srt().listen(Some(Config::default()));
        let mut peer = quic(3);
        let tls = InsecureSimulatedClient(vec![protocol]);
        let transport = TransportConfig::default();
        let connection = peer.connect_insecure_simulated(START, address(2), tls, &transport);
        let connection = connection.expect("an address");
        let mut caller = srt(4);
        let call = caller.connect(START, PATH, Config::default()).expect("a path can be called");
        let mut world = Self {
            now: START,
            listener,
            peer,
            connection,
            caller,
            call,
            isn: SeqNo::default(),
            latest: Vec::new(),
            accepted: Vec::new(),
        };
        world.exchange();
        world
    }

    fn step(&mut self, step: u8, input: &mut FuzzInput<'_>) {
        match step % 8 {
            _ if step >= FORGED => self.forge(step, &mut FuzzInput(input.bytes())),
            0 => self.pass(Duration::from_micros(input.u16().into())),
            1 => self.pass(Duration::from_millis(input.u16().into())),
            2 => self.send(input.bytes().to_vec(), false),
            3 => self.send(input.bytes().to_vec(), true),
            4 | 5 => {
                self.take_from_the_caller();
                let mut packet = self.latest.clone();
                for _ in 0..input.byte() % 4 {
                    let place = usize::from(input.u16());
                    if let Some(byte) = packet.get_mut(place % 1_500) {
                        *byte ^= input.byte();
                    }
                }
                packet.truncate(packet.len().saturating_sub(usize::from(input.byte() % 8)));
                self.send(packet, step % 8 == 5);
            }
            6 => {
                // A stranger without a QUIC connection.
                let datagram = BytesMut::from(input.bytes());
                self.listener.handle_datagram(self.now, address(9), None, datagram);
            }
            _ => {
                let message = vec![step; usize::from(input.u16())];
                self.send(message, true);
            }
        }
    }

    /// Sends a packet of the connection with the borders of the number space in its fields.
    fn forge(&mut self, step: u8, input: &mut FuzzInput<'_>) {
        let Some(connection) = self.caller.connections().get(self.call) else { return };
        let info = connection.info();
        let packet = match step & 3 {
            0 => forge::data(input, info.peer_socket_id, self.isn),
            _ => forge::control(input, info.peer_socket_id, self.isn),
        };
        self.send(packet, step & 4 != 0);
    }

    fn send(&mut self, content: Vec<u8>, by_stream: bool) {
        // A datagram may be too long, and the connection may have ended.
        let _ = match by_stream {
            true => self.peer.send_message(self.connection, content.into()),
            false => self.peer.send_datagram(self.connection, content.into()),
        };
    }

    fn take_from_the_caller(&mut self) {
        self.caller.handle_timeout(self.now);
        let mut packets = Vec::new();
        if let Some(transmit) = self.caller.poll_transmit(self.now, 1, &mut packets) {
            self.latest = packets.split_off(packets.len() - transmit.size);
            self.isn = forge::next_number(&self.latest).unwrap_or(self.isn);
        }
        while self.caller.poll_event().is_some() {}
    }

    /// Lets time pass, with the timers of both ends.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        for _ in 0..64 {
            let next = [self.listener.poll_timeout(), self.peer.poll_timeout()]
                .into_iter()
                .filter_map(|wake_up| wake_up.instant(self.now))
                .min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            self.listener.handle_timeout(self.now);
            self.peer.handle_timeout(self.now);
            self.exchange();
        }
        self.now = end;
        self.listener.handle_timeout(self.now);
        self.peer.handle_timeout(self.now);
    }

    /// Carries all datagrams over, until both ends have none.
    fn exchange(&mut self) {
        let mut sent = 0;
        settle(|| {
            let now = self.now;
            let before = sent;
            let mut bytes = Vec::new();
            while let Some(transmit) = self.peer.poll_transmit(now, 1, &mut bytes) {
                let datagram = BytesMut::from(&bytes.split_off(bytes.len() - transmit.size)[..]);
                self.listener.handle_datagram(now, address(1), transmit.ecn, datagram);
                sent += 1;
            }
            self.take_events();
            while let Some(transmit) = self.listener.poll_transmit(now, 1, &mut bytes) {
                let datagram = BytesMut::from(&bytes.split_off(bytes.len() - transmit.size)[..]);
                sent += 1;
                if transmit.remote == address(1) {
                    self.peer.handle_datagram(now, address(2), transmit.ecn, datagram);
                }
            }
            while self.peer.poll_event().is_some() {}
            while let Some(packet) = self.peer.recv_datagram(self.connection) {
                self.caller.handle_datagram(now, PATH, packet);
            }
            while self.peer.recv_message(self.connection).is_some() {}
            assert!(sent < MOST_DATAGRAMS, "they never fall silent");
            sent > before
        });
    }

    fn take_events(&mut self) {
        while let Some(event) = self.listener.poll_event() {
            if let SrtEvent::Srt(Srt::Incoming(incoming)) = event {
                let accepted = self.listener.srt().accept(self.now, incoming.id, None);
                self.accepted.extend(accepted);
            }
        }
        for &id in &self.accepted {
            let connection = self.listener.srt().connection(self.now, id);
            let mut connection = connection.expect("not released");
            while let Ok(Some(_)) = connection.recv() {}
        }
    }

    fn check(&mut self) {
        assert!(self.listener.srt().connections().count() <= CONNECTIONS);
        assert!(self.listener.quic().connection_count() <= 2);
    }

    /// An honest caller gets through, and its message is delivered.
    fn serve_the_next_caller(mut self) {
        for &id in &self.accepted {
            let connection = self.listener.srt().connection(self.now, id);
            let mut connection = connection.expect("not released");
            connection.close();
            connection.release();
        }
        self.accepted.clear();
        // Callers that never completed their handshake are forgotten.
        self.pass(Duration::from_secs(10));
        let mut caller = SrtEndpoint::new(quic(5), srt(6));
        let tls = InsecureSimulatedClient(PROTOCOLS.to_vec());
        let transport = TransportConfig::default();
        let path = caller.open_insecure_simulated(self.now, address(2), tls, &transport);
        let path = path.expect("an address");
        let id = caller.srt().connect(self.now, path, Config::default()).expect("a path");
        let mut sent = false;
        for _ in 0..400 {
            self.carry(&mut caller);
            while let Some(event) = caller.poll_event() {
                if let SrtEvent::Srt(Srt::Connected(_)) = event {
                    let message = Bytes::from_static(PAYLOAD);
                    let options = SendOptions::default();
                    let mut connection =
                        caller.srt().connection(self.now, id).expect("not released");
                    connection.send(message, options).expect("it is connected");
                    sent = true;
                }
            }
            if sent && self.has_delivered() {
                return;
            }
            self.now += Duration::from_millis(10);
            self.listener.handle_timeout(self.now);
            caller.handle_timeout(self.now);
        }
        panic!("the next caller is not served: connected {sent}");
    }

    fn carry(&mut self, caller: &mut SrtEndpoint) {
        settle(|| {
            let (now, mut moved, mut bytes) = (self.now, false, Vec::new());
            while let Some(transmit) = caller.poll_transmit(now, 1, &mut bytes) {
                let datagram = BytesMut::from(&bytes.split_off(bytes.len() - transmit.size)[..]);
                self.listener.handle_datagram(now, address(5), transmit.ecn, datagram);
                moved = true;
            }
            while let Some(event) = self.listener.poll_event() {
                if let SrtEvent::Srt(Srt::Incoming(incoming)) = event {
                    let accepted = self.listener.srt().accept(now, incoming.id, None);
                    self.accepted.extend(accepted);
                }
            }
            while let Some(transmit) = self.listener.poll_transmit(now, 1, &mut bytes) {
                let datagram = BytesMut::from(&bytes.split_off(bytes.len() - transmit.size)[..]);
                if transmit.remote == address(5) {
                    caller.handle_datagram(now, address(2), transmit.ecn, datagram);
                    moved = true;
                }
            }
            moved
        });
    }

    fn has_delivered(&mut self) -> bool {
        let (now, srt) = (self.now, self.listener.srt());
        let mut received =
            self.accepted.iter().filter_map(|&id| srt.connection(now, id)?.recv().ok().flatten());
        received.any(|message| message.payload == PAYLOAD)
    }
}

#[expect(clippy::disallowed_methods, reason = "any instant serves as the epoch")]
fn epoch() -> std::time::Instant {
    std::time::Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unchanged_caller_is_accepted_by_datagrams_and_by_streams() {
        for step in [4, 5] {
            let mut world = World::connected(Protocol::SrtWithStreams);
            for _ in 0..10 {
                let mut input = FuzzInput(&[0, 0]);
                world.step(step, &mut input);
                world.exchange();
                world.pass(Duration::from_millis(50));
                world.exchange();
            }
            assert_eq!(world.accepted.len(), 1, "{step}");
            world.serve_the_next_caller();
        }
    }
}
