//! The records that two ends exchange.

use bytes::{Buf, BytesMut};
use punctual_proto::write_control_frame;
use thiserror::Error;

use crate::secret::{Nonce, Proof, StreamSecret};

/// A record in a control frame: a byte for its kind, and its fields in the order in which they are
/// here. All numbers are big endian, of 8 bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Record {
    /// 1, from the receiver, first of all.
    Hello {
        /// Its random bytes for this connection.
        nonce: Nonce,
    },
    /// 2, from the sender, in answer to `Hello`.
    Claim {
        /// Its random bytes for this connection.
        nonce: Nonce,
        /// The proof that it has the secret of its stream.
        proof: Proof,
    },
    /// 3, from the receiver, in answer to the `Claim` of the stream that it had before.
    Resume {
        /// The proof that it has the secret of the stream.
        proof: Proof,
        /// The offset before which all bytes are written: the sender need not keep them.
        written: u64,
        /// The offset of the next byte that it wants.
        next: u64,
    },
    /// 4, from the receiver, in answer to the `Claim` of a stream that it does not know and takes.
    New,
    /// 5, from the sender, in answer to `New`, before the first message.
    Begin {
        /// The secret of the stream.
        stream: StreamSecret,
        /// The offset of the next byte.
        offset: u64,
    },
    /// 6, from the sender, in answer to `Resume`, before the first message.
    GoOn {
        /// The offset of the next byte.
        offset: u64,
    },
    /// 7, from the receiver, after the beginning and whenever more is written.
    Written {
        /// The offset before which all bytes are written: the sender need not keep them.
        offset: u64,
    },
    /// 8, from the sender after the last message, and from the receiver when all is written.
    End {
        /// The number of bytes of the whole stream.
        len: u64,
    },
    /// 9, from either end to a peer that does not prove that the stream is its own.
    Refuse,
}

/// Bytes that are no record.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum RecordError {
    /// The first byte is that of no record.
    #[error("a control frame has a record of kind {0}, which is none of 1 to 9")]
    Kind(u8),
    /// It has another number of bytes than records of its kind have.
    #[error("a control frame has {len} bytes, where its record has {expected}")]
    Len {
        /// The bytes that are there.
        len: usize,
        /// The bytes that should be there.
        expected: usize,
    },
    /// A stream begins that has no secret.
    #[error("the stream begins with a secret of zeros; the secret must be random")]
    NoSecret,
    /// An offset is larger than any stream can be long.
    #[error("an offset of {0} bytes is more than the {MAX_OFFSET} that a stream may have")]
    Offset(u64),
}

impl Record {
    /// Appends the control frame of this record to `frames`.
    pub fn write(&self, frames: &mut BytesMut) {
        let mut record = Vec::with_capacity(LONGEST);
        record.push(self.kind());
        match *self {
            Self::Hello { nonce } => record.extend(nonce),
            Self::Claim { nonce, proof } => {
                record.extend(nonce);
                record.extend(proof.0);
            }
            Self::Resume { proof, written, next } => {
                record.extend(proof.0);
                record.extend(written.to_be_bytes());
                record.extend(next.to_be_bytes());
            }
            Self::Begin { stream, offset } => {
                record.extend(stream.bytes());
                record.extend(offset.to_be_bytes());
            }
            Self::GoOn { offset } | Self::Written { offset } | Self::End { len: offset } => {
                record.extend(offset.to_be_bytes());
            }
            Self::New | Self::Refuse => {}
        }
        let written = write_control_frame(&record, frames);
        debug_assert!(written.is_ok(), "{LONGEST} bytes fit into a frame");
    }

    const fn kind(&self) -> u8 {
        match self {
            Self::Hello { .. } => HELLO,
            Self::Claim { .. } => CLAIM,
            Self::Resume { .. } => RESUME,
            Self::New => NEW,
            Self::Begin { .. } => BEGIN,
            Self::GoOn { .. } => GO_ON,
            Self::Written { .. } => WRITTEN,
            Self::End { .. } => END,
            Self::Refuse => REFUSE,
        }
    }

