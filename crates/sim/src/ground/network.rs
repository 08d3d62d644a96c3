//! The links of a world, the routes over them, and the records of what passed.

use std::collections::BTreeMap;
use std::time::Duration;

use punctual_netem::{Arrival, Link, LinkConfig, LinkEnd, LinkProfile};
use punctual_units::Instant;

use super::links::{LinkSlot, Passage};
use super::timetable::Timetable;
use crate::agenda::Source;
use crate::capture::Capture;
use crate::error::WorldError;
use crate::ids::{HostId, LinkId, number};
use crate::packet::IpPacket;

/// All links, and the packets on them.
#[derive(Debug, Default)]
pub(crate) struct Network {
    links: Vec<LinkSlot>,
    /// Every route that was ever set, for packets that are on it.
    routes: Vec<Box<[u32]>>,
    route_of: BTreeMap<(u32, u32), u32>,
    captured: Capture,
    /// Datagrams that passed watched links.
    passages: Vec<Passage>,
}

impl Network {
    /// The number of links.
    pub(crate) fn len(&self) -> usize {
        self.links.len()
    }

    /// A link and its records.
    pub(crate) fn link(&self, link: LinkId) -> &LinkSlot {
        &self.links[link.index()]
    }

    /// Adds a link, whose timeline and trace begin with the world.
    pub(crate) fn add_link(
        &mut self,
        time: &mut Timetable,
        link: LinkProfile,
        seed: u64,
    ) -> LinkId {
        let index = self.links.len();
        let mut link = Link::new(link, seed);
        link.start(Instant::ORIGIN);
        self.links.push(LinkSlot::new(link));
        self.settle(time, index);
        LinkId(number(index))
    }

    /// Goes on with another configuration of a link.
    pub(crate) fn configure(&mut self, time: &mut Timetable, link: LinkId, config: LinkConfig) {
        self.links[link.index()].link.set_config(time.now(), config);
        self.settle(time, link.index());
    }

    /// Adds a route over these links, one after the other. Returns its number.
    ///
    /// # Errors
    ///
    /// A route has 1 to 255 links.
    pub(crate) fn add_route(&mut self, links: &[LinkId]) -> Result<u32, WorldError> {
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

    /// Lets packets from one host to another take this route from now on.
    pub(crate) fn set_route(&mut self, from: HostId, to: HostId, route: u32) {
        self.route_of.insert((from.0, to.0), route);
    }

    /// The route from one host to another.
    ///
    /// # Errors
    ///
    /// None was set.
    pub(crate) fn route(&self, from: HostId, to: HostId) -> Result<u32, WorldError> {
        self.route_of.get(&(from.0, to.0)).copied().ok_or(WorldError::NoRoute { from, to })
    }

    /// A packet at the next link of its route.
    pub(crate) fn enter(&mut self, time: &mut Timetable, packet: IpPacket) {
        let link = self.routes[packet.route as usize][usize::from(packet.hop)] as usize;
        self.note(time.now(), link, LinkEnd::Entrance, &packet);
        self.links[link].link.send(time.now(), packet);
        self.settle(time, link);
    }

    /// The next packet that comes out of a link now and is at the end of its route. Packets that
    /// are not are passed on. [`settle`](Self::settle) is to be called after the last packet.
    pub(crate) fn recv(&mut self, time: &mut Timetable, link: usize) -> Option<IpPacket> {
        while let Some(Arrival { mut packet, .. }) = self.links[link].link.recv(time.now()) {
            self.note(time.now(), link, LinkEnd::Exit, &packet);
            packet.hop = packet.hop.saturating_add(1);
            if usize::from(packet.hop) >= self.routes[packet.route as usize].len() {
                return Some(packet);
            }
            self.enter(time, packet);
        }
        None
    }

    /// After a link was touched: sets when something comes out of it next.
    pub(crate) fn settle(&self, time: &mut Timetable, link: usize) {
        time.set(Source::Link(link), self.links[link].link.poll_timeout());
    }

    /// Captures the packets at both ends of a link from now on.
    pub(crate) fn capture(&mut self, link: LinkId) {
        let slot = &mut self.links[link.index()];
        if slot.interface.is_none() {
            let entrance = self.captured.add(format!("link {} entrance", link.index()));
            self.captured.add(format!("link {} exit", link.index()));
            slot.interface = Some(entrance);
        }
    }

    /// All captured packets.
    pub(crate) fn captured(&self) -> &Capture {
        &self.captured
    }

    /// Notes the datagrams that pass a link from now on.
    pub(crate) fn watch(&mut self, link: LinkId) {
        self.links[link.index()].is_watched = true;
    }

    /// The datagrams that have passed watched links since the last call, in order of time.
    pub(crate) fn take_passages(&mut self) -> Vec<Passage> {
        std::mem::take(&mut self.passages)
    }

    /// Records the totals of a link each `period` from now on.
    pub(crate) fn record(&mut self, time: &mut Timetable, link: LinkId, period: Duration) {
        let first = self.links[link.index()].record(time.now(), period);
        time.set(Source::LinkSample(link.index()), Some(first));
    }

    /// Takes a sample of a recorded link.
    pub(crate) fn sample(&mut self, time: &mut Timetable, link: usize) {
        let next = self.links[link].sample(time.now());
        time.set(Source::LinkSample(link), Some(next));
    }

    /// Captures and notes a packet that passes an end of a link, if the link is to be observed.
    fn note(&mut self, now: Instant, link: usize, gate: LinkEnd, packet: &IpPacket) {
        let slot = &self.links[link];
        if let Some(interface) = slot.interface(gate) {
            self.captured.write(interface, now, packet);
        }
        if slot.is_watched && !packet.content.is_empty() {
            let (link, content) = (LinkId(number(link)), packet.content.clone());
            self.passages.push(Passage { at: now, link, gate, content });
        }
    }
}

/// Links of a route at most: as many as a packet can count.
const MAX_HOPS: usize = 255;

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::packet::Cargo;

