use std::time::Duration;

use punctual_units::Instant;

use super::rivals::PathView;

/// Notices BBR by its pauses: each ten seconds it stops for 200 ms or a round trip to measure the
/// least round trip (draft-cardwell-iccrg-bbr-congestion-control-00 section 4.3.5: ProbeRTT), and
/// the queue stays empty for longer than after a drain of this sender or of others of its kind.
///
/// Between two pauses BBR tries a higher rate again and again, so that the queue swings; that of
/// senders of this kind hardly moves.
///
/// To a sender that competes, one pause may be enough: a long queue runs empty and is there again
/// soon neither when others give way to losses nor when a flow ends.
#[derive(Debug)]
pub(super) struct Pauses {
    /// The longest round trip since an instant, and in the time before.
    longest: Option<(Instant, Duration)>,
    longest_before: Duration,
    empty: Empty,
    /// When the queue was last empty.
    empty_at: Option<Instant>,
    /// When the last pause was noticed.
    last: Option<Instant>,
    swing: Swing,
    /// Whether the queue was long before it ran empty, for its size without packets.
    ran_empty_from_far: bool,
    /// If the queue is long again before this instant, the last pause was one of BBR.
    returns_by: Option<Instant>,
}

/// The state of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Empty {
    No,
    /// It ran empty at this instant.
    Since(Instant),
    /// It has been empty for so long that this pause was noticed.
    Noticed,
}

/// The queueing delays since the last pause.
#[derive(Clone, Copy, Debug)]
struct Swing {
    sum: Duration,
    reports: u32,
    /// The number of times that the queue became long.
    peaks: u32,
    is_long: bool,
    /// Whether the sender competed with others in this time.
    others_are_known: bool,
}

/// The queue counts as empty up to this queueing delay.
pub(super) const NONE: Duration = Duration::from_micros(500);
/// The time beyond a round trip for which the queue is empty in a pause, but not after a drain.
const LASTS: Duration = Duration::from_millis(130);
/// The time within which the queue runs empty, beyond a round trip.
const FALL: Duration = Duration::from_millis(50);
/// The time between two pauses: ten seconds, and the pause itself. One of them may be overlooked.
const LEAST_BETWEEN: Duration = Duration::from_millis(10_100);
const MOST_BETWEEN: Duration = Duration::from_millis(11_000);
/// The queue swings if it exceeds `SWING` of its mean and `LONG` of its target in `PEAKS` peaks. A
/// new sender of this kind causes one such peak.
const SWING: f64 = 1.75;
const LONG: f64 = 1.5;
const PEAKS: u32 = 3;
/// A queue that ran empty from this multiple of the least round trip was not emptied by CUBIC,
/// which keeps 0.7 of its packets, nor by NewReno, which keeps half of them and would leave the
/// queue empty for longer.
const FAR: f64 = 1.65;
/// The time, and the least round trips, within which BBR fills the queue again after a pause.
const RETURNS: Duration = Duration::from_millis(500);
const RETURNS_ROUND_TRIPS: u32 = 4;
/// If the queue was not empty for this time, BBR is gone.
const GONE: Duration = Duration::from_secs(25);
/// The time and the round trips after a pause in which a short queue tells nothing.
const SETTLES: Duration = Duration::from_secs(2);
const SETTLES_ROUND_TRIPS: u32 = 20;

impl Pauses {
    pub(super) const fn new() -> Self {
        Self {
            longest: None,
            longest_before: Duration::ZERO,
            empty: Empty::No,
            empty_at: None,
            last: None,
            swing: Swing::NEW,
            ran_empty_from_far: false,
            returns_by: None,
        }
    }

    /// Follows a report. Returns whether a pause shows that there is BBR: the second one, or the
    /// first if `others_are_known` to fill the queue; then it need not swing.
    pub(super) fn follow(&mut self, now: Instant, path: &PathView, others_are_known: bool) -> bool {
        self.swing.add(path.queue, path.target);
        self.swing.others_are_known |= others_are_known;
        let longest = self.longest(now, path);
        if path.queue > NONE {
            self.empty = Empty::No;
            let is_long = path.queue > path.target.mul_f64(LONG);
            return is_long && self.returns_by.take().is_some_and(|by| now < by);
        }
        self.empty_at = Some(now);
        if self.empty == Empty::No && longest >= path.round_trip() + path.target / 2 {
            self.empty = Empty::Since(now);
            self.ran_empty_from_far = longest >= path.base.mul_f64(FAR);
        }
        let Empty::Since(since) = self.empty else { return false };
        if now < since + path.base + LASTS {
            return false;
        }
        self.empty = Empty::Noticed;
        let may_be_one = self.ran_empty_from_far && others_are_known;
        self.returns_by = may_be_one.then(|| now + RETURNS + path.base * RETURNS_ROUND_TRIPS);
        let swing = std::mem::replace(&mut self.swing, Swing::NEW);
        let last = self.last.replace(now);
        let is_regular = last.is_some_and(|last| is_regular(now.saturating_since(last), path.base));
        is_regular && (swing.others_are_known || swing.peaks >= PEAKS)
    }

    /// Whether BBR is still there, a while after its last pause.
    pub(super) fn go_on(&self, now: Instant) -> bool {
        self.empty_at.is_some_and(|at| now < at + GONE)
    }

