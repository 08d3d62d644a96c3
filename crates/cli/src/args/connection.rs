//! The options for the number of connections.

use std::num::NonZeroUsize;

use punctual_ends::ConnectionLimits;

use crate::args::value::Limit;

/// The number of connections, and the command's reaction to the end of one.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Connections")]
pub(crate) struct ConnectionArgs {
    /// End after this number of connections in all; -1 for no limit [default: the value of
    /// --concurrent-streams; no limit with --reconnect]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    maxconns: Option<Limit>,
    /// The number of connections at the same time
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) concurrent_streams: NonZeroUsize,
    /// Connect again, or wait for another caller, after a connection has ended or failed; at most
    /// once a second
    #[arg(long, overrides_with = "_no_reconnect")]
    reconnect: bool,
    /// End with the last connection (default)
    #[arg(long = "no-reconnect", overrides_with = "reconnect")]
    _no_reconnect: bool,
    /// Stop listening once --concurrent-streams callers have been accepted
    #[arg(long, overrides_with = "_no_close_listener")]
    close_listener: bool,
    /// Go on listening, and refuse callers beyond the limits (default)
    #[arg(long = "no-close-listener", overrides_with = "close_listener")]
    _no_close_listener: bool,
}

impl ConnectionArgs {
    /// The number of connections, and the reaction to the end of one.
    pub(crate) fn limits(&self) -> ConnectionLimits {
        let in_all = match self.maxconns {
            Some(Limit(limit)) => limit,
            None if self.reconnect => None,
            None => u64::try_from(self.concurrent_streams.get()).ok(),
        };
        ConnectionLimits {
            at_once: self.concurrent_streams,
            in_all,
            reconnect: self.reconnect,
            close_listener: self.close_listener,
        }
    }
}
