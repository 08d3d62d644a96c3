use std::time::Duration;

use punctual_units::Instant;

use super::longer_path::LongerPath;
use crate::measured_path::LatestRoundTrips;

/// The queueing delay of the path: the least of the latest round trips, less the least round trip
/// of all (RFC 6817 section 4.2: the current delay and the base delay).
#[derive(Debug, Default)]
pub(super) struct QueueDelay {
    latest: LatestRoundTrips,
    current: Duration,
    base: Duration,
    /// The base at the last [`take_fall`](Self::take_fall).
    base_before: Duration,
    longer_path: LongerPath,
    noise: Duration,
}

/// Shorter round trips consist of the time that hosts take, which varies by as much.
const LEAST_BASE: Duration = Duration::from_millis(1);
/// A time that is distributed exponentially exceeds the one before and the one after by a third of
/// the mean on average.
const PER_EXCESS: u32 = 3;
/// The noise is the mean over about this number of round trips.
const NOISE_MEMORY: u32 = 16;

impl QueueDelay {
    /// A round trip was reported; `base` is the least of all. A longer path is noticed if the round
    /// trip is longer by more than `long`.
    pub(super) fn sample(&mut self, now: Instant, rtt: Duration, base: Duration, long: Duration) {
        self.latest.sample(now, rtt);
        self.current = self.latest.present().unwrap_or(rtt);
        self.follow_noise();
        self.base = self.longer_path.follow(now, self.current, base, long);
    }

    /// Follows the noise by the last three round trips.
    fn follow_noise(&mut self) {
        let mut latest = self.latest.newest_first();
        if let (Some(after), Some(rtt), Some(before)) =
            (latest.next(), latest.next(), latest.next())
        {
            let late = rtt.saturating_sub(before.max(after)) * PER_EXCESS;
            self.noise = (self.noise * (NOISE_MEMORY - 1) + late) / NOISE_MEMORY;
        }
    }

    /// The path has become longer: the present round trip is the one without a queue.
    pub(super) fn path_is_longer(&mut self) {
        self.longer_path.set_base(self.current);
        self.base = self.current;
    }

    /// The share of the round trip without a queue that is left of that at the last call: 1 unless
    /// it has fallen.
    pub(super) fn take_fall(&mut self) -> f64 {
        let base = self.base();
        let before = std::mem::replace(&mut self.base_before, base);
        if base < before { base.as_secs_f64() / before.as_secs_f64() } else { 1.0 }
    }

    /// The round trip without a queue, and with the least time that hosts take; zero before the
    /// first sample.
    pub(super) fn base(&self) -> Duration {
        if self.base.is_zero() { self.base } else { self.base.max(LEAST_BASE) }
    }

    /// The present round trip with its queue; zero before the first sample.
    pub(super) fn round_trip(&self) -> Duration {
        self.base() + self.delay()
    }

    /// The time by which hosts are late on average. A queue grows and shrinks over several round
    /// trips, and is no noise.
    pub(super) const fn noise(&self) -> Duration {
        self.noise
    }

    /// The queueing delay.
    pub(super) const fn delay(&self) -> Duration {
        self.current.saturating_sub(self.base)
    }

    /// Whether the newest round trip was reported more than a round trip ago, so that it says
    /// nothing about the packets that are in the network now.
    pub(super) fn is_stale(&self, now: Instant) -> bool {
        self.latest.newest().is_none_or(|(at, _)| now > at + self.current)
    }

    /// Whether a round trip was reported yet.
    pub(super) fn is_known(&self) -> bool {
        self.latest.newest().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn jitter_is_no_queue_and_a_queue_is() {
        let mut queue = QueueDelay::default();
        assert!(!queue.is_known());
        for n in 0..20 {
            queue.sample(Instant::from_millis(10 * n), MS(50 + n % 4 * 10), MS(50), MS(8));
        }
        assert_eq!((queue.delay(), queue.base()), (MS(0), MS(50)));
        for n in 20..40 {
            queue.sample(Instant::from_millis(10 * n), MS(70 + n % 4 * 10), MS(50), MS(8));
        }
        assert_eq!((queue.delay(), queue.round_trip()), (MS(20), MS(70)));
    }

    /// The queue after round trips of 100 µs and these times, 10 ms after each other.
    fn after(times: impl Iterator<Item = u64>) -> QueueDelay {
        let mut queue = QueueDelay::default();
        let us = Duration::from_micros;
        for (n, time) in times.enumerate() {
            queue.sample(Instant::from_millis(10 * n as u64), us(100 + time), us(100), MS(8));
        }
        queue
    }

    #[test]
    fn a_short_round_trip_counts_as_a_millisecond_and_late_hosts_are_noise() {
        let queue = after([0, 400, 100, 800, 200].into_iter().cycle().take(100));
        assert_eq!((queue.base(), queue.delay(), queue.round_trip()), (MS(1), MS(0), MS(1)));
        let noise = queue.noise().as_micros();
        assert!((450..650).contains(&noise), "{noise} µs");
    }

    #[test]
    fn a_queue_that_grows_and_shrinks_is_no_noise() {
        let noise = after((0..100).map(|n| 1_000 * 10_u64.abs_diff(n % 20))).noise().as_micros();
        assert!(noise < 400, "{noise} µs of up to 10 ms");
    }

    #[test]
    fn a_round_trip_is_stale_after_a_round_trip() {
        let mut queue = QueueDelay::default();
        queue.sample(Instant::from_millis(100), MS(80), MS(50), MS(8));
        let stale = [100, 180, 181].map(|ms| queue.is_stale(Instant::from_millis(ms)));
        assert_eq!(stale, [false, false, true]);
    }

    #[test]
    fn a_longer_path_has_no_queue_and_a_shorter_one_says_by_how_much() {
        let mut queue = QueueDelay::default();
        queue.sample(Instant::from_millis(0), MS(50), MS(50), MS(8));
        assert_eq!(queue.take_fall(), 1.0);
        queue.sample(Instant::from_millis(100), MS(80), MS(50), MS(8));
        queue.path_is_longer();
        assert_eq!((queue.base(), queue.delay(), queue.take_fall()), (MS(80), MS(0), 1.0));
        queue.sample(Instant::from_millis(200), MS(60), MS(50), MS(8));
        assert_eq!((queue.base(), queue.take_fall(), queue.take_fall()), (MS(60), 0.75, 1.0));
    }
}
