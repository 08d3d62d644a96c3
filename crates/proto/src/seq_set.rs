use punctual_wire::SeqNo;

/// A set of sequence numbers within a window: a ring of bits with a summary.
///
/// The bit of a number is its remainder modulo the capacity, a power of two, as in
/// [`SeqRing`](crate::seq_ring::SeqRing). A summary bit shows whether a word of 64 bits is not
/// empty, so that the lowest member of a window of 131,072 packets is found by reading at most 32
/// words of the summary.
#[derive(Debug, Default)]
pub(crate) struct SeqSet {
    words: Vec<u64>,
    summary: Vec<u64>,
    len: usize,
}

/// The number of bits that one summary word covers, which is also the initial capacity.
const SUMMARY_SPAN: usize = 64 * 64;

impl SeqSet {
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Makes room for `span` numbers from `first` on; all members must be among them.
    pub(crate) fn reserve(&mut self, first: SeqNo, span: usize) {
        if span <= self.capacity() {
            return;
        }
        let capacity = span.next_power_of_two().max(SUMMARY_SPAN);
        let mut larger = Self {
            words: vec![0; capacity / 64],
            summary: vec![0; capacity / SUMMARY_SPAN],
            len: 0,
        };
        for (start, end) in self.ranges_from(first) {
            larger.insert_run(start, end.distance_from(start).unsigned_abs() + 1);
        }
        *self = larger;
    }

    /// The largest span of numbers that fits without growing.
    pub(crate) const fn capacity(&self) -> usize {
        self.words.len() * 64
    }

    pub(crate) fn contains(&self, seq: SeqNo) -> bool {
        let bit = self.bit(seq);
        self.words.get(bit / 64).is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }

    /// Adds a number. Returns whether it was not a member before.
    pub(crate) fn insert(&mut self, seq: SeqNo) -> bool {
        let bit = self.bit(seq);
        let word = &mut self.words[bit / 64];
        let new = *word >> (bit % 64) & 1 == 0;
        *word |= 1 << (bit % 64);
        self.summary[bit / SUMMARY_SPAN] |= 1 << (bit / 64 % 64);
        self.len += usize::from(new);
        new
    }

    /// Removes a number. Returns whether it was a member.
    pub(crate) fn remove(&mut self, seq: SeqNo) -> bool {
        if self.len == 0 || !self.contains(seq) {
            return false;
        }
        let bit = self.bit(seq);
        let word = &mut self.words[bit / 64];
        *word &= !(1 << (bit % 64));
        if *word == 0 {
            self.summary[bit / SUMMARY_SPAN] &= !(1 << (bit / 64 % 64));
        }
        self.len -= 1;
        true
    }

    /// Adds `count` numbers from `first` on, for which there must be room. Returns how many are
    /// new. Takes one step per 64 numbers, as all methods for runs do.
    pub(crate) fn insert_run(&mut self, first: SeqNo, count: u32) -> u32 {
        let before = self.len;
        for (word, mask) in self.masks(first, count) {
            self.len += (mask & !self.words[word]).count_ones() as usize;
            self.words[word] |= mask;
            self.summary[word / 64] |= 1 << (word % 64);
        }
        u32::try_from(self.len - before).unwrap_or(u32::MAX)
    }

    /// Removes `count` numbers from `first` on. Returns how many were members.
    pub(crate) fn remove_run(&mut self, first: SeqNo, count: u32) -> u32 {
        if self.len == 0 {
            return 0;
        }
        let before = self.len;
        for (word, mask) in self.masks(first, count) {
            self.len -= (mask & self.words[word]).count_ones() as usize;
            self.words[word] &= !mask;
            if self.words[word] == 0 {
                self.summary[word / 64] &= !(1 << (word % 64));
            }
        }
        u32::try_from(before - self.len).unwrap_or(u32::MAX)
    }

