use bytes::{Bytes, BytesMut};

/// Memory for messages and datagrams, cut from larger pieces: a piece for each would cost more than
/// filling it. What is kept keeps its whole piece, so pieces are small.
#[derive(Debug, Default)]
pub(crate) struct Memory(BytesMut);

impl Memory {
    /// A copy of these bytes, one part after the other.
    pub(crate) fn copy(&mut self, parts: &[&[u8]]) -> Bytes {
        let size: usize = parts.iter().map(|part| part.len()).sum();
        if self.0.capacity() < size {
            self.0 = BytesMut::with_capacity(PIECE.max(size));
        }
        for part in parts {
            self.0.extend_from_slice(part);
        }
        self.0.split().freeze()
    }
}

/// Some forty packets.
const PIECE: usize = 60_000;
