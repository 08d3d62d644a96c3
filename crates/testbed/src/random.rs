//! Random numbers from a seed: for scenarios, explorers, random worlds and fuzzers.

use std::time::Duration;

/// A linear congruential generator, which gives the same numbers on every machine. It holds its
/// state, which begins as the seed.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next number of 32 bits.
    pub fn next_u32(&mut self) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    /// A number less than `end`, or 0 if `end` is 0.
    pub fn below(&mut self, end: u32) -> u32 {
        ((u64::from(self.next_u32()) * u64::from(end)) >> 32) as u32
    }

    /// True with a probability of 1 in `n`.
    pub fn one_in(&mut self, n: u32) -> bool {
        self.below(n) == 0
    }

    /// One of these values, each with the same probability.
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u32) as usize].clone()
    }

    /// A duration of at most `ms` milliseconds, in whole microseconds.
    pub fn millis(&mut self, ms: u32) -> Duration {
        Duration::from_micros(self.below(ms * 1_000 + 1).into())
    }

    /// A number from 0 to `max`.
    pub fn share(&mut self, max: f64) -> f64 {
        f64::from(self.next_u32()) / f64::from(u32::MAX) * max
    }
}
