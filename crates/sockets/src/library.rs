//! The library: its sockets, event sets and threads.

use std::mem::MaybeUninit;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use bytes::buf::UninitSlice;
use punctual_blocking::{Events, Runtimes, Subscriber, now};
use rustc_hash::FxHashMap;

use crate::code::{Code, Failure};
use crate::event_set::EventSet;
use crate::options::{Defaults, OptionNumber, Options, SocketOptionValue};
use crate::ports::Ports;
use crate::reaper::Reaper;
use crate::socket::{
    ConnectHook, Groups, LinkCall, ListenHook, MemberInfo, MessageControl, Socket, SocketState,
    StartedCall, TransferStatistics,
};

/// A thread that drives ports.
pub(crate) type Runtime = tokio::runtime::Handle;

/// The numbers of sockets are below this bit, which marks groups.
const GROUP_BIT: i32 = 1 << 30;
/// The time for which a closed socket keeps its number.
const CLOSED_KEPT: Duration = Duration::from_secs(1);
/// Broken sockets that nobody reads are closed after this time.
const BROKEN_KEPT: Duration = Duration::from_secs(1);
/// Broken sockets are closed after this time even if messages are still to be read.
const UNREAD_KEPT: Duration = Duration::from_secs(60);
/// The time that callbacks which are running get to return.
const CALLBACKS_END: Duration = Duration::from_millis(20);
/// The time that the connections get to tell their peers when the library ends. They need far less
/// on a machine that is not overloaded.
const GOODBYE: Duration = Duration::from_millis(300);

/// The sockets and event sets of a program, and the threads that drive them.
#[derive(Debug)]
pub struct Library {
    sockets: RwLock<FxHashMap<i32, SocketSlot>>,
    sets: RwLock<FxHashMap<i32, Arc<EventSet>>>,
    next_socket: AtomicI32,
    next_set: AtomicI32,
    ports: Ports,
    reaper: Reaper,
    groups: Groups,
    defaults: Arc<Defaults>,
    runtimes: Runtimes,
}

/// The place of a socket's number.
#[derive(Debug)]
enum SocketSlot {
    Open(Arc<Socket>),
    /// The socket is closed and has sent all it had, since this instant; the reason of its last
    /// refusal is still known.
    Closed(Instant, i32),
}

impl SocketSlot {
    const fn socket(&self) -> Option<&Arc<Socket>> {
        match self {
            Self::Open(socket) => Some(socket),
            Self::Closed(..) => None,
        }
    }
}

/// A socket that was looked up for a call.
#[derive(Debug)]
pub struct OpenSocket(Arc<Socket>);

impl OpenSocket {
    /// Sends a message or bytes of a stream. Returns the number of bytes that were taken.
    pub fn send(&self, data: &[u8], control: &mut MessageControl) -> Result<usize, Failure> {
        self.0.send(data, control)
    }

    /// Receives a message or bytes of a stream. Returns their number; 0 at the end of a stream.
    pub fn receive(
        &self,
        buffer: &mut [u8],
        control: &mut MessageControl,
    ) -> Result<usize, Failure> {
        self.0.receive(UninitSlice::new(buffer), control)
    }

    /// Receives as [`receive`](Self::receive) does, into memory that need not be set.
    pub fn receive_into(
        &self,
        buffer: &mut [MaybeUninit<u8>],
        control: &mut MessageControl,
    ) -> Result<usize, Failure> {
        self.0.receive(UninitSlice::uninit(buffer), control)
    }

    /// The state of the socket.
    pub fn state(&self) -> SocketState {
        self.0.state()
    }

    /// A key to find the socket again without a look-up.
    pub fn remember(&self) -> RememberedSocket {
        RememberedSocket { id: self.0.id(), socket: Arc::downgrade(&self.0) }
    }
}

/// A socket that was looked up before. It does not keep the socket alive.
#[derive(Debug)]
pub struct RememberedSocket {
    id: i32,
    socket: Weak<Socket>,
}

