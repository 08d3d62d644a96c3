//! The last error of each thread.

use std::cell::Cell;
use std::ffi::{c_char, c_int};

use punctual_sockets::{Code, Failure};

use crate::texts;

thread_local! {
    static LAST: Cell<Failure> = const { Cell::new(Failure { code: Code::Success, system: 0 }) };
}

/// Keeps the last error of this thread.
pub(crate) fn set(failure: Failure) {
    LAST.set(failure);
}

/// The code of this thread's last error, and the system's error behind it.
///
/// # Safety
///
/// `system` is null, or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_getlasterror(system: *mut c_int) -> c_int {
    let Failure { code, system: number } = LAST.get();
    if !system.is_null() {
        // SAFETY: the caller says so.
        unsafe { system.write(number) };
    }
    code as c_int
}

/// This thread's last error in words.
#[unsafe(no_mangle)]
pub extern "C" fn srt_getlasterror_str() -> *const c_char {
    texts::of_code(LAST.get().code as c_int)
}

/// An error in words; the second argument has no meaning.
#[unsafe(no_mangle)]
pub extern "C" fn srt_strerror(code: c_int, _system: c_int) -> *const c_char {
    texts::of_code(code)
}

/// Forgets this thread's last error.
#[unsafe(no_mangle)]
pub extern "C" fn srt_clearlasterror() {
    LAST.set(Failure { code: Code::Success, system: 0 });
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;
    use std::mem::MaybeUninit;
    use std::ptr;

    use super::*;

    /// The last error of this thread.
    fn last() -> (c_int, c_int) {
        let mut system = MaybeUninit::uninit();
        // SAFETY: the number can be written, and is set then.
        unsafe { (srt_getlasterror(system.as_mut_ptr()), system.assume_init()) }
    }

    #[test]
    fn each_thread_has_its_last_error() {
        set(Failure { code: Code::SocketFailed, system: 98 });
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(last(), (0, 0)));
        });
        assert_eq!(last(), (1_003, 98));
        // SAFETY: null is allowed.
        assert_eq!(unsafe { srt_getlasterror(ptr::null_mut()) }, 1_003);
        // SAFETY: the texts end with NUL.
        let text = unsafe { CStr::from_ptr(srt_getlasterror_str()) };
        assert_eq!(text.to_str(), Ok(Code::SocketFailed.text()));
        srt_clearlasterror();
        assert_eq!(last(), (0, 0));
    }
}
