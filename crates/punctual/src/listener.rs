//! Listening and answering callers.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::thread;

use punctual_io::UdpSocket;
use punctual_proto::{
    AcceptError, Config, EndpointConfig, GroupOffer, Incoming, IncomingId, Membership, RawStreamId,
    RejectReason, Shard, StreamId, StreamIdError,
};
use tokio::runtime::Handle as Runtime;

use crate::accept::{AcceptQueue, AcceptedGroups};
use crate::config::{ListenerConfig, PortConfig};
use crate::error::Error;
use crate::gate::{Gate, ValueGate};
use crate::group::{AcceptedLink, Group};
use crate::key_task::{DERIVATIONS, derive_here};
use crate::memory;
use crate::port::{Port, seed, start};
use crate::shared::{Handle, Shared};
use crate::signals::{GroupSignals, Watcher};
use crate::socket::Socket;
use crate::state::Phase;
use crate::udp;

/// Listens for callers on one UDP port.
///
/// It stops listening when it is dropped: callers that wait for an answer are rejected with
/// [`RejectReason::CLOSE`], and accepted connections stay open.
///
/// ```
/// use punctual::{Config, Listener, RejectReason, Socket};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), punctual::Error> {
/// let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), Config::default()).await?;
/// let address = listener.local_addr();
///
/// let serve = listener.accept_with(|caller| match caller.stream_id() {
///     "news" => Ok(Config::default()),
///     _ => Err(RejectReason::NOT_FOUND),
/// });
/// let call = async {
///     let sports = Config::default().with_stream_id("sports")?;
///     let refused = Socket::connect(address, sports).await.unwrap_err();
///     assert_eq!(refused.reject_reason(), Some(RejectReason::NOT_FOUND));
///     Socket::connect(address, Config::default().with_stream_id("news")?).await
/// };
/// let (accepted, caller) = tokio::try_join!(serve, call)?;
/// assert_eq!(accepted.stream_id(), "news");
/// assert_eq!(caller.peer_addr(), address);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Listener {
    callers: Arc<AcceptQueue>,
    shards: Vec<Handle>,
    local: SocketAddr,
}

impl Listener {
    /// Listens at `local`; port 0 takes any free port. `connection` are the options of accepted
    /// connections. Must be called within a tokio runtime. Errors as
    /// [`bind_with`](Self::bind_with).
    pub async fn bind(local: SocketAddr, connection: Config) -> Result<Self, Error> {
        let port = PortConfig { local: Some(local), ..PortConfig::default() };
        Self::bind_with(ListenerConfig { port, connection, ..ListenerConfig::default() }).await
    }

    /// Listens with options of the UDP port, the number of shards and the backlog.
    ///
    /// Errors: an option out of range, or an error of the system, for example that the address is
    /// in use.
    pub async fn bind_with(config: ListenerConfig) -> Result<Self, Error> {
        Self::bind_all(vec![config]).await
    }

    /// Listens at several ports as one listener, so that the links of a group may call at any of
    /// them. Errors as [`bind_with`](Self::bind_with); also if there is no port.
    pub async fn bind_all(configs: Vec<ListenerConfig>) -> Result<Self, Error> {
        let callers = Arc::<AcceptQueue>::default();
        let mut handles = Vec::new();
        let mut locals = Vec::new();
        for config in configs {
            config.connection.check()?;
            locals.push(Self::open(&config, &callers, &mut handles)?);
        }
        let no_port = || std::io::Error::new(std::io::ErrorKind::InvalidInput, "no port to bind");
        let local = *locals.first().ok_or_else(no_port)?;
        callers.log().listens_at(local);
        Ok(Self { callers, shards: handles, local })
    }

    /// Listens at a port that is bound already.
    pub(crate) fn at(port: &Port, connection: Config) -> Result<Self, Error> {
        connection.check()?;
        let callers = Arc::<AcceptQueue>::default();
        let shards = port.shards();
        let connection = Some(connection);
        for shard in &shards {
            shard.shared().call_and_wake(|state, _| {
                state.machine.listen(connection.clone())?;
                state.set_callers(Some(Arc::clone(&callers)));
                Ok::<_, Error>(())
            })?;
        }
        let local = port.local_addr();
        callers.log().listens_at(local);
        Ok(Self { callers, shards, local })
    }