impl RememberedSocket {
    /// The socket, if it has this number and is still open.
    pub fn open(&self, id: i32) -> Option<OpenSocket> {
        if self.id != id {
            return None;
        }
        self.socket.upgrade().filter(|socket| !socket.is_known_closed()).map(OpenSocket)
    }
}

impl Library {
    /// Starts the threads, with libsrt's defaults of all options.
    ///
    /// Errors: the system starts no thread.
    pub fn start() -> Result<Arc<Self>, Failure> {
        Self::start_with(Defaults::default())
    }

    /// Starts the threads, with these defaults. Errors: as [`start`](Self::start).
    pub fn start_with(defaults: Defaults) -> Result<Arc<Self>, Failure> {
        let runtimes =
            Runtimes::start().map_err(|error| Failure::of_system(Code::Thread, &error))?;
        // Numbers begin anywhere, so that a number of an earlier run is not taken for one of this.
        let first = i32::try_from(punctual::now().as_nanos() % 0x2000_0000).unwrap_or(0);
        Ok(Arc::new(Self {
            sockets: RwLock::default(),
            sets: RwLock::default(),
            next_socket: AtomicI32::new(first | 1),
            next_set: AtomicI32::new(1),
            ports: Ports::default(),
            reaper: Reaper::default(),
            groups: Groups::default(),
            defaults: Arc::new(defaults),
            runtimes,
        }))
    }

    /// Closes all sockets without lingering, and ends the threads.
    pub fn shut_down(&self) {
        let sockets = std::mem::take(&mut *write(&self.sockets));
        let sets = std::mem::take(&mut *write(&self.sets));
        let open = sockets.values().filter_map(SocketSlot::socket);
        let told: Vec<_> = open.filter(|socket| socket.close_at_once()).collect();
        let deadline = now() + GOODBYE;
        for socket in told {
            socket.await_farewell(deadline.saturating_duration_since(now()));
        }
        drop(sockets);
        for set in sets.values() {
            set.release();
        }
        self.runtimes.end(CALLBACKS_END);
    }

    /// Creates a socket. Returns its number.
    pub fn create_socket(self: &Arc<Self>) -> i32 {
        self.add_socket(Options::new(Arc::clone(&self.defaults)), false).id()
    }

    pub(crate) fn add_socket(self: &Arc<Self>, options: Options, is_group: bool) -> Arc<Socket> {
        let mut sockets = write(&self.sockets);
        loop {
            let number = self.next_socket.fetch_add(1, Ordering::Relaxed) & (GROUP_BIT - 1);
            let id = if is_group { number | GROUP_BIT } else { number };
            if number != 0 && !sockets.contains_key(&id) {
                let socket = Socket::new(self, id, options);
                sockets.insert(id, SocketSlot::Open(Arc::clone(&socket)));
                return socket;
            }
        }
    }

    pub(crate) fn remove_socket(&self, id: i32) {
        // Dropped without the lock: a listener closes the connections that nobody accepted.
        let removed = write(&self.sockets).remove(&id);
        drop(removed);
    }

    /// Closes a socket. A number that is unknown or closed is no error.
    pub fn close(&self, id: i32) {
        let Some(socket) = self.find(id) else { return };
        if let Some(group) = socket.group().and_then(|group| self.find(group)) {
            group.links().remove(id);
        }
        socket.close();
    }

    /// The state of a socket.
    pub fn state(&self, id: i32) -> SocketState {
        let state = match self.find(id) {
            Some(socket) => socket.state(),
            None if read(&self.sockets).contains_key(&id) => SocketState::Closed,
            None => SocketState::Nonexistent,
        };
        match state {
            // As in libsrt: nothing is known of a closed group.
            SocketState::Closed if Self::is_group_number(id) => SocketState::Nonexistent,
            state => state,
        }
    }

