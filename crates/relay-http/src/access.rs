//! The rights of those who call by HTTP.

use std::net::IpAddr;
use std::time::Duration;

use crate::relay::{Answer, Ticket};

/// Decides about callers by HTTP.
pub trait Access: Send + Sync + 'static {
    /// Whether this caller has this right.
    fn decide<'a>(&'a self, caller: &'a Caller, right: &'a Right) -> Answer<'a, Verdict>;

    /// A ticket for a right to one stream that this caller has; `None` if there are too many
    /// tickets now.
    fn ticket<'a>(&'a self, caller: &'a Caller, right: &'a Right) -> Answer<'a, Option<Ticket>>;
}

/// A caller by HTTP.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Caller {
    /// The address; behind a trusted proxy the one that the proxy tells.
    pub address: IpAddr,
    /// The proof of who calls.
    pub credential: Credential,
}

/// A proof of who calls. `Debug` hides secrets.
#[derive(Clone, Default, Eq, PartialEq)]
pub enum Credential {
    /// No proof.
    #[default]
    None,
    /// `Authorization: Bearer`: a token.
    Bearer(String),
    /// `Authorization: Basic`: a name and a password.
    Basic {
        /// The user's name.
        user: String,
        /// The password.
        password: String,
    },
    /// `?ticket=`: a ticket of [`Access::ticket`].
    Ticket(String),
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Bearer(_) => f.write_str("Bearer(…)"),
            Self::Basic { user, .. } => write!(f, "Basic({user}, …)"),
            Self::Ticket(_) => f.write_str("Ticket(…)"),
        }
    }
}

/// A right.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Right {
    /// Read reports, events and the page.
    Read,
    /// Kick, switch, record, forward. Contains `Read`.
    Operate,
    /// Change the configuration, reload, drain. Contains `Operate`.
    Administer,
    /// Scrape metrics.
    Metrics,
    /// View this stream.
    View(String),
    /// Take the recordings of this stream.
    Playback(String),
}

/// The terms of a caller that has a right.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Allowed {
    /// The caller's name, if the caller has one.
    pub user: Option<String>,
    /// The time after which a view ends.
    pub lifetime: Option<Duration>,
}

/// The decision about a caller.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// Allowed, on these terms.
    Allowed(Allowed),
    /// The caller has to tell who calls: 401.
    Unknown,
    /// This caller has not this right: 403.
    Forbidden,
}
