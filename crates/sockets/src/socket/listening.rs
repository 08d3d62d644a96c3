//! Listening, and the calls that come.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use punctual::{IncomingCall, Listener};
use punctual_blocking::Events;

use super::Socket;
use super::core::Core;
use crate::code::{Code, Failure};

/// The bytes of C's `sockaddr_in`.
const V4_ADDRESS: usize = 16;
/// The bytes of C's `sockaddr_in6`.
const V6_ADDRESS: usize = 28;
/// The version of the handshake that every caller has.
const HANDSHAKE_VERSION: i32 = 5;

/// Decides on a caller: gets the number of the socket that it would be accepted as, the version of
/// its handshake, its address and its stream ID, and returns -1 to refuse it.
#[derive(Clone)]
pub struct ListenHook(Arc<Decide>);

type Decide = dyn Fn(i32, i32, SocketAddr, &[u8]) -> i32 + Send + Sync;

impl ListenHook {
    /// The reply that refuses a caller.
    pub const REFUSE: i32 = -1;

    /// A hook that calls `hook`.
    pub fn new(hook: impl Fn(i32, i32, SocketAddr, &[u8]) -> i32 + Send + Sync + 'static) -> Self {
        Self(Arc::new(hook))
    }

    /// Whether the hook allows the caller.
    pub(super) fn allows(&self, call: &IncomingCall, socket: &Socket) -> bool {
        let stream_id = call.raw_stream_id().bytes();
        (self.0)(socket.id(), HANDSHAKE_VERSION, call.remote(), stream_id) != Self::REFUSE
    }
}

impl fmt::Debug for ListenHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ListenHook")
    }
}

/// A socket that listens.
#[derive(Debug)]
pub(super) struct Listening {
    /// `None` once the socket is closed.
    listener: Mutex<Option<Listener>>,
    backlog: AtomicUsize,
    /// Connections that the application has not accepted yet.
    queue: Mutex<VecDeque<Arc<Socket>>>,
    /// The times that callers were announced and that the answering thread has not looked since.
    announced: AtomicUsize,
}

impl Listening {
    /// A listener of which `backlog` connections may wait to be accepted.
    pub(super) fn new(listener: Listener, backlog: usize) -> Self {
        Self {
            listener: Mutex::new(Some(listener)),
            backlog: AtomicUsize::new(backlog),
            queue: Mutex::default(),
            announced: AtomicUsize::new(0),
        }
    }

    /// Lets another number of connections wait.
    pub(super) fn set_backlog(&self, backlog: usize) {
        self.backlog.store(backlog, Ordering::Relaxed);
    }

    /// Waits for a connection and takes it, if `room` bytes hold the peer's address. `core` is that
    /// of the listening socket.
    pub(super) fn accept(&self, core: &Core, room: Option<usize>) -> Result<Arc<Socket>, Failure> {
        loop {
            let mark = core.mark();
            if core.is_closed() {
                return Err(Code::ClosedWhileConnecting.into());
            }
            if let Some(socket) = self.try_accept(core, room)? {
                return Ok(socket);
            }
            if !core.settings.receive_blocks() {
                return Err(Code::AgainReceive.into());
            }
            core.readiness.wait(mark, None);
        }
    }

    /// Takes a connection, if one waits. If `room` bytes do not hold the peer's address, it stays.
    pub(super) fn try_accept(
        &self,
        core: &Core,
        room: Option<usize>,
    ) -> Result<Option<Arc<Socket>>, Failure> {
        let mark = core.mark();
        let mut queue = self.queue();
        let needed = match queue.front().and_then(|socket| socket.caller_address()) {
            Some(SocketAddr::V6(_)) => V6_ADDRESS,
            _ => V4_ADDRESS,
        };
        if !queue.is_empty() && room.is_some_and(|room| room < needed) {
            return Err(Code::InvalidParameter.into());
        }
        let socket = queue.pop_front();
        let is_empty = queue.is_empty();
        drop(queue);
        if is_empty {
            core.clear(Events::IN, mark);
        }
        Ok(socket)
    }

    /// A caller was announced. Returns whether no thread answers callers now, so that this one
    /// does.
    pub(super) fn announce(&self) -> bool {
        self.announced.fetch_add(1, Ordering::SeqCst) == 0
    }

    /// Callers were looked for after `seen` announcements. Returns the number of further
    /// announcements since.
    pub(super) fn looked(&self, seen: usize) -> usize {
        self.announced.fetch_sub(seen, Ordering::SeqCst) - seen
    }

