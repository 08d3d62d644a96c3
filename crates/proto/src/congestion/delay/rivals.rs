use std::time::Duration;

use punctual_units::Instant;

/// Notices other senders that fill the queue of the path, whatever its delay, because they react
/// only to losses.
///
/// While the queue is longer than its target, the sender lowers its window. If as many of its
/// packets arrive as before, the queue was its own, as after a drop of the link's rate; otherwise
/// others took the room. While it competes with them, the sender lowers its window by a fifth from
/// time to time, for a few round trips, to see whether they are still there.
#[derive(Debug)]
pub(super) struct Rivals {
    /// The mean queueing delay, seconds.
    mean: f64,
    updated: Option<Instant>,
    long_queue: Option<LongQueue>,
    test: Option<Test>,
    next_test: Option<Instant>,
}

/// A time in which the queue is longer than its target.
#[derive(Clone, Copy, Debug)]
struct LongQueue {
    began: Instant,
    /// The window and the arrival rate when the arrivals showed the queue.
    before: Option<(f64, f64)>,
}

/// A test of the share of the arrivals that is this sender's.
#[derive(Clone, Copy, Debug)]
struct Test {
    ends: Instant,
    /// The arrival rate before it, packets per second.
    rate: f64,
}

/// The state of the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathView {
    pub(super) base: Duration,
    pub(super) queue: Duration,
    /// The target of the queueing delay.
    pub(super) target: Duration,
    /// Packets that arrive per second.
    pub(super) rate: f64,
}

/// The time constant of the mean, in round trips, and at least.
const ROUND_TRIPS: u32 = 8;
const LEAST_TIME: Duration = Duration::from_millis(600);
/// A queueing delay beyond this multiple of the target is examined.
pub(super) const LONG: f64 = 1.5;
/// The share of the window at which the arrivals are compared with those before.
const LOWERED: f64 = 0.7;
/// The share of the arrivals that others leave at most when the window is lowered so far. Since
/// arrivals follow the window a round trip later, it is larger than that of the window.
const TAKEN: f64 = 0.92;
/// A mean queueing delay below this multiple of the target shows that nobody fills the queue.
const SHORT: f64 = 0.5;
/// The time between two tests, in round trips, and at least.
const TEST_ROUND_TRIPS: u32 = 40;
const LEAST_BETWEEN_TESTS: Duration = Duration::from_secs(5);
/// The duration of a test in round trips.
const TEST_DURATION: u32 = 3;
/// The share of the window that is left during a test.
pub(super) const TEST_WINDOW: f64 = 0.8;
/// The share of the arrivals that is left in a test if the queue is the own one.
const UNCHANGED: f64 = 0.96;

impl Rivals {
    pub(super) const fn new() -> Self {
        Self { mean: 0.0, updated: None, long_queue: None, test: None, next_test: None }
    }

    /// Follows a report while the sender keeps to its own queue, with this window. Returns whether
    /// there are others.
    pub(super) fn appear(&mut self, now: Instant, path: &PathView, window: f64) -> bool {
        self.follow(now, path);
        if path.queue <= path.target {
            self.long_queue = None;
            return false;
        }
        let Some(long_queue) = &mut self.long_queue else {
            if path.queue > path.target.mul_f64(LONG) {
                self.long_queue = Some(LongQueue { began: now, before: None });
            }
            return false;
        };
        let Some((window_before, rate_before)) = long_queue.before else {
            // Before, the arrivals may be those of the time without the queue.
            if now >= long_queue.began + path.round_trip() * 2 {
                long_queue.before = Some((window, path.rate));
            }
            return false;
        };
        if window > window_before * LOWERED {
            return false;
        }
        self.long_queue = None;
        let others = path.rate < rate_before * TAKEN;
        if others {
            self.next_test = Some(now + path.time_between_tests());
        }
        others
    }

    /// Follows a report while the sender competes. Returns whether the others are gone.
    pub(super) fn disappear(&mut self, now: Instant, path: &PathView) -> bool {
        self.follow(now, path);
        let is_short = self.mean < SHORT * path.target.as_secs_f64();
        let gone = is_short || self.test_shows_none(now, path);
        if gone {
            *self = Self::new();
        }
        gone
    }

    /// Whether a test is under way, for which the window is lowered to [`TEST_WINDOW`].
    pub(super) const fn is_testing(&self) -> bool {
        self.test.is_some()
    }

