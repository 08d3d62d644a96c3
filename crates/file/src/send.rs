//! Sending over a connection, in the format that it and the other end allow.

use punctual::{Socket, Transmission};

use crate::byte_stream;
use crate::error::Error;
use crate::event::{Event, Observer};
use crate::handover::{hand_over, has_left};
use crate::message::Language;
use crate::sender;
use crate::source::Listing;

/// The format in which a sender puts files into messages. A connection in stream mode ignores it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SendFormat {
    /// Most bytes of a message; at least 8,000, so that it holds the longest path.
    pub segment: usize,
    /// The language to use if the other end knows it; [`Language::Segments`] is known by all.
    pub language: Language,
}

impl Default for SendFormat {
    /// The segments of srt-xtransmit's size, and the language of two Punctual ends.
    fn default() -> Self {
        Self { segment: 1_456_000, language: Language::Punctual }
    }
}

/// Sends all files of `listing` over `socket`, and returns when the receiver's side of the
/// connection has acknowledged everything. The problems of the listing are reported first.
///
/// # Errors
///
/// The connection fails, the receiver leaves or cannot write, or the messages of the other end make
/// no sense. In segments and in a stream of bytes, also a file that cannot be read to its end.
///
/// # Panics
///
/// On a runtime of tokio with one thread, because it reads files on the thread of its task.
pub async fn send(
    socket: &Socket,
    listing: &Listing,
    format: SendFormat,
    observer: &impl Observer,
) -> Result<(), Error> {
    listing.problems.iter().for_each(|problem| observer.observe(Event::Problem(problem)));
    let sent = match send_files(socket, listing, format, observer).await {
        Ok(()) => hand_over(socket).await,
        Err(error) => Err(error),
    };
    match (sent, socket.info().peer_error) {
        (_, Some(error)) => Err(Error::ReceiverCannotWrite(error)),
        (Err(_), None) if has_left(socket).await => Err(Error::ReceiverLeft),
        (sent, None) => sent,
    }
}

async fn send_files(
    socket: &Socket,
    listing: &Listing,
    format: SendFormat,
    observer: &impl Observer,
) -> Result<(), Error> {
    if socket.info().transmission != Transmission::Stream {
        return sender::send(socket, listing, format, observer).await;
    }
    let [file] = listing.files.as_slice() else { return Err(Error::StreamOfSeveral) };
    byte_stream::send(socket, file, observer).await
}