    /// Listens at sockets that share a port, each on one of these runtimes in turn.
    pub(crate) fn on(
        sockets: &Arc<[Arc<UdpSocket>]>,
        config: &ListenerConfig,
        runtimes: &[Runtime],
    ) -> Result<Self, Error> {
        config.connection.check()?;
        let callers = Arc::<AcceptQueue>::default();
        let mut shards = Vec::new();
        let local = Self::open_on(sockets, config, &callers, &mut shards, runtimes)?;
        callers.log().listens_at(local);
        Ok(Self { callers, shards, local })
    }

    /// The UDP port, the first if there are several: for calls from it, and for a later listener.
    pub fn port(&self) -> Port {
        let is_here = |shard: &&Handle| shard.shared().udp.local_addr() == self.local;
        Port::of(self.shards.iter().filter(is_here).cloned().collect())
    }

    /// Opens the shards of one port. Returns the port's address.
    fn open(
        config: &ListenerConfig,
        callers: &Arc<AcceptQueue>,
        handles: &mut Vec<Handle>,
    ) -> Result<SocketAddr, Error> {
        let shards = match config.shards {
            0 => thread::available_parallelism().map_or(1, usize::from),
            shards => shards,
        };
        let shards = if config.port.carriage.is_udp() { shards } else { 1 };
        let sockets = bind_shards(config.port.clone(), shards)?;
        Self::open_on(&sockets, config, callers, handles, &[Runtime::current()])
    }

    /// Opens a shard on each of `sockets`, which share a port. Returns the port's address.
    fn open_on(
        sockets: &Arc<[Arc<UdpSocket>]>,
        config: &ListenerConfig,
        callers: &Arc<AcceptQueue>,
        handles: &mut Vec<Handle>,
        runtimes: &[Runtime],
    ) -> Result<SocketAddr, Error> {
        let PortConfig { coalesce, carriage, .. } = &config.port;
        let local = sockets[0].local_addr();
        let before = handles.len();
        for ((index, socket), runtime) in (0..).zip(sockets.iter()).zip(runtimes.iter().cycle()) {
            let _entered = runtime.enter();
            let mut endpoint = EndpointConfig::new(seed()?);
            endpoint.shard = u32::try_from(sockets.len())
                .ok()
                .and_then(|count| Shard::new(index, count))
                .unwrap_or_default();
            endpoint.backlog = config.backlog.unwrap_or(endpoint.backlog);
            endpoint.max_connections = config.max_connections.unwrap_or(endpoint.max_connections);
            if let Some(callers) = config.callers_per_second {
                endpoint.callers_per_second = callers;
            }
            endpoint.key_derivations = Some(DERIVATIONS);
            endpoint.max_callers = config.max_callers;
            endpoint.receive_memory = memory::share_of_received(sockets.len());
            let sockets = Arc::clone(sockets);
            let handle = start(Arc::clone(socket), sockets, endpoint, *coalesce, carriage)?;
            handle.shared().call_and_wake(|state, _| {
                state.machine.listen(Some(config.connection.clone()))?;
                state.set_callers(Some(Arc::clone(callers)));
                Ok::<_, Error>(())
            })?;
            handles.push(handle);
        }
        if sockets.len() > 1 {
            let shards: Vec<_> = handles[before..].iter().map(Handle::shared).collect();
            Shared::set_siblings(&shards);
        }
        Ok(local)
    }

    /// Waits for the next caller and returns it; it waits for an answer.
    ///
    /// Errors: [`Error::Stopped`] when the runtime is shut down.
    ///
    /// Cancel safe: a caller is taken only as this completes.
    pub async fn incoming(&self) -> Result<IncomingCall, Error> {
        let stopped = || self.shards.iter().all(|shard| shard.shared().lock().stopped);
        self.callers.pop(stopped).await.ok_or(Error::Stopped)
    }

    /// Whether a caller waits, so that [`incoming`](Self::incoming) returns it at once.
    pub fn has_caller(&self) -> bool {
        !self.callers.is_empty()
    }

    /// The next caller, if one waits.
    pub fn try_incoming(&self) -> Option<IncomingCall> {
        self.callers.try_pop()
    }

