use std::time::Duration;

use punctual_units::{Bitrate, Instant};

/// The bytes of a flow that have arrived in order, over time: the receiving application can read
/// them.
///
/// Times count from the start of the world. They are exact to a millisecond, or to one part in
/// 10,000 where that is more, so that a day of it fits into memory.
#[derive(Clone, Debug)]
pub struct FlowProgress {
    payload: u64,
    total: Option<u64>,
    /// The last instant of a short period in which bytes arrived, and all bytes by then.
    points: Vec<(Instant, u64)>,
    /// When the last period began.
    period: Instant,
}

impl FlowProgress {
    pub(super) fn new(payload: u64, total: Option<u64>) -> Self {
        Self { payload, total, points: Vec::new(), period: Instant::ORIGIN }
    }

    /// All segments before this one have arrived.
    pub(super) fn advance(&mut self, now: Instant, next: u32) {
        let bytes = u64::from(next) * self.payload;
        let bytes = self.total.map_or(bytes, |total| bytes.min(total));
        let length = ((now - Instant::ORIGIN) / PRECISION).max(SHORTEST_PERIOD);
        match self.points.last_mut().filter(|_| now - self.period < length) {
            Some(last) => *last = (now, bytes),
            None => {
                self.period = now;
                self.points.push((now, bytes));
            }
        }
    }

    /// The bytes so far.
    pub fn bytes(&self) -> u64 {
        self.points.last().map_or(0, |&(_, bytes)| bytes)
    }

    /// The bytes that had arrived at `time`.
    pub fn bytes_at(&self, time: Duration) -> u64 {
        let after = self.points.partition_point(|(at, _)| *at <= Instant::ORIGIN + time);
        after.checked_sub(1).map_or(0, |last| self.points[last].1)
    }

    /// When that number of bytes had arrived; `None` if they have not.
    ///
    /// The start-up delay of a stream is the time of the bytes of its first second, less the time
    /// of the flow's start.
    pub fn time_of(&self, bytes: u64) -> Option<Duration> {
        let before = self.points.partition_point(|(_, arrived)| *arrived < bytes);
        self.points.get(before).map(|(at, _)| *at - Instant::ORIGIN)
    }

    /// When the last byte of a transfer arrived; `None` if it has not, or if the source is endless.
    pub fn finished(&self) -> Option<Duration> {
        self.time_of(self.total?)
    }

    /// The rate of the bytes that arrived between two times.
    pub fn rate(&self, from: Duration, to: Duration) -> Bitrate {
        let bytes = self.bytes_at(to).saturating_sub(self.bytes_at(from));
        Bitrate::of(bytes, to.saturating_sub(from))
    }
}

const SHORTEST_PERIOD: Duration = Duration::from_millis(1);
/// Periods are at most this part of the time since the start.
const PRECISION: u32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn bytes_times_and_rates_agree() {
        let mut progress = FlowProgress::new(1_000, Some(4_500));
        for (micros, next) in [(10_000, 1), (20_100, 2), (20_900, 3), (50_000, 5)] {
            progress.advance(Instant::from_micros(micros), next);
        }
        assert_eq!(
            [9, 10, 20, 21, 90].map(|ms| progress.bytes_at(MS(ms))),
            [0, 1_000, 1_000, 3_000, 4_500]
        );
        assert_eq!(progress.time_of(2_000), Some(Duration::from_micros(20_900)));
        assert_eq!((progress.finished(), progress.time_of(4_501)), (Some(MS(50)), None));
        assert_eq!(progress.rate(MS(10), MS(60)), Bitrate::of(3_500, MS(50)));
    }

    #[test]
    fn a_day_takes_a_hundred_thousand_points() {
        let mut progress = FlowProgress::new(1_000, None);
        for (tenth, next) in (0..864_000).zip(1..) {
            progress.advance(Instant::from_millis(100 * tenth), next);
        }
        assert!((50_000..100_000).contains(&progress.points.len()), "{}", progress.points.len());
        let (at, exact) = (progress.time_of(400_000_000).expect("a time"), MS(39_999_900));
        assert!(at.abs_diff(exact) <= exact / 10_000, "{at:?}");
    }
}
