//! Bytes cut into messages.

use bytes::{Bytes, BytesMut};
use punctual_mpegts::{PACKET_LEN, SYNC_BYTE};

/// Cuts a stream of bytes into messages: MPEG-TS between its packets, seven of them for messages of
/// 1316 bytes.
#[derive(Debug)]
pub(crate) struct Cut {
    buffer: BytesMut,
    message_size: usize,
    read_size: usize,
}

impl Cut {
    /// Cuts messages of at most `message_size` bytes.
    pub(crate) fn new(message_size: usize) -> Self {
        Self { buffer: BytesMut::new(), message_size, read_size: READ_SIZE }
    }

    /// The same, with room for this number of bytes in its buffer, if it is given.
    pub(crate) fn with_read_size(self, size: Option<usize>) -> Self {
        Self { read_size: size.unwrap_or(self.read_size), ..self }
    }

    /// The buffer to read bytes into, with room for [`READ_SIZE`] unless another size was set.
    pub(crate) fn input(&mut self) -> &mut BytesMut {
        self.buffer.reserve(self.read_size);
        &mut self.buffer
    }

    /// Whether there are bytes that fill no message yet.
    pub(crate) fn has_rest(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// The next full message.
    pub(crate) fn next_full(&mut self) -> Option<Bytes> {
        let size = self.full_size();
        (self.buffer.len() >= size).then(|| self.buffer.split_to(size).freeze())
    }

    /// A message that is not full: whole packets of a transport stream, all bytes of other streams.
    pub(crate) fn next_whole(&mut self) -> Option<Bytes> {
        let len = match self.is_transport_stream() {
            true => self.buffer.len() / PACKET_LEN * PACKET_LEN,
            false => self.buffer.len(),
        };
        (len > 0).then(|| self.buffer.split_to(len).freeze())
    }

    /// The bytes that are left at the end.
    pub(crate) fn rest(&mut self) -> Option<Bytes> {
        self.has_rest().then(|| self.buffer.split().freeze())
    }

    /// Bytes of a full message, which has only whole packets of a transport stream.
    fn full_size(&self) -> usize {
        let packets = self.message_size / PACKET_LEN * PACKET_LEN;
        if packets > 0 && self.is_transport_stream() { packets } else { self.message_size }
    }

    /// Whether sync bytes are where a transport stream has them, as far as a message reaches.
    fn is_transport_stream(&self) -> bool {
        let len = self.message_size.min(self.buffer.len());
        starts_like_transport_stream(&self.buffer[..len])
    }
}

/// Whether sync bytes are where a transport stream has them.
pub(crate) fn starts_like_transport_stream(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().step_by(PACKET_LEN).all(|&byte| byte == SYNC_BYTE)
}

/// Bytes to read at once.
const READ_SIZE: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(bytes: &[u8], message_size: usize) -> Vec<usize> {
        let mut cut = Cut::new(message_size);
        cut.input().extend_from_slice(bytes);
        let mut sizes: Vec<usize> =
            std::iter::from_fn(|| cut.next_full().map(|message| message.len())).collect();
        sizes.extend(cut.rest().map(|rest| rest.len()));
        assert_eq!(sizes.iter().sum::<usize>(), bytes.len());
        sizes
    }

    fn packets(count: usize) -> Vec<u8> {
        (0..count * PACKET_LEN).map(|i| if i % PACKET_LEN == 0 { SYNC_BYTE } else { 1 }).collect()
    }

    #[test]
    fn a_transport_stream_is_cut_between_packets() {
        assert_eq!(cut(&packets(16), 1316), [1316, 1316, 2 * 188]);
        assert_eq!(cut(&packets(16), 1456), [1316, 1316, 2 * 188]);
        assert_eq!(cut(&packets(2), 100), [100, 100, 100, 76]);
    }

    #[test]
    fn other_bytes_are_cut_at_the_size_of_a_message() {
        assert_eq!(cut(&[7; 2_700], 1316), [1316, 1316, 68]);
        assert!(cut(&[], 1316).is_empty());
    }

    #[test]
    fn a_packet_is_not_torn_by_impatience() {
        let mut cut = Cut::new(1316);
        cut.input().extend_from_slice(&packets(3)[..400]);
        assert_eq!(cut.next_whole().unwrap().len(), 2 * 188);
        assert!(cut.next_whole().is_none());
        assert!(cut.has_rest());
    }
}
