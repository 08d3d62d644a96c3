//! The receiver of a stream that outlives its connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use punctual_proto::Message;
use punctual_resume::{Beginning, Receiver, ResumeError, StreamSecret};
use tokio::time::{Instant, sleep_until};

use crate::resume::random::random_nonce;
use crate::resume::sender::CarryError;
use crate::resume::{peer_of, refuse};
use crate::socket::Socket;

/// The receiver of a stream that outlives its connections. It wants to know which messages are
/// [written](Self::written_bytes), so that the sender need not keep them.
pub struct ResumableReceiver {
    receiver: Receiver,
    written: WrittenBytes,
    /// Records that the connection had no room for yet.
    unsent: Bytes,
    pieces: Vec<Message>,
    next_look: Instant,
    /// The time until which the stream must go on over the connection.
    deadline: Instant,
}

/// The number of bytes that were written, of all that a [`ResumableReceiver`] has handed over.
/// Clones count together.
#[derive(Clone, Debug, Default)]
pub struct WrittenBytes(Arc<AtomicU64>);

/// The result of a receiver's work.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Received {
    /// The stream begins, or goes on; messages may have come with that.
    Beginning(Beginning),
    /// Messages have come.
    Messages,
    /// The stream has ended, all of it is written, and the sender is told.
    End,
}

impl WrittenBytes {
    /// The first `bytes` bytes that were handed over are written.
    pub fn advance_to(&self, bytes: u64) {
        self.0.fetch_max(bytes, Ordering::Relaxed);
    }

    /// The number of bytes.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Default for ResumableReceiver {
    fn default() -> Self {
        Self::with(Receiver::default())
    }
}

impl ResumableReceiver {
    /// A receiver that has the bytes of `stream` before `offset` already, for example in a file
    /// that an earlier process has written.
    pub fn resuming(stream: StreamSecret, offset: u64) -> Self {
        Self::with(Receiver::resuming(stream, offset))
    }

    /// A receiver that has all of `stream`, which ends at `offset`.
    pub fn after(stream: StreamSecret, offset: u64) -> Self {
        Self::with(Receiver::after(stream, offset))
    }

    fn with(receiver: Receiver) -> Self {
        Self {
            receiver,
            written: WrittenBytes::default(),
            unsent: Bytes::new(),
            pieces: Vec::new(),
            next_look: Instant::now(),
            deadline: Instant::now(),
        }
    }

    /// The count of bytes that are written, which the user of this advances.
    pub fn written_bytes(&self) -> WrittenBytes {
        self.written.clone()
    }

    /// The number of bytes that were handed over.
    pub fn taken(&self) -> u64 {
        self.receiver.taken()
    }

    /// Whether a stream has begun and its end has not come. Then only its sender can go on with it,
    /// or another one with a passphrase, or that this end calls.
    pub fn is_unfinished(&self) -> bool {
        self.receiver.is_unfinished()
    }

    /// The connection `socket` is established. It is to be told before the first
    /// [`recv`](Self::recv) from it.
    ///
    /// # Errors
    ///
    /// The operating system gives no random numbers.
    pub fn connected(&mut self, socket: &Socket) -> Result<(), CarryError> {
        let nonce = random_nonce().map_err(CarryError::Random)?;
        self.receiver.connected(nonce, peer_of(socket));
        self.deadline = Instant::now() + BEGINNING_TIMEOUT;
        self.unsent.clear();
        Ok(())
    }

    /// Waits for messages from `socket` and appends them to `messages`.
    ///
    /// Cancel safe: messages are taken only as this completes.
    ///
    /// # Errors
    ///
    /// The connection has ended, or is of no use, or belongs to another sender. The stream can go
    /// on over another one.
    pub async fn recv(
        &mut self,
        socket: &Socket,
        messages: &mut Vec<Bytes>,
    ) -> Result<Received, CarryError> {
        loop {
            if Instant::now() >= self.next_look {
                self.receiver.written(self.written.get());
                self.next_look = Instant::now() + CONFIRMATION_INTERVAL;
            }
            if self.unsent.is_empty() {
                self.unsent = self.receiver.next_bytes().unwrap_or_default();
            }
            if self.unsent.is_empty() && self.receiver.has_ended() && self.receiver.is_complete() {
                return Ok(Received::End);
            }
            tokio::select! {
                written = socket.write(&mut self.unsent), if !self.unsent.is_empty() => {
                    written?;
                }
                received = socket.recv_many(&mut self.pieces, BATCH),
                    if !self.receiver.has_ended() =>
                {
                    received?;
                    let taken = self.take(messages);
                    if matches!(taken, Err(CarryError::Protocol(ResumeError::OtherSender))) {
                        refuse(socket, self.receiver.next_bytes().unwrap_or_default()).await;
                    }
                    if let Some(received) = taken? {
                        return Ok(received);
                    }
                }
                () = sleep_until(self.deadline), if !self.receiver.has_begun() => {
                    return Err(CarryError::NoBeginning);
                }
                () = sleep_until(self.next_look) => {}
            }
        }
    }

    fn take(&mut self, messages: &mut Vec<Bytes>) -> Result<Option<Received>, CarryError> {
        let (before, mut beginning) = (messages.len(), None);
        for piece in self.pieces.drain(..) {
            beginning = self.receiver.receive(&piece.payload, messages)?.or(beginning);
        }
        Ok(match beginning {
            Some(beginning) => Some(Received::Beginning(beginning)),
            None => (messages.len() > before).then_some(Received::Messages),
        })
    }
}

/// The time between two confirmations.
const CONFIRMATION_INTERVAL: Duration = Duration::from_millis(50);

/// The time for the first records of a connection. A stranger must not hold the place of the sender
/// for longer.
const BEGINNING_TIMEOUT: Duration = Duration::from_secs(3);

/// Pieces of the stream that are taken at once.
const BATCH: usize = 64;