    fn follow(&mut self, now: Instant, path: &PathView) {
        let elapsed = self.updated.map_or(Duration::ZERO, |at| now.saturating_since(at));
        self.updated = Some(now);
        let weight = (elapsed.as_secs_f64() / path.memory().as_secs_f64()).min(1.0);
        self.mean += weight * (path.queue.as_secs_f64() - self.mean);
    }

    fn test_shows_none(&mut self, now: Instant, path: &PathView) -> bool {
        let rtt = path.round_trip();
        let Some(test) = self.test else {
            if self.next_test.is_some_and(|at| now >= at) {
                self.test = Some(Test { ends: now + rtt * TEST_DURATION, rate: path.rate });
            }
            return false;
        };
        if now < test.ends {
            return false;
        }
        self.test = None;
        self.next_test = Some(now + path.time_between_tests());
        path.rate >= test.rate * UNCHANGED
    }
}

impl PathView {
    fn memory(&self) -> Duration {
        (self.base * ROUND_TRIPS).max(LEAST_TIME)
    }

    fn round_trip(&self) -> Duration {
        self.base + self.queue
    }

    fn time_between_tests(&self) -> Duration {
        (self.round_trip() * TEST_ROUND_TRIPS).max(LEAST_BETWEEN_TESTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const AT: fn(u64) -> Instant = Instant::from_millis;

    fn view(queue: u64, rate: f64) -> PathView {
        PathView { base: MS(50), queue: MS(queue), target: MS(10), rate }
    }

    /// Whether others appear within ten seconds, with this queue, window and arrival rate at each
    /// instant.
    fn appear(at: impl Fn(u64) -> (u64, f64, f64)) -> bool {
        let mut rivals = Rivals::new();
        (0..10_000).step_by(10).any(|ms| {
            let (queue, window, rate) = at(ms);
            rivals.appear(AT(ms), &view(queue, rate), window)
        })
    }

    /// A value that falls from `from` to a fourth of it over a second.
    fn falling(ms: u64, from: f64) -> f64 {
        from * (1.0 - 0.75 * (ms.min(1_000) as f64 / 1_000.0))
    }

    #[test]
    fn a_queue_that_takes_arrivals_away_is_that_of_others() {
        assert!(appear(|ms| (50, falling(ms, 100.0), falling(ms, 1_000.0))));
        assert!(!appear(|ms| (50, falling(ms, 100.0), 1_000.0)), "the own queue");
        assert!(!appear(|ms| (12, falling(ms, 100.0), falling(ms, 1_000.0))), "a short one");
        assert!(!appear(|_| (50, 100.0, 1_000.0)), "the window was not lowered");
    }

    #[test]
    fn a_link_that_becomes_slower_is_no_rival() {
        // The arrivals halve at once; the window and the queue follow.
        let queue = |ms: u64| 50 - ms.min(1_000) / 20;
        assert!(!appear(|ms| (queue(ms), falling(ms, 100.0).max(50.0), 500.0)));
    }

    #[test]
    fn others_are_gone_when_the_queue_stays_short() {
        let mut rivals = Rivals::new();
        (0..10_000).step_by(10).for_each(|ms| rivals.follow(AT(ms), &view(40, 1_000.0)));
        let gone = (10_000..20_000).step_by(10).find(|&ms| rivals.disappear(AT(ms), &view(3, 1.0)));
        assert!(gone.is_some_and(|ms| (11_000..13_000).contains(&ms)), "{gone:?}");
    }

    /// The outcome of a test in which this number of packets arrive per second, of 1000 before.
    fn tested(rate: f64) -> bool {
        let mut rivals = Rivals { mean: 0.05, next_test: Some(AT(5_000)), ..Rivals::new() };
        assert!(!rivals.disappear(AT(4_990), &view(50, 1_000.0)) && !rivals.is_testing());
        assert!(!rivals.disappear(AT(5_000), &view(50, 1_000.0)) && rivals.is_testing());
        assert!(!rivals.disappear(AT(5_290), &view(50, rate)) && rivals.is_testing());
        let gone = rivals.disappear(AT(5_300), &view(50, rate));
        assert!(!rivals.is_testing());
        gone
    }

    #[test]
    fn a_test_tells_the_own_queue_from_that_of_others() {
        assert!(tested(1_000.0), "the queue is the own one");
        assert!(!tested(890.0), "others took the room");
    }
}
