use std::time::Duration;

use punctual_units::Instant;

use super::rivals::PathView;
use super::window_trial::{Answer, WindowTrial};

/// Tells a path that has become longer from a queue, by how the round trip answers to the window.
///
/// The law of a sender alone lowers its window while the round trip is long. When it has lowered it
/// noticeably, a test shows whether a part of the queue is the sender's own.
#[derive(Debug)]
pub(super) struct PathTrial {
    /// The rate that the window carried before the round trip rose, packets per second: its
    /// largest value since the queue was last short for [`SHORT`] round trips.
    reference_rate: f64,
    /// The instant since which the queue is short: no longer than the sender itself causes.
    short_since: Option<Instant>,
    /// The instant since which the window's rate is low: below [`LOWERED`] of the reference.
    low_since: Option<Instant>,
    /// The highest arrival rate, packets per second.
    highest_rate: f64,
    test: Option<WindowTrial>,
    next_test: Option<Instant>,
}

/// The share of the window that is left during a test.
const LEFT: f64 = 0.75;
/// A rate below this share of the reference rate is tested.
const LOWERED: f64 = 0.75;
/// A window carries at most this multiple of the packets that arrive: while a path becomes shorter,
/// its queue is not seen, and the window grows beyond what the link carries.
const MOST_CARRIED: f64 = 1.1;
/// After this number of round trips with a short queue, the present rate is the reference.
const SHORT: u32 = 8;
/// A rate is tested when it has been low for this number of round trips: then the round trip shows
/// the whole change of the path.
const LOW: u32 = 2;
/// The time between two tests.
const BETWEEN_TESTS: Duration = Duration::from_secs(3);
/// A sender trusts a test only at this share of its highest arrival rate or more: the round trip
/// does not answer to a small share of a link either.
const LARGE_SHARE: f64 = 0.5;

impl PathTrial {
    pub(super) const fn new() -> Self {
        Self {
            reference_rate: 0.0,
            short_since: None,
            low_since: None,
            highest_rate: 0.0,
            test: None,
            next_test: None,
        }
    }

    /// Follows a report: the sender itself causes a queueing delay of `own`. Returns whether the
    /// path has become longer: then the present round trip is the least one.
    pub(super) fn follow(
        &mut self,
        now: Instant,
        path: &PathView,
        own: Duration,
        sender: Sender,
    ) -> bool {
        self.highest_rate = self.highest_rate.max(path.rate);
        if let Some(test) = &mut self.test {
            let Some(answer) = test.follow(now, path) else { return false };
            self.test = None;
            return self.conclude(now, path, answer);
        }
        let rtt = path.round_trip();
        let rate = sender.window / rtt.as_secs_f64().max(1e-3);
        let is_short = held(&mut self.short_since, now, path.queue <= own, rtt * SHORT);
        let carried = rate.min(MOST_CARRIED * path.rate);
        self.reference_rate = if is_short { carried } else { self.reference_rate.max(carried) };
        let is_low = sender.is_used && rate < LOWERED * self.reference_rate;
        let is_low = held(&mut self.low_since, now, is_low, rtt * LOW);
        let can_tell = path.rate >= LARGE_SHARE * self.highest_rate;
        if is_low && can_tell && self.next_test.is_none_or(|at| now >= at) {
            self.test = Some(WindowTrial::begin(now, path, LEFT));
        }
        false
    }

    fn conclude(&mut self, now: Instant, path: &PathView, answer: Answer) -> bool {
        self.next_test = (answer != Answer::Unchanged).then_some(now + BETWEEN_TESTS);
        match answer {
            Answer::Unchanged => return true,
            Answer::Shared => self.reference_rate = path.rate,
            Answer::Own => (self.reference_rate, self.highest_rate) = (path.rate, path.rate),
        }
        false
    }

    /// The share of the window that a test leaves, while one is under way.
    pub(super) fn left(&self) -> Option<f64> {
        self.test.as_ref().map(WindowTrial::left)
    }

    /// The rate that the window would carry before the round trip rose, packets per second.
    pub(super) const fn reference_rate(&self) -> f64 {
        self.reference_rate
    }
}

/// Whether a condition has held for this duration; `since` keeps the instant at which it began.
fn held(since: &mut Option<Instant>, now: Instant, holds: bool, duration: Duration) -> bool {
    if !holds {
        *since = None;
        return false;
    }
    now >= *since.get_or_insert(now) + duration
}

/// How a sender uses its window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sender {
    pub(super) window: f64,
    /// Whether the window limits it.
    pub(super) is_used: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    /// The window in packets that carries 1000 packets a second over a round trip of 100 ms.
    const WINDOW: f64 = 100.0;

    /// When a sender finds that the path has become longer, if ever within ten seconds. Its round
    /// trip, milliseconds, and its arrivals follow from the part of its window that it uses and the
    /// time; it lowers its window to `lowered` of the first one after a second.
    fn found(lowered: f64, path: impl Fn(f64, u64) -> (f64, f64)) -> Option<u64> {
        let mut tests = PathTrial::new();
        (0..10_000).step_by(10).find(|&ms| {
            let window = if ms < 1_000 { WINDOW } else { lowered * WINDOW };
            let (rtt, rate) = path(window * tests.left().unwrap_or(1.0), ms);
            let queue = Duration::from_secs_f64((rtt - 100.0) * 1e-3);
            let view = PathView { base: MS(100), queue, target: MS(12), rate };
            let sender = Sender { window, is_used: true };
            tests.follow(Instant::from_millis(ms), &view, MS(5), sender)
        })
    }

    /// A path without a queue that becomes 60 ms longer after a second.
    fn longer(window: f64, ms: u64) -> (f64, f64) {
        let rtt = if ms < 1_000 { 100.0 } else { 160.0 };
        (rtt, window / rtt * 1e3)
    }

    #[test]
    fn a_longer_path_is_found_once_the_window_was_lowered() {
        let at = found(0.9, longer).expect("a longer path");
        assert!((1_900..2_500).contains(&at), "{at} ms");
        assert_eq!(found(0.9, |window, _| longer(window, 0)), None, "it is as long as before");
    }

    #[test]
    fn a_slower_link_is_not_a_longer_path() {
        // The link carries half as many packets from the first second on.
        let slower = |window: f64, ms| {
            let rate = if ms < 1_000 { 1_000.0 } else { 500.0 };
            ((window / rate * 1e3).max(100.0), rate)
        };
        assert_eq!(found(0.8, slower), None);
    }

    #[test]
    fn a_window_that_was_too_large_is_no_reason_for_a_test() {
        let view = PathView { base: MS(100), queue: MS(6), target: MS(12), rate: 1_000.0 };
        let mut tests = PathTrial::new();
        let mut are_tested = |window, from| {
            (from..from + 3_000).step_by(10).any(|ms| {
                let sender = Sender { window, is_used: true };
                tests.follow(Instant::from_millis(ms), &view, MS(5), sender);
                tests.left().is_some()
            })
        };
        assert!(!are_tested(2.0 * WINDOW, 0) && !are_tested(0.9 * WINDOW, 3_000));
        assert!(are_tested(0.7 * WINDOW, 6_000));
    }

    #[test]
    fn a_sender_with_a_small_share_cannot_tell() {
        // Most of the arrivals are gone already.
        assert_eq!(found(0.4, longer), None);
    }
}
