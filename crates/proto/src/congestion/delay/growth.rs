use std::time::Duration;

use punctual_units::Instant;

/// The speed of growth over a path without a queue: after a while it doubles in each round trip, as
/// the velocity of Copa does (NSDI 2018, section 2.1), since the path may carry much more than
/// before.
#[derive(Debug)]
pub(super) struct Growth {
    /// The multiple of the usual growth.
    speed: f64,
    doubles_at: Option<Instant>,
}

/// The number of round trips without a queue before the growth doubles: the queue that a larger
/// window causes is reported a round trip later, and wanders in between while packets are lost.
const PATIENCE: u32 = 5;
/// The largest share of the window by which it grows in a round trip: as much of a round trip may
/// end up in the queue.
const MOST: f64 = 0.125;

impl Growth {
    pub(super) const fn new() -> Self {
        Self { speed: 1.0, doubles_at: None }
    }

    /// The growth of a window of `window` packets in a round trip, usually `usual` packets.
    pub(super) fn accelerate(&self, usual: f64, window: f64) -> f64 {
        (usual * self.speed).min(window * MOST).max(usual)
    }

    /// Follows a report: the path has a queue of `queue`, of which this sender causes `own` alone.
    pub(super) fn follow(&mut self, now: Instant, rtt: Duration, queue: Duration, own: Duration) {
        if queue > own / 2 {
            *self = Self::new();
            return;
        }
        let doubles_at = *self.doubles_at.get_or_insert(now + rtt * PATIENCE);
        if now >= doubles_at {
            self.speed = (self.speed * 2.0).min(64.0);
            self.doubles_at = Some(now + rtt);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn growth_doubles_each_round_trip_until_there_is_a_queue() {
        let mut growth = Growth::new();
        let mut grown = Vec::new();
        for trip in 0..9 {
            growth.follow(Instant::from_millis(100 * trip), MS(100), MS(1), MS(5));
            grown.push(growth.accelerate(10.0, 1_000.0));
        }
        assert_eq!(grown, [10.0, 10.0, 10.0, 10.0, 10.0, 20.0, 40.0, 80.0, 125.0]);
        growth.follow(Instant::from_millis(1_000), MS(100), MS(3), MS(5));
        assert_eq!(growth.accelerate(10.0, 1_000.0), 10.0);
        assert_eq!(growth.accelerate(10.0, 40.0), 10.0, "never less than usual");
    }
}
