//! Options, between C's bytes and their values.

use std::ffi::{c_int, c_void};
use std::mem::size_of;
use std::{ptr, slice};

use punctual_sockets::{Code, Failure, Kind, OptionNumber, SocketOptionValue, kind};

use crate::abi::SocketId;
use crate::border::{done, int};
use crate::library;

/// The bytes of an option's whole number.
const INT: usize = size_of::<i32>();
const LONG: usize = size_of::<i64>();
/// The room that a name of a network device needs (`IFNAMSIZ`).
const DEVICE_NAME: usize = libc::IFNAMSIZ;

/// Sets an option.
///
/// # Safety
///
/// `value` is null, or has `len` bytes, or the bytes of the option's type if `len` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_setsockflag(
    socket: SocketId,
    option: c_int,
    value: *const c_void,
    len: c_int,
) -> c_int {
    done(|| {
        let library = library::of_socket()?;
        library.check_settable(socket)?;
        let number = OptionNumber(option);
        let kind = kind(number).ok_or(Code::InvalidParameter)?;
        // SAFETY: the caller says so.
        let value = unsafe { read(number, kind, value.cast(), len) }?;
        library.set_option(socket, number, value)
    })
}

/// Sets an option; the level has no meaning.
///
/// # Safety
///
/// As [`srt_setsockflag`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_setsockopt(
    socket: SocketId,
    _level: c_int,
    option: c_int,
    value: *const c_void,
    len: c_int,
) -> c_int {
    // SAFETY: the caller says so.
    unsafe { srt_setsockflag(socket, option, value, len) }
}

/// Reads an option.
///
/// # Safety
///
/// `len` is null or can be read and written; `value` is null or has room for `*len` bytes, or for a
/// whole number of 32 bits if the option is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_getsockflag(
    socket: SocketId,
    option: c_int,
    value: *mut c_void,
    len: *mut c_int,
) -> c_int {
    done(|| {
        let library = library::of_socket()?;
        if value.is_null() || len.is_null() {
            return Err(Code::InvalidParameter.into());
        }
        let number = OptionNumber(option);
        let read = library.option(socket, number)?;
        // SAFETY: the caller says so.
        let room = usize::try_from(unsafe { len.read() }).unwrap_or(0);
        if number == OptionNumber::BINDTODEVICE && room < DEVICE_NAME {
            return Err(Code::InvalidParameter.into());
        }
        // SAFETY: the caller says so.
        unsafe { write(&read, value.cast(), len) }
    })
}

/// Reads an option; the level has no meaning.
///
/// # Safety
///
/// As [`srt_getsockflag`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_getsockopt(
    socket: SocketId,
    _level: c_int,
    option: c_int,
    value: *mut c_void,
    len: *mut c_int,
) -> c_int {
    // SAFETY: the caller says so.
    unsafe { srt_getsockflag(socket, option, value, len) }
}

/// Reads a value of a type.
///
/// # Safety
///
/// `value` is null, or has `len` bytes, or the bytes of the type if `len` is 0.
pub(crate) unsafe fn read(
    number: OptionNumber,
    kind: Kind,
    value: *const u8,
    len: c_int,
) -> Result<SocketOptionValue, Failure> {
    let len = usize::try_from(len).map_err(|_| Code::InvalidParameter)?;
    if kind == Kind::Text && len > longest_text(number) {
        return Err(Code::InvalidParameter.into());
    }
    if value.is_null() && !(kind == Kind::Text && len == 0) {
        return Err(Code::InvalidParameter.into());
    }
    let is_sized = |size: usize| len == size || len == 0;
    // SAFETY: the caller says so, for each of the lengths.
    unsafe {
        match kind {
            Kind::Bool => Ok(SocketOptionValue::Bool(match len {
                1 => value.read() != 0,
                INT => value.cast::<i32>().read_unaligned() != 0,
                _ => false,
            })),
            Kind::Int if is_sized(INT) => {
                Ok(SocketOptionValue::Int(value.cast::<i32>().read_unaligned()))
            }
            Kind::Long if is_sized(LONG) => {
                Ok(SocketOptionValue::Long(value.cast::<i64>().read_unaligned()))
            }
            Kind::Linger if is_sized(2 * INT) => {
                let [on, seconds] = value.cast::<[i32; 2]>().read_unaligned();
                Ok(SocketOptionValue::Linger { on, seconds })
            }
            Kind::Text if len == 0 => Ok(SocketOptionValue::Text(Vec::new())),
            Kind::Text => Ok(SocketOptionValue::Text(slice::from_raw_parts(value, len).to_vec())),
            Kind::Int | Kind::Long | Kind::Linger => Err(Code::InvalidParameter.into()),
        }
    }
}

/// The most bytes of a text that are read. As in libsrt, those of a longer one are not touched.
fn longest_text(number: OptionNumber) -> usize {
    match number {
        OptionNumber::STREAMID => 512,
        OptionNumber::PASSPHRASE => 80,
        _ => 8_192,
    }
}