    /// The words that contain `count` numbers from `first` on, and the bits of these numbers.
    fn masks(&self, first: SeqNo, count: u32) -> impl Iterator<Item = (usize, u64)> + use<> {
        let capacity = self.capacity();
        let (mut bit, mut left) = (self.bit(first), (count as usize).min(capacity));
        std::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let bits = left.min(64 - bit % 64);
            let word = (bit / 64, u64::MAX >> (64 - bits) << (bit % 64));
            left -= bits;
            bit = (bit + bits) & (capacity - 1);
            Some(word)
        })
    }

    /// The first member at or after `seq`. Without one, `None` or a number beyond the window.
    pub(crate) fn first_from(&self, seq: SeqNo) -> Option<SeqNo> {
        if self.len == 0 {
            return None;
        }
        let start = self.bit(seq);
        let within = self.words[start / 64] >> (start % 64);
        if within != 0 {
            return Some(seq.plus(within.trailing_zeros()));
        }
        let word = self.next_used_word((start / 64 + 1) & (self.words.len() - 1))?;
        let bit = word * 64 + self.words[word].trailing_zeros() as usize;
        Some(seq.plus(steps(start, bit, self.capacity())))
    }

    /// The first number at or after `seq` that is not a member.
    pub(crate) fn first_gap_from(&self, seq: SeqNo) -> SeqNo {
        if self.is_empty() {
            return seq;
        }
        self.first_unset(seq, |word| self.words[word])
    }

    /// The first number at or after `seq` that is a member of neither set. `other` must be empty,
    /// or have the same capacity.
    pub(crate) fn first_outside(&self, other: &Self, seq: SeqNo) -> SeqNo {
        match (self.is_empty(), other.is_empty()) {
            (_, true) => self.first_gap_from(seq),
            (true, _) => other.first_gap_from(seq),
            _ => self.first_unset(seq, |word| self.words[word] | other.words[word]),
        }
    }

    /// The first number at or after `seq` whose bit is not set in `words`; the first one after the
    /// window if all are set.
    fn first_unset(&self, seq: SeqNo, words: impl Fn(usize) -> u64) -> SeqNo {
        let mut at = seq;
        for _ in 0..=self.words.len() {
            let bit = self.bit(at);
            let run = (words(bit / 64) >> (bit % 64)).trailing_ones();
            at = at.plus(run);
            if (run as usize) < 64 - bit % 64 {
                break;
            }
        }
        at
    }

    /// The runs of members at or after `first`, as (first, last), in order.
    pub(crate) fn ranges_from(&self, first: SeqNo) -> impl Iterator<Item = (SeqNo, SeqNo)> + '_ {
        let mut left = self.len;
        let mut from = first;
        std::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let start = self.first_from(from)?;
            let end = self.first_gap_from(start);
            left = left.saturating_sub(end.distance_from(start).unsigned_abs() as usize);
            from = end;
            Some((start, end.minus(1)))
        })
    }

    fn next_used_word(&self, from: usize) -> Option<usize> {
        let mut index = from / 64;
        let mut bits = self.summary[index] & (u64::MAX << (from % 64));
        // The first summary word is read twice, since it was masked at first.
        for _ in 0..=self.summary.len() {
            if bits != 0 {
                return Some(index * 64 + bits.trailing_zeros() as usize);
            }
            index = (index + 1) % self.summary.len();
            bits = self.summary[index];
        }
        None
    }

    const fn bit(&self, seq: SeqNo) -> usize {
        seq.value() as usize & self.capacity().wrapping_sub(1)
    }
}

/// The distance from bit `from` forward to bit `to` on a ring of `capacity` bits.
fn steps(from: usize, to: usize, capacity: usize) -> u32 {
    u32::try_from(to.wrapping_sub(from) & (capacity - 1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_empty_set_has_no_members_and_no_runs() {
        let set = SeqSet::default();
        assert!(!set.contains(SeqNo::new(3)));
        assert_eq!(set.first_from(SeqNo::new(3)), None);
        assert_eq!(set.first_gap_from(SeqNo::new(3)), SeqNo::new(3));
        assert_eq!(set.ranges_from(SeqNo::new(3)).count(), 0);
    }

    proptest! {
        #[test]
        fn behaves_as_an_ordered_set(
            base in 0u32..=0x7FFF_FFFF,
            steps in prop::collection::vec((any::<bool>(), 0u32..9_000), 1..200),
            runs in prop::collection::vec((any::<bool>(), 0u32..9_000, 0u32..700), 0..20),
            from in 0u32..9_000,
        ) {
            let base = SeqNo::new(base);
            let mut set = SeqSet::default();
            let mut model = BTreeSet::new();
            for (insert, offset) in steps {
                set.reserve(base, offset as usize + 1);
                if insert {
                    prop_assert_eq!(set.insert(base.plus(offset)), model.insert(offset));
                } else {
                    prop_assert_eq!(set.remove(base.plus(offset)), model.remove(&offset));
                }
            }
            set.reserve(base, 9_701);
            for (insert, first, count) in runs {
                let change = |offset| if insert { model.insert(offset) } else { model.remove(&offset) };
                let changed = (first..first + count).map(change).filter(|changed| *changed).count();
                let first = base.plus(first);
                let counted = if insert { set.insert_run(first, count) } else { set.remove_run(first, count) };
                prop_assert_eq!(counted as usize, changed);
            }
            prop_assert_eq!(set.len(), model.len());
            let gap = (from..).find(|offset| !model.contains(offset));
            let found = set.first_gap_from(base.plus(from)).distance_from(base).unsigned_abs();
            prop_assert_eq!(Some(found), gap);
            let mut odd = SeqSet::default();
            odd.reserve(base, set.capacity());
            (0..4_500).for_each(|i| { odd.insert(base.plus(2 * i + 1)); });
            let outside = (from..).find(|offset| !model.contains(offset) && (offset % 2 == 0 || *offset >= 9_000));
            let found = set.first_outside(&odd, base.plus(from)).distance_from(base).unsigned_abs();
            prop_assert_eq!(Some(found), outside);
            let first = model.range(from..).next().copied();
            // After the last member, the search wraps and finds numbers beyond the window.
            let found = set.first_from(base.plus(from)).map(|seq| seq.distance_from(base).unsigned_abs());
            prop_assert_eq!(found.filter(|&offset| offset <= 9_700), first);
            let listed: Vec<u32> = set
                .ranges_from(base)
                .flat_map(|(a, b)| (0..=b.distance_from(a)).map(move |i| a.plus(i.unsigned_abs())))
                .map(|seq| seq.distance_from(base).unsigned_abs())
                .collect();
            prop_assert_eq!(listed, model.into_iter().collect::<Vec<_>>());
        }
    }
}
