//! Notifications of the driver for the tasks and watchers of a port.

use std::net::SocketAddr;
use std::sync::Arc;

use punctual_proto::{IncomingId, RejectReason};

use crate::shared::Shared;
use crate::signals::Signals;
use crate::waiting_caller::{CallerHandler, WaitingCaller};
use crate::wakes::Wakes;

/// A notification to deliver after the lock is released.
#[derive(Debug)]
pub(crate) enum Notice {
    Readable(Arc<Signals>),
    Writable(Arc<Signals>),
    News(Arc<Signals>),
    Phase(Arc<Signals>),
    Closed(Arc<Signals>),
    Caller(Arc<dyn CallerHandler>, WaitingCaller),
    CallerGone(Arc<dyn CallerHandler>, Arc<Shared>, IncomingId),
    /// A caller that came after the listener was dropped. It is rejected when this is dropped.
    Unwanted(WaitingCaller),
    /// The endpoint rejected a caller.
    Refused(Arc<dyn CallerHandler>, SocketAddr, RejectReason),
    /// The address of a peer has changed, perhaps of one of a listener's.
    Moved(Option<Arc<dyn CallerHandler>>, SocketAddr),
}

impl Notice {
    pub(crate) fn deliver(self, wakes: &mut Wakes) {
        match self {
            Self::Readable(signals) => signals.signal_readable(wakes),
            Self::Writable(signals) => signals.signal_writable(),
            Self::News(signals) => signals.signal_news(wakes),
            Self::Phase(signals) => signals.signal_phase(),
            Self::Closed(signals) => signals.signal_all(),
            Self::Caller(callers, caller) => callers.came(caller),
            Self::CallerGone(callers, port, id) => callers.gave_up(&port, id),
            Self::Unwanted(caller) => drop(caller),
            Self::Refused(callers, remote, reason) => callers.refused(remote, reason),
            Self::Moved(Some(callers), remote) => callers.moved(remote),
            Self::Moved(None, remote) => tracing::info!("the peer is at {remote} now"),
        }
    }
}