    /// Whether no further connection may wait.
    pub(super) fn is_full(&self) -> bool {
        self.queue().len() >= self.backlog.load(Ordering::Relaxed)
    }

    /// A connection waits to be accepted.
    pub(super) fn push(&self, socket: Arc<Socket>) {
        self.queue().push_back(socket);
    }

    /// Refuses all callers from now on, and closes the connections that nobody accepted. It does
    /// not wait for a hook that decides on a caller now: the port can listen again at once.
    pub(super) fn stop(&self) {
        // Dropped without the lock: the callers that wait are refused.
        let listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(listener);
        self.close_queue();
    }

    fn close_queue(&self) {
        let queue = std::mem::take(&mut *self.queue());
        queue.iter().for_each(|socket| socket.close_behind());
    }

    /// The next caller that waits for an answer.
    pub(super) fn next_call(&self) -> Option<IncomingCall> {
        let listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        listener.as_ref()?.try_incoming()
    }

    /// The connections that wait. A connection that ended and was collected before it was accepted
    /// is forgotten.
    fn queue(&self) -> MutexGuard<'_, VecDeque<Arc<Socket>>> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.retain(|socket| !socket.is_known_closed());
        queue
    }
}

impl Drop for Listening {
    /// A caller may have been accepted while the socket was closed.
    fn drop(&mut self) {
        self.close_queue();
    }
}

#[cfg(test)]
mod tests {
    use crate::{Library, OptionNumber, SocketOptionValue, SocketState};
    use std::sync::mpsc;

    use super::*;
    use crate::testing::{any_port, assert_fails, listen, listener, pair, until};

    /// A listener with this hook.
    fn with_hook(
        library: &Arc<Library>,
        hook: impl Fn(i32) -> i32 + Send + Sync + 'static,
    ) -> crate::testing::Listener {
        let id = library.create_socket();
        let hook = ListenHook::new(move |caller, _, _, _| hook(caller));
        library.set_listen_hook(id, Some(hook)).unwrap();
        listen(library, id)
    }

    #[test]
    fn a_hook_sees_a_caller_and_refuses_it_with_a_reason() {
        let library = Library::start().unwrap();
        let id = library.create_socket();
        let (sender, seen) = mpsc::channel();
        let inner = Arc::downgrade(&library);
        let hook = ListenHook::new(move |caller, version, peer, stream_id| {
            let library = inner.upgrade().unwrap();
            library.set_reject_reason(caller, 1_403).unwrap();
            sender.send((library.state(caller), version, peer, stream_id.to_owned())).unwrap();
            ListenHook::REFUSE
        });
        library.set_listen_hook(id, Some(hook)).unwrap();
        let address = listen(&library, id).address;
        let caller = library.create_socket();
        let text = SocketOptionValue::Text(b"cam\xE9ra\0 1".to_vec());
        library.set_option(caller, OptionNumber::STREAMID, text).unwrap();
        assert_fails(library.connect(caller, address), Code::ConnectionRejected);
        assert_eq!(library.reject_reason(caller), 1_403);
        let (state, version, peer, stream_id) = seen.recv().unwrap();
        assert_eq!((state, version), (SocketState::Init, 5));
        assert_eq!(stream_id, b"cam\xE9ra\0 1");
        assert!(peer.ip().is_loopback());
        library.shut_down();
    }

    #[test]
    fn callers_beyond_the_backlog_are_refused() {
        let library = Library::start().unwrap();
        let waiting = listener(&library, &[]);
        library.listen(waiting.id, 1).unwrap();
        let [first, second] = [(); 2].map(|()| library.create_socket());
        library.connect(first, waiting.address).unwrap();
        assert_fails(library.connect(second, waiting.address), Code::ConnectionRejected);
        assert_eq!(library.reject_reason(second), 5);
        // A place is free again.
        library.accept(waiting.id).unwrap();
        library.connect(second, waiting.address).unwrap();
        library.shut_down();
    }

