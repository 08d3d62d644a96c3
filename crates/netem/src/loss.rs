use crate::chance::happens;

/// How packets are lost at a link's entrance.
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
}

impl Loss {
    /// Bursts of lost packets with nothing lost between them, by what can be measured: the `share`
    /// of packets lost, 0 to 1, and the mean number of packets lost in a row, at least 1.
    ///
    /// A share of more than `length / (length + 1)` cannot be had: bursts would have to join.
    pub fn bursts(share: f64, length: f64) -> Self {
        let r = 1.0 / length;
        Self::GilbertElliott { p: r * share / (1.0 - share), r, good_loss: 0.0, bad_loss: 1.0 }
    }

    /// The share of packets lost in the long run, 0 to 1.
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
        }
    }

    /// The probabilities in it, with their names.
    pub(crate) fn probabilities(&self) -> Vec<(&'static str, f64)> {
        match *self {
            Self::None | Self::All => Vec::new(),
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

/// The state of the Markov chain. Good whenever another model is in force.
#[derive(Clone, Debug, Default)]
pub(crate) struct LossState {
    bad: bool,
}

impl LossState {
    /// Whether the next packet is lost.
    pub(crate) fn is_lost(&mut self, loss: &Loss, draws: [u64; 2]) -> bool {
        let [step, hit] = draws;
        let Loss::GilbertElliott { p, r, good_loss, bad_loss } = *loss else {
            self.bad = false;
            return match *loss {
                Loss::All => true,
                Loss::Random(share) => happens(share, hit),
                Loss::None | Loss::GilbertElliott { .. } => false,
            };
        };
        self.bad ^= happens(if self.bad { r } else { p }, step);
        happens(if self.bad { bad_loss } else { good_loss }, hit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Chance;

    fn lost(loss: &Loss, seed: u64, count: usize) -> Vec<bool> {
        let mut chance = Chance::new(seed);
        let mut state = LossState::default();
        (0..count).map(|_| state.is_lost(loss, chance.draw().loss)).collect()
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
    fn the_chain_forgets_when_another_model_takes_over() {
        let turns_bad = Loss::GilbertElliott { p: 1.0, r: 0.0, good_loss: 0.0, bad_loss: 1.0 };
        let stays = Loss::GilbertElliott { p: 0.0, r: 0.0, good_loss: 0.0, bad_loss: 1.0 };
        let mut state = LossState::default();
        assert!(state.is_lost(&turns_bad, [0, 0]));
        assert!(state.is_lost(&stays, [0, 0]));
        assert!(!state.is_lost(&Loss::None, [0, 0]));
        assert!(!state.is_lost(&stays, [0, 0]));
    }
}
