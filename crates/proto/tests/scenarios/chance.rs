//! Chance from a seed, for the scenarios and for the random worlds of the simulator.

use std::time::Duration;

/// A linear congruential generator: good enough to draw scenarios, and the same everywhere.
pub struct Chance(pub u64);

impl Chance {
    pub fn next(&mut self) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    /// Less than `end`.
    pub fn below(&mut self, end: u32) -> u32 {
        ((u64::from(self.next()) * u64::from(end)) >> 32) as u32
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u32) -> bool {
        self.below(n) == 0
    }

    /// One of these.
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u32) as usize].clone()
    }

    /// Up to `ms` milliseconds, to the microsecond.
    pub fn millis(&mut self, ms: u32) -> Duration {
        Duration::from_micros(self.below(ms * 1_000 + 1).into())
    }

    /// Up to `max`.
    pub fn share(&mut self, max: f64) -> f64 {
        f64::from(self.next()) / f64::from(u32::MAX) * max
    }
}
