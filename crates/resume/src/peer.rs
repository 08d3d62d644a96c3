//! The peer of a connection, by what the connection says of it.

/// The peer of a connection, by what the connection says of it before it proves anything.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ResumePeer {
    /// Anybody may have called.
    Anybody,
    /// The peer has the passphrase, or this end has called its address. It may begin a stream anew
    /// in the middle of another one.
    Chosen,
}
