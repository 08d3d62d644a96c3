//! The log of a listener's callers, with a limited number of lines.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use punctual_proto::{AcceptError, RejectReason};
use punctual_units::grouped;

use crate::error::Error;
use crate::gathered::Gathered;

/// The log messages that callers of one listener cause, with a limit for each kind.
#[derive(Debug)]
pub(crate) struct CallerLog {
    /// The listener's address, once it listens.
    local: Arc<OnceLock<SocketAddr>>,
    refused: Gathered,
    gone: Gathered,
    failed: Gathered,
    not_joined: Gathered,
    moved: Gathered,
}

impl CallerLog {
    /// Sets the address that summary lines name.
    pub(crate) fn listens_at(&self, local: SocketAddr) {
        // With several ports, the first one names the listener.
        let _ = self.local.set(local);
    }

    pub(crate) fn refused(&self, remote: SocketAddr, reason: RejectReason) {
        self.refused.say(|| tracing::info!(%remote, %reason, "a caller was refused"));
    }

    /// Logs the reason why a caller was not accepted; at a low level if it left by itself.
    pub(crate) fn not_accepted(&self, remote: SocketAddr, error: &AcceptError) {
        match error {
            AcceptError::Gone => {
                let say = || tracing::debug!(%remote, "a caller did not wait for its answer");
                self.gone.say(say);
            }
            reason => {
                self.refused.say(|| tracing::info!(%remote, %reason, "a caller was refused"));
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
            local,
        }
    }
}

/// The number of messages of one kind that may follow each other at once.
const BURST: u32 = 10;
