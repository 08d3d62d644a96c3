//! Closing a socket.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use punctual::Phase;

use super::{Socket, Stage};
use crate::code::Code;
use crate::event_set::EventSet;
use crate::events::Events;
use crate::options::{OptionNumber, Options, Value};
use crate::readiness::now;

/// The time that a driver gets to tell the peer that the connection is closed.
const FAREWELL: Duration = Duration::from_millis(100);

impl Socket {
    /// Closes the socket. A socket with a linger time whose calls block waits until its data are
    /// sent, at most for that time. The peer has been told when this returns: the program may end.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        if matches!(state.stage, Stage::Closed(_)) {
            return;
        }
        self.closed.store(true, Ordering::Relaxed);
        let lingers = linger_time(&state.options);
        let waits = lingers.is_zero() || self.settings.send_blocks();
        let stage = std::mem::replace(&mut state.stage, Stage::Closed(now()));
        if matches!(stage, Stage::Listening(_))
            && let Some(local) = &state.local
        {
            local.end_listening();
        }
        state.local = None;
        drop(state);
        let is_open = matches!(stage, Stage::Connected);
        // A call that was under way is taken back when its connection is dropped with the stage.
        drop(stage);
        self.readiness.wake();
        self.readiness.unsubscribe_all(self.id);
        if let Some(link) = self.link.get().filter(|_| is_open) {
            link.begin_close();
            if waits {
                self.await_farewell(lingers + FAREWELL);
                self.lock().stage = Stage::Closed(now());
            }
        }
        self.start_reaper();
    }

    /// Closes the socket without lingering, since the library ends; also one that lingers already.
    /// Returns whether the peer is to be told.
    pub(crate) fn close_at_once(&self) -> bool {
        self.closed.store(true, Ordering::Relaxed);
        let stage = std::mem::replace(&mut self.lock().stage, Stage::Closed(now()));
        let was_broken = matches!(stage, Stage::Broken(_));
        drop(stage);
        self.readiness.wake();
        let Some(link) = self.link.get() else { return false };
        link.begin_abort();
        !was_broken
    }

    /// Waits until the last packets of a closed connection have been sent, at most for `time`.
    pub(crate) fn await_farewell(&self, time: Duration) {
        let deadline = now() + time;
        loop {
            let mark = self.readiness.mark();
            if self.has_ended.load(Ordering::Acquire) || !self.readiness.wait(mark, Some(deadline))
            {
                return;
            }
        }
    }

    /// The driver has sent the last packets of a connection.
    pub(super) fn note_farewell(&self) {
        let ended = self.link.get().is_none_or(|it| matches!(it.phase(), Phase::Closed(_)));
        self.has_ended.fetch_or(ended, Ordering::Release);
        self.readiness.wake();
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

fn linger_time(options: &Options) -> Duration {
    match options.get(OptionNumber::LINGER) {
        Some(Value::Linger { on, seconds }) if on != 0 => {
            Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
        }
        _ => Duration::ZERO,
    }
}
