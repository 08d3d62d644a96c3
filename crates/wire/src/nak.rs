use std::fmt;

use crate::words::{Word, seq_no, whole_words};
use crate::{ParseError, SeqNo};

/// A loss list: the body of a NAK, checked (draft appendix A).
///
/// A lost packet takes one word, its sequence number. A range takes two: the first number with the
/// top bit set, then the last.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct LossList<'a> {
    words: &'a [Word],
}

impl<'a> LossList<'a> {
    /// Checks `body`. An empty list is legal and says nothing.
    ///
    /// # Errors
    ///
    /// [`PartialWord`](ParseError::PartialWord) for a length that is not a multiple of 4,
    /// [`OpenRange`](ParseError::OpenRange) for a range without an end,
    /// [`SeqTopBit`](ParseError::SeqTopBit) for a range whose end opens a range, and
    /// [`ReversedRange`](ParseError::ReversedRange) for one that ends before it begins. One bad
    /// entry spoils the list: after it, no telling what the words mean.
    pub fn parse(body: &'a [u8]) -> Result<Self, ParseError> {
        let words = whole_words(WHAT, body)?;
        let mut rest = words.iter();
        while let Some(&word) = rest.next() {
            if let Some(first) = range_opener(word) {
                let end = *rest.next().ok_or(ParseError::OpenRange { first })?;
                let last = seq_no(WHAT, end)?;
                if first.is_after(last) {
                    return Err(ParseError::ReversedRange { what: WHAT, first, last });
                }
            }
        }
        Ok(Self { words })
    }

    /// First and last sequence number of every entry, in the sender's order; equal for a single
    /// packet. How long a range is, and whether the packets exist, is for the sender to judge.
    pub fn ranges(&self) -> impl Iterator<Item = (SeqNo, SeqNo)> + use<'a> {
        let mut words = self.words.iter();
        std::iter::from_fn(move || {
            let word = *words.next()?;
            match range_opener(word) {
                Some(first) => words.next().map(|end| (first, low_31_bits(*end))),
                None => Some((low_31_bits(word), low_31_bits(word))),
            }
        })
    }

    /// The list as on the wire.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.words.as_flattened()
    }
}

impl fmt::Debug for LossList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ranges()).finish()
    }
}

/// Builds a loss list of bounded length.
#[derive(Clone, Debug)]
pub struct LossListBuilder {
    words: Vec<Word>,
    max_words: usize,
}

impl LossListBuilder {
    /// An empty list that will hold up to `max_words` words of 4 bytes, a single packet taking one
    /// and a range two.
    pub fn new(max_words: usize) -> Self {
        Self { words: Vec::new(), max_words }
    }

    /// Appends the packets from `first` to `last`, both included. If there is no room left it
    /// returns false and the list stays as it is.
    ///
    /// # Panics
    ///
    /// If `first` comes after `last`.
    #[must_use = "false means that the range was not written"]
    pub fn push(&mut self, first: SeqNo, last: SeqNo) -> bool {
        assert!(!first.is_after(last), "loss list: range from {first} to {last} is reversed");
        let room = self.max_words - self.words.len();
        if first == last {
            if room < 1 {
                return false;
            }
            self.words.push(first.value().to_be_bytes());
        } else {
            if room < 2 {
                return false;
            }
            self.words.push((first.value() | RANGE_BIT).to_be_bytes());
            self.words.push(last.value().to_be_bytes());
        }
        true
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Empties the list and keeps its memory.
    pub fn clear(&mut self) {
        self.words.clear();
    }

    /// The list so far.
    pub fn as_list(&self) -> LossList<'_> {
        LossList { words: &self.words }
    }

    /// The list as on the wire.
    pub fn into_bytes(self) -> Vec<u8> {
        self.words.into_flattened()
    }
}

/// The first number of the range that `word` opens, if it does.
fn range_opener(word: Word) -> Option<SeqNo> {
    (word[0] & 0x80 != 0).then(|| low_31_bits(word))
}

fn low_31_bits(word: Word) -> SeqNo {
    SeqNo::new(u32::from_be_bytes(word))
}

const WHAT: &str = "loss list";

/// Set in a word that opens a range.
const RANGE_BIT: u32 = 0x8000_0000;

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    fn parse(words: &[u32]) -> Result<Vec<(u32, u32)>, ParseError> {
        let bytes = bytes(words);
        let list = LossList::parse(&bytes)?;
        assert_eq!(list.as_bytes(), bytes);
        Ok(list.ranges().map(|(first, last)| (first.value(), last.value())).collect())
    }

    #[test]
    fn singles_and_ranges() {
        assert_eq!(parse(&[]), Ok(vec![]));
        assert_eq!(parse(&[7]), Ok(vec![(7, 7)]));
        assert_eq!(parse(&[0x8000_0003, 6]), Ok(vec![(3, 6)]));
        assert_eq!(parse(&[1, 0x8000_0003, 6, 9]), Ok(vec![(1, 1), (3, 6), (9, 9)]));
        assert_eq!(parse(&[0xFFFF_FFFF, 1]), Ok(vec![(0x7FFF_FFFF, 1)]));
        assert_eq!(parse(&[0x8000_0005, 5]), Ok(vec![(5, 5)]));
    }

    #[test]
    fn one_bad_entry_spoils_the_list() {
        let first = SeqNo::new(3);
        assert_eq!(parse(&[1, 0x8000_0003]), Err(ParseError::OpenRange { first }));
        let word = 0x8000_0006;
        assert_eq!(parse(&[0x8000_0003, word]), Err(ParseError::SeqTopBit { what: WHAT, word }));
        let last = SeqNo::new(2);
        let reversed = ParseError::ReversedRange { what: WHAT, first, last };
        assert_eq!(parse(&[0x8000_0003, 2]), Err(reversed));
        let partial = ParseError::PartialWord { what: WHAT, got: 5 };
        assert_eq!(LossList::parse(&[0, 0, 0, 1, 0]), Err(partial));
    }

    #[test]
    fn builder_writes_the_words_of_the_wire() {
        let mut builder = LossListBuilder::new(3);
        assert!(builder.is_empty());
        assert!(builder.push(SeqNo::MAX, SeqNo::new(1)));
        assert!(builder.push(SeqNo::new(5), SeqNo::new(5)));
        assert_eq!(builder.as_list().as_bytes(), bytes(&[0xFFFF_FFFF, 1, 5]));
        builder.clear();
        assert!(builder.is_empty());
    }

    #[test]
    fn builder_keeps_its_bound() {
        let mut builder = LossListBuilder::new(2);
        assert!(builder.push(SeqNo::new(1), SeqNo::new(1)));
        assert!(!builder.push(SeqNo::new(3), SeqNo::new(4)));
        assert!(builder.push(SeqNo::new(3), SeqNo::new(3)));
        assert!(!builder.push(SeqNo::new(4), SeqNo::new(4)));
        assert_eq!(builder.into_bytes(), bytes(&[1, 3]));
    }
}
