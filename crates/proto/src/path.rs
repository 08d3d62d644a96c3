//! Paths: the ways of datagrams between two ends, as a carriage names them.
//!
//! A carriage takes an endpoint's datagrams to its peers and brings theirs: UDP, or another
//! protocol that carries datagrams, such as QUIC. The protocol identifies a path by an opaque
//! [`PathId`] and its [`PathProperties`]. Only this module contains UDP addresses. On the wire, two
//! fields of a handshake depend on them: the peer's IP address and the MSS.

use std::fmt;
use std::hash::Hasher;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use punctual_wire::{DataHeader, PeerIp};

/// The length of an SRT header, of data and control packets, bytes.
const SRT_HEADER: usize = DataHeader::LEN;

/// The length of the headers of IPv4 and UDP, bytes.
pub(crate) const UDP_IPV4_OVERHEAD: usize = 28;
/// The length of the headers of IPv6 and UDP, bytes.
const UDP_IPV6_OVERHEAD: usize = 48;

/// The name of the path between this end and a peer. An endpoint only compares and hashes it; it
/// names the path of each datagram that it sends.
///
/// With UDP, a path is the peer's address (`From<SocketAddr>`). Another carriage numbers its paths
/// ([`PathId::numbered`]).
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct PathId(Name);

#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
enum Name {
    Udp(SocketAddr),
    Numbered(u64),
}

/// The properties of a path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PathProperties {
    /// The largest datagram that the path carries, bytes, with the SRT header and without the
    /// carriage's headers. `None` if only the negotiated MSS limits it.
    pub largest_datagram: Option<usize>,
    /// The bytes that the carriage adds to each datagram, for pacing and statistics: 28 for UDP
    /// over IPv4, 48 over IPv6.
    pub overhead: usize,
    /// Whether a connection follows its peer to another path ([path
    /// updates](crate::Config::path_update)). `false` if the carriage itself follows the peer.
    pub moves: bool,
    /// The IP address of the host at the other end; `None` if the carriage knows none. Limits of a
    /// listener apply per host. With UDP it is part of the path's name.
    pub host: Option<IpAddr>,
}

/// A path with its properties.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub(crate) id: PathId,
    pub(crate) properties: PathProperties,
}

/// The host at the other end of a path: its address, or the path itself if that is not known.
/// Limits of a listener apply per host.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Host {
    Ip(IpAddr),
    Numbered(u64),
}

impl Path {
    /// A path with default properties, since the carriage has set none.
    pub(crate) const fn usual(id: PathId) -> Self {
        Self { id, properties: id.usual_properties() }
    }

    /// The host at the other end.
    pub(crate) const fn host(&self) -> Host {
        match (self.id.0, self.properties.host) {
            (Name::Udp(address), _) => Host::Ip(address.ip()),
            (Name::Numbered(_), Some(ip)) => Host::Ip(ip),
            (Name::Numbered(number), None) => Host::Numbered(number),
        }
    }

    /// The MSS that this end offers for the path: the configured one, unless the path is too small
    /// for the configured payload. Then it is the MSS whose packets the path carries, so that the
    /// peer, too, sends none that are longer.
    pub(crate) fn mss(&self, configured: usize, payload_size: usize) -> usize {
        match self.properties.largest_datagram {
            Some(largest) if largest < payload_size + SRT_HEADER => {
                configured.min(largest + self.id.udp_headers())
            }
            _ => configured,
        }
    }

    /// The bytes after the SRT header that fit into a datagram, if both ends agree on `mss`.
    pub(crate) fn packet_room(&self, mss: usize) -> usize {
        let largest = self.properties.largest_datagram.unwrap_or(usize::MAX);
        self.id.datagram_of(mss).min(largest).saturating_sub(SRT_HEADER)
    }

    /// As [`packet_room`](Self::packet_room), for a sender that leaves room for the headers of IPv6
    /// on any carriage.
    pub(crate) fn least_packet_room(&self, mss: usize) -> usize {
        let largest = self.properties.largest_datagram.unwrap_or(usize::MAX);
        mss.saturating_sub(UDP_IPV6_OVERHEAD).min(largest).saturating_sub(SRT_HEADER)
    }
}

impl PathProperties {
    /// The bytes that the headers of SRT and of the carriage add to a payload.
    pub(crate) const fn packet_overhead(&self) -> usize {
        self.overhead.saturating_add(SRT_HEADER)
    }

    /// Whether the path carries a datagram of `length` bytes.
    pub(crate) fn carries(&self, length: usize) -> bool {
        self.largest_datagram.is_none_or(|largest| length <= largest)
    }
}

impl PathId {
    /// The path with this number, for carriages other than UDP. The numbers of an endpoint's paths
    /// must be unique, and must not be reused.
    pub const fn numbered(number: u64) -> Self {
        Self(Name::Numbered(number))
    }

    /// The peer's address, if UDP is the carriage.
    pub const fn address(self) -> Option<SocketAddr> {
        match self.0 {
            Name::Udp(address) => Some(address),
            Name::Numbered(_) => None,
        }
    }

    /// The number of the path, with another carriage than UDP.
    pub const fn number(self) -> Option<u64> {
        match self.0 {
            Name::Udp(_) => None,
            Name::Numbered(number) => Some(number),
        }
    }

    /// The default properties, for a path whose properties the carriage has not set.
    pub(crate) const fn usual_properties(self) -> PathProperties {
        let overhead = self.udp_headers();
        let host = match self.0 {
            Name::Udp(address) => Some(address.ip()),
            Name::Numbered(_) => None,
        };
        PathProperties { largest_datagram: None, overhead, moves: host.is_some(), host }
    }

