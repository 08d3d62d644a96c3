//! Packets written down as a capture file that Wireshark reads (pcapng, draft-ietf-opsawg-pcapng).

use std::net::{Ipv4Addr, SocketAddrV4};

use punctual_units::Instant;

use crate::host::address;
use crate::packet::{Cargo, IpPacket, UDP_OVERHEAD, fold, ones_complement};
use crate::traffic::tcp_sequence;

/// The captured packets of a world, in order of time. Each captured link has two interfaces in it,
/// one for its entrance and one for its exit.
#[derive(Debug, Default)]
pub(crate) struct Capture {
    names: Vec<String>,
    /// Packet blocks as they are written in the file.
    blocks: Vec<u8>,
}

/// Where a packet comes from and goes to, and by which protocol.
#[derive(Clone, Copy, Debug)]
struct PacketEnds {
    from: SocketAddrV4,
    to: SocketAddrV4,
    layer: Layer,
}

/// The protocol above IP.
#[derive(Clone, Copy, Debug)]
enum Layer {
    Udp,
    /// A segment of zeros with this sequence number, or an acknowledgement.
    Tcp {
        sequence: u32,
        acknowledges: bool,
    },
}

impl PacketEnds {
    /// The ends of a packet. Hosts keep their IP addresses; cross traffic has some of its own.
    fn of(packet: &IpPacket) -> Self {
        let host = |host: u32, port| SocketAddrV4::new(*address(host as usize).ip(), port);
        match packet.cargo {
            Cargo::Datagram { from, to, ports: [source, port] } => {
                Self { from: host(from, source), to: host(to, port), layer: Layer::Udp }
            }
            Cargo::Udp { stream, from, to } => {
                let port = u16::try_from(u32::from(UDP_PORT) + stream % 10_000).unwrap_or(UDP_PORT);
                Self { from: host(from, port), to: host(to, port), layer: Layer::Udp }
            }
            Cargo::Traffic { traffic, number, back, is_tcp } => {
                let port = if is_tcp { TCP_PORT } else { DISCARD };
                let [near, far] = [254, 255].map(|first| {
                    let first = Ipv4Addr::new(10, first, 0, 1).to_bits();
                    SocketAddrV4::new(Ipv4Addr::from_bits(first + traffic), port)
                });
                let [from, to] = if back { [far, near] } else { [near, far] };
                let layer = if is_tcp {
                    let sequence = tcp_sequence(number, packet.size, back);
                    Layer::Tcp { sequence, acknowledges: back }
                } else {
                    Layer::Udp
                };
                Self { from, to, layer }
            }
        }
    }
}

impl Capture {
    /// Makes room for another interface; its number.
    pub(crate) fn add(&mut self, name: String) -> u32 {
        self.names.push(name);
        u32::try_from(self.names.len() - 1).unwrap_or(u32::MAX)
    }

    /// Writes down a packet that passes an interface at `at`.
    pub(crate) fn write(&mut self, interface: u32, at: Instant, packet: &IpPacket) {
        let ends = &PacketEnds::of(packet);
        let mut data = ip_header(packet, ends);
        match ends.layer {
            Layer::Udp => data.extend(udp_header(packet, ends)),
            Layer::Tcp { sequence, acknowledges } => {
                data.extend(tcp_header(packet, ends, sequence, acknowledges));
            }
        }
        data.extend_from_slice(&packet.content);
        let nanos = at.as_nanos();
        let mut body = Vec::with_capacity(data.len() + 24);
        body.extend(interface.to_le_bytes());
        body.extend(high(nanos).to_le_bytes());
        body.extend(low(nanos).to_le_bytes());
        body.extend(length(&data).to_le_bytes());
        body.extend(u32::from(packet.size).to_le_bytes());
        body.extend_from_slice(&data);
        block(&mut self.blocks, PACKET, &body);
    }

    /// The whole capture as a file.
    pub(crate) fn file(&self) -> Vec<u8> {
        let mut file = head(&self.names);
        file.extend_from_slice(&self.blocks);
        file
    }

    /// The file with two interfaces alone, this one and the next.
    pub(crate) fn file_of(&self, first: u32) -> Vec<u8> {
        let names = self.names.get(first as usize..first as usize + 2).unwrap_or_default();
        let mut file = head(names);
        let mut rest = &self.blocks[..];
        while let Some(size) = word(rest, 4).map(|size| size as usize) {
            let (one, others) = rest.split_at(size.min(rest.len()));
            rest = others;
            let interface = word(one, 8).and_then(|interface| interface.checked_sub(first));
            if let Some(interface) = interface.filter(|&interface| interface < 2) {
                file.extend_from_slice(&one[..8]);
                file.extend(interface.to_le_bytes());
                file.extend_from_slice(&one[12..]);
            }
        }
        file
    }
}

