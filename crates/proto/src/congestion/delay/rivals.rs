use std::time::Duration;

use punctual_units::Instant;

use super::window_trial::{Answer, WindowTrial};

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
    test: Option<WindowTrial>,
    next_test: Option<Instant>,
    /// The highest arrival rate since the link was last found to have become slower, packets per
    /// second.
    highest_rate: f64,
}

/// A time in which the queue is longer than its target.
#[derive(Clone, Copy, Debug)]
struct LongQueue {
    began: Instant,
    /// The window and the arrival rate when the arrivals showed the queue.
    before: Option<(f64, f64)>,
}

/// The presence of others, to a sender that competes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Others {
    Present,
    Gone,
    /// There are none: the path has become longer, and the present round trip is the least one.
    Never,
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
const LONG: f64 = 1.5;
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
/// A test in which the round trip does not answer tells nothing below this share of the highest
/// arrival rate: it hardly answers to a small share of a link either.
const SMALL_SHARE: f64 = 0.15;
/// The share of the window that is left during a test.
const TEST_WINDOW: f64 = 0.8;

impl Rivals {
    pub(super) const fn new() -> Self {
        Self {
            mean: 0.0,
            updated: None,
            long_queue: None,
            test: None,
            next_test: None,
            highest_rate: 0.0,
        }
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
        } else {
            self.highest_rate = path.rate;
        }
        others
    }

    /// Follows a report while the sender competes.
    pub(super) fn others(&mut self, now: Instant, path: &PathView) -> Others {
        self.follow(now, path);
        let others = if self.is_short(path) { Others::Gone } else { self.test(now, path) };
        if others != Others::Present {
            *self = Self { highest_rate: self.highest_rate, ..Self::new() };
        }
        others
    }

    /// The share of the window that a test leaves, while one is under way.
    pub(super) fn left(&self) -> Option<f64> {
        self.test.as_ref().map(WindowTrial::left)
    }

    /// Whether the queue is too short to be filled by others.
    fn is_short(&self, path: &PathView) -> bool {
        self.mean < SHORT * path.target.as_secs_f64()
    }

    fn follow(&mut self, now: Instant, path: &PathView) {
        let elapsed = self.updated.map_or(Duration::ZERO, |at| now.saturating_since(at));
        self.updated = Some(now);
        self.highest_rate = self.highest_rate.max(path.rate);
        let weight = (elapsed.as_secs_f64() / path.memory().as_secs_f64()).min(1.0);
        self.mean += weight * (path.queue.as_secs_f64() - self.mean);
    }

    fn test(&mut self, now: Instant, path: &PathView) -> Others {
        let Some(test) = &mut self.test else {
            if self.next_test.is_some_and(|at| now >= at) {
                self.test = Some(WindowTrial::begin(now, path, TEST_WINDOW));
            }
            return Others::Present;
        };
        let Some(answer) = test.follow(now, path) else { return Others::Present };
        self.test = None;
        self.next_test = Some(now + path.time_between_tests());
        match answer {
            Answer::Own => Others::Gone,
            Answer::Shared => Others::Present,
            Answer::Unchanged if path.rate < SMALL_SHARE * self.highest_rate => Others::Present,
            Answer::Unchanged => Others::Never,
        }
    }
}

impl PathView {
    fn memory(&self) -> Duration {
        (self.base * ROUND_TRIPS).max(LEAST_TIME)
    }

    pub(super) fn round_trip(&self) -> Duration {
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
        let gone = (10_000..20_000)
            .step_by(10)
            .find(|&ms| rivals.others(AT(ms), &view(3, 1.0)) == Others::Gone);
        assert!(gone.is_some_and(|ms| (11_000..13_000).contains(&ms)), "{gone:?}");
    }

    /// The result of a test five seconds later, by the queue in milliseconds and the arrival rate
    /// that are left while the window is lowered to 0.8.
    fn tested(queue: u64, rate: f64) -> Others {
        tested_with(Rivals::new(), queue, rate)
    }

    fn tested_with(rivals: Rivals, queue: u64, rate: f64) -> Others {
        let mut rivals = Rivals { mean: 0.05, next_test: Some(AT(5_000)), ..rivals };
        for ms in (4_990..6_000).step_by(10) {
            let lowered = rivals.left().is_some_and(|left| left < 1.0);
            let path = if lowered { view(queue, rate) } else { view(50, 1_000.0) };
            match rivals.others(AT(ms), &path) {
                Others::Present if ms > 5_000 && rivals.left().is_none() => return Others::Present,
                Others::Present => {}
                none => return none,
            }
        }
        panic!("a test ends")
    }

    #[test]
    fn a_test_tells_the_own_queue_from_that_of_others_and_from_a_longer_path() {
        assert_eq!(tested(30, 1_000.0), Others::Gone, "the queue is the own one");
        assert_eq!(tested(42, 890.0), Others::Present, "others took the room");
        assert_eq!(tested(50, 800.0), Others::Never, "the round trip did not answer");
    }

    #[test]
    fn a_test_with_a_small_share_of_the_link_tells_nothing() {
        let rivals = |highest_rate| Rivals { highest_rate, ..Rivals::new() };
        assert_eq!(tested_with(rivals(6_000.0), 50, 800.0), Others::Never);
        assert_eq!(tested_with(rivals(8_000.0), 50, 800.0), Others::Present);
    }
}
