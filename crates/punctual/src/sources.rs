//! The local address to answer each peer from.
//!
//! A port bound to the wildcard address of a machine with several addresses must answer from the
//! address that the peer called: SRT ignores datagrams from any other.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

/// The addresses that the peers of one port called.
///
/// Two generations bound the memory, also under a flood of spoofed addresses: when the younger one
/// is full, it replaces the older one. A peer that sends again moves to the younger one.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    younger: HashMap<SocketAddr, IpAddr>,
    older: HashMap<SocketAddr, IpAddr>,
    /// The latest entry of the younger generation: datagrams come in runs from one peer.
    latest: Option<(SocketAddr, IpAddr)>,
}

impl Sources {
    /// Notes that `remote` sent a datagram to `local`.
    pub(crate) fn learn(&mut self, remote: SocketAddr, local: IpAddr) {
        if self.latest == Some((remote, local)) || !is_source(local) {
            return;
        }
        self.latest = Some((remote, local));
        if self.younger.get(&remote) == Some(&local) {
            return;
        }
        if self.younger.len() == GENERATION {
            self.older = std::mem::take(&mut self.younger);
        }
        self.younger.insert(remote, local);
    }

    /// The address to answer `remote` from; `None` to leave it to the system.
    pub(crate) fn of(&self, remote: SocketAddr) -> Option<IpAddr> {
        self.younger.get(&remote).or_else(|| self.older.get(&remote)).copied()
    }

    /// Forgets the local address for a peer, since the system does not accept it as a source any
    /// more.
    pub(crate) fn forget(&mut self, remote: SocketAddr) {
        self.younger.remove(&remote);
        self.older.remove(&remote);
        self.latest = None;
    }
}

/// Whether datagrams can be sent from this address without naming an interface.
fn is_source(local: IpAddr) -> bool {
    match local {
        IpAddr::V4(ip) => !ip.is_multicast() && !ip.is_broadcast() && !ip.is_unspecified(),
        IpAddr::V6(ip) => !ip.is_multicast() && !ip.is_unicast_link_local() && !ip.is_unspecified(),
    }
}

/// Peers in a generation.
const GENERATION: usize = 16_384;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_peers_is_forgotten_and_an_active_one_is_not() {
        let local: IpAddr = "192.0.2.1".parse().unwrap();
        let peer = |n: usize| {
            let n = u32::try_from(n).unwrap();
            SocketAddr::from((std::net::Ipv4Addr::from(n), 9_000))
        };
        let mut sources = Sources::default();
        for n in 0..5 * GENERATION {
            sources.learn(peer(n), local);
            if n % 1_000 == 0 {
                sources.learn(peer(7), local);
            }
        }
        assert_eq!(sources.of(peer(7)), Some(local));
        assert_eq!(sources.of(peer(5 * GENERATION - 1)), Some(local));
        assert_eq!(sources.of(peer(8)), None);
        assert!(sources.younger.len() + sources.older.len() <= 2 * GENERATION);
    }

    #[test]
    fn multicast_and_link_local_addresses_are_no_sources() {
        let mut sources = Sources::default();
        let peer = "192.0.2.2:1".parse().unwrap();
        for local in ["224.0.0.1", "255.255.255.255", "ff02::1", "fe80::1", "0.0.0.0"] {
            sources.learn(peer, local.parse().unwrap());
            assert_eq!(sources.of(peer), None, "{local}");
        }
    }
}