    /// Tells `watcher` of each caller from now on, by [`readable`](Watcher::readable), for programs
    /// that do not wait in tasks. A caller just before is not reported: call
    /// [`try_incoming`](Self::try_incoming) after this call. A listener has one watcher, the first.
    pub fn watch(&self, watcher: Weak<dyn Watcher>) {
        self.callers.watch(watcher);
    }

    /// Accepts the next caller. Errors as [`incoming`](Self::incoming); cancel safe as that is.
    pub async fn accept(&self) -> Result<Socket, Error> {
        loop {
            let call = self.incoming().await?;
            let remote = call.remote();
            match call.accept().await {
                Err(Error::Accept(reason)) => self.callers.log().not_accepted(remote, &reason),
                result => return result,
            }
        }
    }

    /// Accepts the next caller that `hook` accepts, with the options that it returns; other callers
    /// are rejected with its reason. Errors as [`incoming`](Self::incoming); cancel safe as that
    /// is.
    ///
    /// Callers wait while `hook` decides on another. To query a database or another server, see
    /// [`gate`](Self::gate).
    pub async fn accept_with(
        &self,
        mut hook: impl FnMut(&IncomingCall) -> Result<Config, RejectReason>,
    ) -> Result<Socket, Error> {
        loop {
            let call = self.incoming().await?;
            let config = match hook(&call) {
                Ok(config) => config,
                Err(reason) => {
                    call.reject(reason);
                    continue;
                }
            };
            let remote = call.remote();
            match call.accept_with(config).await {
                Err(Error::Accept(reason)) => self.callers.log().not_accepted(remote, &reason),
                result => return result,
            }
        }
    }

    /// Accepts the next caller, or the next group by its first link. The further links of an
    /// accepted group join it without a call of this method. Errors as
    /// [`incoming`](Self::incoming); cancel safe as that is.
    pub async fn accept_any(&self) -> Result<Accepted, Error> {
        loop {
            let call = self.incoming().await?;
            let remote = call.remote();
            match call.answer_any(None) {
                Ok(Some(accepted)) => return Ok(accepted),
                Ok(None) => {}
                Err(Error::Accept(reason)) => self.callers.log().not_accepted(remote, &reason),
                Err(error) => return Err(error),
            }
        }
    }

    /// Turns this listener into a gate: the asynchronous `hook` decides on each caller, on many at
    /// the same time. It decides on every link of a group, too.
    pub fn gate<H, D>(self, hook: H) -> Gate<H>
    where
        H: Fn(CallerInfo) -> D,
        D: Future<Output = Result<Config, RejectReason>> + Send + 'static,
    {
        self.callers.require_answers_for_links();
        Gate::new(self, hook)
    }

    /// The queue of callers that wait for an answer.
    pub(crate) const fn callers(&self) -> &Arc<AcceptQueue> {
        &self.callers
    }

    /// Makes the further links of groups wait for an answer, as all callers do, from now on. They
    /// join their groups by [`IncomingCall::accept_link`].
    pub fn decide_on_links(&self) {
        self.callers.require_answers_for_links();
    }

    /// Accepts groups into this table from now on: the links of one group may call any of the
    /// listeners that share it. Each listener has a table of its own otherwise, and links that call
    /// several listeners make a group at each.
    pub fn share_groups(&self, groups: &AcceptedGroups) {
        self.callers.share_groups(groups.clone());
    }

    /// Limits the callers at the same time from now on, on each shard: see
    /// [`ListenerConfig::max_callers`]. With zero, all callers are refused; accepted connections
    /// stay open.
    pub fn limit_callers(&self, limit: Option<usize>) {
        for shard in &self.shards {
            shard.shared().call_and_wake(|state, _| state.endpoint().limit_callers(limit));
        }
    }

    /// As [`gate`](Self::gate), with a `hook` that also returns a value of any type for each caller
    /// that it accepts.
    pub fn gate_with_value<H, D, T>(self, hook: H) -> ValueGate<H, T>
    where
        H: Fn(CallerInfo) -> D,
        D: Future<Output = Result<(Config, T), RejectReason>> + Send + 'static,
        T: Send + 'static,
    {
        self.callers.require_answers_for_links();
        ValueGate::new(self, hook)
    }

    /// The local address, that of the first port if there are several. The IP address is
    /// unspecified if the listener was bound to all addresses.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        for shard in &self.shards {
            shard.shared().call_and_wake(|state, _| {
                // Without an identity, which only listening needs, this cannot fail.
                let _ = state.machine.listen(None);
                state.set_callers(None);
            });
        }
        for call in self.callers.take() {
            call.reject(RejectReason::CLOSE);
        }
    }
}

