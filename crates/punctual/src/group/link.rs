use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use punctual_proto::{CloseReason, Config, GroupOffer, LinkId, LinkState, LinkUpError, Statistics};
use tokio::task::JoinHandle;

use super::Inner;
use super::calls::CallId;
use super::drive::Sockets;
use crate::calls;
use crate::config::PortConfig;
use crate::error::Error;
use crate::socket::Socket;
use crate::spread::spread;
use crate::waiting_caller::WaitingCaller;

/// The least pause between two calls over a link.
const PAUSE: Duration = Duration::from_secs(1);

/// A link over which a [`Group`](super::Group) calls.
#[derive(Clone, Debug)]
pub struct GroupLink {
    /// The listener to call.
    pub remote: SocketAddr,
    /// The UDP port to call from. Its local address selects the network of the link.
    pub port: PortConfig,
    /// In a backup group the links are used in the order of their weights, highest first.
    pub weight: u16,
}

impl GroupLink {
    /// A link from any free port to the listener at `remote`, with a weight of 0.
    pub fn to(remote: SocketAddr) -> Self {
        Self { remote, port: calls::any_port(remote), weight: 0 }
    }

    /// The same link with this weight.
    #[must_use]
    pub fn with_weight(self, weight: u16) -> Self {
        Self { weight, ..self }
    }
}

/// The state and the statistics of a link of a [`Group`](super::Group).
#[derive(Clone, Debug)]
pub struct LinkReport {
    /// Names the link in its group.
    pub id: LinkId,
    /// The weight of the link.
    pub weight: u16,
    /// The state of the link.
    pub state: LinkState,
    /// This end's socket ID.
    pub socket_id: u32,
    /// This end's address.
    pub local: SocketAddr,
    /// The peer's address.
    pub remote: SocketAddr,
    /// The statistics of the link's connection.
    pub statistics: Statistics,
    /// The state and the statistics of the QUIC connection that carries the link; `None` over UDP.
    #[cfg(feature = "quic")]
    pub quic: Option<punctual_quic::QuicInfo>,
}

/// The state and the statistics of a [`Group`](super::Group), all at one moment.
#[derive(Clone, Debug)]
pub struct GroupReport {
    /// The statistics of the stream as a whole, in which each message counts once.
    pub stream: Statistics,
    /// The links that are established or have messages left to deliver.
    pub links: Vec<LinkReport>,
    /// The statistics of all ended links: totals are sums, instants those of the last one.
    pub ended: Statistics,
    /// Reports on ended links, one per address of the peer, for the last 16 addresses.
    pub ended_links: Vec<LinkReport>,
    /// The last report of each link that has ended, for the last 16 links. A link that is called
    /// again is another one.
    pub last_reports: Vec<LinkReport>,
}

impl LinkReport {
    pub(super) fn new(id: LinkId, weight: u16, state: LinkState, socket: &Socket) -> Self {
        Self {
            id,
            weight,
            state,
            socket_id: socket.info().socket_id.value(),
            local: socket.local_addr(),
            remote: socket.peer_addr(),
            statistics: socket.statistics(),
            #[cfg(feature = "quic")]
            quic: socket.quic_info(),
        }
    }
}

/// Calls over a link, and again when the call has failed or the link has ended, while another link
/// is established. The task completes with the result of the first call.
pub(super) fn call(
    inner: &Arc<Inner>,
    link: GroupLink,
    config: Option<Config>,
) -> (CallId, JoinHandle<Result<LinkId, Error>>) {
    let group = Arc::downgrade(inner);
    let call = inner.lock().calls.begin();
    let attempt = tokio::spawn(async move {
        let link = Called { link, config };
        let called = call_once(&group, call, &link).await;
        match called {
            Ok((id, socket)) => {
                tokio::spawn(keep(group, call, link, Some(socket)));
                Ok(id)
            }
            Err(error) => {
                if is_wanted(&group, call) {
                    let remote = link.link.remote;
                    tracing::warn!("no link with {remote} yet; calling again: {error}");
                }
                tokio::spawn(keep(group, call, link, None));
                Err(error)
            }
        }
    });
    (call, attempt)
}

