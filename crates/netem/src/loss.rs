use std::sync::Arc;
use std::time::Duration;

use crate::generators::{Draws, happens};

/// How packets are lost at a link's entrance.
///
/// Printed and read as `none`, `all`, `5%` (random), `2%:8` (bursts: share and mean length),
/// `0.5%,10%,0.1%,40%` (Gilbert–Elliott: p, r, loss in the good and in the bad state), `every:100`,
/// `every:100:3` and `every:100:3:7` (periodic: period, packets in a row, first packet),
/// `every:10s:50` (timed: period, packets in a row), `list:3,17,20-25`.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Loss {
    /// No packet is lost.
    #[default]
    None,
    /// Every packet is lost: a blackout.
    All,
    /// Each packet is lost with this probability, independent of all others.
    Random(f64),
    /// Losses in bursts: a Markov chain with a good and a bad state, each with its own probability
    /// of loss (Gilbert, Capacity of a burst-noise channel, 1960; Elliott, Estimates of error rates
    /// for codes on burst-noise channels, 1963).
    ///
    /// The chain starts good and takes a step before each packet, lost or not. It is in the bad
    /// state for a share p / (p + r) of all packets, 1 / r packets in a row on average.
    GilbertElliott {
        /// Probability to turn from good to bad.
        p: f64,
        /// Probability to turn from bad to good.
        r: f64,
        /// Probability of loss in the good state (1 - k in Elliott's notation).
        good_loss: f64,
        /// Probability of loss in the bad state (1 - h in Elliott's notation).
        bad_loss: f64,
    },
    /// Of each `every` packets the first `burst` are lost, starting with packet number `first`. The
    /// link's packets are counted from 0, from its first one on. Nothing is left to chance.
    Periodic {
        /// Packets from the begin of one burst to that of the next; at 0 nothing is lost.
        every: u64,
        /// Packets lost in a row.
        burst: u64,
        /// Number of the first packet lost.
        first: u64,
    },
    /// Each time `every` has gone by since the link's [time zero](crate::Link::start), the next
    /// `burst` packets are lost. The rest of a burst is not added to the next one.
    Timed {
        /// Time from the begin of one burst to that of the next; at zero nothing is lost.
        every: Duration,
        /// Packets lost in a row.
        burst: u64,
    },
    /// Exactly these packets are lost.
    List(PacketList),
}

/// Numbers of packets. A link's packets are counted from 0, from its first one on.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PacketList {
    /// First and last number of each range; ascending, none touches the next.
    ranges: Arc<[(u64, u64)]>,
}

impl PacketList {
    /// The numbers in these ranges, both ends included. Order does not matter, and they may
    /// overlap; one whose end is less than its start is empty.
    pub fn new(ranges: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut ranges: Vec<_> = ranges.into_iter().filter(|(from, to)| from <= to).collect();
        ranges.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (from, to) in ranges {
            match joined.last_mut() {
                Some(last) if from <= last.1.saturating_add(1) => last.1 = last.1.max(to),
                _ => joined.push((from, to)),
            }
        }
        Self { ranges: joined.into() }
    }

    /// Whether this number is in it.
    pub fn contains(&self, number: u64) -> bool {
        let behind = self.ranges.partition_point(|&(from, _)| from <= number);
        behind > 0 && number <= self.ranges[behind - 1].1
    }

    /// The ranges, both ends included: ascending, with gaps between them.
    pub fn ranges(&self) -> &[(u64, u64)] {
        &self.ranges
    }
}

impl FromIterator<u64> for PacketList {
    fn from_iter<I: IntoIterator<Item = u64>>(numbers: I) -> Self {
        Self::new(numbers.into_iter().map(|number| (number, number)))
    }
}

