//! Listening, calling, and the callbacks.

use std::ffi::{CString, c_int, c_void};
use std::net::SocketAddr;
use std::ptr;
use std::time::Duration;

use libc::sockaddr;
use punctual_sockets::{Code, ConnectHook, Failure, ListenHook};

use crate::abi::{ConnectCallback, ListenCallback, SocketId};
use crate::border::{answer, done, quietly};
use crate::{address, hooks, library};

/// Listens at a bound socket.
#[unsafe(no_mangle)]
pub extern "C" fn srt_listen(socket: SocketId, backlog: c_int) -> c_int {
    done(|| library::of_socket()?.listen(socket, backlog))
}

/// Takes a connection of a listening socket.
///
/// # Safety
///
/// `len` is null or can be read and written; `name` is null or has room for `*len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_accept(
    listener: SocketId,
    name: *mut sockaddr,
    len: *mut c_int,
) -> SocketId {
    answer(|| {
        let library = library::of_socket()?;
        // SAFETY: the caller says so.
        let room = unsafe { room_for_address(name, len) }?;
        let (socket, peer) = library.accept_with_room(listener, room)?;
        if let (Some(peer), false) = (peer, name.is_null()) {
            // SAFETY: the caller says so.
            unsafe { address::write(peer, name, len) }?;
        }
        Ok(socket)
    })
}

/// The bytes for an address; `None` if none is wanted.
///
/// # Safety
///
/// `len` is null or can be read.
unsafe fn room_for_address(name: *mut sockaddr, len: *mut c_int) -> Result<Option<usize>, Failure> {
    if name.is_null() {
        return Ok(None);
    }
    if len.is_null() {
        return Err(Code::InvalidParameter.into());
    }
    // SAFETY: the caller says so.
    let room = unsafe { len.read() };
    Ok(Some(usize::try_from(room).unwrap_or(0)))
}

/// Takes a connection of one of several listening sockets.
///
/// # Safety
///
/// `listeners` has `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_accept_bond(
    listeners: *const SocketId,
    count: c_int,
    timeout: i64,
) -> SocketId {
    answer(|| {
        let count = usize::try_from(count).ok().filter(|&count| count > 0);
        let count = count.ok_or(Code::EmptyEventSet)?;
        if listeners.is_null() {
            return Err(Code::InvalidParameter.into());
        }
        // SAFETY: the caller says so.
        let listeners = unsafe { std::slice::from_raw_parts(listeners, count) };
        let timeout = u64::try_from(timeout).ok().map(Duration::from_millis);
        library::of_socket()?.accept_any(listeners, timeout)
    })
}

/// Something of the program's own that its callbacks get.
#[derive(Clone, Copy)]
struct Opaque(*mut c_void);

// SAFETY: the library only passes the pointer back; libsrt's documentation says that callbacks run
// on the library's threads.
unsafe impl Send for Opaque {}
// SAFETY: as above.
unsafe impl Sync for Opaque {}

impl Opaque {
    /// The pointer. A method, so that closures capture the whole structure.
    fn get(self) -> *mut c_void {
        self.0
    }
}

/// Sets the callback that decides on the callers of a socket that does not listen yet.
///
/// # Safety
///
/// `callback` is null or can be called with `opaque` from any thread while the socket exists.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_listen_callback(
    socket: SocketId,
    callback: Option<ListenCallback>,
    opaque: *mut c_void,
) -> c_int {
    done(|| {
        let callback = callback.ok_or(Code::InvalidParameter)?;
        let opaque = Opaque(opaque);
        let hook = ListenHook::new(move |id, version, peer, stream_id| {
            let stream_id = c_string(stream_id);
            let decision = with_address(peer, |peer| {
                // SAFETY: the program says so.
                hooks::call(|| unsafe {
                    callback(opaque.get(), id, version, peer, stream_id.as_ptr())
                })
            });
            decision.unwrap_or_else(|| {
                tracing::warn!("the hook of a listener threw an exception: the caller is refused");
                ListenHook::REFUSE
            })
        });
        library::of_socket()?.set_listen_hook(socket, Some(hook))
    })
}

/// Sets the callback that is told of failures.
///
/// # Safety
///
/// As [`srt_listen_callback`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_connect_callback(
    socket: SocketId,
    callback: Option<ConnectCallback>,
    opaque: *mut c_void,
) -> c_int {
    done(|| {
        let callback = callback.ok_or(Code::InvalidParameter)?;
        let opaque = Opaque(opaque);
        let hook = ConnectHook::new(move |id, code, peer, token| {
            let told = with_address(peer, |peer| {
                // SAFETY: the program says so.
                hooks::call(|| unsafe { callback(opaque.get(), id, code as c_int, peer, token) })
            });
            if told.is_none() {
                tracing::warn!("the hook of a caller threw an exception");
            }
        });
        library::of_socket()?.set_connect_hook(socket, Some(hook))
    })
}

