//! Closing a socket.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use punctual::Phase;

use super::link::Link;
use super::{Socket, Stage};
use crate::code::Code;
use crate::event_set::EventSet;
use crate::events::Events;
use crate::options::{OptionNumber, Value};
use crate::readiness::now;
use crate::reaper::Reaper;

impl Socket {
    /// Closes the socket. A socket with a linger time whose calls block waits until its data are
    /// sent, at most for that time.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        if matches!(state.stage, Stage::Closed(_)) {
            return;
        }
        self.closed.store(true, Ordering::Relaxed);
        let lingers = self.settings.send_blocks().then(|| linger_deadline(&state.options));
        let stage = std::mem::replace(&mut state.stage, Stage::Closed(now()));
        if matches!(stage, Stage::Listening(_))
            && let Some(local) = &state.local
        {
            local.end_listening();
        }
        state.local = None;
        drop(state);
        // A call that was under way is taken back when its connection is dropped with the stage.
        drop(stage);
        self.readiness.wake();
        self.readiness.unsubscribe_all(self.id);
        if let Some(link) = self.link.get() {
            link.begin_close();
            if let Some(deadline) = lingers.flatten() {
                self.linger(link, deadline);
                self.lock().stage = Stage::Closed(now());
            }
        }
        if let Some(library) = self.library.upgrade() {
            Reaper::start(&library);
        }
    }

    /// Closes the socket without lingering, since the library ends.
    pub(crate) fn close_at_once(&self) {
        let stage = std::mem::replace(&mut self.lock().stage, Stage::Closed(now()));
        drop(stage);
        self.readiness.wake();
        if let Some(link) = self.link.get() {
            link.begin_close();
        }
    }

    /// Subscribes a set to the events of the socket.
    pub(crate) fn subscribe(&self, set: &Arc<EventSet>, wanted: Events) {
        // Readability is kept up to date only where somebody reads or waits: it is read afresh.
        if self.is_connected()
            && let Some(link) = self.link.get()
            && link.readiness().readable
        {
            self.readiness.raise(self.id, Events::IN);
        }
        self.readiness.subscribe(self.id, set, wanted);
    }

    /// Whether the socket is closed. It is read by every call.
    pub(crate) fn is_known_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Waits until the connection has sent its data and has ended.
    fn linger(&self, link: &Link, deadline: Instant) {
        loop {
            let mark = self.readiness.mark();
            if matches!(link.phase(), Phase::Closed(_))
                || !self.readiness.wait(mark, Some(deadline))
            {
                return;
            }
        }
    }

    /// Whether the socket is closed, and since when.
    pub(crate) fn closed_since(&self) -> Option<Instant> {
        match self.lock().stage {
            Stage::Closed(since) => Some(since),
            _ => None,
        }
    }

    /// Closes a socket that broke before `before` and whose data have been read: nobody uses it.
    /// Returns whether it is broken and still open.
    pub(crate) fn close_if_abandoned(&self, before: Instant) -> bool {
        let since = match self.lock().stage {
            Stage::Broken(since) => since,
            _ => return false,
        };
        let is_drained = self.readiness.events().any(Events::ERR);
        if since < before && is_drained {
            self.close();
            return false;
        }
        true
    }

    /// The error of a call on a socket that is not connected.
    pub(super) fn not_connected(&self) -> Code {
        match self.lock().stage {
            Stage::Closed(_) => Code::ConnectionLost,
            _ => Code::NotConnected,
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        matches!(self.lock().stage, Stage::Closed(_))
    }
}

fn linger_deadline(options: &crate::options::Options) -> Option<Instant> {
    match options.get(OptionNumber::LINGER) {
        Some(Value::Linger { on, seconds }) if on != 0 && seconds > 0 => {
            let seconds = u64::from(seconds.unsigned_abs());
            now().checked_add(std::time::Duration::from_secs(seconds))
        }
        _ => None,
    }
}
