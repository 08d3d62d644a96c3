//! How many connections are made or taken.

use std::num::NonZeroUsize;

use crate::args::value::Limit;

/// How many connections are made or taken, and what happens when one ends.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Connections")]
pub(crate) struct ConnectionArgs {
    /// Connections to make or take in all; -1 for no limit [default: as many as
    /// --concurrent-streams; no limit with --reconnect]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    maxconns: Option<Limit>,
    /// Connections at a time
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) concurrent_streams: NonZeroUsize,
    /// Connect, or wait for a caller, again after a connection has ended or failed; at most once a
    /// second
    #[arg(long, overrides_with = "_no_reconnect")]
    reconnect: bool,
    /// End with the last connection (default)
    #[arg(long = "no-reconnect", overrides_with = "reconnect")]
    _no_reconnect: bool,
    /// Stop listening once --concurrent-streams callers have been taken
    #[arg(long, overrides_with = "_no_close_listener")]
    close_listener: bool,
    /// Go on listening: callers beyond the limits are refused (default)
    #[arg(long = "no-close-listener", overrides_with = "close_listener")]
    _no_close_listener: bool,
}

impl ConnectionArgs {
    /// Connections to make or take in all; `None` for no limit.
    pub(crate) fn limit(&self) -> Option<u64> {
        match self.maxconns {
            Some(Limit(limit)) => limit,
            None if self.reconnect => None,
            None => u64::try_from(self.concurrent_streams.get()).ok(),
        }
    }

    /// Whether a connection that ended or failed is followed by another.
    pub(crate) fn reconnect(&self) -> bool {
        self.reconnect
    }

    /// Whether the listener is closed once all callers are there.
    pub(crate) fn close_listener(&self) -> bool {
        self.close_listener
    }
}