/// A link that is called, with options of its own if it has any.
struct Called {
    link: GroupLink,
    config: Option<Config>,
}

/// Calls again each time the link has ended, until the group has ended or the link was removed.
async fn keep(group: Weak<Inner>, call: CallId, link: Called, mut established: Option<Socket>) {
    loop {
        if let Some(socket) = established.take() {
            socket.closed().await;
        }
        tokio::time::sleep(spread(PAUSE)).await;
        if !is_wanted(&group, call) {
            return;
        }
        match call_once(&group, call, &link).await {
            Ok((_, socket)) => established = Some(socket),
            Err(error) => tracing::debug!(remote = %link.link.remote, %error, "no link yet"),
        }
    }
}

/// Whether the link is still to be called: the user has not removed it, and the group has not
/// ended.
fn is_wanted(group: &Weak<Inner>, call: CallId) -> bool {
    group.upgrade().is_some_and(|inner| {
        let state = inner.lock();
        state.check_open().is_ok() && state.calls.wants(call)
    })
}

/// One attempt to make a link.
async fn call_once(
    group: &Weak<Inner>,
    call: CallId,
    called: &Called,
) -> Result<(LinkId, Socket), Error> {
    let Called { link, config } = called;
    let port = calls::bind(&link.port)?;
    let (id, socket) = {
        let inner = group.upgrade().ok_or(Error::Stopped)?;
        let mut state = inner.lock();
        if state.closing {
            return Err(state.end());
        }
        let config = config.as_ref().unwrap_or(&state.config).clone();
        let id = state.driver.add_link(punctual_io::now(), link.weight, |membership| {
            calls::connect_link(&port, link.remote, config, membership, &inner.signals)
                .map(Socket::new)
        })?;
        (id, state.driver.link(id).cloned().ok_or(Error::Stopped)?)
    };
    let connected = socket.connected().await;
    let inner = group.upgrade().ok_or(Error::Stopped)?;
    let result = connected.and_then(|()| {
        if inner.lock().calls.made(call, id) {
            link_up(&inner, id, &socket)
        } else {
            Err(Error::Closed(CloseReason::Local))
        }
    });
    if let Err(error) = result {
        inner.lock().driver.remove_link(&mut Sockets, id);
        return Err(error);
    }
    Ok((id, socket))
}

/// Adds a link to the stream, since its connection is established.
fn link_up(inner: &Inner, id: LinkId, socket: &Socket) -> Result<(), Error> {
    let mut state = inner.lock();
    if state.closing {
        return Err(state.end());
    }
    state.driver.link_up(&mut Sockets, id).map_err(|error| {
        Error::Closed(match error {
            LinkUpError::NotEstablished => socket.ended().unwrap_or(CloseReason::Local),
            LinkUpError::OtherGroup(reason) => CloseReason::Incompatible(reason),
        })
    })?;
    state.was_up = true;
    drop(state);
    tracing::info!("a link joined its group: {}", socket.peer_addr());
    inner.signals.wake();
    Ok(())
}

/// Accepts a caller as a link.
pub(super) fn join(
    inner: &Inner,
    call: WaitingCaller,
    offer: &GroupOffer,
) -> Result<LinkId, Error> {
    // Before the group is locked, so that no other task waits for the derivation.
    let config = inner.lock().config.clone();
    call.derive_keys(&config);
    let (id, socket) = {
        let mut state = inner.lock();
        let id = state.driver.add_link(punctual_io::now(), offer.weight, |membership| {
            call.accept_link(&config, membership, &inner.signals).map(Socket::accepted)
        })?;
        (id, state.driver.link(id).cloned().ok_or(Error::Stopped)?)
    };
    let joined = link_up(inner, id, &socket);
    if joined.is_err() {
        inner.lock().driver.remove_link(&mut Sockets, id);
    }
    joined.map(|()| id)
}
