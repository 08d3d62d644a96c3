use std::time::Duration;

use punctual_units::Instant;

/// How much of something may be done: so many times a second, and after a pause a number of times
/// at once.
#[derive(Debug)]
pub(crate) struct Allowance {
    /// Time that one use takes up.
    interval: Duration,
    burst: u32,
    /// When all that was used has been earned again.
    whole_at: Instant,
}

impl Allowance {
    /// Of `per_second` uses, at least one; `burst` of them at once, at least one.
    pub(crate) fn new(now: Instant, per_second: u32, burst: u32) -> Self {
        let interval = Duration::from_secs(1) / per_second.max(1);
        Self { interval, burst: burst.max(1), whole_at: now }
    }

    /// Takes one use, if there is one beyond `reserve` of them.
    pub(crate) fn take(&mut self, now: Instant, reserve: u32) -> bool {
        let used = self.whole_at.saturating_since(now);
        let allowed = self.interval * self.burst.saturating_sub(reserve);
        if used + self.interval > allowed {
            return false;
        }
        self.whole_at = self.whole_at.max(now) + self.interval;
        true
    }

    /// When there is a use again; in the past if there is one now.
    pub(crate) fn next(&self) -> Instant {
        self.whole_at.saturating_sub(self.interval * (self.burst - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_and_then_so_many_a_second() {
        let start = Instant::from_millis(7_000);
        let mut allowance = Allowance::new(start, 100, 20);
        assert_eq!((0..1_000).filter(|_| allowance.take(start, 0)).count(), 20);
        assert_eq!(allowance.next(), start + Duration::from_millis(10));
        let uses = (0..10_000_u64)
            .filter(|&tenth| allowance.take(start + Duration::from_micros(100 * tenth), 0))
            .count();
        assert_eq!(uses, 99);
    }

    #[test]
    fn what_is_reserved_is_left() {
        let start = Instant::from_millis(7_000);
        let mut allowance = Allowance::new(start, 100, 20);
        assert_eq!((0..1_000).filter(|_| allowance.take(start, 15)).count(), 5);
        assert_eq!((0..1_000).filter(|_| allowance.take(start, 0)).count(), 15);
    }
}
