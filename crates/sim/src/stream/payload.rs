//! The content of a message: it identifies the message, and shows any damage.

use bytes::Bytes;
use punctual_units::Instant;

use crate::memory::Memory;
use crate::seeds::mix;

/// The number and the time of a message, and what shows that both are right.
const HEAD: usize = 24;
/// The longest message of a file.
pub(crate) const MAX_FILE_PAYLOAD: usize = 1 << 20;
/// The shortest message.
pub(crate) const MIN_PAYLOAD: usize = HEAD;
/// The longest message of a bare UDP stream: what 1500 bytes on the link hold. Longer ones are made
/// of pieces of that size.
pub(crate) const MAX_PAYLOAD: usize = 1_472;
/// Bodies begin at one of this number of places of the pattern.
const PLACES: usize = 1_024;

/// Writes and checks the messages of one stream. A body is a piece of one pattern, chosen by number
/// and time, so that neither writing nor checking takes more than a look at each byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PayloadContent {
    /// Tells the stream from all others.
    pub(crate) key: u64,
}

impl PayloadContent {
    /// Message `number` of `size` bytes, at least [`MIN_PAYLOAD`], sent at `sent`.
    pub(crate) fn write(
        self,
        memory: &mut Memory,
        number: u64,
        sent: Instant,
        size: usize,
    ) -> Bytes {
        let check = self.check_of(number, sent.as_nanos());
        let mut head = [0; HEAD];
        for (place, word) in head.chunks_exact_mut(8).zip([number, sent.as_nanos(), check]) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let size = size - HEAD;
        if size <= MAX_PAYLOAD {
            return memory.join(&head, piece(check, 0, size));
        }
        let pieces = pieces(size).flat_map(|(at, size)| piece(check, at, size));
        head.iter().chain(pieces).copied().collect()
    }

    /// Number and time of a message of `size` bytes; `None` if it is not as it was written.
    pub(crate) fn read(self, payload: &[u8], size: usize) -> Option<(u64, Instant)> {
        let (head, rest) = payload.split_first_chunk::<HEAD>()?;
        let word = |at: usize| Some(u64::from_le_bytes(head.get(at..at + 8)?.try_into().ok()?));
        let (number, sent, check) = (word(0)?, word(8)?, word(16)?);
        let sound = payload.len() == size
            && check == self.check_of(number, sent)
            && pieces(rest.len()).all(|(at, size)| {
                let begin = at * MAX_PAYLOAD;
                rest[begin..begin + size] == *piece(check, at, size)
            });
        sound.then_some((number, Instant::from_nanos(sent)))
    }

    fn check_of(self, number: u64, sent: u64) -> u64 {
        mix(number ^ self.key) ^ mix(sent.wrapping_add(self.key))
    }
}

/// Numbers and sizes of the pieces of a body: only the last may be shorter than the others.
fn pieces(size: usize) -> impl Iterator<Item = (usize, usize)> {
    let sizes = (0..size).step_by(MAX_PAYLOAD).map(move |at| MAX_PAYLOAD.min(size - at));
    sizes.enumerate()
}

/// Piece number `at` of a body. Neighbours are not alike.
fn piece(check: u64, at: usize, size: usize) -> &'static [u8] {
    let place = (usize::from(check.to_le_bytes()[0]) * 4 + at * STRIDE) % PLACES;
    &PATTERN[place..place + size]
}

/// The distance in the pattern from one piece to the next.
const STRIDE: usize = 37;

/// Bytes without order.
static PATTERN: [u8; PLACES + MAX_PAYLOAD] = {
    let mut bytes = [0; PLACES + MAX_PAYLOAD];
    let mut at = 0;
    while at < bytes.len() {
        bytes[at] = mix(at as u64).to_le_bytes()[0];
        at += 1;
    }
    bytes
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let content = PayloadContent { key: 5 };
        let mut memory = Memory::default();
        for size in [MIN_PAYLOAD, 25, 1_316, MAX_PAYLOAD, 1_500, 100_000] {
            let sent = Instant::from_nanos(1_234_567);
            let payload = content.write(&mut memory, 77, sent, size);
            assert_eq!(payload.len(), size);
            assert_eq!(content.read(&payload, size), Some((77, sent)));
            assert_eq!(content.read(&payload, size + 1), None);
            assert_eq!(PayloadContent { key: 6 }.read(&payload, size), None, "another stream's");
        }
    }

    #[test]
    fn any_flipped_bit_is_found() {
        let content = PayloadContent { key: 5 };
        for size in [188, 3_000] {
            let payload = content.write(&mut Memory::default(), 9, Instant::from_millis(3), size);
            for bit in 0..size * 8 {
                let mut damaged = payload.to_vec();
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(content.read(&damaged, size), None, "bit {bit}");
            }
        }
        assert_eq!(content.read(&[], 0), None);
    }
}
