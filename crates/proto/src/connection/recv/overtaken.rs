//! What overtakes what: how late packets come that are not lost.

use std::time::Duration;

use punctual_wire::SeqNo;

/// The most of so many samples, and of as many before them, counts.
const SAMPLES: u32 = 32;
/// Packets over which shares are measured, and as many before them with falling weight.
const WINDOW: f64 = 4_096.0;
/// Shares of fewer packets are taken for small.
const FEW: f64 = 512.0;
/// Of what was missing, fewer overtaken packets than that are not worth waiting for.
const WORTH: f64 = 0.05;
/// Missing packets over which that share is measured.
const MISSING: f64 = 256.0;
const FEW_MISSING: f64 = 20.0;

/// What is missing when packets behind it come: how much, and how much of it comes after all.
#[derive(Debug)]
pub(super) struct Gaps {
    /// Where the counted packets end.
    since: SeqNo,
    packets: f64,
    missing: f64,
    /// Of the last missing packets, those that came by themselves.
    looked_at: f64,
    came: f64,
    /// The most that one of them was late by, of the last samples and of those before.
    latest: Duration,
    latest_before: Duration,
    samples: u32,
}

impl Gaps {
    pub(super) const fn new(since: SeqNo) -> Self {
        Self {
            since,
            packets: 0.0,
            missing: 0.0,
            looked_at: 0.0,
            came: 0.0,
            latest: Duration::ZERO,
            latest_before: Duration::ZERO,
            samples: 0,
        }
    }

    /// The packets from `first` to `last` are missing. Returns how many packets have gone by since
    /// the gap before.
    pub(super) fn found(&mut self, first: SeqNo, last: SeqNo) -> f64 {
        let passed = f64::from(last.next().distance_from(self.since).max(0));
        let missing = f64::from(last.next().distance_from(first).max(0));
        self.since = last.next();
        (self.missing, self.packets) =
            fading(self.missing + missing, self.packets + passed, WINDOW);
        (self.came, self.looked_at) = fading(self.came, self.looked_at + missing, MISSING);
        passed
    }

    /// A packet came that others had overtaken, so long after they did.
    pub(super) fn overtaken(&mut self, late: Duration) {
        self.came += 1.0;
        if self.samples == SAMPLES {
            (self.latest_before, self.latest, self.samples) = (self.latest, Duration::ZERO, 0);
        }
        self.latest = self.latest.max(late);
        self.samples += 1;
    }

    /// Share of packets that were missing.
    pub(super) fn loss(&self) -> f64 {
        self.missing / self.packets.max(FEW)
    }

    /// How long to wait for packets that come by themselves; zero if few do.
    pub(super) fn overtaking(&self) -> Duration {
        let share = self.came / self.looked_at.max(FEW_MISSING);
        if share < WORTH { Duration::ZERO } else { self.latest.max(self.latest_before) }
    }
}

/// Forgets half of what was counted when it is twice the window.
fn fading(hits: f64, of: f64, window: f64) -> (f64, f64) {
    if of > 2.0 * window { (hits / 2.0, of / 2.0) } else { (hits, of) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn seq(i: u32) -> SeqNo {
        SeqNo::new(i)
    }

    /// Each twentieth packet is missing.
    fn lossy(packets: u32) -> Gaps {
        let mut gaps = Gaps::new(seq(1));
        for i in (20..=packets).step_by(20) {
            assert!((gaps.found(seq(i), seq(i)) - 20.0).abs() < 1e-9);
        }
        gaps
    }

    #[test]
    fn the_loss_is_the_share_that_was_missing() {
        assert!((lossy(20_000).loss() - 0.05).abs() < 1e-3);
        assert!(lossy(40).loss() < 0.01, "of few packets nothing is known");
    }

    #[test]
    fn one_waits_as_long_as_overtaken_packets_took() {
        let mut gaps = lossy(10_000);
        for ms in [3, 4, 2] {
            gaps.overtaken(MS(ms));
        }
        assert_eq!(gaps.overtaking(), Duration::ZERO, "three of five hundred");
        for _ in 0..27 {
            gaps.overtaken(MS(3));
        }
        assert_eq!(gaps.overtaking(), MS(4));
    }

    #[test]
    fn what_was_long_ago_does_not_count() {
        let mut gaps = lossy(10_000);
        gaps.overtaken(MS(90));
        for _ in 0..2 * SAMPLES {
            gaps.overtaken(MS(5));
        }
        assert_eq!(gaps.overtaking(), MS(5));
        for i in 0..2_000 {
            gaps.found(seq(20_000 + i * 20), seq(20_000 + i * 20));
        }
        assert_eq!(gaps.overtaking(), Duration::ZERO, "nothing overtakes any more");
    }
}
