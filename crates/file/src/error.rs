//! The reasons for which a transfer ends before it is complete.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use punctual::{CloseReason, PeerError};
use punctual_units::one_line;

use crate::message::MalformedMessage;
use crate::path::{PathError, RelativePath};
use crate::store::StoreError;

/// A transfer ended before it was complete, or could not begin.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder of this end could not be opened, read or written.
    #[error("{}: {error}", shown(path))]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// The source is one thing that cannot be sent; the text has its path and the reason.
    #[error("{0}")]
    Unsendable(String),
    /// A stream of bytes carries one file, and the listing has another number of them.
    #[error("a stream of bytes carries one file; a folder needs messages")]
    StreamOfSeveral,
    /// The connection failed.
    #[error(transparent)]
    Connection(#[from] punctual::Error),
    /// A message of the other end is not one of this protocol.
    #[error(transparent)]
    Malformed(#[from] MalformedMessage),
    /// A message of the other end is not one that may come at this time.
    #[error("{0} sent a message that makes no sense at this time")]
    Unexpected(Side),
    /// The receiver closed the connection before it had everything.
    #[error("the other end left before everything had arrived")]
    ReceiverLeft,
    /// The receiver reported that it cannot write what it receives.
    #[error("{0}; its log has the reason")]
    ReceiverCannotWrite(PeerError),
    /// The connection ended before the receiver had everything.
    #[error("{why} before everything had arrived{}", kept.as_ref().map(KeptFile::in_words).unwrap_or_default())]
    Interrupted {
        /// The reason.
        why: String,
        /// The file that was interrupted, if one was.
        kept: Option<KeptFile>,
    },
    /// The receiver's disk refuses a file's bytes.
    #[error("{path}: {error}{}", end_of_unwritable(kept.as_ref()))]
    CannotWrite {
        /// The file.
        path: RelativePath,
        /// The system's reason.
        error: io::Error,
        /// The file's bytes that are kept, where the transfer can say so.
        kept: Option<KeptFile>,
    },
    /// A stream of bytes ended before its file did.
    #[error("{why}; the start of {path} is kept as {}, and the file must be sent again",
        path.part_name(None))]
    StreamCutOff {
        /// The file.
        path: RelativePath,
        /// The reason.
        why: String,
    },
    /// The file of a stream of bytes cannot be written where it belongs.
    #[error("{path}: not taken: {error}")]
    NotTaken {
        /// The file.
        path: RelativePath,
        /// The reason.
        error: StoreError,
    },
    /// The file of a stream of bytes is complete, and cannot get its name.
    #[error("{path}: {error}")]
    NotFinished {
        /// The file.
        path: RelativePath,
        /// The reason.
        error: StoreError,
    },
    /// The sender left before it had sent anything, so that this was no transfer.
    #[error("the sender left before it had sent anything")]
    NothingCame,
    /// Nothing names the file of a stream of bytes.
    #[error("the caller's stream ID does not say how the file is called; give it a name by --name")]
    NoName,
    /// The name for the file of a stream of bytes is not the path of a file below the folder.
    #[error("`{}`, from {origin}, names no file: {error}", name.escape_debug())]
    BadName {
        /// The name.
        name: String,
        /// The origin of the name.
        origin: &'static str,
        /// The reason.
        error: PathError,
    },
}

/// An end of a transfer, as the other one speaks of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Side {
    /// The sender.
    Sender,
    /// The receiver.
    Receiver,
}

/// A file whose first bytes are kept under its temporary name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeptFile {
    /// The file.
    pub path: RelativePath,
    /// The temporary name.
    pub part: String,
    /// Whether the next transfer can go on behind these bytes.
    pub resumable: bool,
}

impl Error {
    /// Whether files cannot be written, here or at the other end: trying again helps only after
    /// somebody has made room.
    pub fn is_unwritable(&self) -> bool {
        matches!(self, Self::CannotWrite { .. } | Self::ReceiverCannotWrite(_))
    }

    pub(crate) fn file(path: &Path, error: io::Error) -> Self {
        Self::File { path: path.to_owned(), error }
    }
}

impl From<CloseReason> for Error {
    fn from(reason: CloseReason) -> Self {
        Self::Connection(punctual::Error::Closed(reason))
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sender => "the sender",
            Self::Receiver => "the other end",
        })
    }
}

impl KeptFile {
    fn in_words(&self) -> String {
        let Self { path, part, resumable } = self;
        if *resumable {
            format!("; the start of {path} is kept as {part}, where the next transfer goes on")
        } else {
            format!("; the start of {path} is kept as {part}")
        }
    }
}

/// The end of the message for [`Error::CannotWrite`]: a file in messages is one of several.
fn end_of_unwritable(kept: Option<&KeptFile>) -> String {
    kept.map_or_else(String::new, |kept| {
        format!(" before everything had arrived{}", kept.in_words())
    })
}

/// A path in one line, without control characters.
fn shown(path: &Path) -> String {
    one_line(&path.display().to_string()).into_owned()
}