impl Loss {
    /// Bursts of lost packets with no loss between them, by measurable figures: the `share` of
    /// packets lost, 0 to 1, and the mean number of packets lost in a row, at least 1.
    ///
    /// A share of more than `length / (length + 1)` cannot be had: bursts would have to join.
    pub fn bursts(share: f64, length: f64) -> Self {
        let r = 1.0 / length;
        Self::GilbertElliott { p: r * share / (1.0 - share), r, good_loss: 0.0, bad_loss: 1.0 }
    }

    /// The share of packets lost in the long run, 0 to 1. For a list, and for bursts in time, which
    /// depend on how many packets there are, it counts as 0.
    pub fn mean(&self) -> f64 {
        match *self {
            Self::None => 0.0,
            Self::All => 1.0,
            Self::Random(share) => share,
            Self::GilbertElliott { p: 0.0, good_loss, .. } => good_loss,
            Self::GilbertElliott { p, r, good_loss, bad_loss } => {
                let bad = p / (p + r);
                (1.0 - bad) * good_loss + bad * bad_loss
            }
            Self::Periodic { every: 0, .. } => 0.0,
            Self::Periodic { every, burst, .. } => ratio(burst.min(every), every),
            Self::Timed { .. } | Self::List(_) => 0.0,
        }
    }

    /// The probabilities in it, with their names.
    pub(crate) fn probabilities(&self) -> Vec<(&'static str, f64)> {
        match *self {
            Self::None | Self::All | Self::Periodic { .. } | Self::Timed { .. } | Self::List(_) => {
                Vec::new()
            }
            Self::Random(share) => vec![("loss", share)],
            Self::GilbertElliott { p, r, good_loss, bad_loss } => vec![
                ("p of the loss model", p),
                ("r of the loss model", r),
                ("loss in the good state", good_loss),
                ("loss in the bad state", bad_loss),
            ],
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "the mean of a model: 53 bits are plenty")]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

/// The cause of a loss.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LossCause {
    Generators,
    Pattern,
    Outage,
}

/// The state of the models from packet to packet.
#[derive(Clone, Debug, Default)]
pub(crate) struct LossState {
    /// Whether the Markov chain is in its bad state; good whenever another model is in force.
    bad: bool,
    /// Number of the period of the last burst in time, and its packets so far.
    burst: (u64, u64),
}

impl LossState {
    /// No model is in force.
    pub(crate) fn forget(&mut self) {
        self.bad = false;
    }

    /// Whether, and by what, the `number`-th packet is lost, which enters this long after the
    /// link's time zero.
    pub(crate) fn lost(
        &mut self,
        loss: &Loss,
        number: u64,
        age: Duration,
        draws: &mut Draws,
    ) -> Option<LossCause> {
        if let Loss::GilbertElliott { p, r, good_loss, bad_loss } = *loss {
            let [step, hit] = draws.two(number);
            self.bad ^= happens(if self.bad { r } else { p }, step);
            let probability = if self.bad { bad_loss } else { good_loss };
            return happens(probability, hit).then_some(LossCause::Generators);
        }
        self.bad = false;
        match *loss {
            Loss::Random(share) => {
                let [_, hit] = draws.two(number);
                happens(share, hit).then_some(LossCause::Generators)
            }
            Loss::All => Some(LossCause::Outage),
            Loss::Periodic { every, burst, first } => number
                .checked_sub(first)
                .and_then(|number| number.checked_rem(every))
                .is_some_and(|place| place < burst)
                .then_some(LossCause::Pattern),
            Loss::Timed { every, burst } => self.in_burst(every, burst, age),
            Loss::List(ref list) => list.contains(number).then_some(LossCause::Pattern),
            Loss::None | Loss::GilbertElliott { .. } => None,
        }
    }

