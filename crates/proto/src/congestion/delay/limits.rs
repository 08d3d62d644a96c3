use std::time::Duration;

use punctual_units::Bitrate;

use crate::config::{Config, MaxBandwidth, RatePolicy};

/// The limits of the rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateBounds {
    pub(super) policy: RatePolicy,
    /// The highest rate; `None` for that of the path.
    target: Option<Bitrate>,
    /// The least rate, which nothing lowers.
    pub(super) least: Bitrate,
    /// The target of the queueing delay; `None` for one that depends on the round trip.
    queue: Option<Duration>,
}

/// The share of the target delay that the policy `low` uses.
const LOW: u32 = 4;

impl RateBounds {
    pub(super) fn new(config: &Config) -> Self {
        let target = Some(config.target_rate()).filter(|&rate| rate != Bitrate::ZERO);
        let target = match config.max_bandwidth() {
            MaxBandwidth::Absolute(most) => Some(target.map_or(most, |target| target.min(most))),
            MaxBandwidth::Unlimited | MaxBandwidth::Relative => target,
        };
        Self {
            // Without a rate there is nothing to hold.
            policy: match (config.rate_policy(), target) {
                (RatePolicy::Fixed, None) => RatePolicy::Fair,
                (policy, _) => policy,
            },
            target,
            least: config.min_rate(),
            queue: Some(config.queue_target()).filter(|queue| !queue.is_zero()),
        }
    }

    /// The number of shares of a link beside others.
    pub(super) const fn shares(&self) -> f64 {
        match self.policy {
            RatePolicy::High => 2.0,
            RatePolicy::Fixed | RatePolicy::Fair | RatePolicy::Low => 1.0,
        }
    }

    /// Whether the sender takes its share beside others that fill the queue.
    pub(super) const fn competes(&self) -> bool {
        !matches!(self.policy, RatePolicy::Low)
    }

    /// The target of the queueing delay over a path whose least round trip is `base`.
    pub(super) fn queue_target(&self, base: Duration) -> Duration {
        let target = self.queue.unwrap_or_else(|| {
            (base / 8).clamp(Duration::from_millis(5), Duration::from_millis(25))
        });
        if self.policy == RatePolicy::Low { target / LOW } else { target }
    }

    /// The rate within the limits.
    pub(super) fn clamp(&self, rate: Bitrate) -> Bitrate {
        let target = self.target.unwrap_or(Bitrate::from_bits_per_sec(u64::MAX));
        match self.policy {
            RatePolicy::Fixed => target,
            _ => rate.max(self.least).min(target),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const MBPS: fn(u64) -> Bitrate = Bitrate::from_mbps;

    #[test]
    fn the_rate_is_kept_between_the_least_and_the_lower_of_both_highest() {
        let config = Config::file().with_target_rate(MBPS(20)).with_min_rate(MBPS(5));
        let limits = RateBounds::new(&config);
        assert_eq!([1, 10, 30].map(|rate| limits.clamp(MBPS(rate))), [5, 10, 20].map(MBPS));
        let config = config.with_max_bandwidth(MaxBandwidth::Absolute(MBPS(8)));
        assert_eq!(RateBounds::new(&config).clamp(MBPS(30)), MBPS(8));
    }

    #[test]
    fn a_fixed_rate_needs_a_rate() {
        let fixed = Config::file().with_rate_policy(RatePolicy::Fixed);
        assert_eq!(RateBounds::new(&fixed).clamp(MBPS(3)), MBPS(3));
        assert_eq!(RateBounds::new(&fixed.with_target_rate(MBPS(7))).clamp(MBPS(3)), MBPS(7));
    }

    #[test]
    fn the_queue_is_an_eighth_of_the_round_trip_within_bounds() {
        let limits = RateBounds::new(&Config::file());
        assert_eq!([20, 80, 400].map(|rtt| limits.queue_target(MS(rtt))), [5, 10, 25].map(MS));
        let low = RateBounds::new(&Config::file().with_rate_policy(RatePolicy::Low));
        assert_eq!(low.queue_target(MS(160)), MS(5));
    }
}
