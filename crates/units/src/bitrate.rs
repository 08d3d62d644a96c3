use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::display::write_quantity;
use crate::{ParseUnitError, parse_bitrate};

/// A rate in bits per second.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Bitrate(u64);

impl Bitrate {
    /// No bits at all.
    pub const ZERO: Self = Self(0);

    /// `bits` bits per second.
    pub const fn from_bits_per_sec(bits: u64) -> Self {
        Self(bits)
    }

    /// `bytes` bytes per second.
    pub const fn from_bytes_per_sec(bytes: u64) -> Self {
        Self(bytes.saturating_mul(8))
    }

    /// `megabits` million bits per second.
    pub const fn from_mbps(megabits: u64) -> Self {
        Self(megabits.saturating_mul(1_000_000))
    }

    /// Bits per second.
    pub const fn as_bits_per_sec(self) -> u64 {
        self.0
    }

    /// Bytes per second, rounded down.
    pub const fn as_bytes_per_sec(self) -> u64 {
        self.0 / 8
    }

    /// Million bits per second.
    #[expect(clippy::cast_precision_loss, reason = "for people: 53 bits are plenty")]
    pub fn as_mbps(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The time that `bytes` bytes take at this rate, rounded up to a nanosecond; `Duration::MAX`
    /// at rate zero.
    pub fn time_for(self, bytes: u64) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        let nanos = (u128::from(bytes) * 8_000_000_000).div_ceil(u128::from(self.0));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The rate at which `bytes` bytes take `time`; zero for no time.
    pub fn of(bytes: u64, time: Duration) -> Self {
        let Some(bits) = (u128::from(bytes) * 8_000_000_000).checked_div(time.as_nanos()) else {
            return Self::ZERO;
        };
        Self(u64::try_from(bits).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Bitrate {
    /// Prints `5 Mb/s` or `1.25 Gb/s`: in b/s, kb/s, Mb/s or Gb/s.
    ///
    /// See the crate's documentation for what precision and `#` do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_quantity(f, self.0.into(), &["b/s", "kb/s", "Mb/s", "Gb/s"])
    }
}

impl FromStr for Bitrate {
    type Err = ParseUnitError;

    /// Reads what [`parse_bitrate`] reads.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_bitrate(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_and_rate_are_inverse() {
        let rate = Bitrate::from_mbps(5);
        let time = rate.time_for(1_316);
        assert_eq!(time, Duration::from_nanos(2_105_600));
        assert_eq!(Bitrate::of(1_316, time), rate);
        assert_eq!(Bitrate::ZERO.time_for(1), Duration::MAX);
        assert_eq!(Bitrate::of(1, Duration::ZERO), Bitrate::ZERO);
    }
}
