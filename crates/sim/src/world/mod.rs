//! Everything together: hosts, links, streams and traffic on one clock.

mod flows;
mod streams;

use std::time::Duration;

use punctual_netem::{LinkConfig, LinkProfile, LinkStatistics};
use punctual_units::Instant;

use self::flows::Flows;
use self::streams::WorldStreams;
use crate::agenda::Source;
use crate::error::WorldError;
use crate::ground::Ground;
use crate::ground::links::{LinkSnapshot, Passage};
use crate::host::HostConfig;
use crate::ids::{HostId, LinkId, StreamId, TrafficId};
use crate::packet::{Cargo, IpPacket};
use crate::seeds::{Purpose, derive};
#[cfg(feature = "quic")]
use crate::stream::{End, Transport};
use crate::stream::{StreamConfig, StreamOutcome};
use crate::traffic::{FlowProgress, TrafficConfig, TrafficStatistics};

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
    ground: Ground,
    streams: WorldStreams,
    flows: Flows,
}

impl World {
    /// An empty world. Everything that is left to chance in it comes from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            ground: Ground::new(),
            streams: WorldStreams::default(),
            flows: Flows::default(),
        }
    }

    /// Adds a host: one UDP port with an endpoint that listens and calls.
    pub fn add_host(&mut self, config: HostConfig) -> HostId {
        self.ground.hosts.add(&config, self.seed)
    }

    /// Adds a link: one direction of one, whose timeline and trace begin with the world. Its seed
    /// follows from the world's and from how many links were added before, not from anything else
    /// in the world.
    pub fn add_link(&mut self, link: impl Into<LinkProfile>) -> LinkId {
        let Ground { time, network, .. } = &mut self.ground;
        let seed = derive(self.seed, Purpose::Link, network.len());
        network.add_link(time, link.into(), seed)
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
        self.ground.check_hosts(from, to)?;
        let route = self.ground.network.add_route(links)?;
        self.ground.network.set_route(from, to, route);
        Ok(())
    }

    /// Gives a host another port, as a NAT does that has forgotten the old one: the host sends from
    /// there from now on, and packets for the old port are lost. Its endpoint does not learn of it.
    /// Calls that are not answered yet fail.
    pub fn rebind(&mut self, host: HostId, port: u16) {
        self.ground.hosts.check(host);
        self.ground.hosts.get_mut(host.index()).address.set_port(port);
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
        self.streams.add(config, self.seed, &mut self.ground)
    }

    /// The application of a stream sends no more. Its messages so far are still delivered, and the
    /// connection stays established.
    pub fn stop(&mut self, stream: StreamId) {
        self.streams.stop(stream, &mut self.ground);
    }

    /// The outcome of a stream so far.
    pub fn outcome(&self, stream: StreamId) -> StreamOutcome {
        StreamOutcome::of(self.streams.get(stream), &self.ground)
    }

    /// The state of the QUIC connection that carries a stream, at one end; `None` if there is none.
    #[cfg(feature = "quic")]
    pub fn quic_info(&self, stream: StreamId, end: End) -> Option<punctual_quic::QuicInfo> {
        let stream = self.streams.get(stream);
        let host = if end == End::Sender { stream.from } else { stream.to };
        let machine = &self.ground.hosts.get(host).machine;
        match &stream.config.transport {
            Transport::Quic => machine.bare_quic_info(stream.number()),
            _ => machine.quic_info_of(machine.connection(stream.connection(end)?)?.info().path),
        }
    }

    /// Adds cross traffic.
    ///
    /// # Errors
    ///
    /// It must go over 1 to 255 links, and TCP back over as many; packets have at least 40 bytes,
    /// packets of [`Traffic::Tcp`](crate::Traffic::Tcp) 53; rates are less than 1 Tb/s, bursts and
    /// pauses last longer than zero.
    pub fn add_traffic(&mut self, config: TrafficConfig) -> Result<TrafficId, WorldError> {
        self.flows.add(config, self.seed, &mut self.ground)
    }

    /// The totals of cross traffic so far.
    pub fn traffic_statistics(&self, traffic: TrafficId) -> TrafficStatistics {
        self.flows.get(traffic).statistics()
    }

    /// The bytes of a TCP flow that have arrived in order, over time; `None` for other traffic.
    pub fn traffic_progress(&self, traffic: TrafficId) -> Option<&FlowProgress> {
        self.flows.get(traffic).progress()
    }

    /// Goes on with another configuration of a link; see
    /// [`Link::set_config`](punctual_netem::Link::set_config).
    pub fn set_link(&mut self, link: LinkId, config: LinkConfig) {
        self.ground.network.configure(&mut self.ground.time, link, config);
    }

    /// How a link is now.
    pub fn link_config(&self, link: LinkId) -> &LinkConfig {
        self.ground.network.link(link).link.config()
    }

    /// Packets in a link: in the queue, being transmitted, and on their way.
    pub fn in_flight(&self, link: LinkId) -> usize {
        self.ground.network.link(link).link.in_flight()
    }

    /// The totals of a link so far.
    pub fn link_statistics(&self, link: LinkId) -> &LinkStatistics {
        self.ground.network.link(link).link.statistics()
    }

    /// Records the totals of a link each `period` from now on.
    ///
    /// # Errors
    ///
    /// The period must be longer than zero.
    pub fn record_link(&mut self, link: LinkId, period: Duration) -> Result<(), WorldError> {
        if period.is_zero() {
            return Err(WorldError::ZeroPeriod);
        }
        self.ground.network.record(&mut self.ground.time, link, period);
        Ok(())
    }

    /// The recorded series of a link.
    pub fn link_series(&self, link: LinkId) -> &[LinkSnapshot] {
        self.ground.network.link(link).series()
    }

    /// Captures from now on every packet at the entrance of a link, before it can be lost, and at
    /// its exit.
    pub fn capture(&mut self, link: LinkId) {
        self.ground.network.capture(link);
    }

    /// The capture of one link, as a pcapng file: interface 0 is its entrance, interface 1 its
    /// exit. Packets are IPv4 without a link layer, and their times are the world's since its
    /// start, in nanoseconds. Of cross traffic there are only headers. Without
    /// [`capture`](Self::capture) the file has no packets.
    pub fn capture_bytes(&self, link: LinkId) -> Vec<u8> {
        let interface = self.ground.network.link(link).interface.unwrap_or(u32::MAX);
        self.ground.network.captured().file_of(interface)
    }

    /// The captures of all links in one file, with two interfaces for each.
    pub fn capture_of_all(&self) -> Vec<u8> {
        self.ground.network.captured().file()
    }

    /// Notes from now on every UDP datagram that passes the ends of a link, for
    /// [`take_passages`](Self::take_passages). Streams are notable, cross traffic is not.
    ///
    /// The notes hold the datagrams themselves, and grow until they are taken.
    pub fn watch(&mut self, link: LinkId) {
        self.ground.network.watch(link);
    }

    /// The datagrams that have passed watched links since the last call, in order of time.
    pub fn take_passages(&mut self) -> Vec<Passage> {
        self.ground.network.take_passages()
    }

    /// Datagrams that a host threw away because their checksum was wrong.
    pub fn damaged_datagrams(&self, host: HostId) -> u64 {
        self.ground.hosts.get(host.index()).damaged
    }

    /// The world's time, which starts at the origin.
    pub fn now(&self) -> Instant {
        self.ground.now()
    }

    /// Lets `time` pass, and everything happen that is due in it.
    pub fn run_for(&mut self, time: Duration) {
        let end = self.now() + time;
        while let Some(source) = self.ground.time.next_until(end) {
            let Self { ground, streams, flows, .. } = self;
            match source {
                Source::Link(link) => self.run_link(link),
                Source::Host(host) => {
                    for packet in ground.wake(host) {
                        streams.read_datagram(&packet, ground);
                    }
                    streams.drain(host, ground);
                    streams.drain_touched(ground);
                }
                Source::Group(end) => streams.run_group(end, ground),
                Source::Stream(stream) => streams.run(stream, ground),
                Source::StreamSample(stream) => streams.sample(stream, ground),
                Source::LinkSample(link) => ground.network.sample(&mut ground.time, link),
                Source::Traffic(flow) => flows.run(flow, ground),
            }
        }
    }

    fn run_link(&mut self, link: usize) {
        while let Some(packet) = self.ground.recv(link) {
            self.arrive(packet);
        }
        self.ground.network.settle(&mut self.ground.time, link);
        self.streams.drain_touched(&mut self.ground);
    }

    /// A packet at the end of its route.
    fn arrive(&mut self, packet: IpPacket) {
        let Self { ground, streams, flows, .. } = self;
        match packet.cargo {
            Cargo::Datagram { to, .. } | Cargo::Udp { to, .. } => {
                if let Some(packet) = ground.arrive(to as usize, packet) {
                    streams.read_datagram(&packet, ground);
                }
            }
            Cargo::Traffic { .. } => flows.arrive(&packet, ground),
        }
    }
}
