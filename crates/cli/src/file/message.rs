//! The messages that carry files.
//!
//! srt-xtransmit's *segments* know one kind: a byte of flags, the path in a file's first segment,
//! and bytes of the file. Two Punctual ends speak of more, and their messages begin with a byte
//! that no segment begins with:
//!
//! | from the sender | |
//! |---|---|
//! | `Offer` | the next file: size and path. Offers go ahead of the files |
//! | `Start` | the bytes from this place on follow |
//! | `Data` | bytes of the file |
//! | `End` | the file is over: the SHA-256 of all of it |
//! | `Skip` | nothing of the file is sent: it is there already, or cannot be |
//! | `Finish` | there are no more files |
//!
//! | from the receiver | |
//! |---|---|
//! | `Hello` | the first message of all: which of both languages is to be spoken |
//! | `Answer` | to each offer in turn: what is there already of it, and its SHA-256, or a refusal |
//! | `Done` | to each `End`: whether the file is whole |
//! | `Bye` | to `Finish` |
//!
//! Numbers are big-endian.

use bytes::{BufMut, Bytes, BytesMut};
use thiserror::Error;

/// A message that is none.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("the other end sent a message that makes no sense")]
pub(crate) struct MalformedMessage;

/// A SHA-256.
pub(crate) type Digest = [u8; 32];

/// A piece of a file as srt-xtransmit sends it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Segment {
    /// The file's path, as it was sent, if it begins here.
    pub(crate) path: Option<Bytes>,
    /// Whether it ends here.
    pub(crate) last: bool,
    /// Bytes of it.
    pub(crate) data: Bytes,
}

/// What a sender says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum FromSender {
    Segment(Segment),
    Offer { size: u64, path: Bytes },
    Start { offset: u64 },
    Data(Bytes),
    End(Digest),
    Skip(Why),
    Finish,
}

/// Why nothing of a file is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Why {
    /// The receiver has it already.
    Same,
    /// The receiver has another one of its name.
    Other,
    /// It cannot be read, or was refused.
    Failed,
}

/// What a receiver says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum FromReceiver {
    Hello(Language),
    Answer(Answer),
    Done(Result<(), String>),
    Bye,
}

/// What is spoken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Language {
    /// srt-xtransmit's segments.
    Segments,
    /// The messages of two Punctual ends.
    Punctual,
}

/// What a receiver has of a file that it was offered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Answer {
    /// The first so many bytes, with this digest; perhaps none.
    Part(u64, Digest),
    /// A whole file of that name and size with this digest. It is replaced by another one only if
    /// `replaces`.
    Whole { digest: Digest, replaces: bool },
    /// It is not wanted, and why.
    Refused(String),
}

impl Segment {
    /// As it goes over the wire.
    pub(crate) fn to_bytes(&self) -> Bytes {
        let path = self.path.as_deref();
        let mut out = BytesMut::with_capacity(2 + path.map_or(0, <[u8]>::len) + self.data.len());
        let first = if path.is_some() { FIRST } else { 0 };
        out.put_u8(first | if self.last { LAST } else { 0 });
        if let Some(path) = path {
            out.put_slice(path);
            out.put_u8(0);
        }
        out.put_slice(&self.data);
        out.freeze()
    }

    fn parse(flags: u8, mut rest: Bytes) -> Result<Self, MalformedMessage> {
        let mut path = None;
        if flags & FIRST != 0 {
            let end = rest.iter().position(|byte| *byte == 0).ok_or(MalformedMessage)?;
            path = Some(rest.split_to(end));
            let _ = rest.split_to(1);
        }
        Ok(Self { path, last: flags & LAST != 0, data: rest })
    }
}

impl FromSender {
    /// Reads a message.
    pub(crate) fn parse(mut message: Bytes) -> Result<Self, MalformedMessage> {
        if message.is_empty() {
            return Err(MalformedMessage);
        }
        let kind = message.split_to(1)[0];
        match kind {
            0..=SEGMENT_FLAGS => Segment::parse(kind, message).map(Self::Segment),
            OFFER => {
                let size = number(&mut message)?;
                Ok(Self::Offer { size, path: message })
            }
            START => Ok(Self::Start { offset: number(&mut message)? }),
            DATA => Ok(Self::Data(message)),
            END => digest(&mut message).map(Self::End),
            SKIP => match message.first() {
                Some(0) => Ok(Self::Skip(Why::Same)),
                Some(1) => Ok(Self::Skip(Why::Other)),
                Some(2) => Ok(Self::Skip(Why::Failed)),
                _ => Err(MalformedMessage),
            },
            FINISH => Ok(Self::Finish),
            _ => Err(MalformedMessage),
        }
    }

