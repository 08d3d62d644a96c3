//! Everything together: hosts, links, streams and traffic on one clock.

mod captures;
mod engine;
mod groups;
mod links;
mod outcome;
#[cfg(feature = "quic")]
mod quic;
mod streams;
mod traffic;
mod watch;

use std::collections::BTreeMap;
use std::time::Duration;

use punctual_netem::{Link, LinkProfile, LinkStatistics};
use punctual_units::Instant;

pub use self::links::LinkSample;
use self::links::LinkSlot;
pub use self::watch::Passage;
use crate::agenda::{Agenda, Source};
use crate::capture::Capture;
use crate::error::WorldError;
use crate::host::{Host, HostConfig};
use crate::memory::Memory;
use crate::seeds::{Purpose, derive};
use crate::stream::{End, GroupLink, MIN_PAYLOAD, Stream, StreamConfig, Transport};
use crate::traffic::Flow;

/// Names a host of a world.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct HostId(u32);

/// Names a link of a world.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LinkId(u32);

/// Names a stream of a world.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct StreamId(u32);

/// Names cross traffic of a world.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct TrafficId(u32);

impl HostId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl LinkId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Hosts, links and what runs over them, in virtual time from one seed.
///
/// Build it with the `add_` functions and [`set_route`](Self::set_route), let it
/// [run](Self::run_for), and ask for the [outcome](Self::outcome) of each stream. More can be added
/// between runs.
///
/// Functions that take an ID panic if it is not this world's, and return an error if another
/// argument is invalid.
#[derive(Debug)]
pub struct World {
    seed: u64,
    now: Instant,
    agenda: Agenda,
    hosts: Vec<Host>,
    links: Vec<LinkSlot>,
    streams: Vec<Stream>,
    traffic: Vec<Flow>,
    /// Every route that was ever set, for packets that are on it.
    routes: Vec<Box<[u32]>>,
    route_of: BTreeMap<(u32, u32), u32>,
    captured: Capture,
    /// Datagrams that passed watched links.
    passages: Vec<Passage>,
    memory: Memory,
    /// Where endpoints write their datagrams.
    scratch: Vec<u8>,
    /// Hosts that have taken something in and are to be drained.
    touched: Vec<usize>,
}

