//! The sender of a stream.

use bytes::{Bytes, BytesMut};
use punctual_proto::{Frame, FrameError, FrameReader, write_frame};
use thiserror::Error;

use crate::peer::ResumePeer;
use crate::record::{Record, RecordError};
use crate::secret::{Nonce, Nonces, Proof, StreamSecret};
use crate::spool::{Kept, Spool, SpoolError};

/// The sender of a stream: keeps messages until the receiver has confirmed them, and sends them
/// over one connection after the other.
///
/// When a receiver has confirmed the beginning, only this one gets the rest, and proves that it is
/// the one. A [chosen](ResumePeer::Chosen) peer may also begin anew with all that is kept.
#[derive(Debug)]
pub struct Sender<S> {
    stream: StreamSecret,
    spool: S,
    /// Whether no more messages come.
    has_ended: bool,
    /// Whether the receiver has confirmed the end, and with it all messages.
    is_complete: bool,
    sent: Sent,
    link: Link,
}

/// The messages that were sent over all connections; one that was sent again counts again.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Sent {
    /// Their number.
    pub messages: u64,
    /// Their bytes, without frames.
    pub bytes: u64,
}

/// The form in which a peer takes the stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PeerFormat {
    /// Frames and records. Messages are kept until the receiver has confirmed them. The nonce is
    /// random, and new for each connection.
    Resumable(Nonce),
    /// Frames alone. Messages count as delivered when the connection has taken them.
    Frames,
    /// The bytes of messages alone, likewise.
    Bytes,
}

/// The connection of a sender.
#[derive(Debug)]
enum Link {
    /// There is none.
    Down,
    /// The receiver has not told its position yet.
    Greeting(Greeting),
    /// The stream goes on over it.
    Resumed(Resumed),
    /// The receiver does not get the stream. The record says so to it.
    Refused(Option<Record>),
    /// The peer cannot resume a stream.
    Plain { next: u64, in_frames: bool },
}

#[derive(Debug)]
struct Greeting {
    frames: FrameReader,
    nonce: Nonce,
    peer: ResumePeer,
    /// The receiver's nonce, once it is here.
    receiver: Option<Nonce>,
    has_claimed: bool,
}

#[derive(Debug)]
struct Resumed {
    frames: FrameReader,
    /// The offset of the next byte to be sent.
    next: u64,
    /// The record before the first message, until it is sent.
    opening: Option<Record>,
    has_sent_end: bool,
}

/// A fault of a peer, or of the spool, that ends a connection.
#[derive(Debug, Error)]
pub enum ResumeError {
    /// A frame is damaged.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A control frame holds no record.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A record does not belong where it came.
    #[error("the peer has sent a record out of turn: {0:?}")]
    OutOfTurn(Record),
    /// A sender does not prove that the stream that has not ended is its own.
    #[error(
        "the sender does not prove that the stream here, which has not ended, is its own: it is \
         refused, because anybody may call here (with a passphrase at both ends another stream may \
         begin)"
    )]
    OtherSender,
    /// A receiver does not prove that it began to receive the stream.
    #[error(
        "the receiver does not prove that the stream is the one that it had: it is refused, because \
         anybody may call here (with a passphrase at both ends it gets all that is kept)"
    )]
    OtherReceiver,
    /// The peer refuses this end.
    #[error(
        "the peer refuses this end, which does not prove that the stream there is its own: another \
         one has begun it (with a passphrase at both ends a new one may begin)"
    )]
    Refused,
    /// A message came before the record that says where it belongs.
    #[error("the peer has sent a message before the stream began")]
    NotBegun,
    /// The receiver has more of the stream than the sender ever had.
    #[error(
        "the receiver has {receiver} bytes of this stream, and its sender only {sender}: the \
         spool is an old copy or damaged; remove it to begin a new stream"
    )]
    Ahead {
        /// The receiver's offset.
        receiver: u64,
        /// The sender's offset.
        sender: u64,
    },
    /// The sender cannot keep or read messages.
    #[error("the spool: {0}")]
    Spool(#[from] SpoolError),
}

/// The place at which a stream goes on over a new connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Resumption {
    /// Whether the receiver had a part of this stream.
    pub is_known: bool,
    /// The offset of the next byte.
    pub offset: u64,
    /// Bytes before it that the receiver lacks and the sender no longer has.
    pub missing: u64,
}

impl<S: Spool> Sender<S> {
    /// A sender of `stream` with the messages in `spool`.
    pub const fn new(stream: StreamSecret, spool: S) -> Self {
        let sent = Sent { messages: 0, bytes: 0 };
        Self { stream, spool, has_ended: false, is_complete: false, sent, link: Link::Down }
    }

