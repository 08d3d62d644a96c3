//! Both ends of a group in virtual time from one seed: several callers, each with a port and two
//! modelled links, and one listener.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use punctual_netem::{Link, LinkConfig, Loss};
use punctual_proto::{
    CloseReason, Config, ConnectionId, Endpoint, Event, Group, GroupKind, Incoming, LinkId,
    LinkState, Message, MsgNo, SendOptions, Statistics,
};
use punctual_units::Instant;

use crate::group_end::GroupEnd;
use crate::node::{EPOCH, endpoint_config, number_of, numbered};
use crate::pair::Side;
use crate::record::Record;
use crate::steps::{Steps, datagrams, run_due, settle};

/// One end of a group, and what its application did and saw.
pub struct End {
    links: GroupEnd,
    /// The endpoint and connection of each link, also of the ended ones.
    pub members: BTreeMap<LinkId, (usize, ConnectionId)>,
    /// When each numbered message was submitted.
    pub sent: Vec<Instant>,
    /// Each message that was delivered, and when.
    pub received: Vec<(Instant, Message)>,
    /// The links that have ended, and why.
    pub closed: Vec<(LinkId, CloseReason)>,
    /// Callers that were shown to the application: not the ones that joined a group.
    pub accepted: u32,
    /// Number of times that a link announced room in its send buffer.
    pub writable: u32,
    /// Callers of another group, each with its endpoint, which wait until this group has ended.
    waiting: Vec<(usize, Incoming)>,
}

/// Both ends of a group.
pub struct TestBond {
    /// The time, on the clock of all endpoints.
    pub now: Instant,
    /// The end that calls, from one endpoint for each path.
    pub caller: End,
    /// The end that is called, at one endpoint.
    pub listener: End,
    there: Vec<Link<Vec<u8>>>,
    back: Vec<Link<Vec<u8>>>,
    /// The packets on each path.
    pub records: Vec<Record>,
    /// With which options the next link calls.
    pub config: Config,
    /// Where each path's caller is seen.
    pub addresses: Vec<SocketAddr>,
    /// Whether a caller may not fit.
    pub refuses: bool,
    seed: u64,
    restarts: u32,
    steps: Steps,
}

/// A caller's address.
pub fn address(path: usize) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, 1 + path as u8], 9_000))
}

fn listener_address() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 9_000))
}

impl End {
    fn new(kind: GroupKind, config: &Config, endpoints: Vec<Endpoint>, random: u64) -> Self {
        let group = Group::new(kind, config.group_min_stability(), random, EPOCH);
        Self {
            links: GroupEnd::new(group, endpoints),
            members: BTreeMap::new(),
            sent: Vec::new(),
            received: Vec::new(),
            closed: Vec::new(),
            accepted: 0,
            writable: 0,
            waiting: Vec::new(),
        }
    }

    /// The group.
    pub fn group(&self) -> &Group {
        self.links.group()
    }

    /// The endpoints: of the caller one for each path, of the listener one for all.
    pub fn endpoints(&mut self) -> &mut [Endpoint] {
        &mut self.links.endpoints
    }

    /// Submits the next numbered message; whether it was taken.
    pub fn send_next(&mut self, now: Instant) -> bool {
        let payload = numbered(self.sent.len() as u32);
        let sent = self.links.send(now, payload, SendOptions::default()).is_ok();
        if sent {
            self.sent.push(now);
        }
        sent
    }

    fn receive(&mut self, now: Instant) {
        self.received.extend(self.links.recv(now).into_iter().map(|message| (now, message)));
    }

    /// Accepts a caller as a link; whether it fits.
    fn accept(&mut self, now: Instant, place: usize, incoming: &Incoming) -> bool {
        let offer = incoming.group.expect("only links call");
        self.accepted += u32::from(self.group().peer_group() != Some(offer.peer_group));
        let Some((link, id)) = self.links.accept(now, place, incoming) else { return false };
        self.members.insert(link, (place, id));
        assert!(self.group().link_state(link).is_some_and(LinkState::is_up), "of this group");
        true
    }

    /// Whether a caller belongs to another group than this one.
    fn is_stranger(&self, incoming: &Incoming) -> bool {
        let own = self.group().peer_group();
        own.is_some() && own != incoming.group.map(|offer| offer.peer_group)
    }

    /// Serves the next group, if one waits and this one has ended, as an application does that
    /// serves one group at a time.
    fn serve_next(&mut self, now: Instant, config: &Config) {
        if self.waiting.is_empty() || self.links.driver().links().next().is_some() {
            return;
        }
        let kind = self.group().kind();
        let random = u64::from(self.group().id()).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.links.set_group(Group::new(kind, config.group_min_stability(), random, now));
        self.received.clear();
        self.sent.clear();
        for (place, incoming) in std::mem::take(&mut self.waiting) {
            if self.is_stranger(&incoming) {
                self.waiting.push((place, incoming));
            } else {
                // It may have given up.
                self.accept(now, place, &incoming);
            }
        }
    }

