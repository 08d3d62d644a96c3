use std::time::Duration;

use punctual_units::Instant;

use super::window_trial::{Answer, TrialView, WindowTrial};

/// Finds out whose the queue of the path is, by [lowering the window](WindowTrial) for a moment.
///
/// A sender alone asks when its rate has become noticeably lower: others may fill the queue until
/// packets are lost, the link may have become slower, or the path longer. While it competes with
/// others, it asks from time to time whether they are still there.
#[derive(Debug)]
pub(super) struct QueueOwner {
    /// The mean queueing delay, seconds.
    mean: f64,
    updated: Option<Instant>,
    /// The rate that the window carried before the round trip rose, packets per second: its
    /// largest value since the queue was last short for [`SHORT`] round trips.
    reference_rate: f64,
    /// The instant since which the queue is short: no longer than the sender itself causes.
    short_since: Option<Instant>,
    /// The instant since which the window's rate is low: below [`LOWERED`] of the reference.
    low_since: Option<Instant>,
    /// The highest arrival rate, packets per second.
    highest_rate: f64,
    trial: Option<WindowTrial>,
    next_trial: Option<Instant>,
}

/// The owner of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The sender itself: the link has become slower, or the others are gone.
    Sender,
    /// Others, who fill it whatever its delay.
    Others,
    /// Nobody: there is no queue. The path is longer, and the present round trip is the least one.
    Nobody,
}

/// How a sender uses its window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sender {
    pub(super) window: f64,
    /// Whether the window limits it.
    pub(super) is_used: bool,
    /// The queueing delay that the sender itself causes.
    pub(super) own: Duration,
}

/// The time constant of the mean, in round trips, and at least.
const ROUND_TRIPS: u32 = 8;
const LEAST_TIME: Duration = Duration::from_millis(600);
/// A mean queueing delay below this multiple of the target shows that nobody fills the queue.
const EMPTY: f64 = 0.5;
/// The share of the window that a trial leaves.
const LEFT: f64 = 0.75;
/// A rate below this share of the reference rate is low.
const LOWERED: f64 = 0.75;
/// A window carries at most this multiple of the packets that arrive: while a path becomes shorter,
/// its queue is not seen, and the window grows beyond what the link carries.
const MOST_CARRIED: f64 = 1.1;
/// After this number of round trips with a short queue, the present rate is the reference.
const SHORT: u32 = 8;
/// A rate is low when it has been so for this number of round trips: then the round trip shows the
/// whole change of the path.
const LOW: u32 = 2;
/// The time between two trials of a sender alone.
const BETWEEN_TRIALS: Duration = Duration::from_secs(3);
/// The time between two trials of a sender that competes, in round trips, and at least.
const COMPETING_ROUND_TRIPS: u32 = 40;
const COMPETING_LEAST: Duration = Duration::from_secs(5);
/// The shares of its highest arrival rate at which a sender alone, and one that competes, trusts a
/// round trip that does not answer: it does not answer to a small share of a link either.
const LARGE_SHARE: f64 = 0.5;
const SMALL_SHARE: f64 = 0.15;

impl QueueOwner {
    pub(super) const fn new() -> Self {
        Self {
            mean: 0.0,
            updated: None,
            reference_rate: 0.0,
            short_since: None,
            low_since: None,
            highest_rate: 0.0,
            trial: None,
            next_trial: None,
        }
    }

    /// Follows a report while the sender keeps to its own queue. Returns the owner of the queue at
    /// the end of a trial.
    pub(super) fn of_sender_alone(
        &mut self,
        now: Instant,
        path: &TrialView,
        sender: Sender,
    ) -> Option<Owner> {
        self.follow(now, path);
        if let Some(answer) = self.answer(now, path)? {
            return self.conclude(now, path, answer);
        }
        let rtt = path.round_trip();
        let rate = sender.window / rtt.as_secs_f64().max(1e-3);
        let is_short = held(&mut self.short_since, now, path.queue <= sender.own, rtt * SHORT);
        let carried = rate.min(MOST_CARRIED * path.rate);
        self.reference_rate = if is_short { carried } else { self.reference_rate.max(carried) };
        let is_low = sender.is_used && rate < LOWERED * self.reference_rate;
        let is_low = held(&mut self.low_since, now, is_low, rtt * LOW);
        if is_low && self.next_trial.is_none_or(|at| now >= at) {
            self.trial = Some(WindowTrial::begin(now, path, LEFT));
        }
        None
    }

