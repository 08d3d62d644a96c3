//! The addresses of a socket.

use std::net::{SocketAddr, UdpSocket};

use punctual::Socket as Connection;

use super::link::Link;
use super::{Socket, Stage};
use crate::code::{Code, Failure};

impl Socket {
    /// This end's address. Of a connected socket that is bound to every address, it is the one that
    /// its datagrams are sent from.
    pub(crate) fn local_address(&self) -> Result<SocketAddr, Failure> {
        let state = self.lock();
        let local = state.local.as_ref().map(|local| local.address());
        drop(state);
        let connection = self.link.get().and_then(Link::connection);
        let local = local.or_else(|| connection.map(Connection::local_addr));
        let local = local.ok_or(Code::NotConnected)?;
        match connection {
            Some(connection) if local.ip().is_unspecified() => {
                Ok(source_address(local, connection.peer_addr()).unwrap_or(local))
            }
            _ => Ok(local),
        }
    }

    /// The peer's address.
    pub(crate) fn peer_address(&self) -> Result<SocketAddr, Failure> {
        match self.lock().stage {
            Stage::Connected => {}
            _ => return Err(Code::NotConnected.into()),
        }
        self.remote().ok_or_else(|| Code::NotConnected.into())
    }

    /// The peer's address of an accepted socket, whatever has become of it.
    pub(crate) fn caller_address(&self) -> Option<SocketAddr> {
        self.remote()
    }

    /// The peer's address, in the family of the UDP port.
    fn remote(&self) -> Option<SocketAddr> {
        let connection = self.link.get().and_then(Link::connection)?;
        let remote = connection.peer_addr();
        Some(if connection.local_addr().is_ipv6() { mapped(remote) } else { remote })
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