    /// The stream.
    pub const fn stream(&self) -> StreamSecret {
        self.stream
    }

    /// The bytes that are kept.
    pub fn kept(&self) -> Kept {
        self.spool.kept()
    }

    /// The messages that [`next_bytes`](Self::next_bytes) has given.
    pub const fn sent(&self) -> Sent {
        self.sent
    }

    /// Whether all has been delivered and the receiver knows that this is the end.
    pub const fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Appends `message` to the stream; an empty one is left out.
    ///
    /// # Errors
    ///
    /// As [`Spool::push`].
    pub fn push(&mut self, message: Bytes) -> Result<(), SpoolError> {
        if message.is_empty() { Ok(()) } else { self.spool.push(message) }
    }

    /// Ends the stream after the messages so far.
    pub const fn end(&mut self) {
        self.has_ended = true;
    }

    /// A connection to `peer` is established, which takes the stream in this format.
    ///
    /// # Errors
    ///
    /// The peer cannot resume a stream, another one began to receive it, and anybody may have
    /// called.
    pub fn connected(&mut self, format: PeerFormat, peer: ResumePeer) -> Result<(), ResumeError> {
        let next = self.kept().first;
        let is_others = peer == ResumePeer::Anybody && self.spool.has_begun();
        self.link = match format {
            PeerFormat::Resumable(nonce) => {
                let (frames, receiver) = (FrameReader::default(), None);
                Link::Greeting(Greeting { frames, nonce, peer, receiver, has_claimed: false })
            }
            PeerFormat::Frames | PeerFormat::Bytes if is_others => {
                self.link = Link::Refused(None);
                return Err(ResumeError::OtherReceiver);
            }
            PeerFormat::Frames => Link::Plain { next, in_frames: true },
            PeerFormat::Bytes => Link::Plain { next, in_frames: false },
        };
        Ok(())
    }

    /// The connection is lost.
    pub fn disconnected(&mut self) {
        self.link = Link::Down;
    }

    /// Whether the receiver has not told its position over this connection yet.
    pub const fn is_waiting(&self) -> bool {
        matches!(self.link, Link::Greeting(_))
    }

    /// Takes bytes that came over the connection. Returns where the stream goes on, once for each
    /// connection.
    ///
    /// # Errors
    ///
    /// The peer does not keep to the protocol, does not prove that the stream is its own, or the
    /// spool fails: the connection is of no use any more, but for the last of
    /// [`next_bytes`](Self::next_bytes).
    pub fn receive(&mut self, bytes: &[u8]) -> Result<Option<Resumption>, ResumeError> {
        if let Some(frames) = self.frames() {
            frames.push(bytes);
        }
        let mut resumption = None;
        while let Some(frame) = self.frames().map_or(Ok(None), FrameReader::next_frame)? {
            // The receiver may have messages of its own, which nobody takes.
            if let Frame::Control(record) = frame {
                resumption = self.take(Record::read(&record)?)?.or(resumption);
            }
        }
        Ok(resumption)
    }

    fn frames(&mut self) -> Option<&mut FrameReader> {
        match &mut self.link {
            Link::Greeting(Greeting { frames, .. }) | Link::Resumed(Resumed { frames, .. }) => {
                Some(frames)
            }
            Link::Down | Link::Refused(_) | Link::Plain { .. } => None,
        }
    }

    fn take(&mut self, record: Record) -> Result<Option<Resumption>, ResumeError> {
        match (&mut self.link, record) {
            (Link::Greeting(link @ Greeting { receiver: None, .. }), Record::Hello { nonce }) => {
                link.receiver = Some(nonce);
                Ok(None)
            }
            (
                Link::Greeting(Greeting {
                    receiver: Some(receiver), nonce, has_claimed: true, ..
                }),
                Record::Resume { proof, written, next },
            ) => {
                let nonces = Nonces { receiver: *receiver, sender: *nonce };
                self.go_on(nonces, &proof, written, next).map(Some)
            }
            (Link::Greeting(Greeting { peer, has_claimed: true, .. }), Record::New) => {
                if *peer == ResumePeer::Anybody && self.spool.has_begun() {
                    return Err(self.refuse());
                }
                let offset = self.kept().first;
                let (is_known, missing) = (false, 0);
                self.resume(Record::Begin { stream: self.stream, offset }, offset);
                Ok(Some(Resumption { is_known, offset, missing }))
            }
            (Link::Resumed(link), Record::Written { offset }) if link.opening.is_none() => {
                let written = offset.min(link.next);
                self.spool.begin()?;
                self.spool.release(written)?;
                Ok(None)
            }
            (Link::Resumed(link), Record::End { len })
                if link.has_sent_end && len == self.spool.kept().end =>
            {
                self.spool.release(len)?;
                self.is_complete = true;
                Ok(None)
            }
            (_, Record::Refuse) => Err(ResumeError::Refused),
            (_, record) => Err(ResumeError::OutOfTurn(record)),
        }
    }

