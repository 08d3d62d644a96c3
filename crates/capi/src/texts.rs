//! Texts that C programs keep pointers to.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::OnceLock;

use punctual_sockets::Code;

/// The largest number of an error.
const LAST_CODE: c_int = 7_000;
const UNKNOWN: &CStr = c"UNDEFINED ERROR";

/// An error in words.
pub(crate) fn of_code(code: c_int) -> *const c_char {
    static TEXTS: OnceLock<BTreeMap<c_int, CString>> = OnceLock::new();
    let texts = TEXTS.get_or_init(|| {
        let codes = (-1..=LAST_CODE).filter_map(Code::from_number);
        codes.filter_map(|code| Some((code as c_int, c_text(code.text())?))).collect()
    });
    texts.get(&code).map_or(UNKNOWN, CString::as_c_str).as_ptr()
}

fn c_text(text: &str) -> Option<CString> {
    CString::new(text).ok()
}

/// Pointers to texts, which a C program reads as an array.
#[repr(transparent)]
pub struct Texts<const N: usize>([*const c_char; N]);

// SAFETY: the pointers lead to constants.
unsafe impl<const N: usize> Sync for Texts<N> {}

/// The texts of the reasons 0 to 17.
#[unsafe(no_mangle)]
pub static srt_rejectreason_msg: Texts<18> = Texts([
    c"no reason is known".as_ptr(),
    c"a system call failed".as_ptr(),
    c"the peer refused".as_ptr(),
    c"out of resources".as_ptr(),
    c"the handshake is malformed".as_ptr(),
    c"the listener's backlog is full".as_ptr(),
    c"an internal error".as_ptr(),
    c"the socket is closing".as_ptr(),
    c"the peer's version is too old".as_ptr(),
    c"the cookies of the rendezvous collide".as_ptr(),
    c"the passphrases differ".as_ptr(),
    c"one end wants encryption, the other does not".as_ptr(),
    c"message mode and stream mode do not mix".as_ptr(),
    c"the ends have different congestion controls".as_ptr(),
    c"the packet filters do not fit".as_ptr(),
    c"the groups do not fit".as_ptr(),
    c"no answer came in time".as_ptr(),
    c"the ciphers differ".as_ptr(),
]);

/// The text of all reasons that programs give.
const OF_PROGRAMS: &CStr = c"the application refused";
/// The first reason that a program can give.
const FIRST_OF_PROGRAMS: c_int = 1_000;

/// A reason of a refusal in words.
#[unsafe(no_mangle)]
pub extern "C" fn srt_rejectreason_str(reason: c_int) -> *const c_char {
    let Texts(texts) = &srt_rejectreason_msg;
    match usize::try_from(reason) {
        Ok(index) if index < texts.len() => texts[index],
        _ if reason >= FIRST_OF_PROGRAMS => OF_PROGRAMS.as_ptr(),
        _ => texts[0],
    }
}

#[cfg(test)]
mod tests {
    use punctual_sockets::reason_text;

    use super::*;

    fn read(text: *const c_char) -> &'static str {
        // SAFETY: the functions return constants that end with NUL.
        unsafe { CStr::from_ptr(text) }.to_str().unwrap()
    }

    #[test]
    fn every_number_has_a_text() {
        assert_eq!(read(of_code(5_004)), Code::InvalidSocket.text());
        assert_eq!(read(of_code(123)), "UNDEFINED ERROR");
        for reason in -1..20 {
            assert_eq!(read(srt_rejectreason_str(reason)), reason_text(reason));
        }
        assert_eq!(read(srt_rejectreason_str(1_403)), reason_text(1_403));
    }
}
