//! Two ends that speak SRT over QUIC over a link in virtual time.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use punctual_netem::{Link, LinkConfig};
use punctual_proto::{Config, Event as Srt, Message, SendError, SendOptions, Statistics};
use punctual_quic::tls::simulated::{InsecureSimulatedClient, InsecureSimulatedServer};
use punctual_quic::{
    ConnectionId, Event, Protocol, QuicEndpoint, QuicEndpointConfig, SrtEndpoint, SrtEvent,
    TransportConfig,
};
use punctual_testbed::{Steps, settle};
use punctual_units::Instant;

pub(crate) const CALLER: usize = 0;
pub(crate) const LISTENER: usize = 1;
/// Bytes of the headers of IPv4 and UDP, which count for the link.
const HEADERS: i32 = 28;

pub(crate) const MS: fn(u64) -> Duration = Duration::from_millis;

/// One end: its address, its machine, and the events that the application has got.
pub(crate) struct End {
    pub(crate) address: SocketAddr,
    pub(crate) machine: SrtEndpoint,
    /// SRT connections in the order in which they began.
    pub(crate) srt: Vec<punctual_proto::ConnectionId>,
    pub(crate) quic: Vec<ConnectionId>,
    pub(crate) quic_events: Vec<Event>,
    pub(crate) is_connected: bool,
    /// The error that ended the stream.
    pub(crate) send_error: Option<SendError>,
    pub(crate) closed: Vec<punctual_proto::CloseReason>,
    /// Messages that are read, each with the time of its delivery.
    pub(crate) messages: Vec<(Instant, Message)>,
    /// Messages that are to be sent over the first connection: the time and the payload.
    pub(crate) stream: VecDeque<(Instant, Bytes)>,
}

/// Two ends and the link between them.
pub(crate) struct Bed {
    pub(crate) now: Instant,
    pub(crate) ends: [End; 2],
    /// By the sending end.
    pub(crate) links: [Link<Vec<u8>>; 2],
    /// Bytes of each UDP datagram that was sent, by the sending end.
    pub(crate) sent: [Vec<Vec<u8>>; 2],
    /// Datagrams of the listener to strangers.
    pub(crate) to_strangers: Vec<(SocketAddr, Vec<u8>)>,
    steps: Steps,
}

pub(crate) fn quic_endpoint(seed: u64, transport: TransportConfig) -> QuicEndpoint {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut config = QuicEndpointConfig::new(bytes, epoch());
    config.transport = transport;
    QuicEndpoint::new(config)
}

#[expect(clippy::disallowed_methods, reason = "any instant serves as the epoch")]
pub(crate) fn epoch() -> std::time::Instant {
    std::time::Instant::now()
}

pub(crate) fn address(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, host], port))
}

impl Bed {
    /// Two ends with the options `transport`; the link is the same in both directions.
    pub(crate) fn new(seed: u64, link: &LinkConfig, transport: &TransportConfig) -> Self {
        let now = Instant::from_millis(1_000);
        let ends = [1, 2]
            .map(|host| End::new(now, seed * 100 + u64::from(host), address(host, 443), transport));
        let link = LinkConfig { overhead: HEADERS, ..link.clone() };
        let links = [1, 2].map(|direction| Link::new(link.clone(), seed * 10 + direction));
        let sent = [Vec::new(), Vec::new()];
        Self { now, ends, links, sent, to_strangers: Vec::new(), steps: Steps::default() }
    }

    /// The calling program is killed and started again, at another port.
    pub(crate) fn restart_caller(&mut self, seed: u64) {
        let mut address = self.ends[CALLER].address;
        address.set_port(address.port() + 1);
        self.ends[CALLER] = End::new(self.now, seed, address, &TransportConfig::default());
    }

    /// Lets the listener listen for SRT over these protocols.
    pub(crate) fn listen(&mut self, config: Config, protocols: &[Protocol]) {
        let machine = &mut self.ends[LISTENER].machine;
        machine.quic().listen_insecure_simulated(InsecureSimulatedServer(protocols.to_vec()));
        machine.srt().listen(Some(config));
    }

    /// Begins a call with these protocols.
    pub(crate) fn call(
        &mut self,
        config: Config,
        protocols: &[Protocol],
        transport: &TransportConfig,
    ) {
        let remote = self.ends[LISTENER].address;
        let tls = InsecureSimulatedClient(protocols.to_vec());
        let end = &mut self.ends[CALLER];
        let path = end.machine.open_insecure_simulated(self.now, remote, tls, transport);
        let path = path.expect("it can be called");
        let call = end.machine.srt().connect(self.now, path, config);
        end.srt.push(call.expect("the path can be called"));
        end.quic.extend(end.machine.carrier(path));
    }

    /// A bed whose ends are connected, with both kinds of carriage for SRT packets.
    pub(crate) fn connected(seed: u64, link: &LinkConfig, config: &Config) -> Self {
        let transport = TransportConfig::default();
        let mut bed = Self::new(seed, link, &transport);
        bed.listen(config.clone(), &[Protocol::SrtWithStreams, Protocol::Srt]);
        bed.call(config.clone(), &[Protocol::SrtWithStreams, Protocol::Srt], &transport);
        for _ in 0..100 {
            bed.run_for(MS(100));
            if bed.ends[CALLER].is_connected {
                break;
            }
        }
        assert_eq!((bed.ends[CALLER].srt.len(), bed.ends[LISTENER].srt.len()), (1, 1));
        bed
    }

