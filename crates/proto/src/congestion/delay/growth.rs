use std::time::Duration;

use punctual_units::Instant;

use super::arrival_rate;

/// The speed of growth over a path without a queue: after a while it doubles in each round trip, as
/// the velocity of Copa does (NSDI 2018, section 2.1), since the path may carry much more than
/// before.
#[derive(Debug)]
pub(super) struct Growth {
    /// The multiple of the usual growth.
    speed: f64,
    doubles_at: Option<Instant>,
    /// Until then the arrivals of a full link may show a higher rate than at the end of the slow
    /// start.
    settles_until: Option<Instant>,
}

/// The number of round trips without a queue before the growth doubles: the queue that a larger
/// window causes is reported a round trip later, and wanders in between while packets are lost.
const PATIENCE: u32 = 5;
/// The same after the slow start: the queue of its last window is reported a round trip later.
const AFTER_START: u32 = 2;
/// The largest share of the window by which it grows in a round trip: as much of a round trip may
/// end up in the queue.
const MOST: f64 = 0.125;

impl Growth {
    pub(super) const fn new() -> Self {
        Self { speed: 1.0, doubles_at: None, settles_until: None }
    }

    /// After a slow start that ended with a queue, at `now`.
    pub(super) fn after_queue(now: Instant, rtt: Duration) -> Self {
        let settles_until = Some(now + rtt.max(arrival_rate::LEAST_WINDOW));
        Self { settles_until, ..Self::new() }
    }

    /// After a slow start that ended at a reported capacity, at `now`, without a queue: the report
    /// may be too low.
    pub(super) fn after_capacity(now: Instant, rtt: Duration) -> Self {
        Self { doubles_at: Some(now + rtt * AFTER_START), ..Self::new() }
    }

    /// Whether the arrival rate, which is that of the last round trip, still has a part of the slow
    /// start in it.
    pub(super) fn settles(&self, now: Instant) -> bool {
        self.settles_until.is_some_and(|until| now <= until)
    }

    /// The growth of a window of `window` packets in a round trip, usually `usual` packets.
    pub(super) fn accelerate(&self, usual: f64, window: f64) -> f64 {
        (usual * self.speed).min(window * MOST).max(usual)
    }

    /// Follows a report: the path has a queue of `queue`, of which this sender causes `own` alone.
    pub(super) fn follow(&mut self, now: Instant, rtt: Duration, queue: Duration, own: Duration) {
        if queue > own / 2 {
            *self = Self { settles_until: self.settles_until, ..Self::new() };
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
    fn after_the_slow_start_the_arrivals_of_a_round_trip_are_awaited() {
        let ends = Instant::from_millis(1_000);
        let mut growth = Growth::after_queue(ends, MS(100));
        growth.follow(ends, MS(110), MS(10), MS(5));
        assert!(growth.settles(ends + MS(100)) && !growth.settles(ends + MS(101)));
        assert!(Growth::after_queue(ends, MS(20)).settles(ends + MS(50)));
        assert!(!Growth::after_capacity(ends, MS(100)).settles(ends));
    }

    #[test]
    fn after_a_slow_start_without_a_queue_growth_doubles_sooner() {
        let mut growth = Growth::after_capacity(Instant::from_millis(0), MS(100));
        let grown = [100, 200, 300].map(|ms| {
            growth.follow(Instant::from_millis(ms), MS(100), MS(1), MS(5));
            growth.accelerate(10.0, 1_000.0)
        });
        assert_eq!(grown, [10.0, 20.0, 40.0]);
    }

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
