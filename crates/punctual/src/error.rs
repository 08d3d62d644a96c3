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
    /// The connection has ended, or was never established.
    #[error("{0}")]
    Closed(CloseReason),
    /// An option's value is outside its range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A call could not be started.
    #[error("the call could not be started: {0}")]
    Connect(#[from] ConnectError),
    /// The operating system reported an error.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A port whose carriage is QUIC has no certificate and key to listen with.
    #[cfg(feature = "quic")]
    #[error("listening over QUIC needs a certificate and its key")]
    NoIdentity,
    /// Rendezvous is not possible over QUIC.
    #[cfg(feature = "quic")]
    #[error("a rendezvous is not possible over QUIC: one end must listen")]
    NoRendezvous,
    /// A port whose carriage is QUIC does not know which certificates to trust when it calls.
    #[cfg(feature = "quic")]
    #[error("a call over QUIC needs certificates to trust")]
    NoTrust,
    /// Certificates or keys cannot be used.
    #[cfg(feature = "quic")]
    #[error(transparent)]
    Tls(#[from] punctual_quic::tls::TlsConfigError),
    /// A QUIC connection could not be started.
    #[cfg(feature = "quic")]
    #[error("the call could not be started: {0}")]
    Quic(#[from] punctual_quic::QuicConnectError),
    /// Bytes of a stream were written to a connection that carries messages.
    #[error("the connection carries messages, not a stream of bytes")]
    NoStream,
    /// The peer has reported an error, and nothing was sent. The error is returned once; the
    /// connection stays open until one end closes it.
    #[error("{0}")]
    Peer(PeerError),
    /// The message is empty, or does not fit into one packet or, if messages are split over
    /// packets, into the buffers.
    #[error("the message has {size} bytes; on this connection it must have 1 to {max}")]
    Size {
        /// Bytes of the message.
        size: usize,
        /// The largest size of a message on this connection, bytes.
        max: usize,
    },
    /// The connection is closed, and some data that the peer had sent before it closed never
    /// arrived.
    #[error("the peer closed before all its data arrived")]
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

    /// The reason why the connection ended, if this error says so.
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
    /// The message is in the send buffer.
    Taken,
    /// The send buffer is full: send the message again when there is room.
    Full,
}

/// Converts the protocol's result of sending a message.
pub(crate) fn sent(answer: Result<(), SendError>) -> Result<Sent, Error> {
    match answer {
        Ok(()) => Ok(Sent::Taken),
        Err(SendError::Full) => Ok(Sent::Full),
        Err(SendError::Size { size, max }) => Err(Error::Size { size, max }),
        Err(SendError::Closed(reason)) => Err(Error::Closed(reason)),
        Err(SendError::NoStream) => Err(Error::NoStream),
        Err(SendError::PeerError(error)) => Err(Error::Peer(error)),
        // Unreachable in practice: a `Socket` is returned only after the handshake.
        Err(error) => Err(Error::Io(io::Error::new(io::ErrorKind::NotConnected, error))),
    }
}

/// Converts the protocol's result of writing bytes of a stream; `None` if there was no room.
pub(crate) fn written(answer: Result<usize, SendError>) -> Result<Option<usize>, Error> {
    let taken = *answer.as_ref().unwrap_or(&0);
    match sent(answer.map(|_| ()))? {
        Sent::Taken => Ok(Some(taken)),
        Sent::Full => Ok(None),
    }
}