    fn handle_event(&mut self, now: Instant, place: usize, event: &Event) {
        match *event {
            Event::Readable(_) => self.receive(now),
            Event::Writable(_) => self.writable += 1,
            Event::LinkNews(_) => {
                self.receive(now);
                self.links.update(now);
            }
            Event::Closed(id, ref reason) => {
                let link = self.links.link_of(place, id).expect("a link");
                self.receive(now);
                self.links.handle_event(now, place, event);
                self.closed.push((link, reason.clone()));
            }
            Event::Connected(id) => {
                self.links.link_up(now, place, id).expect("of this group");
            }
            _ => {}
        }
    }
}

impl TestBond {
    /// Ends that have not called yet; a path has the same link both ways.
    pub fn new(seed: u64, kind: GroupKind, config: &Config, paths: &[LinkConfig]) -> Self {
        let endpoint = |host| Endpoint::new(endpoint_config(seed, host), EPOCH);
        let callers = (0..paths.len()).map(|path| endpoint(10 + path as u8)).collect();
        let link = |salt: u64| {
            let paths = paths.iter().enumerate();
            paths
                .map(|(path, link)| Link::new(link.clone(), seed ^ salt ^ (path as u64) << 48))
                .collect()
        };
        let config = config.clone().with_group_connect(true);
        let mut bond = Self {
            now: EPOCH,
            caller: End::new(kind, &config, callers, seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
            listener: End::new(kind, &config, vec![endpoint(1)], !seed),
            there: link(1 << 56),
            back: link(2 << 56),
            records: paths.iter().map(|_| Record::default()).collect(),
            config: config.clone(),
            addresses: (0..paths.len()).map(address).collect(),
            refuses: false,
            seed,
            restarts: 0,
            steps: Steps::default(),
        };
        bond.listener.links.endpoints[0].listen(Some(config));
        bond
    }

    /// Chooses the caller's numbers.
    pub fn with_random(mut self, random: u64) -> Self {
        let kind = self.caller.group().kind();
        let group = Group::new(kind, self.config.group_min_stability(), random, EPOCH);
        self.caller.links.set_group(group);
        self
    }

    /// Lets the messages of both ends begin with this number.
    pub fn count_from(mut self, first: MsgNo) -> Self {
        for end in [&mut self.caller, &mut self.listener] {
            let kind = end.group().kind();
            let random = u64::from(end.group().id()) << 32 | 77;
            let group = Group::new(kind, self.config.group_min_stability(), random, EPOCH);
            end.links.set_group(group.with_first_message(first));
        }
        self
    }

    /// Calls over a path with a weight.
    pub fn call(&mut self, path: usize, weight: u16) -> LinkId {
        let End { links, members, .. } = &mut self.caller;
        let call = links.call(self.now, path, listener_address(), self.config.clone(), weight);
        let (link, id) = call.expect("a callable address");
        members.insert(link, (path, id));
        link
    }

    /// The calling program is killed and started again, at other ports, by which its links are
    /// called.
    pub fn restart_caller(&mut self) {
        self.restarts += 1;
        let seed = self.seed.wrapping_add(u64::from(self.restarts) << 32);
        let endpoint = |path| Endpoint::new(endpoint_config(seed, 10 + path as u8), self.now);
        let endpoints = (0..self.addresses.len()).map(endpoint).collect();
        let kind = self.caller.group().kind();
        self.caller =
            End::new(kind, &self.config, endpoints, seed.wrapping_mul(0xD134_2543_DE82_EF95));
        for address in &mut self.addresses {
            address.set_port(address.port() + 1);
        }
    }

    /// Calls over every path with these weights and waits until all links are established.
    pub fn connect(&mut self, weights: &[u16]) -> Vec<LinkId> {
        let links = weights.iter().enumerate();
        let links: Vec<LinkId> = links.map(|(path, &weight)| self.call(path, weight)).collect();
        self.run_for(Duration::from_secs(2));
        for end in [&self.caller, &self.listener] {
            let up = end.group().links().filter(|(_, _, state)| state.is_up()).count();
            assert_eq!(up, weights.len(), "{:?}", self.caller.closed);
        }
        links
    }

    /// The state of a caller's link.
    pub fn state(&self, link: LinkId) -> LinkState {
        self.caller.group().link_state(link).unwrap_or(LinkState::Gone)
    }

    /// Statistics of a caller's link.
    pub fn link_statistics(&self, link: LinkId) -> Statistics {
        let (endpoint, id) = self.caller.members[&link];
        let connection = self.caller.links.endpoints[endpoint].connections().get(id);
        connection.expect("a connection").statistics(self.now)
    }

    /// One of the ends.
    pub fn end(&mut self, side: Side) -> &mut End {
        match side {
            Side::Caller => &mut self.caller,
            Side::Listener => &mut self.listener,
        }
    }

    /// Replaces the links of a path, both ways.
    pub fn set_path(&mut self, path: usize, link: &LinkConfig) {
        self.there[path].set_config(self.now, link.clone());
        self.back[path].set_config(self.now, link.clone());
    }

    /// Lets nothing through a path from now on.
    pub fn cut(&mut self, path: usize) {
        let link = self.there[path].config().clone().with_loss(Loss::All).expect("no share in it");
        self.set_path(path, &link);
    }

    /// Sends `count` numbered messages from `side`, one each `interval`.
    pub fn stream(&mut self, side: Side, count: u32, interval: Duration) {
        for _ in 0..count {
            let now = self.now;
            assert!(self.end(side).send_next(now), "the group does not take message");
            self.run_for(interval);
        }
    }

    /// Ends the stream from `side`, with the linger of its options.
    pub fn close(&mut self, side: Side) {
        let (now, until) = (self.now, self.now + self.config.linger());
        self.end(side).links.close(now, until);
    }

    /// Lets this time pass.
    pub fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while self.step_until(end) {}
    }

