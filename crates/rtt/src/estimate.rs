use std::time::Duration;

/// A smoothed round-trip time and its mean deviation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rtt {
    /// Smoothed round-trip time (draft section 4.10: RTT; RFC 6298: SRTT).
    pub smoothed: Duration,
    /// Mean deviation (draft section 4.10: RTTVar; RFC 6298: RTTVAR).
    pub variance: Duration,
}

impl Rtt {
    /// The estimate of an SRT connection before the first sample: 100 ms and 50 ms (draft section
    /// 4.10).
    pub const INITIAL: Self =
        Self { smoothed: Duration::from_millis(100), variance: Duration::from_millis(50) };

    /// The estimate after the first sample: the sample and half of it (draft section 4.10; RFC 6298
    /// section 2.2; RFC 9002 section 5.3).
    pub(crate) fn first(sample: Duration) -> Self {
        Self { smoothed: sample, variance: sample / 2 }
    }

    /// The estimate after another sample, whose deviation from the smoothed value before counts.
    /// The gains are 1/8 and 1/4 (draft section 4.10; RFC 6298 section 2.3; RFC 9002 section 5.3).
    pub(crate) fn updated(self, sample: Duration, deviation: Duration) -> Self {
        Self {
            smoothed: (self.smoothed * 7 + sample) / 8,
            variance: (self.variance * 3 + deviation) / 4,
        }
    }

    /// RTT + 4 RTTVar: nearly every answer comes within this time.
    pub fn bound(self) -> Duration {
        self.smoothed + self.variance * 4
    }
}
