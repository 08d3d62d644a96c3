//! A rate limit with a burst.

use std::time::Duration;

use punctual_units::Instant;

/// A limit on the uses of something: a number a second, and after a pause a burst of them at once.
#[derive(Debug)]
pub(super) struct CallAllowance {
    /// The time after which a use is restored.
    interval: Duration,
    burst: u32,
    /// When all uses of the burst are restored.
    whole_at: Instant,
}

impl CallAllowance {
    /// A limit of `per_second` uses, at least 1, and of `burst` uses at once, at least 1.
    pub(super) fn new(now: Instant, per_second: u32, burst: u32) -> Self {
        let interval = Duration::from_secs(1) / per_second.max(1);
        Self { interval, burst: burst.max(1), whole_at: now }
    }

    /// Takes one use, if more than `reserve` of the burst are left.
    pub(super) fn take(&mut self, now: Instant, reserve: u32) -> bool {
        let used = self.whole_at.saturating_since(now);
        let allowed = self.interval * self.burst.saturating_sub(reserve);
        if used + self.interval > allowed {
            return false;
        }
        self.whole_at = self.whole_at.max(now) + self.interval;
        true
    }

    /// When the next use is possible; in the past if one is possible now.
    pub(super) fn next(&self) -> Instant {
        self.whole_at.saturating_sub(self.interval * (self.burst - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_the_burst_uses_come_at_the_rate() {
        let start = Instant::from_millis(7_000);
        let mut allowance = CallAllowance::new(start, 100, 20);
        assert_eq!((0..1_000).filter(|_| allowance.take(start, 0)).count(), 20);
        assert_eq!(allowance.next(), start + Duration::from_millis(10));
        let uses = (0..10_000_u64)
            .filter(|&tenth| allowance.take(start + Duration::from_micros(100 * tenth), 0))
            .count();
        assert_eq!(uses, 99);
    }

    #[test]
    fn the_reserve_is_left() {
        let start = Instant::from_millis(7_000);
        let mut allowance = CallAllowance::new(start, 100, 20);
        assert_eq!((0..1_000).filter(|_| allowance.take(start, 15)).count(), 5);
        assert_eq!((0..1_000).filter(|_| allowance.take(start, 0)).count(), 15);
    }
}