    /// Follows a report while the sender competes. Returns the owner of the queue if it is no
    /// longer that of others.
    pub(super) fn of_competing_sender(&mut self, now: Instant, path: &TrialView) -> Option<Owner> {
        self.follow(now, path);
        let owner = if self.mean < EMPTY * path.target.as_secs_f64() {
            Owner::Sender
        } else if let Some(answer) = self.answer(now, path)? {
            self.next_trial = Some(now + time_between_trials(path));
            match answer {
                Answer::Own => Owner::Sender,
                Answer::Unchanged if path.rate >= SMALL_SHARE * self.highest_rate => Owner::Nobody,
                Answer::Shared | Answer::Unchanged => return None,
            }
        } else {
            if self.next_trial.is_some_and(|at| now >= at) {
                self.trial = Some(WindowTrial::begin(now, path, LEFT));
            }
            return None;
        };
        *self = Self { highest_rate: self.highest_rate, ..Self::new() };
        Some(owner)
    }

    /// The share of the window that a trial leaves, while one is under way.
    pub(super) fn left(&self) -> Option<f64> {
        self.trial.as_ref().map(WindowTrial::left)
    }

    /// The rate that the window would carry before the round trip rose, packets per second.
    pub(super) const fn reference_rate(&self) -> f64 {
        self.reference_rate
    }

    fn follow(&mut self, now: Instant, path: &TrialView) {
        let elapsed = self.updated.map_or(Duration::ZERO, |at| now.saturating_since(at));
        self.updated = Some(now);
        self.highest_rate = self.highest_rate.max(path.rate);
        let memory = (path.base * ROUND_TRIPS).max(LEAST_TIME);
        let weight = (elapsed.as_secs_f64() / memory.as_secs_f64()).min(1.0);
        self.mean += weight * (path.queue.as_secs_f64() - self.mean);
    }

    /// The answer of the path at the end of a trial, `Some(None)` if none is under way, and `None`
    /// while one goes on.
    #[expect(clippy::option_option, reason = "the caller ends where a trial goes on")]
    fn answer(&mut self, now: Instant, path: &TrialView) -> Option<Option<Answer>> {
        let Some(trial) = &mut self.trial else { return Some(None) };
        let answer = trial.follow(now, path)?;
        self.trial = None;
        Some(Some(answer))
    }

    fn conclude(&mut self, now: Instant, path: &TrialView, answer: Answer) -> Option<Owner> {
        self.next_trial = Some(now + BETWEEN_TRIALS);
        match answer {
            Answer::Own => {
                (self.reference_rate, self.highest_rate) = (path.rate, path.rate);
                Some(Owner::Sender)
            }
            Answer::Unchanged if path.rate >= LARGE_SHARE * self.highest_rate => {
                self.next_trial = None;
                Some(Owner::Nobody)
            }
            Answer::Shared | Answer::Unchanged => {
                self.reference_rate = path.rate;
                if self.mean <= path.target.as_secs_f64() {
                    return None;
                }
                // A trial that empties the queue was that of its owner, and left too few packets
                // for the path.
                if path.queue <= path.target {
                    return Some(Owner::Sender);
                }
                self.next_trial = Some(now + time_between_trials(path));
                Some(Owner::Others)
            }
        }
    }
}

/// The time between two trials of a sender that competes.
fn time_between_trials(path: &TrialView) -> Duration {
    (path.round_trip() * COMPETING_ROUND_TRIPS).max(COMPETING_LEAST)
}

