//! The sender of a stream.

use bytes::{Bytes, BytesMut};
use punctual_proto::{Frame, FrameError, FrameReader, write_frame};
use thiserror::Error;

use crate::record::{Record, RecordError, StreamIdentity};
use crate::spool::{Kept, Spool, SpoolError};

/// The sender of a stream: keeps messages until the receiver has confirmed them, and sends them
/// over one connection after the other.
#[derive(Debug)]
pub struct Sender<S> {
    stream: StreamIdentity,
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
    /// Frames and records. Messages are kept until the receiver has confirmed them.
    Resumable,
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
    Waiting(FrameReader),
    /// The stream goes on over it.
    Resumed(Resumed),
    /// The peer cannot resume a stream.
    Plain { next: u64, in_frames: bool },
}

#[derive(Debug)]
struct Resumed {
    frames: FrameReader,
    /// The offset of the next byte to be sent.
    next: u64,
    has_begun: bool,
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
    pub const fn new(stream: StreamIdentity, spool: S) -> Self {
        let sent = Sent { messages: 0, bytes: 0 };
        Self { stream, spool, has_ended: false, is_complete: false, sent, link: Link::Down }
    }

    /// The stream.
    pub const fn stream(&self) -> StreamIdentity {
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

    /// A connection is established.
    pub fn connected(&mut self, format: PeerFormat) {
        let next = self.kept().first;
        self.link = match format {
            PeerFormat::Resumable => Link::Waiting(FrameReader::default()),
            PeerFormat::Frames => Link::Plain { next, in_frames: true },
            PeerFormat::Bytes => Link::Plain { next, in_frames: false },
        };
    }

    /// The connection is lost.
    pub fn disconnected(&mut self) {
        self.link = Link::Down;
    }

    /// Whether the receiver has not told its position over this connection yet.
    pub const fn is_waiting(&self) -> bool {
        matches!(self.link, Link::Waiting(_))
    }

    /// Takes bytes that came over the connection. Returns where the stream goes on, once for each
    /// connection.
    ///
    /// # Errors
    ///
    /// The peer does not keep to the protocol, or the spool fails: the connection is of no use any
    /// more.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<Option<Resumption>, ResumeError> {
        let (Link::Waiting(frames) | Link::Resumed(Resumed { frames, .. })) = &mut self.link else {
            return Ok(None);
        };
        frames.push(bytes);
        let mut resumption = None;
        while let Some(frame) = self.next_frame()? {
            // The receiver may have messages of its own, which nobody takes.
            if let Frame::Control(record) = frame {
                resumption = self.take(Record::read(&record)?)?.or(resumption);
            }
        }
        Ok(resumption)
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        match &mut self.link {
            Link::Waiting(frames) | Link::Resumed(Resumed { frames, .. }) => frames.next_frame(),
            Link::Down | Link::Plain { .. } => Ok(None),
        }
    }

    fn take(&mut self, record: Record) -> Result<Option<Resumption>, ResumeError> {
        match (&mut self.link, record) {
            (Link::Waiting(frames), Record::Position { stream, written, next }) => {
                let frames = std::mem::take(frames);
                let resumption = self.go_on(stream, written, next)?;
                let (next, has_begun, has_sent_end) = (resumption.offset, false, false);
                self.link = Link::Resumed(Resumed { frames, next, has_begun, has_sent_end });
                Ok(Some(resumption))
            }
            (Link::Resumed(link), Record::Position { stream: Some(stream), written, .. })
                if stream == self.stream =>
            {
                self.spool.release(written.min(link.next))?;
                Ok(None)
            }
            // It has not read the beginning yet.
            (Link::Resumed(_), Record::Position { .. }) => Ok(None),
            (Link::Resumed(link), Record::End { len })
                if link.has_sent_end && len == self.spool.kept().end =>
            {
                self.spool.release(len)?;
                self.is_complete = true;
                Ok(None)
            }
            (_, record) => Err(ResumeError::OutOfTurn(record)),
        }
    }

    /// Finds the place at which to go on with a receiver at this position.
    fn go_on(
        &mut self,
        stream: Option<StreamIdentity>,
        written: u64,
        next: u64,
    ) -> Result<Resumption, ResumeError> {
        let Kept { first, end } = self.kept();
        if stream != Some(self.stream) {
            return Ok(Resumption { is_known: false, offset: first, missing: 0 });
        }
        if next > end {
            return Err(ResumeError::Ahead { receiver: next, sender: end });
        }
        self.spool.release(written.min(next))?;
        let missing = first.saturating_sub(next);
        Ok(Resumption { is_known: true, offset: next.max(first), missing })
    }

