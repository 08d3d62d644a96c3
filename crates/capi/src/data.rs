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
        let (data, mut message) = unsafe { (bytes(data, len)?, read_control(control)) };
        let sent = open.send(data, &mut message)?;
        // SAFETY: the caller says so.
        unsafe { write_control(control, &message, socket) };
        Ok(int(sent))
    })
}

/// The fields of a message to send. The others need not be set.
///
/// # Safety
///
/// `control` is null, or can be read.
unsafe fn read_control(control: *const MsgCtrl) -> MessageControl {
    if control.is_null() {
        return MessageControl::default();
    }
    // SAFETY: the caller says so.
    unsafe {
        MessageControl {
            ttl: (&raw const (*control).msgttl).read(),
            in_order: (&raw const (*control).inorder).read() != 0,
            time: (&raw const (*control).srctime).read(),
            number: (&raw const (*control).msgno).read(),
            ..MessageControl::default()
        }
    }
}

/// Writes the fields of a message that was sent or received; bytes of a stream have none.
/// Programs pass structures whose other fields were never set: no reference is made to them.
///
/// # Safety
///
/// `control` is null, or can be written; for a group, as [`groups::report_links`] says.
unsafe fn write_control(control: *mut MsgCtrl, message: &MessageControl, socket: SocketId) {
    if control.is_null() {
        return;
    }
    // SAFETY: the caller says so.
    unsafe {
        if message.sequence >= 0 {
            (&raw mut (*control).srctime).write(message.time);
            (&raw mut (*control).pktseq).write(message.sequence);
            (&raw mut (*control).msgno).write(message.number);
        }
        groups::report_links(socket, control);
    }
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
        let mut message = MessageControl::default();
        let received = if room == 0 || buffer.is_null() {
            open.receive(&mut [], &mut message)?
        } else {
            // SAFETY: the caller says so. The bytes need not be set before.
            let buffer = unsafe { slice::from_raw_parts_mut(buffer.cast(), room) };
            open.receive_into(buffer, &mut message)?
        };
        // SAFETY: the caller says so.
        unsafe { write_control(control, &message, socket) };
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
        let (path, start) = unsafe { file_arguments(path, offset) }?;
        let mut end = start;
        let sent = library.send_file(socket, &path, &mut end, size, block_size(block));
        // SAFETY: the caller says so, and it is not null.
        unsafe { offset.write(end) };
        sent
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
        let (path, start) = unsafe { file_arguments(path, offset) }?;
        let mut end = start;
        let received = library.receive_file(socket, &path, &mut end, size, block_size(block));
        // SAFETY: the caller says so, and it is not null.
        unsafe { offset.write(end) };
        received
    })
}

/// The path and the offset, of which neither may be null.
///
/// # Safety
///
/// `path` is null or a text that ends with NUL; `offset` is null or can be read.
unsafe fn file_arguments(
    path: *const c_char,
    offset: *const i64,
) -> Result<(PathBuf, i64), Failure> {
    if path.is_null() || offset.is_null() {
        return Err(Code::InvalidParameter.into());
    }
    // SAFETY: the caller says so.
    let (path, offset) = unsafe { (CStr::from_ptr(path), offset.read()) };
    Ok((PathBuf::from(OsStr::from_bytes(path.to_bytes())), offset))
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
        if !blocks.is_null() {
            blocks.write(packets);
        }
        if !size.is_null() {
            size.write(bytes);
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

#[cfg(test)]
mod tests {
    use std::mem::MaybeUninit;
    use std::ptr;

    use super::*;

    #[test]
    fn only_the_fields_that_a_call_reads_need_be_set() {
        let mut control = MaybeUninit::<MsgCtrl>::uninit();
        let place = control.as_mut_ptr();
        // SAFETY: the structure can be written.
        let message = unsafe {
            (&raw mut (*place).msgttl).write(5);
            (&raw mut (*place).inorder).write(2);
            (&raw mut (*place).srctime).write(7);
            (&raw mut (*place).msgno).write(9);
            read_control(place)
        };
        assert_eq!((message.ttl, message.in_order, message.time, message.number), (5, true, 7, 9));
        // SAFETY: null is allowed.
        assert_eq!(unsafe { read_control(ptr::null()) }, MessageControl::default());
    }

    #[test]
    fn the_defaults_are_written_into_any_memory() {
        let mut control = MaybeUninit::<MsgCtrl>::uninit();
        // SAFETY: the structure can be written, and is set then.
        let control = unsafe {
            srt_msgctrl_init(ptr::null_mut());
            srt_msgctrl_init(control.as_mut_ptr());
            control.assume_init_ref()
        };
        assert_eq!((control.msgttl, control.pktseq, control.msgno), (-1, -1, -1));
        assert!(control.grpdata.is_null() && srt_msgctrl_default.grpdata.is_null());
    }

    #[test]
    fn no_bytes_are_read_for_a_length_that_is_not_positive() {
        let data = b"on time";
        // SAFETY: there are seven bytes, and null is allowed without a length.
        unsafe {
            assert_eq!(bytes(data.as_ptr().cast(), 7), Ok(&data[..]));
            assert_eq!(bytes(ptr::null(), 0), Ok(&[][..]));
            assert_eq!(bytes(ptr::without_provenance(1), -1), Ok(&[][..]));
            assert!(bytes(ptr::null(), 7).is_err());
        }
    }

    #[test]
    fn a_file_needs_a_path_and_an_offset() {
        let offset = 5;
        // SAFETY: the path ends with NUL, and the offset can be read.
        unsafe {
            let arguments = file_arguments(c"/tmp/a".as_ptr(), &raw const offset);
            assert_eq!(arguments, Ok((PathBuf::from("/tmp/a"), 5)));
            assert!(file_arguments(ptr::null(), &raw const offset).is_err());
            assert!(file_arguments(c"/tmp/a".as_ptr(), ptr::null()).is_err());
        }
        assert_eq!([-1, 0, 7, i32::MAX].map(block_size), [1, 1, 7, LARGEST_BLOCK]);
    }
}
