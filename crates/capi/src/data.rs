//! Sending and receiving messages, bytes and files.

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::slice;

use punctual_sockets::{Code, Failure, MessageControl};

use crate::abi::{MsgCtrl, SocketId};
use crate::border::{answer, int};
use crate::{groups, library};

/// The defaults of a message.
#[unsafe(no_mangle)]
pub static srt_msgctrl_default: MsgCtrl = MsgCtrl::DEFAULT;

/// Sets the defaults.
///
/// # Safety
///
/// `control` is null, or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_msgctrl_init(control: *mut MsgCtrl) {
    if !control.is_null() {
        // SAFETY: the caller says so.
        unsafe { control.write(MsgCtrl::DEFAULT) };
    }
}

/// Sends a message, or bytes of a stream.
///
/// # Safety
///
/// `data` has `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_send(socket: SocketId, data: *const c_char, len: c_int) -> c_int {
    // SAFETY: the caller says so.
    unsafe { srt_sendmsg2(socket, data, len, std::ptr::null_mut()) }
}

/// Sends a message with a time to live in milliseconds, perhaps in order.
///
/// # Safety
///
/// `data` has `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_sendmsg(
    socket: SocketId,
    data: *const c_char,
    len: c_int,
    ttl: c_int,
    in_order: c_int,
) -> c_int {
    let mut control = MsgCtrl { msgttl: ttl, inorder: in_order, ..MsgCtrl::DEFAULT };
    // SAFETY: the caller says so.
    unsafe { srt_sendmsg2(socket, data, len, &raw mut control) }
}

/// Sends a message, or bytes of a stream, and tells its numbers.
///
/// # Safety
///
/// `data` has `len` bytes; `control` is null, or can be read and written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_sendmsg2(
    socket: SocketId,
    data: *const c_char,
    len: c_int,
    control: *mut MsgCtrl,
) -> c_int {
    answer(|| {
        let open = library::open_socket(socket)?;
        // SAFETY: the caller says so.
        let (data, out) = unsafe { (bytes(data, len)?, control.as_mut()) };
        let mut wishes = MessageControl::default();
        if let Some(control) = &out {
            wishes.ttl = control.msgttl;
            wishes.in_order = control.inorder != 0;
            wishes.time = control.srctime;
            wishes.number = control.msgno;
        }
        let sent = open.send(data, &mut wishes)?;
        if let Some(control) = out {
            control.srctime = wishes.time;
            control.pktseq = wishes.sequence;
            control.msgno = wishes.number;
            // SAFETY: for groups the caller says so; it is not touched otherwise.
            unsafe { groups::report_links(socket, control) };
        }
        Ok(int(sent))
    })
}

/// Receives a message, or bytes of a stream.
///
/// # Safety
///
/// `buffer` has room for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_recv(socket: SocketId, buffer: *mut c_char, len: c_int) -> c_int {
    // SAFETY: the caller says so.
    unsafe { srt_recvmsg2(socket, buffer, len, std::ptr::null_mut()) }
}

/// Receives a message, or bytes of a stream.
///
/// # Safety
///
/// `buffer` has room for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_recvmsg(socket: SocketId, buffer: *mut c_char, len: c_int) -> c_int {
    // SAFETY: the caller says so.
    unsafe { srt_recvmsg2(socket, buffer, len, std::ptr::null_mut()) }
}