/// Writes a value where a caller wants it.
///
/// # Safety
///
/// `len` can be read and written; `to` has room for `*len` bytes, or for a whole number of 32 bits
/// if the value is one, or for a byte if it is a switch.
unsafe fn write(value: &SocketOptionValue, to: *mut u8, len: *mut c_int) -> Result<(), Failure> {
    // SAFETY: the caller says so.
    let room = usize::try_from(unsafe { len.read() }).unwrap_or(0);
    let bytes: Vec<u8> = match value {
        SocketOptionValue::Bool(on) => vec![u8::from(*on)],
        SocketOptionValue::Int(number) => number.to_ne_bytes().to_vec(),
        SocketOptionValue::Long(number) => number.to_ne_bytes().to_vec(),
        SocketOptionValue::Linger { on, seconds } => {
            [on.to_ne_bytes(), seconds.to_ne_bytes()].concat()
        }
        SocketOptionValue::Text(text) => [text.as_slice(), &[0]].concat(),
    };
    let needs_room = !matches!(value, SocketOptionValue::Bool(_) | SocketOptionValue::Int(_));
    if needs_room && room < bytes.len() {
        return Err(Code::InvalidParameter.into());
    }
    let shown = if let SocketOptionValue::Text(text) = value { text.len() } else { bytes.len() };
    // SAFETY: the room was checked, except where the caller says that there is enough.
    unsafe {
        ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        len.write(int(shown));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(kind: Kind, bytes: &[u8]) -> Result<SocketOptionValue, Code> {
        // SAFETY: the slice has that many bytes.
        let read = unsafe { read(OptionNumber(46), kind, bytes.as_ptr(), int(bytes.len())) };
        read.map_err(|failure| failure.code)
    }

    #[test]
    fn values_have_the_lengths_of_their_types() {
        assert_eq!(parse(Kind::Bool, &[1]), Ok(SocketOptionValue::Bool(true)));
        assert_eq!(parse(Kind::Bool, &1i32.to_ne_bytes()), Ok(SocketOptionValue::Bool(true)));
        assert_eq!(parse(Kind::Bool, &[1, 1]), Ok(SocketOptionValue::Bool(false)));
        assert_eq!(parse(Kind::Int, &7i32.to_ne_bytes()), Ok(SocketOptionValue::Int(7)));
        assert_eq!(parse(Kind::Int, &7i64.to_ne_bytes()), Err(Code::InvalidParameter));
        assert_eq!(parse(Kind::Long, &7i64.to_ne_bytes()), Ok(SocketOptionValue::Long(7)));
        assert_eq!(parse(Kind::Text, b"camera"), Ok(SocketOptionValue::Text(b"camera".to_vec())));
    }

    #[test]
    fn a_value_may_lie_anywhere_and_only_its_bytes_are_read() {
        let mut memory = [0u8; 9];
        memory[1..].copy_from_slice(&7i64.to_ne_bytes());
        let long = OptionNumber::MAXBW;
        // SAFETY: there are eight bytes behind the first.
        let read_long = |len| unsafe { read(long, Kind::Long, memory.as_ptr().add(1), len) };
        assert_eq!(read_long(8), Ok(SocketOptionValue::Long(7)));
        assert_eq!(read_long(0), Ok(SocketOptionValue::Long(7)));
        assert!(read_long(-1).is_err());
        // These have no memory at all.
        for (kind, len) in [(Kind::Text, 513), (Kind::Int, 5), (Kind::Long, 4), (Kind::Linger, 4)] {
            let nowhere = ptr::without_provenance(1);
            // SAFETY: lengths that are not those of the type are refused first.
            let read = unsafe { read(OptionNumber::STREAMID, kind, nowhere, len) };
            assert_eq!(read, Err(Code::InvalidParameter.into()), "{kind:?}");
        }
        // SAFETY: null is refused, except for an empty text.
        unsafe {
            assert!(read(long, Kind::Int, ptr::null(), 4).is_err());
            assert_eq!(
                read(long, Kind::Text, ptr::null(), 0),
                Ok(SocketOptionValue::Text(Vec::new()))
            );
        }
    }

    #[test]
    fn a_value_is_written_where_there_is_room_and_a_number_always() {
        let values = [
            (SocketOptionValue::Int(7), 0, Ok(4)),
            (SocketOptionValue::Bool(true), 0, Ok(1)),
            (SocketOptionValue::Long(7), 7, Err(Code::InvalidParameter)),
            (SocketOptionValue::Long(7), 8, Ok(8)),
            (SocketOptionValue::Linger { on: 1, seconds: 2 }, 8, Ok(8)),
            (SocketOptionValue::Linger { on: 1, seconds: 2 }, -1, Err(Code::InvalidParameter)),
        ];
        for (value, told, expected) in values {
            let mut room = std::mem::MaybeUninit::<[u8; 8]>::uninit();
            let mut len = told;
            // SAFETY: there is room for eight bytes.
            let written = unsafe { write(&value, room.as_mut_ptr().cast(), &raw mut len) };
            let written = written.map(|()| len).map_err(|failure| failure.code);
            assert_eq!(written, expected, "{value:?}");
        }
    }

    #[test]
    fn a_text_gets_a_nul_that_is_not_counted() {
        let mut room = [9u8; 8];
        let mut len: c_int = 4;
        let text = SocketOptionValue::Text(b"abc".to_vec());
        // SAFETY: there is room for that many bytes.
        unsafe { write(&text, room.as_mut_ptr(), &raw mut len) }.unwrap();
        assert_eq!((&room[..5], len), (&b"abc\0\x09"[..], 3));
        // SAFETY: as above.
        let refused = unsafe { write(&text, room.as_mut_ptr(), &raw mut len) };
        assert_eq!(refused, Err(Code::InvalidParameter.into()));
    }
}