impl World {
    /// An empty world. Everything that is left to chance in it comes from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            now: Instant::ORIGIN,
            agenda: Agenda::default(),
            hosts: Vec::new(),
            links: Vec::new(),
            streams: Vec::new(),
            traffic: Vec::new(),
            routes: Vec::new(),
            route_of: BTreeMap::new(),
            captured: Capture::default(),
            passages: Vec::new(),
            memory: Memory::default(),
            scratch: Vec::new(),
            touched: Vec::new(),
        }
    }

    /// Adds a host: one UDP port with an endpoint that listens and calls.
    pub fn add_host(&mut self, config: HostConfig) -> HostId {
        let index = self.hosts.len();
        self.hosts.push(Host::new(&config, self.seed, index));
        HostId(number(index))
    }

    /// Adds a link: one direction of one, whose timeline and trace begin with the world. Its seed
    /// follows from the world's and from how many links were added before, not from anything else
    /// in the world.
    pub fn add_link(&mut self, link: impl Into<LinkProfile>) -> LinkId {
        let index = self.links.len();
        let seed = derive(self.seed, Purpose::Link, index);
        let mut link = Link::new(link, seed);
        link.start(Instant::ORIGIN);
        self.links.push(LinkSlot::new(link));
        self.settle_link(index);
        LinkId(number(index))
    }

    /// Sends packets from one host to another over these links, one after the other, from now on.
    /// Any number of routes may share a link. Packets that are under way keep their route.
    ///
    /// # Errors
    ///
    /// A route has 1 to 255 links, between two hosts.
    pub fn set_route(
        &mut self,
        from: HostId,
        to: HostId,
        links: &[LinkId],
    ) -> Result<(), WorldError> {
        self.check_hosts(from, to)?;
        let route = self.add_route(links)?;
        self.route_of.insert((from.0, to.0), route);
        Ok(())
    }

    /// Gives a host another port, as a NAT does that has forgotten the old one: the host sends from
    /// there from now on, and packets for the old port are lost. Its endpoint does not learn of it.
    /// Calls that are not answered yet fail.
    pub fn rebind(&mut self, host: HostId, port: u16) {
        assert!(host.index() < self.hosts.len(), "{host:?} is not of this world");
        self.hosts[host.index()].address.set_port(port);
    }

    /// Adds a stream of messages.
    ///
    /// # Errors
    ///
    /// The hosts must differ and be joined by routes: both ways, or for bare UDP one way. Both ends
    /// must be of one transmission, which is the only one that the called host is called for; the
    /// hosts at an end of a group must have the same clock. Messages must have a size that can be
    /// checked and carried, the rate must be less than 1 Tb/s, and the period of a series must be
    /// longer than zero.
    pub fn add_stream(&mut self, config: StreamConfig) -> Result<StreamId, WorldError> {
        self.check_stream(&config)?;
        self.admit(&config)?;
        let index = self.streams.len();
        let route = self.route(config.from, config.to)?;
        let start = Instant::ORIGIN + config.start;
        let sample = config.series.map(|period| start + period);
        let lateness = self.hosts[config.from.index()].lateness;
        self.streams.push(Stream::new(config, route, lateness, self.seed, index));
        self.agenda.set(Source::Stream(index), Some(start.max(self.now)));
        self.agenda.set(Source::StreamSample(index), sample);
        Ok(StreamId(number(index)))
    }

    /// The world's time, which starts at the origin.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Lets `time` pass, and everything happen that is due in it.
    pub fn run_for(&mut self, time: Duration) {
        self.run_until(self.now + time);
    }

    /// The totals of a link so far.
    pub fn link_statistics(&self, link: LinkId) -> &LinkStatistics {
        self.links[link.index()].link.statistics()
    }

    /// Datagrams that a host threw away because their checksum was wrong.
    pub fn damaged_datagrams(&self, host: HostId) -> u64 {
        self.hosts[host.index()].damaged
    }

    fn check_stream(&self, config: &StreamConfig) -> Result<(), WorldError> {
        for GroupLink { from, to, .. } in config.links() {
            self.check_hosts(from, to)?;
            self.route(from, to)?;
            if config.transport.ends().is_some() {
                self.route(to, from)?;
            }
            for (host, first) in [(from, config.from), (to, config.to)] {
                if self.hosts[host.index()].clock != self.hosts[first.index()].clock {
                    return Err(WorldError::Clocks(first, host));
                }
            }
        }
        self.check_carriage(config)?;
        config.check_ends()?;
        let (payload, max) = (config.payload, config.max_payload());
        if !(MIN_PAYLOAD..=max).contains(&payload) {
            return Err(WorldError::Payload { payload, min: MIN_PAYLOAD, max });
        }
        if config.series.is_some_and(|period| period.is_zero()) {
            return Err(WorldError::ZeroPeriod);
        }
        config.rate.check()
    }

    /// Both hosts of each link must carry what the stream needs. A connection of bare QUIC is known
    /// by the address of its caller, so that two hosts have no second one.
    fn check_carriage(&self, config: &StreamConfig) -> Result<(), WorldError> {
        if matches!(config.transport, Transport::Udp) {
            return Ok(());
        }
        for GroupLink { from, to, .. } in config.links() {
            let kinds = [from, to].map(|host| self.hosts[host.index()].machine.kind());
            let is_srt = config.transport.ends().is_some();
            if kinds[0] != kinds[1] || kinds[0].carries_srt() != is_srt {
                return Err(WorldError::Carriage(from, to));
            }
            let joins = |stream: &&Stream| (stream.from, stream.to) == (from.index(), to.index());
            if !is_srt && self.streams.iter().any(|it| joins(&it) && !it.is_bare_udp()) {
                return Err(WorldError::SharedQuic(from, to));
            }
        }
        Ok(())
    }

    /// Lets the called hosts admit the stream's calls.
    fn admit(&mut self, config: &StreamConfig) -> Result<(), WorldError> {
        let Some((sender, _, caller)) = config.transport.ends() else { return Ok(()) };
        let called = |link: GroupLink| if caller == End::Sender { link.to } else { link.from };
        let mut called: Vec<HostId> = config.links().map(called).collect();
        called.dedup();
        let transmission = sender.transmission();
        let other = |host: &&HostId| {
            self.hosts[host.index()].transmission.is_some_and(|it| it != transmission)
        };
        if let Some(&host) = called.iter().find(other) {
            return Err(WorldError::Transmission(host));
        }
        for host in called {
            self.hosts[host.index()].admit(transmission);
        }
        Ok(())
    }

    fn check_hosts(&self, from: HostId, to: HostId) -> Result<(), WorldError> {
        for host in [from, to] {
            assert!(host.index() < self.hosts.len(), "{host:?} is not of this world");
        }
        if from == to { Err(WorldError::SameHost(from)) } else { Ok(()) }
    }

    fn add_route(&mut self, links: &[LinkId]) -> Result<u32, WorldError> {
        for link in links {
            assert!(link.index() < self.links.len(), "{link:?} is not of this world");
        }
        match links.len() {
            0 => return Err(WorldError::EmptyRoute),
            1..=MAX_HOPS => {}
            length => return Err(WorldError::LongRoute(length)),
        }
        self.routes.push(links.iter().map(|link| link.0).collect());
        Ok(number(self.routes.len() - 1))
    }

    fn route(&self, from: HostId, to: HostId) -> Result<u32, WorldError> {
        self.route_of.get(&(from.0, to.0)).copied().ok_or(WorldError::NoRoute { from, to })
    }
}

/// Links of a route at most: as many as a packet can count.
const MAX_HOPS: usize = 255;

fn number(index: usize) -> u32 {
    u32::try_from(index).expect("a world has fewer than four billion things")
}
