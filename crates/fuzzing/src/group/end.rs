use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use punctual_proto::{
    Config, ConnectionId, Endpoint, EndpointConfig, Event, Group, GroupKind, LinkId, SendOptions,
    SocketId,
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
    pub(super) group: Group,
    members: Vec<Member>,
    links: usize,
    /// Messages that were taken for sending.
    pub(super) sent: u32,
    /// The number of the message that is to come next, by what came and what was counted as lost.
    pub(super) next: u32,
    received: Vec<(Bytes, u32)>,
}

struct Member {
    link: LinkId,
    endpoint: usize,
    id: ConnectionId,
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
            group: Group::new(kind, Duration::from_millis(60), random, START),
            members: Vec::new(),
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
        let link = self.group.add_link(weight);
        let membership = self.group.membership(link);
        let called = self.endpoints[path].connect_link(now, LISTENER, config, &membership);
        match called {
            Ok(id) => self.members.push(Member { link, endpoint: path, id }),
            Err(_) => self.group.remove_link(now, link),
        }
    }

    pub(super) fn close_link(&mut self, now: Instant, number: usize) {
        if let Some(member) = self.members.get(number % self.members.len().max(1)) {
            self.endpoints[member.endpoint].close(now, member.id);
        }
    }

    pub(super) fn send(&mut self, now: Instant, first: u8) {
        self.drive(now);
        let mut payload = self.sent.to_be_bytes().to_vec();
        payload.resize(4 + usize::from(first) * 5, first);
        let sent = self.group.send(now, payload.into(), SendOptions::default());
        self.sent += u32::from(sent.is_ok());
        self.carry_out(now);
    }

    /// When something is due by itself.
    pub(super) fn next(&self) -> Option<Instant> {
        let timers = self.endpoints.iter().filter_map(Endpoint::poll_timeout);
        timers.chain(self.group.poll_timeout()).chain(self.group.next_delivery()).min()
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
            if self.group.poll_timeout().is_some_and(|at| at <= now) {
                self.drive(now);
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
                let link = self.group.add_link(offer.weight);
                let membership = self.group.membership(link);
                let endpoint = &mut self.endpoints[index];
                match endpoint.accept_link(now, incoming.id, None, &membership) {
                    Ok(id) => {
                        self.members.push(Member { link, endpoint: index, id });
                        self.stand(now, index, id);
                    }
                    Err(_) => self.group.remove_link(now, link),
                }
            }
            Event::Connected(id) => self.stand(now, index, *id),
            Event::Closed(id, _) => {
                self.receive(now);
                if let Some(link) = self.link_of(index, *id) {
                    self.group.link_down(now, link);
                }
            }
            _ => {}
        }
        self.drive(now);
    }

    fn stand(&mut self, now: Instant, index: usize, id: ConnectionId) {
        let terms = self.endpoints[index].link_terms(id);
        let Some((terms, link)) = terms.zip(self.link_of(index, id)) else { return };
        if self.group.link_up(now, link, &terms).is_err() {
            self.endpoints[index].close(now, id);
        }
    }

    /// The links that stand: the socket IDs of both ends.
    pub(super) fn standing(&self) -> Vec<(SocketId, SocketId)> {
        let up = |link| self.group.links().any(|(id, _, state)| id == link && state.is_up());
        let standing = self.members.iter().filter(|member| up(member.link));
        let infos = standing.filter_map(|it| self.endpoints[it.endpoint].info(it.id));
        infos.map(|info| (info.socket_id, info.peer_socket_id)).collect()
    }

    fn link_of(&self, index: usize, id: ConnectionId) -> Option<LinkId> {
        let mut members = self.members.iter();
        members.find(|it| (it.endpoint, it.id) == (index, id)).map(|it| it.link)
    }

    /// Tells the group how its links are, and carries out what it wants.
    fn drive(&mut self, now: Instant) {
        for Member { link, endpoint, id } in &self.members {
            if let Some(status) = self.endpoints[*endpoint].link_status(*id) {
                self.group.update(*link, status);
            }
            let lost = self.endpoints[*endpoint].take_link_losses(*id);
            self.group.handle_losses(now, *link, lost);
        }
        self.group.handle_timeout(now);
        self.carry_out(now);
    }

    fn carry_out(&mut self, now: Instant) {
        while let Some((link, action)) = self.group.poll_action() {
            let member = self.members.iter().find(|member| member.link == link);
            if let Some(Member { endpoint, id, .. }) = member {
                // A link without room misses the message.
                let _ = self.endpoints[*endpoint].apply(now, *id, action);
            }
        }
    }

    fn receive(&mut self, now: Instant) {
        let balances = self.group.kind() == GroupKind::Balance;
        for Member { link, endpoint, id } in &self.members {
            let endpoint = &mut self.endpoints[*endpoint];
            for message in endpoint.take_link_messages(*id) {
                self.group.handle_message(*link, message);
            }
            while let Ok(Some(message)) = endpoint.recv(now, *id) {
                if !balances {
                    self.group.handle_message(*link, message);
                }
            }
        }
        while let Some(message) = self.group.recv(now) {
            self.received.push((message.payload, message.lost_before));
        }
    }
}