/// Binds the first socket to the configured address, and the others to the same port.
fn bind_shards(mut port: PortConfig, shards: usize) -> Result<Arc<[Arc<UdpSocket>]>, Error> {
    let shared = shards > 1;
    let mut sockets = vec![Arc::new(udp::bind(&port, shared)?)];
    port.local = Some(sockets[0].local_addr());
    for _ in 1..shards {
        sockets.push(Arc::new(udp::bind(&port, shared)?));
    }
    Ok(sockets.into())
}

/// The connection or group of a caller that was accepted.
#[derive(Clone, Debug)]
pub enum Accepted {
    /// A single connection.
    Socket(Socket),
    /// A group, by its first link.
    Group(Group),
}

/// A caller that waits for an answer. If it is dropped without one, the caller is rejected with
/// [`RejectReason::FALLBACK`].
///
/// The caller gives up after its connect timeout, three seconds by default.
#[derive(Debug)]
pub struct IncomingCall {
    port: Handle,
    incoming: Incoming,
    remote: SocketAddr,
    answered: bool,
}

/// The description of a caller that waits for an answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CallerInfo {
    /// The caller's address.
    pub remote: SocketAddr,
    /// The stream ID that the caller sent; empty if it sent none.
    pub stream_id: String,
    /// The caller's SRT version, 0x00MMmmpp.
    pub peer_version: u32,
    /// The group that the caller wants to join as a link; `None` for a single connection.
    pub group: Option<GroupOffer>,
}

impl CallerInfo {
    /// The parsed stream ID; see [`IncomingCall::parsed_stream_id`], also for the errors.
    pub fn parsed_stream_id(&self) -> Result<StreamId, StreamIdError> {
        StreamId::parse(&self.stream_id)
    }
}

impl IncomingCall {
    pub(crate) fn new(port: Handle, incoming: Incoming, remote: SocketAddr) -> Self {
        Self { port, incoming, remote, answered: false }
    }

    /// The caller's address.
    pub fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// The stream ID that the caller sent; empty if it sent none.
    pub fn stream_id(&self) -> &str {
        &self.incoming.stream_id
    }

    /// The stream ID with its bytes, if these are not text.
    pub fn raw_stream_id(&self) -> &RawStreamId {
        &self.incoming.stream_id
    }

    /// The parsed stream ID, in any of the common forms.
    ///
    /// Errors: it begins as one of these forms but violates its syntax.
    /// [`StreamIdError::reject_reason`] is the code to reject the caller with.
    pub fn parsed_stream_id(&self) -> Result<StreamId, StreamIdError> {
        StreamId::parse(self.stream_id())
    }

    /// The description of the caller.
    pub fn info(&self) -> CallerInfo {
        CallerInfo {
            remote: self.remote(),
            stream_id: self.stream_id().to_owned(),
            peer_version: self.incoming.peer_version,
            group: self.incoming.group,
        }
    }

    /// The caller's SRT version, 0x00MMmmpp.
    pub fn peer_version(&self) -> u32 {
        self.incoming.peer_version
    }

    /// The group that the caller wants to join as a link; `None` for a single connection.
    pub fn group(&self) -> Option<GroupOffer> {
        self.incoming.group
    }

    /// Accepts the caller as the first link of a group, with the listener's options; the group's
    /// further links join without a call of this method. Returns `None` if the caller joined an
    /// established group.
    ///
    /// Errors as [`accept`](Self::accept); also if the caller is not a link of a group.
    pub fn accept_group(self) -> Result<Option<Group>, Error> {
        self.answer_group(None)
    }

    /// As [`accept_group`](Self::accept_group), with these options, such as a passphrase that
    /// belongs to the stream ID. They apply to the further links as well; a link of an established
    /// group gets the options of that group.
    pub fn accept_group_with(self, config: Config) -> Result<Option<Group>, Error> {
        self.answer_group(Some(config))
    }

    /// Accepts the caller as a link of a group, the first or a further one, where the application
    /// [decides on all links](Listener::decide_on_links). Errors as
    /// [`accept_group`](Self::accept_group).
    pub fn accept_link(self, config: Config) -> Result<AcceptedLink, Error> {
        self.answer_link_call(Some(config))
    }

