//! Runs of packets that are lost one after the other, and recovered together.
//!
//! A burst is one event: its packets are reported in one NAK, and retransmitted one after the
//! other, through the same chain of a good and a bad state that lost them. So the number of packets
//! that are still missing is a Markov chain from round to round. It keeps its number if the NAK is
//! lost; otherwise it becomes the number of packets lost of as many in a row. Copies are such steps
//! without a NAK. The probability that any packet of a run stays missing follows from the last
//! round backwards.

use super::rounds::{Before, Round};

/// The runs of lost packets on a path.
#[derive(Clone, Debug)]
pub(super) struct LossRuns {
    /// The probability that a run begins at a packet.
    pub(super) begins: f64,
    /// The probabilities of runs of one slot, of two, and so on.
    lengths: Vec<f64>,
    /// Packets in a slot: long bursts are reckoned in slots of several packets.
    pub(super) slot: f64,
    lost: LostOf,
}

/// Of 1, 2, … slots in a row, the probabilities that 0, 1, … are lost.
#[derive(Clone, Debug)]
struct LostOf {
    /// If the first slot is lost.
    first_lost: Vec<Vec<f64>>,
    /// If the first slot arrives.
    first_arrives: Vec<Vec<f64>>,
}

/// Packets of a run that are still missing: how likely any is, by their number in slots.
type Missing = Vec<f64>;

impl LossRuns {
    /// The runs of a path that loses this share of packets, in bursts of this mean length.
    ///
    /// Independent losses are runs of one packet each: two of them side by side have NAKs of their
    /// own. With bursts they would be one run, which changes a probability by less than `loss`.
    pub(super) fn new(loss: f64, burst: f64) -> Self {
        if burst <= 1.0 / (1.0 - loss) {
            return Self { begins: loss, lengths: vec![1.0], slot: 1.0, lost: LostOf::single() };
        }
        let slot = (burst / MOST_SLOTS).max(1.0);
        let turns_good = slot / burst;
        let turns_bad = turns_good * loss / (1.0 - loss);
        let count = LENGTHS.iter().find(|&&count| f64::from(count) * turns_good > 12.0);
        let count = *count.unwrap_or(&LENGTHS[LENGTHS.len() - 1]);
        let mut lengths = Vec::new();
        let mut longer = 1.0;
        for _ in 1..count {
            lengths.push(longer * turns_good);
            longer *= 1.0 - turns_good;
        }
        lengths.push(longer);
        let lost = LostOf::new(lengths.len(), turns_bad, turns_good);
        Self { begins: loss / burst, lengths, slot, lost }
    }

    /// The lengths of runs, in packets, each with its probability.
    pub(super) fn lengths(&self) -> impl Iterator<Item = (f64, f64)> {
        let slots = (1_u32..).map(f64::from);
        slots.zip(&self.lengths).map(|(slots, probability)| (slots * self.slot, *probability))
    }

    /// The slots of a run of this number of packets, at least one.
    pub(super) fn slots(&self, packets: f64) -> usize {
        let slots = (packets / self.slot - 1e-9).ceil();
        let fewer = (1_u16..).zip(&self.lengths[1..]).take_while(|(n, _)| f64::from(*n) < slots);
        fewer.count() + 1
    }

    /// The probabilities that a run of one slot, of two, and so on has a packet missing after these
    /// rounds.
    pub(super) fn missing_after(&self, rounds: &[Round]) -> Missing {
        let all = vec![1.0; self.lengths.len()];
        let mut later = [all.clone(), all];
        let Some((first, others)) = rounds.split_first() else { return later[0].clone() };
        for round in others.iter().rev() {
            let states = [Before::NakLost, Before::RetransmissionLost];
            later = states.map(|before| self.step(round, before, &later));
        }
        self.step(first, Before::Nothing, &later)
    }

