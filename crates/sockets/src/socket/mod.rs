//! One socket: its stage, its options and its connection.

mod admission;
mod buffer_means;
mod closing;
mod connecting;
mod control;
mod core;
mod files;
mod group;
mod link;
mod listening;
mod members;
mod names;
mod option_access;
mod receiver;
mod sender;
mod settings;
mod state;
mod statistics;

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::buf::UninitSlice;
use punctual::{
    CloseReason, Config, Group, GroupKind, IncomingCall, Phase, Socket as Connection, Wakes,
    Watcher,
};

use self::admission::AdmissionTerms;
pub(crate) use self::admission::Groups;
pub use self::buffer_means::{BufferLevel, BufferLevels};
use self::closing::{FAREWELL, Farewell, linger_time};
pub use self::connecting::ConnectHook;
use self::connecting::{SocketCaller, any_address, connect_code};
pub use self::control::MessageControl;
use self::core::Core;
use self::files::Files;
pub(crate) use self::group::kind;
use self::group::{GroupLinks, kind_number};
pub use self::group::{LinkCall, StartedCall};
use self::link::{Carrier, GroupSlot, Link};
pub use self::listening::ListenHook;
use self::listening::Listening;
use self::members::GroupMembers;
pub use self::members::{MemberInfo, MemberState};
use self::names::ConnectionAddresses;
use self::option_access::OptionAccess;
use self::receiver::Receiver;
use self::sender::Sender;
pub use self::state::SocketState;
use self::state::{FailedKeys, Stage, State};
pub use self::statistics::TransferStatistics;
use punctual_blocking::{Events, Readiness, now};

use crate::code::{Code, Failure};
use crate::event_set::EventSet;
use crate::library::Library;
use crate::options::{OptionNumber, Options};
use crate::ports::LocalPort;
use crate::reject;

/// A socket of a [`Library`].
///
/// It routes each call to the part that owns the state and the rules for it, and moves from stage
/// to stage.
#[derive(Debug)]
pub(crate) struct Socket {
    core: Core,
    library: Weak<Library>,
    /// The socket itself, for watchers and hooks.
    this: Weak<Self>,
    state: Mutex<State>,
    /// The number of the group that the socket is a link of.
    group: OnceLock<i32>,
    sender: Sender,
    receiver: Receiver,
    farewell: Farewell,
    reject_reason: AtomicI32,
}

