use crate::ParseError;
use crate::words::{Word, padded_len};

/// A string extension: stream ID, congestion control or packet filter.
///
/// The bytes are padded with zeros to whole words and reversed in each word, since deployed peers
/// write them as little-endian words.
pub(super) struct StringField {
    /// The name of the string, for errors.
    pub(super) what: &'static str,
    /// Bytes allowed, a multiple of 4.
    pub(super) limit: usize,
}

impl StringField {
    /// Reads the bytes of the string. Zeros at the end are stripped.
    pub(super) fn decode(&self, words: &[Word]) -> Result<Vec<u8>, ParseError> {
        let got = words.as_flattened().len();
        if got == 0 {
            return Err(ParseError::EmptyString { what: self.what });
        }
        if got > self.limit {
            return Err(ParseError::StringTooLong { what: self.what, limit: self.limit, got });
        }
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.iter().rev().copied()).collect();
        let len = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        bytes.truncate(len);
        Ok(bytes)
    }

    /// Reads the string as text: what is not UTF-8 becomes U+FFFD, and if the string then exceeds
    /// its limit it is cut there.
    pub(super) fn decode_text(&self, words: &[Word]) -> Result<String, ParseError> {
        let bytes = self.decode(words)?;
        let text = String::from_utf8_lossy(&bytes);
        let mut end = text.len().min(self.limit);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        Ok(text[..end].trim_end_matches('\0').to_owned())
    }

    /// Appends the string `bytes`, cut at the limit. An empty one takes one word of zeros, since
    /// peers refuse a block without a byte.
    pub(super) fn encode(&self, bytes: &[u8], buffer: &mut Vec<u8>) {
        let start = buffer.len();
        buffer.extend_from_slice(self.fit(bytes));
        buffer.resize(start + self.encoded_len(bytes), 0);
        for word in buffer[start..].chunks_exact_mut(4) {
            word.reverse();
        }
    }

    /// Bytes that [`encode`](Self::encode) appends.
    pub(super) fn encoded_len(&self, bytes: &[u8]) -> usize {
        padded_len(self.fit(bytes).len()).max(4)
    }

    /// As many of the bytes as the limit allows.
    fn fit<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[..bytes.len().min(self.limit)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELD: StringField = StringField { what: "test string", limit: 8 };

    fn encoded(text: &str) -> Vec<u8> {
        let mut buffer = vec![0xEE];
        FIELD.encode(text.as_bytes(), &mut buffer);
        assert_eq!(buffer.len(), 1 + FIELD.encoded_len(text.as_bytes()));
        buffer.split_off(1)
    }

    fn decoded(bytes: &[u8]) -> Result<String, ParseError> {
        FIELD.decode_text(bytes.as_chunks().0)
    }

    #[test]
    fn bytes_are_reversed_in_each_word() {
        assert_eq!(encoded("abcd"), [0x64, 0x63, 0x62, 0x61]);
        assert_eq!(encoded("#!::u=a"), [0x3A, 0x3A, 0x21, 0x23, 0x00, 0x61, 0x3D, 0x75]);
        assert_eq!(decoded(&encoded("#!::u=a")).as_deref(), Ok("#!::u=a"));
    }

    #[test]
    fn empty_string_takes_a_word() {
        assert_eq!(encoded(""), [0; 4]);
        assert_eq!(decoded(&[0; 4]).as_deref(), Ok(""));
        assert_eq!(decoded(&[]), Err(ParseError::EmptyString { what: "test string" }));
    }

    #[test]
    fn limit_holds_both_ways() {
        let error = ParseError::StringTooLong { what: "test string", limit: 8, got: 12 };
        assert_eq!(decoded(b"abcdefghijkl"), Err(error));
        assert_eq!(decoded(&encoded("abcdefghij")).as_deref(), Ok("abcdefgh"));
        assert_eq!(decoded(&encoded("abcdefg€")).as_deref(), Ok("abcdefg"));
    }

    #[test]
    fn other_bytes_than_utf8_are_kept_and_replaced_in_text() {
        let raw = |bytes: &[u8]| FIELD.decode(bytes.as_chunks().0);
        assert_eq!(raw(b"\xFFcba\0\0\x80\0"), Ok(b"abc\xFF\0\x80".to_vec()));
        assert_eq!(raw(&[0xFF; 8]), Ok(vec![0xFF; 8]));
        assert_eq!(decoded(b"\xFFcba").as_deref(), Ok("abc\u{FFFD}"));
        assert_eq!(decoded(&[0xFF; 8]).as_deref(), Ok("\u{FFFD}\u{FFFD}"));
    }
}
