//! Listening and answering callers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use punctual_io::UdpSocket;
use punctual_proto::{
    AcceptError, Config, EndpointConfig, GroupOffer, Incoming, IncomingId, Membership,
    RejectReason, Shard, StreamId, StreamIdError,
};

use crate::accept::AcceptQueue;
use crate::config::{ListenerConfig, PortConfig};
use crate::error::Error;
use crate::gate::{Gate, ValueGate};
use crate::group::Group;
use crate::key_task::{DERIVATIONS, derive_here};
use crate::port::{Port, seed, start};
use crate::shared::{GroupSignals, Handle, Phase, Shared};
use crate::socket::Socket;
use crate::udp::{self, address_of};

/// Listens for callers on one UDP port.
///
/// Dropped, it stops listening: callers that wait for an answer are rejected with
/// [`RejectReason::CLOSE`], and connections that were accepted live on.
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
    /// connections. Must be called within a tokio runtime.
    pub async fn bind(local: SocketAddr, connection: Config) -> Result<Self, Error> {
        let port = PortConfig { local: Some(local), ..PortConfig::default() };
        Self::bind_with(ListenerConfig { port, connection, ..ListenerConfig::default() }).await
    }

    /// Listens with options of the UDP port, the number of shards and the backlog.
    ///
    /// Errors: an option out of range, or what the system says, for example that the address is in
    /// use.
    pub async fn bind_with(config: ListenerConfig) -> Result<Self, Error> {
        Self::bind_all(vec![config]).await
    }

    /// Listens at several ports as one listener, so that the links of a group may come in at each
    /// of them. Errors as [`bind_with`](Self::bind_with); there must be a port.
    pub async fn bind_all(configs: Vec<ListenerConfig>) -> Result<Self, Error> {
        let callers = Arc::<AcceptQueue>::default();
        let mut handles = Vec::new();
        let mut locals = Vec::new();
        for config in configs {
            locals.push(Self::open(config, &callers, &mut handles)?);
        }
        let no_port = || std::io::Error::new(std::io::ErrorKind::InvalidInput, "no port to bind");
        let local = *locals.first().ok_or_else(no_port)?;
        callers.log().listens_at(local);
        Ok(Self { callers, shards: handles, local })
    }

    /// Listens at a port that is bound already.
    pub(crate) fn at(port: &Port, connection: Config) -> Self {
        let callers = Arc::<AcceptQueue>::default();
        port.handle().shared().call_and_wake(|state, _| {
            state.endpoint.listen(Some(connection));
            state.set_callers(Some(Arc::clone(&callers)));
        });
        let local = port.local_addr();
        callers.log().listens_at(local);
        Self { callers, shards: vec![port.handle().clone()], local }
    }

    /// Opens the shards of one port; the port's address.
    fn open(
        config: ListenerConfig,
        callers: &Arc<AcceptQueue>,
        handles: &mut Vec<Handle>,
    ) -> Result<SocketAddr, Error> {
        let shards = match config.shards {
            0 => thread::available_parallelism().map_or(1, usize::from),
            shards => shards,
        };
        let coalesce = config.port.coalesce;
        let sockets = bind_shards(config.port, shards)?;
        let local = sockets[0].local_addr();
        let before = handles.len();
        for (index, socket) in (0..).zip(sockets.iter()) {
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
            let handle = start(Arc::clone(socket), Arc::clone(&sockets), endpoint, coalesce)?;
            handle.shared().call_and_wake(|state, _| {
                state.endpoint.listen(Some(config.connection.clone()));
                state.set_callers(Some(Arc::clone(callers)));
            });
            handles.push(handle);
        }
        if shards > 1 {
            let shards: Vec<_> = handles[before..].iter().map(Handle::shared).collect();
            Shared::introduce(&shards);
        }
        Ok(local)
    }

    /// The next caller, waiting for an answer.
    ///
    /// Errors: [`Error::Stopped`] when the runtime is shut down.
    ///
    /// Cancel safe: a caller is taken only as this completes.
    pub async fn incoming(&self) -> Result<IncomingCall, Error> {
        let stopped = || self.shards.iter().all(|shard| shard.shared().lock().stopped);
        self.callers.pop(stopped).await.ok_or(Error::Stopped)
    }

    /// Whether a caller waits, so that [`incoming`](Self::incoming) gives it at once; at any time.
    pub fn has_caller(&self) -> bool {
        !self.callers.is_empty()
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

    /// Accepts the next caller that `hook` accepts, with the options that it gives; the others are
    /// rejected with its reason. Errors as [`incoming`](Self::incoming); cancel safe as that is.
    ///
    /// Callers wait while `hook` decides on another. To ask a database or another server, see
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

    /// Accepts the next caller, or the next group of them: the further links of a group that was
    /// accepted join it by themselves, whether anybody accepts or not. Errors as
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

    /// A gate before this listener: `hook` decides on each caller and may take its time, while
    /// others come and are decided on at once. It is asked about every link of a group, too.
    pub fn gate<H, D>(self, hook: H) -> Gate<H>
    where
        H: Fn(CallerInfo) -> D,
        D: Future<Output = Result<Config, RejectReason>> + Send + 'static,
    {
        self.callers.ask_for_links();
        Gate::new(self, hook)
    }

    /// The queue that callers wait in.
    pub(crate) const fn callers(&self) -> &Arc<AcceptQueue> {
        &self.callers
    }

    /// Takes no more than `limit` callers at a time from now on, on each shard: see
    /// [`ListenerConfig::max_callers`]. With zero, everybody is refused; connections that were
    /// accepted live on.
    pub fn limit_callers(&self, limit: Option<usize>) {
        for shard in &self.shards {
            shard.shared().call_and_wake(|state, _| state.endpoint.limit_callers(limit));
        }
    }

    /// The same with a `hook` that also hands over a value of its own for each caller that it lets
    /// in.
    pub fn gate_with_value<H, D, T>(self, hook: H) -> ValueGate<H, T>
    where
        H: Fn(CallerInfo) -> D,
        D: Future<Output = Result<(Config, T), RejectReason>> + Send + 'static,
        T: Send + 'static,
    {
        self.callers.ask_for_links();
        ValueGate::new(self, hook)
    }

    /// The local address, of the first one if there are several. The IP address is unspecified if
    /// the listener was bound to any.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        for shard in &self.shards {
            shard.shared().call_and_wake(|state, _| {
                state.endpoint.listen(None);
                state.set_callers(None);
            });
        }
        for call in self.callers.take() {
            call.reject(RejectReason::CLOSE);
        }
    }
}