    #[test]
    fn a_caller_whose_socket_a_hook_has_used_is_refused() {
        let library = Library::start().unwrap();
        type Misuse = fn(&Library, i32);
        let misuses: [Misuse; 3] = [
            |library, caller| library.close(caller),
            |library, caller| library.bind(caller, any_port()).unwrap(),
            |library, caller| {
                library
                    .set_option(caller, OptionNumber::RCVSYN, SocketOptionValue::Bool(false))
                    .unwrap();
                library.connect(caller, ([127, 0, 0, 1], 9).into()).unwrap();
            },
        ];
        for misuse in misuses {
            let inner = Arc::downgrade(&library);
            let (sender, callers) = mpsc::channel();
            let waiting = with_hook(&library, move |caller| {
                misuse(&inner.upgrade().unwrap(), caller);
                sender.send(caller).unwrap();
                0
            });
            let caller = library.create_socket();
            assert_fails(library.connect(caller, waiting.address), Code::ConnectionRejected);
            let used = callers.recv().unwrap();
            until("it is forgotten", || {
                (library.state(used) == SocketState::Nonexistent).then_some(())
            });
            library.close(waiting.id);
        }
        library.shut_down();
    }

    #[test]
    fn a_hook_can_close_its_listener_and_end_the_library() {
        type End = fn(&Library, i32);
        let ends: [End; 2] = [|library, id| library.close(id), |library, _| library.shut_down()];
        for end in ends {
            let library = Library::start().unwrap();
            let inner = Arc::downgrade(&library);
            let listener = Arc::new(AtomicUsize::new(0));
            let id = Arc::clone(&listener);
            let (sender, done) = mpsc::channel();
            let waiting = with_hook(&library, move |_| {
                let id = i32::try_from(id.load(Ordering::SeqCst)).unwrap();
                end(&inner.upgrade().unwrap(), id);
                sender.send(()).unwrap();
                0
            });
            listener.store(usize::try_from(waiting.id).unwrap(), Ordering::SeqCst);
            let caller = library.create_socket();
            library
                .set_option(caller, OptionNumber::RCVSYN, SocketOptionValue::Bool(false))
                .unwrap();
            library.connect(caller, waiting.address).unwrap();
            done.recv().unwrap();
            let state = library.state(waiting.id);
            assert!(matches!(state, SocketState::Closed | SocketState::Nonexistent), "{state:?}");
            library.shut_down();
        }
    }

    #[test]
    fn a_port_can_listen_again_while_a_hook_decides_on_a_caller() {
        let library = Library::start().unwrap();
        let (go_on, wait) = mpsc::channel::<()>();
        let wait = Mutex::new(wait);
        let (sender, begun) = mpsc::channel();
        let slow = with_hook(&library, move |_| {
            sender.send(()).unwrap();
            let _ = wait.lock().unwrap().recv();
            0
        });
        let slow_caller = library.create_socket();
        library
            .set_option(slow_caller, OptionNumber::RCVSYN, SocketOptionValue::Bool(false))
            .unwrap();
        library.connect(slow_caller, slow.address).unwrap();
        begun.recv().unwrap();
        library.close(slow.id);
        let second = library.create_socket();
        library.bind(second, slow.address).unwrap();
        library.listen(second, 1).unwrap();
        drop(go_on);
        let caller = library.create_socket();
        library.connect(caller, slow.address).unwrap();
        library.accept(second).unwrap();
        library.shut_down();
    }

    #[test]
    fn a_connection_that_was_collected_is_not_accepted() {
        let library = Library::start().unwrap();
        let waiting = listener(&library, &[]);
        library
            .set_option(waiting.id, OptionNumber::RCVSYN, SocketOptionValue::Bool(false))
            .unwrap();
        let caller = library.create_socket();
        library.connect(caller, waiting.address).unwrap();
        let socket = library.find(waiting.id).unwrap();
        let queued =
            until("it is in the queue", || socket.listening().unwrap().queue().front().cloned());
        queued.close_behind();
        assert_fails(library.accept(waiting.id), Code::AgainReceive);
        library.shut_down();
    }

    #[test]
    fn accepting_from_several_listeners_ends_at_a_socket_that_does_not_listen() {
        let library = Library::start().unwrap();
        let ends = pair(&library, &[(OptionNumber::LATENCY, 0)]);
        crate::testing::send(&library, ends.caller, b"on time");
        // It is readable, which is no caller.
        let accepted = library.accept_any(&[ends.accepted], None);
        assert_fails(accepted, Code::NotListening);
        let none = library.accept_any(&[ends.listener], Some(std::time::Duration::ZERO));
        assert_fails(none, Code::Timeout);
        assert_fails(library.accept_any(&[], None), Code::EmptyEventSet);
        library.shut_down();
    }
}
