//! The end of a connection that carried files: waiting for acknowledgements, and telling the other
//! end that there will not be any more.

use std::time::Duration;

use punctual::{CloseReason, PeerError, Socket, Transmission};
use tokio::time::{sleep, timeout};

use crate::error::Error;

/// Tells the other end that this one ends the connection in the middle of a transfer.
///
/// It matters to the receiver of a stream of bytes, for which the end of the connection would be
/// the end of the file; in messages the end of a file is told explicitly, and nothing is sent.
pub fn abandon(socket: &Socket) {
    if socket.info().transmission == Transmission::Stream {
        socket.tell_error(PeerError::FILE);
    }
}

/// Tells the sender that its data cannot be written, and waits up to [`HEARING`] for it to leave. A
/// sender on libsrt looks for the report when there is room in its buffer, so data is read on.
pub(crate) async fn refuse_rest(socket: &Socket) {
    socket.tell_error(PeerError::FILE);
    let rest = async { while socket.recv().await.is_ok() {} };
    let _ = timeout(HEARING, rest).await;
}

/// Waits until the other end has acknowledged everything, or has reported that it cannot write it.
pub(crate) async fn hand_over(socket: &Socket) -> Result<(), Error> {
    let arrived = async {
        while socket.statistics().send_buffer_packets > 0 && socket.info().peer_error.is_none() {
            sleep(LOOK).await;
        }
    };
    tokio::select! {
        biased;
        () = arrived => Ok(()),
        reason = socket.closed() => match reason {
            CloseReason::Peer => Err(Error::ReceiverLeft),
            reason => Err(reason.into()),
        },
    }
}

/// Whether the other end has closed the connection.
pub(crate) async fn has_left(socket: &Socket) -> bool {
    tokio::select! {
        biased;
        reason = socket.closed() => reason == CloseReason::Peer,
        () = std::future::ready(()) => false,
    }
}

/// How long a sender may take to see the report that its files cannot be written.
const HEARING: Duration = Duration::from_secs(2);

/// How often the send buffer is checked.
const LOOK: Duration = Duration::from_millis(10);
