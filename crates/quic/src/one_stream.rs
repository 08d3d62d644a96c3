//! Messages one after the other on one unidirectional stream: reliable and in order.
//!
//! The length of each message precedes it as a variable-length integer of QUIC (RFC 9000, section
//! 16).

use std::collections::VecDeque;

use crate::inbox::Inbox;
use bytes::{Buf, Bytes, BytesMut};
use quinn_proto::coding::{Codec, UnexpectedEnd};
use quinn_proto::{Connection, Dir, FinishError, ReadError, StreamId, VarInt, WriteError};

/// The error code for a stream with a message that is too long.
const TOO_LONG: VarInt = VarInt::from_u32(1);
/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;
/// The error code for a second stream.
const ONE_ALONE: VarInt = VarInt::from_u32(2);

/// The messages of a connection in both directions, each on one stream.
#[derive(Debug)]
pub(crate) struct OneStream {
    sending: Sending,
    receiving: Receiving,
    /// The stream by which the peer sends.
    incoming: Option<StreamId>,
}

impl OneStream {
    /// Messages of at most `longest` bytes, of which `limit` bytes wait for the application.
    pub(crate) fn new(longest: usize, limit: usize) -> Self {
        let receiving = Receiving::new(longest, limit);
        Self { sending: Sending::new(), receiving, incoming: None }
    }

    /// Sends a message.
    pub(crate) fn send(&mut self, connection: &mut Connection, message: Bytes) {
        self.sending.push(message);
        self.write(connection);
    }

    /// Messages that are not yet written to quinn.
    pub(crate) fn unsent(&self) -> usize {
        self.sending.pieces.len().div_ceil(2)
    }

    /// Ends the stream after the messages so far.
    pub(crate) fn finish(&mut self, connection: &mut Connection) {
        self.sending.is_finishing = true;
        self.write(connection);
    }

    /// Writes as much as flow control permits.
    pub(crate) fn write(&mut self, connection: &mut Connection) {
        let Sending { stream, pieces, is_finishing } = &mut self.sending;
        if stream.is_none() && !pieces.is_empty() {
            *stream = connection.streams().open(Dir::Uni);
        }
        let Some(stream) = *stream else { return };
        let mut sender = connection.send_stream(stream);
        while !pieces.is_empty() {
            match sender.write_chunks(pieces.make_contiguous()) {
                Ok(written) => drop(pieces.drain(..written.chunks)),
                Err(WriteError::Blocked) => return,
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => pieces.clear(),
            }
        }
        if *is_finishing {
            // It may be finished already.
            let _: Result<(), FinishError> = sender.finish();
        }
    }

    /// Accepts the stream that the peer has opened; a peer has one alone.
    pub(crate) fn accept(&mut self, connection: &mut Connection) {
        while let Some(stream) = connection.streams().accept(Dir::Uni) {
            if self.incoming.is_none() {
                self.incoming = Some(stream);
                self.read(connection);
            } else {
                let _ = connection.recv_stream(stream).stop(ONE_ALONE);
            }
        }
    }

    /// Reads what has arrived.
    pub(crate) fn read(&mut self, connection: &mut Connection) {
        let Some(stream) = self.incoming else { return };
        let mut receiver = connection.recv_stream(stream);
        let Ok(mut chunks) = receiver.read(true) else { return };
        let mut result = Ok(());
        while result.is_ok() && !self.receiving.messages.is_full() {
            match chunks.next(CHUNK) {
                Ok(Some(chunk)) => result = self.receiving.push(&chunk.bytes),
                Ok(None) | Err(ReadError::Blocked | ReadError::Reset(_)) => break,
            }
        }
        let _ = chunks.finalize();
        if result.is_err() {
            let _ = connection.recv_stream(stream).stop(TOO_LONG);
        }
    }

    /// The next message that is complete.
    pub(crate) fn recv(&mut self, connection: &mut Connection) -> Option<Bytes> {
        let was_full = self.receiving.messages.is_full();
        let message = self.receiving.messages.pop();
        if was_full {
            self.read(connection);
        }
        message
    }
}

/// The messages that wait to be written, each as its length and its content.
#[derive(Debug)]
struct Sending {
    stream: Option<StreamId>,
    pieces: VecDeque<Bytes>,
    is_finishing: bool,
}

impl Sending {
    const fn new() -> Self {
        Self { stream: None, pieces: VecDeque::new(), is_finishing: false }
    }

    fn push(&mut self, message: Bytes) {
        let length = u64::try_from(message.len()).unwrap_or(u64::MAX);
        let mut head = Vec::with_capacity(8);
        VarInt::try_from(length).unwrap_or(VarInt::MAX).encode(&mut head);
        self.pieces.push_back(head.into());
        self.pieces.push_back(message);
    }
}

/// A message announces more bytes than are allowed.
#[derive(Debug)]
struct TooLong;

/// The bytes of the peer's stream, cut into messages.
#[derive(Debug)]
struct Receiving {
    bytes: BytesMut,
    messages: Inbox,
    longest: usize,
}

impl Receiving {
    fn new(longest: usize, limit: usize) -> Self {
        Self { bytes: BytesMut::new(), messages: Inbox::new(limit), longest }
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        self.bytes.extend_from_slice(bytes);
        while let Some(message) = self.take()? {
            self.messages.push(message);
        }
        Ok(())
    }

    /// Takes out the first message, if it is complete.
    fn take(&mut self) -> Result<Option<Bytes>, TooLong> {
        let mut rest = &self.bytes[..];
        let length = match VarInt::decode(&mut rest) {
            Ok(length) => length.into_inner(),
            Err(UnexpectedEnd) => return Ok(None),
        };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > self.longest {
            return Err(TooLong);
        }
        let head = self.bytes.len() - rest.len();
        if rest.len() < length {
            return Ok(None);
        }
        self.bytes.advance(head);
        Ok(Some(self.bytes.split_to(length).freeze()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(messages: &[Vec<u8>]) -> Vec<u8> {
        let mut sending = Sending::new();
        messages.iter().for_each(|message| sending.push(message.clone().into()));
        sending.pieces.iter().flatten().copied().collect()
    }

    #[test]
    fn messages_are_read_however_the_stream_is_cut() {
        let messages: Vec<Vec<u8>> =
            [0, 1, 63, 64, 1_316, 16_383, 16_384].map(|size| vec![7; size]).into();
        let bytes = written(&messages);
        assert_eq!(bytes[..3], [0, 1, 7]);
        for step in [1, 2, 3, 1_000, bytes.len()] {
            let mut receiving = Receiving::new(16_384, usize::MAX);
            bytes.chunks(step).for_each(|chunk| receiving.push(chunk).expect("they are short"));
            let received = std::iter::from_fn(|| receiving.messages.pop());
            assert!(received.eq(messages.iter().cloned()), "{step}");
            assert!(receiving.bytes.is_empty());
        }
    }

    #[test]
    fn a_message_that_announces_too_much_is_refused_before_it_is_there() {
        let mut receiving = Receiving::new(100, usize::MAX);
        let bytes = written(&[vec![0; 100], vec![0; 101]]);
        assert!(receiving.push(&bytes[..102]).is_ok());
        assert!(receiving.push(&bytes[102..104]).is_err());
        assert!(receiving.messages.pop().is_some() && receiving.messages.pop().is_none());
    }
}
