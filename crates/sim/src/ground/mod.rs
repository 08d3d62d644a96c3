//! The hosts of a world, and the ground on which streams and traffic run.

pub(crate) mod links;
mod network;
mod timetable;

use punctual_proto::{ConnectionId, Statistics};
use punctual_units::Instant;

use self::network::Network;
use self::timetable::Timetable;
use crate::agenda::Source;
use crate::error::WorldError;
use crate::host::{HostConfig, RunningHost, Use, host_at};
use crate::ids::{HostId, number};
use crate::memory::Memory;
use crate::packet::{Cargo, IpPacket};

/// All hosts.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    hosts: Vec<RunningHost>,
    /// Hosts that have taken something in and are to be drained.
    touched: Vec<usize>,
    memory: Memory,
    /// Where endpoints write their datagrams.
    scratch: Vec<u8>,
}

impl Hosts {
    /// Adds a host to the world with this seed.
    pub(crate) fn add(&mut self, config: &HostConfig, seed: u64) -> HostId {
        let index = self.hosts.len();
        self.hosts.push(RunningHost::new(config, seed, index));
        HostId(number(index))
    }

    /// Panics if a host is not of this world.
    pub(crate) fn check(&self, host: HostId) {
        assert!(host.index() < self.hosts.len(), "{host:?} is not of this world");
    }

    /// A host.
    pub(crate) fn get(&self, host: usize) -> &RunningHost {
        &self.hosts[host]
    }

    /// A host, to be changed.
    pub(crate) fn get_mut(&mut self, host: usize) -> &mut RunningHost {
        &mut self.hosts[host]
    }

    /// Remembers that something was done to a host's machine.
    pub(crate) fn touch(&mut self, host: usize) {
        if !self.touched.contains(&host) {
            self.touched.push(host);
        }
    }

    /// A host that was touched and not yet returned here.
    pub(crate) fn next_touched(&mut self) -> Option<usize> {
        self.touched.pop()
    }

    /// A packet in the hands of the host that it is for. Returns one that is no machine's, but a
    /// stream's.
    fn take_in(&mut self, index: usize, now: Instant, packet: IpPacket) -> Option<IpPacket> {
        let host = &mut self.hosts[index];
        if host.checksums && packet.is_damaged() {
            host.damaged += 1;
            return None;
        }
        let Cargo::Datagram { from, ports: [source, port], .. } = packet.cargo else {
            return Some(packet);
        };
        if host.address.port() != port {
            return None;
        }
        let mut remote = self.hosts[from as usize].address;
        remote.set_port(source);
        let host = &mut self.hosts[index];
        host.machine.handle_datagram(host.clock.local(now), remote, packet.content);
        None
    }

    /// Sends the datagrams that a host's machine has to send.
    fn transmit(&mut self, index: usize, time: &mut Timetable, network: &mut Network) {
        let host = &mut self.hosts[index];
        let (from, local) = (HostId(number(index)), host.clock.local(time.now()));
        loop {
            self.scratch.clear();
            let batch = host.machine.poll_transmit(local, SEGMENTS, &mut self.scratch);
            let Some(batch) = batch else { return };
            let Some(to) = host_at(batch.remote).map(|to| HostId(number(to))) else { continue };
            let Ok(route) = network.route(from, to) else { continue };
            let ports = [host.address.port(), batch.remote.port()];
            let cargo = Cargo::Datagram { from: from.0, to: to.0, ports };
            for datagram in self.scratch[..batch.size].chunks(batch.segment_size) {
                let content = self.memory.copy(datagram);
                network.enter(time, IpPacket::udp(cargo, route, content));
            }
        }
    }
}

/// The ground on which streams and traffic run: the time, the network and the hosts.
#[derive(Debug)]
pub(crate) struct Ground {
    pub(crate) time: Timetable,
    pub(crate) network: Network,
    pub(crate) hosts: Hosts,
}

impl Ground {
    /// An empty ground.
    pub(crate) fn new() -> Self {
        Self { time: Timetable::new(), network: Network::default(), hosts: Hosts::default() }
    }

    /// The world's time.
    pub(crate) fn now(&self) -> Instant {
        self.time.now()
    }

    /// Panics if a host is not of this world.
    ///
    /// # Errors
    ///
    /// The hosts must differ.
    pub(crate) fn check_hosts(&self, from: HostId, to: HostId) -> Result<(), WorldError> {
        [from, to].into_iter().for_each(|host| self.hosts.check(host));
        if from == to { Err(WorldError::SameHost(from)) } else { Ok(()) }
    }

    /// The time on a host's clock.
    pub(crate) fn local(&self, host: usize) -> Instant {
        self.hosts.get(host).clock.local(self.now())
    }

    /// The statistics of a connection at a host.
    pub(crate) fn statistics_of(&self, host: usize, id: ConnectionId) -> Option<Statistics> {
        let connection = self.hosts.get(host).machine.connection(id)?;
        Some(connection.statistics(self.local(host)))
    }

    /// Sends a packet over its route.
    pub(crate) fn enter(&mut self, packet: IpPacket) {
        self.network.enter(&mut self.time, packet);
    }

    /// The next packet that comes out of a link now and is at the end of its route.
    pub(crate) fn recv(&mut self, link: usize) -> Option<IpPacket> {
        self.network.recv(&mut self.time, link)
    }

    /// A packet has come to a host, which takes it in at once or when it wakes up. Returns one that
    /// is a stream's.
    pub(crate) fn arrive(&mut self, host: usize, packet: IpPacket) -> Option<IpPacket> {
        let now = self.now();
        let to = self.hosts.get_mut(host);
        let taken = if to.lateness.is_none() {
            self.hosts.take_in(host, now, packet)
        } else {
            to.put_aside(now, packet);
            None
        };
        self.hosts.touch(host);
        taken
    }

    /// A host is awake: takes in what has arrived, and runs the timers of its machine. Returns the
    /// packets that are streams'.
    pub(crate) fn wake(&mut self, index: usize) -> Vec<IpPacket> {
        let now = self.now();
        let arrived = self.hosts.get_mut(index).wake(now).into_iter();
        let of_streams = arrived.filter_map(|it| self.hosts.take_in(index, now, it)).collect();
        let host = self.hosts.get_mut(index);
        let local = host.clock.local(now);
        if host.machine.poll_timeout().is_due(local) {
            host.machine.handle_timeout(local);
        }
        of_streams
    }

    /// Sends the datagrams that a host's machine has to send.
    pub(crate) fn transmit(&mut self, host: usize) {
        self.hosts.transmit(host, &mut self.time, &mut self.network);
    }

    /// After all output of a host's machine was taken: sets when the host wakes up next.
    pub(crate) fn settle_host(&mut self, host: usize) {
        let next = self.hosts.get_mut(host).next_wake(self.time.now());
        self.time.set(Source::Host(host), next);
    }

    /// A host calls another one, which learns here the purpose of the call.
    pub(crate) fn expect(&mut self, calling: usize, called: usize, id: ConnectionId, purpose: Use) {
        let host = self.hosts.get_mut(calling);
        host.streams.insert(id, purpose);
        if let Some(connection) = host.machine.connection(id) {
            let caller = (host.address, connection.info().socket_id);
            self.hosts.get_mut(called).expected.insert(caller, purpose);
        }
        self.hosts.touch(calling);
    }
}

/// Datagrams taken out of a machine at once.
const SEGMENTS: usize = 16;
