//! The log of a listener's callers, with a limited number of lines.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use punctual_proto::{AcceptError, RejectReason};
use punctual_units::grouped;

use crate::error::Error;
use crate::gathered::Gathered;

/// A caller that was refused.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RefusedCaller {
    /// The caller's address.
    pub remote: SocketAddr,
    /// The stream ID that the caller sent; empty if it sent none, or if its handshake was refused
    /// before it was a call.
    pub stream_id: String,
    /// The reason that the caller was told.
    pub reason: RejectReason,
    /// Whether the hook of a gate refused it, and knows more of the reason.
    pub by_hook: bool,
}

/// Hears of each caller that is refused.
type Hearer = Box<dyn Fn(RefusedCaller) + Send + Sync>;

/// The log messages that callers of one listener cause, with a limit for each kind.
pub(crate) struct CallerLog {
    /// The listener's address, once it listens.
    local: Arc<OnceLock<SocketAddr>>,
    refused: Gathered,
    gone: Gathered,
    failed: Gathered,
    not_joined: Gathered,
    moved: Gathered,
    hearer: OnceLock<Hearer>,
}

impl fmt::Debug for CallerLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallerLog").field("local", &self.local).finish_non_exhaustive()
    }
}

impl CallerLog {
    /// Tells `hearer` of each caller that is refused from now on. The first one stays.
    pub(crate) fn tell(&self, hearer: Hearer) {
        let _ = self.hearer.set(hearer);
    }

    /// Sets the address that summary lines name.
    pub(crate) fn listens_at(&self, local: SocketAddr) {
        // With several ports, the first one names the listener.
        let _ = self.local.set(local);
    }

    /// Tells of a caller that was refused: the hearer, or the log if there is none.
    pub(crate) fn refused(&self, caller: RefusedCaller) {
        match self.hearer.get() {
            Some(hearer) => hearer(caller),
            None => {
                let RefusedCaller { remote, reason, .. } = caller;
                self.refused.say(|| tracing::info!(%remote, %reason, "a caller was refused"));
            }
        }
    }

    /// Logs the reason why a caller was not accepted; at a low level if it left by itself.
    pub(crate) fn not_accepted(&self, remote: SocketAddr, stream_id: &str, error: &AcceptError) {
        match error {
            AcceptError::Gone => {
                let say = || tracing::debug!(%remote, "a caller did not wait for its answer");
                self.gone.say(say);
            }
            reason => {
                let reason = match reason {
                    AcceptError::Incompatible(reason) => *reason,
                    _ => RejectReason::RESOURCE,
                };
                let stream_id = stream_id.to_owned();
                self.refused(RefusedCaller { remote, stream_id, reason, by_hook: false });
            }
        }
    }

    /// Logs an error at this end.
    pub(crate) fn failed(&self, remote: SocketAddr, error: &Error) {
        let say = || tracing::warn!(%remote, %error, "a caller could not be accepted");
        self.failed.say(say);
    }

    pub(crate) fn not_joined(&self, remote: SocketAddr, error: &Error) {
        let say = || tracing::debug!(%remote, %error, "a link did not join its group");
        self.not_joined.say(say);
    }

    /// Logs the new address of the peer of an accepted connection.
    pub(crate) fn moved(&self, remote: SocketAddr) {
        self.moved.say(|| tracing::info!("the peer is at {remote} now"));
    }
}

impl Default for CallerLog {
    fn default() -> Self {
        let local = Arc::<OnceLock<SocketAddr>>::default();
        let gathered = |what: &'static str, debug: bool| {
            let local = Arc::clone(&local);
            Gathered::new(BURST, move |more| {
                let listener = local.get().map_or_else(String::new, |at| format!(" at {at}"));
                let line = format!("… and {} more {what}{listener}", grouped(more));
                match debug {
                    true => tracing::debug!("{line} in the last second"),
                    false => tracing::info!("{line} in the last second"),
                }
            })
        };
        Self {
            refused: gathered("callers were refused", false),
            gone: gathered("callers did not wait for their answers", true),
            failed: gathered("callers could not be accepted", false),
            not_joined: gathered("links did not join their groups", true),
            moved: gathered("peers moved", false),
            hearer: OnceLock::new(),
            local,
        }
    }
}

/// The number of messages of one kind that may follow each other at once.
const BURST: u32 = 10;
