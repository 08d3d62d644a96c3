use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use punctual_proto::{
    Config, ConnectionId, Endpoint, EndpointConfig, Event, Group, GroupDriver, GroupKind,
    LinkState, LocalEndpoints, SendOptions, SocketId,
};
use punctual_units::Instant;

use crate::input::START;

/// Bytes on their way.
pub(super) type Datagram = Vec<u8>;

/// The listener's address.
pub(super) const LISTENER: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 9_000);
/// Connections that one end makes or takes: links that are called again and again.
const MOST_LINKS: usize = 40;
/// What a turn sends: every link may have everything to send again.
const MOST_AT_ONCE: usize = 4_096;

/// A caller's address.
pub(super) fn address(path: usize) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, 1 + path as u8], 9_000))
}

/// One end of a group.
pub(super) struct End {
    pub(super) endpoints: Vec<Endpoint>,
    driver: GroupDriver<(usize, ConnectionId)>,
    /// Connections of the links so far, those that have ended included.
    connections: Vec<(usize, ConnectionId)>,
    links: usize,
    /// Messages that were taken for sending.
    pub(super) sent: u32,
    /// The number of the message that is to come next, by what came and what was counted as lost.
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
        Self {
            endpoints,
            driver: GroupDriver::new(Group::new(kind, Duration::from_millis(60), random, START)),
            connections: Vec::new(),
            links: 0,
            sent: 0,
            next: 0,
            received: Vec::new(),
        }
    }

    pub(super) fn listen(&mut self, config: &Config) {
        self.endpoints[0].listen(Some(config.clone()));
    }

    pub(super) fn call(&mut self, now: Instant, path: usize, config: Config, weight: u16) {
        if self.links == MOST_LINKS {
            return;
        }
        self.links += 1;
        let Self { driver, endpoints, connections, .. } = self;
        let called = driver.add_link(now, weight, |membership| {
            let id = endpoints[path].connect_link(now, LISTENER, config, membership);
            id.map(|id| (path, id))
        });
        connections.extend(called.ok().and_then(|link| driver.link(link)));
    }

    pub(super) fn group(&self) -> &Group {
        self.driver.group()
    }

    pub(super) fn close_link(&mut self, now: Instant, number: usize) {
        if let Some(&(endpoint, id)) = self.connections.get(number % self.connections.len().max(1))
        {
            self.endpoints[endpoint].close(now, id);
        }
    }

    pub(super) fn send(&mut self, now: Instant, first: u8) {
        let mut payload = self.sent.to_be_bytes().to_vec();
        payload.resize(4 + usize::from(first) * 5, first);
        let mut endpoints = LocalEndpoints { now, endpoints: &mut self.endpoints };
        let sent = self.driver.send(&mut endpoints, payload.into(), SendOptions::default());
        self.sent += u32::from(sent.is_ok());
    }

    /// When something is due by itself.
    pub(super) fn next(&self) -> Option<Instant> {
        let timers = self.endpoints.iter().filter_map(Endpoint::poll_timeout);
        timers.chain(self.driver.poll_timeout()).min()
    }

    /// Runs timers, reads, and hands what there is to send to `path`, until nothing is left to do.
    pub(super) fn settle(&mut self, now: Instant, mut path: impl FnMut(usize, Datagram)) {
        let mut sent = 0;
        for _ in 0..10_000 {
            for index in 0..self.endpoints.len() {
                if self.endpoints[index].poll_timeout().is_some_and(|at| at <= now) {
                    self.endpoints[index].handle_timeout(now);
                }
                while let Some(event) = self.endpoints[index].poll_event() {
                    self.take(now, index, &event);
                }
            }
            self.receive(now);
            if self.group().poll_timeout().is_some_and(|at| at <= now) {
                self.update(now);
            }
            let mut buffer = Vec::new();
            for (index, endpoint) in self.endpoints.iter_mut().enumerate() {
                while let Some(transmit) = endpoint.poll_transmit(now, 1, &mut buffer) {
                    assert!(transmit.size <= 1_472, "a datagram too long");
                    sent += 1;
                    let seen = (0..8).find(|&seen| address(seen) == transmit.remote);
                    path(seen.unwrap_or(index), std::mem::take(&mut buffer));
                }
            }
            if self.next().is_none_or(|at| at > now) {
                assert!(sent <= MOST_AT_ONCE, "{sent} datagrams at once");
                return;
            }
        }
        panic!("the group does not come to rest");
    }

    /// Messages come in order, once, as they were sent, and what is missing is counted.
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
                let Some(offer) = &incoming.group else { return };
                let Self { driver, endpoints, connections, .. } = self;
                let accepted = driver.add_link(now, offer.weight, |membership| {
                    let id = endpoints[index].accept_link(now, incoming.id, None, membership);
                    id.map(|id| (index, id))
                });
                if let Some(&link) = accepted.ok().and_then(|link| driver.link(link)) {
                    connections.push(link);
                    self.link_up(now, link);
                }
            }
            Event::Connected(id) => self.link_up(now, (index, *id)),
            Event::Closed(id, _) => {
                self.receive(now);
                if let Some(link) = self.driver.find(|it| *it == (index, *id)) {
                    let mut endpoints = LocalEndpoints { now, endpoints: &mut self.endpoints };
                    self.driver.link_ended(&mut endpoints, link);
                }
            }
            _ => {}
        }
        self.update(now);
    }

    fn link_up(&mut self, now: Instant, connection: (usize, ConnectionId)) {
        let Some(link) = self.driver.find(|it| *it == connection) else { return };
        let mut endpoints = LocalEndpoints { now, endpoints: &mut self.endpoints };
        if self.driver.link_up(&mut endpoints, link).is_err() {
            let (index, id) = connection;
            self.endpoints[index].close(now, id);
        }
    }

    /// The established links: the socket IDs of both ends.
    pub(super) fn established(&self) -> Vec<(SocketId, SocketId)> {
        let is_up = |link| self.group().link_state(link).is_some_and(LinkState::is_up);
        let links = self.driver.links().filter(|&(link, _)| is_up(link));
        let infos = links.filter_map(|(_, &(endpoint, id))| self.endpoints[endpoint].info(id));
        infos.map(|info| (info.socket_id, info.peer_socket_id)).collect()
    }

    fn update(&mut self, now: Instant) {
        self.driver.update(&mut LocalEndpoints { now, endpoints: &mut self.endpoints });
    }

    fn receive(&mut self, now: Instant) {
        let mut endpoints = LocalEndpoints { now, endpoints: &mut self.endpoints };
        while let Some(message) = self.driver.recv(&mut endpoints) {
            self.received.push((message.payload, message.lost_before));
        }
        while self.driver.poll_drained().is_some() {}
    }
}
