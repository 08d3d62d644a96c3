//! The count of round trips.

/// Counts round trips: one has passed when a packet is acknowledged that was sent after it began.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundCounter {
    /// The bytes that had been delivered when the round trip began.
    begun_at: u64,
    count: u64,
}

impl RoundCounter {
    /// A packet was acknowledged: `delivered_before` bytes had been delivered when it was sent, and
    /// `delivered` have now. Returns whether a round trip begins with it.
    pub fn acknowledged(&mut self, delivered_before: u64, delivered: u64) -> bool {
        let is_new = delivered_before >= self.begun_at;
        if is_new {
            self.restart(delivered);
            self.count += 1;
        }
        is_new
    }

    /// A round trip begins now; it does not count.
    pub fn restart(&mut self, delivered: u64) {
        self.begun_at = delivered;
    }

    /// The round trips that have begun.
    pub fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_lasts_until_a_packet_sent_in_it_is_acknowledged() {
        let mut rounds = RoundCounter::default();
        let begins = [(0, 10), (9, 20), (10, 30), (29, 40)]
            .map(|(before, delivered)| rounds.acknowledged(before, delivered));
        assert_eq!((begins, rounds.count()), ([true, false, true, false], 2));
        rounds.restart(50);
        let begins = [49, 50].map(|before| rounds.acknowledged(before, 60));
        assert_eq!((begins, rounds.count()), ([false, true], 3));
    }
}