    /// The largest SRT datagram for an MSS, which includes the headers of IP and UDP on any
    /// carriage.
    pub(crate) const fn datagram_of(self, mss: usize) -> usize {
        mss.saturating_sub(self.udp_headers())
    }

    /// The bytes of the headers of IP and UDP in an MSS.
    const fn udp_headers(self) -> usize {
        match self.0 {
            Name::Udp(SocketAddr::V6(_)) => UDP_IPV6_OVERHEAD,
            Name::Udp(SocketAddr::V4(_)) | Name::Numbered(_) => UDP_IPV4_OVERHEAD,
        }
    }

    /// Whether a peer can be called on this path.
    pub(crate) const fn is_callable(self) -> bool {
        match self.0 {
            Name::Udp(address) => {
                let ip = address.ip();
                address.port() != 0 && !ip.is_unspecified() && !ip.is_multicast()
            }
            Name::Numbered(_) => true,
        }
    }

    /// Whether a connection may move from this path to `other`. Not to another address family: its
    /// payload is of another size, and no NAT translates from one to the other.
    pub(crate) const fn may_become(self, other: Self) -> bool {
        match (self.0, other.0) {
            (Name::Udp(from), Name::Udp(to)) => from.is_ipv4() == to.is_ipv4() && to.port() != 0,
            _ => false,
        }
    }

    /// The peer's IP address for a handshake; zero without one.
    pub(crate) fn peer_ip(self) -> PeerIp {
        let ip = self.address().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |address| address.ip());
        PeerIp::from(ip)
    }

    /// Writes the name of the path to a keyed hash.
    pub(crate) fn feed(self, hasher: &mut impl Hasher) {
        match self.0 {
            Name::Udp(address) => {
                match address.ip() {
                    IpAddr::V4(ip) => hasher.write(&ip.octets()),
                    IpAddr::V6(ip) => hasher.write(&ip.octets()),
                }
                hasher.write(&address.port().to_be_bytes());
            }
            // Its length differs from those of an IPv4 and an IPv6 address with a port.
            Name::Numbered(number) => hasher.write(&number.to_be_bytes()),
        }
    }
}

impl Host {
    /// The network whose addresses one host may have: a single IPv4 address, or 2^64 addresses of
    /// IPv6.
    pub(crate) fn network(self) -> Self {
        match self {
            Self::Ip(IpAddr::V6(address)) => Self::Ip(match address.to_ipv4_mapped() {
                Some(address) => address.into(),
                None => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
            }),
            Self::Ip(IpAddr::V4(_)) | Self::Numbered(_) => self,
        }
    }
}

impl From<SocketAddr> for PathId {
    fn from(address: SocketAddr) -> Self {
        Self(Name::Udp(address))
    }
}

impl PartialEq<SocketAddr> for PathId {
    fn eq(&self, address: &SocketAddr) -> bool {
        self.0 == Name::Udp(*address)
    }
}

impl fmt::Display for PathId {
    /// The peer's address, or "path 7".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Name::Udp(address) => address.fmt(f),
            Name::Numbered(number) => write!(f, "path {number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn udp(address: &str) -> PathId {
        PathId::from(address.parse::<SocketAddr>().expect("an address"))
    }

    #[test]
    fn a_udp_path_is_its_address_and_a_numbered_one_has_none() {
        let path = udp("192.0.2.1:9000");
        assert_eq!(path, "192.0.2.1:9000".parse::<SocketAddr>().expect("an address"));
        assert_eq!((path.to_string().as_str(), path.number()), ("192.0.2.1:9000", None));
        let path = PathId::numbered(7);
        assert_eq!((path.to_string().as_str(), path.address()), ("path 7", None));
        assert_eq!(path.number(), Some(7));
    }

    #[test]
    fn overhead_and_room_are_those_of_the_address_family() {
        let of = |path: PathId| (path.usual_properties().overhead, path.datagram_of(1_500));
        assert_eq!(of(udp("192.0.2.1:9000")), (28, 1_472));
        assert_eq!(of(udp("[2001:db8::1]:9000")), (48, 1_452));
        assert_eq!(of(PathId::numbered(1)), (28, 1_472));
    }

    #[test]
    fn addresses_that_no_peer_can_have_are_not_callable() {
        for address in ["192.0.2.1:0", "0.0.0.0:9000", "224.0.0.1:9000", "[::]:9000"] {
            assert!(!udp(address).is_callable(), "{address}");
        }
        assert!(udp("192.0.2.1:9000").is_callable() && PathId::numbered(0).is_callable());
    }

    #[test]
    fn a_connection_moves_only_within_its_address_family() {
        let path = udp("192.0.2.1:9000");
        assert!(path.may_become(udp("198.51.100.1:9")));
        for other in [udp("198.51.100.1:0"), udp("[2001:db8::1]:9"), PathId::numbered(1)] {
            assert!(!path.may_become(other), "{other}");
        }
    }

    #[test]
    fn a_host_of_ipv6_is_identified_by_its_network() {
        let network = |address| Path::usual(udp(address)).host().network();
        assert_eq!(network("[2001:db8::1]:9"), network("[2001:db8::ffff:1]:8"));
        assert_ne!(network("[2001:db8::1]:9"), network("[2001:db8:0:1::1]:9"));
        assert_eq!(network("[::ffff:192.0.2.1]:9"), network("192.0.2.1:9"));
        assert_ne!(network("192.0.2.1:9"), network("192.0.2.2:9"));
    }
}
