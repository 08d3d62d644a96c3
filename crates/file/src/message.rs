//! The messages that carry files.
//!
//! srt-xtransmit knows one kind, its *segments*: a byte of flags, the path in the first segment of
//! a file, and bytes of the file. Two Punctual ends use more kinds, whose first byte is one that no
//! segment begins with:
//!
//! | from the sender | |
//! |---|---|
//! | `Offer` | the next file: size, fingerprint and path. Offers are sent ahead of the files |
//! | `Claim` | the SHA-256 of as many bytes of an offered file as the receiver has |
//! | `Start` | the bytes of an offered file from this offset on follow |
//! | `Data` | bytes of the file |
//! | `End` | the end of the file: the SHA-256 of all of it |
//! | `Skip` | nothing (more) of an offered file is sent |
//! | `Unsent` | a file that cannot be offered, and the reason |
//! | `Finish` | there are no more files |
//!
//! Offers count from 0; the other messages name an offered file by its number.
//!
//! | from the receiver | |
//! |---|---|
//! | `Hello` | the first message: the language that the sender is to use |
//! | `Answer` | to each offer in turn: the number of bytes that are there, or a refusal |
//! | `Verdict` | to each claim in turn: whether the bytes that are there are the same |
//! | `Done` | to each `End`: the file is complete, or the reason why it is not |
//! | `Bye` | to `Finish` |
//!
//! Numbers are big-endian.

use bytes::{BufMut, Bytes, BytesMut};
use thiserror::Error;

/// A message that cannot be read.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("the other end sent a message that makes no sense")]
pub struct MalformedMessage;

/// A SHA-256.
pub type Digest = [u8; 32];

/// The first eight bytes of the SHA-256 of a file's first [`SAMPLE`] bytes. It tells files apart at
/// little cost: a receiver compares all bytes only where this is the same.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Fingerprint(pub [u8; 8]);

/// Bytes of a file that its [`Fingerprint`] covers.
pub const SAMPLE: u64 = 65_536;

/// A piece of a file as srt-xtransmit sends it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Segment {
    /// The file's path, unchecked, in the file's first segment.
    pub path: Option<Bytes>,
    /// Whether this is the file's last segment.
    pub last: bool,
    /// Bytes of the file.
    pub data: Bytes,
}

/// A message from the sender of files.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FromSender {
    /// A segment, the one message of srt-xtransmit.
    Segment(Segment),
    /// The next file.
    Offer {
        /// Bytes of the file.
        size: u64,
        /// The fingerprint of the file.
        fingerprint: Fingerprint,
        /// Its path, unchecked.
        path: Bytes,
    },
    /// The digest of as many first bytes of this file as the receiver has.
    Claim {
        /// The number of the offer.
        offer: u32,
        /// The digest.
        digest: Digest,
    },
    /// This file follows.
    Start {
        /// The number of the offer.
        offer: u32,
        /// The first byte that is sent: as many bytes of it as the receiver has, or 0.
        offset: u64,
    },
    /// Bytes of the file.
    Data(Bytes),
    /// The end of the file, with the SHA-256 of all of it.
    End(Digest),
    /// Nothing is sent of this file, or nothing more.
    Skip {
        /// The number of the offer.
        offer: u32,
        /// The reason.
        reason: SkipReason,
    },
    /// A file that is not offered, because it cannot be sent: its path and the reason, for people.
    Unsent(String),
    /// There are no more files.
    Finish,
}

/// The reason for which a file is not sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SkipReason {
    /// It cannot be read.
    Failed,
    /// It changed while it was sent, so that the bytes that were sent may be of two versions.
    Changed,
}

/// A message from the receiver of files.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FromReceiver {
    /// The language that the sender is to use.
    Hello(Language),
    /// The answer to an offer.
    Answer(Answer),
    /// The answer to a claim: whether the bytes that are there have this digest.
    Verdict(bool),
    /// The file whose end came is complete, or the reason why it is not.
    Done(Result<(), String>),
    /// Everything was received.
    Bye,
}

/// The kinds of messages that a transfer uses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Language {
    /// srt-xtransmit's segments alone.
    Segments,
    /// All messages, between two Punctual ends.
    Punctual,
}

/// The answer of a receiver to the offer of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Answer {
    /// This number of the file's first bytes is there; 0 if nothing is.
    Part(u64),
    /// A complete file of that name, size and fingerprint is there.
    Whole {
        /// Whether a file with another digest replaces it.
        replaces: bool,
    },
    /// The file is refused, for this reason.
    Refused(String),
}

