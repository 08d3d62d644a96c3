//! Shares of the last packets.

/// Packets over which most shares are measured.
pub(crate) const WINDOW: u64 = 4_096;

/// A share that is measured over the last packets: a window of them, and as many before them with
/// falling weight.
#[derive(Debug)]
pub(crate) struct Share {
    hits: f64,
    of: f64,
    total: u64,
    window: f64,
    least: f64,
}

impl Default for Share {
    /// Over some thousands of packets.
    fn default() -> Self {
        Self::over(WINDOW, WINDOW / 8)
    }
}

impl Share {
    /// Over so many packets; of fewer than `least` it is taken for small.
    pub(crate) const fn over(window: u64, least: u64) -> Self {
        Self { hits: 0.0, of: 0.0, total: 0, window: window as f64, least: least as f64 }
    }

    /// Of `total` since the start those that are new may be hit.
    pub(crate) fn up_to(&mut self, total: u64) {
        let before = std::mem::replace(&mut self.total, total);
        self.of(total.saturating_sub(before));
    }

    /// So many more may be hit.
    pub(crate) fn of(&mut self, packets: u64) {
        self.of += packets as f64;
        if self.of > 2.0 * self.window {
            self.hits /= 2.0;
            self.of /= 2.0;
        }
    }

    pub(crate) fn hit(&mut self, packets: u64) {
        self.hits += packets as f64;
    }

    /// Of few packets it is taken for small.
    pub(crate) fn value(&self) -> f64 {
        (self.hits / self.of.max(self.least)).min(1.0)
    }

    /// What it is, if it is known of a whole window.
    pub(crate) fn known(&self) -> Option<f64> {
        (self.of >= self.window).then(|| self.hits / self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_follows_the_last_thousands_and_begins_small() {
        let mut share = Share::default();
        share.of(10);
        share.hit(1);
        assert!(share.value() < 0.01, "one of ten is not a tenth yet");
        assert_eq!(share.known(), None);
        for hits in [1, 4] {
            for _ in 0..2_000 {
                share.of(20);
                (0..hits).for_each(|_| share.hit(1));
            }
            assert!((share.value() - 0.05 * f64::from(hits)).abs() < 0.01, "{share:?}");
        }
    }
}
