//! Handles the next event, and its consequences.

use punctual_netem::{Arrival, Gate};
use punctual_proto::Event;
use punctual_units::Instant;

use super::World;
use crate::agenda::Source;
use crate::host::host_at;
use crate::machine::MachineEvent;
use crate::packet::{Cargo, IpPacket};

impl World {
    /// Does everything that is due up to `end`, and everything that follows from it by then.
    pub(super) fn run_until(&mut self, end: Instant) {
        let mut idle = 0_u32;
        while let Some((at, source)) = self.agenda.next().filter(|&(at, _)| at <= end) {
            idle = if at > self.now { 0 } else { idle + 1 };
            assert!(idle < MAX_IDLE, "the world does not come to rest at {at}");
            self.now = self.now.max(at);
            match source {
                Source::Link(link) => self.run_link(link),
                Source::Host(host) => self.run_host(host),
                Source::Group(end) => self.run_group(end),
                Source::Stream(stream) => self.run_stream(stream),
                Source::StreamSample(stream) => self.sample_stream(stream),
                Source::LinkSample(link) => self.sample_link(link),
                Source::Traffic(traffic) => self.run_traffic(traffic),
            }
        }
        self.now = end;
    }

    /// A packet at the next link of its route.
    pub(super) fn enter(&mut self, packet: IpPacket) {
        let link = self.routes[packet.route as usize][usize::from(packet.hop)] as usize;
        if let Some(entrance) = self.links[link].interface {
            self.write_down(entrance, &packet);
        }
        self.note(link, Gate::Entrance, &packet);
        self.links[link].link.send(self.now, packet);
        self.settle_link(link);
    }

    fn run_link(&mut self, link: usize) {
        while let Some(Arrival { mut packet, .. }) = self.links[link].link.recv(self.now) {
            if let Some(entrance) = self.links[link].interface {
                self.write_down(entrance + 1, &packet);
            }
            self.note(link, Gate::Exit, &packet);
            packet.hop = packet.hop.saturating_add(1);
            if usize::from(packet.hop) < self.routes[packet.route as usize].len() {
                self.enter(packet);
            } else {
                self.arrive(packet);
            }
        }
        self.settle_link(link);
        self.drain_touched();
    }

    /// A packet at the end of its route.
    fn arrive(&mut self, packet: IpPacket) {
        let host = match packet.cargo {
            Cargo::Datagram { to, .. } => to as usize,
            Cargo::Udp { stream } => self.streams[stream as usize].to,
            Cargo::Traffic { traffic, number, back } => {
                let damaged = packet.is_damaged();
                return self.arrive_traffic(traffic, number, back, damaged);
            }
        };
        if self.hosts[host].lateness.is_none() {
            self.take_in(host, packet);
        } else {
            self.hosts[host].put_aside(self.now, packet);
        }
        self.touch(host);
    }

    /// A packet in the hands of the host that it is for.
    fn take_in(&mut self, index: usize, packet: IpPacket) {
        let host = &mut self.hosts[index];
        if host.checksums && packet.is_damaged() {
            host.damaged += 1;
            return;
        }
        match packet.cargo {
            Cargo::Datagram { from, ports: [source, port], .. } => {
                let mut remote = self.hosts[from as usize].address;
                remote.set_port(source);
                let host = &mut self.hosts[index];
                if host.address.port() != port {
                    return;
                }
                let local = host.clock.local(self.now);
                host.machine.handle_datagram(local, remote, packet.content);
            }
            Cargo::Udp { stream } => {
                self.streams[stream as usize].receiving.read(self.now, &packet.content);
            }
            Cargo::Traffic { .. } => {}
        }
    }

    fn run_host(&mut self, index: usize) {
        for packet in self.hosts[index].wake(self.now) {
            self.take_in(index, packet);
        }
        let host = &mut self.hosts[index];
        let local = host.clock.local(self.now);
        if host.machine.poll_timeout().is_due(local) {
            host.machine.handle_timeout(local);
        }
        self.drain(index);
        self.drain_touched();
    }

    /// Remembers that something was done to a host's machine.
    pub(super) fn touch(&mut self, host: usize) {
        if !self.touched.contains(&host) {
            self.touched.push(host);
        }
    }

    /// Takes the output of all machines that were touched, and handles its consequences.
    pub(super) fn drain_touched(&mut self) {
        while let Some(host) = self.touched.pop() {
            self.drain(host);
        }
    }

    /// Takes out of a machine that was touched all that it has to say.
    pub(super) fn drain(&mut self, index: usize) {
        while let Some(event) = self.hosts[index].machine.poll_event() {
            self.handle_event(index, event);
        }
        self.transmit(index);
        while let Some(event) = self.hosts[index].machine.poll_event() {
            self.handle_event(index, event);
        }
        let next = self.hosts[index].next_wake(self.now);
        self.agenda.set(Source::Host(index), next);
    }

    fn transmit(&mut self, index: usize) {
        let from = super::number(index);
        let local = self.hosts[index].clock.local(self.now);
        loop {
            self.scratch.clear();
            let machine = &mut self.hosts[index].machine;
            let Some(batch) = machine.poll_transmit(local, SEGMENTS, &mut self.scratch) else {
                return;
            };
            let Some(to) = host_at(batch.remote).map(super::number) else { continue };
            let Some(&route) = self.route_of.get(&(from, to)) else { continue };
            let ports = [self.hosts[index].address.port(), batch.remote.port()];
            let mut start = 0;
            while start < batch.size {
                let end = batch.size.min(start + batch.segment_size);
                let content = self.memory.copy(&self.scratch[start..end]);
                self.enter(IpPacket::udp(Cargo::Datagram { from, to, ports }, route, content));
                start = end;
            }
        }
    }

    fn handle_event(&mut self, host: usize, event: MachineEvent) {
        match event {
            MachineEvent::Srt(event) => self.handle_srt_event(host, event),
            #[cfg(feature = "quic")]
            MachineEvent::Quic(event) => self.handle_quic_event(host, event),
        }
    }

    fn handle_srt_event(&mut self, host: usize, event: Event) {
        match event {
            Event::Incoming(incoming) => self.accept(host, &incoming),
            Event::Connected(id) => self.connected(host, id),
            Event::Readable(id) | Event::LinkNews(id) => self.read(host, id),
            Event::Writable(id) => self.writable(host, id),
            Event::Closed(id, reason) => self.closed(host, id, reason),
            _ => {}
        }
    }
}

/// Datagrams taken out of a machine at once.
const SEGMENTS: usize = 16;

/// Things that may happen one after the other at the same instant. A world in which packets need no
/// time has many; one with more has a defect.
const MAX_IDLE: u32 = 10_000_000;
