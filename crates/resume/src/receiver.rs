//! The receiver of a stream.

use bytes::{Bytes, BytesMut};
use punctual_proto::{Frame, FrameReader};

use crate::record::{Record, StreamIdentity};
use crate::sender::ResumeError;

/// The receiver of a stream over one connection after the other: takes each byte once, and
/// confirms the written ones.
///
/// It counts the bytes of all messages that it hands over, whatever stream they belong to, and
/// wants to be told how many of them are [written](Self::written).
#[derive(Debug, Default)]
pub struct Receiver {
    /// The stream of the last message.
    stream: Option<Place>,
    /// Bytes handed over.
    taken: u64,
    /// Those of them that are written.
    written: u64,
    link: Link,
}

/// The place of a stream among the bytes that are handed over.
#[derive(Clone, Copy, Debug)]
struct Place {
    identity: StreamIdentity,
    /// The offset of a byte of the stream.
    offset: u64,
    /// The number of bytes that were handed over before it.
    taken: u64,
    /// The number of bytes of the whole stream, if its end is known.
    len: Option<u64>,
}

/// The connection of a receiver.
#[derive(Debug, Default)]
struct Link {
    frames: FrameReader,
    has_begun: bool,
    /// The offset before which all bytes were confirmed last over this connection.
    confirmed: Option<u64>,
    has_confirmed_end: bool,
}

/// The beginning or the continuation of a stream over a new connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Beginning {
    /// The stream.
    pub stream: StreamIdentity,
    /// The offset of the next byte.
    pub offset: u64,
    /// The number of bytes that were handed over before it.
    pub taken: u64,
    /// Whether a part of it has been read before.
    pub is_known: bool,
    /// Bytes that are missing between that part and this one: the sender no longer has them.
    pub missing: u64,
    /// The offset at which another stream was left before its end.
    pub unfinished: Option<u64>,
}

impl Receiver {
    /// A receiver that has the bytes of `stream` before `offset` already, for example in a file
    /// that an earlier process has written.
    pub fn resuming(stream: StreamIdentity, offset: u64) -> Self {
        let place = Place { identity: stream, offset, taken: 0, len: None };
        Self { stream: Some(place), ..Self::default() }
    }

    /// A connection to a sender is established.
    pub fn connected(&mut self) {
        self.link = Link::default();
    }

    /// The number of bytes that were handed over.
    pub const fn taken(&self) -> u64 {
        self.taken
    }

    /// The first `taken` bytes that were handed over are written.
    pub fn written(&mut self, taken: u64) {
        self.written = taken.clamp(self.written, self.taken);
    }

    /// Whether the stream has ended and all of it is written.
    pub fn is_complete(&self) -> bool {
        self.stream.is_some_and(|place| place.len == Some(self.written_offset(&place)))
    }

    /// Whether the stream has ended and all of it was handed over.
    pub fn has_ended(&self) -> bool {
        self.link.has_begun && self.stream.is_some_and(|place| place.len.is_some())
    }

