//! The signals by which a driver tells of the changes of its connections.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use tokio::sync::Notify;

use crate::wakes::Wakes;

/// Hears of the changes of a connection, where no task waits for them: see
/// [`Socket::watch`](crate::Socket::watch).
///
/// The methods are called by the driver of the port, without a lock. They must return soon, since
/// all connections of the port wait meanwhile, and may call the socket.
pub trait Watcher: fmt::Debug + Send + Sync {
    /// A message, or bytes of a stream, can be received. This is not repeated before a call to
    /// receive has found nothing. A thread or task that waits for any of many sockets is woken by
    /// `wakes`, once for all that the driver reports.
    fn readable(&self, wakes: &mut Wakes);

    /// There is room in the send buffer again after a call to send found none; or the next call to
    /// send returns an error of the peer.
    fn writable(&self);

    /// The connection is established, or has ended.
    fn phase_changed(&self);
}

/// The place of a watcher.
#[derive(Debug, Default)]
pub(crate) struct WatcherSlot(OnceLock<Weak<dyn Watcher>>);

impl WatcherSlot {
    /// Sets the watcher. A second one is ignored, as the documentation of the public methods says.
    pub(crate) fn set(&self, watcher: Weak<dyn Watcher>) {
        let _ = self.0.set(watcher);
    }

    /// The watcher, while it exists.
    pub(crate) fn get(&self) -> Option<Arc<dyn Watcher>> {
        self.0.get()?.upgrade()
    }
}

/// The signals that tasks wait for. A task creates its ticket (a `Notified` future) before it
/// checks for something to do, and waits with it if it finds nothing: a signal in between completes
/// the ticket.
#[derive(Debug)]
pub(crate) struct Signals {
    readable: Notify,
    writable: Notify,
    phase: Notify,
    /// Whether a `Readable` event has come since the protocol last had nothing to receive. Set and
    /// cleared under the lock, and read without it: a receiver that has emptied the connection need
    /// not take the lock again before it waits.
    announced: AtomicBool,
    /// The signals of the group, if the connection is a link of one.
    group: OnceLock<Arc<GroupSignals>>,
    watcher: WatcherSlot,
}

/// The signals that the tasks of a group wait for.
#[derive(Debug, Default)]
pub(crate) struct GroupSignals {
    /// A link may have something to receive, or has ended.
    pub(crate) readable: Notify,
    /// A link may have room again.
    pub(crate) writable: Notify,
    /// Something happened to a link, or to the group.
    pub(crate) phase: Notify,
    pub(crate) watcher: WatcherSlot,
}

impl GroupSignals {
    /// Wakes the tasks that wait and tells the watcher.
    pub(crate) fn wake(&self) {
        self.phase.notify_waiters();
        self.signal_readable(&mut Wakes::default());
        self.signal_writable();
        if let Some(watcher) = self.watcher.get() {
            watcher.phase_changed();
        }
    }

    /// Wakes the tasks that wait. A watcher is told by the group's task alone: it would be called
    /// within its own call otherwise.
    pub(crate) fn wake_tasks(&self) {
        self.phase.notify_waiters();
        self.readable.notify_waiters();
        self.writable.notify_waiters();
    }

    pub(crate) fn signal_readable(&self, wakes: &mut Wakes) {
        self.readable.notify_waiters();
        if let Some(watcher) = self.watcher.get() {
            watcher.readable(wakes);
        }
    }

    pub(crate) fn signal_writable(&self) {
        self.writable.notify_waiters();
        if let Some(watcher) = self.watcher.get() {
            watcher.writable();
        }
    }
}

impl Signals {
    pub(crate) fn new() -> Self {
        let [readable, writable, phase] = [(); 3].map(|()| Notify::new());
        Self {
            readable,
            writable,
            phase,
            announced: AtomicBool::new(true),
            group: OnceLock::new(),
            watcher: WatcherSlot::default(),
        }
    }

    /// Signals that there is something to receive.
    pub(crate) fn readable(&self) -> &Notify {
        &self.readable
    }

    /// Whether there may be something to receive. If not, a ticket for `readable` that was created
    /// before completes when there is.
    pub(crate) fn is_announced(&self) -> bool {
        self.announced.load(Ordering::Acquire)
    }

    /// Sets whether there may be something to receive. Called under the lock.
    pub(crate) fn set_announced(&self, announced: bool) {
        self.announced.store(announced, Ordering::Release);
    }

    /// Signals that there is room to send.
    pub(crate) fn writable(&self) -> &Notify {
        &self.writable
    }

    /// Signals that the phase has changed.
    pub(crate) fn phase(&self) -> &Notify {
        &self.phase
    }

    /// Signals to this group as well from now on.
    pub(crate) fn join(&self, group: &Arc<GroupSignals>) {
        // Called once: a connection becomes a link when it is created.
        let _ = self.group.set(Arc::clone(group));
    }

    /// Signals to `watcher` as well from now on.
    pub(crate) fn watch(&self, watcher: Weak<dyn Watcher>) {
        self.watcher.set(watcher);
    }

    pub(crate) fn signal_readable(&self, wakes: &mut Wakes) {
        self.readable.notify_waiters();
        if let Some(watcher) = self.watcher.get() {
            watcher.readable(wakes);
        }
        if let Some(group) = self.group.get() {
            group.signal_readable(wakes);
        }
    }

    pub(crate) fn signal_writable(&self) {
        self.writable.notify_waiters();
        if let Some(watcher) = self.watcher.get() {
            watcher.writable();
        }
        if let Some(group) = self.group.get() {
            group.signal_writable();
        }
    }

    pub(crate) fn signal_phase(&self) {
        self.phase.notify_waiters();
        if let Some(watcher) = self.watcher.get() {
            watcher.phase_changed();
        }
    }

    pub(crate) fn signal_news(&self, wakes: &mut Wakes) {
        if let Some(group) = self.group.get() {
            group.signal_readable(wakes);
            group.phase.notify_waiters();
        }
    }

    pub(crate) fn signal_all(&self) {
        self.readable.notify_waiters();
        self.writable.notify_waiters();
        self.phase.notify_waiters();
        if let Some(watcher) = self.watcher.get() {
            watcher.phase_changed();
        }
        if let Some(group) = self.group.get() {
            group.wake();
        }
    }
}
