use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Weak};
use std::time::Duration;

use punctual_proto::{CloseReason, GroupOffer, LinkId, LinkState, Statistics};
use tokio::task::JoinHandle;

use super::Inner;
use crate::clock;
use crate::config::PortConfig;
use crate::error::Error;
use crate::listener::IncomingCall;
use crate::port::Port;
use crate::socket::Socket;

/// The least time from one call over a link to the next.
const PAUSE: Duration = Duration::from_secs(1);

/// A link over which a [`Group`](super::Group) calls.
#[derive(Clone, Debug)]
pub struct GroupLink {
    /// The listener to call.
    pub remote: SocketAddr,
    /// The UDP port to call from. A link over a network of its own has an address of its own here.
    pub port: PortConfig,
    /// In a backup group the links are used in the order of their weights, highest first.
    pub weight: u16,
}

impl GroupLink {
    /// A link from any free port to the listener at `remote`, with a weight of 0.
    pub fn to(remote: SocketAddr) -> Self {
        let any: IpAddr = match remote {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let local = Some(SocketAddr::new(any, 0));
        Self { remote, port: PortConfig { local, ..PortConfig::default() }, weight: 0 }
    }

    /// The same with a weight.
    #[must_use]
    pub fn with_weight(self, weight: u16) -> Self {
        Self { weight, ..self }
    }
}

/// How a link of a [`Group`](super::Group) is.
#[derive(Clone, Debug)]
pub struct LinkReport {
    /// Names the link in its group.
    pub id: LinkId,
    /// Its weight.
    pub weight: u16,
    /// What it does.
    pub state: LinkState,
    /// This end's socket ID.
    pub socket_id: u32,
    /// This end's address.
    pub local: SocketAddr,
    /// The peer's address.
    pub remote: SocketAddr,
    /// What its connection counts and measures.
    pub statistics: Statistics,
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
        }
    }
}

/// Calls over a link, and again when that failed or the link has ended while others stand.
/// Completes with the first call.
pub(super) fn call(inner: &Arc<Inner>, link: GroupLink) -> JoinHandle<Result<LinkId, Error>> {
    let group = Arc::downgrade(inner);
    tokio::spawn(async move {
        let called = call_once(&group, &link).await;
        match called {
            Ok((id, socket)) => {
                tokio::spawn(keep(group, link, Some((id, socket))));
                Ok(id)
            }
            Err(error) => {
                tracing::debug!(remote = %link.remote, %error, "no link yet");
                tokio::spawn(keep(group, link, None));
                Err(error)
            }
        }
    })
}

/// Calls again whenever the link has ended, until the group has, or the link was removed.
async fn keep(group: Weak<Inner>, link: GroupLink, mut stands: Option<(LinkId, Socket)>) {
    loop {
        if let Some((id, socket)) = stands.take() {
            let reason = socket.closed().await;
            drop(socket);
            let Some(inner) = group.upgrade() else { return };
            let state = inner.lock();
            if state.closing || !state.machine.links().any(|it| it.0 == id) {
                return;
            }
            tracing::warn!(remote = %link.remote, %reason, "a link of the group ended");
        }
        tokio::time::sleep(PAUSE).await;
        let wanted = |inner: &Inner| {
            let state = inner.lock();
            !state.closing && state.machine.is_up()
        };
        if !group.upgrade().is_some_and(|inner| wanted(&inner)) {
            return;
        }
        match call_once(&group, &link).await {
            Ok(called) => {
                tracing::info!(remote = %link.remote, "a link joined its group");
                stands = Some(called);
            }
            Err(error) => tracing::debug!(remote = %link.remote, %error, "no link yet"),
        }
    }
}

/// One attempt to make a link.
async fn call_once(group: &Weak<Inner>, link: &GroupLink) -> Result<(LinkId, Socket), Error> {
    let port = Port::bind(link.port.clone()).await?;
    let (id, socket) = {
        let inner = group.upgrade().ok_or(Error::Stopped)?;
        let mut state = inner.lock();
        let id = state.machine.add_link(link.weight);
        let membership = state.machine.membership(id);
        drop(state);
        match port.call_link(link.remote, inner.config.clone(), &membership, &inner.signals) {
            Ok(socket) => (id, socket),
            Err(error) => {
                inner.lock().machine.remove_link(clock::now(), id);
                return Err(error);
            }
        }
    };
    let connected = socket.connected().await;
    let inner = group.upgrade().ok_or(Error::Stopped)?;
    let result = connected.and_then(|()| inner.enlist(id, &socket));
    if let Err(error) = result {
        inner.lock().machine.remove_link(clock::now(), id);
        return Err(error);
    }
    Ok((id, socket))
}

impl Inner {
    /// The connection of a link stands: it carries the stream from now on.
    fn enlist(&self, id: LinkId, socket: &Socket) -> Result<(), Error> {
        let terms = socket.with_endpoint(|endpoint, _, id| endpoint.link_terms(id));
        let mut state = self.lock();
        let Some(terms) = terms else {
            return Err(Error::Closed(socket.ended().unwrap_or(CloseReason::Local)));
        };
        let up = state.machine.link_up(clock::now(), id, &terms);
        up.map_err(|reason| Error::Closed(CloseReason::Incompatible(reason)))?;
        state.members.insert(id, socket.clone());
        state.was_up = true;
        state.carry_out();
        drop(state);
        self.signals.wake();
        Ok(())
    }

    /// Accepts a caller as a link.
    pub(crate) fn join(&self, call: IncomingCall, offer: &GroupOffer) -> Result<(), Error> {
        let (id, membership) = {
            let mut state = self.lock();
            let id = state.machine.add_link(offer.weight);
            (id, state.machine.membership(id))
        };
        let joined = call
            .answer_link(&self.config, &membership, &self.signals)
            .and_then(|socket| self.enlist(id, &socket));
        if joined.is_err() {
            self.lock().machine.remove_link(clock::now(), id);
        }
        joined
    }
}
