//! Frames of messages in a stream of bytes.

use bytes::{Bytes, BytesMut};
use punctual_proto::{FrameError, FrameReader, write_frame};

/// The first byte is the size of the pieces in which the stream comes. The messages are the same as
/// of the stream in one piece, and the same after they were framed again.
pub(crate) fn run(input: &[u8]) {
    let Some((size, stream)) = input.split_first() else { return };
    let size = usize::from(*size).max(1);
    let (whole, fault) = read(stream.chunks(stream.len().max(1)));
    let cut = read(stream.chunks(size));
    assert_eq!((&whole, fault), (&cut.0, cut.1));
    let mut again = BytesMut::new();
    whole.iter().for_each(|message| write_frame(message, &mut again).expect("it was in a frame"));
    assert!(stream.starts_with(&again));
    if fault.is_none() {
        assert_eq!(again.len(), stream.len());
    }
}

/// The messages in the pieces of a stream, and its fault.
fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Bytes>, Option<FrameError>) {
    let (mut reader, mut messages) = (FrameReader::default(), Vec::new());
    for piece in pieces {
        reader.push(piece);
        loop {
            match reader.next_message() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(error) => return (messages, Some(error)),
            }
        }
    }
    (messages, reader.finish().err())
}
