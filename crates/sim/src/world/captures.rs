use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use super::{LinkId, World};
use crate::capture::{Ends, Layer};
use crate::packet::{Cargo, IpPacket};

impl World {
    /// Captures from now on every packet at the entrance of a link, before it can be lost, and at
    /// its exit.
    pub fn capture(&mut self, link: LinkId) {
        let slot = &mut self.links[link.index()];
        if slot.interface.is_none() {
            let entrance = self.captured.add(format!("link {} entrance", link.index()));
            self.captured.add(format!("link {} exit", link.index()));
            slot.interface = Some(entrance);
        }
    }

    /// The capture of one link, as a pcapng file: interface 0 is its entrance, interface 1 its
    /// exit. Packets are IPv4 without a link layer, and their times are the world's since its
    /// start, in nanoseconds. Of cross traffic there are only headers. Without
    /// [`capture`](Self::capture) the file has no packets.
    pub fn capture_bytes(&self, link: LinkId) -> Vec<u8> {
        let interface = self.links[link.index()].interface.unwrap_or(u32::MAX);
        self.captured.file_of(interface)
    }

    /// The captures of all links in one file, with two interfaces for each.
    pub fn capture_of_all(&self) -> Vec<u8> {
        self.captured.file()
    }

    /// Writes a packet down that passes an interface.
    pub(super) fn write_down(&mut self, interface: u32, packet: &IpPacket) {
        let ends = self.ends(packet.cargo);
        self.captured.write(interface, self.now, packet, &ends);
    }

    fn ends(&self, cargo: Cargo) -> Ends {
        match cargo {
            Cargo::Datagram { from, to, ports: [source, port] } => {
                let end = |host: u32, port| {
                    SocketAddrV4::new(*v4(self.hosts[host as usize].address).ip(), port)
                };
                Ends { from: end(from, source), to: end(to, port), layer: Layer::Udp }
            }
            Cargo::Udp { stream } => {
                let hosts = &self.streams[stream as usize];
                let port = port(UDP_PORT, stream);
                let [from, to] = [hosts.from, hosts.to]
                    .map(|host| SocketAddrV4::new(*v4(self.hosts[host].address).ip(), port));
                Ends { from, to, layer: Layer::Udp }
            }
            Cargo::Traffic { traffic, number, back } => {
                let flow = &self.traffic[traffic as usize];
                let address =
                    |first| Ipv4Addr::from_bits(Ipv4Addr::new(10, first, 0, 1).to_bits() + traffic);
                let port = if flow.is_tcp() { TCP_PORT } else { DISCARD };
                let [near, far] = [254, 255].map(|first| SocketAddrV4::new(address(first), port));
                let [from, to] = if back { [far, near] } else { [near, far] };
                let layer = if flow.is_tcp() {
                    Layer::Tcp { sequence: flow.sequence(number, back), acknowledges: back }
                } else {
                    Layer::Udp
                };
                Ends { from, to, layer }
            }
        }
    }
}

fn v4(address: SocketAddr) -> SocketAddrV4 {
    match address {
        SocketAddr::V4(address) => address,
        SocketAddr::V6(_) => SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0),
    }
}

fn port(first: u16, number: u32) -> u16 {
    u16::try_from(u32::from(first) + number % 10_000).unwrap_or(first)
}

/// The port of the first bare UDP stream.
const UDP_PORT: u16 = 20_000;
/// iperf's, which nobody takes for something else.
const TCP_PORT: u16 = 5_001;
/// The discard service's.
const DISCARD: u16 = 9;
