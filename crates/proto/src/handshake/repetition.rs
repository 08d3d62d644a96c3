//! When a handshake is said again to a peer that does not answer.

use std::time::Duration;

use punctual_units::Instant;

/// The longest time between two repetitions, and what others always wait.
pub(crate) const REPEAT: Duration = Duration::from_millis(250);

/// The first repetition where nothing is known of the round trip. Most are shorter; with one of
/// 300 ms a listener answers three times, and keeps nothing of it.
const FIRST: Duration = Duration::from_millis(50);

/// The first repetition where the round trip is known, at least: the answer also takes the time of
/// two applications that wake up.
const LEAST: Duration = Duration::from_millis(20);

/// The pauses between the repetitions of one handshake: each twice as long as the one before it,
/// up to [`REPEAT`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Repetition {
    pause: Duration,
}

impl Repetition {
    /// For who may not be there yet.
    pub(crate) const STEADY: Self = Self { pause: REPEAT };

    /// For who should be there, at an unknown distance.
    pub(crate) const EARLY: Self = Self { pause: FIRST };

    /// For who answers after `rtt`. One and a half of it leaves room for a round trip that varies:
    /// some listeners take a repeated conclusion for another caller.
    pub(crate) fn after(rtt: Duration) -> Self {
        Self { pause: (rtt * 3 / 2).clamp(LEAST, REPEAT) }
    }

    /// The time to the next repetition, and on to the one behind it.
    pub(crate) fn next(&mut self) -> Duration {
        let pause = self.pause;
        self.pause = (2 * pause).min(REPEAT);
        pause
    }
}

/// When the requests of one kind went out, so that an answer to any of them tells the round trip.
///
/// A listener gives an induction back with few changes, so that each request may carry a mark of
/// its own by which its answer is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests {
    sent: Vec<Instant>,
    count: usize,
}

impl Requests {
    /// Different marks.
    pub(crate) const MARKS: usize = 8;

    /// A request goes out now; its mark, below [`MARKS`](Self::MARKS).
    pub(crate) fn send(&mut self, now: Instant) -> u32 {
        let mark = self.count % Self::MARKS;
        match self.sent.get_mut(mark) {
            Some(place) => *place = now,
            None => self.sent.push(now),
        }
        self.count += 1;
        u32::try_from(mark).unwrap_or_default()
    }

    /// The round trip by an answer that came now with `mark`. Without a mark that was given, it is
    /// the time since the first request that is still known: rather too long than too short.
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

    fn pauses(mut repetition: Repetition) -> [Duration; 6] {
        std::array::from_fn(|_| repetition.next())
    }

    #[test]
    fn pauses_double_up_to_a_quarter_of_a_second() {
        assert_eq!(pauses(Repetition::EARLY), [50, 100, 200, 250, 250, 250].map(ms));
        assert_eq!(pauses(Repetition::after(ms(40))), [60, 120, 240, 250, 250, 250].map(ms));
        assert_eq!(pauses(Repetition::STEADY), [ms(250); 6]);
    }

    #[test]
    fn the_first_pause_is_a_round_trip_and_a_half_within_bounds() {
        for (rtt, pause) in [(0, 20), (13, 20), (14, 21), (100, 150), (166, 249), (900, 250)] {
            assert_eq!(Repetition::after(ms(rtt)).next(), ms(pause), "{rtt} ms");
        }
        assert_eq!(Repetition::after(Duration::MAX / 4).next(), REPEAT);
    }

    #[test]
    fn an_answer_tells_the_round_trip_of_the_request_with_its_mark() {
        let mut requests = Requests::default();
        let at = |count: u64| Instant::from_millis(1_000 + count);
        assert_eq!(requests.round_trip(at(0), Some(0)), None, "nothing was sent");
        let marks: Vec<_> = (0..3).map(|index| requests.send(at(100 * index))).collect();
        assert_eq!(marks, [0, 1, 2]);
        assert_eq!(requests.round_trip(at(250), Some(1)), Some(ms(150)));
        assert_eq!(requests.round_trip(at(250), Some(7)), Some(ms(250)), "never given");
        assert_eq!(requests.round_trip(at(250), None), Some(ms(250)));
    }

    #[test]
    fn a_call_that_goes_on_for_hours_keeps_few_times() {
        let mut requests = Requests::default();
        for second in 0..10_000 {
            assert!(requests.send(Instant::from_millis(1_000 * second)) < 8);
        }
        assert_eq!(requests.sent.len(), Requests::MARKS);
        let now = Instant::from_millis(10_000_000);
        assert_eq!(requests.round_trip(now, None), Some(Duration::from_secs(8)));
    }
}
