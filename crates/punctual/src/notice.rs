//! Notifications of the driver for the tasks and watchers of a port.

use std::net::SocketAddr;
use std::sync::Arc;

use punctual_proto::{IncomingId, RejectReason};

use crate::accept::AcceptQueue;
use crate::listener::IncomingCall;
use crate::shared::Shared;
use crate::signals::Signals;
use crate::wakes::Wakes;

/// A notification to deliver after the lock is released.
#[derive(Debug)]
pub(crate) enum Notice {
    Readable(Arc<Signals>),
    Writable(Arc<Signals>),
    News(Arc<Signals>),
    Phase(Arc<Signals>),
    Closed(Arc<Signals>),
    Caller(Arc<AcceptQueue>, IncomingCall),
    CallerGone(Arc<AcceptQueue>, Arc<Shared>, IncomingId),
    /// A caller that came after the listener was dropped. It is rejected when this is dropped.
    Unwanted(IncomingCall),
    /// The endpoint rejected a caller.
    Refused(Arc<AcceptQueue>, SocketAddr, RejectReason),
    /// The address of a peer has changed, perhaps of one of a listener's.
    Moved(Option<Arc<AcceptQueue>>, SocketAddr),
}

impl Notice {
    pub(crate) fn deliver(self, wakes: &mut Wakes) {
        match self {
            Self::Readable(signals) => signals.signal_readable(wakes),
            Self::Writable(signals) => signals.signal_writable(),
            Self::News(signals) => signals.signal_news(wakes),
            Self::Phase(signals) => signals.signal_phase(),
            Self::Closed(signals) => signals.signal_all(),
            Self::Caller(callers, call) => callers.push(call),
            Self::CallerGone(callers, port, id) => callers.remove(&port, id),
            Self::Unwanted(call) => drop(call),
            Self::Refused(callers, remote, reason) => callers.log().refused(remote, reason),
            Self::Moved(Some(callers), remote) => callers.log().moved(remote),
            Self::Moved(None, remote) => tracing::info!("the peer is at {remote} now"),
        }
    }
}
