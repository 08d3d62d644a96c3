//! What can go wrong with a socket.

use std::io;

use punctual_proto::{
    AcceptError, CloseReason, ConfigError, ConnectError, RecvError, RejectReason, SendError,
};
use thiserror::Error;

/// What went wrong with a socket, a port or a listener.
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
    /// The message does not fit one packet.
    #[error("the message has {size} bytes; one live message holds 1 to {max}")]
    Size {
        /// Bytes of the message.
        size: usize,
        /// Most bytes that a message of this connection may have.
        max: usize,
    },
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
            _ => Self::Io(io::Error::other(error)),
        }
    }
}

/// What an attempt to send came to.
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
        // A `Socket` is handed out only when both ends have shaken hands.
        Err(error) => Err(Error::Io(io::Error::new(io::ErrorKind::NotConnected, error))),
    }
}
