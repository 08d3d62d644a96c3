//! When a handshake is repeated to a peer that does not answer.

use std::time::Duration;

use punctual_units::Instant;

/// The longest interval between repetitions. Other implementations always use it.
pub(crate) const REPEAT: Duration = Duration::from_millis(250);

/// The first interval if the round-trip time is unknown. Most round trips are shorter; with one of
/// 300 ms a listener answers three times, and keeps no state for it.
const FIRST: Duration = Duration::from_millis(50);

/// The shortest first interval if the round-trip time is known: the answer includes the time in
/// which two applications wake up.
const LEAST: Duration = Duration::from_millis(20);

/// The intervals between the repetitions of a handshake: each twice as long as the one before it,
/// up to [`REPEAT`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Repetition {
    interval: Duration,
}

impl Repetition {
    /// For a peer that may not have started yet.
    pub(crate) const STEADY: Self = Self { interval: REPEAT };

    /// For a peer that should answer, after an unknown round-trip time.
    pub(crate) const EARLY: Self = Self { interval: FIRST };

    /// For a peer that answers after `rtt`. The first interval is one and a half times as long,
    /// since the round-trip time varies, and some listeners take a repeated conclusion for another
    /// caller.
    pub(crate) fn after(rtt: Duration) -> Self {
        Self { interval: (rtt * 3 / 2).clamp(LEAST, REPEAT) }
    }

    /// The interval to the next repetition. The one after it is longer.
    pub(crate) fn next(&mut self) -> Duration {
        let interval = self.interval;
        self.interval = (2 * interval).min(REPEAT);
        interval
    }
}

/// The times at which requests of one kind were sent, so that an answer to any of them gives the
/// round-trip time.
///
/// A listener returns an induction request with few changes, so that each request can carry a mark
/// that identifies its answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests {
    sent: Vec<Instant>,
    count: usize,
}

impl Requests {
    /// The number of different marks.
    pub(crate) const MARKS: usize = 8;

    /// Notes that a request is sent now. Returns its mark, which is below [`MARKS`](Self::MARKS).
    pub(crate) fn send(&mut self, now: Instant) -> u32 {
        let mark = self.count % Self::MARKS;
        match self.sent.get_mut(mark) {
            Some(place) => *place = now,
            None => self.sent.push(now),
        }
        self.count += 1;
        u32::try_from(mark).unwrap_or_default()
    }

    /// The round-trip time by an answer that came now with `mark`. If the mark is missing or
    /// unknown, it is the time since the earliest request that is still known: it is rather too
    /// long than too short.
    pub(crate) fn round_trip(&self, now: Instant, mark: Option<u32>) -> Option<Duration> {
        let marked = mark.and_then(|mark| self.sent.get(usize::try_from(mark).ok()?));
        let sent = marked.or_else(|| self.sent.iter().min())?;
        Some(now.saturating_since(*sent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    fn intervals(mut repetition: Repetition) -> [Duration; 6] {
        std::array::from_fn(|_| repetition.next())
    }

    #[test]
    fn intervals_double_up_to_250_ms() {
        assert_eq!(intervals(Repetition::EARLY), [50, 100, 200, 250, 250, 250].map(ms));
        assert_eq!(intervals(Repetition::after(ms(40))), [60, 120, 240, 250, 250, 250].map(ms));
        assert_eq!(intervals(Repetition::STEADY), [ms(250); 6]);
    }

    #[test]
    fn the_first_interval_is_one_and_a_half_round_trips_within_bounds() {
        for (rtt, interval) in [(0, 20), (13, 20), (14, 21), (100, 150), (166, 249), (900, 250)] {
            assert_eq!(Repetition::after(ms(rtt)).next(), ms(interval), "{rtt} ms");
        }
        assert_eq!(Repetition::after(Duration::MAX / 4).next(), REPEAT);
    }

    #[test]
    fn an_answer_gives_the_round_trip_of_the_request_with_its_mark() {
        let mut requests = Requests::default();
        let at = |count: u64| Instant::from_millis(1_000 + count);
        assert_eq!(requests.round_trip(at(0), Some(0)), None, "nothing was sent");
        let marks: Vec<_> = (0..3).map(|index| requests.send(at(100 * index))).collect();
        assert_eq!(marks, [0, 1, 2]);
        assert_eq!(requests.round_trip(at(250), Some(1)), Some(ms(150)));
        assert_eq!(requests.round_trip(at(250), Some(7)), Some(ms(250)), "never used");
        assert_eq!(requests.round_trip(at(250), None), Some(ms(250)));
    }

    #[test]
    fn a_call_that_lasts_for_hours_keeps_few_times() {
        let mut requests = Requests::default();
        for second in 0..10_000 {
            assert!(requests.send(Instant::from_millis(1_000 * second)) < 8);
        }
        assert_eq!(requests.sent.len(), Requests::MARKS);
        let now = Instant::from_millis(10_000_000);
        assert_eq!(requests.round_trip(now, None), Some(Duration::from_secs(8)));
    }
}
