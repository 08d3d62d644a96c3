//! Listening, and the calls that come.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use punctual::{IncomingCall, Listener, RawStreamId, RejectReason};

use super::link::Carrier;
use super::{Socket, Stage, State};
use crate::code::{Code, Failure};
use crate::events::Events;
use crate::options::OptionNumber;
use crate::reject;

/// The reply of a listen hook that refuses a caller.
const REFUSE: i32 = -1;
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
    /// A hook that calls `hook`.
    pub fn new(hook: impl Fn(i32, i32, SocketAddr, &[u8]) -> i32 + Send + Sync + 'static) -> Self {
        Self(Arc::new(hook))
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
    fn new(listener: Listener, backlog: usize) -> Self {
        Self {
            listener: Mutex::new(Some(listener)),
            backlog: AtomicUsize::new(backlog),
            queue: Mutex::default(),
            announced: AtomicUsize::new(0),
        }
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

    fn next_call(&self) -> Option<IncomingCall> {
        let listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        listener.as_ref()?.try_incoming()
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<Arc<Socket>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Listening {
    /// A caller may have been accepted while the socket was closed.
    fn drop(&mut self) {
        self.close_queue();
    }
}

impl Socket {
    /// Sets the hook that decides on callers.
    pub(crate) fn set_listen_hook(&self, hook: Option<ListenHook>) -> Result<(), Failure> {
        self.lock().listen_hook = hook;
        Ok(())
    }

    /// Listens for calls; `backlog` of them may wait.
    pub(crate) fn listen(&self, backlog: i32) -> Result<(), Failure> {
        let backlog = usize::try_from(backlog).ok().filter(|&backlog| backlog > 0);
        let backlog = backlog.ok_or(Code::InvalidParameter)?;
        let mut state = self.lock();
        match &state.stage {
            Stage::Init => return Err(Code::NotBound.into()),
            Stage::Opened => {}
            Stage::Listening(listening) => {
                listening.backlog.store(backlog, Ordering::Relaxed);
                return Ok(());
            }
            Stage::Closed(_) => return Err(Code::InvalidSocket.into()),
            _ => return Err(Code::NotBound.into()),
        }
        if state.options.is_on(OptionNumber::RENDEZVOUS) {
            return Err(Code::RendezvousNoServer.into());
        }
        let Some(local) = state.local.clone() else { return Err(Code::NotBound.into()) };
        let config = state.options.config().map_err(|_| Code::InvalidParameter)?;
        let library = self.library()?;
        let listener = local.listen(library.runtimes(), config)?;
        listener.watch(self.watcher());
        state.stage = Stage::Listening(Arc::new(Listening::new(listener, backlog)));
        drop(state);
        // A caller may have come before the watcher did.
        self.take_callers();
        Ok(())
    }

    /// Waits for a connection and takes it, if `room` bytes hold the peer's address.
    pub(crate) fn accept(&self, room: Option<usize>) -> Result<Arc<Self>, Failure> {
        loop {
            let mark = self.readiness.mark();
            if let Some(socket) = self.try_accept(room)? {
                return Ok(socket);
            }
            if !self.settings.receive_blocks() {
                return Err(Code::AgainReceive.into());
            }
            self.readiness.wait(mark, None);
            if self.is_closed() {
                return Err(Code::ClosedWhileConnecting.into());
            }
        }
    }

    /// Takes a connection, if one waits. If `room` bytes do not hold the peer's address, it stays.
    pub(crate) fn try_accept(&self, room: Option<usize>) -> Result<Option<Arc<Self>>, Failure> {
        let mark = self.readiness.mark();
        let listening = self.listening()?;
        let mut queue = listening.queue();
        forget_closed(&mut queue);
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
            self.readiness.clear(self.id, Events::IN, mark);
        }
        Ok(socket)
    }

    fn listening(&self) -> Result<Arc<Listening>, Failure> {
        match &self.lock().stage {
            Stage::Listening(listening) => Ok(Arc::clone(listening)),
            Stage::Closed(_) => Err(Code::InvalidSocket.into()),
            _ => Err(Code::NotListening.into()),
        }
    }

    /// Answers the callers that wait, if this socket listens.
    pub(super) fn take_callers(&self) {
        let state = self.lock();
        let listening = match &state.stage {
            Stage::Listening(listening) => Arc::clone(listening),
            _ => return,
        };
        let has_hook = state.listen_hook.is_some();
        drop(state);
        let (Some(this), Some(library)) = (self.this.upgrade(), self.library.upgrade()) else {
            return;
        };
        if has_hook {
            // The hook may take its time, and the port's other connections must not wait for it.
            library.runtime().spawn_blocking(move || this.answer_all(&listening));
        } else {
            self.answer_all(&listening);
        }
    }

    /// Answers all callers, in their order. One thread answers at a time, and looks again for
    /// callers that were announced meanwhile, also by its own answers: a group announces its
    /// further links.
    fn answer_all(&self, listening: &Listening) {
        let mut seen = 1;
        if listening.announced.fetch_add(seen, Ordering::SeqCst) > 0 {
            return;
        }
        while seen > 0 {
            self.answer_present(listening);
            seen = listening.announced.fetch_sub(seen, Ordering::SeqCst) - seen;
        }
    }

    fn answer_present(&self, listening: &Listening) {
        while let Some(call) = listening.next_call() {
            let mut queue = listening.queue();
            forget_closed(&mut queue);
            let is_full = queue.len() >= listening.backlog.load(Ordering::Relaxed);
            drop(queue);
            if is_full {
                call.reject(RejectReason::BACKLOG);
                continue;
            }
            if let Some(socket) = self.answer(call) {
                listening.queue().push_back(socket);
                // Older programs that accept one call wait for room to send.
                self.readiness.raise(self.id, Events::IN | Events::OUT);
            }
        }
    }

    /// Answers one caller. Returns its connection if it was accepted.
    fn answer(&self, call: IncomingCall) -> Option<Arc<Self>> {
        let library = self.library.upgrade()?;
        let (options, local, connect_hook, hook) = {
            let state = self.lock();
            let options = state.options.inherited(received_stream_id(call.raw_stream_id()));
            let hook = state.listen_hook.clone();
            (options, state.local.clone(), state.connect_hook.clone(), hook)
        };
        let is_link = call.group().is_some();
        let socket = library.add_socket(options, is_link);
        if !hook.is_none_or(|hook| hook.allows(&call, &socket)) {
            call.reject(reject::of_application(socket.reject_reason()));
            library.remove_socket(socket.id());
            return None;
        }
        let accepted = socket.accept_call(call, local);
        socket.lock().connect_hook = connect_hook;
        match accepted {
            Ok(true) => Some(socket),
            Ok(false) => {
                // A further link of a group.
                self.readiness.flash(self.id, Events::UPDATE);
                library.remove_socket(socket.id());
                None
            }
            Err(_) => {
                // A hook may have bound it.
                socket.close_behind();
                library.remove_socket(socket.id());
                None
            }
        }
    }

    /// Accepts a caller as this socket. Returns `false` if it has joined a group.
    fn accept_call(
        &self,
        call: IncomingCall,
        local: Option<Arc<crate::ports::LocalPort>>,
    ) -> Result<bool, Failure> {
        let mut state = self.lock();
        self.check_untouched(&state)?;
        let config = state.options.config().map_err(|_| Code::InvalidParameter)?;
        state.local = local;
        drop(state);
        let library = self.library()?;
        let _runtime = library.runtime().enter();
        let refused = |_| Failure::from(Code::ConnectionFailed);
        let carrier = if call.group().is_some() {
            match call.accept_group_with(config).map_err(refused)? {
                Some(group) => {
                    self.become_group(group.kind());
                    Carrier::Group(group)
                }
                None => return Ok(false),
            }
        } else {
            Carrier::Connection(call.accept_now(config).map_err(refused)?)
        };
        carrier.watch(self.watcher());
        let mut state = self.lock();
        if let Err(touched) = self.check_untouched(&state) {
            // The watcher of the connection locks the state.
            drop(state);
            return Err(touched);
        }
        self.adopt(&mut state, carrier);
        drop(state);
        self.note_opened();
        self.announce_connection();
        // It may have ended before the watcher came.
        self.follow_phase();
        Ok(true)
    }

    /// Fails if the program has closed, bound or connected a socket that a hook told it of, before
    /// the caller was accepted.
    fn check_untouched(&self, state: &State) -> Result<(), Failure> {
        match state.stage {
            Stage::Init => Ok(()),
            _ => Err(Code::InvalidOperation.into()),
        }
    }
}

/// Forgets connections that ended and were collected before they were accepted.
fn forget_closed(queue: &mut VecDeque<Arc<Socket>>) {
    queue.retain(|socket| !socket.is_known_closed());
}

/// A stream ID as programs for libsrt get it from a peer: a zero ends it.
pub(super) fn received_stream_id(id: &RawStreamId) -> &[u8] {
    id.bytes().split(|&byte| byte == 0).next().unwrap_or_default()
}

impl ListenHook {
    /// Whether the hook allows the caller.
    fn allows(&self, call: &IncomingCall, socket: &Socket) -> bool {
        let stream_id = received_stream_id(call.raw_stream_id());
        (self.0)(socket.id(), HANDSHAKE_VERSION, call.remote(), stream_id) != REFUSE
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::testing::{any_port, assert_fails, listen, listener, pair, until};
    use crate::{Library, SocketState, Value};

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
            REFUSE
        });
        library.set_listen_hook(id, Some(hook)).unwrap();
        let address = listen(&library, id).address;
        let caller = library.create_socket();
        let text = Value::Text(b"cam\xE9ra\0 1".to_vec());
        library.set_option(caller, OptionNumber::STREAMID, text).unwrap();
        assert_fails(library.connect(caller, address), Code::ConnectionRejected);
        assert_eq!(library.reject_reason(caller), 1_403);
        let (state, version, peer, stream_id) = seen.recv().unwrap();
        assert_eq!((state, version, &stream_id[..]), (SocketState::Init, 5, &b"cam\xE9ra"[..]));
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
                library.set_option(caller, OptionNumber::RCVSYN, Value::Bool(false)).unwrap();
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
            library.set_option(caller, OptionNumber::RCVSYN, Value::Bool(false)).unwrap();
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
        library.set_option(slow_caller, OptionNumber::RCVSYN, Value::Bool(false)).unwrap();
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
        library.set_option(waiting.id, OptionNumber::RCVSYN, Value::Bool(false)).unwrap();
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
