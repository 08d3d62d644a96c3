//! Messages on unidirectional streams, one stream each: reliable, and in no order among each other.

use std::collections::{BTreeMap, VecDeque};

use crate::inbox::QuicInbox;
use bytes::{Bytes, BytesMut};
use quinn_proto::{
    Connection, Dir, FinishError, ReadError, ReadableError, StreamId, VarInt, WriteError,
};

/// The error code for a stream whose message is too long.
const TOO_LONG: VarInt = VarInt::from_u32(1);

/// Bytes of messages that are not complete, at most; a message that would take more is given up.
/// Our own sender has no more than 10 MB under way.
const PARTIAL: usize = 64 << 20;

/// The messages of a connection in both directions.
#[derive(Debug)]
pub(crate) struct Messages {
    /// Messages that wait for a stream.
    waiting: VecDeque<Bytes>,
    /// The rest of each message that is being written.
    sending: BTreeMap<StreamId, Bytes>,
    receiving: BTreeMap<StreamId, BytesMut>,
    received: QuicInbox,
    /// Bytes of messages that are not complete.
    partial: usize,
    sent: u64,
    /// Bytes of the longest message that is taken.
    longest: usize,
}

impl Messages {
    /// Messages of at most `longest` bytes, of which `limit` bytes wait for the application.
    pub(crate) const fn new(longest: usize, limit: usize) -> Self {
        Self {
            waiting: VecDeque::new(),
            sending: BTreeMap::new(),
            receiving: BTreeMap::new(),
            received: QuicInbox::new(limit),
            partial: 0,
            sent: 0,
            longest,
        }
    }

    /// Sends a message.
    pub(crate) fn send(&mut self, connection: &mut Connection, message: Bytes) {
        self.sent += 1;
        self.waiting.push_back(message);
        self.open_streams(connection);
    }

    /// Messages that were sent or wait.
    pub(crate) const fn sent(&self) -> u64 {
        self.sent
    }

    /// Messages that are not yet written to quinn.
    pub(crate) fn unsent(&self) -> usize {
        self.waiting.len() + self.sending.len()
    }

    /// Opens streams for waiting messages, as many as the peer allows.
    pub(crate) fn open_streams(&mut self, connection: &mut Connection) {
        while !self.waiting.is_empty()
            && let Some(stream) = connection.streams().open(Dir::Uni)
            && let Some(message) = self.waiting.pop_front()
        {
            self.sending.insert(stream, message);
            self.write(connection, stream);
        }
    }

    /// Writes more of the message of a stream.
    pub(crate) fn write(&mut self, connection: &mut Connection, stream: StreamId) {
        let Some(rest) = self.sending.get_mut(&stream) else { return };
        let mut sender = connection.send_stream(stream);
        // quinn reports room only to a stream that it has told that there is none.
        while !rest.is_empty() {
            match sender.write_chunks(std::slice::from_mut(rest)) {
                Ok(_) => {}
                Err(WriteError::Blocked) => return,
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => {
                    return self.give_up(connection, stream);
                }
            }
        }
        // A stream that the peer has stopped meanwhile needs no end.
        let _: Result<(), FinishError> = sender.finish();
        self.sending.remove(&stream);
    }

    /// Gives up the message of a stream that the peer does not read.
    pub(crate) fn give_up(&mut self, connection: &mut Connection, stream: StreamId) {
        if self.sending.remove(&stream).is_some() {
            // It may have ended already.
            let _ = connection.send_stream(stream).reset(TOO_LONG);
        }
    }

    /// Accepts the streams that the peer has opened, and reads them.
    pub(crate) fn accept(&mut self, connection: &mut Connection) {
        while !self.received.is_full()
            && let Some(stream) = connection.streams().accept(Dir::Uni)
        {
            self.receiving.insert(stream, BytesMut::new());
            self.read(connection, stream);
        }
    }

    /// Reads more of the message of a stream.
    pub(crate) fn read(&mut self, connection: &mut Connection, stream: StreamId) {
        let Some(message) = self.receiving.get_mut(&stream) else { return };
        let (before, most) = (message.len(), self.longest.min(PARTIAL - self.partial.min(PARTIAL)));
        let mut receiver = connection.recv_stream(stream);
        let end = match receiver.read(true) {
            Ok(mut chunks) => {
                let end = loop {
                    match chunks.next(usize::MAX) {
                        Ok(Some(chunk)) if message.len() + chunk.bytes.len() <= most => {
                            message.extend_from_slice(&chunk.bytes);
                        }
                        Ok(Some(_)) => break End::TooLong,
                        Ok(None) => break End::Complete,
                        Err(ReadError::Blocked) => break End::None,
                        Err(ReadError::Reset(_)) => break End::Gone,
                    }
                };
                let _ = chunks.finalize();
                end
            }
            Err(ReadableError::ClosedStream | ReadableError::IllegalOrderedRead) => End::Gone,
        };
        let after = message.len();
        self.partial = self.partial - before + after;
        match end {
            End::None => return,
            End::Complete => {
                let message = std::mem::take(message).freeze();
                self.received.push(message);
            }
            End::TooLong => {
                let _ = connection.recv_stream(stream).stop(TOO_LONG);
            }
            End::Gone => {}
        }
        self.partial -= after;
        self.receiving.remove(&stream);
    }

    /// The next message that is complete.
    pub(crate) fn recv(&mut self, connection: &mut Connection) -> Option<Bytes> {
        let was_full = self.received.is_full();
        let message = self.received.pop();
        if was_full {
            self.accept(connection);
        }
        message
    }
}

/// The end of reading a stream for the time being.
enum End {
    /// More will come.
    None,
    /// The message is complete.
    Complete,
    /// The message is too long.
    TooLong,
    /// The peer has given the stream up.
    Gone,
}
