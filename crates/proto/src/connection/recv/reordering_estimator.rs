//! Reordering: the delay of packets that are late but not lost.

use std::time::Duration;

use punctual_wire::SeqNo;

use crate::windowed_ratio::{WINDOW, WindowedRatio};

/// The greatest of the last samples counts: of this number up to twice this number.
const SAMPLES: u32 = 32;
/// The least share of reordered packets among the missing ones for which the receiver waits.
const WORTH: f64 = 0.05;
/// The number of missing packets over which that share is measured; with fewer than the second
/// number it counts as small.
const MISSING: u64 = 256;
const FEW_MISSING: u64 = 20;

/// Measures the share of packets that are missing when later ones arrive, the share of these that
/// arrive after all, and their delay.
#[derive(Debug)]
pub(super) struct ReorderingEstimator {
    /// The number after the counted packets.
    since: SeqNo,
    /// The share of missing packets among all.
    missing: WindowedRatio,
    /// The share of missing packets whose originals arrived.
    came: WindowedRatio,
    /// The greatest delay of such an original, among the last samples and among those before.
    latest: Duration,
    latest_before: Duration,
    samples: u32,
}

impl ReorderingEstimator {
    pub(super) const fn new(since: SeqNo) -> Self {
        Self {
            since,
            missing: WindowedRatio::over(WINDOW, WINDOW / 8),
            came: WindowedRatio::over(MISSING, FEW_MISSING),
            latest: Duration::ZERO,
            latest_before: Duration::ZERO,
            samples: 0,
        }
    }

    /// The packets from `first` to `last` are missing. Returns the number of packets since the gap
    /// before.
    pub(super) fn found(&mut self, first: SeqNo, last: SeqNo) -> u32 {
        let since = |seq| last.next().distance_from(seq).max(0).unsigned_abs();
        let (passed, missing) = (since(self.since), since(first));
        self.since = last.next();
        self.missing.add_hits(missing.into());
        self.missing.add_trials(passed.into());
        self.came.add_trials(missing.into());
        passed
    }

    /// A reordered original arrived, `late` after the packet that overtook it.
    pub(super) fn overtaken(&mut self, late: Duration) {
        self.came.add_hits(1);
        if self.samples == SAMPLES {
            (self.latest_before, self.latest, self.samples) = (self.latest, Duration::ZERO, 0);
        }
        self.latest = self.latest.max(late);
        self.samples += 1;
    }

    /// Share of packets that were missing.
    pub(super) fn loss(&self) -> f64 {
        self.missing.value()
    }

    /// How long to wait for reordered originals; zero if there are few.
    pub(super) fn reordering_delay(&self) -> Duration {
        if self.came.value() < WORTH { Duration::ZERO } else { self.latest.max(self.latest_before) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn seq(i: u32) -> SeqNo {
        SeqNo::new(i)
    }

    /// Each twentieth packet is missing.
    fn lossy(packets: u32) -> ReorderingEstimator {
        let mut gaps = ReorderingEstimator::new(seq(1));
        for i in (20..=packets).step_by(20) {
            assert_eq!(gaps.found(seq(i), seq(i)), 20);
        }
        gaps
    }

    #[test]
    fn the_loss_is_the_share_that_was_missing() {
        assert!((lossy(20_000).loss() - 0.05).abs() < 1e-3);
        assert!(lossy(40).loss() < 0.01, "of few packets nothing is known");
    }

    #[test]
    fn the_delay_is_the_greatest_of_the_reordered_packets() {
        let mut gaps = lossy(10_000);
        for ms in [3, 4, 2] {
            gaps.overtaken(MS(ms));
        }
        assert_eq!(gaps.reordering_delay(), Duration::ZERO, "three of five hundred");
        for _ in 0..27 {
            gaps.overtaken(MS(3));
        }
        assert_eq!(gaps.reordering_delay(), MS(4));
    }

    #[test]
    fn old_samples_do_not_count() {
        let mut gaps = lossy(10_000);
        gaps.overtaken(MS(90));
        for _ in 0..2 * SAMPLES {
            gaps.overtaken(MS(5));
        }
        assert_eq!(gaps.reordering_delay(), MS(5));
        for i in 0..2_000 {
            gaps.found(seq(20_000 + i * 20), seq(20_000 + i * 20));
        }
        assert_eq!(gaps.reordering_delay(), Duration::ZERO, "nothing overtakes any more");
    }
}
