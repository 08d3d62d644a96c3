//! Faults that happen on other threads: panics, and what hooks find.

use std::sync::{Mutex, Once, PoisonError};

static FOUND: Mutex<Option<String>> = Mutex::new(None);

/// Notes a fault for the thread that makes the calls.
pub(crate) fn note(fault: String) {
    FOUND.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
}

/// Notes each panic from now on, on any thread: the border makes an error of it.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let other = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            note(panic.to_string());
            other(panic);
        }));
    });
    *FOUND.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// # Panics
///
/// A fault was noted.
pub(crate) fn assert_none() {
    let found = FOUND.lock().unwrap_or_else(PoisonError::into_inner).take();
    assert!(found.is_none(), "{}", found.unwrap_or_default());
}
