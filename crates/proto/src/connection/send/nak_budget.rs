//! A limit on the number of packets that a peer reports lost.

use std::time::Duration;

use punctual_units::Instant;

/// The least number of packets that counts as in flight.
const LEAST: u64 = 128;
/// In this time an honest peer reports each packet in flight once at most: a NAK reports a small
/// part of them, and a round trip with many packets in flight takes longer.
const ROUND: Duration = Duration::from_millis(10);
/// The number of rounds that may be saved up, because a network or a busy host may delay NAKs and
/// then deliver them together.
const SAVED: u64 = 4;

/// A budget of packets that the peer's NAKs may name.
///
/// A NAK of a few words can name millions of packets, and each of them costs time. An honest peer
/// names each packet in flight once in a round trip.
#[derive(Debug)]
pub(super) struct NakBudget {
    left: u64,
    at: Instant,
}

impl NakBudget {
    pub(super) const fn new(now: Instant) -> Self {
        Self { left: LEAST, at: now }
    }

    /// Adds the budget for the time since the last call, with `flight` packets in flight.
    pub(super) fn refill(&mut self, now: Instant, flight: u32) {
        let round = u128::from(u64::from(flight).max(LEAST));
        let most = round * u128::from(SAVED);
        let earned = now.saturating_since(self.at).as_nanos() * round / ROUND.as_nanos();
        self.left = u64::try_from((u128::from(self.left) + earned).min(most)).unwrap_or(u64::MAX);
        if earned > 0 {
            self.at = now;
        }
    }

    /// Takes the budget for a range of `packets`; returns the number that may be processed.
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
        let mut budget = NakBudget::new(Instant::ORIGIN);
        let mut taken = 0;
        for micros in 0..100_000 {
            budget.refill(Instant::from_micros(micros), 1_000);
            taken += budget.take(1_000);
        }
        assert!((10_000..=10_000 + 4_000).contains(&taken), "{taken}");
    }

    #[test]
    fn after_a_pause_a_few_rounds_may_come_together() {
        let mut budget = NakBudget::new(Instant::ORIGIN);
        budget.refill(Instant::from_millis(900), 1_000);
        assert_eq!((0..9).map(|_| budget.take(1_000)).sum::<u32>(), 4_000);
    }
}
