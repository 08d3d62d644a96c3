use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use punctual_proto::{
    Config, Connection, ConnectionId, Endpoint, EndpointConfig, Event, Group, GroupKind, LinkState,
    SendOptions, SocketId,
};
use punctual_testbed::{GroupEnd, datagrams, run_due, settle};
use punctual_units::Instant;

use crate::input::START;

/// Bytes on their way.
pub(super) type Datagram = Vec<u8>;

/// The listener's address.
pub(super) const LISTENER: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 9_000);
/// Connections that one end makes or takes: links that are called again and again.
const MOST_LINKS: usize = 40;
/// The most that a turn sends: every link may have everything to retransmit.
const MOST_AT_ONCE: usize = 4_096;

/// A caller's address.
pub(super) fn address(path: usize) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, 1 + path as u8], 9_000))
}

/// One end of a group.
pub(super) struct End {
    links: GroupEnd,
    /// Connections of the links so far, the ended ones included.
    connections: Vec<(usize, ConnectionId)>,
    calls: usize,
    /// Messages that were taken for sending.
    pub(super) sent: u32,
    /// The number of the next message, by the received messages and those counted as lost.
    pub(super) next: u32,
    received: Vec<(Bytes, u32)>,
}

impl End {
    pub(super) fn caller(kind: GroupKind, paths: usize) -> Self {
        let endpoint =
            |path: usize| Endpoint::new(EndpointConfig::new([path as u8 + 2; 32]), START);
        Self::new(kind, (0..paths).map(endpoint).collect(), 0x7FFF_FFF0)
    }

    pub(super) fn listener(kind: GroupKind) -> Self {
        Self::new(kind, vec![Endpoint::new(EndpointConfig::new([1; 32]), START)], 77)
    }

    fn new(kind: GroupKind, endpoints: Vec<Endpoint>, random: u64) -> Self {
        let group = Group::new(kind, Duration::from_millis(60), random, START);
        Self {
            links: GroupEnd::new(group, endpoints),
            connections: Vec::new(),
            calls: 0,
            sent: 0,
            next: 0,
            received: Vec::new(),
        }
    }

    pub(super) fn listen(&mut self, config: &Config) {
        self.links.endpoints[0].listen(Some(config.clone()));
    }

    pub(super) fn call(&mut self, now: Instant, path: usize, config: Config, weight: u16) {
        if self.calls == MOST_LINKS {
            return;
        }
        self.calls += 1;
        let called = self.links.call(now, path, LISTENER, config, weight);
        self.connections.extend(called.map(|(_, id)| (path, id)));
    }

    pub(super) fn endpoint(&mut self, path: usize) -> &mut Endpoint {
        &mut self.links.endpoints[path]
    }

    pub(super) fn group(&self) -> &Group {
        self.links.group()
    }

    pub(super) fn close_link(&mut self, now: Instant, number: usize) {
        if let Some(&(endpoint, id)) = self.connections.get(number % self.connections.len().max(1))
        {
            self.links.endpoints[endpoint].connection(now, id).expect("not released").close();
        }
    }

    pub(super) fn send(&mut self, now: Instant, first: u8) {
        let mut payload = self.sent.to_be_bytes().to_vec();
        payload.resize(4 + usize::from(first) * 5, first);
        let sent = self.links.send(now, payload, SendOptions::default());
        self.sent += u32::from(sent.is_ok());
    }

    /// When something is due by itself, `now` if at once.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        self.links.poll_timeout(now)
    }

    /// Runs timers, reads, and hands outgoing datagrams to `path`, until nothing is left to do.
    pub(super) fn settle(&mut self, now: Instant, mut path: impl FnMut(usize, Datagram)) {
        let mut sent = 0;
        settle(|| {
            for index in 0..self.links.endpoints.len() {
                run_due(&mut self.links.endpoints[index], now);
                while let Some(event) = self.links.endpoints[index].poll_event() {
                    self.take(now, index, &event);
                }
            }
            self.receive(now);
            if self.group().poll_timeout().is_some_and(|at| at <= now) {
                self.links.update(now);
            }
            for (index, endpoint) in self.links.endpoints.iter_mut().enumerate() {
                for (to, datagram) in datagrams(endpoint, now) {
                    assert!(datagram.len() <= 1_472, "a datagram too long");
                    sent += 1;
                    let seen = (0..8).find(|&seen| to == address(seen));
                    path(seen.unwrap_or(index), datagram);
                }
            }
            self.next(now).is_some_and(|at| at <= now)
        });
        assert!(sent <= MOST_AT_ONCE, "{sent} datagrams at once");
    }

    /// Messages come in order, once, as they were sent, and missing ones are counted.
    pub(super) fn expect_what_was_sent(&mut self, sent: u32) {
        for (payload, lost) in self.received.drain(..) {
            let (number, rest) = payload.split_first_chunk().expect("a number");
            let number = u32::from_be_bytes(*number);
            assert!(number < sent, "a message that nobody sent");
            assert_eq!(self.next.checked_add(lost), Some(number), "doubled, or not counted");
            let fill = u8::try_from(rest.len() / 5).expect("no message is longer");
            assert!(rest.iter().all(|&byte| byte == fill), "changed on its way");
            self.next = number + 1;
        }
    }

    fn take(&mut self, now: Instant, index: usize, event: &Event) {
        match event {
            Event::Incoming(incoming) => {
                let accepted = self.links.accept(now, index, incoming);
                self.connections.extend(accepted.map(|(_, id)| (index, id)));
            }
            Event::Closed(..) => {
                self.receive(now);
                self.links.handle_event(now, index, event);
            }
            _ => self.links.handle_event(now, index, event),
        }
        self.links.update(now);
    }

    /// The established links: the socket IDs of both ends.
    pub(super) fn established(&self) -> Vec<(SocketId, SocketId)> {
        let is_up = |link| self.group().link_state(link).is_some_and(LinkState::is_up);
        let links = self.links.driver().links().filter(|&(link, _)| is_up(link));
        let connections = links.filter_map(|(_, &(endpoint, id))| {
            self.links.endpoints[endpoint].connections().get(id)
        });
        let infos = connections.map(Connection::info);
        infos.map(|info| (info.socket_id, info.peer_socket_id)).collect()
    }

    /// One of the connections, chosen by `number`: the path of the peer's packets and their
    /// destination.
    pub(super) fn a_link(&self, number: usize) -> Option<(usize, SocketId)> {
        let &(endpoint, id) = self.connections.get(number % self.connections.len().max(1))?;
        let info = self.links.endpoints[endpoint].connections().get(id)?.info();
        let path = (0..8).find(|&path| info.path == address(path)).unwrap_or(endpoint);
        Some((path, info.socket_id))
    }

    fn receive(&mut self, now: Instant) {
        let messages = self.links.recv(now).into_iter();
        self.received.extend(messages.map(|message| (message.payload, message.lost_before)));
    }
}
