//! The part of a socket that every call reads, without the lock of its stage.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual::Wakes;
use punctual_blocking::{Events, Mark, Readiness};

use super::link::Link;
use super::settings::Settings;
use crate::code::{Code, Failure};
use crate::event_set::EventSet;
use crate::options::Options;

/// The number, the events, the settings and the connection of a socket.
#[derive(Debug)]
pub(super) struct Core {
    id: i32,
    pub(super) readiness: Readiness<EventSet>,
    pub(super) settings: Settings,
    /// The connection, once it is established.
    link: OnceLock<Link>,
    /// Whether the socket is closed.
    closed: AtomicBool,
    /// Whether the connection has ended.
    broken: AtomicBool,
    /// Whether the socket is a group.
    group: AtomicBool,
    /// The instant of binding, connecting or accepting, microseconds; 0 before.
    opened_at: AtomicU64,
}

impl Core {
    /// The core of a new socket.
    pub(super) fn new(id: i32, options: &Options) -> Self {
        Self {
            id,
            readiness: Readiness::default(),
            settings: Settings::new(options),
            link: OnceLock::new(),
            closed: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            group: AtomicBool::new(false),
            opened_at: AtomicU64::new(0),
        }
    }

    /// The number of the socket.
    pub(super) const fn id(&self) -> i32 {
        self.id
    }

    /// The connection, if the socket has or had one.
    pub(super) fn link(&self) -> Option<&Link> {
        self.link.get()
    }

    /// The connection.
    ///
    /// # Errors
    ///
    /// The socket was never connected.
    pub(super) fn connected(&self) -> Result<&Link, Failure> {
        let code = || if self.is_closed() { Code::ConnectionLost } else { Code::NotConnected };
        self.link.get().ok_or_else(|| code().into())
    }

    /// The socket is a group.
    pub(super) fn note_group(&self) {
        self.group.store(true, Ordering::Relaxed);
    }

    /// Whether the socket is a group.
    pub(super) fn is_group(&self) -> bool {
        self.group.load(Ordering::Relaxed)
    }

    /// The connection, to send by it.
    ///
    /// # Errors
    ///
    /// As [`connected`](Self::connected); a group without links counts as broken.
    pub(super) fn connected_to_send(&self) -> Result<&Link, Failure> {
        self.connected().map_err(|failure| match self.is_group() {
            true => Code::ConnectionLost.into(),
            false => failure,
        })
    }

    /// Takes an established connection over. A socket connects once: a second connection would be
    /// an error of this library, and is dropped. Returns whether it was the first.
    pub(super) fn set_link(&self, link: Link) -> bool {
        self.link.set(link).is_ok()
    }

    /// Fails if nothing can be sent any more.
    pub(super) fn check_open(&self) -> Result<(), Failure> {
        let has_ended = self.is_closed() || self.broken.load(Ordering::Relaxed);
        if has_ended { Err(Code::ConnectionLost.into()) } else { Ok(()) }
    }

    /// Whether the socket is closed.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Whether the connection has ended, and the socket is not closed yet.
    pub(super) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed) && !self.is_closed()
    }

    /// The socket is closed from now on.
    pub(super) fn note_closed(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// The connection has ended.
    pub(super) fn note_broken(&self) {
        self.broken.store(true, Ordering::Relaxed);
    }

    /// A group that had lost all its links calls again.
    pub(super) fn note_mended(&self) {
        self.broken.store(false, Ordering::Relaxed);
        self.readiness.mend(self.id);
    }

    /// The instant of binding, connecting or accepting, microseconds; 0 before.
    pub(super) fn opened_at(&self) -> u64 {
        self.opened_at.load(Ordering::Relaxed)
    }

    /// The socket is bound, calls or was accepted now.
    pub(super) fn note_opened(&self) {
        self.opened_at.store(punctual::now().as_micros(), Ordering::Relaxed);
    }

    /// The present point in time, for [`clear`](Self::clear).
    pub(super) fn mark(&self) -> Mark {
        self.readiness.mark()
    }

    /// Adds events, and wakes the threads that wait for them.
    pub(super) fn raise(&self, events: Events) {
        self.readiness.raise(self.id, events);
    }

    /// Adds events. The threads that wait for a set are woken by `wakes`.
    pub(super) fn raise_together(&self, events: Events, wakes: &mut Wakes) {
        self.readiness.raise_together(self.id, events, wakes);
    }

    /// The connection has ended, and messages are still to be received.
    pub(super) fn raise_held(&self) {
        self.readiness.raise_held(self.id);
    }

    /// Removes events, unless some were raised after `mark`.
    pub(super) fn clear(&self, events: Events, mark: Mark) {
        self.readiness.clear(self.id, events, mark);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_before_the_connection_fails_by_the_state_of_the_socket() {
        let core = Core::new(1, &Options::default());
        let code = || core.connected().err().map(|failure| failure.code);
        assert_eq!(code(), Some(Code::NotConnected));
        assert!(core.check_open().is_ok());
        core.note_closed();
        assert_eq!(code(), Some(Code::ConnectionLost));
        assert!(core.check_open().is_err());
    }

    #[test]
    fn a_closed_socket_is_not_broken_any_more() {
        let core = Core::new(1, &Options::default());
        core.note_broken();
        assert!(core.is_broken() && core.check_open().is_err());
        core.note_closed();
        assert!(!core.is_broken() && core.is_closed());
    }

    #[test]
    fn events_that_were_raised_after_the_mark_are_not_cleared() {
        let core = Core::new(1, &Options::default());
        let before = core.mark();
        core.raise(Events::IN);
        core.clear(Events::IN, before);
        assert!(core.readiness.events().any(Events::IN));
        core.clear(Events::IN, core.mark());
        assert!(!core.readiness.events().any(Events::IN));
    }
}