    /// Takes bytes that came over the connection and appends their messages to `messages`. Returns
    /// where the stream goes on, once for each connection.
    ///
    /// # Errors
    ///
    /// The peer does not keep to the protocol: the connection is of no use any more.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        messages: &mut Vec<Bytes>,
    ) -> Result<Option<Beginning>, ResumeError> {
        self.link.frames.push(bytes);
        let mut beginning = None;
        while let Some(frame) = self.link.frames.next_frame()? {
            match frame {
                Frame::Message(_) if !self.link.has_begun => return Err(ResumeError::NotBegun),
                Frame::Message(message) => {
                    self.taken += message.len() as u64;
                    messages.push(message);
                }
                Frame::Control(record) => {
                    beginning = self.take(Record::read(&record)?)?.or(beginning);
                }
            }
        }
        Ok(beginning)
    }

    fn take(&mut self, record: Record) -> Result<Option<Beginning>, ResumeError> {
        match (record, &mut self.stream) {
            (Record::Begin { stream, offset }, _) if !self.link.has_begun => {
                self.link.has_begun = true;
                self.begin(stream, offset).map(Some)
            }
            (Record::End { len }, Some(place))
                if self.link.has_begun && len == place.offset_at(self.taken) =>
            {
                place.len = Some(len);
                Ok(None)
            }
            (record, _) => Err(ResumeError::OutOfTurn(record)),
        }
    }

    fn begin(&mut self, stream: StreamIdentity, offset: u64) -> Result<Beginning, ResumeError> {
        let known = self.stream.filter(|place| place.identity == stream);
        let next = known.map(|place| place.offset_at(self.taken));
        if next.is_some_and(|next| offset < next) {
            return Err(ResumeError::OutOfTurn(Record::Begin { stream, offset }));
        }
        let unfinished = match (&self.stream, known) {
            (Some(left), None) if left.len.is_none() => Some(left.offset_at(self.taken)),
            _ => None,
        };
        if next != Some(offset) {
            let place = Place { identity: stream, offset, taken: self.taken, len: None };
            self.stream = Some(place);
        }
        Ok(Beginning {
            stream,
            offset,
            taken: self.taken,
            is_known: known.is_some(),
            missing: next.map_or(0, |next| offset - next),
            unfinished,
        })
    }

    /// The next bytes to send over the connection; `None` if there are none at present.
    pub fn next_bytes(&mut self) -> Option<Bytes> {
        let mut bytes = BytesMut::new();
        let place = self.stream;
        let written = place.map_or(0, |place| self.written_offset(&place));
        if self.link.confirmed != Some(written) {
            self.link.confirmed = Some(written);
            let stream = place.map(|place| place.identity);
            let next = place.map_or(0, |place| place.offset_at(self.taken));
            Record::Position { stream, written, next }.write(&mut bytes);
        }
        if let Some(Place { len: Some(len), .. }) = place
            && self.link.has_begun
            && written == len
            && !std::mem::replace(&mut self.link.has_confirmed_end, true)
        {
            Record::End { len }.write(&mut bytes);
        }
        (!bytes.is_empty()).then(|| bytes.freeze())
    }

    /// The offset before which all bytes of the stream are written.
    fn written_offset(&self, place: &Place) -> u64 {
        place.offset_at(self.written.max(place.taken))
    }
}

impl Place {
    /// The offset of the byte before which this number of bytes was handed over.
    const fn offset_at(&self, taken: u64) -> u64 {
        self.offset + (taken - self.taken)
    }
}

#[cfg(test)]
mod tests {
    use punctual_proto::write_frame;

    use super::*;

    fn stream(number: u8) -> StreamIdentity {
        StreamIdentity::new([number; 16]).unwrap()
    }

    fn frame(record: Record) -> Bytes {
        let mut bytes = BytesMut::new();
        record.write(&mut bytes);
        bytes.freeze()
    }

    /// Begins `stream` over a new connection and gives its messages.
    fn begin(receiver: &mut Receiver, stream: StreamIdentity, offset: u64) -> Beginning {
        receiver.connected();
        let begin = frame(Record::Begin { stream, offset });
        receiver.receive(&begin, &mut Vec::new()).unwrap().unwrap()
    }

    fn give(receiver: &mut Receiver, message: &'static [u8]) {
        let mut bytes = BytesMut::new();
        write_frame(message, &mut bytes).unwrap();
        let mut messages = Vec::new();
        assert_eq!(receiver.receive(&bytes, &mut messages).unwrap(), None);
        assert_eq!(messages, [message]);
    }

    fn told(receiver: &mut Receiver) -> Vec<Record> {
        let mut reader = FrameReader::default();
        while let Some(bytes) = receiver.next_bytes() {
            reader.push(&bytes);
        }
        let frames = std::iter::from_fn(|| reader.next_frame().unwrap());
        frames
            .map(|frame| match frame {
                Frame::Control(record) => Record::read(&record).unwrap(),
                Frame::Message(message) => panic!("a message: {message:?}"),
            })
            .collect()
    }

    fn position(stream: StreamIdentity, written: u64, next: u64) -> Record {
        Record::Position { stream: Some(stream), written, next }
    }

