//! Where the messages of the log go: to the program's handler, or to the standard error output.

use std::cell::Cell;
use std::ffi::{CString, c_void};
use std::io::{Write as _, stderr};
use std::sync::Arc;

use super::line::WrittenMessage;
use crate::abi::LogHandler;
use crate::hooks;

/// Where messages go. Clones are the same target, so that their number says whether messages are
/// still on their way to it: the messenger tells those who wait when one was dropped.
#[derive(Clone)]
pub(super) struct LogTarget(Option<Arc<Handler>>);

/// The program's function, and what it gets.
struct Handler {
    function: LogHandler,
    opaque: *mut c_void,
}

// SAFETY: the library only passes the pointer back, and the program says that the function can be
// called from any thread.
unsafe impl Send for Handler {}
// SAFETY: as above.
unsafe impl Sync for Handler {}

impl LogTarget {
    /// The standard error output.
    pub(super) const STANDARD_ERROR: Self = Self(None);

    /// The program's function.
    ///
    /// # Safety
    ///
    /// `function` can be called with `opaque` from any thread while a clone exists.
    pub(super) unsafe fn handler(function: LogHandler, opaque: *mut c_void) -> Self {
        Self(Some(Arc::new(Handler { function, opaque })))
    }

    /// Whether this is the only clone: then nothing else uses the handler.
    pub(super) fn is_only_one(&self) -> bool {
        self.0.as_ref().is_none_or(|handler| Arc::strong_count(handler) == 1)
    }

    /// Delivers a message. This thread holds no lock, since the handler may call the library.
    pub(super) fn deliver(&self, message: &WrittenMessage) {
        let Some(handler) = &self.0 else {
            // There is nobody to tell that the error output is closed.
            let _ = stderr().write_all(message.text.as_bytes());
            return;
        };
        let c_text = |text: &str| CString::new(text.replace('\0', " ")).unwrap_or_default();
        let (file, area) = (c_text(&message.file), c_text(message.area));
        let text = c_text(&message.text);
        let outer = HANDLES.replace(true);
        // If it throws an exception, there is nobody to tell.
        // SAFETY: the target's maker says so.
        let _ = hooks::call(|| unsafe {
            let Handler { function, opaque } = **handler;
            function(
                opaque,
                message.level,
                file.as_ptr(),
                message.line,
                area.as_ptr(),
                text.as_ptr(),
            );
        });
        HANDLES.set(outer);
    }
}

thread_local! {
    /// Whether this thread is in the handler.
    static HANDLES: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is in the handler.
pub(super) fn is_in_handler() -> bool {
    HANDLES.get()
}
