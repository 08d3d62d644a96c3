//! Two QUIC endpoints whose datagrams arrive after 10 ms.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::BytesMut;
use punctual_quic::{
    ClientTls, ConnectionId, Event, QuicCloseReason, QuicEndpoint, ServerTls, TransportConfig,
};
use punctual_testbed::Steps;
use punctual_units::Instant;

use crate::bed::{MS, address, quic_endpoint};

pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;
const TRANSIT: Duration = Duration::from_millis(10);

/// Decides which datagrams are lost, by the sending end and the content.
pub(crate) type Drops = Box<dyn FnMut(usize, &[u8]) -> bool>;

/// A client and a server.
pub(crate) struct Duo {
    pub(crate) now: Instant,
    pub(crate) ends: [QuicEndpoint; 2],
    pub(crate) addresses: [SocketAddr; 2],
    pub(crate) events: [Vec<Event>; 2],
    /// Datagrams in flight: arrival, receiving end, source, content.
    flying: VecDeque<(Instant, usize, SocketAddr, Vec<u8>)>,
    pub(crate) drops: Drops,
    steps: Steps,
}

impl Duo {
    pub(crate) fn new(transport: &TransportConfig) -> Self {
        Self {
            now: Instant::from_millis(1_000),
            ends: [1, 2].map(|seed| quic_endpoint(seed, *transport)),
            addresses: [address(1, 5_000), address(2, 443)],
            events: [Vec::new(), Vec::new()],
            flying: VecDeque::new(),
            drops: Box::new(|_, _| false),
            steps: Steps::default(),
        }
    }

    /// A client that calls a server with these TLS configurations; 2 s later.
    pub(crate) fn called(client: &ClientTls, server: &ServerTls, name: &str) -> Self {
        let mut duo = Self::new(&TransportConfig::default());
        duo.ends[SERVER].listen(Some(server)).expect("the identity can be used");
        duo.connect(client, name);
        duo.run_for(MS(2_000));
        duo
    }

    pub(crate) fn connect(&mut self, tls: &ClientTls, name: &str) -> ConnectionId {
        let (now, remote) = (self.now, self.addresses[SERVER]);
        let transport = TransportConfig::default();
        self.ends[CLIENT].connect(now, remote, name, tls, &transport).expect("it can be called")
    }

    /// The established connection of an end.
    pub(crate) fn id(&self, end: usize) -> ConnectionId {
        let mut ids = self.events[end].iter().filter_map(|event| match event {
            Event::Established(id, _) => Some(*id),
            _ => None,
        });
        ids.next().unwrap_or_else(|| panic!("no connection: {:?}", self.events[end]))
    }

    /// Why the connection of an end has ended.
    pub(crate) fn closed(&self, end: usize) -> Option<&QuicCloseReason> {
        self.events[end].iter().find_map(|event| match event {
            Event::Closed(_, reason) => Some(reason),
            _ => None,
        })
    }

    pub(crate) fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.turn();
            let timers = self.ends.iter().filter_map(|it| it.poll_timeout().instant(self.now));
            let arrival = self.flying.front().map(|&(at, ..)| at);
            let next = timers.chain(arrival).min();
            if !self.steps.advance(&mut self.now, next, end) {
                return;
            }
        }
    }

    fn turn(&mut self) {
        let now = self.now;
        while self.flying.front().is_some_and(|&(at, ..)| at <= now)
            && let Some((_, end, from, datagram)) = self.flying.pop_front()
        {
            self.ends[end].handle_datagram(now, from, None, BytesMut::from(&datagram[..]));
        }
        for side in [CLIENT, SERVER] {
            let end = &mut self.ends[side];
            end.handle_timeout(now);
            let mut buffer = Vec::new();
            while let Some(transmit) = end.poll_transmit(now, 10, &mut buffer) {
                for datagram in buffer.chunks(transmit.segment_size) {
                    if !(self.drops)(side, datagram) {
                        let (at, from) = (now + TRANSIT, self.addresses[side]);
                        self.flying.push_back((at, 1 - side, from, datagram.to_vec()));
                    }
                }
                buffer.clear();
            }
            self.events[side].extend(std::iter::from_fn(|| end.poll_event()));
        }
    }
}
