//! Making, naming and closing sockets.

use std::ffi::c_int;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};

use libc::sockaddr;
use punctual_sockets::{Code, SocketState};

use crate::abi::SocketId;
use crate::border::{answer, done, quietly};
use crate::{address, library};

/// Creates a socket.
#[unsafe(no_mangle)]
pub extern "C" fn srt_create_socket() -> SocketId {
    answer(|| Ok(library::running()?.create_socket()))
}

/// Creates a socket; the arguments have no meaning.
#[unsafe(no_mangle)]
pub extern "C" fn srt_socket(_family: c_int, _kind: c_int, _protocol: c_int) -> SocketId {
    srt_create_socket()
}

/// Binds a socket.
///
/// # Safety
///
/// `name` is null, or has `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_bind(socket: SocketId, name: *const sockaddr, len: c_int) -> c_int {
    done(|| {
        // SAFETY: the caller says so.
        let local = unsafe { address::read(name, len) }?;
        library::present()?.ok_or(Code::InvalidParameter)?.bind(socket, local)
    })
}

/// Binds a socket to a UDP socket of the system, and takes it over. If it fails, the descriptor
/// still belongs to the program.
///
/// # Safety
///
/// `fd` is no descriptor, or one of this process, which nobody else closes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_bind_acquire(socket: SocketId, fd: c_int) -> c_int {
    done(|| {
        let library = library::present()?.ok_or(Code::InvalidParameter)?;
        if !is_datagram_socket(fd) {
            return Err(Code::InvalidParameter.into());
        }
        // SAFETY: it is a descriptor, since it is a socket, and nobody closes it during the call.
        let given = unsafe { BorrowedFd::borrow_raw(fd) };
        let copy = given.try_clone_to_owned().map_err(|_| Code::InvalidParameter)?;
        library.acquire(socket, || copy.into())?;
        // SAFETY: the program has given it away, and the library has a copy.
        drop(unsafe { OwnedFd::from_raw_fd(fd) });
        Ok(())
    })
}

/// Whether a number is a descriptor of a socket that sends datagrams.
fn is_datagram_socket(fd: c_int) -> bool {
    let mut kind: c_int = 0;
    let mut len = libc::socklen_t::try_from(size_of::<c_int>()).unwrap_or(0);
    let place = (&raw mut kind).cast();
    // SAFETY: the kernel checks the number; the place has as many bytes as the length says.
    let read =
        unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_TYPE, place, &raw mut len) };
    read == 0 && kind == libc::SOCK_DGRAM
}

/// Closes a socket or a group.
#[unsafe(no_mangle)]
pub extern "C" fn srt_close(socket: SocketId) -> c_int {
    done(|| {
        if let Some(library) = library::present()? {
            library.close(socket);
        }
        Ok(())
    })
}

/// The state of a socket.
#[unsafe(no_mangle)]
pub extern "C" fn srt_getsockstate(socket: SocketId) -> c_int {
    quietly(SocketState::Nonexistent as c_int, || library::socket_state(socket) as c_int)
}

/// The peer's address.
///
/// # Safety
///
/// `len` is null or can be read and written; `name` is null or has room for `*len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_getpeername(
    socket: SocketId,
    name: *mut sockaddr,
    len: *mut c_int,
) -> c_int {
    done(|| {
        let peer = library::of_socket()?.peer_address(socket)?;
        // SAFETY: the caller says so.
        unsafe { address::write(peer, name, len) }
    })
}

/// This end's address.
///
/// # Safety
///
/// As [`srt_getpeername`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_getsockname(
    socket: SocketId,
    name: *mut sockaddr,
    len: *mut c_int,
) -> c_int {
    done(|| {
        let local = library::of_socket()?.local_address(socket)?;
        // SAFETY: the caller says so.
        unsafe { address::write(local, name, len) }
    })
}

/// The instant at which a socket was bound, connected or accepted, microseconds.
#[unsafe(no_mangle)]
pub extern "C" fn srt_connection_time(socket: SocketId) -> i64 {
    answer(|| {
        let at = library::of_socket()?.opened_at(socket)?;
        Ok(i64::try_from(at).unwrap_or(i64::MAX))
    })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no sockets")]
    fn only_a_socket_that_sends_datagrams_is_one() {
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let (pipe, _) = std::io::pipe().unwrap();
        assert!(is_datagram_socket(udp.as_raw_fd()));
        for fd in [tcp.as_raw_fd(), pipe.as_raw_fd(), -1, c_int::MAX] {
            assert!(!is_datagram_socket(fd), "{fd}");
        }
    }
}