    /// Binds a socket to an address of this host. Errors: it is bound already, another socket has
    /// the address with other options, or the system refuses it.
    pub fn bind(&self, id: i32, local: SocketAddr) -> Result<(), Failure> {
        self.find_single(id).map_err(|_| Code::InvalidParameter)?.bind(local)
    }

    /// Listens at a bound socket; `backlog` connections may wait to be accepted. A second call
    /// changes the backlog.
    pub fn listen(&self, id: i32, backlog: i32) -> Result<(), Failure> {
        self.find_single(id)?.listen(backlog)
    }

    /// Takes a connection of a listening socket, and waits for one if its calls block. Returns the
    /// number of its socket, and the peer's address.
    pub fn accept(&self, id: i32) -> Result<(i32, Option<SocketAddr>), Failure> {
        let socket = self.find_single(id)?.accept(None)?;
        Ok((socket.id(), socket.caller_address()))
    }

    /// Takes a connection of one of several listening sockets; waits at most `timeout`, without end
    /// for `None`. Errors: none of them listens, or the time has run out.
    pub fn accept_any(&self, ids: &[i32], timeout: Option<Duration>) -> Result<i32, Failure> {
        let listening: Vec<_> = ids.iter().filter_map(|&id| self.find_single(id).ok()).collect();
        let set = Arc::new(EventSet::default());
        for socket in &listening {
            socket.readiness().subscribe(socket.id(), &set, Events::IN);
        }
        let deadline = timeout.and_then(|timeout| now().checked_add(timeout));
        let accepted = loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(now()));
            let wanted = crate::Wanted { sockets: Events::IN, room: 1, system: None };
            let ready = match set.wait(wanted, left) {
                Ok(report) => report.sockets,
                Err(failure) => break Err(failure),
            };
            let Some(&(id, _)) = ready.first() else { break Err(Code::Timeout.into()) };
            let waiting = listening.iter().find(|socket| socket.id() == id);
            match waiting.map(|socket| socket.try_accept(None)) {
                Some(Ok(Some(socket))) => break Ok(socket.id()),
                // It does not listen.
                Some(Err(failure)) => break Err(failure),
                // Another thread has taken the connection.
                Some(Ok(None)) | None => {}
            }
        };
        for socket in &listening {
            socket.readiness().unsubscribe(socket.id(), &set);
        }
        accepted
    }

    /// Calls the listener at `remote`. If the calls of the socket block, it waits for the answer.
    pub fn connect(&self, id: i32, remote: SocketAddr) -> Result<(), Failure> {
        self.find_open(id)?.caller().connect(remote)
    }

    /// Binds a socket to `local` and calls the listener at `remote`; or calls it over a new link of
    /// a group. Returns 0, or the number of the link.
    pub fn connect_from(
        &self,
        id: i32,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Result<i32, Failure> {
        let socket = self.find_open(id)?;
        if socket.is_group() {
            return socket.links().connect_one(Some(local), remote);
        }
        socket.caller().connect_from(local, remote).map(|()| 0)
    }

    /// Connects by rendezvous: binds a socket to `local` and calls `remote`, which does the same.
    pub fn meet(&self, id: i32, local: SocketAddr, remote: SocketAddr) -> Result<(), Failure> {
        self.find_single(id)?.caller().meet(local, remote)
    }

    /// Fails if no option of a socket can be set, whatever its number.
    pub fn check_settable(&self, id: i32) -> Result<(), Failure> {
        self.find_open(id)?.check_settable()
    }

    /// Fails if there is no socket with this number.
    pub fn check(&self, id: i32) -> Result<(), Failure> {
        self.find_open(id).map(|_| ())
    }

    /// Takes a connection as [`accept`](Self::accept) does, if `room` bytes hold the peer's
    /// address; `None` if it is not wanted.
    pub fn accept_with_room(
        &self,
        id: i32,
        room: Option<usize>,
    ) -> Result<(i32, Option<SocketAddr>), Failure> {
        let socket = self.find_single(id)?.accept(room)?;
        Ok((socket.id(), socket.caller_address()))
    }

    /// Binds a socket to a UDP socket that the program has bound.
    pub fn acquire(&self, id: i32, udp: impl FnOnce() -> UdpSocket) -> Result<(), Failure> {
        self.find_single(id).map_err(|_| Code::InvalidParameter)?.acquire(udp)
    }

    /// Creates a group of the kind with this number. Returns the group's number.
    pub fn create_group(self: &Arc<Self>, kind: i32) -> Result<i32, Failure> {
        let kind = crate::socket::kind(kind).ok_or(Code::InvalidParameter)?;
        let group = self.add_socket(Options::new(Arc::clone(&self.defaults)), true);
        group.become_group(kind);
        Ok(group.id())
    }

    /// Calls over links of a group: see [`connect`](Self::connect). `started` gets the number and
    /// the error of each. Returns the number of a link.
    pub fn connect_links(
        &self,
        group: i32,
        calls: &[LinkCall],
        started: &mut Vec<StartedCall>,
    ) -> Result<i32, Failure> {
        let group = self.find_open(group).map_err(|_| Code::InvalidParameter)?;
        group.links().connect(calls, started)
    }

    /// Calls from a socket, or over a new link of a group. Returns 0, or the number of the link.
    pub fn connect_any(&self, id: i32, remote: SocketAddr) -> Result<i32, Failure> {
        let socket = self.find_open(id)?;
        if socket.is_group() {
            return socket.links().connect_one(None, remote);
        }
        socket.caller().connect(remote).map(|()| 0)
    }

    /// Whether a number is one of a group.
    pub const fn is_group_number(id: i32) -> bool {
        id > 0 && id & GROUP_BIT != 0
    }

    /// The links of a group.
    pub fn members(&self, group: i32) -> Result<Vec<MemberInfo>, Failure> {
        let group = self.find_open(group).map_err(|_| Code::InvalidParameter)?;
        if group.is_group() { Ok(group.links().list()) } else { Err(Code::InvalidParameter.into()) }
    }

    /// The group of a link.
    pub fn group_of(&self, link: i32) -> Result<i32, Failure> {
        let socket = self.find_open(link).map_err(|_| Code::InvalidParameter)?;
        socket.group().ok_or_else(|| Code::InvalidParameter.into())
    }

    /// Sets the hook that decides on the callers of a socket that does not listen yet.
    pub fn set_listen_hook(&self, id: i32, hook: Option<ListenHook>) -> Result<(), Failure> {
        self.find_single(id)?.set_listen_hook(hook)
    }

    /// Sets the hook that is told when a call has failed or the connection has broken.
    pub fn set_connect_hook(&self, id: i32, hook: Option<ConnectHook>) -> Result<(), Failure> {
        self.find_open(id)?.set_connect_hook(hook);
        Ok(())
    }

    /// The reason of the last refusal; 0 without one.
    pub fn reject_reason(&self, id: i32) -> i32 {
        match read(&self.sockets).get(&id) {
            Some(SocketSlot::Open(socket)) => socket.reject_reason(),
            Some(SocketSlot::Closed(_, reason)) => *reason,
            None => 0,
        }
    }

    /// Sets the reason of a refusal in a listen hook, 1,000 and up.
    pub fn set_reject_reason(&self, id: i32, reason: i32) -> Result<(), Failure> {
        self.find_open(id)?.set_reject_reason(reason)
    }

    /// Looks up an open socket, for one call that sends or receives.
    pub fn open_socket(&self, id: i32) -> Result<OpenSocket, Failure> {
        self.find_open(id).map(OpenSocket)
    }

    /// Sends a message or bytes of a stream. Returns the number of bytes that were taken.
    pub fn send(
        &self,
        id: i32,
        data: &[u8],
        control: &mut MessageControl,
    ) -> Result<usize, Failure> {
        self.find_open(id)?.send(data, control)
    }

    /// Receives a message or bytes of a stream. Returns their number; 0 at the end of a stream.
    pub fn receive(
        &self,
        id: i32,
        buffer: &mut [u8],
        control: &mut MessageControl,
    ) -> Result<usize, Failure> {
        self.find_open(id)?.receive(UninitSlice::new(buffer), control)
    }

    /// Sends a part of a file: see libsrt's `srt_sendfile`.
    pub fn send_file(
        &self,
        id: i32,
        path: &Path,
        offset: &mut i64,
        size: i64,
        block: usize,
    ) -> Result<i64, Failure> {
        self.find_open(id)?.files().send(path, offset, size, block)
    }

    /// Receives a file: see libsrt's `srt_recvfile`.
    pub fn receive_file(
        &self,
        id: i32,
        path: &Path,
        offset: &mut i64,
        size: i64,
        block: usize,
    ) -> Result<i64, Failure> {
        self.find_open(id)?.files().receive(path, offset, size, block)
    }

    /// This end's address.
    pub fn local_address(&self, id: i32) -> Result<SocketAddr, Failure> {
        self.find_single(id)?.local_address()
    }

    /// The peer's address.
    pub fn peer_address(&self, id: i32) -> Result<SocketAddr, Failure> {
        self.find_open(id).map_err(|_| Code::NotConnected)?.peer_address()
    }

    /// Sets an option of a socket.
    pub fn set_option(
        &self,
        id: i32,
        number: OptionNumber,
        value: SocketOptionValue,
    ) -> Result<(), Failure> {
        self.find_open(id)?.options().set(number, value)
    }

    /// The value of an option of a socket.
    pub fn option(&self, id: i32, number: OptionNumber) -> Result<SocketOptionValue, Failure> {
        self.find_open(id)?.options().get(number)
    }

    /// The statistics of a connection. With `clear`, a new interval begins.
    pub fn statistics(&self, id: i32, clear: bool) -> Result<TransferStatistics, Failure> {
        self.find_open(id)?.statistics(clear)
    }

    /// The packets and bytes in the send buffer of a socket, and the milliseconds that they span.
    pub fn send_buffer(&self, id: i32) -> Result<(usize, usize, i32), Failure> {
        self.find_open(id)?.send_buffer()
    }

    /// The instant at which a socket was bound, connected or accepted, microseconds of the
    /// library's clock; 0 before.
    pub fn opened_at(&self, id: i32) -> Result<u64, Failure> {
        Ok(self.find_open(id)?.opened_at())
    }

    /// Creates an event set. Returns its number.
    pub fn create_event_set(&self) -> i32 {
        let id = self.next_set.fetch_add(1, Ordering::Relaxed);
        write(&self.sets).insert(id, Arc::default());
        id
    }

    /// The event set with this number.
    pub fn event_set(&self, id: i32) -> Result<Arc<EventSet>, Failure> {
        read(&self.sets).get(&id).cloned().ok_or_else(|| Code::InvalidEventSet.into())
    }

    /// Ends an event set.
    pub fn release_event_set(&self, id: i32) -> Result<(), Failure> {
        let set = write(&self.sets).remove(&id);
        let set = set.ok_or(Code::InvalidEventSet)?;
        self.empty(&set);
        set.release();
        Ok(())
    }

    /// Subscribes an event set to events of a socket, in place of an earlier subscription.
    pub fn subscribe(&self, set: i32, id: i32, wanted: Events) -> Result<(), Failure> {
        let set = self.event_set(set)?;
        let socket = self.find_open(id)?;
        socket.subscribe(&set, wanted);
        Ok(())
    }

    /// Ends the subscription of an event set to a socket; it need not have one.
    pub fn unsubscribe(&self, set: i32, id: i32) -> Result<(), Failure> {
        let set = self.event_set(set)?;
        match self.find(id) {
            Some(socket) => socket.readiness().unsubscribe(id, &set),
            None => set.unsubscribe(id),
        }
        Ok(())
    }

    /// Ends all subscriptions of an event set to sockets.
    pub fn clear_event_set(&self, set: i32) -> Result<(), Failure> {
        let set = self.event_set(set)?;
        self.empty(&set);
        Ok(())
    }

    fn empty(&self, set: &Arc<EventSet>) {
        for id in set.sockets() {
            match self.find(id) {
                Some(socket) => socket.readiness().unsubscribe(id, set),
                None => set.unsubscribe(id),
            }
        }
    }

    pub(crate) const fn ports(&self) -> &Ports {
        &self.ports
    }

    /// The runtime for tasks that belong to no port.
    pub(crate) const fn runtime(&self) -> &Runtime {
        self.runtimes.first()
    }

    pub(crate) const fn runtimes(&self) -> &Runtimes {
        &self.runtimes
    }

    /// The groups that listening sockets have accepted.
    pub(crate) const fn groups(&self) -> &Groups {
        &self.groups
    }

    /// Makes sure that closed and broken sockets are forgotten after a while.
    pub(crate) fn start_reaper(self: &Arc<Self>) {
        let library = Arc::downgrade(self);
        let look = move || library.upgrade().map(|library| library.reap());
        self.reaper.start(self.runtime(), look);
    }

    /// Forgets sockets that were closed a while ago, and closes abandoned ones. Returns whether
    /// there is more to do later.
    pub(crate) fn reap(&self) -> bool {
        let time = now();
        let before = |kept| time.checked_sub(kept).unwrap_or(time);
        let is_kept = |slot: &SocketSlot| match slot {
            SocketSlot::Open(_) => true,
            SocketSlot::Closed(since, _) => *since > before(CLOSED_KEPT),
        };
        write(&self.sockets).retain(|_, slot| is_kept(slot));
        let sockets = read(&self.sockets);
        let open: Vec<_> = sockets.values().filter_map(SocketSlot::socket).cloned().collect();
        let mut more = sockets.len() > open.len();
        drop(sockets);
        for socket in open {
            match socket.closed_since() {
                Some(since) if since <= before(CLOSED_KEPT) => self.remove_socket(socket.id()),
                Some(_) => more = true,
                None => {
                    let (soon, late) = (before(BROKEN_KEPT), before(UNREAD_KEPT));
                    more |= socket.close_if_abandoned(soon, late);
                }
            }
        }
        more
    }

    /// A socket is closed and has sent all that it had: what it holds, such as its port, is free
    /// now, and its number is forgotten later.
    pub(crate) fn retire(&self, socket: &Socket) {
        let Some(since) = socket.closed_since().filter(|_| socket.has_sent_all()) else { return };
        let reason = socket.reject_reason();
        let mut sockets = write(&self.sockets);
        let slot = sockets.get_mut(&socket.id()).filter(|slot| slot.socket().is_some());
        let retired = slot.map(|slot| std::mem::replace(slot, SocketSlot::Closed(since, reason)));
        // Dropped without the lock: a listener closes the connections that nobody accepted.
        drop(sockets);
        drop(retired);
    }

    /// The socket with this number.
    pub(crate) fn find(&self, id: i32) -> Option<Arc<Socket>> {
        read(&self.sockets).get(&id)?.socket().cloned()
    }

    /// The socket with this number, if it is not closed.
    pub(crate) fn find_open(&self, id: i32) -> Result<Arc<Socket>, Failure> {
        let socket = self.find(id).filter(|socket| !socket.is_known_closed());
        socket.ok_or_else(|| Code::InvalidSocket.into())
    }

    /// The socket with this number, if it is neither closed nor a group: groups have no address.
    fn find_single(&self, id: i32) -> Result<Arc<Socket>, Failure> {
        match Self::is_group_number(id) {
            true => Err(Code::InvalidSocket.into()),
            false => self.find_open(id),
        }
    }
}

fn read<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