impl Socket {
    /// A new socket with these options.
    pub(crate) fn new(library: &Arc<Library>, id: i32, options: Options) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            core: Core::new(id, &options),
            library: Arc::downgrade(library),
            this: Weak::clone(this),
            state: Mutex::new(State::new(options)),
            group: OnceLock::new(),
            sender: Sender::default(),
            receiver: Receiver::default(),
            farewell: Farewell::default(),
            reject_reason: AtomicI32::new(0),
        })
    }

    pub(crate) const fn id(&self) -> i32 {
        self.core.id()
    }

    pub(crate) fn state(&self) -> SocketState {
        let state = self.lock();
        match state.stage {
            // As in libsrt: a group without links is broken.
            Stage::Init if state.members.is_some() => SocketState::Broken,
            _ => state.stage.state(),
        }
    }

    pub(crate) const fn readiness(&self) -> &Readiness<EventSet> {
        &self.core.readiness
    }

    /// The reason of the last refusal; 0 without one.
    pub(crate) fn reject_reason(&self) -> i32 {
        self.reject_reason.load(Ordering::Acquire)
    }

    /// Sets the reason that a listen hook gives, 1,000 and up.
    pub(crate) fn set_reject_reason(&self, reason: i32) -> Result<(), Failure> {
        if reason < reject::FIRST_OF_APPLICATION {
            return Err(Code::InvalidParameter.into());
        }
        self.note_reject_reason(reason);
        Ok(())
    }

    fn note_reject_reason(&self, reason: i32) {
        self.reject_reason.store(reason, Ordering::Release);
    }

    /// The instant of binding, connecting or accepting, microseconds; 0 before.
    pub(crate) fn opened_at(&self) -> u64 {
        self.core.opened_at()
    }

    /// Binds the socket to this address.
    pub(crate) fn bind(&self, local: SocketAddr) -> Result<(), Failure> {
        let mut state = self.lock();
        match state.stage {
            Stage::Init => {}
            Stage::Closed(_) => return Err(Code::InvalidSocket.into()),
            _ => return Err(Code::InvalidOperation.into()),
        }
        self.open(&mut state, local)
    }

    /// Binds the socket, which is not bound yet.
    fn open(&self, state: &mut State, local: SocketAddr) -> Result<(), Failure> {
        let library = self.library()?;
        let config = state.options.port_config(local);
        let reusable = state.options.is_on(OptionNumber::REUSEADDR);
        state.bound(library.ports().open(config, reusable)?);
        self.core.note_opened();
        Ok(())
    }

    /// Binds the socket, which is not bound yet, to any port from which it can call `remote`.
    fn open_for_call(&self, state: &mut State, remote: SocketAddr) -> Result<(), Failure> {
        let library = self.library()?;
        let config = state.options.port_config(any_address(remote));
        let reusable = state.options.is_on(OptionNumber::REUSEADDR);
        state.bound(library.ports().open_for_call(config, reusable)?);
        self.core.note_opened();
        Ok(())
    }

    /// Binds the socket to a UDP socket that the program has bound.
    pub(crate) fn acquire(&self, udp: impl FnOnce() -> UdpSocket) -> Result<(), Failure> {
        let mut state = self.lock();
        if !matches!(state.stage, Stage::Init) {
            return Err(Code::InvalidOperation.into());
        }
        let library = self.library()?;
        state.bound(library.ports().adopt(udp())?);
        self.core.note_opened();
        Ok(())
    }

    /// The calls of this socket.
    pub(crate) fn caller(&self) -> SocketCaller<'_> {
        SocketCaller(self)
    }

    /// The options.
    pub(crate) fn options(&self) -> OptionAccess<'_> {
        OptionAccess(self)
    }

    /// Fails if no option can be set any more.
    pub(crate) fn check_settable(&self) -> Result<(), Failure> {
        self.lock().check_settable()
    }

    /// Makes a new socket a group of this kind.
    pub(crate) fn become_group(&self, kind: GroupKind) {
        self.lock().members = Some(GroupMembers::new(kind));
        self.core.note_group();
    }

    /// Whether the socket is a group.
    pub(crate) fn is_group(&self) -> bool {
        self.core.is_group()
    }

    /// The number of the kind of the group that the socket is; 0 for a single connection.
    fn group_type(&self) -> i32 {
        self.lock().members.as_ref().map_or(0, |members| kind_number(members.kind))
    }

    /// The number of the group that the socket is a link of.
    pub(crate) fn group(&self) -> Option<i32> {
        self.group.get().copied()
    }

    /// Makes a new socket a link of this group, which calls by itself.
    fn become_link(&self, group: i32) {
        // A link belongs to one group.
        let _ = self.group.set(group);
        let mut state = self.lock();
        if matches!(state.stage, Stage::Init) {
            state.stage = Stage::Joining;
        }
        // As in libsrt, its own calls would never wait.
        for waits in [OptionNumber::SNDSYN, OptionNumber::RCVSYN] {
            let _ = state.options.set(waits, crate::SocketOptionValue::Bool(false));
        }
    }

    /// Whether the link has been established, even if it has ended since.
    fn is_link_up(&self) -> bool {
        self.core.link().is_some()
    }

    /// The connection, if the socket has or had one.
    fn link(&self) -> Option<&Link> {
        self.core.link()
    }

    /// The link is established.
    fn connect_as_link(&self, connection: Connection) {
        connection.watch(self.watcher());
        let mut state = self.lock();
        if matches!(state.stage, Stage::Joining) {
            self.adopt(&mut state, Carrier::Connection(connection));
        }
        drop(state);
        self.core.note_opened();
        self.follow_phase();
    }

    /// The first call over the link has failed.
    fn fail_as_link(&self) {
        let mut state = self.lock();
        if matches!(state.stage, Stage::Joining) {
            state.stage = Stage::Broken(now());
            drop(state);
            self.core.raise(Events::BROKEN);
            self.start_reaper();
        }
    }

    /// The links of a group.
    pub(crate) fn links(&self) -> GroupLinks<'_> {
        GroupLinks(self)
    }

    /// Sends a message, or bytes of a stream. Returns the number of bytes that were taken.
    pub(crate) fn send(&self, data: &[u8], control: &mut MessageControl) -> Result<usize, Failure> {
        self.check_stream()?;
        self.sender.send(&self.core, data, control)
    }

    /// Receives a message, or bytes of a stream, into `buffer`. Returns the number of bytes; 0 at
    /// the end of a stream.
    pub(crate) fn receive(
        &self,
        buffer: &mut UninitSlice,
        control: &mut MessageControl,
    ) -> Result<usize, Failure> {
        self.check_stream()?;
        self.receiver.receive(&self.core, buffer, control)
    }

    /// Fails for a link of a group: its messages are those of the group.
    fn check_stream(&self) -> Result<(), Failure> {
        if self.group().is_some() { Err(Code::InvalidOperation.into()) } else { Ok(()) }
    }

    /// Files over the connection.
    pub(crate) fn files(&self) -> Files<'_> {
        Files(self)
    }

    /// The statistics of the connection. With `clear`, a new interval begins.
    pub(crate) fn statistics(&self, clear: bool) -> Result<TransferStatistics, Failure> {
        let link = self.core.link().ok_or(Code::NotConnected)?;
        let mut state = self.lock();
        match state.stage.state() {
            SocketState::Connected => {}
            SocketState::Broken | SocketState::Closed => return Err(Code::ConnectionLost.into()),
            _ => return Err(Code::NotConnected.into()),
        }
        Ok(TransferStatistics::of(link, &mut state.baseline, clear))
    }

    /// The packets and payload bytes in the send buffer, and the time that they span in
    /// milliseconds.
    pub(crate) fn send_buffer(&self) -> Result<(usize, usize, i32), Failure> {
        Ok(self.core.connected()?.send_buffer())
    }

    /// This end's address. Of a connected socket that is bound to every address, it is the one that
    /// its datagrams are sent from.
    pub(crate) fn local_address(&self) -> Result<SocketAddr, Failure> {
        let bound = self.lock().local.as_ref().map(|local| local.address());
        match self.names() {
            Some(names) => Ok(names.local(bound)),
            None => bound.ok_or_else(|| Code::NotConnected.into()),
        }
    }

    /// The peer's address.
    pub(crate) fn peer_address(&self) -> Result<SocketAddr, Failure> {
        match self.lock().stage {
            Stage::Connected => {}
            _ => return Err(Code::NotConnected.into()),
        }
        self.caller_address().ok_or_else(|| Code::NotConnected.into())
    }

    /// The peer's address of an accepted socket, whatever has become of it.
    pub(crate) fn caller_address(&self) -> Option<SocketAddr> {
        self.names().map(|names| names.peer())
    }

    fn names(&self) -> Option<ConnectionAddresses<'_>> {
        self.core.link().and_then(Link::connection).map(ConnectionAddresses)
    }

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
                listening.set_backlog(backlog);
                return Ok(());
            }
            Stage::Closed(_) => return Err(Code::InvalidSocket.into()),
            _ if self.group().is_some() => return Err(Code::Connected.into()),
            _ => return Err(Code::NotBound.into()),
        }
        if state.options.is_on(OptionNumber::RENDEZVOUS) {
            return Err(Code::RendezvousNoServer.into());
        }
        let Some(local) = state.local.clone() else { return Err(Code::NotBound.into()) };
        let config = state.options.config().map_err(|_| Code::InvalidParameter)?;
        let library = self.library()?;
        let listener = local.listen(library.runtimes(), config)?;
        // The hook decides on each link of a group, as in libsrt.
        listener.decide_on_links();
        listener.share_groups(library.groups().accepted());
        listener.watch(self.watcher());
        state.stage = Stage::Listening(Arc::new(Listening::new(listener, backlog)));
        drop(state);
        // A caller may have come before the watcher did.
        self.take_callers();
        Ok(())
    }

    /// Waits for a connection and takes it, if `room` bytes hold the peer's address.
    pub(crate) fn accept(&self, room: Option<usize>) -> Result<Arc<Self>, Failure> {
        self.listening()?.accept(&self.core, room)
    }

    /// Takes a connection, if one waits. If `room` bytes do not hold the peer's address, it stays.
    pub(crate) fn try_accept(&self, room: Option<usize>) -> Result<Option<Arc<Self>>, Failure> {
        self.listening()?.try_accept(&self.core, room)
    }

    fn listening(&self) -> Result<Arc<Listening>, Failure> {
        match &self.lock().stage {
            Stage::Listening(listening) => Ok(Arc::clone(listening)),
            Stage::Closed(_) => Err(Code::InvalidSocket.into()),
            _ => Err(Code::NotListening.into()),
        }
    }

    /// Answers the callers that wait, if this socket listens.
    fn take_callers(&self) {
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
            library.runtime().spawn_blocking(move || admission::answer_all(&listening, &this));
        } else {
            admission::answer_all(&listening, self);
        }
    }

    /// The terms on which callers are admitted.
    fn admission(&self) -> AdmissionTerms {
        let state = self.lock();
        AdmissionTerms {
            options: state.options.clone(),
            local: state.local.clone(),
            connect_hook: state.connect_hook.clone(),
            listen_hook: state.listen_hook.clone(),
        }
    }

    /// Accepts a caller as this socket.
    fn accept_call(
        &self,
        call: IncomingCall,
        local: Option<Arc<LocalPort>>,
    ) -> Result<(), Failure> {
        let (_, config) = self.terms()?;
        self.set_local(local);
        let library = self.library()?;
        let _runtime = library.runtime().enter();
        let refused = |_| Failure::from(Code::ConnectionFailed);
        let carrier = Carrier::Connection(call.accept_now(config).map_err(refused)?);
        carrier.watch(self.watcher());
        let mut state = self.lock();
        if let Err(touched) = state.check_untouched() {
            // The watcher of the connection locks the state.
            drop(state);
            return Err(touched);
        }
        self.adopt(&mut state, carrier);
        drop(state);
        self.core.note_opened();
        self.announce_connection();
        // It may have ended before the watcher came.
        self.follow_phase();
        Ok(())
    }

    /// The terms on which a caller is accepted as this socket: its options, which a hook may have
    /// set, and what follows from them.
    fn terms(&self) -> Result<(Options, Config), Failure> {
        let state = self.lock();
        state.check_untouched()?;
        let config = state.options.config().map_err(|_| Code::InvalidParameter)?;
        Ok((state.options.clone(), config))
    }

    fn set_local(&self, local: Option<Arc<LocalPort>>) {
        self.lock().local = local;
    }

    /// The socket is an accepted group. Its first link is admitted afterwards.
    fn adopt_group(&self, group: Group) {
        self.become_group(group.kind());
        self.links().begin_admission();
        group.watch(self.watcher());
        let slot = GroupSlot::new(group);
        let mut state = self.lock();
        if let Some(members) = &mut state.members {
            members.set_slot(slot.clone());
        }
        self.adopt(&mut state, Carrier::Group(slot));
        drop(state);
        self.core.note_opened();
    }

    /// Sets the hook that is told of failures.
    pub(crate) fn set_connect_hook(&self, hook: Option<ConnectHook>) {
        self.lock().connect_hook = hook;
    }

    /// Takes over a change of the connection's phase.
    pub(super) fn follow_phase(&self) {
        if self.is_group() {
            self.links().follow();
        }
        let mut state = self.lock();
        match &state.stage {
            Stage::Connecting(call) => match call.carrier.phase() {
                Phase::Connecting => {}
                Phase::Connected => {
                    self.establish(&mut state);
                    drop(state);
                    self.announce_connection();
                }
                Phase::Closed(_) if call.carrier.was_connected() => {
                    self.establish(&mut state);
                    drop(state);
                    self.announce_connection();
                    self.follow_phase();
                }
                Phase::Closed(reason) => self.fail(state, &reason),
            },
            Stage::Connected => {
                let phase = self.core.link().map(Link::phase);
                if matches!(phase, Some(Phase::Closed(_))) {
                    self.break_off(state);
                }
            }
            Stage::Closed(_) => {
                drop(state);
                self.farewell.follow(&self.core);
                self.retire();
            }
            _ => {}
        }
    }

    /// The call was accepted.
    fn establish(&self, state: &mut State) {
        if let Some(call) = state.end_call() {
            self.adopt(state, call.carrier);
        }
    }

    /// Takes an established connection over.
    fn adopt(&self, state: &mut State, carrier: Carrier) {
        // A group has had its link since it was opened.
        let is_group = matches!(carrier, Carrier::Group(_));
        if self.core.set_link(Link::new(carrier)) || is_group {
            state.stage = Stage::Connected;
            self.core.raise(Events::OUT);
        }
    }

    /// Tells of a new connection, without the lock of the state: a group that is asked for its
    /// readiness runs its watcher, which takes the lock, and so may the handler of the log.
    fn announce_connection(&self) {
        tracing::info!("socket {} is connected", self.id());
        if self.core.link().is_some_and(|link| link.readiness().readable) {
            self.core.raise(Events::IN);
        }
    }

    /// The call has failed. A socket whose call blocks can call again.
    fn fail(&self, mut state: MutexGuard<'_, State>, reason: &CloseReason) {
        self.note_reject_reason(reject::of_close(reason));
        let code = connect_code(reason);
        let Some(call) = state.fail_call(code) else { return };
        state.failed_keys = FailedKeys::of(reason, state.options.has_passphrase());
        let hook = state.connect_hook.clone();
        drop(state);
        tracing::error!("the call to {} has failed: {reason}", call.remote);
        if call.blocks {
            self.core.readiness.wake();
        } else {
            self.core.raise(Events::BROKEN);
            self.start_reaper();
        }
        // A thread that waits for the answer hears of a refusal itself.
        if !call.blocks || code == Code::NoServer {
            self.run_hook(hook, code, call.remote);
        }
    }

    /// The connection has ended.
    fn break_off(&self, mut state: MutexGuard<'_, State>) {
        state.stage = Stage::Broken(now());
        self.core.note_broken();
        let hook = state.connect_hook.clone();
        drop(state);
        if self.group().is_some() {
            self.core.raise(Events::BROKEN);
            return self.start_reaper();
        }
        self.receiver.announce_break(&self.core);
        self.start_reaper();
        let remote = self.core.link().and_then(Link::connection).map(Connection::peer_addr);
        if let Some(remote) = remote {
            self.run_hook(hook, Code::ConnectionLost, remote);
        }
    }

    fn start_reaper(&self) {
        if let Some(library) = self.library.upgrade() {
            library.start_reaper();
        }
    }

    /// Runs the hook that is told of failures, if there is one.
    fn run_hook(&self, hook: Option<ConnectHook>, code: Code, remote: SocketAddr) {
        if let (Some(hook), Some(library)) = (hook, self.library.upgrade()) {
            hook.run(library.runtime(), self.id(), code, remote, None);
        }
    }

    /// Closes the socket. A socket with a linger time whose calls block waits until its data are
    /// sent, at most for that time. The peer has been told when this returns: the program may end.
    pub(crate) fn close(&self) {
        let lingers = linger_time(&self.lock().options);
        let waits = lingers.is_zero() || self.core.settings.send_blocks();
        let Some(before) = self.begin_close() else { return };
        if before == SocketState::Connected && waits {
            self.await_farewell(lingers + FAREWELL);
            self.lock().stage = Stage::Closed(now());
        }
        self.retire();
        self.start_reaper();
    }

    /// Closes the socket and waits for nothing.
    pub(crate) fn close_behind(&self) {
        if self.begin_close().is_some() {
            self.retire();
            self.start_reaper();
        }
    }

    /// Lets the library forget the socket, if it is closed and has sent all that it had.
    fn retire(&self) {
        if let Some(library) = self.library.upgrade() {
            library.retire(self);
        }
    }

    /// Whether a closed socket has nothing more to send: its connection has ended.
    pub(crate) fn has_sent_all(&self) -> bool {
        self.core.link().map(Link::phase).is_none_or(|it| matches!(it, Phase::Closed(_)))
    }

    /// Closes the socket without lingering, since the library ends; also one that lingers already.
    /// Returns whether the peer is to be told.
    pub(crate) fn close_at_once(&self) -> bool {
        let before = self.begin_close();
        let Some(link) = self.core.link() else { return false };
        link.begin_abort();
        before != Some(SocketState::Broken)
    }

    /// Closes the socket, unless it is closed. Returns the state that it had.
    fn begin_close(&self) -> Option<SocketState> {
        let mut state = self.lock();
        if matches!(state.stage, Stage::Closed(_)) {
            return None;
        }
        self.core.note_closed();
        let stage = std::mem::replace(&mut state.stage, Stage::Closed(now()));
        let local = state.local.clone();
        let links = state.members.as_mut().map(GroupMembers::clear).unwrap_or_default();
        let is_group = state.members.is_some();
        drop(state);
        let before = stage.state();
        if let Stage::Listening(listening) = &stage {
            listening.stop();
            // Not before: another socket may listen from now on.
            local.iter().for_each(|local| local.end_listening());
        }
        // A call that was under way is taken back when its connection is dropped with the stage.
        drop(stage);
        self.core.readiness.wake();
        self.core.readiness.unsubscribe_all(self.core.id());
        // The links of a group may still be called.
        if let Some(link) =
            self.core.link().filter(|_| before == SocketState::Connected || is_group)
        {
            link.begin_close();
        }
        links.iter().for_each(|link| link.close_behind());
        Some(before)
    }

    /// Waits until the last packets of a closed connection have been sent, at most for `time`.
    pub(crate) fn await_farewell(&self, time: Duration) {
        self.farewell.wait(&self.core, now() + time);
    }

    /// Subscribes a set to the events of the socket.
    pub(crate) fn subscribe(&self, set: &Arc<EventSet>, wanted: Events) {
        // Readability is kept up to date only where somebody reads or waits: it is read afresh.
        if self.state() == SocketState::Connected
            && self.group().is_none()
            && let Some(link) = self.core.link()
            && link.readiness().readable
        {
            self.core.raise(Events::IN);
        }
        self.core.readiness.subscribe(self.core.id(), set, wanted);
        // Another thread may have closed the socket meanwhile. The set must not keep it.
        if self.is_known_closed() {
            self.core.readiness.unsubscribe(self.core.id(), set);
        }
    }

    /// Whether the socket is closed. It is read by every call.
    pub(crate) fn is_known_closed(&self) -> bool {
        self.core.is_closed()
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
        let state = self.lock();
        let since = match state.stage {
            // The program may call again over links of a group.
            Stage::Broken(since) if state.members.is_none() => since,
            _ => return false,
        };
        drop(state);
        let is_drained = self.core.readiness.events().any(Events::ERR);
        if since < long_before || since < before && is_drained {
            self.close_behind();
        }
        true
    }

    fn library(&self) -> Result<Arc<Library>, Failure> {
        self.library.upgrade().ok_or_else(|| Code::InvalidSocket.into())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watcher(&self) -> Weak<dyn Watcher> {
        let this: Weak<Self> = Weak::clone(&self.this);
        this
    }
}

impl Watcher for Socket {
    fn readable(&self, wakes: &mut Wakes) {
        match self.core.link() {
            // The messages of a link are those of its group.
            Some(_) if self.group().is_some() => {}
            Some(link) => self.receiver.announce_data(&self.core, link, wakes),
            None => self.take_callers(),
        }
    }

    fn writable(&self) {
        // The room may be used up by the time that this is called.
        if self.core.link().is_some_and(Link::has_room) {
            self.core.raise(Events::OUT);
        } else {
            // A thread that waits may have to hear of an error of the peer.
            self.core.readiness.wake();
        }
    }

    fn phase_changed(&self) {
        self.follow_phase();
    }
}
