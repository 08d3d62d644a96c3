use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The address of a handshake's receiver as its sender sees it. Informational: judge nothing by it.
///
/// The draft leaves the layout open. Deployed peers write the words of an address from their
/// memory, little-endian, so the bytes of each group of four are reversed: 127.0.0.1 is 01 00 00 7F
/// and twelve zeros.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PeerIp([u8; 16]);

impl PeerIp {
    /// The address that is `bytes` on the wire: any are legal.
    pub const fn from_wire(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The address as on the wire.
    pub const fn to_wire(self) -> [u8; 16] {
        self.0
    }

    /// The address: IPv4 if only the first word is set or if it is an IPv6 address that maps IPv4,
    /// otherwise IPv6.
    pub fn to_ip(self) -> IpAddr {
        let octets = reverse_groups(self.0);
        if let [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] = octets {
            return Ipv4Addr::new(a, b, c, d).into();
        }
        Ipv6Addr::from(octets).to_canonical()
    }
}

impl From<IpAddr> for PeerIp {
    fn from(ip: IpAddr) -> Self {
        let mut octets = [0; 16];
        match ip {
            IpAddr::V4(ip) => octets[..4].copy_from_slice(&ip.octets()),
            IpAddr::V6(ip) => octets = ip.octets(),
        }
        Self(reverse_groups(octets))
    }
}

fn reverse_groups(mut bytes: [u8; 16]) -> [u8; 16] {
    for group in bytes.chunks_exact_mut(4) {
        group.reverse();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv4_is_one_reversed_word() {
        let loopback = PeerIp::from(IpAddr::from([127, 0, 0, 1]));
        assert_eq!(loopback.to_wire(), [1, 0, 0, 0x7F, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(loopback.to_ip(), IpAddr::from([127, 0, 0, 1]));
    }

    #[test]
    fn ipv6_is_four_reversed_words() {
        let ip: IpAddr = "2001:db8:102:304::a:b".parse().unwrap();
        let wire = [0xB8, 0x0D, 0x01, 0x20, 4, 3, 2, 1, 0, 0, 0, 0, 0x0B, 0, 0x0A, 0];
        assert_eq!(PeerIp::from(ip).to_wire(), wire);
        assert_eq!(PeerIp::from_wire(wire).to_ip(), ip);
    }

    #[test]
    fn mapped_ipv4_reads_as_ipv4() {
        let ip: IpAddr = "::ffff:192.0.2.7".parse().unwrap();
        assert_eq!(PeerIp::from(ip).to_ip(), IpAddr::from([192, 0, 2, 7]));
    }
}