/// Receives a message, or bytes of a stream, and tells its numbers and its time.
///
/// # Safety
///
/// `buffer` has room for `len` bytes; `control` is null, or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_recvmsg2(
    socket: SocketId,
    buffer: *mut c_char,
    len: c_int,
    control: *mut MsgCtrl,
) -> c_int {
    answer(|| {
        let open = library::open_socket(socket)?;
        let room = usize::try_from(len).unwrap_or(0);
        let mut told = MessageControl::default();
        let received = if room == 0 || buffer.is_null() {
            open.receive(&mut [], &mut told)?
        } else {
            // SAFETY: the caller says so. The bytes are only written.
            let buffer = unsafe { slice::from_raw_parts_mut(buffer.cast::<u8>(), room) };
            open.receive(buffer, &mut told)?
        };
        // SAFETY: the caller says so. Programs pass structures whose other fields were never set.
        if let Some(control) = unsafe { control.as_mut() } {
            control.srctime = told.time;
            control.pktseq = told.sequence;
            control.msgno = told.number;
            // SAFETY: for groups the caller says so; it is not touched otherwise.
            unsafe { groups::report_links(socket, control) };
        }
        Ok(int(received))
    })
}

/// Sends a part of a file. Returns its bytes.
///
/// # Safety
///
/// `path` is null or a text that ends with NUL; `offset` is null or can be read and written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_sendfile(
    socket: SocketId,
    path: *const c_char,
    offset: *mut i64,
    size: i64,
    block: c_int,
) -> i64 {
    answer(|| {
        let library = library::of_socket()?;
        // SAFETY: the caller says so.
        let (path, offset) = unsafe { file_arguments(path, offset) }?;
        library.send_file(socket, &path, offset, size, block_size(block))
    })
}

/// Receives a file. Returns its bytes.
///
/// # Safety
///
/// As [`srt_sendfile`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_recvfile(
    socket: SocketId,
    path: *const c_char,
    offset: *mut i64,
    size: i64,
    block: c_int,
) -> i64 {
    answer(|| {
        let library = library::of_socket()?;
        // SAFETY: the caller says so.
        let (path, offset) = unsafe { file_arguments(path, offset) }?;
        library.receive_file(socket, &path, offset, size, block_size(block))
    })
}

/// # Safety
///
/// `path` is null or a text that ends with NUL; `offset` is null or can be read and written.
unsafe fn file_arguments<'a>(
    path: *const c_char,
    offset: *mut i64,
) -> Result<(PathBuf, &'a mut i64), Failure> {
    if path.is_null() {
        return Err(Code::InvalidParameter.into());
    }
    // SAFETY: the caller says so.
    let (path, offset) = unsafe { (CStr::from_ptr(path), offset.as_mut()) };
    let path = PathBuf::from(OsStr::from_bytes(path.to_bytes()));
    Ok((path, offset.ok_or(Code::InvalidParameter)?))
}

/// The largest block that is read or written at once.
const LARGEST_BLOCK: usize = 8 << 20;

fn block_size(block: c_int) -> usize {
    usize::try_from(block).unwrap_or(0).clamp(1, LARGEST_BLOCK)
}

/// The packets and bytes in the send buffer. Returns the milliseconds that they span.
///
/// # Safety
///
/// Each pointer is null, or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_getsndbuffer(
    socket: SocketId,
    blocks: *mut usize,
    size: *mut usize,
) -> c_int {
    let read = || library::of_socket()?.send_buffer(socket);
    let Ok((packets, bytes, span)) = crate::border::quietly(Err(Code::Unknown.into()), read) else {
        return crate::abi::FAILED;
    };
    // SAFETY: the caller says so.
    unsafe {
        if let Some(blocks) = blocks.as_mut() {
            *blocks = packets;
        }
        if let Some(size) = size.as_mut() {
            *size = bytes;
        }
    }
    span
}

/// The bytes to send; none for a length that is not positive.
///
/// # Safety
///
/// `data` has `len` bytes.
unsafe fn bytes<'a>(data: *const c_char, len: c_int) -> Result<&'a [u8], Failure> {
    match usize::try_from(len) {
        Err(_) | Ok(0) => Ok(&[]),
        Ok(_) if data.is_null() => Err(Code::InvalidParameter.into()),
        // SAFETY: the caller says so.
        Ok(len) => Ok(unsafe { slice::from_raw_parts(data.cast(), len) }),
    }
}