/// The blocks at the head of a file.
fn head(names: &[String]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut section = Vec::new();
    section.extend(BYTE_ORDER.to_le_bytes());
    section.extend([1, 0, 0, 0]); // version 1.0
    section.extend(u64::MAX.to_le_bytes()); // of unknown length
    block(&mut file, SECTION, &section);
    for name in names {
        let mut interface = Vec::new();
        interface.extend(LINKTYPE_RAW.to_le_bytes());
        interface.extend([0; 2]);
        interface.extend(0_u32.to_le_bytes()); // no limit of what is kept of a packet
        option(&mut interface, IF_NAME, name.as_bytes());
        option(&mut interface, IF_TSRESOL, &[9]); // nanoseconds
        option(&mut interface, END_OF_OPTIONS, &[]);
        block(&mut file, INTERFACE, &interface);
    }
    file
}

fn option(block: &mut Vec<u8>, code: u16, value: &[u8]) {
    block.extend(code.to_le_bytes());
    block.extend(u16::try_from(value.len()).unwrap_or(u16::MAX).to_le_bytes());
    block.extend_from_slice(value);
    pad(block);
}

fn block(file: &mut Vec<u8>, kind: u32, body: &[u8]) {
    let total = (length(body) + 12).next_multiple_of(4);
    file.extend(kind.to_le_bytes());
    file.extend(total.to_le_bytes());
    file.extend_from_slice(body);
    pad(file);
    file.extend(total.to_le_bytes());
}

/// Blocks and options end at a multiple of four bytes.
fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

fn ip_header(packet: &IpPacket, ends: &PacketEnds) -> Vec<u8> {
    let mut header = vec![0x45, 0]; // version 4, five words
    header.extend(packet.size.to_be_bytes());
    header.extend([0, 0, 0x40, 0]); // not to be fragmented
    header.extend([64, protocol(ends)]);
    header.extend([0; 2]);
    header.extend(ends.from.ip().octets());
    header.extend(ends.to.ip().octets());
    let checksum = !ones_complement(&header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    header
}

fn udp_header(packet: &IpPacket, ends: &PacketEnds) -> Vec<u8> {
    let size = packet.size - UDP_OVERHEAD + 8;
    let mut header = Vec::with_capacity(8);
    header.extend(ends.from.port().to_be_bytes());
    header.extend(ends.to.port().to_be_bytes());
    header.extend(size.to_be_bytes());
    // A checksum of zero would mean that there is no checksum.
    let checksum = match checksum(packet, ends, &header, size) {
        0 => u16::MAX,
        checksum => checksum,
    };
    header.extend(checksum.to_be_bytes());
    header
}

fn tcp_header(packet: &IpPacket, ends: &PacketEnds, sequence: u32, acknowledges: bool) -> Vec<u8> {
    let mut header = Vec::with_capacity(20);
    header.extend(ends.from.port().to_be_bytes());
    header.extend(ends.to.port().to_be_bytes());
    let numbers = if acknowledges { [0, sequence] } else { [sequence, 0] };
    header.extend(numbers.map(u32::to_be_bytes).concat());
    header.extend([0x50, 0x10]); // five words, ACK
    header.extend(u16::MAX.to_be_bytes());
    let checksum = checksum(packet, ends, &header, packet.size - 20);
    header.extend(checksum.to_be_bytes());
    header.extend([0; 2]);
    header
}

/// The checksum of the part above IP, `size` bytes: the header so far and the content as it was
/// sent, with the addresses.
fn checksum(packet: &IpPacket, ends: &PacketEnds, header: &[u8], size: u16) -> u16 {
    let content = packet.sum_before_damage.unwrap_or_else(|| ones_complement(&packet.content));
    let address = |ip: &Ipv4Addr| u64::from(ones_complement(&ip.octets()));
    !fold(
        address(ends.from.ip())
            + address(ends.to.ip())
            + u64::from(protocol(ends))
            + u64::from(size)
            + u64::from(ones_complement(header))
            + u64::from(content),
    )
}

fn protocol(ends: &PacketEnds) -> u8 {
    match ends.layer {
        Layer::Udp => 17,
        Layer::Tcp { .. } => 6,
    }
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn high(value: u64) -> u32 {
    u32::try_from(value >> 32).unwrap_or(u32::MAX)
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is wanted")]
fn low(value: u64) -> u32 {
    value as u32
}

const SECTION: u32 = 0x0A0D_0D0A;
const BYTE_ORDER: u32 = 0x1A2B_3C4D;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const END_OF_OPTIONS: u16 = 0;
/// IPv4 or IPv6 without a link layer.
const LINKTYPE_RAW: u16 = 101;
/// The port of the first bare UDP stream.
const UDP_PORT: u16 = 20_000;
/// iperf's, which nobody takes for something else.
const TCP_PORT: u16 = 5_001;
/// The discard service's.
const DISCARD: u16 = 9;