/// A stream ID as a C string: one with a NUL ends there. The option has all of it.
fn c_string(stream_id: &[u8]) -> CString {
    let text = stream_id.split(|&byte| byte == 0).next().unwrap_or_default();
    CString::new(text).unwrap_or_default()
}

/// Calls `with` with the address as C has it.
fn with_address<R>(address: SocketAddr, with: impl FnOnce(*const sockaddr) -> R) -> R {
    let (storage, _) = address::to_storage(address);
    with(ptr::from_ref(&storage).cast())
}

/// Calls a listener; adds a link to a group.
///
/// # Safety
///
/// `name` is null, or has `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_connect(socket: SocketId, name: *const sockaddr, len: c_int) -> c_int {
    answer(|| {
        let library = library::of_socket()?;
        library.check(socket)?;
        // SAFETY: the caller says so.
        let remote = unsafe { address::read(name, len) }?;
        library.connect_any(socket, remote)
    })
}

/// Calls a listener. The first sequence number is for tests of libsrt, and is left out here.
///
/// # Safety
///
/// As [`srt_connect`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_connect_debug(
    socket: SocketId,
    name: *const sockaddr,
    len: c_int,
    _isn: c_int,
) -> c_int {
    // SAFETY: the caller says so.
    unsafe { srt_connect(socket, name, len) }
}

/// Binds a socket to `source` and calls the listener at `target`.
///
/// # Safety
///
/// Each address is null, or has `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_connect_bind(
    socket: SocketId,
    source: *const sockaddr,
    target: *const sockaddr,
    len: c_int,
) -> c_int {
    // SAFETY: the caller says so.
    answer(|| unsafe {
        let library = library::of_socket()?;
        let (local, remote) = (address::read(source, len)?, address::read(target, len)?);
        if local.is_ipv4() != remote.is_ipv4() {
            return Err(Code::InvalidParameter.into());
        }
        library.connect_from(socket, local, remote)
    })
}

/// Connects two ends that call each other.
///
/// # Safety
///
/// Each address is null, or has as many bytes as its length says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_rendezvous(
    socket: SocketId,
    local: *const sockaddr,
    local_len: c_int,
    remote: *const sockaddr,
    remote_len: c_int,
) -> c_int {
    // SAFETY: the caller says so.
    done(|| unsafe {
        let library = library::of_socket()?;
        let local = address::read(local, local_len)?;
        let remote = address::read(remote, remote_len)?;
        if local.is_ipv4() != remote.is_ipv4() {
            return Err(Code::InvalidParameter.into());
        }
        library.meet(socket, local, remote)
    })
}

/// The reason of the last refusal.
#[unsafe(no_mangle)]
pub extern "C" fn srt_getrejectreason(socket: SocketId) -> c_int {
    quietly(0, || {
        let library = library::present().ok().flatten();
        library.map_or(0, |library| library.reject_reason(socket))
    })
}

/// Sets the reason of a refusal, in a listen callback.
#[unsafe(no_mangle)]
pub extern "C" fn srt_setrejectreason(socket: SocketId, reason: c_int) -> c_int {
    done(|| library::of_socket()?.set_reject_reason(socket, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_for_an_address_is_read_only_if_one_is_wanted() {
        let mut name = 0u8;
        let name: *mut sockaddr = (&raw mut name).cast();
        let mut len = 16;
        // SAFETY: the length can be read, and the name is not touched.
        unsafe {
            assert_eq!(room_for_address(ptr::null_mut(), ptr::null_mut()), Ok(None));
            assert_eq!(room_for_address(ptr::null_mut(), &raw mut len), Ok(None));
            assert_eq!(room_for_address(name, &raw mut len), Ok(Some(16)));
            assert!(room_for_address(name, ptr::null_mut()).is_err());
            len = -1;
            assert_eq!(room_for_address(name, &raw mut len), Ok(Some(0)));
        }
    }

    #[test]
    fn a_stream_id_ends_at_its_first_nul_where_it_is_a_c_string() {
        for (stream_id, text) in [(&b"camera"[..], c"camera"), (b"a\0b", c"a"), (b"", c"")] {
            assert_eq!(c_string(stream_id).as_c_str(), text);
        }
    }

    #[test]
    fn a_callback_gets_an_address_that_c_can_read() {
        let address = "[2001:db8::1]:4200".parse().unwrap();
        // SAFETY: there are the bytes of the address.
        let read = with_address(address, |peer| unsafe { address::read(peer, 28) });
        assert_eq!(read, Ok(address));
    }
}