    /// Whether the queue has had time to come back after the last pause.
    pub(super) fn are_settled(&self, now: Instant, base: Duration) -> bool {
        self.empty_at.is_none_or(|at| now > at + SETTLES + base * SETTLES_ROUND_TRIPS)
    }

    /// The longest round trip of the time in which the queue may run empty.
    fn longest(&mut self, now: Instant, path: &PathView) -> Duration {
        let rtt = path.round_trip();
        let (since, longest) = *self.longest.get_or_insert((now, rtt));
        if now < since + path.base + FALL {
            self.longest = Some((since, longest.max(rtt)));
        } else {
            self.longest_before = longest;
            self.longest = Some((now, rtt));
        }
        longest.max(rtt).max(self.longest_before)
    }
}

/// Whether this is the time between two pauses of BBR, or twice it.
fn is_regular(time: Duration, base: Duration) -> bool {
    let most = MOST_BETWEEN + base * 4;
    [1, 2].into_iter().any(|n| (LEAST_BETWEEN * n..most * n).contains(&time))
}

impl Swing {
    const NEW: Self =
        Self { sum: Duration::ZERO, reports: 0, peaks: 0, is_long: false, others_are_known: false };

    fn add(&mut self, queue: Duration, target: Duration) {
        self.sum += queue;
        self.reports += 1;
        let mean = self.sum / self.reports;
        if queue <= mean {
            self.is_long = false;
        } else if !self.is_long && queue > target.mul_f64(LONG) && queue > mean.mul_f64(SWING) {
            self.is_long = true;
            self.peaks += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// The time in milliseconds at which BBR is noticed, if ever within a minute, with this queue.
    fn noticed(others_are_known: bool, queue: impl Fn(u64) -> u64) -> Option<u64> {
        let mut pauses = Pauses::new();
        (0..60_000).step_by(10).find(|&ms| {
            let view = PathView { base: MS(100), queue: MS(queue(ms)), target: MS(12), rate: 1.0 };
            pauses.follow(Instant::from_millis(ms), &view, others_are_known)
        })
    }

    /// A queue that is empty for this time each `period`, and swings between 10 and `most`.
    fn queue(ms: u64, period: u64, empty: u64, most: u64) -> u64 {
        match ms % period {
            since if since >= period - empty => 0,
            since if since % 2_000 < 100 => most,
            _ => 10,
        }
    }

    #[test]
    fn the_second_pause_of_bbr_is_noticed() {
        let at = noticed(false, |ms| queue(ms, 10_300, 300, 30)).expect("BBR");
        assert!((20_500..20_600).contains(&at), "{at} ms");
    }

    #[test]
    fn drains_and_other_gaps_are_no_pauses_of_bbr() {
        assert_eq!(noticed(false, |ms| queue(ms, 10_100, 100, 30)), None, "as short as a drain");
        assert_eq!(noticed(false, |ms| queue(ms, 10_300, 300, 12)), None, "a queue at rest");
        assert_eq!(noticed(false, |ms| queue(ms, 3_000, 300, 30)), None, "too often");
        assert_eq!(noticed(false, |ms| queue(ms, 15_000, 300, 30)), None, "too seldom");
        assert_eq!(noticed(false, |_| 0), None, "no queue at all");
    }

    #[test]
    fn beside_known_others_the_queue_need_not_swing() {
        assert!(noticed(true, |ms| queue(ms, 10_300, 300, 12)).is_some());
    }

    #[test]
    fn beside_known_others_the_first_pause_from_a_long_queue_is_noticed() {
        let pause = |ms: u64, before: u64, lasts: u64, after: u64| match ms {
            ..5_000 => before,
            _ if ms < 5_000 + lasts => 0,
            _ => after,
        };
        let at = noticed(true, |ms| pause(ms, 80, 300, 80)).expect("BBR");
        assert!((5_300..5_400).contains(&at), "{at} ms");
        assert_eq!(noticed(false, |ms| pause(ms, 80, 300, 80)), None, "nobody competes");
        assert_eq!(noticed(true, |ms| pause(ms, 60, 300, 60)), None, "others gave way to a loss");
        assert_eq!(noticed(true, |ms| pause(ms, 80, 200, 80)), None, "too short");
        assert_eq!(noticed(true, |ms| pause(ms, 80, 1_500, 80)), None, "another flow begins");
        assert_eq!(noticed(true, |ms| pause(ms, 80, 300, 15)), None, "the own queue");
    }

    #[test]
    fn bbr_is_gone_when_the_queue_is_never_empty() {
        let mut pauses = Pauses::new();
        let mut at = |ms, queue| {
            let view = PathView { base: MS(100), queue: MS(queue), target: MS(12), rate: 1.0 };
            pauses.follow(Instant::from_millis(ms), &view, true);
            let now = Instant::from_millis(ms);
            (pauses.go_on(now), pauses.are_settled(now, MS(100)))
        };
        assert_eq!(at(0, 0), (true, false));
        assert_eq!(at(4_010, 10), (true, true));
        assert_eq!(at(24_000, 10), (true, true));
        assert_eq!(at(25_010, 10), (false, true));
    }
}
