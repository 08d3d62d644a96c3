//! Messages in a stream of bytes: their boundaries are kept by frames, if both ends agreed on that.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use punctual::{FrameReader, Outgoing, Socket, write_frame};

use crate::failure::Failure;

/// Writes messages as frames of a stream of bytes.
pub(crate) struct FrameWriter {
    socket: Socket,
    /// Frames, or the rest of them, that the connection had no room for yet.
    pending: Bytes,
}

impl FrameWriter {
    /// Writes to `socket`, whose ends have agreed on frames.
    pub(super) fn new(socket: Socket) -> Self {
        Self { socket, pending: Bytes::new() }
    }

    /// Another writer to the same socket.
    pub(super) fn again(&self) -> Self {
        Self::new(self.socket.clone())
    }

    /// Writes all of `batch`, waiting for room as long as it takes. Cancel safe: messages are still
    /// in `batch`, or kept for the next call.
    pub(super) async fn write<M>(&mut self, batch: &mut VecDeque<M>) -> Result<(), Failure>
    where
        M: Clone + Into<Outgoing>,
    {
        loop {
            while !self.pending.is_empty() {
                self.socket.write(&mut self.pending).await?;
            }
            if batch.is_empty() {
                return Ok(());
            }
            self.pending = frames_of(batch)?;
        }
    }

    /// Writes what there is room for now, without waiting: messages are still in `batch`, or kept
    /// for the next call.
    pub(super) fn try_write<M>(&mut self, batch: &mut VecDeque<M>) -> Result<(), Failure>
    where
        M: Clone + Into<Outgoing>,
    {
        loop {
            while !self.pending.is_empty() {
                if self.socket.try_write(&mut self.pending)?.is_none() {
                    return Ok(());
                }
            }
            if batch.is_empty() {
                return Ok(());
            }
            self.pending = frames_of(batch)?;
        }
    }

    /// Ends the stream after the rest of a frame that was begun.
    pub(super) async fn close(&mut self) {
        let mut rest = std::mem::take(&mut self.pending);
        while !rest.is_empty() && self.socket.write(&mut rest).await.is_ok() {}
        self.socket.close().await;
    }
}

/// Takes messages from the front of `batch`, and gives their frames side by side, since each write
/// begins a new packet.
fn frames_of<M: Into<Outgoing>>(batch: &mut VecDeque<M>) -> Result<Bytes, Failure> {
    let mut frames = BytesMut::new();
    while frames.len() < ENOUGH
        && let Some(message) = batch.pop_front()
    {
        write_frame(&message.into().payload, &mut frames)
            .map_err(|error| Failure::runtime(format!("{error}; `framing=off` sends any bytes")))?;
    }
    Ok(frames.freeze())
}

/// Appends the messages that are complete after `bytes` to `batch`.
pub(super) fn take_in(
    frames: &mut FrameReader,
    bytes: &[u8],
    batch: &mut Vec<Bytes>,
) -> Result<(), Failure> {
    frames.push(bytes);
    while let Some(message) = frames.next_message().map_err(damaged)? {
        batch.push(message);
    }
    Ok(())
}

/// Checks that a stream did not end inside a frame.
pub(super) fn finish(frames: &FrameReader) -> Result<(), Failure> {
    frames.finish().map_err(damaged)
}

fn damaged(error: punctual::FrameError) -> Failure {
    Failure::runtime(error.to_string())
}

/// Bytes of frames that are written at once; more would only use memory.
const ENOUGH: usize = 16_384;

#[cfg(test)]
mod tests {
    use punctual::{Config, Listener};

    use super::*;

    async fn pair() -> (Socket, Socket) {
        let config = Config::file().with_framing(true);
        let listener =
            Listener::bind("127.0.0.1:0".parse().unwrap(), config.clone()).await.unwrap();
        let call = Socket::connect(listener.local_addr(), config);
        let (caller, accepted) = tokio::join!(call, listener.accept());
        (caller.unwrap(), accepted.unwrap())
    }

    #[tokio::test]
    async fn datagrams_of_any_size_keep_their_boundaries() {
        let (caller, accepted) = pair().await;
        assert!(caller.info().framing && accepted.info().framing);
        let messages: Vec<Bytes> = [0, 1, 188, 1_316, 1_452, 1_456, 9_000, 65_507, 7]
            .map(|len| vec![7; len].into())
            .into();
        let send = async {
            let mut writer = FrameWriter::new(caller);
            writer.write(&mut messages.clone().into()).await.unwrap();
            writer.close().await;
        };
        let receive = async {
            let (mut frames, mut batch) = (FrameReader::default(), Vec::new());
            while let Ok(piece) = accepted.recv().await {
                take_in(&mut frames, &piece.payload, &mut batch).unwrap();
            }
            finish(&frames).unwrap();
            batch
        };
        let ((), received) = tokio::join!(send, receive);
        assert_eq!(received, messages);
    }

    #[tokio::test]
    async fn a_writer_that_is_interrupted_goes_on_inside_its_frame() {
        let (caller, accepted) = pair().await;
        let mut writer = FrameWriter::new(caller);
        let mut batch: VecDeque<Bytes> = (0..40_000_u32)
            .map(|number| [&number.to_be_bytes()[..], &[7; 1_000]].concat().into())
            .collect();
        let send = async {
            while !batch.is_empty() || !writer.pending.is_empty() {
                let write = writer.write(&mut batch);
                let _ = tokio::time::timeout(std::time::Duration::from_millis(1), write).await;
            }
            writer.close().await;
        };
        let receive = async {
            let (mut frames, mut received, mut next) = (FrameReader::default(), Vec::new(), 0_u32);
            while let Ok(piece) = accepted.recv().await {
                take_in(&mut frames, &piece.payload, &mut received).unwrap();
                for message in received.drain(..) {
                    assert_eq!(message[..4], next.to_be_bytes());
                    next += 1;
                }
            }
            assert_eq!(next, 40_000);
        };
        tokio::join!(send, receive);
    }

    #[test]
    fn a_message_that_fits_no_frame_is_an_error_with_a_remedy() {
        let mut batch = VecDeque::from([Bytes::from(vec![0; 70_000])]);
        let failure = frames_of(&mut batch).unwrap_err().to_string();
        assert!(failure.contains("70000 bytes") && failure.contains("framing=off"), "{failure}");
    }
}
