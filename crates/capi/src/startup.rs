//! Starting and ending the library, and its versions and clock.

use std::ffi::{c_char, c_int};

use crate::border::{answer, quietly};
use crate::library;

/// The version of the interface: 1.5.5.
const INTERFACE: u32 = 0x01_05_05;
/// `SRT_SYNC_CLOCK_GETTIME_MONOTONIC`.
const MONOTONIC: c_int = 1;

/// Starts the library. Returns 1 if it runs already.
#[unsafe(no_mangle)]
pub extern "C" fn srt_startup() -> c_int {
    answer(|| library::start().map(c_int::from))
}

/// Takes a start back. The last one closes all sockets.
#[unsafe(no_mangle)]
pub extern "C" fn srt_cleanup() -> c_int {
    quietly((), library::stop);
    0
}

/// The version of libsrt whose interface this is.
#[unsafe(no_mangle)]
pub extern "C" fn srt_getversion() -> u32 {
    INTERFACE
}

/// Punctual's own version.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// The time on the library's clock, microseconds.
#[unsafe(no_mangle)]
pub extern "C" fn srt_time_now() -> i64 {
    i64::try_from(punctual::now().as_micros()).unwrap_or(i64::MAX)
}

/// The kind of the clock.
#[unsafe(no_mangle)]
pub extern "C" fn srt_clock_type() -> c_int {
    MONOTONIC
}
