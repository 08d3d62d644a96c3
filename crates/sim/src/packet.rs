use bytes::Bytes;
use punctual_netem::Packet;

/// An IP packet on its way through the world.
#[derive(Clone, Debug)]
pub(crate) struct IpPacket {
    /// The content of the UDP datagram; empty for cross traffic, whose bytes are never used.
    pub(crate) content: Bytes,
    pub(crate) cargo: Cargo,
    pub(crate) route: u32,
    /// Links of the route that lie behind it.
    pub(crate) hop: u8,
    /// Bytes on the link, IP header included.
    pub(crate) size: u16,
    /// The checksum of the content before it was damaged, if it was.
    pub(crate) sum_before_damage: Option<u16>,
}

/// The kind of a packet, and its receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cargo {
    /// A datagram from one host's machine to another's, and the ports of both.
    Datagram { from: u32, to: u32, ports: [u16; 2] },
    /// A message of a bare UDP stream from one host to another.
    Udp { stream: u32, from: u32, to: u32 },
    /// Cross traffic, and an answer to it.
    Traffic { traffic: u32, number: u64, back: bool, is_tcp: bool },
}

/// Bytes of an IPv4 header and of a UDP header.
pub(crate) const UDP_OVERHEAD: u16 = 28;

impl IpPacket {
    /// A UDP datagram at the entrance of its route.
    pub(crate) fn udp(cargo: Cargo, route: u32, content: Bytes) -> Self {
        let size = u16::try_from(content.len()).unwrap_or(u16::MAX).saturating_add(UDP_OVERHEAD);
        Self { content, cargo, route, hop: 0, size, sum_before_damage: None }
    }

    /// A packet of cross traffic of `size` bytes at the entrance of its route.
    pub(crate) fn blank(cargo: Cargo, route: u32, size: u16) -> Self {
        Self { content: Bytes::new(), cargo, route, hop: 0, size, sum_before_damage: None }
    }

    /// Whether the receiver's UDP checksum finds damage.
    pub(crate) fn is_damaged(&self) -> bool {
        self.sum_before_damage.is_some()
    }
}

impl Packet for IpPacket {
    fn len(&self) -> usize {
        self.size.into()
    }

    fn corrupt(&mut self, entropy: u64) {
        self.sum_before_damage.get_or_insert_with(|| ones_complement(&self.content));
        let mut content = Vec::from(&self.content[..]);
        content.corrupt(entropy);
        self.content = content.into();
    }
}

/// The sum of the Internet checksum (RFC 1071) over `bytes`, not yet inverted.
pub(crate) fn ones_complement(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| match *pair {
        [high, low] => u16::from_be_bytes([high, low]),
        [high] => u16::from_be_bytes([high, 0]),
        _ => 0,
    });
    fold(words.map(u64::from).sum())
}

/// Adds the carries of a sum of 16-bit words until none is left.
#[expect(clippy::cast_possible_truncation, reason = "the carries are gone")]
pub(crate) fn fold(mut sum: u64) -> u16 {
    while sum > 0xFFFF {
        sum = (sum >> 16) + (sum & 0xFFFF);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_that_of_rfc_1071() {
        let example = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(ones_complement(&example), 0xddf2);
        assert_eq!(ones_complement(&[0xff]), 0xff00);
    }

    #[test]
    fn damage_is_seen_and_does_not_reach_copies() {
        let cargo = Cargo::Udp { stream: 0, from: 0, to: 1 };
        let sound = IpPacket::udp(cargo, 0, Bytes::from_static(&[0; 20]));
        let mut damaged = sound.clone();
        damaged.corrupt(12_345);
        assert!(damaged.is_damaged() && !sound.is_damaged());
        assert_eq!(damaged.sum_before_damage, Some(0));
        assert_ne!(damaged.content, sound.content);
        assert_eq!(sound.len(), 48);
    }
}
