//! Frames: the boundaries of messages in a stream of bytes.
//!
//! A stream of bytes has no boundaries, but datagrams do. Two ends that both set
//! [`Config::with_framing`](crate::Config::with_framing) agree on frames in the handshake, and then
//! each message that either of them writes is one frame: two bytes [`MARK`], the number of bytes of
//! the message as two bytes, big endian, and the message. Records by which two ends resume a stream
//! are control frames, with the mark [`CONTROL_MARK`]. The format is this implementation's own.

use bytes::{BufMut, Bytes, BytesMut};
use thiserror::Error;

/// A fault of a frame.
#[derive(Clone, Copy, Debug, Error, Eq, PartialEq)]
pub enum FrameError {
    /// A frame does not begin with its mark: these are not frames, or bytes are missing or changed.
    #[error(
        "the stream has the bytes {0:#06x} where a frame begins, not {MARK:#06x}: its bytes are \
         damaged, or are not in frames (then both ends need `framing=off`)"
    )]
    Mark(u16),
    /// A message is longer than a frame may be.
    #[error("a message of {0} bytes is too long for a frame, which holds {MAX_MESSAGE} at most")]
    TooLong(usize),
    /// The stream ended inside a frame.
    #[error("the stream ended inside a frame: its last {missing} bytes are missing")]
    Incomplete {
        /// Bytes that are missing, as far as is known.
        missing: usize,
    },
    /// A control frame came from a peer with which nothing is to be resumed.
    #[error("the peer sent a control frame, but the ends did not agree to resume the stream")]
    Control,
}

/// A frame of a stream of bytes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Frame {
    /// A message of the application.
    Message(Bytes),
    /// A record by which two ends resume a stream.
    Control(Bytes),
}

/// Appends the frame of `message` to `frames`.
///
/// # Errors
///
/// The message has more than 65,507 bytes. Then nothing is appended.
pub fn write_frame(message: &[u8], frames: &mut BytesMut) -> Result<(), FrameError> {
    write_marked(MARK, message, frames)
}

/// Appends a control frame with `record` to `frames`.
///
/// # Errors
///
/// As [`write_frame`].
pub fn write_control_frame(record: &[u8], frames: &mut BytesMut) -> Result<(), FrameError> {
    write_marked(CONTROL_MARK, record, frames)
}

fn write_marked(mark: u16, content: &[u8], frames: &mut BytesMut) -> Result<(), FrameError> {
    let len = u16::try_from(content.len()).ok().filter(|len| usize::from(*len) <= MAX_MESSAGE);
    let len = len.ok_or(FrameError::TooLong(content.len()))?;
    frames.reserve(HEADER_LEN + content.len());
    frames.put_u16(mark);
    frames.put_u16(len);
    frames.put_slice(content);
    Ok(())
}

/// Reads messages from the frames of a stream, which comes in pieces of any size.
///
/// It keeps the bytes of the frames that were not read yet, and no more: a length in a frame
/// reserves no memory.
///
/// ```
/// use bytes::BytesMut;
/// use punctual_proto::{FrameReader, write_frame};
///
/// let mut stream = BytesMut::new();
/// write_frame(b"one datagram", &mut stream)?;
/// write_frame(b"another", &mut stream)?;
/// let mut reader = FrameReader::default();
/// for piece in stream.chunks(5) {
///     reader.push(piece);
/// }
/// assert_eq!(reader.next_message()?.as_deref(), Some(&b"one datagram"[..]));
/// assert_eq!(reader.next_message()?.as_deref(), Some(&b"another"[..]));
/// assert_eq!(reader.next_message()?, None);
/// reader.finish()?;
/// # Ok::<(), punctual_proto::FrameError>(())
/// ```
#[derive(Debug, Default)]
pub struct FrameReader {
    buffer: BytesMut,
}

impl FrameReader {
    /// Takes the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next message; `None` if it is not complete yet.
    ///
    /// # Errors
    ///
    /// The bytes are no frame of a message, or it is too long. Later calls return the same error,
    /// unless it is [`FrameError::Control`]: where the next frame begins is not known.
    pub fn next_message(&mut self) -> Result<Option<Bytes>, FrameError> {
        match self.next_frame()? {
            None => Ok(None),
            Some(Frame::Message(message)) => Ok(Some(message)),
            Some(Frame::Control(_)) => Err(FrameError::Control),
        }
    }

    /// The next frame; `None` if it is not complete yet.
    ///
    /// # Errors
    ///
    /// The bytes are no frame, or it is too long. Later calls return the same error: where the next
    /// frame begins is not known.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let Some((mark, len)) = self.header()? else { return Ok(None) };
        if self.buffer.len() < HEADER_LEN + len {
            return Ok(None);
        }
        let frame = self.buffer.split_to(HEADER_LEN + len).freeze();
        let content = frame.slice(HEADER_LEN..);
        Ok(Some(if mark == MARK { Frame::Message(content) } else { Frame::Control(content) }))
    }

    /// Checks that the stream, which has ended, did not end inside a frame.
    ///
    /// # Errors
    ///
    /// It did, or the bytes that are left are no frame.
    pub fn finish(&self) -> Result<(), FrameError> {
        let whole = HEADER_LEN + self.header()?.map_or(0, |(_, len)| len);
        match self.buffer.len() {
            0 => Ok(()),
            len if len < whole => Err(FrameError::Incomplete { missing: whole - len }),
            _ => Ok(()),
        }
    }

    /// The mark and the length in the header at the front, if it is there.
    fn header(&self) -> Result<Option<(u16, usize)>, FrameError> {
        let Some(&[mark_0, mark_1, len_0, len_1]) = self.buffer.first_chunk() else {
            return Ok(None);
        };
        let mark = u16::from_be_bytes([mark_0, mark_1]);
        if mark != MARK && mark != CONTROL_MARK {
            return Err(FrameError::Mark(mark));
        }
        let len = usize::from(u16::from_be_bytes([len_0, len_1]));
        if len > MAX_MESSAGE { Err(FrameError::TooLong(len)) } else { Ok(Some((mark, len))) }
    }
}

