//! A caller that waits for an answer, as the port knows it, and the listener that hears of it.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::Arc;

use punctual_proto::{
    Acceptance, Config, GroupOffer, Incoming, IncomingId, KeyDerivation, Membership, RawStreamId,
    RejectReason,
};

use crate::error::Error;
use crate::shared::{Begun, Handle, Shared};
use crate::signals::GroupSignals;
use crate::state::Phase;

/// The listener of a port, which hears of its callers.
pub(crate) trait CallerHandler: Debug + Send + Sync {
    /// A caller waits for an answer.
    fn came(&self, caller: WaitingCaller);

    /// A caller of the shard `port` gave up.
    fn gave_up(&self, port: &Arc<Shared>, id: IncomingId);

    /// The endpoint rejected a caller.
    fn refused(&self, remote: SocketAddr, reason: RejectReason);

    /// The address of a peer, perhaps of one that called, has changed.
    fn moved(&self, remote: SocketAddr);

    /// No more callers come: wakes the tasks that wait for one.
    fn end(&self);
}

/// A caller that waits for an answer. If it is dropped without one, the caller is rejected with
/// [`RejectReason::FALLBACK`].
#[derive(Debug)]
pub(crate) struct WaitingCaller {
    port: Handle,
    incoming: Incoming,
    remote: SocketAddr,
    answered: bool,
}

impl WaitingCaller {
    pub(crate) fn new(port: Handle, incoming: Incoming, remote: SocketAddr) -> Self {
        Self { port, incoming, remote, answered: false }
    }

    /// The port that was called.
    pub(crate) fn port(&self) -> &Arc<Shared> {
        self.port.shared()
    }

    /// The caller's address.
    pub(crate) fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// The stream ID that the caller sent; empty if it sent none.
    pub(crate) fn stream_id(&self) -> &RawStreamId {
        &self.incoming.stream_id
    }

    /// The caller's SRT version, 0x00MMmmpp.
    pub(crate) fn peer_version(&self) -> u32 {
        self.incoming.peer_version
    }

    /// The group that the caller wants to join as a link; `None` for a single connection.
    pub(crate) fn group(&self) -> Option<GroupOffer> {
        self.incoming.group
    }

    /// Whether this is the caller `id` of the shard `port`.
    pub(crate) fn is(&self, port: &Arc<Shared>, id: IncomingId) -> bool {
        self.incoming.id == id && Arc::ptr_eq(self.port.shared(), port)
    }

    /// Derives the keys for the caller's key message, for a later answer with these options, if
    /// they are not those of the listener: in this thread, without the lock that connections need.
    /// It takes a fraction of a millisecond.
    pub(crate) fn derive_keys(&self, config: &Config) {
        let shared = self.port.shared();
        let job = shared.lock().endpoint().key_derivation_for(self.incoming.id, config);
        if let Some(derived) = job.map(KeyDerivation::run) {
            shared.call(|state, _| state.endpoint().handle_derived_key(derived));
        }
    }

    /// Accepts the caller with these options, or with the listener's.
    pub(crate) fn accept(mut self, config: Option<Config>) -> Result<Begun, Error> {
        config.as_ref().map_or(Ok(()), Config::check)?;
        self.answered = true;
        if let Some(config) = &config {
            self.derive_keys(config);
        }
        let shared = self.port.shared();
        let (id, signals) = shared.call_and_wake(|state, now| {
            let id = state.endpoint().accept(now, self.incoming.id, config)?;
            Ok::<_, Error>((id, state.open(id, Phase::Connected, self.remote)))
        })?;
        Ok(Begun { shared: Arc::clone(shared), id, signals })
    }

    /// Accepts the caller as a link of a group. Call [`derive_keys`](Self::derive_keys) first.
    pub(crate) fn accept_link(
        mut self,
        config: &Config,
        membership: &Membership,
        group: &Arc<GroupSignals>,
    ) -> Result<Begun, Error> {
        self.answered = true;
        let shared = self.port.shared();
        let (id, signals) = shared.call_and_wake(|state, now| {
            let acceptance = Acceptance::link(Some(config.clone()), membership);
            let id = state.endpoint().accept(now, self.incoming.id, acceptance)?;
            let signals = state.open(id, Phase::Connected, self.remote);
            signals.join(group);
            Ok::<_, Error>((id, signals))
        })?;
        Ok(Begun { shared: Arc::clone(shared), id, signals })
    }

    /// Rejects the caller with this reason.
    pub(crate) fn reject(mut self, reason: RejectReason) {
        self.refuse(reason);
    }

    fn refuse(&mut self, reason: RejectReason) {
        self.answered = true;
        let id = self.incoming.id;
        self.port.shared().call_and_wake(|state, _| state.endpoint().reject(id, reason));
    }
}

impl Drop for WaitingCaller {
    fn drop(&mut self) {
        if !self.answered {
            self.refuse(RejectReason::FALLBACK);
        }
    }
}
