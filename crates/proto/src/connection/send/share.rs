//! Shares of the last packets.

/// Packets over which shares are measured, and as many before them with falling weight.
pub(super) const WINDOW: u64 = 4_096;

/// A share that is measured over the last packets.
#[derive(Debug, Default)]
pub(super) struct Share {
    hits: f64,
    of: f64,
    total: u64,
}

impl Share {
    /// Of `total` since the start those that are new may be hit.
    pub(super) fn up_to(&mut self, total: u64) {
        let before = std::mem::replace(&mut self.total, total);
        self.of(total.saturating_sub(before));
    }

    /// So many more may be hit.
    pub(super) fn of(&mut self, packets: u64) {
        self.of += packets as f64;
        let most = (2 * WINDOW) as f64;
        if self.of > most {
            self.hits /= 2.0;
            self.of /= 2.0;
        }
    }

    pub(super) fn hit(&mut self) {
        self.hits += 1.0;
    }

    /// Of few packets it is taken for small.
    pub(super) fn value(&self) -> f64 {
        (self.hits / self.of.max((WINDOW / 8) as f64)).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_follows_the_last_thousands_and_begins_small() {
        let mut share = Share::default();
        share.of(10);
        share.hit();
        assert!(share.value() < 0.01, "one of ten is not a tenth yet");
        for hits in [1, 4] {
            for _ in 0..2_000 {
                share.of(20);
                (0..hits).for_each(|_| share.hit());
            }
            assert!((share.value() - 0.05 * f64::from(hits)).abs() < 0.01, "{share:?}");
        }
    }
}
