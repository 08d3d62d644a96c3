//! The sender of a stream that outlives its connections.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use punctual_proto::Message;
use punctual_resume::{
    Kept, MemorySpool, PeerFormat, ResumeError, Resumption, Sender, Sent, Spool, SpoolError,
    StreamSecret,
};
use thiserror::Error;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::error::Error;
use crate::resume::random::{random_nonce, random_secret};
use crate::resume::{peer_of, refuse};
use crate::socket::Socket;

/// The sender of a stream that outlives its connections. Clones send the same stream.
///
/// [`send`](Self::send) adds messages whether there is a connection or not, and
/// [`carry`](Self::carry) sends them over one connection. A connection whose other end cannot
/// resume a stream takes it, too; messages then count as delivered when the connection has taken
/// them.
#[derive(Clone)]
pub struct ResumableSender {
    shared: Arc<Shared>,
}

struct Shared {
    sender: Mutex<Sender<Box<dyn Spool + Send>>>,
    /// Is told when there is more to send.
    added: Notify,
    /// Is told when messages were confirmed.
    confirmed: Notify,
}

/// An event of a connection that carries a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Carried {
    /// The receiver told its position, and the stream goes on.
    Resumed(Resumption),
    /// More messages were given to the connection.
    Sent(Sent),
}

/// The end of a connection before the end of the stream.
#[derive(Debug, Error)]
pub enum CarryError {
    /// The connection has ended.
    #[error(transparent)]
    Connection(#[from] Error),
    /// The peer does not keep to the protocol, or the spool failed.
    #[error(transparent)]
    Protocol(#[from] ResumeError),
    /// The peer did not tell its position.
    #[error(
        "the peer does not tell at which byte of the stream it is: if it sends a stream as well, \
         one of both must be the receiver"
    )]
    NoPosition,
    /// The peer did not say where its stream goes on.
    #[error("the peer does not send a stream that goes on here")]
    NoBeginning,
    /// The operating system gives no random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(io::Error),
}

impl ResumableSender {
    /// The sender of `stream` with what `spool` keeps of it.
    pub fn new(stream: StreamSecret, spool: impl Spool + Send + 'static) -> Self {
        let sender = Mutex::new(Sender::new(stream, Box::new(spool) as Box<dyn Spool + Send>));
        let (added, confirmed) = (Notify::new(), Notify::new());
        Self { shared: Arc::new(Shared { sender, added, confirmed }) }
    }

    /// The sender of a new stream that keeps at most `limit` bytes in memory.
    ///
    /// # Errors
    ///
    /// The operating system gives no random numbers for the stream's secret.
    pub fn in_memory(limit: u64) -> io::Result<Self> {
        Ok(Self::new(random_secret()?, MemorySpool::new(limit)))
    }

    /// Adds `message` to the stream when the spool has room for it. An empty one is left out.
    ///
    /// Cancel safe: the message is added as this completes, or not.
    ///
    /// # Errors
    ///
    /// The spool cannot be written.
    pub async fn send(&self, message: Bytes) -> Result<(), ResumeError> {
        loop {
            let confirmed = self.shared.confirmed.notified();
            match self.try_send(message.clone()) {
                Err(SpoolError::Full) => confirmed.await,
                done => return Ok(done?),
            }
        }
    }

    /// Adds `message` to the stream.
    ///
    /// # Errors
    ///
    /// The spool is full, or cannot be written.
    pub fn try_send(&self, message: Bytes) -> Result<(), SpoolError> {
        self.sender().push(message)?;
        self.shared.added.notify_one();
        Ok(())
    }

    /// Ends the stream after the messages so far.
    pub fn end(&self) {
        self.sender().end();
        self.shared.added.notify_one();
    }

    /// The bytes that are kept because the receiver has not confirmed them.
    pub fn kept(&self) -> Kept {
        self.sender().kept()
    }

    /// Sends the stream over `socket` until its end is confirmed. `seen` is told the events.
    ///
    /// Cancel safe: a later call goes on over another connection.
    ///
    /// A receiver that goes on with the stream proves that it is the one that has begun it. Another
    /// one gets it only if `socket` was called by this end, or is encrypted, which takes a
    /// passphrase.
    ///
    /// # Errors
    ///
    /// The connection has ended before, or is of no use, or belongs to another receiver. The stream
    /// can go on over another one.
    pub async fn carry(
        &self,
        socket: &Socket,
        mut seen: impl FnMut(Carried),
    ) -> Result<(), CarryError> {
        let format = format_of(socket)?;
        self.sender().connected(format, peer_of(socket))?;
        let _connection = Connection(self);
        let (mut pieces, mut unsent) = (Vec::new(), Bytes::new());
        let deadline = Instant::now() + POSITION_TIMEOUT;
        loop {
            if unsent.is_empty() {
                unsent = self.next_bytes(&mut seen)?;
            }
            if unsent.is_empty() && self.sender().is_complete() {
                return Ok(());
            }
            let is_waiting = self.sender().is_waiting();
            tokio::select! {
                received = socket.recv_many(&mut pieces, BATCH) => {
                    received?;
                    let taken = self.take(&mut pieces, &mut seen);
                    if matches!(taken, Err(ResumeError::OtherReceiver)) {
                        refuse(socket, self.next_bytes(&mut seen)?).await;
                    }
                    taken?;
                }
                written = socket.write(&mut unsent), if !unsent.is_empty() => {
                    written?;
                }
                () = self.shared.added.notified(), if unsent.is_empty() => {}
                () = sleep_until(deadline), if is_waiting => return Err(CarryError::NoPosition),
            }
        }
    }

    fn take(
        &self,
        pieces: &mut Vec<Message>,
        seen: &mut impl FnMut(Carried),
    ) -> Result<(), ResumeError> {
        for piece in pieces.drain(..) {
            if let Some(resumption) = self.sender().receive(&piece.payload)? {
                seen(Carried::Resumed(resumption));
            }
        }
        self.shared.confirmed.notify_waiters();
        Ok(())
    }

    fn next_bytes(&self, seen: &mut impl FnMut(Carried)) -> Result<Bytes, ResumeError> {
        let mut sender = self.sender();
        let before = sender.sent();
        let Some(bytes) = sender.next_bytes()? else { return Ok(Bytes::new()) };
        let after = sender.sent();
        drop(sender);
        if after != before {
            let messages = after.messages - before.messages;
            seen(Carried::Sent(Sent { messages, bytes: after.bytes - before.bytes }));
        }
        // A peer that cannot resume confirms nothing, and messages are released as they are sent.
        self.shared.confirmed.notify_waiters();
        Ok(bytes)
    }

    fn sender(&self) -> MutexGuard<'_, Sender<Box<dyn Spool + Send>>> {
        self.shared.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells the sender when its connection is lost.
struct Connection<'a>(&'a ResumableSender);

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        self.0.sender().disconnected();
    }
}

fn format_of(socket: &Socket) -> Result<PeerFormat, CarryError> {
    let info = socket.info();
    Ok(match (info.resumable, info.framing) {
        (true, _) => PeerFormat::Resumable(random_nonce().map_err(CarryError::Random)?),
        (false, true) => PeerFormat::Frames,
        (false, false) => PeerFormat::Bytes,
    })
}

/// The time for which a receiver may take to tell its position. It does so at once.
const POSITION_TIMEOUT: Duration = Duration::from_secs(10);

/// Pieces of the stream back that are taken at once.
const BATCH: usize = 64;
