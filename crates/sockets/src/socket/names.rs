//! The addresses of a connection, as programs for libsrt see them.

use std::net::{SocketAddr, UdpSocket};

use punctual::Socket as Connection;

/// The addresses of a connection.
#[derive(Debug)]
pub(super) struct ConnectionAddresses<'a>(pub(super) &'a Connection);

impl ConnectionAddresses<'_> {
    /// This end's address; `bound` is that of its port. If the port is bound to every address, it
    /// is the one that the connection's datagrams are sent from.
    pub(super) fn local(&self, bound: Option<SocketAddr>) -> SocketAddr {
        let local = bound.unwrap_or_else(|| self.0.local_addr());
        if local.ip().is_unspecified() {
            source_address(local, self.0.peer_addr()).unwrap_or(local)
        } else {
            local
        }
    }

    /// The peer's address, in the family of the UDP port.
    pub(super) fn peer(&self) -> SocketAddr {
        let remote = self.0.peer_addr();
        if self.0.local_addr().is_ipv6() { mapped(remote) } else { remote }
    }
}

/// An address of IPv4 as sockets of both families have it.
fn mapped(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) => SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port()),
        SocketAddr::V6(_) => address,
    }
}

/// The address from which the system sends to `remote`, with the port of `local`. It asks the
/// system by a UDP socket that sends nothing.
fn source_address(local: SocketAddr, remote: SocketAddr) -> Option<SocketAddr> {
    let socket = UdpSocket::bind(SocketAddr::new(local.ip(), 0)).ok()?;
    socket.connect(if local.is_ipv6() { mapped(remote) } else { remote }).ok()?;
    Some(SocketAddr::new(socket.local_addr().ok()?.ip(), local.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_ipv4_is_mapped_and_one_of_ipv6_is_kept() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert_eq!(mapped(address("192.0.2.1:9")), address("[::ffff:192.0.2.1]:9"));
        assert_eq!(mapped(address("[::1]:9")), address("[::1]:9"));
    }

    #[test]
    fn the_source_of_datagrams_to_this_host_is_this_host() {
        let any = SocketAddr::from(([0, 0, 0, 0], 7_000));
        let here = SocketAddr::from(([127, 0, 0, 1], 9));
        assert_eq!(source_address(any, here), Some(SocketAddr::from(([127, 0, 0, 1], 7_000))));
    }
}
