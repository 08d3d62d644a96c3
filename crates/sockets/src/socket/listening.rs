//! Listening, and the calls that come.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use punctual::{IncomingCall, Listener, RejectReason};

use super::link::Carrier;
use super::{Socket, Stage};
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

type Decide = dyn Fn(i32, i32, SocketAddr, &str) -> i32 + Send + Sync;

impl ListenHook {
    /// A hook that calls `hook`.
    pub fn new(hook: impl Fn(i32, i32, SocketAddr, &str) -> i32 + Send + Sync + 'static) -> Self {
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
    listener: Listener,
    backlog: AtomicUsize,
    /// Connections that the application has not accepted yet.
    queue: Mutex<VecDeque<Arc<Socket>>>,
    /// The times that callers were announced and that the answering thread has not looked since.
    announced: AtomicUsize,
}

impl Listening {
    fn queue(&self) -> MutexGuard<'_, VecDeque<Arc<Socket>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Listening {
    /// Connections that nobody accepted are closed.
    fn drop(&mut self) {
        let queue = std::mem::take(&mut *self.queue());
        queue.iter().for_each(|socket| socket.close());
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
        let listening = Listening {
            listener,
            backlog: AtomicUsize::new(backlog),
            queue: Mutex::default(),
            announced: AtomicUsize::new(0),
        };
        state.stage = Stage::Listening(Arc::new(listening));
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

    /// Answers the callers that wait. Returns whether this socket listens.
    pub(super) fn take_callers(&self) -> bool {
        let state = self.lock();
        let listening = match &state.stage {
            Stage::Listening(listening) => Arc::clone(listening),
            _ => return false,
        };
        let has_hook = state.listen_hook.is_some();
        drop(state);
        let (Some(this), Some(library)) = (self.this.upgrade(), self.library.upgrade()) else {
            return true;
        };
        if has_hook {
            // The hook may take its time, and the port's other connections must not wait for it.
            library.runtime().spawn_blocking(move || this.answer_all(&listening));
        } else {
            self.answer_all(&listening);
        }
        true
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
        while let Some(call) = listening.listener.try_incoming() {
            if listening.queue().len() >= listening.backlog.load(Ordering::Relaxed) {
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
            let options = state.options.inherited(call.stream_id());
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
        self.adopt(&mut state, carrier);
        drop(state);
        self.note_opened();
        // It may have ended before the watcher came.
        self.follow_phase();
        Ok(true)
    }
}

impl ListenHook {
    /// Whether the hook allows the caller.
    fn allows(&self, call: &IncomingCall, socket: &Socket) -> bool {
        (self.0)(socket.id(), HANDSHAKE_VERSION, call.remote(), call.stream_id()) != REFUSE
    }
}