    fn answer_group(self, config: Option<Config>) -> Result<Option<Group>, Error> {
        let accepted = self.answer_link_call(config)?;
        Ok(accepted.is_first.then_some(accepted.group))
    }

    fn answer_link_call(self, config: Option<Config>) -> Result<AcceptedLink, Error> {
        let refused = Error::Accept(AcceptError::Incompatible(RejectReason::GROUP));
        let Some(offer) = self.group() else { return Err(refused) };
        let (callers, config) = {
            let mut state = self.port.shared().lock();
            (state.callers(), config.or_else(|| state.endpoint().listening().cloned()))
        };
        let (Some(callers), Some(config)) = (callers, config) else {
            return Err(Error::Accept(AcceptError::Gone));
        };
        callers.admit(self, &offer, config)
    }

    /// Accepts the caller as a connection or as a link of a group, as it requests. Returns `None`
    /// if it joined an established group.
    pub(crate) fn answer_any(self, config: Option<Config>) -> Result<Option<Accepted>, Error> {
        if self.group().is_some() {
            return self.answer_group(config).map(|group| group.map(Accepted::Group));
        }
        self.answer(config).map(|socket| Some(Accepted::Socket(socket)))
    }

    /// Derives the keys for the caller's key message, for a later answer with these options. It
    /// takes a fraction of a millisecond.
    pub(crate) fn derive_keys(&self, config: &Config) {
        derive_here(self.port.shared(), self.incoming.id, Some(config));
    }

    /// Accepts the caller as a link of a group. Call [`derive_keys`](Self::derive_keys) first.
    pub(crate) fn answer_link(
        mut self,
        config: &Config,
        membership: &Membership,
        group: &Arc<GroupSignals>,
    ) -> Result<Socket, Error> {
        self.answered = true;
        let shared = self.port.shared();
        let (id, signals) = shared.call_and_wake(|state, now| {
            let config = Some(config.clone());
            let id = state.endpoint().accept_link(now, self.incoming.id, config, membership)?;
            let signals = state.open(id, Phase::Connected, self.remote);
            signals.join(group);
            Ok::<_, Error>((id, signals))
        })?;
        Ok(Socket::accepted(Arc::clone(shared), id, signals))
    }

    /// Accepts the caller with the listener's options.
    ///
    /// Errors: [`Error::Accept`] if the caller has given up or is not compatible with the options,
    /// or if there are too many connections.
    pub async fn accept(self) -> Result<Socket, Error> {
        self.answer(None)
    }

    /// Accepts the caller with these options. Errors as [`accept`](Self::accept).
    pub async fn accept_with(self, config: Config) -> Result<Socket, Error> {
        self.answer(Some(config))
    }

    /// Rejects the caller with this reason.
    pub fn reject(mut self, reason: RejectReason) {
        self.refuse(reason);
    }

    /// Accepts the caller as [`accept_with`](Self::accept_with) does, without a task.
    pub fn accept_now(self, config: Config) -> Result<Socket, Error> {
        self.answer(Some(config))
    }

    fn answer(mut self, config: Option<Config>) -> Result<Socket, Error> {
        config.as_ref().map_or(Ok(()), Config::check)?;
        self.answered = true;
        let shared = self.port.shared();
        derive_here(shared, self.incoming.id, config.as_ref());
        let (id, signals) = shared.call_and_wake(|state, now| {
            let id = state.endpoint().accept(now, self.incoming.id, config)?;
            Ok::<_, Error>((id, state.open(id, Phase::Connected, self.remote)))
        })?;
        Ok(Socket::accepted(Arc::clone(shared), id, signals))
    }

    fn refuse(&mut self, reason: RejectReason) {
        self.answered = true;
        let id = self.incoming.id;
        self.port.shared().call_and_wake(|state, _| state.endpoint().reject(id, reason));
    }

    pub(crate) fn is(&self, port: &Arc<Shared>, id: IncomingId) -> bool {
        self.incoming.id == id && Arc::ptr_eq(self.port.shared(), port)
    }
}

impl Drop for IncomingCall {
    fn drop(&mut self) {
        if !self.answered {
            self.refuse(RejectReason::FALLBACK);
        }
    }
}