    #[test]
    fn a_packet_leaves_the_network_at_the_end_of_its_route() {
        let (mut time, mut network) = (Timetable::new(), Network::default());
        let delay = Duration::from_millis(10);
        let link = || LinkConfig::default().with_delay(delay).into();
        let links = [1, 2].map(|seed| network.add_link(&mut time, link(), seed));
        let route = network.add_route(&links).unwrap();
        network.watch(links[1]);
        let cargo = Cargo::Udp { stream: 0, from: 0, to: 1 };
        let content = Bytes::from_static(b"content");
        network.enter(&mut time, IpPacket::udp(cargo, route, content));
        let mut arrived = Vec::new();
        while let Some(source) = time.next_until(Instant::ORIGIN + 3 * delay) {
            let Source::Link(link) = source else { panic!("{source:?}") };
            while let Some(packet) = network.recv(&mut time, link) {
                arrived.push((time.now(), packet.hop));
            }
            network.settle(&mut time, link);
        }
        assert_eq!(arrived, [(Instant::ORIGIN + 2 * delay, 2)]);
        let gates: Vec<LinkEnd> = network.take_passages().iter().map(|it| it.gate).collect();
        assert_eq!(gates, [LinkEnd::Entrance, LinkEnd::Exit]);
    }

    #[test]
    fn a_route_has_links_and_two_hosts_without_one_are_not_joined() {
        let (mut time, mut network) = (Timetable::new(), Network::default());
        let link = network.add_link(&mut time, LinkConfig::default().into(), 1);
        assert!(matches!(network.add_route(&[]), Err(WorldError::EmptyRoute)));
        assert!(matches!(network.add_route(&[link; 256]), Err(WorldError::LongRoute(256))));
        let route = network.add_route(&[link; 255]).unwrap();
        let [from, to] = [HostId(0), HostId(1)];
        network.set_route(from, to, route);
        assert!(network.route(from, to).is_ok_and(|it| it == route));
        assert!(matches!(network.route(to, from), Err(WorldError::NoRoute { .. })));
    }
}
