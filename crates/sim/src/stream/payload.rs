//! What a message says: enough to know which one it is, and to find any damage.

use bytes::Bytes;
use punctual_units::Instant;

use crate::chance::mix;
use crate::memory::Memory;

/// The number and the time of a message, and what shows that both are right.
const HEAD: usize = 24;
/// The shortest message.
pub(crate) const MIN_PAYLOAD: usize = HEAD;
/// The longest message of a bare UDP stream: what 1500 bytes on the link hold.
pub(crate) const MAX_PAYLOAD: usize = 1_472;
/// Bodies begin at one of so many places of the pattern.
const PLACES: usize = 1_024;

/// Writes and checks the messages of one stream. A body is a piece of one pattern, chosen by number
/// and time, so that neither writing nor checking takes more than a look at each byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Content {
    /// Tells the stream from all others.
    pub(crate) key: u64,
}

impl Content {
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
        memory.join(&head, body(check, size - HEAD))
    }

    /// Number and time of a message of `size` bytes; `None` if it is not as it was written.
    pub(crate) fn read(self, payload: &[u8], size: usize) -> Option<(u64, Instant)> {
        let (head, rest) = payload.split_first_chunk::<HEAD>()?;
        let word = |at: usize| Some(u64::from_le_bytes(head.get(at..at + 8)?.try_into().ok()?));
        let (number, sent, check) = (word(0)?, word(8)?, word(16)?);
        let sound = payload.len() == size
            && check == self.check_of(number, sent)
            && rest == body(check, rest.len());
        sound.then_some((number, Instant::from_nanos(sent)))
    }

    fn check_of(self, number: u64, sent: u64) -> u64 {
        mix(number ^ self.key) ^ mix(sent.wrapping_add(self.key))
    }
}

fn body(check: u64, size: usize) -> &'static [u8] {
    let place = usize::from(check.to_le_bytes()[0]) * 4;
    &PATTERN[place..place + size.min(MAX_PAYLOAD)]
}

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
        let content = Content { key: 5 };
        let mut memory = Memory::default();
        for size in [MIN_PAYLOAD, 25, 1_316, MAX_PAYLOAD] {
            let sent = Instant::from_nanos(1_234_567);
            let payload = content.write(&mut memory, 77, sent, size);
            assert_eq!(payload.len(), size);
            assert_eq!(content.read(&payload, size), Some((77, sent)));
            assert_eq!(content.read(&payload, size + 1), None);
            assert_eq!(Content { key: 6 }.read(&payload, size), None, "another stream's");
        }
    }

    #[test]
    fn any_flipped_bit_is_found() {
        let content = Content { key: 5 };
        let payload = content.write(&mut Memory::default(), 9, Instant::from_millis(3), 188);
        for bit in 0..188 * 8 {
            let mut damaged = payload.to_vec();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(content.read(&damaged, 188), None, "bit {bit}");
        }
        assert_eq!(content.read(&[], 0), None);
    }
}
