//! The bottleneck's bandwidth: the greatest rate of the latest rounds.

use crate::congestion::PathView;

/// The greatest rate of delivery in the latest ten rounds, and the count of rounds. A round ends
/// when a packet that was sent after its beginning is acknowledged.
#[derive(Clone, Debug, Default)]
pub(super) struct Bandwidth {
    /// Bytes a second.
    greatest: u64,
    /// The greatest rate of each round, the present one first.
    rounds: [u64; ROUNDS],
    /// Bytes that had been delivered when the round began.
    round_began: u64,
    is_round_start: bool,
    /// Whether the bandwidth has grown since this was last asked.
    has_grown: bool,
}

impl Bandwidth {
    /// Takes a rate, in bytes a second. True if a round begins.
    pub(super) fn update(&mut self, path: &PathView, rate: u64) -> bool {
        self.is_round_start = path.delivered_before >= self.round_began;
        if self.is_round_start {
            self.round_began = path.delivered;
            self.rounds.rotate_right(1);
            self.rounds[0] = 0;
            self.greatest = self.rounds.iter().max().copied().unwrap_or_default();
        }
        if rate > self.rounds[0] {
            self.rounds[0] = rate;
            if rate > self.greatest {
                self.greatest = rate;
                self.has_grown = true;
            }
        }
        self.is_round_start
    }

    /// Begins a round now.
    pub(super) fn begin_round(&mut self, path: &PathView) {
        self.round_began = path.delivered;
        self.is_round_start = true;
    }

    /// The next round begins with a packet that is sent from now on.
    pub(super) fn wait_for_round(&mut self, path: &PathView) {
        self.round_began = path.delivered;
    }

    /// Whether the latest rate began a round.
    pub(super) fn is_round_start(&self) -> bool {
        self.is_round_start
    }

    /// Bytes a second.
    pub(super) fn greatest(&self) -> u64 {
        self.greatest
    }

    /// Whether it has grown since the last time.
    pub(super) fn take_growth(&mut self) -> bool {
        std::mem::take(&mut self.has_grown)
    }

    /// Lets the next answer be that it has grown.
    pub(super) fn assume_growth(&mut self) {
        self.has_grown = true;
    }
}

const ROUNDS: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::path;

    #[test]
    fn the_greatest_rate_is_forgotten_after_ten_rounds() {
        let mut bandwidth = Bandwidth::default();
        let mut delivered = 0;
        let mut round = |bandwidth: &mut Bandwidth, rate| {
            delivered += 10;
            let path = PathView { delivered, delivered_before: delivered, ..path(0) };
            assert!(bandwidth.update(&path, rate));
            bandwidth.greatest()
        };
        assert_eq!(round(&mut bandwidth, 900), 900);
        assert!((0..9).all(|_| round(&mut bandwidth, 100) == 900));
        assert_eq!(round(&mut bandwidth, 100), 100);
    }

    #[test]
    fn a_round_lasts_until_a_packet_sent_in_it_is_acknowledged() {
        let mut bandwidth = Bandwidth::default();
        let at = |delivered, delivered_before| PathView { delivered, delivered_before, ..path(0) };
        assert!(bandwidth.update(&at(10, 0), 1));
        assert!(!bandwidth.update(&at(20, 9), 1));
        assert!(bandwidth.update(&at(30, 10), 1));
    }
}
