//! Queue management against a standing backlog: none, or CoDel.

use std::time::Duration;

use punctual_units::Instant;

/// The packets that a queue drops beside the ones that its [limit](crate::QueueLimit) refuses.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Discipline {
    /// Only a full queue drops, and the newest packet (tail drop).
    #[default]
    TailDrop,
    /// CoDel (RFC 8289): when packets have waited longer than `target` throughout an `interval`,
    /// one is dropped from the front, and further ones at intervals that shrink with the square
    /// root of their number, until the wait is below the target again.
    CoDel {
        /// The wait that is acceptable; the RFC has 5 ms.
        target: Duration,
        /// For how long longer waits are tolerated: about the longest RTT; the RFC has 100 ms.
        interval: Duration,
    },
}

impl Discipline {
    /// CoDel with the RFC's parameters: 5 ms and 100 ms.
    pub const CODEL: Self =
        Self::CoDel { target: Duration::from_millis(5), interval: Duration::from_millis(100) };
}

/// The state of CoDel, in the RFC's names (section 5.3).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CoDel {
    first_above_time: Option<Instant>,
    drop_next: Instant,
    count: u64,
    last_count: u64,
    dropping: bool,
}

/// A packet at the head of the queue, about to be transmitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    /// The time for which it has waited.
    pub(crate) sojourn: Duration,
    /// Whether no more than a packet of the largest size waits behind it.
    pub(crate) last: bool,
    /// Why the packet before it was dropped in the same moment, if it was.
    pub(crate) after: Option<Drop>,
}

/// Which rule dropped a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Drop {
    /// It began a spell of dropping.
    First,
    /// It came by the control law within such a spell.
    Further,
}

impl CoDel {
    /// The queue has run empty.
    pub(crate) fn empty(&mut self) {
        self.first_above_time = None;
        self.dropping = false;
    }

    /// Whether the head of the queue is dropped at `now`; the next is asked about in the same way.
    pub(crate) fn drops(
        &mut self,
        now: Instant,
        head: Head,
        target: Duration,
        interval: Duration,
    ) -> Option<Drop> {
        let ok_to_drop = self.ok_to_drop(now, head, target, interval);
        if head.after == Some(Drop::First) {
            return None;
        }
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
                return None;
            }
            if head.after == Some(Drop::Further) {
                self.drop_next = control_law(self.drop_next, interval, self.count);
            }
            if now < self.drop_next {
                return None;
            }
            self.count += 1;
            return Some(Drop::Further);
        }
        if !ok_to_drop {
            return None;
        }
        let delta = self.count - self.last_count;
        let recent = now.saturating_since(self.drop_next) < interval.saturating_mul(RECENT);
        self.dropping = true;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.last_count = self.count;
        self.drop_next = control_law(now, interval, self.count);
        Some(Drop::First)
    }

    fn ok_to_drop(&mut self, now: Instant, head: Head, target: Duration, wait: Duration) -> bool {
        if head.sojourn < target || head.last {
            self.first_above_time = None;
            return false;
        }
        now >= *self.first_above_time.get_or_insert(now + wait)
    }
}

/// `t` and an interval by the square root of `count`, exact to a nanosecond: an integer square
/// root, which the RFC and Linux approach by Newton steps, is the same on every machine.
fn control_law(t: Instant, interval: Duration, count: u64) -> Instant {
    let nanos = u128::from(u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX));
    let root = (nanos * nanos / u128::from(count.max(1))).isqrt();
    t + Duration::from_nanos(u64::try_from(root).unwrap_or(u64::MAX))
}

/// Intervals for which the number of drops is remembered after a spell of dropping.
const RECENT: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: Duration = Duration::from_millis(5);
    const INTERVAL: Duration = Duration::from_millis(100);

    /// Packets leave each millisecond having waited as long as `sojourn` says; the milliseconds at
    /// which one is dropped.
    fn drops(until: u64, sojourn: impl Fn(u64) -> u64) -> Vec<u64> {
        let mut codel = CoDel::default();
        let mut drops = Vec::new();
        for millis in 0..until {
            let mut after = None;
            loop {
                let sojourn = Duration::from_millis(sojourn(millis));
                let head = Head { sojourn, last: false, after };
                after = codel.drops(Instant::from_millis(millis), head, TARGET, INTERVAL);
                if after.is_none() {
                    break;
                }
                drops.push(millis);
            }
        }
        drops
    }

    #[test]
    fn nothing_is_dropped_before_the_wait_was_long_for_an_interval() {
        assert!(drops(1_000, |_| 4).is_empty());
        // One short wait in each interval is enough.
        assert!(drops(1_000, |now| if now % 100 == 99 { 4 } else { 50 }).is_empty());
        assert_eq!(drops(101, |_| 50), [100]);
    }

    #[test]
    fn drops_come_at_intervals_by_the_root_of_their_number() {
        let spacing: Vec<_> = drops(600, |_| 50).windows(2).map(|two| two[1] - two[0]).collect();
        // 100 ms by the roots of 1, 2, 3 ..., each drop at the next whole millisecond.
        let (mut exact, mut last) = (100_000_000_u64, 100);
        let expected: Vec<_> = (1..=spacing.len() as u64)
            .map(|count| {
                exact += (10_000_000_000_000_000 / count).isqrt();
                let at = exact.div_ceil(1_000_000);
                at - std::mem::replace(&mut last, at)
            })
            .collect();
        assert_eq!(spacing, expected);
        assert!(spacing.len() >= 8);
    }

    #[test]
    fn a_dropping_state_soon_after_another_continues_it() {
        let again = drops(900, |now| if (500..510).contains(&now) { 1 } else { 50 });
        let second: Vec<_> = again.into_iter().filter(|&at| at > 510).collect();
        assert_eq!(second[0], 610, "an interval after the wait became long again");
        assert!(second[1] - second[0] < 60, "{second:?}");
        let late = drops(4_000, |now| if (500..2_500).contains(&now) { 1 } else { 50 });
        let second: Vec<_> = late.into_iter().filter(|&at| at > 2_500).collect();
        assert_eq!(second[1] - second[0], 100, "after 16 intervals it begins anew");
    }

    #[test]
    fn the_control_law_is_exact_and_does_not_overflow() {
        let law = |count| control_law(Instant::ORIGIN, INTERVAL, count).as_nanos();
        assert_eq!(
            (law(1), law(2), law(4), law(100)),
            (100_000_000, 70_710_678, 50_000_000, 10_000_000)
        );
        assert_eq!(law(0), law(1));
        let longest = control_law(Instant::ORIGIN, Duration::MAX, 1);
        assert_eq!(longest.as_nanos(), u64::MAX);
    }
}
