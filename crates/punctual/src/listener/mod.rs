//! Listening and answering callers.

mod decisions;
pub(crate) mod gate;

use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::thread;

use punctual_io::UdpSocket;
use punctual_proto::{Config, EndpointConfig, RejectReason, Shard};
use tokio::runtime::Handle as Runtime;

use self::gate::{Gate, ValueGate};
use crate::accept::{AcceptQueue, AcceptedGroups};
use crate::caller_log::RefusedCaller;
use crate::calls::start;
use crate::config::{ListenerConfig, PortConfig};
use crate::error::Error;
use crate::incoming_call::{Accepted, CallerInfo, IncomingCall};
use crate::key_task::DERIVATIONS;
use crate::memory;
use crate::port::Port;
use crate::seed::seed;
use crate::shared::{Handle, Shared};
use crate::signals::Watcher;
use crate::socket::Socket;
use crate::udp;
use crate::waiting_caller::CallerHandler;

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
        let configs = std::iter::repeat_n(connection, shards.len());
        for (shard, config) in shards.iter().zip(configs) {
            let callers = Arc::clone(&callers) as Arc<dyn CallerHandler>;
            shard.shared().call_and_wake(|state, _| state.listen(config, callers))?;
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
            endpoint.keep_silent_callers = config.keep_silent_callers;
            endpoint.receive_memory = memory::share_of_received(sockets.len());
            let sockets = Arc::clone(sockets);
            let handle = start(Arc::clone(socket), sockets, endpoint, *coalesce, carriage)?;
            handle.shared().call_and_wake(|state, _| {
                let callers = Arc::clone(callers) as Arc<dyn CallerHandler>;
                state.listen(config.connection.clone(), callers)
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
        let caller = self.callers.pop(stopped).await.ok_or(Error::Stopped)?;
        Ok(IncomingCall::new(caller, Arc::clone(&self.callers)))
    }

    /// Whether a caller waits, so that [`incoming`](Self::incoming) returns it at once.
    pub fn has_caller(&self) -> bool {
        !self.callers.is_empty()
    }

    /// The next caller, if one waits.
    pub fn try_incoming(&self) -> Option<IncomingCall> {
        let caller = self.callers.try_pop()?;
        Some(IncomingCall::new(caller, Arc::clone(&self.callers)))
    }

    /// Tells `watcher` of each caller from now on, by [`readable`](Watcher::readable), for programs
    /// that do not wait in tasks. A caller just before is not reported: call
    /// [`try_incoming`](Self::try_incoming) after this call. A listener has one watcher, the first.
    pub fn watch(&self, watcher: Weak<dyn Watcher>) {
        self.callers.watch(watcher);
    }

    /// Tells `hearer` of each caller that is refused from now on, by the protocol, a gate or for a
    /// wrong passphrase. The log has none of these then. The hearer must return soon. The first
    /// hearer of a listener stays.
    pub fn hear_refusals(&self, hearer: impl Fn(RefusedCaller) + Send + Sync + 'static) {
        self.callers.log().tell(Box::new(hearer));
    }

    /// Accepts the next caller. Errors as [`incoming`](Self::incoming); cancel safe as that is.
    pub async fn accept(&self) -> Result<Socket, Error> {
        loop {
            let call = self.incoming().await?;
            let (remote, stream_id) = (call.remote(), call.stream_id().to_owned());
            match call.accept().await {
                Err(Error::Accept(reason)) => {
                    self.callers.log().not_accepted(remote, &stream_id, &reason);
                }
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
            let (remote, stream_id) = (call.remote(), call.stream_id().to_owned());
            match call.accept_with(config).await {
                Err(Error::Accept(reason)) => {
                    self.callers.log().not_accepted(remote, &stream_id, &reason);
                }
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
            let (remote, stream_id) = (call.remote(), call.stream_id().to_owned());
            match call.answer_any(None) {
                Ok(Some(accepted)) => return Ok(accepted),
                Ok(None) => {}
                Err(Error::Accept(reason)) => {
                    self.callers.log().not_accepted(remote, &stream_id, &reason);
                }
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
            shard.shared().call_and_wake(|state, _| state.stop_listening());
        }
        for caller in self.callers.take() {
            caller.reject(RejectReason::CLOSE);
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
