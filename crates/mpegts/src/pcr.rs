use std::time::Duration;

/// A program clock reference: the time of a stream's own clock, of 27 MHz, at one of its bytes
/// (ISO/IEC 13818-1 section 2.4.2.2).
///
/// It has a base of 33 bits at 90 kHz and an extension from 0 to 299, and wraps after 26.5 hours.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Pcr(u64);

impl Pcr {
    /// Ticks of the clock in a second.
    pub const HZ: u64 = 27_000_000;

    /// Ticks after which the clock stands at zero again.
    pub const MODULUS: u64 = 300 << 33;

    /// The reference that lies `ticks` after zero.
    pub const fn from_ticks(ticks: u64) -> Self {
        Self(ticks % Self::MODULUS)
    }

    /// Ticks since zero, below [`Self::MODULUS`].
    pub const fn ticks(self) -> u64 {
        self.0
    }

    /// Ticks from `earlier` to this reference, or `None` if by the shorter way round the circle
    /// this one comes before.
    pub const fn ticks_since(self, earlier: Self) -> Option<u64> {
        let ticks = (self.0 + Self::MODULUS - earlier.0) % Self::MODULUS;
        if ticks < Self::MODULUS / 2 { Some(ticks) } else { None }
    }
}

/// The time that `ticks` of the clock take, to the nanosecond below.
pub(crate) fn duration_of(ticks: u64) -> Duration {
    Duration::from_secs(ticks / Pcr::HZ)
        + Duration::from_nanos(ticks % Pcr::HZ * 1_000_000_000 / Pcr::HZ)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_after_26_and_a_half_hours() {
        let last = Pcr::from_ticks(Pcr::MODULUS - 1);
        let first = Pcr::from_ticks(Pcr::MODULUS);
        assert_eq!(first.ticks(), 0);
        assert_eq!(first.ticks_since(last), Some(1));
        assert_eq!(last.ticks_since(first), None);
        assert_eq!(first.ticks_since(first), Some(0));
        assert_eq!(duration_of(Pcr::MODULUS).as_secs(), 26 * 3600 + 30 * 60 + 43);
    }

    #[test]
    fn ticks_are_37_nanoseconds() {
        assert_eq!(duration_of(1), Duration::from_nanos(37));
        assert_eq!(duration_of(27_000_027), Duration::from_micros(1_000_001));
    }
}
