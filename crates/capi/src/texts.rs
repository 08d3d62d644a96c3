//! Texts that C programs keep pointers to.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::OnceLock;

use punctual_sockets::Code;

/// The largest number of an error.
const LAST_CODE: c_int = 7_000;
const UNKNOWN: &CStr = c"UNDEFINED ERROR";

/// Makes the texts, so that a child of the process does not wait for another thread to do so.
pub(crate) fn prepare() {
    of_code(0);
}

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
const REASONS: [&CStr; 18] = [
    c"no reason is known",
    c"a system call failed",
    c"the peer refused",
    c"out of resources",
    c"the handshake is malformed",
    c"the listener's backlog is full",
    c"an internal error",
    c"the socket is closing",
    c"the peer's version is too old",
    c"the cookies of the rendezvous collide",
    c"the passphrases differ",
    c"one end wants encryption, the other does not",
    c"message mode and stream mode do not mix",
    c"the ends have different congestion controls",
    c"the packet filters do not fit",
    c"the groups do not fit",
    c"no answer came in time",
    c"the ciphers differ",
];

/// The same as an array of pointers. A program gets a copy of its own, perhaps a shorter one.
#[unsafe(no_mangle)]
pub static srt_rejectreason_msg: Texts<18> = {
    let mut pointers = [c"".as_ptr(); 18];
    let mut index = 0;
    while index < pointers.len() {
        pointers[index] = REASONS[index].as_ptr();
        index += 1;
    }
    Texts(pointers)
};

/// The text of all reasons that programs give.
const OF_PROGRAMS: &CStr = c"the application refused";
/// The first reason that a program can give.
const FIRST_OF_PROGRAMS: c_int = 1_000;

/// A reason of a refusal in words.
#[unsafe(no_mangle)]
pub extern "C" fn srt_rejectreason_str(reason: c_int) -> *const c_char {
    let text = match usize::try_from(reason) {
        Ok(index) if index < REASONS.len() => REASONS[index],
        _ if reason >= FIRST_OF_PROGRAMS => OF_PROGRAMS,
        _ => REASONS[0],
    };
    text.as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: *const c_char) -> &'static str {
        // SAFETY: the functions return constants that end with NUL.
        unsafe { CStr::from_ptr(text) }.to_str().unwrap()
    }

    #[test]
    fn every_number_has_a_text() {
        assert_eq!(read(of_code(5_004)), Code::InvalidSocket.text());
        assert_eq!(read(of_code(123)), "UNDEFINED ERROR");
        let reason = |number| read(srt_rejectreason_str(number));
        for (number, text) in (0..).zip(REASONS) {
            assert_eq!(reason(number), text.to_str().unwrap());
        }
        assert_eq!(reason(5), "the listener's backlog is full");
        for number in [1_000, 1_403, 2_000] {
            assert_eq!(reason(number), "the application refused");
        }
        for number in [-1, 18, 999, c_int::MIN] {
            assert_eq!(reason(number), reason(0), "{number}");
        }
    }
}
