use std::time::Duration;

use punctual_units::Instant;

/// Notices that the path has become longer, as after a change of its route: the least round trip of
/// the past is too short then, and the difference looks like a queue that never ends.
///
/// A queue of others moves, and senders of this kind empty theirs every ten seconds. So a round
/// trip that has been long for more than ten seconds and has hardly moved has no queue.
#[derive(Debug, Default)]
pub(super) struct LongerPath {
    steady: Option<Steady>,
    /// The round trip without a queue of a path that has become longer.
    base: Option<Duration>,
}

/// A time in which the round trip has hardly moved.
#[derive(Clone, Copy, Debug)]
struct Steady {
    since: Instant,
    least: Duration,
    most: Duration,
}

/// The duration of a steady round trip: longer than the time between two drains of the queue.
const DURATION: Duration = Duration::from_secs(12);
/// A round trip hardly moves if it moves by less than this share of the apparent queueing delay.
const SPREAD: u32 = 8;

impl LongerPath {
    /// The round trip without a queue is `base` from now on, until a shorter one is seen.
    pub(super) fn set_base(&mut self, base: Duration) {
        self.base = Some(base);
        self.steady = None;
    }

    /// Follows a round trip. `base` is the least one of the past; a queueing delay within `long` is
    /// not noticed. Returns the round trip without a queue.
    pub(super) fn follow(
        &mut self,
        now: Instant,
        rtt: Duration,
        base: Duration,
        long: Duration,
    ) -> Duration {
        self.base = self.base.map(|longer| longer.min(rtt));
        let base = self.base.map_or(base, |longer| longer.max(base));
        if rtt.saturating_sub(base) <= long {
            self.steady = None;
            return base;
        }
        let begin = Steady { since: now, least: rtt, most: rtt };
        let steady = self.steady.get_or_insert(begin);
        steady.least = steady.least.min(rtt);
        steady.most = steady.most.max(rtt);
        if steady.most - steady.least > steady.least.saturating_sub(base) / SPREAD {
            self.steady = Some(begin);
        } else if now >= steady.since + DURATION {
            self.base = Some(steady.least);
            self.steady = None;
        }
        self.base.map_or(base, |longer| longer.max(base))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// The round trip without a queue after this time, by the round trip at each instant.
    fn base_after(seconds: u64, rtt: impl Fn(u64) -> u64) -> Duration {
        let mut path = LongerPath::default();
        let times = (0..seconds * 1_000).step_by(10);
        let bases =
            times.map(|ms| path.follow(Instant::from_millis(ms), MS(rtt(ms)), MS(40), MS(8)));
        bases.last().expect("a sample")
    }

    #[test]
    fn a_long_and_steady_round_trip_is_that_of_a_longer_path() {
        assert_eq!(base_after(11, |_| 120), MS(40), "not before the queue was drained");
        assert_eq!(base_after(13, |ms| 120 + ms / 1_000 % 2), MS(120));
    }

    #[test]
    fn a_queue_that_moves_or_is_short_stays_a_queue() {
        assert_eq!(base_after(60, |ms| 60 + ms / 100 % 40), MS(40), "a queue of others");
        assert_eq!(base_after(60, |ms| if ms % 10_000 < 100 { 40 } else { 60 }), MS(40), "drained");
        assert_eq!(base_after(60, |_| 48), MS(40), "a short one");
    }

    #[test]
    fn a_path_that_becomes_shorter_again_is_noticed_at_once() {
        assert_eq!(base_after(30, |ms| if ms < 20_000 { 120 } else { 70 }), MS(70));
    }
}
