//! The ratio of hits to trials over the last packets.

/// Trials over which most ratios are measured.
pub(crate) const WINDOW: u64 = 4_096;

/// The ratio of hits to trials, where a trial is a packet and a hit is, for example, its loss. It
/// is measured over the last packets: a window of them, and those before with falling weight.
#[derive(Debug)]
pub(crate) struct WindowedRatio {
    hits: f64,
    trials: f64,
    total: u64,
    window: f64,
    least: f64,
}

impl Default for WindowedRatio {
    /// Over some thousands of packets.
    fn default() -> Self {
        Self::over(WINDOW, WINDOW / 8)
    }
}

impl WindowedRatio {
    /// Over `window` trials. While there are fewer than `least`, the hits are divided by `least`.
    pub(crate) const fn over(window: u64, least: u64) -> Self {
        Self { hits: 0.0, trials: 0.0, total: 0, window: window as f64, least: least as f64 }
    }

    /// There have been `total` trials since the start.
    pub(crate) fn set_trials(&mut self, total: u64) {
        let before = std::mem::replace(&mut self.total, total);
        self.add_trials(total.saturating_sub(before));
    }

    /// There were `packets` more trials.
    pub(crate) fn add_trials(&mut self, packets: u64) {
        self.trials += packets as f64;
        if self.trials > 2.0 * self.window {
            self.hits /= 2.0;
            self.trials /= 2.0;
        }
    }

    /// There were `packets` more hits.
    pub(crate) fn add_hits(&mut self, packets: u64) {
        self.hits += packets as f64;
    }

    /// The ratio, 0 to 1; an underestimate while there are few trials.
    pub(crate) fn value(&self) -> f64 {
        (self.hits / self.trials.max(self.least)).min(1.0)
    }

    /// The ratio, once it is known of a whole window.
    pub(crate) fn known(&self) -> Option<f64> {
        (self.trials >= self.window).then(|| self.hits / self.trials)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_follows_the_last_thousands_of_packets_and_begins_small() {
        let mut ratio = WindowedRatio::default();
        ratio.add_trials(10);
        ratio.add_hits(1);
        assert!(ratio.value() < 0.01, "one of ten does not make a tenth yet");
        assert_eq!(ratio.known(), None);
        for hits in [1, 4] {
            for _ in 0..2_000 {
                ratio.add_trials(20);
                (0..hits).for_each(|_| ratio.add_hits(1));
            }
            assert!((ratio.value() - 0.05 * f64::from(hits)).abs() < 0.01, "{ratio:?}");
        }
    }
}
