//! The end of a connection that this end closes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use punctual::Phase;

use super::core::Core;
use super::link::Link;
use crate::options::{OptionNumber, Options, SocketOptionValue};

/// The time that a driver gets to tell the peer that the connection is closed.
pub(super) const FAREWELL: Duration = Duration::from_millis(100);

/// Whether the last packets of a closed connection have been sent.
#[derive(Debug, Default)]
pub(super) struct Farewell {
    sent: AtomicBool,
}

impl Farewell {
    /// Waits until the last packets have been sent, at most until `deadline`.
    pub(super) fn wait(&self, core: &Core, deadline: Instant) {
        loop {
            let mark = core.mark();
            let sent = self.sent.load(Ordering::Acquire);
            if sent || !core.readiness.wait(mark, Some(deadline)) {
                return;
            }
        }
    }

    /// The phase of the closed connection may have changed: the driver may have sent the last
    /// packets.
    pub(super) fn follow(&self, core: &Core) {
        let ended = core.link().map(Link::phase).is_none_or(|it| matches!(it, Phase::Closed(_)));
        self.sent.fetch_or(ended, Ordering::Release);
        core.readiness.wake();
    }
}

/// The time for which a socket with these options sends its data after it was closed.
pub(super) fn linger_time(options: &Options) -> Duration {
    match options.get(OptionNumber::LINGER) {
        Some(SocketOptionValue::Linger { on, seconds }) if on != 0 => {
            Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
        }
        _ => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::code::Code;
    use crate::event_set::EventSet;
    use crate::testing::{assert_fails, listener, pair, receive, send, set, until};
    use crate::{Failure, Library, MessageControl, SocketState};
    use punctual_blocking::Events;
    use punctual_blocking::now;

    #[test]
    fn a_socket_without_a_connection_has_nothing_to_send_at_its_end() {
        let (core, farewell) = (Core::new(1, &Options::default()), Farewell::default());
        farewell.wait(&core, now());
        assert!(!farewell.sent.load(Ordering::Acquire), "nobody has told of the end");
        farewell.follow(&core);
        farewell.wait(&core, now() + Duration::from_secs(3_600));
        assert!(farewell.sent.load(Ordering::Acquire));
    }

    #[test]
    fn a_socket_lingers_only_if_it_is_told_to() {
        let mut options = Options::default();
        options.set(OptionNumber::LINGER, SocketOptionValue::Linger { on: 0, seconds: 9 }).unwrap();
        assert_eq!(linger_time(&options), Duration::ZERO);
        options.set(OptionNumber::LINGER, SocketOptionValue::Linger { on: 1, seconds: 9 }).unwrap();
        assert_eq!(linger_time(&options), Duration::from_secs(9));
    }

    /// Waits until a thread sleeps in a call on this socket.
    fn until_somebody_waits(library: &Library, id: i32) {
        let socket = library.find(id).unwrap();
        until("a thread waits", || socket.core.readiness.has_waiting().then_some(()));
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
            until("a set waits", || listener.core.readiness.has_subscribers().then_some(()));
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
            (socket.options().get(OptionNumber::RCVDATA).unwrap() != SocketOptionValue::Int(0))
                .then_some(())
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
