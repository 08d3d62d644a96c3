use std::time::Duration;

use punctual_units::Instant;

/// A host's clock: its offset and its rate against the world's.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Clock {
    /// Nanoseconds.
    offset: u64,
    ppm: i64,
}

impl Clock {
    /// A clock that is ahead by `offset` at the world's start and runs fast by `ppm` millionths, or
    /// slow where that is negative; less than a million.
    pub(crate) fn new(offset: Duration, ppm: i32) -> Self {
        let offset = EPOCH.saturating_add(offset).as_nanos();
        Self { offset: u64::try_from(offset).unwrap_or(u64::MAX), ppm: ppm.into() }
    }

    /// The time of this clock at an instant of the world.
    pub(crate) fn local(&self, world: Instant) -> Instant {
        let local = Instant::from_nanos(world.as_nanos().saturating_add(self.offset));
        if self.ppm == 0 {
            return local;
        }
        let gained = self.gained(world);
        let size = Duration::from_nanos(gained.unsigned_abs());
        if gained < 0 { local - size } else { local + size }
    }

    /// The first instant of the world at which this clock shows `local` or later.
    pub(crate) fn world(&self, local: Instant) -> Instant {
        let elapsed = Instant::from_nanos(local.as_nanos().saturating_sub(self.offset));
        if self.ppm == 0 {
            return elapsed;
        }
        let guess = i128::from(elapsed.as_nanos()) * MILLION / (MILLION + i128::from(self.ppm));
        // Rounding leads astray by a nanosecond or two, to either side.
        let guess = u64::try_from(guess).unwrap_or(u64::MAX).saturating_sub(2);
        let mut world = Instant::from_nanos(guess);
        while self.local(world) < local {
            world += Duration::from_nanos(1);
        }
        world
    }

    fn gained(&self, world: Instant) -> i64 {
        let gained = i128::from(world.as_nanos()) * i128::from(self.ppm) / MILLION;
        i64::try_from(gained).unwrap_or(i64::MAX)
    }
}

const MILLION: i128 = 1_000_000;

/// The time of a clock without an offset at the world's start. It is not the origin, so that times
/// before the start exist.
const EPOCH: Duration = Duration::from_secs(10_000);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_clock_that_runs_fast_gains_what_it_says() {
        let clock = Clock::new(Duration::from_secs(3), 200);
        let start = clock.local(Instant::ORIGIN);
        assert_eq!(start - Instant::ORIGIN, EPOCH + Duration::from_secs(3));
        let later = clock.local(Instant::from_millis(10_000));
        assert_eq!(later - start, Duration::from_millis(10_002));
        let slow = Clock::new(Duration::ZERO, -200).local(Instant::from_millis(10_000));
        assert_eq!(slow - (Instant::ORIGIN + EPOCH), Duration::from_millis(9_998));
    }

    proptest! {
        #[test]
        fn back_on_the_worlds_clock_is_the_first_such_instant(
            nanos in 0_u64..1 << 50,
            ppm in -100_000_i32..=100_000,
        ) {
            let clock = Clock::new(Duration::from_millis(7), ppm);
            let local = Instant::from_nanos(10_000_007_000_000 + nanos);
            let world = clock.world(local);
            prop_assert!(clock.local(world) >= local);
            if world > Instant::ORIGIN {
                prop_assert!(clock.local(world - Duration::from_nanos(1)) < local);
            }
        }
    }
}
