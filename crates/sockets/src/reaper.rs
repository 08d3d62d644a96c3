//! Forgets closed sockets after a while, as libsrt's collector does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::library::Library;

/// The time between two looks, and the least time for which a closed socket keeps its number.
const TICK: Duration = Duration::from_secs(1);

/// The task that forgets closed sockets. It runs only while there are any.
#[derive(Debug, Default)]
pub(crate) struct Reaper(AtomicBool);

impl Reaper {
    /// Makes sure that the task runs, since a socket has been closed or is broken.
    pub(crate) fn start(library: &Arc<Library>) {
        if library.reaper().0.swap(true, Ordering::SeqCst) {
            return;
        }
        let weak = Arc::downgrade(library);
        library.runtime().spawn(run(weak));
    }
}

async fn run(library: Weak<Library>) {
    loop {
        tokio::time::sleep(TICK).await;
        let Some(library) = library.upgrade() else { return };
        // Taken back first: a socket that is closed during the look starts another task.
        library.reaper().0.store(false, Ordering::SeqCst);
        let more = library.reap();
        if !more || library.reaper().0.swap(true, Ordering::SeqCst) {
            return;
        }
    }
}
