//! The bottleneck's bandwidth: the greatest rate of the latest rounds.

use punctual_rates::{Greatest, RoundCounter};

use crate::congestion::PathView;

/// The greatest rate of delivery in the latest ten rounds.
#[derive(Clone, Debug)]
pub(super) struct Bandwidth {
    /// Bytes a second.
    greatest: Greatest<u64>,
    rounds: RoundCounter,
    is_round_start: bool,
    /// Whether the bandwidth has grown since this was last asked.
    has_grown: bool,
}

impl Default for Bandwidth {
    fn default() -> Self {
        Self {
            greatest: Greatest::of(ROUNDS),
            rounds: RoundCounter::default(),
            is_round_start: false,
            has_grown: false,
        }
    }
}

impl Bandwidth {
    /// Takes a rate, in bytes a second. True if a round begins.
    pub(super) fn update(&mut self, path: &PathView, rate: u64) -> bool {
        self.is_round_start = self.rounds.acknowledged(path.delivered_before, path.delivered);
        self.has_grown |= self.greatest.update(self.rounds.count(), rate);
        self.is_round_start
    }

    /// Begins a round now.
    pub(super) fn begin_round(&mut self, path: &PathView) {
        self.rounds.restart(path.delivered);
        self.is_round_start = true;
    }

    /// The next round begins with a packet that is sent from now on.
    pub(super) fn wait_for_round(&mut self, path: &PathView) {
        self.rounds.restart(path.delivered);
    }

    /// Whether the latest rate began a round.
    pub(super) fn is_round_start(&self) -> bool {
        self.is_round_start
    }

    /// Bytes a second.
    pub(super) fn greatest(&self) -> u64 {
        self.greatest.get().unwrap_or_default()
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

const ROUNDS: u64 = 10;

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
}
