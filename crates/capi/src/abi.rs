//! The structures and constants of libsrt's interface. The tests compare their layouts with the
//! headers'.

use std::ffi::{c_char, c_int, c_void};

/// The number of a socket or a group (`SRTSOCKET`).
pub(crate) type SocketId = i32;

/// The result of a function that failed (`SRT_ERROR`, `SRT_INVALID_SOCK`).
pub(crate) const FAILED: c_int = -1;

/// `SRT_MSGCTRL`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MsgCtrl {
    /// Not used.
    pub flags: c_int,
    /// Time to live of a message to send, milliseconds; -1 for no limit.
    pub msgttl: c_int,
    /// Whether a message to send is delivered in order.
    pub inorder: c_int,
    /// Not used.
    pub boundary: c_int,
    /// The origin time of a message to send, the due time of a received one, microseconds.
    pub srctime: i64,
    /// The sequence number of the message.
    pub pktseq: i32,
    /// The message number.
    pub msgno: i32,
    /// An array for the states of a group's links, or null.
    pub grpdata: *mut GroupData,
    /// The length of the array, and then the number of links.
    pub grpdata_size: usize,
}

// SAFETY: the pointer belongs to the caller of each function; the one constant has none.
unsafe impl Sync for MsgCtrl {}

impl MsgCtrl {
    /// The defaults.
    pub(crate) const DEFAULT: Self = Self {
        flags: 0,
        msgttl: -1,
        inorder: 0,
        boundary: 0,
        srctime: 0,
        pktseq: -1,
        msgno: -1,
        grpdata: std::ptr::null_mut(),
        grpdata_size: 0,
    };
}

/// `SRT_SOCKGROUPDATA`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct GroupData {
    /// The socket of the link.
    pub id: SocketId,
    /// The peer's address.
    pub peeraddr: libc::sockaddr_storage,
    /// The state of the socket.
    pub sockstate: c_int,
    /// The weight of the link.
    pub weight: u16,
    /// The state of the link.
    pub memberstate: c_int,
    /// The result of the last operation.
    pub result: c_int,
    /// The token of the link.
    pub token: c_int,
}

/// `SRT_SOCKGROUPCONFIG`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct GroupConfig {
    /// The socket of the link, once it calls.
    pub id: SocketId,
    /// This end's address; no family for any.
    pub srcaddr: libc::sockaddr_storage,
    /// The peer's address.
    pub peeraddr: libc::sockaddr_storage,
    /// The weight of the link.
    pub weight: u16,
    /// Options of this link, or null.
    pub config: *mut c_void,
    /// The error of the link.
    pub errorcode: c_int,
    /// A number of the program's own.
    pub token: c_int,
}

/// `SRT_EPOLL_EVENT`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct EpollEvent {
    /// The socket.
    pub fd: SocketId,
    /// Its events.
    pub events: c_int,
}

/// `srt_listen_callback_fn`.
pub(crate) type ListenCallback = unsafe extern "C-unwind" fn(
    *mut c_void,
    SocketId,
    c_int,
    *const libc::sockaddr,
    *const c_char,
) -> c_int;

/// `srt_connect_callback_fn`.
pub(crate) type ConnectCallback =
    unsafe extern "C-unwind" fn(*mut c_void, SocketId, c_int, *const libc::sockaddr, c_int);

/// `SRT_LOG_HANDLER_FN`.
pub(crate) type LogHandler = unsafe extern "C-unwind" fn(
    *mut c_void,
    c_int,
    *const c_char,
    c_int,
    *const c_char,
    *const c_char,
);

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    #[test]
    fn layouts_are_those_of_the_headers() {
        assert_eq!(size_of::<MsgCtrl>(), 48);
        assert_eq!(offset_of!(MsgCtrl, pktseq), 24);
        assert_eq!(size_of::<GroupData>(), 160);
        assert_eq!(offset_of!(GroupData, sockstate), 136);
        assert_eq!(offset_of!(GroupData, token), 152);
        assert_eq!(size_of::<GroupConfig>(), 288);
        assert_eq!(offset_of!(GroupConfig, weight), 264);
        assert_eq!(offset_of!(GroupConfig, token), 284);
        assert_eq!(size_of::<EpollEvent>(), 8);
    }
}
