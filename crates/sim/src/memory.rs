use bytes::{Bytes, BytesMut};

/// Memory for messages and datagrams, cut from larger pieces: a piece for each would cost more than
/// filling it. A message that is kept keeps its whole piece, so pieces are small.
#[derive(Debug, Default)]
pub(crate) struct Memory(BytesMut);

impl Memory {
    /// A copy of these bytes.
    pub(crate) fn copy(&mut self, bytes: &[u8]) -> Bytes {
        self.join(bytes, &[])
    }

    /// A copy of these bytes, one part after the other.
    pub(crate) fn join(&mut self, head: &[u8], body: &[u8]) -> Bytes {
        let size = head.len() + body.len();
        if self.0.capacity() < size {
            self.0 = BytesMut::with_capacity(PIECE.max(size));
        }
        self.0.extend_from_slice(head);
        self.0.extend_from_slice(body);
        self.0.split().freeze()
    }
}

/// Some forty packets.
const PIECE: usize = 60_000;