impl Segment {
    /// The message as it is sent.
    pub fn to_bytes(&self) -> Bytes {
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
    ///
    /// # Errors
    ///
    /// The message is empty, of no kind that is known, or too short for its kind.
    pub fn parse(mut message: Bytes) -> Result<Self, MalformedMessage> {
        if message.is_empty() {
            return Err(MalformedMessage);
        }
        let kind = message.split_to(1)[0];
        match kind {
            0..=SEGMENT_FLAGS => Segment::parse(kind, message).map(Self::Segment),
            OFFER => {
                let size = number(&mut message)?;
                let fingerprint = Fingerprint(array(&mut message)?);
                Ok(Self::Offer { size, fingerprint, path: message })
            }
            CLAIM => {
                let offer = offer(&mut message)?;
                Ok(Self::Claim { offer, digest: array(&mut message)? })
            }
            START => {
                let offer = offer(&mut message)?;
                Ok(Self::Start { offer, offset: number(&mut message)? })
            }
            DATA => Ok(Self::Data(message)),
            END => array(&mut message).map(Self::End),
            SKIP => {
                let offer = offer(&mut message)?;
                let reason = match message.first() {
                    Some(0) => SkipReason::Failed,
                    Some(1) => SkipReason::Changed,
                    _ => return Err(MalformedMessage),
                };
                Ok(Self::Skip { offer, reason })
            }
            UNSENT => Ok(Self::Unsent(text(&message))),
            FINISH => Ok(Self::Finish),
            _ => Err(MalformedMessage),
        }
    }

    /// The message as it is sent.
    pub fn to_bytes(&self) -> Bytes {
        let mut out = BytesMut::new();
        match self {
            Self::Segment(segment) => return segment.to_bytes(),
            Self::Offer { size, fingerprint, path } => {
                out.put_u8(OFFER);
                out.put_u64(*size);
                out.put_slice(&fingerprint.0);
                out.put_slice(path);
            }
            Self::Claim { offer, digest } => {
                out.put_u8(CLAIM);
                out.put_u32(*offer);
                out.put_slice(digest);
            }
            Self::Start { offer, offset } => {
                out.put_u8(START);
                out.put_u32(*offer);
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
            Self::Skip { offer, reason } => {
                out.put_u8(SKIP);
                out.put_u32(*offer);
                out.put_u8(match reason {
                    SkipReason::Failed => 0,
                    SkipReason::Changed => 1,
                });
            }
            Self::Unsent(problem) => {
                out.put_u8(UNSENT);
                out.put_slice(problem.as_bytes());
            }
            Self::Finish => out.put_u8(FINISH),
        }
        out.freeze()
    }
}

impl FromReceiver {
    /// Reads a message.
    ///
    /// # Errors
    ///
    /// The message is empty, of no kind that is known, or too short for its kind.
    pub fn parse(mut message: Bytes) -> Result<Self, MalformedMessage> {
        if message.is_empty() {
            return Err(MalformedMessage);
        }
        let kind = message.split_to(1)[0];
        match kind {
            HELLO => match message.first() {
                Some(0) => Ok(Self::Hello(Language::Segments)),
                // A later version knows this language as well.
                Some(_) => Ok(Self::Hello(Language::Punctual)),
                None => Err(MalformedMessage),
            },
            ANSWER => {
                let kind = message.split_to(usize::from(!message.is_empty()));
                Ok(Self::Answer(match kind.first() {
                    Some(0) => Answer::Part(number(&mut message)?),
                    Some(1) => Answer::Whole { replaces: false },
                    Some(2) => Answer::Whole { replaces: true },
                    Some(3) => Answer::Refused(text(&message)),
                    _ => return Err(MalformedMessage),
                }))
            }
            VERDICT => match message.first() {
                Some(same) => Ok(Self::Verdict(*same > 0)),
                None => Err(MalformedMessage),
            },
            DONE => match message.first() {
                Some(0) => Ok(Self::Done(Ok(()))),
                Some(_) => Ok(Self::Done(Err(text(&message[1..])))),
                None => Err(MalformedMessage),
            },
            BYE => Ok(Self::Bye),
            _ => Err(MalformedMessage),
        }
    }

    /// The message as it is sent.
    pub fn to_bytes(&self) -> Bytes {
        let mut out = BytesMut::new();
        match self {
            Self::Hello(Language::Segments) => out.put_slice(&[HELLO, 0]),
            Self::Hello(Language::Punctual) => out.put_slice(&[HELLO, 1]),
            Self::Answer(Answer::Part(have)) => {
                out.put_slice(&[ANSWER, 0]);
                out.put_u64(*have);
            }
            Self::Answer(Answer::Whole { replaces }) => {
                out.put_slice(&[ANSWER, 1 + u8::from(*replaces)]);
            }
            Self::Answer(Answer::Refused(why)) => {
                out.put_slice(&[ANSWER, 3]);
                out.put_slice(why.as_bytes());
            }
            Self::Verdict(same) => out.put_slice(&[VERDICT, u8::from(*same)]),
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
    array(message).map(u64::from_be_bytes)
}

/// The number of an offer.
fn offer(message: &mut Bytes) -> Result<u32, MalformedMessage> {
    array(message).map(u32::from_be_bytes)
}

fn array<const LEN: usize>(message: &mut Bytes) -> Result<[u8; LEN], MalformedMessage> {
    let bytes = message.split_to_checked(LEN).ok_or(MalformedMessage)?;
    bytes.as_ref().try_into().map_err(|_| MalformedMessage)
}

/// Text of the other end for people, without control characters, which a terminal might obey.
fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(LONGEST_TEXT)]);
    text.chars().filter(|letter| !letter.is_control()).collect()
}

trait SplitChecked: Sized {
    /// The first `len` bytes, unless there are fewer.
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
const CLAIM: u8 = 0x8A;
const VERDICT: u8 = 0x8B;
const UNSENT: u8 = 0x8C;

/// Most bytes of the other end's text that are shown.
const LONGEST_TEXT: usize = 500;

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
