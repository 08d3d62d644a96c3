//! The errors of sockets, ports and listeners.

use std::io;

use punctual_proto::{
    AcceptError, CloseReason, ConfigError, ConnectError, PeerError, RecvError, RejectReason,
    SendError,
};
use thiserror::Error;

/// An error of a socket, a port or a listener.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A waiting caller could not be accepted.
    #[error("the caller could not be accepted: {0}")]
    Accept(#[from] AcceptError),
    /// The connection has ended, or did not come to be.
    #[error("{0}")]
    Closed(CloseReason),
    /// An option's value is outside its range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A call could not be started.
    #[error("the call could not be started: {0}")]
    Connect(#[from] ConnectError),
    /// The system refused something.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Bytes of a stream were offered to a connection that carries messages.
    #[error("the connection carries messages, not a stream of bytes")]
    NoStream,
    /// The other end has said that something went wrong there. Nothing was sent. It is told once,
    /// and the connection goes on, until one end closes it.
    #[error("{0}")]
    Peer(PeerError),
    /// The message does not fit one packet or, where messages are cut, the buffers.
    #[error("the message has {size} bytes; one message holds 1 to {max} here")]
    Size {
        /// Bytes of the message.
        size: usize,
        /// Most bytes that a message of this connection may have.
        max: usize,
    },
    /// The connection is closed, and some of what the peer had sent before it left never arrived.
    #[error("the peer closed before all it had sent arrived")]
    Truncated,
    /// The runtime that drove this socket was shut down.
    #[error("the runtime that drove this socket was shut down")]
    Stopped,
}

impl Error {
    /// The code with which the peer refused the call, if it did.
    ///
    /// ```
    /// use punctual::{CloseReason, Error, RejectReason};
    ///
    /// let error = Error::Closed(CloseReason::Rejected(RejectReason::NOT_FOUND));
    /// assert_eq!(error.reject_reason(), Some(RejectReason::NOT_FOUND));
    /// ```
    pub fn reject_reason(&self) -> Option<RejectReason> {
        match self {
            Self::Closed(CloseReason::Rejected(reason)) => Some(*reason),
            _ => None,
        }
    }

    /// Why the connection ended, if that is the error.
    pub fn close_reason(&self) -> Option<&CloseReason> {
        match self {
            Self::Closed(reason) => Some(reason),
            _ => None,
        }
    }
}

impl From<RecvError> for Error {
    fn from(error: RecvError) -> Self {
        match error {
            RecvError::Closed(reason) => Self::Closed(reason),
            RecvError::Truncated => Self::Truncated,
            _ => Self::Io(io::Error::other(error)),
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Io(error) => error,
            Error::Truncated => Self::new(io::ErrorKind::UnexpectedEof, error),
            Error::Closed(CloseReason::Peer) => Self::new(io::ErrorKind::BrokenPipe, error),
            Error::Closed(_) => Self::new(io::ErrorKind::ConnectionAborted, error),
            _ => Self::other(error),
        }
    }
}

/// The result of an attempt to send.
pub(crate) enum Sent {
    /// The message was taken.
    Taken,
    /// The send buffer is full: the message is to be offered again when there is room.
    Full,
}

/// Sorts out the answer of the machine to a message.
pub(crate) fn sent(answer: Result<(), SendError>) -> Result<Sent, Error> {
    match answer {
        Ok(()) => Ok(Sent::Taken),
        Err(SendError::Full) => Ok(Sent::Full),
        Err(SendError::Size { size, max }) => Err(Error::Size { size, max }),
        Err(SendError::Closed(reason)) => Err(Error::Closed(reason)),
        Err(SendError::NoStream) => Err(Error::NoStream),
        Err(SendError::PeerError(error)) => Err(Error::Peer(error)),
        // A `Socket` is handed out only when both ends have shaken hands.
        Err(error) => Err(Error::Io(io::Error::new(io::ErrorKind::NotConnected, error))),
    }
}

/// Sorts out the answer of the machine to bytes of a stream; `None` if there was no room.
pub(crate) fn written(answer: Result<usize, SendError>) -> Result<Option<usize>, Error> {
    let taken = *answer.as_ref().unwrap_or(&0);
    match sent(answer.map(|_| ()))? {
        Sent::Taken => Ok(Some(taken)),
        Sent::Full => Ok(None),
    }
}