    /// Sends `count` messages of `size` bytes, one each `interval`, over the caller's connection.
    pub(crate) fn stream(&mut self, count: u64, size: usize, interval: Duration) {
        let mut at = self.now;
        for number in 0..count {
            let mut payload = number.to_be_bytes().to_vec();
            payload.resize(size, 0x47);
            self.ends[CALLER].stream.push_back((at, payload.into()));
            at += interval;
        }
    }

    pub(crate) fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.turn();
            let mut next: Vec<Instant> = Vec::new();
            for end in &self.ends {
                next.extend(end.machine.poll_timeout().instant(self.now));
                next.extend(end.stream.front().map(|&(at, _)| at));
            }
            next.extend(self.links.iter().filter_map(Link::poll_timeout));
            if !self.steps.advance(&mut self.now, next.into_iter().min(), end) {
                break;
            }
        }
        self.turn();
    }

    /// Does all that is to be done at this instant.
    fn turn(&mut self) {
        settle(|| {
            let mut acted = false;
            for side in [CALLER, LISTENER] {
                acted |= self.receive(side);
                acted |= self.drive(side);
            }
            acted
        });
    }

    /// The listener gets a datagram of a stranger.
    pub(crate) fn arrives_from(&mut self, stranger: SocketAddr, datagram: &[u8]) {
        let machine = &mut self.ends[LISTENER].machine;
        machine.handle_datagram(self.now, stranger, None, BytesMut::from(datagram));
    }

    fn receive(&mut self, side: usize) -> bool {
        let other = 1 - side;
        let from = self.ends[other].address;
        let mut acted = false;
        while let Some(arrival) = self.links[other].recv(self.now) {
            let datagram = BytesMut::from(&arrival.packet[..]);
            self.ends[side].machine.handle_datagram(self.now, from, None, datagram);
            acted = true;
        }
        acted
    }

    fn drive(&mut self, side: usize) -> bool {
        let now = self.now;
        let peer = self.ends[1 - side].address;
        let end = &mut self.ends[side];
        if end.machine.poll_timeout().instant(now).is_some_and(|at| at <= now) {
            end.machine.handle_timeout(now);
        }
        let mut acted = end.submit(now);
        while let Some(event) = end.machine.poll_event() {
            end.handle(now, event);
            acted = true;
        }
        acted |= end.read(now);
        let mut buffer = Vec::new();
        while let Some(transmit) = end.machine.poll_transmit(now, 10, &mut buffer) {
            for datagram in buffer.chunks(transmit.segment_size) {
                if transmit.remote != peer {
                    self.to_strangers.push((transmit.remote, datagram.to_vec()));
                    continue;
                }
                self.sent[side].push(datagram.to_vec());
                self.links[side].send(now, datagram.to_vec());
            }
            buffer.clear();
            acted = true;
        }
        acted
    }

    /// The numbers of the messages that the listener has read.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        let number =
            |payload: &Bytes| payload.first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
        self.ends[LISTENER].messages.iter().filter_map(|(_, it)| number(&it.payload)).collect()
    }

    /// The statistics of an end's first connection.
    pub(crate) fn statistics(&mut self, side: usize) -> Statistics {
        let (now, end) = (self.now, &mut self.ends[side]);
        let id = end.srt[0];
        end.machine.srt().connections().get(id).expect("it was not released").statistics(now)
    }
}

impl End {
    /// An end that has not called or listened yet.
    fn new(now: Instant, seed: u64, address: SocketAddr, transport: &TransportConfig) -> Self {
        let mut srt = [0; 32];
        srt[..8].copy_from_slice(&(seed + 50).to_le_bytes());
        let srt = punctual_proto::Endpoint::new(punctual_proto::EndpointConfig::new(srt), now);
        Self {
            address,
            machine: SrtEndpoint::new(quic_endpoint(seed, *transport), srt),
            srt: Vec::new(),
            quic: Vec::new(),
            quic_events: Vec::new(),
            is_connected: false,
            send_error: None,
            closed: Vec::new(),
            messages: Vec::new(),
            stream: VecDeque::new(),
        }
    }

    fn submit(&mut self, now: Instant) -> bool {
        let mut acted = false;
        while let Some((at, payload)) = self.stream.front().cloned()
            && at <= now
        {
            let id = self.srt[0];
            let mut connection = self.machine.srt().connection(now, id).expect("not released");
            let sent = connection.send(payload, SendOptions::default());
            self.stream.pop_front();
            if let Err(error) = sent {
                self.send_error = Some(error);
                self.stream.clear();
            }
            acted = true;
        }
        acted
    }

    fn handle(&mut self, now: Instant, event: SrtEvent) {
        match event {
            SrtEvent::Srt(Srt::Incoming(incoming)) => {
                let id = self.machine.srt().accept(now, incoming.id, None);
                self.srt.push(id.expect("the caller fits"));
            }
            SrtEvent::Srt(Srt::Closed(_, reason)) => self.closed.push(reason),
            SrtEvent::Srt(Srt::Connected(_)) => self.is_connected = true,
            SrtEvent::Srt(_) => {}
            SrtEvent::Quic(event) => {
                if let Event::Established(id, _) = event
                    && !self.quic.contains(&id)
                {
                    self.quic.push(id);
                }
                self.quic_events.push(event);
            }
        }
    }

    fn read(&mut self, now: Instant) -> bool {
        let before = self.messages.len();
        for id in self.srt.clone() {
            let mut connection = self.machine.srt().connection(now, id).expect("not released");
            while let Ok(Some(message)) = connection.recv() {
                self.messages.push((now, message));
            }
        }
        self.messages.len() > before
    }
}
