use std::time::Duration;

/// Counts by full seconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rate {
    second: u64,
    count: u32,
    before: u32,
}

impl Rate {
    pub(crate) fn count(&mut self, now: Duration) {
        if now.as_secs() != self.second {
            self.before = self.at(now);
            (self.second, self.count) = (now.as_secs(), 0);
        }
        self.count = self.count.saturating_add(1);
    }

    /// The number in the latest full second.
    pub(crate) fn at(&self, now: Duration) -> u32 {
        match now.as_secs().checked_sub(self.second) {
            Some(0) => self.before,
            Some(1) => self.count,
            _ => 0,
        }
    }
}
