//! Leaving slow start before the queue overflows.

use std::time::Duration;

use punctual_rates::RoundCounter;
use punctual_units::Instant;

use super::AckSummary;

/// HyStart++ (RFC 9406), and the train of acknowledgements of the older HyStart (Ha and Rhee,
/// Taming the elephants, 2011), which Linux has beside its own watch on delays.
///
/// When round trips grow, the window grows more slowly for some round trips (conservative slow
/// start), and if they stay long, slow start ends. It ends at once when answers come closely one
/// after the other for half the least round trip: then the packets in flight fill the path.
/// Without it, a flow whose queue is as short as the path finds out too late, because the first
/// packets of each round trip find no queue.
#[derive(Debug, Default)]
pub(super) struct HyStart {
    rounds: RoundCounter,
    /// The least round trip of the round before, and of this one.
    last: Option<Duration>,
    current: Option<Duration>,
    /// Samples of this round.
    samples: u32,
    conservative: Option<Conservative>,
    train: Train,
}

/// Conservative slow start.
#[derive(Debug)]
struct Conservative {
    /// The least round trip of the round in which it began.
    baseline: Duration,
    /// Rounds that have ended; the one in which it began counts as a whole one.
    rounds: u32,
}

/// Answers that come closely one after the other.
#[derive(Debug, Default)]
struct Train {
    least_rtt: Option<Duration>,
    /// The first answer of the round, and the last one without a gap before it.
    began: Option<[Instant; 2]>,
}

impl HyStart {
    /// The packets by which a window of `window` packets grows with this answer; `None` if slow
    /// start is over.
    pub(super) fn growth(&mut self, ack: &AckSummary, window: f64) -> Option<f64> {
        if ack.begins_round(&mut self.rounds) {
            self.last = self.current.take();
            self.samples = 0;
            self.train.began = Some([ack.now; 2]);
            if let Some(conservative) = &mut self.conservative {
                conservative.rounds += 1;
                if conservative.rounds >= CONSERVATIVE_ROUNDS {
                    return None;
                }
            }
        }
        if self.train.is_long(ack) && window >= LEAST_WINDOW {
            return None;
        }
        self.sample(ack.rtt);
        #[expect(clippy::cast_precision_loss, reason = "at most eight")]
        let growth = ack.growing.min(MOST_PER_ANSWER) as f64;
        Some(if self.conservative.is_some() { growth / CONSERVATIVE_DIVISOR } else { growth })
    }

    fn sample(&mut self, rtt: Option<Duration>) {
        let Some(rtt) = rtt else { return };
        let current = self.current.map_or(rtt, |current| current.min(rtt));
        self.current = Some(current);
        self.samples += 1;
        if self.samples < SAMPLES {
            return;
        }
        match &self.conservative {
            Some(Conservative { baseline, .. }) if current < *baseline => self.conservative = None,
            Some(_) => {}
            None => {
                let Some(last) = self.last else { return };
                let tolerance = (last / 8).clamp(LEAST_TOLERANCE, MOST_TOLERANCE);
                if current >= last + tolerance {
                    self.conservative = Some(Conservative { baseline: current, rounds: 0 });
                }
            }
        }
    }
}

impl Train {
    /// Whether answers of this round have come without a gap for half the least round trip.
    fn is_long(&mut self, ack: &AckSummary) -> bool {
        self.least_rtt = self.least_rtt.into_iter().chain(ack.rtt).min();
        let (Some([began, last]), Some(rtt)) = (&mut self.began, self.least_rtt) else {
            return false;
        };
        if ack.now - *last > LARGEST_GAP {
            return false;
        }
        *last = ack.now;
        ack.now - *began > rtt / 2
    }
}

/// Samples of a round before its least round trip counts (`N_RTT_SAMPLE`).
const SAMPLES: u32 = 8;
/// `MIN_RTT_THRESH` and `MAX_RTT_THRESH`.
const LEAST_TOLERANCE: Duration = Duration::from_millis(4);
const MOST_TOLERANCE: Duration = Duration::from_millis(16);
/// `CSS_GROWTH_DIVISOR` and `CSS_ROUNDS`.
const CONSERVATIVE_DIVISOR: f64 = 4.0;
const CONSERVATIVE_ROUNDS: u32 = 5;
/// The limit `L` of a sender without pacing.
const MOST_PER_ANSWER: u64 = 8;

/// Of a train, as in Linux.
const LARGEST_GAP: Duration = Duration::from_millis(2);
/// The least window that a train may end slow start with, packets.
const LEAST_WINDOW: f64 = 16.0;

#[cfg(test)]
mod tests {
    use super::super::testing::ack;
    use super::*;
    use crate::traffic::tcp::delivery_rate::RateSample;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// A round of ten answers with this round trip; the growth of the last one.
    fn round(hystart: &mut HyStart, delivered: &mut u64, rtt: u64) -> Option<f64> {
        let prior_delivered = *delivered;
        (0..10).try_fold(0.0, |_, _| {
            *delivered += 1;
            let rate = Some(RateSample { prior_delivered, ..RateSample::default() });
            hystart.growth(
                &AckSummary { rate, delivered: *delivered, ..ack(MS(0), 2, MS(rtt)) },
                100.0,
            )
        })
    }

    #[test]
    fn slow_start_slows_down_when_round_trips_grow_and_then_ends() {
        let (mut hystart, mut delivered) = (HyStart::default(), 0);
        let mut grow = |rtt| round(&mut hystart, &mut delivered, rtt);
        // An eighth of 80 ms is 10 ms.
        assert_eq!([80, 80, 89].map(&mut grow), [Some(2.0); 3]);
        // An eighth of 89 ms is 11.1 ms.
        assert_eq!([101, 101, 101, 101, 101].map(&mut grow), [Some(0.5); 5]);
        assert_eq!(grow(101), None);
    }

    #[test]
    fn slow_start_goes_on_when_the_round_trip_was_long_by_chance() {
        let (mut hystart, mut delivered) = (HyStart::default(), 0);
        let mut grow = |rtt| round(&mut hystart, &mut delivered, rtt);
        assert_eq!([80, 100, 85].map(&mut grow), [Some(2.0), Some(0.5), Some(2.0)]);
    }

    #[test]
    fn slow_start_ends_when_answers_come_for_half_a_round_trip_without_a_gap() {
        let mut hystart = HyStart::default();
        let mut grow = |ms, window| {
            let rate = Some(RateSample::default());
            hystart.growth(&AckSummary { rate, delivered: 1, ..ack(MS(ms), 2, MS(80)) }, window)
        };
        // 40 ms in steps of 2 ms, and one more.
        assert!((0..=20).all(|step| grow(2 * step, 100.0).is_some()));
        assert_eq!(grow(42, 15.0), Some(2.0), "a small window");
        assert_eq!(grow(42, 100.0), None);
        assert_eq!(grow(45, 100.0), Some(2.0), "a gap");
    }
}