    /// The next bytes to send over the connection; `None` if there are none at present.
    ///
    /// # Errors
    ///
    /// The spool cannot be read, or a message is too long for a frame.
    pub fn next_bytes(&mut self) -> Result<Option<Bytes>, ResumeError> {
        match &mut self.link {
            Link::Down | Link::Waiting(_) => Ok(None),
            Link::Resumed(link) => {
                let mut bytes = BytesMut::new();
                if !std::mem::replace(&mut link.has_begun, true) {
                    Record::Begin { stream: self.stream, offset: link.next }.write(&mut bytes);
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

    fn stream(number: u8) -> StreamIdentity {
        StreamIdentity::new([number; 16]).unwrap()
    }

    fn sender(messages: &[&'static str]) -> Sender<MemorySpool> {
        let mut sender = Sender::new(stream(1), MemorySpool::new(1_000));
        messages.iter().for_each(|message| sender.push((*message).into()).unwrap());
        sender
    }

    fn position(stream: Option<StreamIdentity>, written: u64, next: u64) -> BytesMut {
        let mut bytes = BytesMut::new();
        Record::Position { stream, written, next }.write(&mut bytes);
        bytes
    }

    fn frames(sender: &mut Sender<MemorySpool>) -> Vec<Frame> {
        let mut reader = FrameReader::default();
        while let Some(bytes) = sender.next_bytes().unwrap() {
            reader.push(&bytes);
        }
        std::iter::from_fn(|| reader.next_frame().unwrap()).collect()
    }

    fn begin(offset: u64) -> Frame {
        control(Record::Begin { stream: stream(1), offset })
    }

    fn control(record: Record) -> Frame {
        let mut bytes = BytesMut::new();
        record.write(&mut bytes);
        Frame::Control(bytes.freeze().slice(4..))
    }

    fn message(text: &'static str) -> Frame {
        Frame::Message(text.into())
    }

    #[test]
    fn nothing_is_sent_before_the_receiver_told_its_position() {
        let mut sender = sender(&["one"]);
        sender.connected(PeerFormat::Resumable);
        assert!(frames(&mut sender).is_empty() && sender.is_waiting());
        let resumption = sender.receive(&position(None, 0, 0)).unwrap();
        assert_eq!(resumption, Some(Resumption { is_known: false, offset: 0, missing: 0 }));
        assert_eq!(frames(&mut sender), [begin(0), message("one")]);
        assert!(!sender.is_waiting());
    }

    #[test]
    fn a_stream_goes_on_at_the_byte_that_the_receiver_wants() {
        let mut sender = sender(&["one", "two", "three"]);
        sender.connected(PeerFormat::Resumable);
        let resumption = sender.receive(&position(Some(stream(1)), 3, 8)).unwrap();
        assert_eq!(resumption, Some(Resumption { is_known: true, offset: 8, missing: 0 }));
        assert_eq!(sender.kept(), Kept { first: 3, end: 11 }, "the rest is not written yet");
        assert_eq!(frames(&mut sender), [begin(8), message("ree")]);
        sender.disconnected();
        sender.connected(PeerFormat::Resumable);
        sender.receive(&position(None, 0, 0)).unwrap();
        assert_eq!(frames(&mut sender), [begin(3), message("two"), message("three")]);
        assert_eq!(sender.sent(), Sent { messages: 3, bytes: 11 });
    }

    #[test]
    fn bytes_that_nobody_has_any_more_are_told() {
        let mut sender = sender(&["one", "two"]);
        sender.connected(PeerFormat::Resumable);
        sender.receive(&position(Some(stream(1)), 4, 4)).unwrap();
        sender.connected(PeerFormat::Resumable);
        let resumption = sender.receive(&position(Some(stream(1)), 1, 1)).unwrap();
        assert_eq!(resumption, Some(Resumption { is_known: true, offset: 4, missing: 3 }));
    }

    #[test]
    fn messages_are_kept_until_they_are_confirmed() {
        let mut sender = sender(&["one", "two"]);
        sender.connected(PeerFormat::Resumable);
        sender.receive(&position(None, 0, 0)).unwrap();
        frames(&mut sender);
        sender.receive(&position(None, 6, 6)).unwrap();
        assert_eq!(sender.kept().first, 0, "another stream was confirmed");
        sender.receive(&position(Some(stream(1)), 4, 6)).unwrap();
        assert_eq!(sender.kept().first, 4);
        sender.receive(&position(Some(stream(1)), 1_000, 6)).unwrap();
        assert_eq!(sender.kept().first, 6, "no more can be confirmed than was sent");
    }

    #[test]
    fn the_stream_is_complete_when_the_receiver_has_confirmed_its_end() {
        let mut sender = sender(&["one"]);
        sender.connected(PeerFormat::Resumable);
        sender.receive(&position(None, 0, 0)).unwrap();
        frames(&mut sender);
        sender.end();
        assert_eq!(frames(&mut sender), [control(Record::End { len: 3 })]);
        sender.receive(&position(Some(stream(1)), 3, 3)).unwrap();
        assert!(!sender.is_complete());
        let mut end = BytesMut::new();
        Record::End { len: 3 }.write(&mut end);
        sender.receive(&end).unwrap();
        assert!(sender.is_complete());
    }

    #[test]
    fn a_receiver_that_has_more_than_the_sender_is_an_error() {
        let mut sender = sender(&["one"]);
        sender.connected(PeerFormat::Resumable);
        let error = sender.receive(&position(Some(stream(1)), 4, 4)).unwrap_err();
        assert!(error.to_string().contains("has 4 bytes of this stream, and its sender only 3"));
    }

    #[test]
    fn records_out_of_turn_are_errors() {
        let mut sender = sender(&["one"]);
        sender.connected(PeerFormat::Resumable);
        let mut end = BytesMut::new();
        Record::End { len: 3 }.write(&mut end);
        assert!(matches!(sender.receive(&end), Err(ResumeError::OutOfTurn(_))));
        sender.receive(&position(None, 0, 0)).unwrap();
        frames(&mut sender);
        assert!(matches!(sender.receive(&end), Err(ResumeError::OutOfTurn(_))), "no end was sent");
    }

    #[test]
    fn a_peer_that_cannot_resume_gets_frames_or_bytes_alone() {
        let mut sender = sender(&["one", "two"]);
        sender.connected(PeerFormat::Frames);
        assert_eq!(frames(&mut sender), [message("one"), message("two")]);
        assert!(sender.kept().is_empty());
        sender.push("three".into()).unwrap();
        sender.end();
        sender.connected(PeerFormat::Bytes);
        assert_eq!(sender.next_bytes().unwrap().as_deref(), Some(&b"three"[..]));
        assert!(sender.is_complete());
    }
}
