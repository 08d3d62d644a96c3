//! The sequence numbers that a report of the peer may name.

use punctual_wire::SeqNo;

/// The numbers that were sent or passed over.
///
/// Numbers lie on a circle, and one that is half-way round is neither before nor after another. So
/// a number in an ACK or a NAK is compared with both ends of these numbers before it is used.
#[derive(Debug)]
pub(crate) struct SentNumbers {
    /// The number after the newest one.
    end: SeqNo,
    /// The number of them; older ones than the last [`MOST`] do not count any more.
    count: u32,
}

/// A quarter of the circle, so that comparisons with any of the numbers hold.
const MOST: u32 = 1 << 29;

impl SentNumbers {
    /// None before `isn`, the number of the first packet.
    pub(super) const fn new(isn: SeqNo) -> Self {
        Self { end: isn, count: 0 }
    }

    /// All numbers before `next` were sent or passed over. A link of a group may continue with
    /// earlier numbers, or after a long pause with any.
    #[inline]
    pub(super) fn extend_to(&mut self, next: SeqNo) {
        let steps = next.distance_from(self.end);
        if steps > 0 {
            self.count = self.count.saturating_add(steps.unsigned_abs()).min(MOST);
            self.end = next;
        } else if steps.unsigned_abs() > self.count {
            self.go_back(next, steps.unsigned_abs());
        }
    }

    #[cold]
    const fn go_back(&mut self, next: SeqNo, steps: u32) {
        if steps <= MOST {
            self.count = steps;
        } else {
            *self = Self::new(next);
        }
    }

    /// The connection is a link of a group: other links have sent numbers before its first one, and
    /// the peer may name them.
    #[inline]
    pub(super) const fn follow_group(&mut self) {
        self.count = MOST;
    }

    /// Whether the peer may wait for `next` because it has all numbers before.
    pub(super) const fn may_be_next(&self, next: SeqNo) -> bool {
        let back = self.end.distance_from(next);
        back >= 0 && back.unsigned_abs() <= self.count
    }

    /// The numbers of these before `next`, the next first transmission.
    pub(super) const fn before(&self, next: SeqNo) -> Reportable {
        let kept_back = self.end.distance_from(next);
        let count = self.count as i32 - kept_back;
        Reportable { next, count: if count > 0 { count } else { 0 } }
    }

    #[cfg(test)]
    const fn contains(&self, seq: SeqNo) -> bool {
        self.before(self.end).contains(seq)
    }
}

/// The numbers that an honest peer may report lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reportable {
    next: SeqNo,
    count: i32,
}

impl Reportable {
    /// Whether all packets from `first` to `last` were sent.
    #[inline]
    pub(super) const fn contains_both(&self, (first, last): (SeqNo, SeqNo)) -> bool {
        self.contains(first) && self.contains(last)
    }

    const fn contains(&self, seq: SeqNo) -> bool {
        let back = self.next.distance_from(seq);
        back > 0 && back <= self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISN: SeqNo = SeqNo::new(0x7FFF_FFFE);

    #[test]
    fn only_what_was_sent_may_be_named() {
        let mut sent = SentNumbers::new(ISN);
        assert!(sent.may_be_next(ISN) && !sent.contains(ISN));
        sent.extend_to(ISN.plus(4));
        for offset in 0..4 {
            assert!(sent.contains(ISN.plus(offset)) && sent.may_be_next(ISN.plus(offset)));
        }
        assert!(sent.may_be_next(ISN.plus(4)) && !sent.contains(ISN.plus(4)));
        for ahead in [5, 1 << 29, (1 << 30) - 1, 1 << 30, (1 << 30) + 1, 0x7FFF_FFFB] {
            for from in [ISN, ISN.plus(4)] {
                let seq = from.plus(ahead);
                assert!(!sent.may_be_next(seq) && !sent.contains(seq), "{ahead} after {from}");
            }
        }
    }

    #[test]
    fn numbers_before_the_first_one_may_be_named_at_a_link_of_a_group() {
        let mut sent = SentNumbers::new(ISN);
        sent.follow_group();
        sent.extend_to(ISN.plus(1));
        assert!(sent.contains(ISN.minus(500)) && sent.may_be_next(ISN.minus(500)));
        assert!(!sent.contains(ISN.minus(1 << 29)) && !sent.contains(ISN.plus(1)));
    }

    #[test]
    fn a_link_of_a_group_may_go_back_and_far_ahead() {
        let mut sent = SentNumbers::new(ISN);
        sent.extend_to(ISN.plus(100));
        sent.extend_to(ISN.plus(50));
        assert!(sent.may_be_next(ISN.plus(100)), "it was sent before");
        sent.extend_to(ISN.minus(9));
        assert!(sent.contains(ISN.minus(9)) && !sent.contains(ISN.minus(10)));
        let far = ISN.plus(100).plus(1 << 30);
        sent.extend_to(far);
        assert!(sent.may_be_next(far) && !sent.may_be_next(ISN));
        sent.extend_to(far.plus((1 << 30) - 1));
        assert!(sent.contains(far.plus(1 << 29)) && !sent.contains(far));
    }
}