    /// As it goes over the wire.
    pub(crate) fn to_bytes(&self) -> Bytes {
        let mut out = BytesMut::new();
        match self {
            Self::Segment(segment) => return segment.to_bytes(),
            Self::Offer { size, path } => {
                out.put_u8(OFFER);
                out.put_u64(*size);
                out.put_slice(path);
            }
            Self::Start { offset } => {
                out.put_u8(START);
                out.put_u64(*offset);
            }
            Self::Data(data) => {
                out.reserve(1 + data.len());
                out.put_u8(DATA);
                out.put_slice(data);
            }
            Self::End(digest) => {
                out.put_u8(END);
                out.put_slice(digest);
            }
            Self::Skip(why) => out.put_slice(&[
                SKIP,
                match why {
                    Why::Same => 0,
                    Why::Other => 1,
                    Why::Failed => 2,
                },
            ]),
            Self::Finish => out.put_u8(FINISH),
        }
        out.freeze()
    }
}

impl FromReceiver {
    /// Reads a message.
    pub(crate) fn parse(mut message: Bytes) -> Result<Self, MalformedMessage> {
        if message.is_empty() {
            return Err(MalformedMessage);
        }
        let kind = message.split_to(1)[0];
        match kind {
            HELLO => match message.first() {
                Some(0) => Ok(Self::Hello(Language::Segments)),
                // A later version speaks this one as well.
                Some(_) => Ok(Self::Hello(Language::Punctual)),
                None => Err(MalformedMessage),
            },
            ANSWER => {
                let what = message.split_to(usize::from(!message.is_empty()));
                Ok(Self::Answer(match what.first() {
                    Some(0) => {
                        let have = number(&mut message)?;
                        Answer::Part(have, digest(&mut message)?)
                    }
                    Some(1) => Answer::Whole { digest: digest(&mut message)?, replaces: false },
                    Some(2) => Answer::Whole { digest: digest(&mut message)?, replaces: true },
                    Some(3) => Answer::Refused(text(&message)),
                    _ => return Err(MalformedMessage),
                }))
            }
            DONE => match message.first() {
                Some(0) => Ok(Self::Done(Ok(()))),
                Some(_) => Ok(Self::Done(Err(text(&message[1..])))),
                None => Err(MalformedMessage),
            },
            BYE => Ok(Self::Bye),
            _ => Err(MalformedMessage),
        }
    }

    /// As it goes over the wire.
    pub(crate) fn to_bytes(&self) -> Bytes {
        let mut out = BytesMut::new();
        match self {
            Self::Hello(Language::Segments) => out.put_slice(&[HELLO, 0]),
            Self::Hello(Language::Punctual) => out.put_slice(&[HELLO, 1]),
            Self::Answer(Answer::Part(have, digest)) => {
                out.put_slice(&[ANSWER, 0]);
                out.put_u64(*have);
                out.put_slice(digest);
            }
            Self::Answer(Answer::Whole { digest, replaces }) => {
                out.put_slice(&[ANSWER, 1 + u8::from(*replaces)]);
                out.put_slice(digest);
            }
            Self::Answer(Answer::Refused(why)) => {
                out.put_slice(&[ANSWER, 3]);
                out.put_slice(why.as_bytes());
            }
            Self::Done(Ok(())) => out.put_slice(&[DONE, 0]),
            Self::Done(Err(why)) => {
                out.put_slice(&[DONE, 1]);
                out.put_slice(why.as_bytes());
            }
            Self::Bye => out.put_u8(BYE),
        }
        out.freeze()
    }
}

fn number(message: &mut Bytes) -> Result<u64, MalformedMessage> {
    let bytes = message.split_to_checked(8).ok_or(MalformedMessage)?;
    Ok(u64::from_be_bytes(bytes.as_ref().try_into().map_err(|_| MalformedMessage)?))
}

fn digest(message: &mut Bytes) -> Result<Digest, MalformedMessage> {
    let bytes = message.split_to_checked(32).ok_or(MalformedMessage)?;
    bytes.as_ref().try_into().map_err(|_| MalformedMessage)
}

/// What the other end wrote for people, without what a terminal might obey.
fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(LONGEST_TEXT)]);
    text.chars().filter(|letter| !letter.is_control()).collect()
}

trait SplitChecked: Sized {
    /// The first `len` bytes, if there are so many.
    fn split_to_checked(&mut self, len: usize) -> Option<Self>;
}

impl SplitChecked for Bytes {
    fn split_to_checked(&mut self, len: usize) -> Option<Self> {
        (self.len() >= len).then(|| self.split_to(len))
    }
}

const FIRST: u8 = 1;
const LAST: u8 = 2;
const SEGMENT_FLAGS: u8 = FIRST | LAST;

const HELLO: u8 = 0x80;
const OFFER: u8 = 0x81;
const ANSWER: u8 = 0x82;
const START: u8 = 0x83;
const DATA: u8 = 0x84;
const END: u8 = 0x85;
const SKIP: u8 = 0x86;
const FINISH: u8 = 0x87;
const DONE: u8 = 0x88;
const BYE: u8 = 0x89;

/// Bytes of the other end's words that are shown.
const LONGEST_TEXT: usize = 500;

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
