use punctual_wire::SeqNo;

/// Runs that are remembered; of more, the receiver asks when it misses them, and is told again.
const REMEMBERED: usize = 16;

/// The packets that the sender dropped, as it says, before it sent anything behind them.
///
/// It is believed when a packet behind it comes and none of it did: until then it costs nothing to
/// be wrong, and a request in somebody else's name moves nothing.
#[derive(Debug, Default)]
pub(super) struct Announced {
    /// In the order of the numbers, apart from each other.
    runs: Vec<(SeqNo, SeqNo)>,
}

impl Announced {
    pub(super) const fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The numbers from `first` to `last` will not come. Whether that is remembered.
    pub(super) fn note(&mut self, mut first: SeqNo, mut last: SeqNo) -> bool {
        let touches = |&(start, end): &(SeqNo, SeqNo)| {
            !first.is_after(end.next()) && !start.is_after(last.next())
        };
        for (start, end) in self.runs.extract_if(.., |run| touches(run)).collect::<Vec<_>>() {
            first = if start.is_before(first) { start } else { first };
            last = if end.is_after(last) { end } else { last };
        }
        if self.runs.len() == REMEMBERED {
            return false;
        }
        let place = self.runs.partition_point(|(start, _)| start.is_before(first));
        self.runs.insert(place, (first, last));
        true
    }

    /// The number behind what is announced from `end` on without a gap.
    pub(super) fn behind(&self, end: SeqNo) -> SeqNo {
        match self.runs.first() {
            Some(&(first, last)) if end.is_within(first, last) => last.next(),
            _ => end,
        }
    }

    /// Packet `seq` came: what was announced of it is wrong, and what lies before it is settled
    /// now, which this returns.
    #[cold]
    pub(super) fn settle(&mut self, seq: SeqNo) -> Vec<(SeqNo, SeqNo)> {
        self.runs.retain(|&(first, last)| !seq.is_within(first, last));
        let settled = self.runs.partition_point(|(_, last)| last.is_before(seq));
        self.runs.drain(..settled).collect()
    }

    /// The numbers begin anew.
    pub(super) fn clear(&mut self) {
        self.runs.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seq(i: u32) -> SeqNo {
        SeqNo::new(0x7FFF_FFF0).plus(i)
    }

    #[test]
    fn runs_that_touch_are_one_and_those_behind_wait() {
        let mut announced = Announced::default();
        for (first, last) in [(20, 29), (0, 9), (10, 19), (40, 49)] {
            assert!(announced.note(seq(first), seq(last)));
        }
        assert_eq!(announced.behind(seq(5)), seq(30));
        assert_eq!(announced.behind(seq(30)), seq(30));
        assert_eq!(announced.settle(seq(33)), [(seq(0), seq(29))]);
        assert_eq!(announced.settle(seq(50)), [(seq(40), seq(49))]);
        assert!(announced.is_empty());
    }

    #[test]
    fn a_run_is_forgotten_when_one_of_it_comes() {
        let mut announced = Announced::default();
        announced.note(seq(0), seq(9));
        assert!(announced.settle(seq(0)).is_empty() && announced.is_empty());
    }

    #[test]
    fn no_more_runs_are_remembered_than_are_worth_it() {
        let mut announced = Announced::default();
        let noted = (0..100).filter(|i| announced.note(seq(2 * i), seq(2 * i))).count();
        assert_eq!(noted, REMEMBERED);
    }
}
