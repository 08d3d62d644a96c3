//! The receiver of a stream.

use bytes::{Bytes, BytesMut};
use punctual_proto::{Frame, FrameReader};

use crate::peer::ResumePeer;
use crate::record::Record;
use crate::secret::{Nonce, Nonces, Proof, StreamSecret};
use crate::sender::ResumeError;

/// The receiver of a stream over one connection after the other: takes each byte once, and
/// confirms the written ones.
///
/// It counts the bytes of all messages that it hands over, whatever stream they belong to, and
/// wants to be told how many of them are [written](Self::written).
///
/// While a stream has not ended, only its sender goes on with it, which proves that it is the one.
/// Another stream may begin then only from a [chosen](ResumePeer::Chosen) peer.
#[derive(Debug, Default)]
pub struct Receiver {
    /// The stream of the last message.
    stream: Option<StreamPlace>,
    /// Bytes handed over.
    taken: u64,
    /// Those of them that are written.
    written: u64,
    link: Link,
}

/// The place of a stream among the bytes that are handed over.
#[derive(Clone, Copy, Debug)]
struct StreamPlace {
    secret: StreamSecret,
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
    stage: Stage,
    /// The record to send next.
    unsent: Option<Record>,
    /// The offset before which all bytes were confirmed last over this connection.
    confirmed: Option<u64>,
    has_confirmed_end: bool,
}

/// The progress of a connection up to the first message.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Stage {
    /// There is no connection, or it is of no use.
    #[default]
    Closed,
    /// The sender's claim is awaited.
    Hello { nonce: Nonce, peer: ResumePeer },
    /// The beginning of a new stream is awaited.
    New,
    /// The continuation of the stream is awaited.
    Resume,
    /// Messages come.
    Begun,
}