    /// Finds the place at which to go on with a receiver that says to be at this position.
    fn go_on(
        &mut self,
        nonces: Nonces,
        proof: &Proof,
        written: u64,
        next: u64,
    ) -> Result<Resumption, ResumeError> {
        if !nonces.is_receiver_proof(self.stream, written, next, proof) {
            return Err(self.refuse());
        }
        let Kept { first, end } = self.kept();
        if next > end {
            return Err(ResumeError::Ahead { receiver: next, sender: end });
        }
        self.spool.begin()?;
        self.spool.release(written.min(next))?;
        let (offset, missing) = (next.max(first), first.saturating_sub(next));
        self.resume(Record::GoOn { offset }, offset);
        Ok(Resumption { is_known: true, offset, missing })
    }

    /// Goes on at the byte `next`, with the record that says so first.
    fn resume(&mut self, opening: Record, next: u64) {
        let frames = self.frames().map(std::mem::take).unwrap_or_default();
        let (opening, has_sent_end) = (Some(opening), false);
        self.link = Link::Resumed(Resumed { frames, next, opening, has_sent_end });
    }

    fn refuse(&mut self) -> ResumeError {
        self.link = Link::Refused(Some(Record::Refuse));
        ResumeError::OtherReceiver
    }

    /// The next bytes to send over the connection; `None` if there are none at present.
    ///
    /// # Errors
    ///
    /// The spool cannot be read, or a message is too long for a frame.
    pub fn next_bytes(&mut self) -> Result<Option<Bytes>, ResumeError> {
        match &mut self.link {
            Link::Down => Ok(None),
            Link::Greeting(Greeting { receiver: Some(receiver), nonce, has_claimed, .. })
                if !*has_claimed =>
            {
                *has_claimed = true;
                let (receiver, nonce) = (*receiver, *nonce);
                let proof = Nonces { receiver, sender: nonce }.sender_proof(self.stream);
                Ok(Some(frame_of(Record::Claim { nonce, proof })))
            }
            Link::Greeting(_) => Ok(None),
            Link::Refused(record) => Ok(record.take().map(frame_of)),
            Link::Resumed(link) => {
                let mut bytes = BytesMut::new();
                if let Some(opening) = link.opening.take() {
                    opening.write(&mut bytes);
                }
                link.next = append(&mut self.spool, link.next, true, &mut bytes, &mut self.sent)?;
                let is_all = self.has_ended && link.next == self.spool.kept().end;
                if is_all && !std::mem::replace(&mut link.has_sent_end, true) {
                    Record::End { len: link.next }.write(&mut bytes);
                }
                Ok((!bytes.is_empty()).then(|| bytes.freeze()))
            }
            Link::Plain { next, in_frames } => {
                let mut bytes = BytesMut::new();
                let sent = &mut self.sent;
                *next = append(&mut self.spool, *next, *in_frames, &mut bytes, sent)?;
                self.spool.release(*next)?;
                self.is_complete = self.has_ended && self.spool.kept().is_empty();
                Ok((!bytes.is_empty()).then(|| bytes.freeze()))
            }
        }
    }
}

fn frame_of(record: Record) -> Bytes {
    let mut bytes = BytesMut::new();
    record.write(&mut bytes);
    bytes.freeze()
}

/// Appends the messages from `next` on to `bytes`, up to a limit, and counts them as sent. Returns
/// the offset after them.
fn append(
    spool: &mut impl Spool,
    mut next: u64,
    in_frames: bool,
    bytes: &mut BytesMut,
    sent: &mut Sent,
) -> Result<u64, ResumeError> {
    while bytes.len() < ENOUGH
        && let Some(message) = spool.read(next)?
    {
        match in_frames {
            true => write_frame(&message, bytes)?,
            false => bytes.extend_from_slice(&message),
        }
        next += message.len() as u64;
        sent.messages += 1;
        sent.bytes += message.len() as u64;
    }
    Ok(next)
}

