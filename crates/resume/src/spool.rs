//! The messages that a sender keeps.

use std::io;

use bytes::Bytes;
use thiserror::Error;

/// Keeps the messages of a stream from the first byte that the receiver has not confirmed on.
pub trait Spool {
    /// The bytes that are kept.
    fn kept(&self) -> Kept;

    /// Keeps `message` after all others.
    ///
    /// # Errors
    ///
    /// There is no room for it, or a file cannot be written. Then it is not kept.
    fn push(&mut self, message: Bytes) -> Result<(), SpoolError>;

    /// The message that has the byte at `offset`, from that byte on; `None` at the end of what is
    /// kept.
    ///
    /// # Errors
    ///
    /// A file cannot be read.
    fn read(&mut self, offset: u64) -> Result<Option<Bytes>, SpoolError>;

    /// Releases the bytes before `offset`, which the receiver has confirmed.
    ///
    /// # Errors
    ///
    /// A file cannot be written.
    fn release(&mut self, offset: u64) -> Result<(), SpoolError>;

    /// Whether a receiver has begun to receive the stream.
    fn has_begun(&self) -> bool;

    /// A receiver has begun to receive the stream.
    ///
    /// # Errors
    ///
    /// A file cannot be written.
    fn begin(&mut self) -> Result<(), SpoolError>;
}

/// The bytes that a spool keeps.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Kept {
    /// The offset of the first byte that is kept.
    pub first: u64,
    /// The offset after the last one: the number of bytes that the stream has so far.
    pub end: u64,
}

impl Kept {
    /// The number of bytes.
    pub const fn len(&self) -> u64 {
        self.end - self.first
    }

    /// Whether nothing is kept.
    pub const fn is_empty(&self) -> bool {
        self.end == self.first
    }
}

/// A failure of a spool.
#[derive(Debug, Error)]
pub enum SpoolError {
    /// There is no room for the message.
    #[error("the spool is full")]
    Full,
    /// The file cannot be read or written at present, for example because the disk is full.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A byte that is kept is not in the file any more.
    #[error("the byte at {0} of the stream is not in the file any more")]
    Damaged(u64),
}

impl<S: Spool + ?Sized> Spool for Box<S> {
    fn kept(&self) -> Kept {
        (**self).kept()
    }

    fn push(&mut self, message: Bytes) -> Result<(), SpoolError> {
        (**self).push(message)
    }

    fn read(&mut self, offset: u64) -> Result<Option<Bytes>, SpoolError> {
        (**self).read(offset)
    }

    fn release(&mut self, offset: u64) -> Result<(), SpoolError> {
        (**self).release(offset)
    }

    fn has_begun(&self) -> bool {
        (**self).has_begun()
    }

    fn begin(&mut self) -> Result<(), SpoolError> {
        (**self).begin()
    }
}
