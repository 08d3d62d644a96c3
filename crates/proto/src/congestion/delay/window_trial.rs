use std::time::Duration;

use punctual_units::Instant;

/// Lowers the window for a moment and raises it again, to see how the path answers.
///
/// If the queue is all the sender's own, the round trip falls as the window does, and as many
/// packets arrive as before. If others share the link, the round trip falls by the sender's share
/// of that, and fewer packets arrive. If the link has no queue, the round trip does not answer at
/// all. The round trips before and after are compared with those in between, so that a path whose
/// round trip rises or falls steadily counts as one that does not answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowTrial {
    /// The share of the window that is left.
    left: f64,
    began: Instant,
    rtt: Duration,
    now: Instant,
    before: Mean,
    lowered: Mean,
    after: Mean,
    rate_before: f64,
    rate_lowered: f64,
}

/// The state of the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrialView {
    pub(super) base: Duration,
    pub(super) queue: Duration,
    /// The target of the queueing delay.
    pub(super) target: Duration,
    /// Packets that arrive per second.
    pub(super) rate: f64,
}

impl TrialView {
    /// The present round trip.
    pub(super) fn round_trip(&self) -> Duration {
        self.base + self.queue
    }
}

/// The owner of the queue, by the answer of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// As many packets arrive as before: the queue is the sender's own.
    Own,
    /// The queue is shared with others.
    Shared,
    /// The round trip does not answer: the path has no queue, or the sender's share of it is small.
    Unchanged,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: Duration,
    samples: u32,
}

/// The shortest time over which round trips are averaged.
const LEAST_TIME: Duration = Duration::from_millis(150);
/// If the round trip falls by this share of the window's fall, the round trips after the test are
/// not needed.
const CLEAR: f64 = 0.5;
/// A smaller answer counts as none.
const LEAST: f64 = 0.12;
/// The share of the arrivals that is left in a test if the queue is the own one.
const UNCHANGED: f64 = 0.96;

impl WindowTrial {
    /// Begins a test that leaves the share `left` of the window.
    pub(super) fn begin(now: Instant, path: &TrialView, left: f64) -> Self {
        let rtt = path.round_trip();
        let mean = Mean::default();
        let (rate_before, rate_lowered) = (path.rate, path.rate);
        let (before, lowered, after) = (mean, mean, mean);
        Self { left, began: now, rtt, now, before, lowered, after, rate_before, rate_lowered }
    }

    /// Follows a report. Returns the answer at the end of the test.
    pub(super) fn follow(&mut self, now: Instant, path: &TrialView) -> Option<Answer> {
        self.now = now;
        let rtt = path.round_trip();
        let [lower, lowered, raise, raised, end] = self.times();
        if now < lower {
            self.before.add(rtt);
            self.rate_before = path.rate;
        } else if (lowered..raise).contains(&now) {
            self.lowered.add(rtt);
            self.rate_lowered = path.rate;
        } else if now >= raised {
            self.after.add(rtt);
        }
        if now >= end {
            return Some(self.answer(f64::midpoint(self.before.seconds(), self.after.seconds())));
        }
        let is_clear = || self.after.samples == 0 && self.fall(self.before.seconds()) >= CLEAR;
        (now >= raise && is_clear()).then(|| self.answer(self.before.seconds()))
    }

    /// The share of the window that is left now.
    pub(super) fn left(&self) -> f64 {
        let [lower, _, raise, ..] = self.times();
        if (lower..raise).contains(&self.now) { self.left } else { 1.0 }
    }

    /// When the window is lowered, when the round trips show it, when it is raised again, when the
    /// round trips show that, and the end.
    fn times(&self) -> [Instant; 5] {
        let average = (self.rtt / 2).max(LEAST_TIME);
        let wait = self.rtt * 5 / 4;
        let lower = self.began + average;
        let raise = lower + wait + average;
        [lower, lower + wait, raise, raise + wait, raise + wait + average]
    }

    /// The answer, if the round trip without the test were `without`, seconds.
    fn answer(&self, without: f64) -> Answer {
        if self.rate_lowered >= UNCHANGED * self.rate_before {
            Answer::Own
        } else if self.fall(without).abs() < LEAST {
            Answer::Unchanged
        } else {
            Answer::Shared
        }
    }

    /// By how much the round trip falls: 1 for as much as the window, if it were `without` without
    /// the test, seconds.
    fn fall(&self, without: f64) -> f64 {
        (1.0 - self.lowered.seconds() / without) / (1.0 - self.left)
    }
}

impl Mean {
    fn add(&mut self, rtt: Duration) {
        self.sum += rtt;
        self.samples += 1;
    }

    /// The mean in seconds; a microsecond without samples.
    fn seconds(&self) -> f64 {
        (self.sum.as_secs_f64() / f64::from(self.samples.max(1))).max(1e-6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer of a path of 100 ms with this queueing delay and these arrivals, by the window's
    /// share and the time since the beginning in milliseconds; and when it came.
    fn answer(path: impl Fn(f64, u64) -> (f64, f64)) -> (Answer, u64) {
        let view = |left: f64, ms: u64| {
            let (queue, rate) = path(left, ms);
            let base = Duration::from_millis(100);
            TrialView { base, queue: Duration::from_secs_f64(queue * 1e-3), target: base / 8, rate }
        };
        let mut test = WindowTrial::begin(Instant::ORIGIN, &view(1.0, 0), 0.75);
        for ms in (0..2_000).step_by(10) {
            let report = view(test.left(), ms);
            if let Some(answer) = test.follow(Instant::from_millis(ms), &report) {
                return (answer, ms);
            }
        }
        panic!("a test ends")
    }

    #[test]
    fn the_own_queue_falls_with_the_window_and_the_arrivals_stay() {
        let (answer, at) = answer(|left, _| (200.0 * left - 100.0, 1_000.0));
        assert_eq!(answer, Answer::Own);
        assert!(at < 900, "without the comparison with the round trips after it: {at} ms");
    }

    #[test]
    fn a_shared_queue_falls_by_the_share() {
        // A third of the packets in the network are the sender's.
        let rtt = |left: f64| 180.0 * (2.0 + left) / 3.0;
        let (answer, _) = answer(|left, _| (rtt(left) - 100.0, 180e3 * left / rtt(left)));
        assert_eq!(answer, Answer::Shared);
    }

    #[test]
    fn a_longer_path_does_not_answer_even_while_it_changes() {
        for slope in [-0.02, 0.0, 0.02] {
            let (answer, _) = answer(|left, ms| (60.0 + slope * ms as f64, 1_000.0 * left));
            assert_eq!(answer, Answer::Unchanged, "{slope} ms per millisecond");
        }
    }

    #[test]
    fn others_that_fill_the_queue_meanwhile_are_no_longer_path() {
        let (answer, _) = answer(|left, ms| (20.0 * libm::exp2(ms as f64 / 300.0), 1_000.0 * left));
        assert_eq!(answer, Answer::Shared);
    }

    #[test]
    fn the_window_is_lowered_only_in_the_middle() {
        let view = TrialView {
            base: Duration::from_millis(200),
            queue: Duration::ZERO,
            target: Duration::from_millis(25),
            rate: 1_000.0,
        };
        let mut test = WindowTrial::begin(Instant::ORIGIN, &view, 0.75);
        let mut left = |ms| {
            test.follow(Instant::from_millis(ms), &view);
            test.left()
        };
        assert_eq!([0, 140, 160, 540, 560].map(&mut left), [1.0, 1.0, 0.75, 0.75, 1.0]);
    }
}
