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

    /// RTT + 4 RTTVar: nearly every answer comes within this time.
    pub fn bound(self) -> Duration {
        self.smoothed + self.variance * 4
    }
}
