//! Making, naming and closing sockets.

use std::ffi::c_int;
use std::os::fd::{FromRawFd, OwnedFd};

use libc::sockaddr;
use punctual_sockets::{Code, SocketState};

use crate::abi::{FAILED, SocketId};
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

/// Binds a socket to a UDP socket of the system, and takes it over.
///
/// # Safety
///
/// `fd` is a descriptor of this process, which nobody else closes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_bind_acquire(socket: SocketId, fd: c_int) -> c_int {
    done(|| {
        if fd < 0 {
            return Err(Code::InvalidParameter.into());
        }
        let library = library::present()?.ok_or(Code::InvalidParameter)?;
        // SAFETY: asking for the flags of any number is allowed.
        if unsafe { libc::fcntl(fd, libc::F_GETFD) } == FAILED {
            return Err(Code::InvalidParameter.into());
        }
        library.acquire(socket, || {
            // SAFETY: the caller gives the descriptor away. It is taken only if the socket can be
            // bound.
            unsafe { OwnedFd::from_raw_fd(fd) }.into()
        })
    })
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
    quietly(SocketState::Nonexistent as c_int, || {
        let library = library::present().ok().flatten();
        library.map_or(SocketState::Nonexistent, |library| library.state(socket)) as c_int
    })
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
