//! The end of a process that did not end the library itself.
//!
//! Programs for libsrt may end without `srt_cleanup`: libsrt closes its sockets then, so that peers
//! hear of it at once and need not wait for their idle timeout.

use std::sync::Once;

use crate::border::quietly;
use crate::library;

/// Lets the library end with the process.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Miri has no such function.
        if cfg!(miri) {
            return;
        }
        // SAFETY: the function is a plain one of this library, which is never unloaded. If there is
        // no room to register it, peers hear of the end by their idle timeout.
        let _ = unsafe { libc::atexit(end_library) };
    });
}

extern "C" fn end_library() {
    quietly((), library::end);
}
