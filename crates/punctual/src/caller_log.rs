//! The log of a listener's callers: few lines, however many call.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use punctual_proto::{AcceptError, RejectReason};
use punctual_units::grouped;

use crate::error::Error;
use crate::gathered::Gathered;

/// The messages that callers of one listener cause, gathered by kind.
#[derive(Debug)]
pub(crate) struct CallerLog {
    /// Where the listener listens, once it does.
    local: Arc<OnceLock<SocketAddr>>,
    refused: Gathered,
    gone: Gathered,
    failed: Gathered,
    not_joined: Gathered,
    moved: Gathered,
}

impl CallerLog {
    /// From now on lines that sum up name this address.
    pub(crate) fn listens_at(&self, local: SocketAddr) {
        // Of several ports the first names the listener.
        let _ = self.local.set(local);
    }

    pub(crate) fn refused(&self, remote: SocketAddr, reason: RejectReason) {
        self.refused.say(|| tracing::info!(%remote, %reason, "a caller was refused"));
    }

    /// Why a caller was not accepted. One that left is no news.
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

    /// Something went wrong at this end.
    pub(crate) fn failed(&self, remote: SocketAddr, error: &Error) {
        let say = || tracing::warn!(%remote, %error, "a caller could not be accepted");
        self.failed.say(say);
    }

    pub(crate) fn not_joined(&self, remote: SocketAddr, error: &Error) {
        let say = || tracing::debug!(%remote, %error, "a link did not join its group");
        self.not_joined.say(say);
    }

    /// The peer of an accepted connection has another address.
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

/// Messages of one kind that may follow each other at once.
const BURST: u32 = 10;
