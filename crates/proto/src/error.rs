//! The errors of each operation, and the reasons why connections end.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use punctual_units::DisplayDuration;
use punctual_wire::RejectReason;
use thiserror::Error;

/// An option's value is outside its range.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{option} is {value}; it must be {expected}")]
pub struct ConfigError {
    /// The option's name, as in libsrt, lower case.
    pub option: &'static str,
    /// The value that was given.
    pub value: String,
    /// The range or form that is accepted.
    pub expected: &'static str,
}

/// A call could not be started.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ConnectError {
    /// The address cannot be called, for example port 0.
    #[error("{0} is not an address that can be called")]
    InvalidAddress(crate::path::PathId),
    /// This endpoint has a rendezvous with that address already.
    #[error("a rendezvous with {0} is under way already")]
    RendezvousUnderWay(crate::path::PathId),
    /// This endpoint holds as many connections as its configuration allows.
    #[error("the endpoint already holds its maximum of {0} connections")]
    TooManyConnections(usize),
}

/// A caller could not be accepted.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum AcceptError {
    /// The caller has withdrawn, timed out or been answered already.
    #[error("the caller no longer waits for an answer")]
    Gone,
    /// The configuration and the caller's request are not compatible; the caller was rejected.
    #[error("the caller is not compatible with the configuration: {0}")]
    Incompatible(RejectReason),
    /// This endpoint holds as many connections as its configuration allows.
    #[error("the endpoint already holds its maximum of {0} connections")]
    TooManyConnections(usize),
}

/// A message could not be taken for sending.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum SendError {
    /// The send buffer is full; [`Event::Writable`](crate::Event::Writable) will follow.
    #[error("the send buffer is full")]
    Full,
    /// The message is empty, or does not fit into one packet or, if messages are split over
    /// packets, into the buffers.
    #[error("the message has {size} bytes; on this connection it must have 1 to {max}")]
    Size {
        /// Bytes of the message.
        size: usize,
        /// The largest size of a message on this connection, bytes.
        max: usize,
    },
    /// Bytes of a stream were written to a connection that carries messages.
    #[error("the connection carries messages, not a stream of bytes")]
    NoStream,
    /// The handshake is not complete.
    #[error("the connection is not established yet")]
    NotConnected,
    /// The peer has reported an error, and nothing was sent. The error is returned once; the
    /// connection stays open, and the application decides whether to continue.
    #[error("{0}")]
    PeerError(PeerError),
    /// The connection is closed or closing.
    #[error("the connection is closed: {0}")]
    Closed(CloseReason),
}

/// An error that the peer reports by a PEERERROR packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PeerError(u32);

impl PeerError {
    /// The peer could not write received data to its file. libsrt has no other code
    /// (`srt_recvfile`).
    pub const FILE: Self = Self(4_000);

    pub(crate) const fn new(code: u32) -> Self {
        Self(code)
    }

    /// The code on the wire.
    pub const fn code(self) -> u32 {
        self.0
    }
}

impl fmt::Display for PeerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::FILE => f.write_str("the peer could not write the received data"),
            Self(code) => write!(f, "the peer reported error {code}"),
        }
    }
}

/// A message could not be received.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum RecvError {
    /// The connection is closed, and some data that the peer had sent before it closed never
    /// arrived: the received data are incomplete.
    #[error("the peer closed before all its data arrived")]
    Truncated,
    /// The connection is closed and everything received has been read.
    #[error("the connection is closed: {0}")]
    Closed(CloseReason),
}

/// The reason why a connection ended, or was never established.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum CloseReason {
    /// This end closed the connection.
    #[error("closed by this end")]
    Local,
    /// The peer sent SHUTDOWN.
    #[error("closed by the peer")]
    Peer,
    /// The caller gave up before it received the acceptance.
    #[error("the caller gave up before it received the acceptance")]
    Withdrawn,
    /// The peer was silent, and its host called again for the same stream: the new call replaces
    /// this connection (see [`EndpointConfig::max_callers`](crate::EndpointConfig::max_callers)).
    #[error("the peer was silent and called again")]
    Replaced,
    /// The peer was silent for the idle timeout.
    #[error("the peer was silent for {time:#}", time = DisplayDuration(*.0))]
    Idle(Duration),
    /// The peer did not answer the call in time.
    #[error("no answer within {time:#}", time = DisplayDuration(*.0))]
    ConnectTimeout(Duration),
    /// The listener answered the induction, but no answer to the conclusion came in time. It may
    /// have accepted the call: its answers may have been lost, and a listener that closes at once
    /// does not repeat them.
    #[error(
        "no answer within {time:#}, though the listener is there and may have taken the call",
        time = DisplayDuration(*.0)
    )]
    ConclusionTimeout(Duration),
    /// The peer refused the call.
    #[error("{0}")]
    Rejected(RejectReason),
    /// The peer's handshake cannot be accepted.
    #[error("the peer's handshake is not acceptable: {0}")]
    Incompatible(RejectReason),
    /// The carriage has lost the path to the peer, for this reason
    /// ([`Endpoint::lose_path`](crate::Endpoint::lose_path)).
    #[error("{0}")]
    PathLost(Arc<str>),
}