/// Binds the first socket where the configuration says, and the others to the same port.
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
    /// A connection of its own.
    Socket(Socket),
    /// A group, by its first link.
    Group(Group),
}

/// A caller that waits for an answer. Dropped without one, it is rejected with
/// [`RejectReason::FALLBACK`].
///
/// The caller gives up after its connect timeout, three seconds by default.
#[derive(Debug)]
pub struct IncomingCall {
    port: Handle,
    incoming: Incoming,
    answered: bool,
}

/// The facts about a caller that waits for an answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CallerInfo {
    /// Its address.
    pub remote: SocketAddr,
    /// The stream ID that it sent; empty if none.
    pub stream_id: String,
    /// Its SRT version, 0x00MMmmpp.
    pub peer_version: u32,
    /// The group that it wants to be a link of, if it does.
    pub group: Option<GroupOffer>,
}

impl CallerInfo {
    /// The parsed stream ID; see [`IncomingCall::parsed_stream_id`], also for the errors.
    pub fn parsed_stream_id(&self) -> Result<StreamId, StreamIdError> {
        StreamId::parse(&self.stream_id)
    }
}

impl IncomingCall {
    pub(crate) fn new(port: Handle, incoming: Incoming) -> Self {
        Self { port, incoming, answered: false }
    }

    /// The caller's address.
    pub fn remote(&self) -> SocketAddr {
        address_of(self.incoming.path)
    }

    /// The stream ID that it sent; empty if none.
    pub fn stream_id(&self) -> &str {
        &self.incoming.stream_id
    }

    /// The parsed stream ID, in whichever of the usual forms it is.
    ///
    /// Errors: it begins as one of these forms and breaks its rules. The error has a
    /// [code](StreamIdError::reject_reason) to refuse the caller with.
    pub fn parsed_stream_id(&self) -> Result<StreamId, StreamIdError> {
        StreamId::parse(self.stream_id())
    }

