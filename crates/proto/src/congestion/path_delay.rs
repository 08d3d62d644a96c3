use std::time::Duration;

use punctual_units::Instant;

/// The number of minutes whose least round-trip times are remembered (RFC 6817 section 3.4.2:
/// BASE_HISTORY).
const HISTORY: usize = 10;
const MINUTE: Duration = Duration::from_secs(60);

/// The newest round-trip time of a path, and the least one of the last ten minutes, which is the
/// one without a queue unless the route has changed (RFC 6817: base delay).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathDelay {
    latest: Duration,
    /// The least round-trip time of each minute, the current one first; `None` for a minute without
    /// a sample.
    least: [Option<Duration>; HISTORY],
    minute_began: Option<Instant>,
}

impl PathDelay {
    /// Takes in a round-trip time that was measured or reported by the peer.
    pub(crate) fn sample(&mut self, now: Instant, rtt: Duration) {
        self.latest = rtt;
        let began = *self.minute_began.get_or_insert(now);
        if now >= began + MINUTE {
            self.least.rotate_right(1);
            self.least[0] = None;
            self.minute_began = Some(now);
        }
        self.least[0] = Some(self.least[0].map_or(rtt, |least| least.min(rtt)));
    }

    /// The newest round-trip time; zero before the first.
    pub(crate) const fn latest(&self) -> Duration {
        self.latest
    }

    /// The least round-trip time of the last ten minutes with samples; zero before the first.
    pub(crate) fn base(&self) -> Duration {
        self.least.into_iter().flatten().min().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn the_base_is_the_least_round_trip() {
        let mut delay = PathDelay::default();
        assert_eq!((delay.latest(), delay.base()), (MS(0), MS(0)));
        for (second, rtt) in [(1, 50), (2, 40), (90, 70), (100, 60)] {
            delay.sample(Instant::from_millis(1_000 * second), MS(rtt));
        }
        assert_eq!((delay.latest(), delay.base()), (MS(60), MS(40)));
    }

    #[test]
    fn a_longer_route_becomes_the_base_after_ten_minutes() {
        let mut delay = PathDelay::default();
        delay.sample(Instant::from_millis(0), MS(40));
        for second in 1..=599 {
            delay.sample(Instant::from_millis(1_000 * second), MS(90));
        }
        assert_eq!(delay.base(), MS(40));
        for second in 600..=660 {
            delay.sample(Instant::from_millis(1_000 * second), MS(90));
        }
        assert_eq!(delay.base(), MS(90));
    }
}
