//! Options of the system that every UDP socket here has.

#[cfg(any(target_os = "linux", target_os = "android"))]
use std::io;

use socket2::Socket;

/// Lets the system fragment a datagram that is larger than the path takes, as it does for any other
/// program: quinn-udp forbids it because QUIC measures the path.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn allow_fragmentation(socket: &Socket, ipv6: bool) {
    use rustix::net::sockopt::{
        Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
    };
    let ipv4_result = set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::WANT);
    let ipv6_result = if ipv6 {
        set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::WANT)
            .map_err(io::Error::from)
            .and_then(|()| clear_dontfrag(socket))
    } else {
        Ok(())
    };
    if let Err(error) = ipv4_result.map_err(io::Error::from).and(ipv6_result) {
        tracing::debug!(%error, "large datagrams will not be fragmented");
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[expect(unsafe_code, reason = "no safe wrapper for IPV6_DONTFRAG exists")]
fn clear_dontfrag(socket: &Socket) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    let off: libc::c_int = 0;
    let len = libc::socklen_t::try_from(size_of_val(&off)).map_err(io::Error::other)?;
    // SAFETY: the file descriptor is open, and the value is a `c_int` that outlives the call, with
    // its true size.
    let result = unsafe {
        let value = (&raw const off).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG, value, len)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn allow_fragmentation(_socket: &Socket, _ipv6: bool) {}