    /// A step backwards: `later` is after a lost NAK, and after a lost retransmission.
    fn step(&self, round: &Round, before: Before, later: &[Missing; 2]) -> Missing {
        let [nak_lost, retransmission_lost] = later;
        let mut answered = retransmission_lost.clone();
        for _ in 0..round.copies {
            answered = self.lost.mean(round.copy, &answered);
        }
        let answered = self.lost.mean(round.first_lost(before), &answered);
        let lost = round.nak_lost(before);
        nak_lost
            .iter()
            .zip(answered)
            .map(|(nak, answer)| lost * nak + (1.0 - lost) * answer)
            .collect()
    }
}

impl LostOf {
    fn single() -> Self {
        Self { first_lost: vec![vec![0.0, 1.0]], first_arrives: vec![vec![1.0, 0.0]] }
    }

    fn new(most: usize, turns_bad: f64, turns_good: f64) -> Self {
        let from = |lost: bool| {
            let start =
                if lost { [vec![0.0; 2], vec![0.0, 1.0]] } else { [vec![1.0, 0.0], vec![0.0; 2]] };
            let mut rows = Vec::new();
            // The probabilities of each number of losses: in the good state, and in the bad one.
            let [mut good, mut bad] = start;
            loop {
                rows.push(good.iter().zip(&bad).map(|(good, bad)| good + bad).collect());
                if rows.len() == most {
                    return rows;
                }
                let (mut next_good, mut next_bad) =
                    (vec![0.0; good.len() + 1], vec![0.0; good.len() + 1]);
                for (losses, (good, bad)) in good.iter().zip(&bad).enumerate() {
                    next_good[losses] += good * (1.0 - turns_bad) + bad * turns_good;
                    next_bad[losses + 1] += good * turns_bad + bad * (1.0 - turns_good);
                }
                (good, bad) = (next_good, next_bad);
            }
        };
        Self { first_lost: from(true), first_arrives: from(false) }
    }

    /// The mean of `missing` over the number lost of 1, 2, … slots in a row, the first of which is
    /// lost with the probability `first`.
    fn mean(&self, first: f64, missing: &[f64]) -> Missing {
        let over = |row: &[f64]| row[1..].iter().zip(missing).map(|(p, it)| p * it).sum::<f64>();
        let rows = self.first_lost.iter().zip(&self.first_arrives);
        rows.map(|(lost, arrives)| first * over(lost) + (1.0 - first) * over(arrives)).collect()
    }
}

/// The most slots of a mean burst.
const MOST_SLOTS: f64 = 16.0;
/// Numbers of slots up to which runs are reckoned with; longer ones count as the longest.
const LENGTHS: [u16; 5] = [12, 24, 48, 96, 193];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_losses_are_a_distribution_with_the_mean_of_the_chain() {
        let (bad, good) = (0.02, 0.25);
        let table = LostOf::new(40, bad, good);
        let share = bad / (bad + good);
        for (lost, arrives) in table.first_lost.iter().zip(&table.first_arrives) {
            let mean = |row: &[f64]| (0_u32..).zip(row).map(|(n, p)| f64::from(n) * p).sum::<f64>();
            let sum = |row: &[f64]| row.iter().sum::<f64>();
            assert!((sum(lost) - 1.0).abs() < 1e-12 && (sum(arrives) - 1.0).abs() < 1e-12);
            let slots = f64::from(u16::try_from(lost.len() - 1).expect("few"));
            let stationary = share * mean(lost) + (1.0 - share) * mean(arrives);
            assert!((stationary - share * slots).abs() < 1e-9, "{slots}");
        }
    }

    #[test]
    fn lengths_are_a_distribution_with_the_mean_of_the_bursts() {
        for burst in [1.2, 3.0, 10.0, 16.0, 200.0, 1_000.0] {
            let runs = LossRuns::new(0.01, burst);
            let sum: f64 = runs.lengths().map(|(_, p)| p).sum();
            let mean: f64 = runs.lengths().map(|(length, p)| length * p).sum();
            assert!((sum - 1.0).abs() < 1e-9, "{burst}: {sum}");
            assert!((mean / burst - 1.0).abs() < 1e-3, "{burst}: {mean}");
        }
    }
}