/// The first two bytes of a message's frame. No packet of MPEG-TS begins with them.
const MARK: u16 = 0xF7A3;

/// The first two bytes of a control frame.
const CONTROL_MARK: u16 = 0xF7A4;

/// Bytes of the mark and the length.
const HEADER_LEN: usize = 4;

/// The payload of the largest UDP datagram over IPv4.
const MAX_MESSAGE: usize = 65_507;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn framed(messages: &[Vec<u8>]) -> BytesMut {
        let mut frames = BytesMut::new();
        messages.iter().for_each(|message| write_frame(message, &mut frames).unwrap());
        frames
    }

    fn read_all(reader: &mut FrameReader) -> Result<Vec<Bytes>, FrameError> {
        let mut messages = Vec::new();
        while let Some(message) = reader.next_message()? {
            messages.push(message);
        }
        Ok(messages)
    }

    proptest! {
        #[test]
        fn messages_come_out_as_they_went_in_however_the_stream_is_cut(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..2_000), 0..20),
            pieces in prop::collection::vec(1_usize..3_000, 1..50),
        ) {
            let frames = framed(&messages);
            let mut reader = FrameReader::default();
            let (mut rest, mut read) = (&frames[..], Vec::new());
            for size in pieces.iter().cycle() {
                let (piece, later) = rest.split_at(rest.len().min(*size));
                reader.push(piece);
                read.extend(read_all(&mut reader).unwrap());
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(reader.finish(), Ok(()));
            prop_assert!(read.iter().eq(messages.iter()));
        }

        #[test]
        fn a_stream_that_ends_inside_a_frame_says_how_much_is_missing(
            message in prop::collection::vec(any::<u8>(), 1..2_000),
            kept in 4_usize..2_000,
        ) {
            let frames = framed(&[message]);
            let kept = kept.min(frames.len() - 1);
            let mut reader = FrameReader::default();
            reader.push(&frames[..kept]);
            prop_assert_eq!(reader.next_message(), Ok(None));
            let missing = frames.len() - kept;
            prop_assert_eq!(reader.finish(), Err(FrameError::Incomplete { missing }));
        }

        #[test]
        fn any_bytes_are_messages_of_their_own_length_or_an_error(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut reader = FrameReader::default();
            reader.push(&bytes);
            if let Ok(messages) = read_all(&mut reader) {
                let read: usize = messages.iter().map(|message| HEADER_LEN + message.len()).sum();
                prop_assert_eq!(read + reader.buffer.len(), bytes.len());
            }
        }
    }

    #[test]
    fn control_frames_come_between_messages() {
        let mut frames = framed(&[vec![1; 10]]);
        write_control_frame(b"record", &mut frames).unwrap();
        frames.extend_from_slice(&framed(&[vec![2; 10]]));
        let mut reader = FrameReader::default();
        reader.push(&frames);
        assert_eq!(reader.next_frame(), Ok(Some(Frame::Message(vec![1; 10].into()))));
        assert_eq!(reader.next_frame(), Ok(Some(Frame::Control(b"record"[..].into()))));
        assert_eq!(reader.next_frame(), Ok(Some(Frame::Message(vec![2; 10].into()))));
        reader.push(&frames);
        assert!(reader.next_message().is_ok());
        assert_eq!(reader.next_message(), Err(FrameError::Control));
    }

    #[test]
    fn a_damaged_frame_is_an_error_each_time() {
        let mut frames = framed(&[vec![1; 100], vec![2; 100]]);
        frames[HEADER_LEN + 100] ^= 0x10;
        let mut reader = FrameReader::default();
        reader.push(&frames);
        assert_eq!(reader.next_message().unwrap().unwrap(), vec![1; 100]);
        for _ in 0..2 {
            let error = reader.next_message().unwrap_err();
            assert!(error.to_string().contains("0xe7a3"), "{error}");
        }
        assert!(reader.finish().is_err());
    }

    #[test]
    fn a_length_above_the_largest_message_is_an_error_at_both_ends() {
        let mut frames = BytesMut::new();
        assert!(write_frame(&[0; MAX_MESSAGE], &mut frames).is_ok());
        let before = frames.len();
        let too_long = write_frame(&[0; MAX_MESSAGE + 1], &mut frames).unwrap_err();
        assert!(too_long.to_string().contains("65508"), "{too_long}");
        assert_eq!(frames.len(), before);
        let mut reader = FrameReader::default();
        reader.push(&[0xF7, 0xA3, 0xFF, 0xFF]);
        assert_eq!(reader.next_message(), Err(FrameError::TooLong(0xFFFF)));
    }
}