    /// The numbers of the messages that arrived from `side`, once each and in order.
    pub fn delivered(&mut self, side: Side) -> Vec<u32> {
        let received = &self.end(side.other()).received;
        let numbers: Vec<u32> =
            received.iter().map(|(_, message)| number_of(&message.payload)).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b), "doubled or out of order: {numbers:?}");
        numbers
    }

    /// Everything that was sent from `side` arrived, each message once, in order, when it was due.
    #[track_caller]
    pub fn assert_complete(&mut self, side: Side) {
        let sent = self.end(side).sent.len() as u32;
        let delivered = self.delivered(side);
        let missing: Vec<u32> =
            (0..sent).filter(|number| delivered.binary_search(number).is_err()).collect();
        assert!(missing.is_empty(), "not delivered, of {sent}: {missing:?}");
        for (at, message) in &self.end(side.other()).received {
            assert_eq!(*at, message.due, "{} is not delivered when due", message.seq);
        }
    }

    fn step_until(&mut self, end: Instant) -> bool {
        self.exchange();
        let links = self.there.iter().chain(&self.back).filter_map(Link::poll_timeout);
        let next = links
            .chain(self.caller.links.poll_timeout(self.now))
            .chain(self.listener.links.poll_timeout(self.now))
            .min();
        let goes_on = self.steps.advance(&mut self.now, next, end);
        if goes_on {
            self.exchange();
        }
        goes_on
    }

    fn exchange(&mut self) {
        settle(|| {
            let mut busy = self.arrive();
            for side in [Side::Caller, Side::Listener] {
                busy |= self.tell(side);
                busy |= self.transmit(side);
            }
            busy
        });
    }

    fn arrive(&mut self) -> bool {
        let mut busy = false;
        for path in 0..self.there.len() {
            while let Some(arrival) = self.there[path].recv(self.now) {
                let datagram = Bytes::from(arrival.packet);
                let remote = self.addresses[path];
                self.listener.links.endpoints[0].handle_datagram(self.now, remote, datagram);
                busy = true;
            }
            while let Some(arrival) = self.back[path].recv(self.now) {
                let datagram = Bytes::from(arrival.packet);
                let endpoint = &mut self.caller.links.endpoints[path];
                endpoint.handle_datagram(self.now, listener_address(), datagram);
                busy = true;
            }
        }
        busy
    }

    /// Runs the timers of an end and takes its events.
    fn tell(&mut self, side: Side) -> bool {
        let (now, refuses, config) = (self.now, self.refuses, self.config.clone());
        let end = self.end(side);
        let mut busy = false;
        for index in 0..end.links.endpoints.len() {
            run_due(&mut end.links.endpoints[index], now);
            while let Some(event) = end.links.endpoints[index].poll_event() {
                busy = true;
                if let Event::Incoming(incoming) = event {
                    if !refuses && end.is_stranger(&incoming) {
                        end.waiting.push((index, incoming));
                        continue;
                    }
                    let fits = end.accept(now, index, &incoming);
                    assert!(refuses || fits, "it fits");
                } else {
                    end.handle_event(now, index, &event);
                }
            }
        }
        if end.group().next_delivery().is_some_and(|at| at <= now) {
            end.receive(now);
        }
        if end.links.driver().poll_timeout().is_some_and(|at| at <= now) {
            end.links.update(now);
            busy = true;
        }
        end.serve_next(now, &config);
        busy
    }

    /// Puts an end's datagrams on their links. Returns whether there were any.
    fn transmit(&mut self, side: Side) -> bool {
        let now = self.now;
        let mut busy = false;
        for index in 0..self.end(side).links.endpoints.len() {
            for (to, datagram) in datagrams(&mut self.end(side).links.endpoints[index], now) {
                busy = true;
                let path = match side {
                    Side::Caller => index,
                    Side::Listener => {
                        let mut seen = self.addresses.iter();
                        // Nobody is at another address any more.
                        let Some(path) = seen.position(|&it| to == it) else { continue };
                        path
                    }
                };
                self.records[path].push(now, side, &datagram);
                let link = match side {
                    Side::Caller => &mut self.there[path],
                    Side::Listener => &mut self.back[path],
                };
                link.send(now, datagram);
            }
        }
        busy
    }
}

impl Drop for TestBond {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}, {:?} after the start", self.seed, self.now - EPOCH);
        }
    }
}