/// The beginning or the continuation of a stream over a new connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Beginning {
    /// The stream.
    pub stream: StreamSecret,
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
    pub fn resuming(stream: StreamSecret, offset: u64) -> Self {
        let place = StreamPlace { secret: stream, offset, taken: 0, len: None };
        Self { stream: Some(place), ..Self::default() }
    }

    /// The same, where `offset` is the end of the stream: another one may begin.
    pub fn after(stream: StreamSecret, offset: u64) -> Self {
        let place = StreamPlace { secret: stream, offset, taken: 0, len: Some(offset) };
        Self { stream: Some(place), ..Self::default() }
    }

    /// A connection to `peer` is established. `nonce` is random, and new for each connection.
    pub fn connected(&mut self, nonce: Nonce, peer: ResumePeer) {
        let (stage, unsent) = (Stage::Hello { nonce, peer }, Some(Record::Hello { nonce }));
        self.link = Link { stage, unsent, ..Link::default() };
    }

    /// Whether messages come over the connection, or may come.
    pub const fn has_begun(&self) -> bool {
        matches!(self.link.stage, Stage::Begun)
    }

    /// Whether a stream has begun and its end has not come.
    pub fn is_unfinished(&self) -> bool {
        self.stream.is_some_and(|place| place.len.is_none())
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
        self.has_begun() && self.stream.is_some_and(|place| place.len.is_some())
    }

    /// Takes bytes that came over the connection and appends their messages to `messages`. Returns
    /// where the stream goes on, once for each connection.
    ///
    /// # Errors
    ///
    /// The peer does not keep to the protocol, or does not prove that the stream is its own: the
    /// connection is of no use any more, but for the last of [`next_bytes`](Self::next_bytes).
    pub fn receive(
        &mut self,
        bytes: &[u8],
        messages: &mut Vec<Bytes>,
    ) -> Result<Option<Beginning>, ResumeError> {
        self.link.frames.push(bytes);
        let mut beginning = None;
        while let Some(frame) = self.link.frames.next_frame()? {
            match frame {
                Frame::Message(_) if !self.has_begun() => return Err(ResumeError::NotBegun),
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
        match (record, self.link.stage, &mut self.stream) {
            (Record::Claim { nonce: sender, proof }, Stage::Hello { nonce: receiver, peer }, _)
                if self.link.unsent.is_none() =>
            {
                self.answer(Nonces { receiver, sender }, &proof, peer).map(|()| None)
            }
            (Record::Begin { stream, offset }, Stage::New, _) => {
                self.link.stage = Stage::Begun;
                Ok(Some(self.begin(stream, offset)))
            }
            (Record::GoOn { offset }, Stage::Resume, Some(place))
                if offset >= place.offset_at(self.taken) =>
            {
                let (stream, missing) = (place.secret, offset - place.offset_at(self.taken));
                if missing > 0 {
                    *place = StreamPlace { secret: stream, offset, taken: self.taken, len: None };
                }
                self.link.stage = Stage::Begun;
                let (taken, is_known, unfinished) = (self.taken, true, None);
                Ok(Some(Beginning { stream, offset, taken, is_known, missing, unfinished }))
            }
            (Record::End { len }, Stage::Begun, Some(place))
                if len == place.offset_at(self.taken) =>
            {
                place.len = Some(len);
                Ok(None)
            }
            (Record::Refuse, ..) => Err(ResumeError::Refused),
            (record, ..) => Err(ResumeError::OutOfTurn(record)),
        }
    }

    /// Answers the claim of a sender.
    fn answer(
        &mut self,
        nonces: Nonces,
        proof: &Proof,
        peer: ResumePeer,
    ) -> Result<(), ResumeError> {
        let known = self.stream.filter(|place| nonces.is_sender_proof(place.secret, proof));
        let (stage, answer) = if let Some(place) = known {
            let (written, next) = (self.written_offset(&place), place.offset_at(self.taken));
            self.link.confirmed = Some(written);
            let proof = nonces.receiver_proof(place.secret, written, next);
            (Stage::Resume, Record::Resume { proof, written, next })
        } else if peer == ResumePeer::Chosen || !self.is_unfinished() {
            (Stage::New, Record::New)
        } else {
            (Stage::Closed, Record::Refuse)
        };
        (self.link.stage, self.link.unsent) = (stage, Some(answer));
        if answer == Record::Refuse { Err(ResumeError::OtherSender) } else { Ok(()) }
    }

    fn begin(&mut self, secret: StreamSecret, offset: u64) -> Beginning {
        let left = self.stream.filter(|place| place.len.is_none());
        let unfinished = left.map(|place| place.offset_at(self.taken));
        let (stream, taken) = (secret, self.taken);
        self.stream = Some(StreamPlace { secret, offset, taken, len: None });
        Beginning { stream, offset, taken, is_known: false, missing: 0, unfinished }
    }

    /// The next bytes to send over the connection; `None` if there are none at present.
    pub fn next_bytes(&mut self) -> Option<Bytes> {
        let mut bytes = BytesMut::new();
        if let Some(record) = self.link.unsent.take() {
            record.write(&mut bytes);
        }
        if let Some(place) = self.stream.filter(|_| self.has_begun()) {
            self.confirm(&place, &mut bytes);
        }
        (!bytes.is_empty()).then(|| bytes.freeze())
    }

    /// Tells how much of the stream is written, and its end, if that was not told yet.
    fn confirm(&mut self, place: &StreamPlace, bytes: &mut BytesMut) {
        let written = self.written_offset(place);
        if self.link.confirmed.replace(written) != Some(written) {
            Record::Written { offset: written }.write(bytes);
        }
        if let Some(len) = place.len
            && written == len
            && !std::mem::replace(&mut self.link.has_confirmed_end, true)
        {
            Record::End { len }.write(bytes);
        }
    }

    /// The offset before which all bytes of the stream are written.
    fn written_offset(&self, place: &StreamPlace) -> u64 {
        place.offset_at(self.written.max(place.taken))
    }
}

impl StreamPlace {
    /// The offset of the byte before which this number of bytes was handed over.
    const fn offset_at(&self, taken: u64) -> u64 {
        self.offset + (taken - self.taken)
    }
}

#[cfg(test)]
mod tests {
    use punctual_proto::write_frame;

    use super::*;

    const NONCES: Nonces = Nonces { receiver: [3; 16], sender: [4; 16] };

    fn stream(number: u8) -> StreamSecret {
        StreamSecret::new([number; 16]).unwrap()
    }

    fn frame(record: Record) -> Bytes {
        let mut bytes = BytesMut::new();
        record.write(&mut bytes);
        bytes.freeze()
    }

    fn take(receiver: &mut Receiver, record: Record) -> Result<Option<Beginning>, ResumeError> {
        receiver.receive(&frame(record), &mut Vec::new())
    }

    fn hello() -> Record {
        Record::Hello { nonce: NONCES.receiver }
    }

    /// The claim of the sender of `stream`, over a new connection; returns the answer.
    fn claim(receiver: &mut Receiver, stream: StreamSecret, peer: ResumePeer) -> Record {
        receiver.connected(NONCES.receiver, peer);
        assert_eq!(told(receiver), [hello()]);
        let claim = Record::Claim { nonce: NONCES.sender, proof: NONCES.sender_proof(stream) };
        let taken = take(receiver, claim);
        let told = told(receiver);
        let [answer] = told[..] else { panic!("one answer, not {told:?}") };
        match (answer, taken) {
            (Record::Refuse, Err(ResumeError::OtherSender)) | (_, Ok(None)) => answer,
            (answer, taken) => panic!("{answer:?}: {taken:?}"),
        }
    }

    /// Begins `stream` over a new connection.
    fn begin(receiver: &mut Receiver, stream: StreamSecret, offset: u64) -> Beginning {
        assert_eq!(claim(receiver, stream, ResumePeer::Chosen), Record::New);
        take(receiver, Record::Begin { stream, offset }).unwrap().unwrap()
    }

    /// Goes on with `stream`, whose receiver is at this position.
    fn go_on(receiver: &mut Receiver, stream: StreamSecret, at: [u64; 2], to: u64) -> Beginning {
        let [written, next] = at;
        let proof = NONCES.receiver_proof(stream, written, next);
        let resume = Record::Resume { proof, written, next };
        assert_eq!(claim(receiver, stream, ResumePeer::Anybody), resume);
        take(receiver, Record::GoOn { offset: to }).unwrap().unwrap()
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

    fn written(offset: u64) -> Record {
        Record::Written { offset }
    }

    #[test]
    fn the_beginning_is_confirmed_and_whenever_more_is_written() {
        let mut receiver = Receiver::default();
        begin(&mut receiver, stream(1), 0);
        assert_eq!(told(&mut receiver), [written(0)]);
        give(&mut receiver, b"one");
        give(&mut receiver, b"two");
        assert_eq!(told(&mut receiver), [], "nothing is written yet");
        receiver.written(3);
        assert_eq!(told(&mut receiver), [written(3)]);
        assert_eq!(told(&mut receiver), []);
    }

    #[test]
    fn a_stream_goes_on_after_the_last_byte_that_was_taken() {
        let mut receiver = Receiver::default();
        begin(&mut receiver, stream(1), 0);
        give(&mut receiver, b"one");
        receiver.written(2);
        let beginning = go_on(&mut receiver, stream(1), [2, 3], 3);
        assert!(beginning.is_known && beginning.missing == 0);
        give(&mut receiver, b"two");
        assert_eq!(told(&mut receiver), []);
        receiver.written(6);
        assert_eq!(told(&mut receiver), [written(6)]);
    }

    #[test]
    fn the_end_is_confirmed_when_all_is_written() {
        let mut receiver = Receiver::default();
        begin(&mut receiver, stream(1), 0);
        give(&mut receiver, b"one");
        take(&mut receiver, Record::End { len: 3 }).unwrap();
        assert!(receiver.has_ended() && !receiver.is_complete());
        told(&mut receiver);
        receiver.written(3);
        assert_eq!(told(&mut receiver), [written(3), Record::End { len: 3 }]);
        assert!(receiver.is_complete());
    }

    #[test]
    fn an_end_that_was_confirmed_is_confirmed_again_over_a_new_connection() {
        for mut receiver in [Receiver::resuming(stream(1), 3), Receiver::after(stream(1), 3)] {
            for _ in 0..2 {
                go_on(&mut receiver, stream(1), [3, 3], 3);
                take(&mut receiver, Record::End { len: 3 }).unwrap();
                assert_eq!(told(&mut receiver), [Record::End { len: 3 }]);
            }
        }
    }

    #[test]
    fn missing_bytes_and_another_stream_are_told() {
        let mut receiver = Receiver::default();
        begin(&mut receiver, stream(1), 0);
        give(&mut receiver, b"one");
        let beginning = go_on(&mut receiver, stream(1), [0, 3], 10);
        assert_eq!((beginning.missing, beginning.unfinished), (7, None));
        let beginning = begin(&mut receiver, stream(2), 0);
        assert_eq!((beginning.is_known, beginning.unfinished), (false, Some(10)));
        give(&mut receiver, b"three");
        assert_eq!(told(&mut receiver), [written(0)]);
        receiver.written(2);
        assert_eq!(told(&mut receiver), [], "bytes of another stream were written");
        receiver.written(8);
        assert_eq!(told(&mut receiver), [written(5)]);
    }

    #[test]
    fn a_stranger_learns_and_changes_nothing_while_a_stream_has_not_ended() {
        let mut receiver = Receiver::default();
        begin(&mut receiver, stream(1), 0);
        give(&mut receiver, b"one");
        assert_eq!(claim(&mut receiver, stream(2), ResumePeer::Anybody), Record::Refuse);
        assert!(take(&mut receiver, Record::Begin { stream: stream(2), offset: 0 }).is_err());
        // The true sender's claim of another connection, and the receiver's own kind of proof.
        let old = Nonces { receiver: [9; 16], ..NONCES }.sender_proof(stream(1));
        let of_receiver = NONCES.receiver_proof(stream(1), 0, 3);
        for proof in [old, of_receiver] {
            receiver.connected(NONCES.receiver, ResumePeer::Anybody);
            assert_eq!(told(&mut receiver), [hello()]);
            let claim = Record::Claim { nonce: NONCES.sender, proof };
            assert!(matches!(take(&mut receiver, claim), Err(ResumeError::OtherSender)));
            assert_eq!(told(&mut receiver), [Record::Refuse]);
        }
        let beginning = go_on(&mut receiver, stream(1), [0, 3], 3);
        assert_eq!((beginning.taken, beginning.missing), (3, 0), "the true one goes on");
        // After the end, anybody may begin.
        take(&mut receiver, Record::End { len: 3 }).unwrap();
        assert_eq!(claim(&mut receiver, stream(2), ResumePeer::Anybody), Record::New);
        let mut later = Receiver::after(stream(1), 3);
        assert_eq!(claim(&mut later, stream(2), ResumePeer::Anybody), Record::New);
    }

    #[test]
    fn records_and_messages_out_of_turn_are_errors() {
        let mut receiver = Receiver::default();
        let mut bytes = BytesMut::new();
        write_frame(b"one", &mut bytes).unwrap();
        receiver.connected(NONCES.receiver, ResumePeer::Chosen);
        let early = receiver.receive(&bytes, &mut Vec::new());
        assert!(matches!(early, Err(ResumeError::NotBegun)));
        let claim = Record::Claim { nonce: [4; 16], proof: NONCES.sender_proof(stream(1)) };
        let going_on = Record::GoOn { offset: 10 };
        let beginning = Record::Begin { stream: stream(1), offset: 10 };
        receiver.connected(NONCES.receiver, ResumePeer::Chosen);
        for record in [claim, beginning, going_on] {
            let refused = take(&mut receiver, record);
            assert!(matches!(refused, Err(ResumeError::OutOfTurn(_))), "{record:?}");
        }
        begin(&mut receiver, stream(1), 10);
        for record in [beginning, going_on, claim, Record::End { len: 9 }, written(1), hello()] {
            let refused = take(&mut receiver, record);
            assert!(matches!(refused, Err(ResumeError::OutOfTurn(_))), "{record:?}");
        }
        self::claim(&mut receiver, stream(1), ResumePeer::Anybody);
        for record in [beginning, Record::GoOn { offset: 9 }] {
            let refused = take(&mut receiver, record);
            assert!(matches!(refused, Err(ResumeError::OutOfTurn(_))), "bytes would come twice");
        }
        assert!(matches!(take(&mut receiver, Record::Refuse), Err(ResumeError::Refused)));
    }
}
