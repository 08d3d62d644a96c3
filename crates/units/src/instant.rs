use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::Duration;

/// A point in time: nanoseconds since an origin that the owner of the clock chose.
///
/// Unlike `std::time::Instant` it can be made from a number, so the same code runs on a real clock
/// and in virtual time. Two instants can be compared only if they come from the same clock.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Instant(u64);

impl Instant {
    /// The clock's origin.
    pub const ORIGIN: Self = Self(0);

    /// The instant `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The instant `micros` microseconds after the origin.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros * 1_000)
    }

    /// The instant `millis` milliseconds after the origin.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole microseconds since the origin.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// The time since `earlier`, or zero if `earlier` is later.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The time since `earlier`, or `None` if `earlier` is later.
    pub const fn checked_since(self, earlier: Self) -> Option<Duration> {
        match self.0.checked_sub(earlier.0) {
            Some(nanos) => Some(Duration::from_nanos(nanos)),
            None => None,
        }
    }

    /// The time between this instant and `other`, whichever is later.
    pub const fn abs_diff(self, other: Self) -> Duration {
        Duration::from_nanos(self.0.abs_diff(other.0))
    }

    /// The first multiple of `period`, counted from the origin, that lies after this instant: the
    /// same for everybody who shares the clock. The next nanosecond if the period is zero.
    pub fn next_multiple_of(self, period: Duration) -> Self {
        let period = nanos(period).max(1);
        Self((self.0 / period).saturating_add(1).saturating_mul(period))
    }

    /// The last multiple of `period`, counted from the origin, that does not lie after this
    /// instant: the same for everybody who shares the clock. This instant if the period is zero.
    pub fn last_multiple_of(self, period: Duration) -> Self {
        let period = nanos(period).max(1);
        Self(self.0 / period * period)
    }

    /// This instant less `duration`, or the origin if that lies before it.
    pub fn saturating_sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(duration)))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    /// Saturates at the end of the clock, 584 years after the origin.
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanos(duration)))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    /// Saturates at the origin.
    fn sub(self, duration: Duration) -> Self {
        self.saturating_sub(duration)
    }
}

impl SubAssign<Duration> for Instant {
    fn sub_assign(&mut self, duration: Duration) {
        *self = *self - duration;
    }
}

impl Sub for Instant {
    type Output = Duration;

    /// Saturates at zero.
    fn sub(self, earlier: Self) -> Duration {
        self.saturating_since(earlier)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}s", self.0 / 1_000_000_000, self.0 / 1_000 % 1_000_000)
    }
}

fn nanos(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1_000_000_000).saturating_add(duration.subsec_nanos().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        let t = Instant::from_micros(5);
        assert_eq!(t - Duration::from_secs(1), Instant::ORIGIN);
        assert_eq!(
            Instant::from_nanos(u64::MAX) + Duration::from_secs(1),
            Instant::from_nanos(u64::MAX)
        );
        assert_eq!(Instant::ORIGIN - t, Duration::ZERO);
        assert_eq!(Instant::ORIGIN.checked_since(t), None);
    }

    #[test]
    fn multiples_of_a_period_are_the_same_for_everybody() {
        let period = Duration::from_millis(5);
        let tick = Instant::from_millis(15);
        assert_eq!(Instant::from_millis(10).next_multiple_of(period), tick);
        assert_eq!(Instant::from_nanos(14_999_999).next_multiple_of(period), tick);
        assert_eq!(tick.next_multiple_of(Duration::ZERO), Instant::from_nanos(15_000_001));
        assert_eq!(tick.last_multiple_of(period), tick);
        assert_eq!(Instant::from_nanos(19_999_999).last_multiple_of(period), tick);
        assert_eq!(tick.last_multiple_of(Duration::ZERO), tick);
    }

    #[test]
    fn prints_seconds_with_microseconds() {
        assert_eq!(Instant::from_micros(1_000_042).to_string(), "1.000042s");
    }
}