    fn in_burst(&mut self, every: Duration, burst: u64, age: Duration) -> Option<LossCause> {
        let period = age.as_nanos().checked_div(every.as_nanos())?;
        let period = u64::try_from(period).unwrap_or(u64::MAX);
        if period > self.burst.0 {
            self.burst = (period, 0);
        }
        (period > 0 && self.burst.1 < burst).then(|| {
            self.burst.1 += 1;
            LossCause::Pattern
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generators::Generators;

    fn lost(loss: &Loss, seed: u64, count: usize) -> Vec<bool> {
        let mut draws = Generators::new(seed).loss;
        let mut state = LossState::default();
        let mut is_lost = |n| state.lost(loss, n, Duration::ZERO, &mut draws).is_some();
        (0..count as u64).map(&mut is_lost).collect()
    }

    fn share(lost: &[bool]) -> f64 {
        lost.iter().filter(|&&l| l).count() as f64 / lost.len() as f64
    }

    /// Mean number of `true` in a row.
    fn mean_run(lost: &[bool]) -> f64 {
        let runs = lost.split(|&l| !l).filter(|run| !run.is_empty()).count();
        lost.iter().filter(|&&l| l).count() as f64 / runs as f64
    }

    #[test]
    fn random_loss_has_its_share_and_no_memory() {
        let lost = lost(&Loss::Random(0.05), 3, 400_000);
        // Five standard deviations of 400,000 packets are 0.0017.
        assert!((share(&lost) - 0.05).abs() < 0.0017, "{}", share(&lost));
        assert!((mean_run(&lost) - 1.0 / 0.95).abs() < 0.01, "{}", mean_run(&lost));
    }

    #[test]
    fn bursts_have_their_share_and_length() {
        let model = Loss::bursts(0.02, 5.0);
        let lost = lost(&model, 11, 1_000_000);
        assert!((model.mean() - 0.02).abs() < 1e-12);
        // About 4000 bursts: the share's standard deviation is some 0.0004, the length's 0.07.
        assert!((share(&lost) - 0.02).abs() < 0.002, "{}", share(&lost));
        assert!((mean_run(&lost) - 5.0).abs() < 0.35, "{}", mean_run(&lost));
    }

    #[test]
    fn gilbert_elliott_loses_in_both_states() {
        let model = Loss::GilbertElliott { p: 0.01, r: 0.1, good_loss: 0.001, bad_loss: 0.5 };
        let lost = lost(&model, 5, 1_000_000);
        let expected = (10.0 * 0.001 + 0.5) / 11.0;
        assert!((model.mean() - expected).abs() < 1e-12);
        assert!((share(&lost) - expected).abs() < 0.003, "{}", share(&lost));
    }

    #[test]
    fn the_extremes_are_certain() {
        assert_eq!(share(&lost(&Loss::None, 1, 1_000)), 0.0);
        assert_eq!(share(&lost(&Loss::All, 1, 1_000)), 1.0);
        let stays_good = Loss::GilbertElliott { p: 0.0, r: 0.0, good_loss: 0.0, bad_loss: 1.0 };
        assert_eq!(stays_good.mean(), 0.0);
        assert_eq!(share(&lost(&stays_good, 1, 1_000)), 0.0);
        let always_bad = Loss::GilbertElliott { p: 1.0, r: 0.0, good_loss: 0.0, bad_loss: 1.0 };
        assert_eq!(share(&lost(&always_bad, 1, 1_000)), 1.0);
    }

    #[test]
    fn the_chain_restarts_after_another_model() {
        let turns_bad = Loss::GilbertElliott { p: 1.0, r: 0.0, good_loss: 0.0, bad_loss: 1.0 };
        let stays = Loss::GilbertElliott { p: 0.0, r: 0.0, good_loss: 0.0, bad_loss: 1.0 };
        let mut state = LossState::default();
        let mut draws = Generators::new(1).loss;
        let mut lost = |loss, n| state.lost(loss, n, Duration::ZERO, &mut draws);
        assert_eq!(lost(&turns_bad, 0), Some(LossCause::Generators));
        assert_eq!(lost(&stays, 1), Some(LossCause::Generators));
        assert_eq!(lost(&Loss::None, 2), None);
        assert_eq!(lost(&stays, 3), None);
    }
}
