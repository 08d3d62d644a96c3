//! Control bodies are arrays of 32-bit words in network order; these read and write them.

use crate::{ParseError, SeqNo};

/// One word as in a datagram.
pub(crate) type Word = [u8; 4];

/// Bytes of the header of every packet.
pub(crate) const HEADER_LEN: usize = 16;

/// The four words of a header.
#[inline]
pub(crate) fn header_words(bytes: &[u8; HEADER_LEN]) -> [u32; 4] {
    std::array::from_fn(|i| {
        let at = 4 * i;
        u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
    })
}

/// A header of these four words.
#[inline]
pub(crate) fn header_bytes(words: [u32; 4]) -> [u8; HEADER_LEN] {
    let [w0, w1, w2, w3] = words.map(u32::to_be_bytes);
    let mut bytes = [0; HEADER_LEN];
    bytes[0..4].copy_from_slice(&w0);
    bytes[4..8].copy_from_slice(&w1);
    bytes[8..12].copy_from_slice(&w2);
    bytes[12..16].copy_from_slice(&w3);
    bytes
}

/// `bytes` as words, if they are a whole number of them.
pub(crate) fn whole_words<'a>(
    what: &'static str,
    bytes: &'a [u8],
) -> Result<&'a [Word], ParseError> {
    match bytes.as_chunks() {
        (words, []) => Ok(words),
        _ => Err(ParseError::PartialWord { what, got: bytes.len() }),
    }
}

/// The sequence number in a word that must hold nothing else.
pub(crate) fn seq_no(what: &'static str, word: Word) -> Result<SeqNo, ParseError> {
    let word = u32::from_be_bytes(word);
    if word <= SeqNo::MAX.value() {
        Ok(SeqNo::new(word))
    } else {
        Err(ParseError::SeqTopBit { what, word })
    }
}

/// Appends `words` to `buffer`.
pub(crate) fn put_words(buffer: &mut Vec<u8>, words: &[u32]) {
    for word in words {
        buffer.extend_from_slice(&word.to_be_bytes());
    }
}

/// Appends `bytes` and as many zeros as make whole words of them.
pub(crate) fn put_padded(buffer: &mut Vec<u8>, bytes: &[u8]) {
    buffer.extend_from_slice(bytes);
    buffer.resize(buffer.len() + padded_len(bytes.len()) - bytes.len(), 0);
}

/// Bytes that [`put_padded`] appends for `len` bytes.
pub(crate) const fn padded_len(len: usize) -> usize {
    len.next_multiple_of(4)
}