/// Bytes that are given at once; more would only use memory.
const ENOUGH: usize = 16_384;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemorySpool;

    fn stream(number: u8) -> StreamSecret {
        StreamSecret::new([number; 16]).unwrap()
    }

    fn sender(messages: &[&'static str]) -> Sender<MemorySpool> {
        let mut sender = Sender::new(stream(1), MemorySpool::new(1_000));
        messages.iter().for_each(|message| sender.push((*message).into()).unwrap());
        sender
    }

    const NONCES: Nonces = Nonces { receiver: [3; 16], sender: [4; 16] };

    /// A new connection to a peer that has said hello, and has the sender's claim.
    fn greet(sender: &mut Sender<MemorySpool>, peer: ResumePeer) {
        sender.connected(PeerFormat::Resumable(NONCES.sender), peer).unwrap();
        assert!(frames(sender).is_empty() && sender.is_waiting());
        let hello = frame_of(Record::Hello { nonce: NONCES.receiver });
        assert_eq!(sender.receive(&hello).unwrap(), None);
        let proof = NONCES.sender_proof(stream(1));
        let claim = Record::Claim { nonce: NONCES.sender, proof };
        assert_eq!(frames(sender), [control(claim)]);
    }

    fn resume(written: u64, next: u64) -> Bytes {
        let proof = NONCES.receiver_proof(stream(1), written, next);
        frame_of(Record::Resume { proof, written, next })
    }

    /// Begins with a receiver that knows nothing, and confirms the beginning.
    fn begin(sender: &mut Sender<MemorySpool>, peer: ResumePeer) -> Resumption {
        greet(sender, peer);
        let resumption = sender.receive(&frame_of(Record::New)).unwrap().unwrap();
        assert!(!sender.is_waiting());
        resumption
    }

    fn written(sender: &mut Sender<MemorySpool>, offset: u64) {
        sender.receive(&frame_of(Record::Written { offset })).unwrap();
    }

    fn frames(sender: &mut Sender<MemorySpool>) -> Vec<Frame> {
        let mut reader = FrameReader::default();
        while let Some(bytes) = sender.next_bytes().unwrap() {
            reader.push(&bytes);
        }
        std::iter::from_fn(|| reader.next_frame().unwrap()).collect()
    }

    fn beginning(offset: u64) -> Frame {
        control(Record::Begin { stream: stream(1), offset })
    }

    fn control(record: Record) -> Frame {
        Frame::Control(frame_of(record).slice(4..))
    }

    fn message(text: &'static str) -> Frame {
        Frame::Message(text.into())
    }

    #[test]
    fn nothing_is_sent_before_the_receiver_told_its_position() {
        let mut sender = sender(&["one"]);
        let resumption = begin(&mut sender, ResumePeer::Anybody);
        assert_eq!(resumption, Resumption { is_known: false, offset: 0, missing: 0 });
        assert_eq!(frames(&mut sender), [beginning(0), message("one")]);
    }

    #[test]
    fn a_stream_goes_on_at_the_byte_that_the_receiver_wants() {
        let mut sender = sender(&["one", "two", "three"]);
        greet(&mut sender, ResumePeer::Anybody);
        let resumption = sender.receive(&resume(3, 8)).unwrap();
        assert_eq!(resumption, Some(Resumption { is_known: true, offset: 8, missing: 0 }));
        assert_eq!(sender.kept(), Kept { first: 3, end: 11 }, "the rest is not written yet");
        let going_on = control(Record::GoOn { offset: 8 });
        assert_eq!(frames(&mut sender), [going_on, message("ree")]);
        sender.disconnected();
        begin(&mut sender, ResumePeer::Chosen);
        assert_eq!(frames(&mut sender), [beginning(3), message("two"), message("three")]);
        assert_eq!(sender.sent(), Sent { messages: 3, bytes: 11 });
    }

    #[test]
    fn bytes_that_nobody_has_any_more_are_told() {
        let mut sender = sender(&["one", "two"]);
        greet(&mut sender, ResumePeer::Anybody);
        sender.receive(&resume(4, 4)).unwrap();
        greet(&mut sender, ResumePeer::Anybody);
        let resumption = sender.receive(&resume(1, 1)).unwrap();
        assert_eq!(resumption, Some(Resumption { is_known: true, offset: 4, missing: 3 }));
    }

    #[test]
    fn messages_are_kept_until_they_are_confirmed() {
        let mut sender = sender(&["one", "two"]);
        begin(&mut sender, ResumePeer::Anybody);
        frames(&mut sender);
        written(&mut sender, 0);
        assert_eq!(sender.kept().first, 0);
        written(&mut sender, 4);
        assert_eq!(sender.kept().first, 4);
        written(&mut sender, 1_000);
        assert_eq!(sender.kept().first, 6, "no more can be confirmed than was sent");
    }

    #[test]
    fn a_stranger_gets_nothing_of_a_stream_that_another_receiver_has_begun() {
        let mut sender = sender(&["one", "two"]);
        // Nobody has confirmed the beginning yet, so that it may be lost with its connection.
        begin(&mut sender, ResumePeer::Anybody);
        begin(&mut sender, ResumePeer::Anybody);
        frames(&mut sender);
        written(&mut sender, 0);
        let forged = |proof, written, next| frame_of(Record::Resume { proof, written, next });
        let other = NONCES.receiver_proof(stream(2), 6, 6);
        let of_another_place = NONCES.receiver_proof(stream(1), 3, 3);
        let of_sender = NONCES.sender_proof(stream(1));
        for answer in [
            frame_of(Record::New),
            forged(other, 6, 6),
            forged(of_another_place, 6, 6),
            forged(of_sender, 6, 6),
        ] {
            greet(&mut sender, ResumePeer::Anybody);
            let refused = sender.receive(&answer);
            assert!(matches!(refused, Err(ResumeError::OtherReceiver)), "{refused:?}");
            assert_eq!(frames(&mut sender), [control(Record::Refuse)]);
            assert!(sender.receive(&resume(6, 6)).unwrap().is_none(), "it has no second try");
            assert_eq!(frames(&mut sender), []);
        }
        for format in [PeerFormat::Frames, PeerFormat::Bytes] {
            let refused = sender.connected(format, ResumePeer::Anybody);
            assert!(matches!(refused, Err(ResumeError::OtherReceiver)), "{refused:?}");
            assert_eq!(frames(&mut sender), []);
        }
        assert_eq!(sender.kept(), Kept { first: 0, end: 6 });
        greet(&mut sender, ResumePeer::Anybody);
        assert!(sender.receive(&resume(0, 3)).unwrap().is_some(), "the true one goes on");
    }

    #[test]
    fn the_stream_is_complete_when_the_receiver_has_confirmed_its_end() {
        let mut sender = sender(&["one"]);
        begin(&mut sender, ResumePeer::Anybody);
        frames(&mut sender);
        sender.end();
        assert_eq!(frames(&mut sender), [control(Record::End { len: 3 })]);
        written(&mut sender, 3);
        assert!(!sender.is_complete());
        sender.receive(&frame_of(Record::End { len: 3 })).unwrap();
        assert!(sender.is_complete());
    }

    #[test]
    fn a_receiver_that_has_more_than_the_sender_is_an_error() {
        let mut sender = sender(&["one"]);
        greet(&mut sender, ResumePeer::Anybody);
        let error = sender.receive(&resume(4, 4)).unwrap_err();
        assert!(error.to_string().contains("has 4 bytes of this stream, and its sender only 3"));
    }

    #[test]
    fn records_out_of_turn_are_errors() {
        let end = frame_of(Record::End { len: 3 });
        let early = frame_of(Record::Written { offset: 3 });
        let hello = frame_of(Record::Hello { nonce: [9; 16] });
        let mut sender = sender(&["one"]);
        for bytes in [&end, &early, &resume(0, 0), &frame_of(Record::New)] {
            sender.connected(PeerFormat::Resumable([1; 16]), ResumePeer::Chosen).unwrap();
            assert!(matches!(sender.receive(bytes), Err(ResumeError::OutOfTurn(_))));
        }
        greet(&mut sender, ResumePeer::Anybody);
        assert!(matches!(sender.receive(&hello), Err(ResumeError::OutOfTurn(_))), "a second one");
        begin(&mut sender, ResumePeer::Anybody);
        assert!(matches!(sender.receive(&early), Err(ResumeError::OutOfTurn(_))), "nothing sent");
        frames(&mut sender);
        assert!(matches!(sender.receive(&end), Err(ResumeError::OutOfTurn(_))), "no end was sent");
        let refusal = sender.receive(&frame_of(Record::Refuse));
        assert!(matches!(refusal, Err(ResumeError::Refused)));
    }

    #[test]
    fn a_peer_that_cannot_resume_gets_frames_or_bytes_alone() {
        let mut sender = sender(&["one", "two"]);
        sender.connected(PeerFormat::Frames, ResumePeer::Anybody).unwrap();
        assert_eq!(frames(&mut sender), [message("one"), message("two")]);
        assert!(sender.kept().is_empty());
        sender.push("three".into()).unwrap();
        sender.end();
        sender.connected(PeerFormat::Bytes, ResumePeer::Anybody).unwrap();
        assert_eq!(sender.next_bytes().unwrap().as_deref(), Some(&b"three"[..]));
        assert!(sender.is_complete());
    }
}
