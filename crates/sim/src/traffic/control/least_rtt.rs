//! The least of the newest round trips.

use std::time::Duration;

use punctual_units::Instant;

/// The least round trip, until it is too old.
#[derive(Debug)]
pub(super) struct LeastRtt {
    lifetime: Duration,
    least: Option<(Duration, Instant)>,
}

impl LeastRtt {
    /// A filter whose sample is too old after `lifetime`.
    pub(super) fn new(lifetime: Duration) -> Self {
        Self { lifetime, least: None }
    }

    /// Takes a sample, which replaces one that is higher or too old. Returns whether that one was
    /// too old.
    pub(super) fn update(&mut self, now: Instant, sample: Option<Duration>) -> bool {
        let is_old = self.least.is_some_and(|(_, since)| now > since + self.lifetime);
        if let Some(sample) = sample
            && self.least.is_none_or(|(least, _)| is_old || sample <= least)
        {
            self.least = Some((sample, now));
        }
        is_old
    }

    /// The sample is as good as a new one.
    pub(super) fn refresh(&mut self, now: Instant) {
        if let Some((_, since)) = &mut self.least {
            *since = now;
        }
    }

    pub(super) fn get(&self) -> Option<Duration> {
        self.least.map(|(least, _)| least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn the_least_round_trip_is_replaced_when_it_is_old() {
        let mut filter = LeastRtt::new(MS(100));
        let mut at = |ms, sample| {
            let is_old = filter.update(Instant::from_millis(ms), Some(MS(sample)));
            (is_old, filter.get())
        };
        assert_eq!(at(0, 20), (false, Some(MS(20))));
        assert_eq!(at(50, 30), (false, Some(MS(20))));
        assert_eq!(at(100, 30), (false, Some(MS(20))));
        assert_eq!(at(101, 30), (true, Some(MS(30))));
        assert_eq!(at(102, 25), (false, Some(MS(25))));
    }
}
