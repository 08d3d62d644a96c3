//! The source end of a stream that goes on over one connection after the other.

use std::sync::Arc;

use bytes::Bytes;
use punctual::resume::{Beginning, CarryError, Received, ResumableReceiver, WrittenBytes};
use punctual::{CloseReason, Error, Socket};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::endpoint::recording_place::RecordingPlace;
use crate::exit::Failure;

/// The receiver of a stream and the place of the stream in a recording, between connections.
#[derive(Clone)]
pub(crate) struct ResumedStream(Arc<Mutex<Parts>>);

struct Parts {
    receiver: ResumableReceiver,
    /// The recording that an earlier process may have begun.
    recording: Option<RecordingPlace>,
}

/// Reads messages of such a stream from one connection.
pub(crate) struct ResumedReader {
    socket: Socket,
    parts: OwnedMutexGuard<Parts>,
}

impl ResumedStream {
    /// A stream that goes on where `recording` ends, if there is one.
    pub(crate) fn new(recording: Option<RecordingPlace>) -> Self {
        let receiver = match recording.as_ref().and_then(RecordingPlace::end) {
            Some((stream, offset)) => ResumableReceiver::resuming(stream, offset),
            None => ResumableReceiver::default(),
        };
        Self(Arc::new(Mutex::new(Parts { receiver, recording })))
    }

    /// A reader from `socket`, whose ends have agreed to resume the stream; `None` while there is
    /// another one.
    pub(super) fn reader(&self, socket: Socket) -> Option<ResumedReader> {
        let mut parts = Arc::clone(&self.0).try_lock_owned().ok()?;
        parts.receiver.connected();
        Some(ResumedReader { socket, parts })
    }
}

impl ResumedReader {
    /// Appends the next messages to `batch`; returns `false` when the stream has ended and all of
    /// it is written, or this end has closed the connection. Cancel safe.
    pub(super) async fn read(&mut self, batch: &mut Vec<Bytes>) -> Result<bool, Failure> {
        loop {
            let received = match self.parts.receiver.recv(&self.socket, batch).await {
                Ok(received) => received,
                Err(CarryError::Connection(Error::Closed(CloseReason::Local))) => return Ok(false),
                Err(error) => return Err(failure(error)),
            };
            if let Received::Beginning(beginning) = received {
                self.log(beginning);
                if let Some(recording) = &mut self.parts.recording {
                    recording.begin(&beginning);
                }
            }
            match received {
                Received::End => return Ok(false),
                Received::Beginning(_) if batch.is_empty() => {}
                Received::Beginning(_) | Received::Messages => return Ok(true),
            }
        }
    }

    /// The count of bytes that are written, and the number that was read.
    pub(super) fn taken(&self) -> (WrittenBytes, u64) {
        (self.parts.receiver.written_bytes(), self.parts.receiver.taken())
    }

    fn log(&self, beginning: Beginning) {
        let peer = self.socket.peer_addr();
        if let Some(offset) = beginning.unfinished {
            tracing::warn!(
                "{peer} begins another stream; the last one had no end at byte {offset}"
            );
        }
        if beginning.missing > 0 {
            let Beginning { missing, offset, .. } = beginning;
            tracing::warn!(
                "{missing} bytes before byte {offset} are lost: the sender has them no more"
            );
        } else if beginning.is_known || beginning.offset > 0 {
            tracing::info!("the stream from {peer} goes on at byte {}", beginning.offset);
        }
    }
}

/// The failure of a connection that carries a stream.
pub(crate) fn failure(error: CarryError) -> Failure {
    match error {
        CarryError::Connection(Error::Closed(CloseReason::Peer)) => {
            Failure::runtime("the peer ended the connection, and not the stream")
        }
        CarryError::Connection(error) => error.into(),
        error => Failure::runtime(error.to_string()),
    }
}
