//! Closing a socket.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use punctual::Phase;

use super::group::Members;
use super::{Socket, SocketState, Stage};
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
        let lingers = linger_time(&self.lock().options);
        let waits = lingers.is_zero() || self.settings.send_blocks();
        let Some(before) = self.begin_close() else { return };
        if before == SocketState::Connected && waits {
            self.await_farewell(lingers + FAREWELL);
            self.lock().stage = Stage::Closed(now());
        }
        self.start_reaper();
    }

    /// Closes the socket and waits for nothing.
    pub(crate) fn close_behind(&self) {
        if self.begin_close().is_some() {
            self.start_reaper();
        }
    }

    /// Closes the socket without lingering, since the library ends; also one that lingers already.
    /// Returns whether the peer is to be told.
    pub(crate) fn close_at_once(&self) -> bool {
        let before = self.begin_close();
        let Some(link) = self.link.get() else { return false };
        link.begin_abort();
        before != Some(SocketState::Broken)
    }

    /// Closes the socket, unless it is closed. Returns the state that it had.
    fn begin_close(&self) -> Option<SocketState> {
        let mut state = self.lock();
        if matches!(state.stage, Stage::Closed(_)) {
            return None;
        }
        self.closed.store(true, Ordering::Relaxed);
        let stage = std::mem::replace(&mut state.stage, Stage::Closed(now()));
        let local = state.local.take();
        let group = state.members.as_ref().and_then(Members::group).cloned();
        drop(state);
        let before = stage.state();
        if let Stage::Listening(listening) = &stage {
            listening.stop();
            // Not before: another socket may listen from now on.
            local.iter().for_each(|local| local.end_listening());
        }
        // A call that was under way is taken back when its connection is dropped with the stage.
        drop(stage);
        self.readiness.wake();
        self.readiness.unsubscribe_all(self.id);
        match (self.link.get(), group) {
            (Some(link), _) if before == SocketState::Connected => link.begin_close(),
            // Its links are still called.
            (None, Some(group)) => group.begin_close(),
            _ => {}
        }
        Some(before)
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
        // Another thread may have closed the socket meanwhile. The set must not keep it.
        if self.is_known_closed() {
            self.readiness.unsubscribe(self.id, set);
        }
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

    /// Closes a socket that broke before `before` and whose data have been read, or one that broke
    /// before `long_before`: nobody uses it. Returns whether it is broken or was, and must be
    /// looked at again.
    pub(crate) fn close_if_abandoned(&self, before: Instant, long_before: Instant) -> bool {
        let since = match self.lock().stage {
            Stage::Broken(since) => since,
            _ => return false,
        };
        let is_drained = self.readiness.events().any(Events::ERR);
        if since < long_before || since < before && is_drained {
            self.begin_close();
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

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::testing::{assert_fails, listener, pair, receive, send, set, until};
    use crate::{Failure, Library, MessageControl, SocketState};

    /// Waits until a thread sleeps in a call on this socket.
    fn until_somebody_waits(library: &Library, id: i32) {
        let socket = library.find(id).unwrap();
        until("a thread waits", || socket.readiness.has_waiting().then_some(()));
    }

    #[test]
    fn closing_wakes_the_calls_that_wait_each_with_its_error() {
        let library = Library::start().unwrap();
        let ends = pair(&library, &[]);
        let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let calling = library.create_socket();
        type Call<'a> = Box<dyn FnOnce() -> Result<(), Failure> + Send + 'a>;
        let calls: [(i32, Code, Call<'_>); 3] = [
            (
                ends.accepted,
                Code::ConnectionLost,
                Box::new(|| receive(&library, ends.accepted).map(|_| ())),
            ),
            (
                ends.listener,
                Code::ClosedWhileConnecting,
                Box::new(|| library.accept(ends.listener).map(|_| ())),
            ),
            (
                calling,
                Code::ClosedWhileConnecting,
                Box::new(|| library.connect(calling, silent.local_addr().unwrap())),
            ),
        ];
        for (id, code, call) in calls {
            thread::scope(|scope| {
                let waiting = scope.spawn(call);
                until_somebody_waits(&library, id);
                library.close(id);
                assert_fails(waiting.join().unwrap(), code);
            });
            assert_eq!(library.state(id), SocketState::Closed);
        }
        library.shut_down();
    }

    #[test]
    fn closing_wakes_a_thread_that_waits_for_room() {
        let library = Library::start().unwrap();
        let small = [(OptionNumber::TRANSTYPE, 1), (OptionNumber::FC, 32)];
        let ends = pair(&library, &small);
        thread::scope(|scope| {
            let sending = scope.spawn(|| {
                loop {
                    let data = [0; 100_000];
                    let sent = library.send(ends.caller, &data, &mut MessageControl::default());
                    if let Err(failure) = sent {
                        return failure.code;
                    }
                }
            });
            until_somebody_waits(&library, ends.caller);
            set(&library, ends.caller, &[(OptionNumber::SNDSYN, 0)]);
            library.close(ends.caller);
            assert_eq!(sending.join().unwrap(), Code::ConnectionLost);
        });
        library.shut_down();
    }

    #[test]
    fn a_socket_that_lingers_has_sent_its_data_when_it_is_closed() {
        let library = Library::start().unwrap();
        let ends = pair(&library, &[(OptionNumber::TRANSTYPE, 1)]);
        let data = vec![7; 300_000];
        assert_eq!(send(&library, ends.caller, &data), data.len());
        library.close(ends.caller);
        let mut received = 0;
        loop {
            match receive(&library, ends.accepted).unwrap().len() {
                0 => break,
                len => received += len,
            }
        }
        assert_eq!(received, data.len());
        library.shut_down();
    }

    #[test]
    fn the_end_of_the_library_wakes_every_call_that_waits() {
        let library = Library::start().unwrap();
        let stream = [(OptionNumber::TRANSTYPE, 1), (OptionNumber::FC, 32)];
        let (ends, idle) = (pair(&library, &stream), pair(&library, &[]));
        set(&library, ends.caller, &[(OptionNumber::SNDSYN, 0)]);
        let full = vec![7; 100_000];
        while library.send(ends.caller, &full, &mut MessageControl::default()).is_ok() {}
        set(&library, ends.caller, &[(OptionNumber::SNDSYN, 1)]);
        let set = library.create_event_set();
        library.subscribe(set, idle.accepted, Events::IN).unwrap();
        let events = library.event_set(set).unwrap();
        thread::scope(|scope| {
            // Nobody reads, so it would linger for three minutes.
            let lingering = scope.spawn(|| library.close(ends.caller));
            let accepting = scope.spawn(|| library.accept_any(&[idle.listener], None));
            let receiving = scope.spawn(|| receive(&library, idle.accepted));
            let wanted = crate::Wanted { sockets: Events::IN, room: usize::MAX, system: None };
            let waiting = scope.spawn(move || events.wait(wanted, None));
            until_somebody_waits(&library, idle.accepted);
            until_somebody_waits(&library, ends.caller);
            let listener = library.find(idle.listener).unwrap();
            until("a set waits", || listener.readiness.has_sets().then_some(()));
            drop(listener);
            library.shut_down();
            lingering.join().unwrap();
            assert_fails(accepting.join().unwrap(), Code::EmptyEventSet);
            assert_fails(receiving.join().unwrap(), Code::ConnectionLost);
            // It may have been told of the end of the connection before.
            let _ = waiting.join().unwrap();
        });
    }

    #[test]
    fn a_closed_listener_does_not_wait_for_those_that_nobody_accepted() {
        let library = Library::start().unwrap();
        let waiting = listener(&library, &[(OptionNumber::TRANSTYPE, 1)]);
        let caller = library.create_socket();
        set(&library, caller, &[(OptionNumber::TRANSTYPE, 1)]);
        library.connect(caller, waiting.address).unwrap();
        send(&library, caller, b"unread");
        library.close(waiting.id);
        until("the caller hears of it", || {
            (library.state(caller) == SocketState::Broken).then_some(())
        });
        library.shut_down();
    }

    #[test]
    fn a_broken_socket_is_closed_once_it_was_read_or_after_a_long_time() {
        let library = Library::start().unwrap();
        let ends = pair(&library, &[(OptionNumber::LATENCY, 1_000)]);
        send(&library, ends.caller, b"not due yet");
        let socket = library.find(ends.accepted).unwrap();
        until("it has come", || {
            (socket.option(OptionNumber::RCVDATA).unwrap() != Value::Int(0)).then_some(())
        });
        library.close(ends.caller);
        until("it is broken", || (socket.state() == SocketState::Broken).then_some(()));
        let (past, future) = (now() - Duration::from_secs(9), now() + Duration::from_secs(9));
        assert!(socket.close_if_abandoned(future, past));
        assert_eq!(socket.state(), SocketState::Broken);
        assert!(socket.close_if_abandoned(future, future));
        assert_eq!(socket.state(), SocketState::Closed);
        library.shut_down();
    }

    #[test]
    fn a_set_does_not_keep_a_socket_that_is_closed_meanwhile() {
        let library = Library::start().unwrap();
        let id = library.create_socket();
        let socket = library.find(id).unwrap();
        let set = Arc::new(EventSet::default());
        library.close(id);
        socket.subscribe(&set, Events::IN);
        assert_eq!(set.sockets(), []);
        library.shut_down();
    }
}