/// Whether a condition has held for this duration; `since` keeps the instant at which it began.
fn held(since: &mut Option<Instant>, now: Instant, holds: bool, duration: Duration) -> bool {
    if !holds {
        *since = None;
        return false;
    }
    now >= *since.get_or_insert(now) + duration
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const AT: fn(u64) -> Instant = Instant::from_millis;
    /// The window in packets that carries 1000 packets a second over a round trip of 100 ms.
    const WINDOW: f64 = 100.0;

    /// The first owner that a sender alone finds within ten seconds, and when. Its round trip,
    /// milliseconds, and its arrivals follow from the part of its window that it uses and the time;
    /// it lowers its window to `lowered` of the first one after a second.
    fn found(lowered: f64, path: impl Fn(f64, u64) -> (f64, f64)) -> Option<(Owner, u64)> {
        let mut owner = QueueOwner::new();
        (0..10_000).step_by(10).find_map(|ms| {
            let window = if ms < 1_000 { WINDOW } else { lowered * WINDOW };
            let (rtt, rate) = path(window * owner.left().unwrap_or(1.0), ms);
            let queue = Duration::from_secs_f64((rtt - 100.0) * 1e-3);
            let view = TrialView { base: MS(100), queue, target: MS(12), rate };
            let sender = Sender { window, is_used: true, own: MS(5) };
            Some((owner.of_sender_alone(AT(ms), &view, sender)?, ms))
        })
    }

    /// A path without a queue that becomes 60 ms longer after a second.
    fn longer(window: f64, ms: u64) -> (f64, f64) {
        let rtt = if ms < 1_000 { 100.0 } else { 160.0 };
        (rtt, window / rtt * 1e3)
    }

    #[test]
    fn a_longer_path_is_found_once_the_window_was_lowered() {
        let (owner, at) = found(0.9, longer).expect("a longer path");
        assert_eq!(owner, Owner::Nobody);
        assert!((1_900..2_500).contains(&at), "{at} ms");
        assert_eq!(found(0.9, |window, _| longer(window, 0)), None, "it is as long as before");
    }

    #[test]
    fn the_queue_of_a_link_that_became_slower_is_the_senders() {
        // The link carries half as many packets from the first second on.
        let slower = |window: f64, ms| {
            let rate = if ms < 1_000 { 1_000.0 } else { 500.0 };
            ((window / rate * 1e3).max(100.0), rate)
        };
        assert_eq!(found(0.8, slower).map(|it| it.0), Some(Owner::Sender));
    }

    #[test]
    fn a_trial_that_empties_a_long_queue_was_that_of_its_owner() {
        let owner = |queue| {
            let mut owner = QueueOwner { mean: 0.03, ..QueueOwner::new() };
            owner.conclude(AT(0), &view(queue, 900.0), Answer::Shared)
        };
        assert_eq!([0, 30].map(owner), [Some(Owner::Sender), Some(Owner::Others)]);
    }

    #[test]
    fn a_queue_that_others_fill_takes_arrivals_away() {
        // Others have twice as many packets in the network from the first second on.
        let shared = |window: f64, ms| {
            let others = if ms < 1_000 { 0.0 } else { 2.0 * WINDOW };
            let rtt = (window + others).max(WINDOW);
            (rtt, window / rtt * 1e3)
        };
        assert_eq!(found(0.9, shared).map(|it| it.0), Some(Owner::Others));
    }

    #[test]
    fn others_of_the_same_kind_take_a_share_and_fill_no_queue() {
        let shared = |window: f64, ms| {
            let (rtt, share) = if ms < 1_000 { (100.0, 1.0) } else { (110.0, 0.5) };
            (rtt, share * window / rtt * 1e3)
        };
        assert_eq!(found(0.5, shared), None);
    }

    #[test]
    fn a_window_that_was_too_large_is_no_reason_for_a_trial() {
        let view = TrialView { base: MS(100), queue: MS(6), target: MS(12), rate: 1_000.0 };
        let mut owner = QueueOwner::new();
        let mut is_tried = |window, from| {
            (from..from + 3_000).step_by(10).any(|ms| {
                let sender = Sender { window, is_used: true, own: MS(5) };
                owner.of_sender_alone(AT(ms), &view, sender);
                owner.left().is_some()
            })
        };
        assert!(!is_tried(2.0 * WINDOW, 0) && !is_tried(0.9 * WINDOW, 3_000));
        assert!(is_tried(0.7 * WINDOW, 6_000));
    }

    #[test]
    fn a_sender_with_a_small_share_cannot_tell_a_longer_path() {
        // Most of the arrivals are gone already.
        let found = found(0.4, longer).map(|it| it.0);
        assert_ne!(found, Some(Owner::Nobody));
    }

    fn view(queue: u64, rate: f64) -> TrialView {
        TrialView { base: MS(50), queue: MS(queue), target: MS(10), rate }
    }

    #[test]
    fn others_are_gone_when_the_queue_stays_short() {
        let mut owner = QueueOwner { mean: 0.04, ..QueueOwner::new() };
        let gone = (10_000..20_000)
            .step_by(10)
            .find(|&ms| owner.of_competing_sender(AT(ms), &view(3, 1.0)) == Some(Owner::Sender));
        assert!(gone.is_some_and(|ms| (11_000..13_000).contains(&ms)), "{gone:?}");
    }

    /// The owner by a trial after five seconds of competing, by the queue in milliseconds and the
    /// arrival rate that are left while the window is lowered; `None` if others are still there.
    fn tried(highest_rate: f64, queue: u64, rate: f64) -> Option<Owner> {
        let next_trial = Some(AT(5_000));
        let mut owner = QueueOwner { mean: 0.05, next_trial, highest_rate, ..QueueOwner::new() };
        for ms in (4_990..6_000).step_by(10) {
            let lowered = owner.left().is_some_and(|left| left < 1.0);
            let path = if lowered { view(queue, rate) } else { view(50, 1_000.0) };
            let found = owner.of_competing_sender(AT(ms), &path);
            if found.is_some() || ms > 5_000 && owner.left().is_none() {
                return found;
            }
        }
        panic!("a trial ends")
    }

    #[test]
    fn a_trial_tells_the_own_queue_from_that_of_others_and_from_a_longer_path() {
        assert_eq!(tried(0.0, 30, 1_000.0), Some(Owner::Sender));
        assert_eq!(tried(0.0, 42, 890.0), None, "others took the room");
        assert_eq!(tried(0.0, 50, 800.0), Some(Owner::Nobody), "no answer");
    }

    #[test]
    fn a_trial_with_a_small_share_of_the_link_tells_nothing() {
        assert_eq!(tried(6_000.0, 50, 800.0), Some(Owner::Nobody));
        assert_eq!(tried(8_000.0, 50, 800.0), None);
    }
}