    /// Reads the record of a control frame.
    ///
    /// # Errors
    ///
    /// The bytes are no record.
    pub fn read(mut bytes: &[u8]) -> Result<Self, RecordError> {
        let len = bytes.len();
        let kind = bytes.try_get_u8().map_err(|_| RecordError::Len { len, expected: 1 })?;
        let expected = match kind {
            HELLO => 17,
            CLAIM | RESUME => 49,
            NEW | REFUSE => 1,
            BEGIN => 25,
            GO_ON | WRITTEN | END => 9,
            kind => return Err(RecordError::Kind(kind)),
        };
        if len != expected {
            return Err(RecordError::Len { len, expected });
        }
        let bytes = &mut bytes;
        Ok(match kind {
            HELLO => Self::Hello { nonce: array(bytes) },
            CLAIM => Self::Claim { nonce: array(bytes), proof: Proof(array(bytes)) },
            RESUME => Self::Resume {
                proof: Proof(array(bytes)),
                written: offset(bytes)?,
                next: offset(bytes)?,
            },
            NEW => Self::New,
            BEGIN => Self::Begin {
                stream: StreamSecret::new(array(bytes)).ok_or(RecordError::NoSecret)?,
                offset: offset(bytes)?,
            },
            GO_ON => Self::GoOn { offset: offset(bytes)? },
            WRITTEN => Self::Written { offset: offset(bytes)? },
            END => Self::End { len: offset(bytes)? },
            _ => Self::Refuse,
        })
    }
}

/// The next bytes, of which there are enough.
fn array<const LEN: usize>(bytes: &mut &[u8]) -> [u8; LEN] {
    let mut array = [0; LEN];
    bytes.copy_to_slice(&mut array);
    array
}

fn offset(bytes: &mut &[u8]) -> Result<u64, RecordError> {
    let offset = bytes.get_u64();
    if offset > MAX_OFFSET { Err(RecordError::Offset(offset)) } else { Ok(offset) }
}

/// The most bytes of a stream: at 100 Gb/s it lasts for 23 years. Sums of offsets are in range.
const MAX_OFFSET: u64 = 1 << 63;

/// The bytes of the longest record.
const LONGEST: usize = 49;

const HELLO: u8 = 1;
const CLAIM: u8 = 2;
const RESUME: u8 = 3;
const NEW: u8 = 4;
const BEGIN: u8 = 5;
const GO_ON: u8 = 6;
const WRITTEN: u8 = 7;
const END: u8 = 8;
const REFUSE: u8 = 9;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use punctual_proto::{Frame, FrameReader};

    use super::*;

    fn record() -> impl Strategy<Value = Record> {
        let offset = 0..=MAX_OFFSET;
        let nonce = any::<Nonce>();
        let proof = any::<[u8; 32]>().prop_map(Proof);
        prop_oneof![
            nonce.prop_map(|nonce| Record::Hello { nonce }),
            (nonce, proof.clone()).prop_map(|(nonce, proof)| Record::Claim { nonce, proof }),
            (proof, offset.clone(), offset.clone())
                .prop_map(|(proof, written, next)| Record::Resume { proof, written, next }),
            Just(Record::New),
            (1_u8.., offset.clone()).prop_map(|(number, offset)| Record::Begin {
                stream: StreamSecret::new([number; 16]).unwrap(),
                offset
            }),
            offset.clone().prop_map(|offset| Record::GoOn { offset }),
            offset.clone().prop_map(|offset| Record::Written { offset }),
            offset.prop_map(|len| Record::End { len }),
            Just(Record::Refuse),
        ]
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
        fn any_bytes_are_a_record_or_an_error(bytes in prop::collection::vec(0_u8..10, 0..52)) {
            if let Ok(record) = Record::read(&bytes) {
                let mut frames = BytesMut::new();
                record.write(&mut frames);
                prop_assert_eq!(&frames[4..], &bytes[..]);
            }
        }
    }

    #[test]
    fn an_error_says_what_a_record_should_be() {
        let error = Record::read(&[RESUME, 0, 0]).unwrap_err();
        assert_eq!(error.to_string(), "a control frame has 3 bytes, where its record has 49");
        let error = Record::read(&[10]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a control frame has a record of kind 10, which is none of 1 to 9"
        );
        assert_eq!(Record::read(&[]), Err(RecordError::Len { len: 0, expected: 1 }));
        assert_eq!(Record::read(&[BEGIN; 25]).map(drop), Ok(()));
        let mut begin = [0; 25];
        begin[0] = BEGIN;
        assert_eq!(Record::read(&begin), Err(RecordError::NoSecret));
        assert_eq!(Record::read(&[0xFF; 9]), Err(RecordError::Kind(0xFF)));
        let end = [END, 0xFF, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(Record::read(&end), Err(RecordError::Offset(0xFF << 56)));
    }
}
