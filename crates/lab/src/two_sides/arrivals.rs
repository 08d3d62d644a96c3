use std::time::Duration;

use punctual_units::Bitrate;

/// The bytes that an application has read, over time, exact to a millisecond.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    /// The last reading of each short period, and all bytes by then.
    points: Vec<(Duration, u64)>,
    /// When the last period began.
    period: Duration,
}

impl Arrivals {
    /// `bytes` more were read at this time, which is not before that of the last call.
    pub fn add(&mut self, at: Duration, bytes: u64) {
        let all = self.bytes() + bytes;
        match self.points.last_mut().filter(|_| at - self.period < PERIOD) {
            Some(last) => *last = (at, all),
            None => {
                self.period = at;
                self.points.push((at, all));
            }
        }
    }

    /// All bytes.
    pub fn bytes(&self) -> u64 {
        self.points.last().map_or(0, |&(_, bytes)| bytes)
    }

    /// The bytes until this time.
    pub fn bytes_at(&self, time: Duration) -> u64 {
        let after = self.points.partition_point(|(at, _)| *at <= time);
        after.checked_sub(1).map_or(0, |last| self.points[last].1)
    }

    /// When that number of bytes had been read; `None` if they were not.
    pub fn time_of(&self, bytes: u64) -> Option<Duration> {
        let before = self.points.partition_point(|(_, read)| *read < bytes);
        self.points.get(before).map(|(at, _)| *at)
    }

    /// The rate of the bytes from the start to this time.
    pub fn rate(&self, time: Duration) -> Bitrate {
        Bitrate::of(self.bytes_at(time), time)
    }
}

const PERIOD: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Duration = Duration::from_micros;

    #[test]
    fn bytes_times_and_rates_agree() {
        let mut arrivals = Arrivals::default();
        assert_eq!((arrivals.bytes(), arrivals.time_of(1)), (0, None));
        for (at, bytes) in [(10_000, 1_000), (10_400, 500), (10_999, 500), (11_000, 1_000)] {
            arrivals.add(US(at), bytes);
        }
        // The first three are one period.
        assert_eq!(arrivals.points.len(), 2);
        assert_eq!([9_000, 10_999, 11_000].map(|at| arrivals.bytes_at(US(at))), [0, 2_000, 3_000]);
        assert_eq!(arrivals.time_of(1_000), Some(US(10_999)));
        assert_eq!((arrivals.time_of(3_000), arrivals.time_of(3_001)), (Some(US(11_000)), None));
        assert_eq!(arrivals.rate(US(12_000)), Bitrate::of(3_000, US(12_000)));
    }
}
