use crate::words::{put_words, seq_no};
use crate::{MsgNo, ParseError, SeqNo};

/// The sender will not send these packets any more (draft section 3.2.9).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DropRequest {
    /// The message given up, or [`MsgNo::CONTROL`] if only the range is known.
    pub msgno: MsgNo,
    /// The first packet given up.
    pub first: SeqNo,
    /// The last packet given up, `first` or after it. How far after is for the receiver to judge.
    pub last: SeqNo,
}

impl DropRequest {
    /// Bytes of the body.
    pub(crate) const LEN: usize = 8;

    pub(crate) fn parse(msgno: MsgNo, body: &[u8]) -> Result<Self, ParseError> {
        let (words, _) = body.as_chunks();
        let [first, last, ..] = *words else {
            return Err(ParseError::TooShort { what: WHAT, need: Self::LEN, got: body.len() });
        };
        let (first, last) = (seq_no(WHAT, first)?, seq_no(WHAT, last)?);
        if first.is_after(last) {
            return Err(ParseError::ReversedRange { what: WHAT, first, last });
        }
        Ok(Self { msgno, first, last })
    }

    pub(crate) fn emit(&self, buffer: &mut Vec<u8>) {
        put_words(buffer, &[self.first.value(), self.last.value()]);
    }
}

const WHAT: &str = "drop request";

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[u32]) -> Result<DropRequest, ParseError> {
        let mut body = Vec::new();
        put_words(&mut body, words);
        DropRequest::parse(MsgNo::CONTROL, &body)
    }

    #[test]
    fn range_may_wrap_and_the_body_may_be_longer() {
        let (first, last) = (SeqNo::MAX, SeqNo::new(2));
        let request = DropRequest { msgno: MsgNo::CONTROL, first, last };
        assert_eq!(parse(&[first.value(), 2]), Ok(request));
        assert_eq!(parse(&[first.value(), 2, 0]), Ok(request));
    }

    #[test]
    fn bad_ranges_are_refused() {
        let (first, last) = (SeqNo::new(3), SeqNo::new(2));
        assert_eq!(parse(&[3, 2]), Err(ParseError::ReversedRange { what: WHAT, first, last }));
        assert_eq!(parse(&[3]), Err(ParseError::TooShort { what: WHAT, need: 8, got: 4 }));
        let error = ParseError::SeqTopBit { what: WHAT, word: 0x8000_0003 };
        assert_eq!(parse(&[0x8000_0003, 4]), Err(error));
        assert_eq!(parse(&[1, 0x8000_0003]), Err(error));
    }
}
