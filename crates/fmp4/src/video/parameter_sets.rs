use std::collections::BTreeMap;

/// Parameter sets of one kind, each under its number; a later one replaces an earlier one.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct ParameterSets(BTreeMap<u8, Vec<u8>>);

impl ParameterSets {
    /// The longest that is kept. Real ones have some dozens of bytes.
    const LONGEST: usize = 4096;
    /// Streams have one or a few; a sample entry counts them in five bits.
    const MOST: usize = 31;

    /// Keeps `nal` as number `id`. Tells whether that changes anything.
    pub(super) fn insert(&mut self, id: u8, nal: &[u8]) -> bool {
        if nal.len() > Self::LONGEST || self.0.get(&id).is_some_and(|known| known == nal) {
            return false;
        }
        if self.0.len() == Self::MOST && !self.0.contains_key(&id) {
            self.0.clear();
        }
        self.0.insert(id, nal.to_vec());
        true
    }

    pub(super) fn first(&self) -> Option<&[u8]> {
        self.0.values().next().map(Vec::as_slice)
    }

    pub(super) fn to_vec(&self) -> Vec<Vec<u8>> {
        self.0.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_change_counts_and_the_number_is_bounded() {
        let mut sets = ParameterSets::default();
        assert!(sets.insert(0, b"a"));
        assert!(!sets.insert(0, b"a"));
        assert!(sets.insert(0, b"b"));
        assert!(!sets.insert(1, &[0; 5000]));
        assert_eq!(sets.first(), Some(&b"b"[..]));
        for id in 0..=255 {
            sets.insert(id, b"c");
        }
        assert!(sets.to_vec().len() <= 31);
    }
}