    /// The facts about the caller.
    pub fn info(&self) -> CallerInfo {
        CallerInfo {
            remote: self.remote(),
            stream_id: self.incoming.stream_id.clone(),
            peer_version: self.incoming.peer_version,
            group: self.incoming.group,
        }
    }

    /// Its SRT version, 0x00MMmmpp.
    pub fn peer_version(&self) -> u32 {
        self.incoming.peer_version
    }

    /// The group that it wants to be a link of, if it does.
    pub fn group(&self) -> Option<GroupOffer> {
        self.incoming.group
    }

    /// Accepts it as the first link of a group, with the listener's options; its further links
    /// join by themselves. `None` if it joined an established group.
    ///
    /// Errors as [`accept`](Self::accept); also if it is no link.
    pub fn accept_group(self) -> Result<Option<Group>, Error> {
        self.answer_group(None)
    }

    /// The same with these options, such as a passphrase that belongs to the stream ID. They apply
    /// to the further links as well; a link of an established group has that group's.
    pub fn accept_group_with(self, config: Config) -> Result<Option<Group>, Error> {
        self.answer_group(Some(config))
    }

    fn answer_group(self, config: Option<Config>) -> Result<Option<Group>, Error> {
        let refused = Error::Accept(AcceptError::Incompatible(RejectReason::GROUP));
        let Some(offer) = self.group() else { return Err(refused) };
        let (callers, config) = {
            let state = self.port.shared().lock();
            (state.callers(), config.or_else(|| state.endpoint.listening().cloned()))
        };
        let (Some(callers), Some(config)) = (callers, config) else {
            return Err(Error::Accept(AcceptError::Gone));
        };
        callers.admit(self, &offer, config)
    }

    /// Accepts it as what it asks to be, a connection or a link; `None` for a link of a group that
    /// stands already.
    pub(crate) fn answer_any(self, config: Option<Config>) -> Result<Option<Accepted>, Error> {
        if self.group().is_some() {
            return self.answer_group(config).map(|group| group.map(Accepted::Group));
        }
        self.answer(config).map(|socket| Some(Accepted::Socket(socket)))
    }

    /// Derives the keys that the caller's passphrase asks for, which takes a fraction of a
    /// millisecond, so that an answer with these options need not.
    pub(crate) fn derive_keys(&self, config: &Config) {
        derive_here(self.port.shared(), self.incoming.id, Some(config));
    }

    /// Accepts it as a link of a group. The keys are derived before, by
    /// [`derive_keys`](Self::derive_keys).
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
            let id = state.endpoint.accept_link(now, self.incoming.id, config, membership)?;
            let signals = state.open(id, Phase::Connected);
            signals.tell(group);
            Ok::<_, Error>((id, signals))
        })?;
        Ok(Socket::new(Arc::clone(shared), id, signals))
    }

    /// Accepts it with the listener's options.
    ///
    /// Errors: [`Error::Accept`] if it has given up, or does not fit the options, or there are too
    /// many connections.
    pub async fn accept(self) -> Result<Socket, Error> {
        self.answer(None)
    }

    /// Accepts it with these options. Errors as [`accept`](Self::accept).
    pub async fn accept_with(self, config: Config) -> Result<Socket, Error> {
        self.answer(Some(config))
    }

    /// Rejects it.
    pub fn reject(mut self, reason: RejectReason) {
        self.refuse(reason);
    }

    fn answer(mut self, config: Option<Config>) -> Result<Socket, Error> {
        self.answered = true;
        let shared = self.port.shared();
        derive_here(shared, self.incoming.id, config.as_ref());
        let (id, signals) = shared.call_and_wake(|state, now| {
            let id = state.endpoint.accept(now, self.incoming.id, config)?;
            Ok::<_, Error>((id, state.open(id, Phase::Connected)))
        })?;
        Ok(Socket::new(Arc::clone(shared), id, signals))
    }

    fn refuse(&mut self, reason: RejectReason) {
        self.answered = true;
        let id = self.incoming.id;
        self.port.shared().call_and_wake(|state, _| state.endpoint.reject(id, reason));
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
