use std::time::Duration;

use punctual_units::Instant;

/// What is taken in at least, whatever is in flight.
const LEAST: u64 = 128;
/// In so long a peer may report once all that is in flight: an honest one asks for a small part of
/// it at a time, and where that is all, a round trip long enough to hold it passes.
const ROUND: Duration = Duration::from_millis(10);
/// Rounds that may be saved up: reports that a network or a busy host held back come together.
const SAVED: u64 = 4;

/// How many packets a peer may report lost.
///
/// A loss report of a few words names as many packets as it likes, and each one named costs a look
/// at it. An honest peer names each packet in flight once in a round trip.
#[derive(Debug)]
pub(super) struct ReportBudget {
    left: u64,
    at: Instant,
}

impl ReportBudget {
    pub(super) const fn new(now: Instant) -> Self {
        Self { left: LEAST, at: now }
    }

    /// A report comes in while so many packets are in flight.
    pub(super) fn refill(&mut self, now: Instant, flight: u32) {
        let round = u128::from(u64::from(flight).max(LEAST));
        let most = round * u128::from(SAVED);
        let earned = now.saturating_since(self.at).as_nanos() * round / ROUND.as_nanos();
        self.left = u64::try_from((u128::from(self.left) + earned).min(most)).unwrap_or(u64::MAX);
        if earned > 0 {
            self.at = now;
        }
    }

    /// How many of `packets` that a report names one after the other may be looked at.
    pub(super) fn take(&mut self, packets: u32) -> u32 {
        let taken = u64::from(packets).min(self.left);
        self.left -= taken;
        u32::try_from(taken).unwrap_or(packets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_in_flight_may_be_reported_once_in_ten_milliseconds() {
        let mut budget = ReportBudget::new(Instant::ORIGIN);
        let mut taken = 0;
        for micros in 0..100_000 {
            budget.refill(Instant::from_micros(micros), 1_000);
            taken += budget.take(1_000);
        }
        assert!((10_000..=10_000 + 4_000).contains(&taken), "{taken}");
    }

    #[test]
    fn after_a_pause_a_few_rounds_may_come_together() {
        let mut budget = ReportBudget::new(Instant::ORIGIN);
        budget.refill(Instant::from_millis(900), 1_000);
        assert_eq!((0..9).map(|_| budget.take(1_000)).sum::<u32>(), 4_000);
    }
}
