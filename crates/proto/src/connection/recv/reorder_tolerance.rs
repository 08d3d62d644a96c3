use std::collections::VecDeque;
use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::SeqNo;

/// This number of packets in order lowers the tolerance by one.
const ORDERLY: u32 = 50;
/// This number of reordered packets that arrived more than two packets before the tolerance ended
/// lowers it by one.
const EARLY: u32 = 10;
/// Fresh losses that wait at most; more are reported at once.
const WAITING: usize = 1_024;

/// Losses that may be reordered packets, and the wait before they are reported.
///
/// libsrt counts the wait in packets (`lossmaxttl`), so that a loss before a pause in the stream is
/// never reported. Here a fresh loss also ages by the clock.
#[derive(Debug)]
pub(crate) struct ReorderTolerance {
    fresh: VecDeque<FreshLoss>,
    max: u32,
    tolerance: u32,
    distance: u32,
    in_order: u32,
    early: u32,
}

#[derive(Debug)]
struct FreshLoss {
    first: SeqNo,
    last: SeqNo,
    packets_left: u32,
    report_at: Instant,
}

impl ReorderTolerance {
    pub(crate) const fn new(max: u32) -> Self {
        Self { fresh: VecDeque::new(), max, tolerance: max, distance: 0, in_order: 0, early: 0 }
    }

    /// Sets the largest tolerance, in packets. A new value applies at once, and then falls while
    /// nothing is reordered, as the first one did. Losses that wait already are reported as
    /// planned.
    pub(crate) const fn set_max(&mut self, max: u32) {
        if max != self.max {
            self.max = max;
            self.tolerance = max;
        }
    }

    pub(crate) const fn tolerance(&self) -> u32 {
        self.tolerance
    }

    /// The largest reordering distance so far, packets.
    pub(crate) const fn distance(&self) -> u32 {
        self.distance
    }

    /// A gap from `first` to `last` was detected. Returns `false` if it has to be reported at once;
    /// otherwise it waits for `wait` at most.
    pub(crate) fn hold(&mut self, now: Instant, first: SeqNo, last: SeqNo, wait: Duration) -> bool {
        if self.tolerance == 0 || self.fresh.len() >= WAITING {
            return false;
        }
        let packets_left = self.tolerance;
        self.fresh.push_back(FreshLoss { first, last, packets_left, report_at: now + wait });
        true
    }

    /// A packet arrived in order: fresh losses age, and the tolerance falls while nothing is
    /// reordered.
    #[inline(always)]
    pub(crate) fn arrived_in_order(&mut self) {
        if !self.fresh.is_empty() {
            self.age_fresh();
        }
        self.in_order += 1;
        if self.in_order >= ORDERLY {
            self.in_order = 0;
            self.lower();
        }
    }

    /// An original arrived `late_by` packets late: it was reordered, not lost.
    pub(crate) fn arrived_late(&mut self, seq: SeqNo, late_by: u32) {
        self.in_order = 0;
        self.distance = self.distance.max(late_by);
        if late_by > self.tolerance {
            self.tolerance = late_by.min(self.max);
        }
        if self.forget(seq).is_some_and(|packets_left| packets_left > 2) {
            self.early += 1;
            if self.early >= EARLY {
                self.early = 0;
                self.lower();
            }
        }
    }

    /// Takes a number out of the fresh losses; returns the number of packets for which it could
    /// have waited longer.
    pub(crate) fn forget(&mut self, seq: SeqNo) -> Option<u32> {
        let index = self.fresh.iter().position(|loss| seq.is_within(loss.first, loss.last))?;
        let loss = &mut self.fresh[index];
        let packets_left = loss.packets_left;
        let report_at = loss.report_at;
        let (first, last) = (loss.first, loss.last);
        if first == last {
            self.fresh.remove(index);
        } else if seq == first {
            loss.first = seq.next();
        } else {
            loss.last = seq.minus(1);
            if seq != last {
                let rest = FreshLoss { first: seq.next(), last, packets_left, report_at };
                self.fresh.insert(index + 1, rest);
            }
        }
        Some(packets_left)
    }

    /// The next loss whose wait has ended.
    pub(crate) fn take_ripe(&mut self, now: Instant) -> Option<(SeqNo, SeqNo)> {
        let loss = self.fresh.front()?;
        if loss.packets_left > 0 && loss.report_at > now {
            return None;
        }
        self.fresh.pop_front().map(|loss| (loss.first, loss.last))
    }

    /// The instant at which the wait of the oldest fresh loss ends.
    pub(crate) fn next_ripe(&self) -> Option<Instant> {
        self.fresh.front().map(|loss| loss.report_at)
    }

    /// The oldest number that still waits: periodic NAKs list only packets before it.
    pub(crate) fn first_fresh(&self) -> Option<SeqNo> {
        self.fresh.front().map(|loss| loss.first)
    }

    #[cold]
    fn age_fresh(&mut self) {
        for loss in &mut self.fresh {
            loss.packets_left = loss.packets_left.saturating_sub(1);
        }
    }

    fn lower(&mut self) {
        self.tolerance = self.tolerance.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_millis(20);

    #[test]
    fn without_tolerance_losses_are_reported_at_once() {
        let mut reordering = ReorderTolerance::new(0);
        assert!(!reordering.hold(Instant::ORIGIN, SeqNo::new(1), SeqNo::new(2), WAIT));
    }

    #[test]
    fn a_loss_ripens_by_packets_or_by_the_clock() {
        let mut reordering = ReorderTolerance::new(2);
        let now = Instant::from_millis(1);
        assert!(reordering.hold(now, SeqNo::new(1), SeqNo::new(2), WAIT));
        reordering.arrived_in_order();
        assert_eq!(reordering.take_ripe(now), None);
        reordering.arrived_in_order();
        assert_eq!(reordering.take_ripe(now), Some((SeqNo::new(1), SeqNo::new(2))));

        assert!(reordering.hold(now, SeqNo::new(5), SeqNo::new(5), WAIT));
        assert_eq!(reordering.next_ripe(), Some(now + WAIT));
        assert_eq!(reordering.take_ripe(now + WAIT), Some((SeqNo::new(5), SeqNo::new(5))));
    }

    #[test]
    fn a_late_packet_is_forgotten_and_splits_its_range() {
        let mut reordering = ReorderTolerance::new(3);
        let now = Instant::from_millis(1);
        reordering.hold(now, SeqNo::new(10), SeqNo::new(14), WAIT);
        reordering.arrived_late(SeqNo::new(12), 4);
        assert_eq!((reordering.distance(), reordering.tolerance()), (4, 3));
        assert_eq!(reordering.first_fresh(), Some(SeqNo::new(10)));
        let later = now + WAIT;
        assert_eq!(reordering.take_ripe(later), Some((SeqNo::new(10), SeqNo::new(11))));
        assert_eq!(reordering.take_ripe(later), Some((SeqNo::new(13), SeqNo::new(14))));
    }

    #[test]
    fn a_calm_link_lowers_the_tolerance() {
        let mut reordering = ReorderTolerance::new(2);
        for _ in 0..100 {
            reordering.arrived_in_order();
        }
        assert_eq!(reordering.tolerance(), 0);
        reordering.arrived_late(SeqNo::new(1), 9);
        assert_eq!(reordering.tolerance(), 2);
    }
}
