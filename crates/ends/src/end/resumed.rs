//! The source end of a stream that goes on over one connection after the other.

use std::sync::Arc;

use bytes::Bytes;
use punctual::resume::{
    Beginning, CarryError, Received, ResumableReceiver, ResumeError, WrittenBytes,
};
use punctual::{CloseReason, Error, Socket};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::end::recording_place::{PlaceEnd, RecordingPlace};
use crate::failure::Failure;

/// The receiver of a stream and the place of the stream in a recording, between connections.
#[derive(Clone)]
pub struct ResumedStream(Arc<Mutex<ResumedParts>>);

struct ResumedParts {
    receiver: ResumableReceiver,
    /// The recording that an earlier process may have begun.
    recording: Option<RecordingPlace>,
}

/// Reads messages of such a stream from one connection.
pub(crate) struct ResumedReader {
    socket: Socket,
    parts: OwnedMutexGuard<ResumedParts>,
    /// The reason for which nothing is read.
    refused: Option<Failure>,
}

impl ResumedStream {
    /// A stream that goes on where `recording` ends, if there is one.
    pub fn new(recording: Option<RecordingPlace>) -> Self {
        let receiver = match recording.as_ref().and_then(RecordingPlace::end) {
            Some(PlaceEnd { stream, offset, is_complete: false }) => {
                ResumableReceiver::resuming(stream, offset)
            }
            Some(PlaceEnd { stream, offset, is_complete: true }) => {
                ResumableReceiver::after(stream, offset)
            }
            None => ResumableReceiver::default(),
        };
        Self(Arc::new(Mutex::new(ResumedParts { receiver, recording })))
    }

    /// A reader from `socket`; `None` for a peer that cannot resume a stream, unless one waits to
    /// go on: then its bytes must not come into the middle of it. While there is another reader,
    /// `None` as well, and the connection is ended.
    pub(super) fn reader(&self, socket: Socket) -> Option<ResumedReader> {
        let Ok(mut parts) = Arc::clone(&self.0).try_lock_owned() else {
            socket.begin_abort();
            return None;
        };
        let refused = if socket.info().resumable {
            parts.receiver.connected(&socket).err().map(failure)
        } else if parts.receiver.is_unfinished() {
            let why = "the peer cannot go on with the stream here, which has not ended: it is \
                       refused";
            Some(Failure::runtime(format!("{why}; {}", parts.remedy())))
        } else {
            if let Some(recording) = &mut parts.recording {
                recording.give_up();
            }
            return None;
        };
        Some(ResumedReader { socket, parts, refused })
    }
}

impl ResumedParts {
    /// The way to take another stream than the one that has not ended.
    fn remedy(&self) -> String {
        match self.recording.as_ref().and_then(RecordingPlace::file) {
            Some(file) => format!(
                "to take another stream, remove {} and start this end again",
                file.display()
            ),
            None => "to take another stream, start this end again".to_owned(),
        }
    }
}

impl ResumedReader {
    /// Appends the next messages to `batch`; returns `false` when the stream has ended and all of
    /// it is written, or this end has closed the connection. Cancel safe.
    pub(super) async fn read(&mut self, batch: &mut Vec<Bytes>) -> Result<bool, Failure> {
        if let Some(refused) = self.refused.take() {
            return Err(refused);
        }
        loop {
            let received = match self.parts.receiver.recv(&self.socket, batch).await {
                Ok(received) => received,
                Err(CarryError::Connection(Error::Closed(CloseReason::Local))) => return Ok(false),
                Err(error @ CarryError::Protocol(ResumeError::OtherSender)) => {
                    let remedy = self.parts.remedy();
                    return Err(Failure::runtime(format!("{error}; {remedy}")));
                }
                Err(error) => return Err(failure(error)),
            };
            if let Received::Beginning(beginning) = received {
                self.log(beginning);
                if let Some(recording) = &mut self.parts.recording {
                    recording.begin(&beginning);
                }
            }
            match received {
                Received::End => {
                    if let Some(recording) = &mut self.parts.recording {
                        recording.complete();
                    }
                    return Ok(false);
                }
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
