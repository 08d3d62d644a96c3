//! Sets of numbers, as ranges.

use std::ops::Range;

/// A set of numbers, such as bytes of a stream or packet numbers, as ascending ranges that neither
/// touch nor overlap.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Ranges(Vec<Range<u64>>);

impl Ranges {
    /// Adds the numbers of `added`, and says how many of them are new.
    pub(crate) fn insert(&mut self, added: Range<u64>) -> u64 {
        if added.is_empty() {
            return 0;
        }
        let first = self.0.partition_point(|range| range.end < added.start);
        let last = self.0.partition_point(|range| range.start <= added.end);
        let joined = &self.0[first..last];
        let overlap: u64 = joined.iter().map(|range| overlap(range, &added)).sum();
        let start = joined.first().map_or(added.start, |range| range.start.min(added.start));
        let end = joined.last().map_or(added.end, |range| range.end.max(added.end));
        self.0.splice(first..last, [start..end]);
        added.end - added.start - overlap
    }

    /// The parts of `wanted` that are not in the set.
    pub(crate) fn missing(&self, wanted: &Range<u64>) -> Vec<Range<u64>> {
        let mut found = Vec::new();
        let mut from = wanted.start;
        for range in self.0.iter().filter(|range| range.end > wanted.start) {
            if range.start >= wanted.end {
                break;
            }
            if range.start > from {
                found.push(from..range.start);
            }
            from = range.end;
        }
        if from < wanted.end {
            found.push(from..wanted.end);
        }
        found
    }

    /// Takes up to `length` numbers out of the lowest range.
    pub(crate) fn take(&mut self, length: u64) -> Option<Range<u64>> {
        let first = self.0.first_mut()?;
        let taken = first.start..first.end.min(first.start + length);
        first.start = taken.end;
        if first.is_empty() {
            self.0.remove(0);
        }
        Some(taken)
    }

    /// Removes every number of `removed`.
    pub(crate) fn remove(&mut self, removed: &Range<u64>) {
        let kept = self.0.iter().flat_map(|range| {
            let before = range.start..range.end.min(removed.start);
            let after = range.start.max(removed.end)..range.end;
            [before, after]
        });
        self.0 = kept.filter(|range| !range.is_empty()).collect();
    }

    /// Whether nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it is all numbers from 0 to below `end`.
    pub(crate) fn is_all_below(&self, end: u64) -> bool {
        end == 0 || self.0.first().is_some_and(|range| range.start == 0 && range.end >= end)
    }

    /// The greatest number.
    pub(crate) fn greatest(&self) -> Option<u64> {
        self.0.last().map(|range| range.end - 1)
    }

    /// The ranges from the highest down.
    pub(crate) fn descending(&self) -> impl Iterator<Item = Range<u64>> {
        self.0.iter().rev().cloned()
    }
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> u64 {
    one.end.min(other.end).saturating_sub(one.start.max(other.start))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_that_touch_become_one() {
        let mut set = Ranges::default();
        assert_eq!(set.insert(0..10), 10);
        assert_eq!(set.insert(20..30), 10);
        assert_eq!(set.insert(10..20), 10);
        assert!(set.is_all_below(30) && !set.is_all_below(31));
        assert_eq!(set.take(12), Some(0..12));
        assert_eq!(set.greatest(), Some(29));
    }

    proptest! {
        #[test]
        fn a_set_of_ranges_is_like_a_set_of_numbers(
            steps in proptest::collection::vec((0..4_u8, 0..60_u64, 0..12_u64), 0..60),
        ) {
            let (mut ranges, mut numbers) = (Ranges::default(), BTreeSet::new());
            for (step, start, length) in steps {
                let range = start..start + length;
                match step {
                    0 | 1 => {
                        let before = numbers.len();
                        numbers.extend(range.clone());
                        let added = u64::try_from(numbers.len() - before).unwrap();
                        prop_assert_eq!(ranges.insert(range), added);
                    }
                    2 => {
                        range.clone().for_each(|it| { numbers.remove(&it); });
                        ranges.remove(&range);
                    }
                    _ => {
                        let missing: Vec<u64> = ranges.missing(&range).into_iter().flatten().collect();
                        let expected: Vec<u64> = range.filter(|it| !numbers.contains(it)).collect();
                        prop_assert_eq!(missing, expected);
                    }
                }
                let descending: Vec<u64> =
                    ranges.descending().flat_map(Iterator::rev).collect();
                let expected: Vec<u64> = numbers.iter().rev().copied().collect();
                prop_assert_eq!(descending, expected);
            }
        }
    }
}
