//! The greatest of the latest samples.

use std::collections::VecDeque;

/// The greatest sample of the latest rounds.
#[derive(Clone, Debug)]
pub struct Greatest<T> {
    rounds: u64,
    /// The samples that were greater than each later one, with their rounds.
    candidates: VecDeque<(u64, T)>,
}

impl<T: Copy + Ord> Greatest<T> {
    /// A filter over this number of rounds, at least one.
    pub fn of(rounds: u64) -> Self {
        Self { rounds: rounds.max(1), candidates: VecDeque::new() }
    }

    /// A sample in the round numbered `round`. Older samples only leave when a new one comes.
    /// Returns whether the sample is greater than all in the latest rounds.
    pub fn update(&mut self, round: u64, sample: T) -> bool {
        while self.candidates.front().is_some_and(|&(old, _)| old + self.rounds <= round) {
            self.candidates.pop_front();
        }
        let has_grown = self.get().is_none_or(|greatest| sample > greatest);
        while self.candidates.back().is_some_and(|&(_, lower)| lower <= sample) {
            self.candidates.pop_back();
        }
        self.candidates.push_back((round, sample));
        has_grown
    }

    /// The greatest sample; `None` before the first.
    pub fn get(&self) -> Option<T> {
        self.candidates.front().map(|&(_, sample)| sample)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_of_ten_rounds_is_kept() {
        let mut filter = Greatest::of(10);
        assert_eq!(filter.get(), None);
        let samples = [(0, 5), (1, 9), (2, 3), (10, 4), (11, 2), (12, 1)].map(|(round, sample)| {
            let has_grown = filter.update(round, sample);
            (filter.get().unwrap_or_default(), has_grown)
        });
        let expected = [(5, true), (9, true), (9, false), (9, false), (4, false), (4, false)];
        assert_eq!(samples, expected);
    }

    #[test]
    fn a_sample_as_great_as_the_greatest_replaces_it_without_growth() {
        let mut filter = Greatest::of(2);
        assert!(filter.update(0, 7));
        assert!(!filter.update(1, 7));
        assert!(!filter.update(2, 1));
        assert_eq!(filter.get(), Some(7));
    }
}
