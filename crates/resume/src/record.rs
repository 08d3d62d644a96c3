//! The records that two ends exchange.

use std::fmt;

use bytes::{Buf, BytesMut};
use punctual_proto::write_control_frame;
use thiserror::Error;

/// The name of a stream, by which two ends recognise it over a new connection: 128 random bits that
/// its sender chooses.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct StreamIdentity([u8; 16]);

impl StreamIdentity {
    /// The identity of these bytes; `None` if all are zero, which stands for no stream.
    pub fn new(bytes: [u8; 16]) -> Option<Self> {
        (bytes != NO_STREAM).then_some(Self(bytes))
    }

    /// The bytes.
    pub const fn bytes(self) -> [u8; 16] {
        self.0
    }
}

impl fmt::Display for StreamIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A record in a control frame. All numbers are big endian.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Record {
    /// From the sender, before the first message of a connection: a byte 1, the identity, and the
    /// offset of the first byte that follows as 8 bytes.
    Begin {
        /// The stream.
        stream: StreamIdentity,
        /// The offset of the next byte.
        offset: u64,
    },
    /// From the receiver, first of all and then whenever more is written: a byte 2, the identity or
    /// zeros, and two offsets of 8 bytes each.
    Position {
        /// The stream that the receiver has last read; `None` if it knows none.
        stream: Option<StreamIdentity>,
        /// The offset before which all bytes are written: the sender need not keep them.
        written: u64,
        /// The offset of the next byte that the receiver wants over a new connection.
        next: u64,
    },
    /// From the sender, after the last message: a byte 3 and the number of bytes of the stream as 8
    /// bytes.
    End {
        /// The number of bytes of the whole stream.
        len: u64,
    },
}

/// Bytes that are no record.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum RecordError {
    /// The first byte is that of no record.
    #[error("a control frame has a record of kind {0}, which is none of 1 to 3")]
    Kind(u8),
    /// It has another number of bytes than records of its kind have.
    #[error("a control frame has {len} bytes, where its record has {expected}")]
    Len {
        /// The bytes that are there.
        len: usize,
        /// The bytes that should be there.
        expected: usize,
    },
    /// A stream begins that has no identity.
    #[error("a stream begins whose identity is zero")]
    NoStream,
    /// An offset is larger than any stream can be long.
    #[error("an offset of {0} bytes is more than the {MAX_OFFSET} that a stream may have")]
    Offset(u64),
}

impl Record {
    /// Appends the control frame of this record to `frames`.
    pub fn write(&self, frames: &mut BytesMut) {
        let mut record = Vec::with_capacity(33);
        match *self {
            Self::Begin { stream, offset } => {
                record.push(BEGIN);
                record.extend(stream.bytes());
                record.extend(offset.to_be_bytes());
            }
            Self::Position { stream, written, next } => {
                record.push(POSITION);
                record.extend(stream.map_or(NO_STREAM, StreamIdentity::bytes));
                record.extend(written.to_be_bytes());
                record.extend(next.to_be_bytes());
            }
            Self::End { len } => {
                record.push(END);
                record.extend(len.to_be_bytes());
            }
        }
        let written = write_control_frame(&record, frames);
        debug_assert!(written.is_ok(), "33 bytes fit into a frame");
    }

    /// Reads the record of a control frame.
    ///
    /// # Errors
    ///
    /// The bytes are no record.
    pub fn read(mut bytes: &[u8]) -> Result<Self, RecordError> {
        let len = bytes.len();
        let kind = bytes.try_get_u8().map_err(|_| RecordError::Len { len, expected: 9 })?;
        let expected = match kind {
            BEGIN => 25,
            POSITION => 33,
            END => 9,
            kind => return Err(RecordError::Kind(kind)),
        };
        if len != expected {
            return Err(RecordError::Len { len, expected });
        }
        Ok(match kind {
            BEGIN => {
                let stream = identity(&mut bytes).ok_or(RecordError::NoStream)?;
                Self::Begin { stream, offset: offset(&mut bytes)? }
            }
            POSITION => {
                let stream = identity(&mut bytes);
                let (written, next) = (offset(&mut bytes)?, offset(&mut bytes)?);
                Self::Position { stream, written, next }
            }
            _ => Self::End { len: offset(&mut bytes)? },
        })
    }
}

fn identity(bytes: &mut &[u8]) -> Option<StreamIdentity> {
    let mut identity = NO_STREAM;
    bytes.copy_to_slice(&mut identity);
    StreamIdentity::new(identity)
}

fn offset(bytes: &mut &[u8]) -> Result<u64, RecordError> {
    let offset = bytes.get_u64();
    if offset > MAX_OFFSET { Err(RecordError::Offset(offset)) } else { Ok(offset) }
}

/// The most bytes of a stream: at 100 Gb/s it lasts for 23 years. Sums of offsets are in range.
const MAX_OFFSET: u64 = 1 << 63;

/// Stands for no stream in a [`Record::Position`].
const NO_STREAM: [u8; 16] = [0; 16];

const BEGIN: u8 = 1;
const POSITION: u8 = 2;
const END: u8 = 3;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use punctual_proto::{Frame, FrameReader};

    use super::*;

    fn record() -> impl Strategy<Value = Record> {
        let stream = any::<[u8; 16]>().prop_map(StreamIdentity::new);
        let numbers = (0..=MAX_OFFSET, 0..=MAX_OFFSET);
        (stream, numbers, 0..3).prop_map(|(stream, (one, two), kind)| match (kind, stream) {
            (0, Some(stream)) => Record::Begin { stream, offset: one },
            (0 | 1, stream) => Record::Position { stream, written: one, next: two },
            _ => Record::End { len: one },
        })
    }

    proptest! {
        #[test]
        fn records_come_out_of_their_frames_as_they_went_in(record in record()) {
            let mut frames = BytesMut::new();
            record.write(&mut frames);
            let mut reader = FrameReader::default();
            reader.push(&frames);
            let Ok(Some(Frame::Control(bytes))) = reader.next_frame() else {
                panic!("no control frame in {frames:?}");
            };
            prop_assert_eq!(Record::read(&bytes), Ok(record));
        }

        #[test]
        fn any_bytes_are_a_record_or_an_error(bytes in prop::collection::vec(0_u8..4, 0..40)) {
            if let Ok(record) = Record::read(&bytes) {
                let mut frames = BytesMut::new();
                record.write(&mut frames);
                prop_assert_eq!(&frames[4..], &bytes[..]);
            }
        }
    }

    #[test]
    fn an_error_says_what_a_record_should_be() {
        let error = Record::read(&[POSITION, 0, 0]).unwrap_err();
        assert_eq!(error.to_string(), "a control frame has 3 bytes, where its record has 33");
        let error = Record::read(&[9]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a control frame has a record of kind 9, which is none of 1 to 3"
        );
        assert_eq!(Record::read(&[BEGIN; 25]).map(drop), Ok(()));
        let mut begin = [0; 25];
        begin[0] = BEGIN;
        assert_eq!(Record::read(&[0xFF; 9]), Err(RecordError::Kind(0xFF)));
        let end = [3, 0xFF, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(Record::read(&end), Err(RecordError::Offset(0xFF << 56)));
        assert_eq!(Record::read(&begin), Err(RecordError::NoStream));
    }
}