    #[test]
    fn the_position_is_told_first_and_whenever_more_is_written() {
        let mut receiver = Receiver::default();
        receiver.connected();
        assert_eq!(told(&mut receiver), [Record::Position { stream: None, written: 0, next: 0 }]);
        begin(&mut receiver, stream(1), 0);
        told(&mut receiver);
        give(&mut receiver, b"one");
        give(&mut receiver, b"two");
        assert_eq!(told(&mut receiver), [], "nothing is written yet");
        receiver.written(3);
        assert_eq!(told(&mut receiver), [position(stream(1), 3, 6)]);
        assert_eq!(told(&mut receiver), []);
    }

    #[test]
    fn a_stream_goes_on_after_the_last_byte_that_was_taken() {
        let mut receiver = Receiver::default();
        begin(&mut receiver, stream(1), 0);
        give(&mut receiver, b"one");
        receiver.written(2);
        receiver.connected();
        assert_eq!(told(&mut receiver), [position(stream(1), 2, 3)]);
        let beginning = begin(&mut receiver, stream(1), 3);
        assert!(beginning.is_known && beginning.missing == 0);
        give(&mut receiver, b"two");
        told(&mut receiver);
        receiver.written(6);
        assert_eq!(told(&mut receiver), [position(stream(1), 6, 6)]);
    }

    #[test]
    fn the_end_is_confirmed_when_all_is_written() {
        let mut receiver = Receiver::default();
        begin(&mut receiver, stream(1), 0);
        give(&mut receiver, b"one");
        receiver.receive(&frame(Record::End { len: 3 }), &mut Vec::new()).unwrap();
        assert!(receiver.has_ended() && !receiver.is_complete());
        told(&mut receiver);
        receiver.written(3);
        assert_eq!(told(&mut receiver), [position(stream(1), 3, 3), Record::End { len: 3 }]);
        assert!(receiver.is_complete());
    }

    #[test]
    fn an_end_that_was_confirmed_is_confirmed_again_over_a_new_connection() {
        let mut receiver = Receiver::resuming(stream(1), 3);
        receiver.connected();
        assert_eq!(told(&mut receiver), [position(stream(1), 3, 3)]);
        for _ in 0..2 {
            begin(&mut receiver, stream(1), 3);
            receiver.receive(&frame(Record::End { len: 3 }), &mut Vec::new()).unwrap();
            assert_eq!(told(&mut receiver), [position(stream(1), 3, 3), Record::End { len: 3 }]);
        }
    }

    #[test]
    fn missing_bytes_and_another_stream_are_told() {
        let mut receiver = Receiver::default();
        begin(&mut receiver, stream(1), 0);
        give(&mut receiver, b"one");
        let beginning = begin(&mut receiver, stream(1), 10);
        assert_eq!((beginning.missing, beginning.unfinished), (7, None));
        let beginning = begin(&mut receiver, stream(2), 0);
        assert_eq!((beginning.is_known, beginning.unfinished), (false, Some(10)));
        give(&mut receiver, b"three");
        told(&mut receiver);
        receiver.written(2);
        assert_eq!(told(&mut receiver), [], "bytes of another stream were written");
        receiver.written(8);
        assert_eq!(told(&mut receiver), [position(stream(2), 5, 5)]);
    }

    #[test]
    fn records_and_messages_out_of_turn_are_errors() {
        let mut receiver = Receiver::default();
        receiver.connected();
        let mut bytes = BytesMut::new();
        write_frame(b"one", &mut bytes).unwrap();
        let early = receiver.receive(&bytes, &mut Vec::new());
        assert!(matches!(early, Err(ResumeError::NotBegun)));
        begin(&mut receiver, stream(1), 10);
        for record in [
            Record::Begin { stream: stream(1), offset: 10 },
            Record::End { len: 9 },
            position(stream(1), 1, 1),
        ] {
            let refused = receiver.receive(&frame(record), &mut Vec::new());
            assert!(matches!(refused, Err(ResumeError::OutOfTurn(_))), "{record:?}");
        }
        receiver.connected();
        let back = frame(Record::Begin { stream: stream(1), offset: 9 });
        let refused = receiver.receive(&back, &mut Vec::new());
        assert!(matches!(refused, Err(ResumeError::OutOfTurn(_))), "bytes would come twice");
    }
}
