use std::time::Duration;

use punctual_units::Instant;

/// The number of minutes whose least round-trip times are remembered (RFC 6817 section 3.4.2:
/// BASE_HISTORY).
const HISTORY: usize = 10;
const MINUTE: Duration = Duration::from_secs(60);

/// The least round-trip time of the last ten minutes, which is the one without a queue unless the
/// route has changed (RFC 6817: base delay).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LeastRoundTrip {
    /// The least round-trip time of each minute, the current one first; `None` for a minute without
    /// a sample.
    least: [Option<Duration>; HISTORY],
    minute_began: Option<Instant>,
}

impl LeastRoundTrip {
    /// Takes in a round-trip time that was measured or reported by the peer.
    pub(crate) fn sample(&mut self, now: Instant, rtt: Duration) {
        let began = *self.minute_began.get_or_insert(now);
        if now >= began + MINUTE {
            self.least.rotate_right(1);
            self.least[0] = None;
            self.minute_began = Some(now);
        }
        self.least[0] = Some(self.least[0].map_or(rtt, |least| least.min(rtt)));
    }

    /// The least round-trip time of the last ten minutes with samples; zero before the first.
    pub(crate) fn get(&self) -> Duration {
        self.least.into_iter().flatten().min().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn the_least_round_trip_is_remembered() {
        let mut least = LeastRoundTrip::default();
        assert_eq!(least.get(), MS(0));
        for (second, rtt) in [(1, 50), (2, 40), (90, 70), (100, 60)] {
            least.sample(Instant::from_millis(1_000 * second), MS(rtt));
        }
        assert_eq!(least.get(), MS(40));
    }

    #[test]
    fn a_longer_route_becomes_the_least_after_ten_minutes() {
        let mut least = LeastRoundTrip::default();
        least.sample(Instant::from_millis(0), MS(40));
        for second in 1..=599 {
            least.sample(Instant::from_millis(1_000 * second), MS(90));
        }
        assert_eq!(least.get(), MS(40));
        for second in 600..=660 {
            least.sample(Instant::from_millis(1_000 * second), MS(90));
        }
        assert_eq!(least.get(), MS(90));
    }
}
