//! Source-specific multicast at an interface that its number names.

use std::io;
use std::net::{IpAddr, SocketAddr};

use socket2::Socket;

/// Joins the multicast `group` for the datagrams of `source`, at the interface with this number, or
/// at one that the system chooses if it is 0 (`MCAST_JOIN_SOURCE_GROUP`, RFC 3678 section 5.1).
/// Several sources are joined one by one.
///
/// # Errors
///
/// The addresses are not of one family, the interface does not exist or cannot do it, or the
/// operating system has no such call.
pub fn join_source(socket: &Socket, group: IpAddr, source: IpAddr, index: u32) -> io::Result<()> {
    if group.is_ipv4() != source.is_ipv4() {
        let (family, other) = if group.is_ipv4() { ("IPv4", "IPv6") } else { ("IPv6", "IPv4") };
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("an {family} group has {family} sources, and {source} is of {other}"),
        ));
    }
    join(socket, SocketAddr::new(group, 0), SocketAddr::new(source, 0), index)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[expect(unsafe_code, reason = "no safe wrapper for MCAST_JOIN_SOURCE_GROUP exists")]
fn join(socket: &Socket, group: SocketAddr, source: SocketAddr, index: u32) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    let level = if group.is_ipv4() { libc::IPPROTO_IP } else { libc::IPPROTO_IPV6 };
    let request = libc::group_source_req {
        gsr_interface: index,
        gsr_group: storage(group),
        gsr_source: storage(source),
    };
    let len = libc::socklen_t::try_from(size_of_val(&request)).map_err(io::Error::other)?;
    // SAFETY: the pointer is to a whole `group_source_req` of `len` bytes, which the call reads.
    let joined = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            libc::MCAST_JOIN_SOURCE_GROUP,
            (&raw const request).cast(),
            len,
        )
    };
    if joined == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The address as the system wants it.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[expect(unsafe_code, reason = "the storage is as large as any address, and all bytes are valid")]
fn storage(address: SocketAddr) -> libc::sockaddr_storage {
    let address = socket2::SockAddr::from(address);
    // SAFETY: zeros are a valid storage, and an address has at most as many bytes as the storage.
    unsafe {
        let mut storage: libc::sockaddr_storage = std::mem::zeroed();
        let len = (address.len() as usize).min(size_of_val(&storage));
        let from = address.as_ptr().cast::<u8>();
        std::ptr::copy_nonoverlapping(from, (&raw mut storage).cast::<u8>(), len);
        storage
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn join(_: &Socket, _: SocketAddr, _: SocketAddr, _: u32) -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "source-specific multicast at an interface by its name, or over IPv6, is not possible on \
         this system",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_and_its_source_are_of_one_family() {
        let socket = Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).unwrap();
        let group = "232.1.1.1".parse().unwrap();
        let refused = join_source(&socket, group, "2001:db8::1".parse().unwrap(), 0).unwrap_err();
        assert!(refused.to_string().contains("an IPv4 group has IPv4 sources"), "{refused}");
    }
}
