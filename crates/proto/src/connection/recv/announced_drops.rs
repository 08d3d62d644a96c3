use punctual_wire::SeqNo;

/// The number of ranges that are remembered. For the packets of any other range the receiver sends
/// NAKs, and the sender announces the drop again.
const REMEMBERED: usize = 16;

/// Ranges of packets that the sender announced as dropped (DROPREQ, draft section 3.2.9) before it
/// sent a packet after them.
///
/// A range counts as dropped when a packet after it arrives and no packet of the range has arrived.
/// Until then it has no effect, so that a forged message does no harm.
#[derive(Debug, Default)]
pub(super) struct AnnouncedDrops {
    /// In the order of the numbers, apart from each other.
    ranges: Vec<(SeqNo, SeqNo)>,
}

impl AnnouncedDrops {
    pub(super) const fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The packets from `first` to `last` were dropped. Returns whether that is remembered.
    pub(super) fn note(&mut self, mut first: SeqNo, mut last: SeqNo) -> bool {
        let touches = |&(start, end): &(SeqNo, SeqNo)| {
            !first.is_after(end.next()) && !start.is_after(last.next())
        };
        for (start, end) in self.ranges.extract_if(.., |range| touches(range)).collect::<Vec<_>>() {
            first = if start.is_before(first) { start } else { first };
            last = if end.is_after(last) { end } else { last };
        }
        if self.ranges.len() == REMEMBERED {
            return false;
        }
        let place = self.ranges.partition_point(|(start, _)| start.is_before(first));
        self.ranges.insert(place, (first, last));
        true
    }

    /// The number after the range that `end` lies in; `end` itself if it lies in none.
    pub(super) fn behind(&self, end: SeqNo) -> SeqNo {
        match self.ranges.first() {
            Some(&(first, last)) if end.is_within(first, last) => last.next(),
            _ => end,
        }
    }

    /// Packet `seq` arrived: the range that it lies in is wrong, and the ranges before it are true;
    /// returns these.
    #[cold]
    pub(super) fn settle(&mut self, seq: SeqNo) -> Vec<(SeqNo, SeqNo)> {
        self.ranges.retain(|&(first, last)| !seq.is_within(first, last));
        let settled = self.ranges.partition_point(|(_, last)| last.is_before(seq));
        self.ranges.drain(..settled).collect()
    }

    /// Forgets all ranges: the stream has jumped.
    pub(super) fn clear(&mut self) {
        self.ranges.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seq(i: u32) -> SeqNo {
        SeqNo::new(0x7FFF_FFF0).plus(i)
    }

    #[test]
    fn ranges_that_touch_merge_and_later_ones_wait() {
        let mut drops = AnnouncedDrops::default();
        for (first, last) in [(20, 29), (0, 9), (10, 19), (40, 49)] {
            assert!(drops.note(seq(first), seq(last)));
        }
        assert_eq!(drops.behind(seq(5)), seq(30));
        assert_eq!(drops.behind(seq(30)), seq(30));
        assert_eq!(drops.settle(seq(33)), [(seq(0), seq(29))]);
        assert_eq!(drops.settle(seq(50)), [(seq(40), seq(49))]);
        assert!(drops.is_empty());
    }

    #[test]
    fn a_range_is_forgotten_when_one_of_its_packets_arrives() {
        let mut drops = AnnouncedDrops::default();
        drops.note(seq(0), seq(9));
        assert!(drops.settle(seq(0)).is_empty() && drops.is_empty());
    }

    #[test]
    fn the_number_of_remembered_ranges_is_bounded() {
        let mut drops = AnnouncedDrops::default();
        let noted = (0..100).filter(|i| drops.note(seq(2 * i), seq(2 * i))).count();
        assert_eq!(noted, REMEMBERED);
    }
}
