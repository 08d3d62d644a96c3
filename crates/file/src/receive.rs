//! Receiving over a connection, in the format that the sender uses.

use punctual::{Socket, Transmission};

use crate::byte_stream;
use crate::error::Error;
use crate::event::Observer;
use crate::message::Language;
use crate::receiver;
use crate::store::Store;

/// The format in which a receiver wants its files.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ReceiveFormat {
    /// The language to use if the other end knows it; [`Language::Segments`] is known by all.
    pub language: Language,
    /// The path of the file that a connection in stream mode carries; `None` takes it from the
    /// caller's stream ID.
    pub name: Option<String>,
}

impl Default for ReceiveFormat {
    /// The language of two Punctual ends, and the file's name from the caller.
    fn default() -> Self {
        Self { language: Language::Punctual, name: None }
    }
}

/// Receives files over `socket` into `store` until the sender has sent everything.
///
/// # Errors
///
/// The connection ends before everything has come, the disk does not take it, or the messages of
/// the other end make no sense. The bytes of a file that was interrupted are kept under its
/// temporary name.
///
/// # Panics
///
/// On a runtime of tokio with one thread, because it writes files on the thread of its task.
pub async fn receive(
    socket: &Socket,
    store: &Store,
    format: &ReceiveFormat,
    observer: &impl Observer,
) -> Result<(), Error> {
    match (socket.info().transmission, &format.name) {
        (Transmission::Stream, name) => {
            return byte_stream::receive(socket, store, name.as_deref(), observer).await;
        }
        (_, Some(name)) => {
            tracing::warn!("--name {name}: the sender gives its files their names itself");
        }
        (_, None) => {}
    }
    receiver::receive(socket, store, format.language, observer).await
}
