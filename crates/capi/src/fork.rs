//! Children of a process that has used the library.
//!
//! A child has none of the library's threads, and locks may be held for ever. So its calls fail
//! at once, and touch nothing.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static IN_CHILD: AtomicBool = AtomicBool::new(false);

/// Whether this process is a child of one that used the library.
pub(crate) fn is_child() -> bool {
    IN_CHILD.load(Ordering::Relaxed)
}

/// Lets children know from now on.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Miri has no such function.
        if cfg!(miri) {
            return;
        }
        // SAFETY: the function only stores a flag, which is allowed between `fork` and `exec`. If
        // there is no memory to register it, children are not protected, which is no worse.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(note_child)) };
    });
}

extern "C" fn note_child() {
    IN_CHILD.store(true, Ordering::Relaxed);
}
