use std::time::Duration;

use punctual_units::{Bitrate, Instant};

/// What may be sent at once after a pause.
const BURST: Duration = Duration::from_millis(100);

/// A limit on the rate of retransmissions alone [maxrexmitbw]; a rate of zero allows none.
#[derive(Debug)]
pub(crate) struct RetransmitBudget {
    rate: Bitrate,
    next: Instant,
}

impl RetransmitBudget {
    pub(crate) const fn new(rate: Bitrate) -> Self {
        Self { rate, next: Instant::ORIGIN }
    }

    /// When the next retransmission may go out; `None` for never.
    pub(crate) fn next(&self) -> Option<Instant> {
        (self.rate > Bitrate::ZERO).then_some(self.next)
    }

    pub(crate) fn sent(&mut self, now: Instant, bytes: usize) {
        self.next = self.next.max(now - BURST) + self.rate.time_for(bytes as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_of_retransmissions_stays_within_the_rate() {
        let mut budget = RetransmitBudget::new(Bitrate::from_bytes_per_sec(100_000));
        let mut bytes = 0;
        for ms in 1_000..2_000 {
            let now = Instant::from_millis(ms);
            while budget.next().is_some_and(|at| at <= now) {
                budget.sent(now, 1_000);
                bytes += 1_000;
            }
        }
        assert!((100_000..=111_000).contains(&bytes), "{bytes}");
        assert_eq!(RetransmitBudget::new(Bitrate::ZERO).next(), None);
    }
}
