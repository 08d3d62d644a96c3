//! Errors by operation, and why a connection ended.

use std::fmt;
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
    /// It has withdrawn, timed out or been answered already.
    #[error("the caller is no longer waiting")]
    Gone,
    /// The configuration and the caller's request do not fit; the caller was told so.
    #[error("the caller does not fit the configuration: {0}")]
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
    /// The message does not fit one packet or, where messages are cut, the buffers.
    #[error("the message has {size} bytes; one message holds 1 to {max} here")]
    Size {
        /// Bytes of the message.
        size: usize,
        /// Most bytes that a message may have.
        max: usize,
    },
    /// Bytes of a stream were offered to a connection that carries messages.
    #[error("the connection carries messages, not a stream of bytes")]
    NoStream,
    /// The handshake is not complete.
    #[error("the connection does not stand yet")]
    NotConnected,
    /// The peer has said that something went wrong there. Nothing was taken. It is told once, and
    /// the connection goes on: whether to go on sending is the application's decision.
    #[error("{0}")]
    PeerError(PeerError),
    /// The connection is closed or closing.
    #[error("the connection is closed: {0}")]
    Closed(CloseReason),
}

/// An error at the other end of a transfer, which it reports by a PEERERROR packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PeerError(u32);

impl PeerError {
    /// It could not write what it received to its file. libsrt knows no other (`srt_recvfile`).
    pub const FILE: Self = Self(4_000);

    pub(crate) const fn new(code: u32) -> Self {
        Self(code)
    }

    /// The number by which it goes on the wire.
    pub const fn code(self) -> u32 {
        self.0
    }
}

impl fmt::Display for PeerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::FILE => f.write_str("the other end could not write what it received"),
            Self(code) => write!(f, "something went wrong at the other end (error {code})"),
        }
    }
}

/// A message could not be received.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum RecvError {
    /// The connection is closed, and some of what the peer had sent before it left never arrived:
    /// what was read is not all.
    #[error("the peer closed before all it had sent arrived")]
    Truncated,
    /// The connection is closed and everything received has been read.
    #[error("the connection is closed: {0}")]
    Closed(CloseReason),
}

/// Why a connection ended, or did not come to be.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum CloseReason {
    /// This end closed it.
    #[error("closed by this end")]
    Local,
    /// The peer said SHUTDOWN.
    #[error("closed by the peer")]
    Peer,
    /// The caller gave up before it had heard that it was accepted.
    #[error("the caller gave up before it heard that it was accepted")]
    Withdrawn,
    /// The peer was silent, and its host called again for the same stream: the new call has its
    /// place (see [`EndpointConfig::max_callers`](crate::EndpointConfig::max_callers)).
    #[error("the peer was silent and called again")]
    Replaced,
    /// The peer was silent for too long.
    #[error("the peer was silent for {time:#}", time = DisplayDuration(*.0))]
    Idle(Duration),
    /// The peer did not answer the call in time.
    #[error("no answer within {time:#}", time = DisplayDuration(*.0))]
    ConnectTimeout(Duration),
    /// The listener is there, for it answered the first handshake, but no answer came to the second
    /// one in time. It may have taken the call: then its answers got lost on the way, and one that
    /// closed at once gives no more.
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
}
