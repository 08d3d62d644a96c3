//! Packets that arrive without a key that could decrypt them.

use punctual_wire::SeqNo;

/// The last packet far ahead that could not be decrypted.
#[derive(Debug, Default)]
pub(super) struct Unreadable(Option<SeqNo>);

impl Unreadable {
    /// Another such packet arrived. Returns whether it confirms the one before: it follows within
    /// less than `reach` numbers.
    pub(super) fn confirms(&mut self, seq: SeqNo, reach: u32) -> bool {
        let before = self.0.replace(seq);
        let behind = before.map(|before| seq.distance_from(before));
        behind.is_some_and(|behind| (1..reach.cast_signed()).contains(&behind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_confirmed_by_one_that_follows_closely() {
        let mut unreadable = Unreadable::default();
        let mut confirms = |seq| unreadable.confirms(SeqNo::new(seq), 64);
        assert!(!confirms(5_000));
        assert!(!confirms(5_000), "the same one again");
        assert!(confirms(5_063));
        assert!(!confirms(5_127), "too far");
        assert!(!confirms(5_100), "before it");
    }
}
