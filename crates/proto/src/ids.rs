//! The names of an endpoint's connections and callers.

/// Names a connection of one endpoint. Never used again for another connection.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ConnectionId {
    serial: u64,
    index: usize,
}

impl ConnectionId {
    /// The connection that the endpoint made as this one in number, at this place of its table.
    pub(crate) const fn new(serial: u64, index: usize) -> Self {
        Self { serial, index }
    }

    /// Its place in the endpoint's table.
    pub(crate) const fn index(self) -> usize {
        self.index
    }
}

/// The ID of a caller that waits for the application's answer.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct IncomingId(pub(crate) u64);
