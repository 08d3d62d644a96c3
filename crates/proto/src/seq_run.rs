//! A run of numbers whose end is remembered from search to search.

use std::cell::Cell;

use punctual_wire::SeqNo;

/// A run of consecutive members of one or two [`SeqSet`](crate::seq_set::SeqSet)s.
///
/// The end of a run is asked for with each packet, and searching for it takes the longer the longer
/// the run is. As the run loses members at its front, or grows at its end, a search goes on where
/// the last one ended.
#[derive(Debug, Default)]
pub(crate) struct SeqRun {
    /// A number of the run and the number after its last one, when it was last searched.
    known: Cell<Option<(SeqNo, SeqNo)>>,
}

impl SeqRun {
    /// The first number at or after `first` that is no member. `search` finds the same for any
    /// number.
    pub(crate) fn end(
        &self,
        first: SeqNo,
        is_member: impl Fn(SeqNo) -> bool,
        search: impl Fn(SeqNo) -> SeqNo,
    ) -> SeqNo {
        let known = self.known.get();
        let known = known.filter(|&(start, end)| !first.is_before(start) && first.is_before(end));
        let end = match known {
            Some((_, end)) if !is_member(end) => return end,
            Some((_, end)) => search(end),
            None => search(first),
        };
        self.known.set(Some((first, end)));
        end
    }

    /// The number `seq` is no member any more. `first` is the first member that is left.
    pub(crate) fn removed(&self, seq: SeqNo, first: Option<SeqNo>) {
        let Some((start, end)) = self.known.get() else { return };
        if seq.is_before(start) || !seq.is_before(end) {
            return;
        }
        // It divides the run. Of the two parts, the one that contains the first member is kept.
        let is_passed = first.is_none_or(|first| first.is_after(seq));
        self.known.set(Some(if is_passed { (seq.next(), end) } else { (start, seq) }));
    }

    /// Forgets the run.
    pub(crate) fn clear(&self) {
        self.known.set(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seq_set::SeqSet;

    const SEQ: fn(u32) -> SeqNo = SeqNo::new;

    /// Of 0 to 8191, the members are these runs.
    fn set(runs: &[(u32, u32)]) -> SeqSet {
        let mut set = SeqSet::default();
        set.reserve(SEQ(0), 8_192);
        for &(first, last) in runs {
            set.insert_run(SEQ(first), last - first + 1);
        }
        set
    }

    fn end(run: &SeqRun, set: &SeqSet, first: u32) -> SeqNo {
        run.end(SEQ(first), |seq| set.contains(seq), |seq| set.first_gap_from(seq))
    }

    #[test]
    fn the_end_is_the_first_number_that_is_no_member() {
        let (run, set) = (SeqRun::default(), set(&[(10, 5_000), (5_002, 5_002)]));
        assert_eq!(end(&run, &set, 10), SEQ(5_001));
        assert_eq!(end(&run, &set, 4_000), SEQ(5_001), "a part of the same run");
        assert_eq!(end(&run, &set, 5_002), SEQ(5_003), "another run");
        assert_eq!(end(&run, &set, 9), SEQ(9), "no run");
    }

    #[test]
    fn a_number_in_the_middle_divides_the_run() {
        let (run, mut set) = (SeqRun::default(), set(&[(10, 5_000)]));
        end(&run, &set, 10);
        for (seq, first) in [(300, 10), (10, 11)] {
            set.remove(SEQ(seq));
            run.removed(SEQ(seq), Some(SEQ(first)));
            assert_eq!(end(&run, &set, first), SEQ(300));
        }
        assert_eq!(end(&run, &set, 301), SEQ(5_001));
    }

    #[test]
    fn a_known_run_is_searched_from_its_end_on() {
        let (run, mut set) = (SeqRun::default(), set(&[(10, 20)]));
        assert_eq!(end(&run, &set, 10), SEQ(21));
        set.insert_run(SEQ(21), 10);
        let search = |seq| {
            assert_eq!(seq, SEQ(21));
            set.first_gap_from(seq)
        };
        assert_eq!(run.end(SEQ(12), |seq| set.contains(seq), search), SEQ(31));
        run.clear();
        assert_eq!(end(&run, &set, 12), SEQ(31));
    }
}
