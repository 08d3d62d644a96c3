//! Forgets closed sockets after a while, as libsrt's collector does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::Handle as Runtime;

/// The time between two looks, and the least time for which a closed socket keeps its number.
const TICK: Duration = Duration::from_secs(1);

/// The task that forgets closed sockets. It runs only while there are any.
#[derive(Debug, Default)]
pub(crate) struct Reaper(Arc<AtomicBool>);

impl Reaper {
    /// Makes sure that the task runs, since a socket has been closed or is broken. `look` forgets
    /// sockets, and tells whether there are more; `None` if the library has ended.
    pub(crate) fn start(
        &self,
        runtime: &Runtime,
        look: impl Fn() -> Option<bool> + Send + 'static,
    ) {
        if !self.0.swap(true, Ordering::SeqCst) {
            runtime.spawn(run(Arc::clone(&self.0), look));
        }
    }
}

async fn run(runs: Arc<AtomicBool>, look: impl Fn() -> Option<bool>) {
    loop {
        tokio::time::sleep(TICK).await;
        // Taken back first: a socket that is closed during the look starts another task.
        runs.store(false, Ordering::SeqCst);
        let Some(more) = look() else { return };
        if !more || runs.swap(true, Ordering::SeqCst) {
            return;
        }
    }
}
