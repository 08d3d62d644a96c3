//! The meaning of SIGHUP.
//!
//! It makes a command read or open its files again if it has such files, and ends it otherwise. It
//! is also sent when a terminal closes, which ends any command. A program that was started with
//! SIGHUP ignored, as `nohup` does, is not ended by it.

use std::fs::File;
use std::sync::{LazyLock, Mutex, PoisonError};

/// Work that SIGHUP asks for. It tells whether it is still wanted.
type Work = Box<dyn Fn() -> bool + Send>;

static WORK: Mutex<Vec<Work>> = Mutex::new(Vec::new());

/// The state in which the program was started.
static START: LazyLock<Start> =
    LazyLock::new(|| Start { ignored: punctual_io::ignores_hangup(), terminal: has_terminal() });

struct Start {
    ignored: bool,
    terminal: bool,
}

/// Lets SIGHUP ask for `work` as long as that returns true.
pub fn means(work: impl Fn() -> bool + Send + 'static) {
    WORK.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(work));
}

/// Whether SIGHUP concerns this command.
pub fn matters() -> bool {
    !START.ignored || !WORK.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
}

/// Does the work that SIGHUP asks for. Returns whether there was any.
pub fn work() -> bool {
    let mut all = WORK.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|work| work());
    !all.is_empty()
}

/// Whether SIGHUP ends a command without work for it.
pub fn ends() -> bool {
    !START.ignored
}

/// Whether the terminal at which the program was started has closed, which ends it.
pub fn terminal_closed() -> bool {
    !START.ignored && START.terminal && !has_terminal()
}

/// Whether the process has a terminal, even if its input and output are elsewhere.
fn has_terminal() -> bool {
    File::open("/dev/tty").is_ok()
}
