//! The threads that drive the ports.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};

/// Runtimes of one thread each, at most one for each processor. A port stays with its thread:
/// threads that shared all ports would wake each other for each of their turns.
#[derive(Debug)]
pub struct Runtimes {
    first: Handle,
    /// The runtimes, in the order of their starts; none once they have ended.
    running: Mutex<Vec<Runtime>>,
    /// The number of ports that were given a thread.
    ports: AtomicUsize,
}

impl Runtimes {
    /// Starts the first thread. The others start with the ports that need them.
    ///
    /// # Errors
    ///
    /// The system has no thread or descriptor left.
    pub fn start() -> io::Result<Self> {
        let first = start_one()?;
        Ok(Self {
            first: first.handle().clone(),
            running: Mutex::new(vec![first]),
            ports: AtomicUsize::new(0),
        })
    }

    /// The runtime for tasks that belong to no port.
    pub const fn first(&self) -> &Handle {
        &self.first
    }

    /// The runtime for a new port: each in turn.
    pub fn for_port(&self) -> Handle {
        let most = available_parallelism().map_or(1, usize::from);
        let place = self.ports.fetch_add(1, Ordering::Relaxed) % most;
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if place == running.len()
            && place > 0
            && let Ok(runtime) = start_one()
        {
            running.push(runtime);
        }
        // Without another thread, the first one serves the port too.
        running.get(place).map_or_else(|| self.first.clone(), |it| it.handle().clone())
    }

    /// The runtimes for a port with several sockets: one for each processor.
    pub fn for_listener(&self) -> Vec<Handle> {
        let most = available_parallelism().map_or(1, usize::from);
        (0..most).map(|_| self.for_port()).collect()
    }

    /// Ends the threads. Callbacks that are running get this time to return.
    pub fn end(&self, time: Duration) {
        let running =
            std::mem::take(&mut *self.running.lock().unwrap_or_else(PoisonError::into_inner));
        for runtime in running {
            runtime.shutdown_timeout(time);
        }
    }
}

impl Drop for Runtimes {
    /// The last user may be a task of a runtime, which must not wait for itself.
    fn drop(&mut self) {
        let running = self.running.get_mut().unwrap_or_else(PoisonError::into_inner);
        for runtime in running.drain(..) {
            runtime.shutdown_background();
        }
    }
}

fn start_one() -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(1).thread_name("punctual").enable_all().build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_spread_over_one_thread_for_each_processor() {
        let runtimes = Runtimes::start().unwrap();
        let most = available_parallelism().unwrap().get();
        let ids: Vec<_> = (0..2 * most).map(|_| runtimes.for_port().id()).collect();
        assert_eq!(ids[..most], ids[most..]);
        assert_eq!(ids[0], runtimes.first().id());
        assert!(ids[1..most].iter().all(|id| *id != ids[0]));
        runtimes.end(Duration::from_secs(1));
    }
}
