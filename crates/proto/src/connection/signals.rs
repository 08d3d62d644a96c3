//! The changes of a connection that the application hears of by events.

use crate::error::CloseReason;

/// The changes since the endpoint last took them.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an event of its own")]
pub(crate) struct ConnectionSignals {
    /// The connection is established.
    pub(crate) connected: bool,
    /// A message is due.
    pub(crate) readable: bool,
    /// The send buffer has room again, or sending fails now.
    pub(crate) writable: bool,
    /// The peer has moved to another path.
    pub(crate) moved: bool,
    /// There is something for the group that the connection is a link of.
    pub(crate) news: bool,
    pub(crate) closed: Option<CloseReason>,
}

impl ConnectionSignals {
    pub(crate) const fn any(&self) -> bool {
        self.connected
            || self.readable
            || self.writable
            || self.moved
            || self.news
            || self.closed.is_some()
    }
}
