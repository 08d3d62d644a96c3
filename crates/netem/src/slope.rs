//! Parameters that change little by little.

use std::time::Duration;

use punctual_units::{Bitrate, Instant};

use crate::config::LinkConfig;
use crate::loss::Loss;
use crate::timeline::Ramp;

/// The slopes in force: one a parameter at most. The one begun last counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slopes {
    rate: Option<Slope<u64>>,
    delay: Option<Slope<u64>>,
    loss: Option<Slope<f64>>,
    /// Slopes begun so far.
    begun: u64,
}

/// The parameter that a slope changes.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum SlopeTarget {
    Rate,
    Delay,
    Loss,
}

/// A straight line between two values.
#[derive(Clone, Copy, Debug)]
struct Slope<T> {
    from: T,
    to: T,
    begin: Instant,
    over: u64,
    generation: u64,
}

impl Slopes {
    /// Begins a slope. The caller makes its first step.
    pub(crate) fn begin(
        &mut self,
        at: Instant,
        to: Ramp,
        over: Duration,
        config: &LinkConfig,
    ) -> (SlopeTarget, u64) {
        self.begun += 1;
        let over = u64::try_from(over.as_nanos()).unwrap_or(u64::MAX);
        let generation = self.begun;
        let target = match to {
            Ramp::Rate(to) => {
                let from = config.rate.unwrap_or(to).as_bits_per_sec();
                let to = to.as_bits_per_sec();
                self.rate = Some(Slope { from, to, begin: at, over, generation });
                SlopeTarget::Rate
            }
            Ramp::Delay(to) => {
                let (from, to) = (nanos(config.delay), nanos(to));
                self.delay = Some(Slope { from, to, begin: at, over, generation });
                SlopeTarget::Delay
            }
            Ramp::Loss(to) => {
                let from = config.loss.mean();
                self.loss = Some(Slope { from, to, begin: at, over, generation });
                SlopeTarget::Loss
            }
        };
        (target, generation)
    }

    pub(crate) fn stop(&mut self, target: SlopeTarget) {
        match target {
            SlopeTarget::Rate => self.rate = None,
            SlopeTarget::Delay => self.delay = None,
            SlopeTarget::Loss => self.loss = None,
        }
    }

    pub(crate) fn clear(&mut self) {
        (self.rate, self.delay, self.loss) = (None, None, None);
    }

    /// Sets the value that holds from `at` on and says when to step again; ends the slope at its
    /// end. A slope that another took the place of is left alone.
    pub(crate) fn step(
        &mut self,
        at: Instant,
        target: SlopeTarget,
        generation: u64,
        now: Instant,
        config: &mut LinkConfig,
    ) -> Option<Instant> {
        match target {
            SlopeTarget::Rate => {
                let slope = self.rate.filter(|slope| slope.generation == generation)?;
                if slope.is_over(at) {
                    config.rate = Some(Bitrate::from_bits_per_sec(slope.to));
                    self.rate = None;
                    return None;
                }
                let next = slope.next_step(at, now);
                let middle = at.as_nanos() + (next.as_nanos() - at.as_nanos()) / 2;
                let rate = slope.at(Instant::from_nanos(middle));
                config.rate = Some(Bitrate::from_bits_per_sec(rate));
                Some(next)
            }
            SlopeTarget::Delay => {
                let slope = self.delay.filter(|slope| slope.generation == generation)?;
                config.delay = Duration::from_nanos(slope.at(at));
                if slope.is_over(at) {
                    self.delay = None;
                    return None;
                }
                Some(slope.end())
            }
            SlopeTarget::Loss => {
                let slope = self.loss.filter(|slope| slope.generation == generation)?;
                config.loss = Loss::Random(slope.at(at));
                if slope.is_over(at) {
                    self.loss = None;
                    return None;
                }
                Some(slope.end())
            }
        }
    }

    /// The delay on the slope, if there is one.
    pub(crate) fn delay(&self, at: Instant) -> Option<Duration> {
        self.delay.map(|slope| Duration::from_nanos(slope.at(at)))
    }

    /// The delay on the slope, and the least from there on, if there is one.
    pub(crate) fn delays(&self, at: Instant) -> Option<(Duration, Duration)> {
        self.delay.map(|slope| {
            let here = slope.at(at);
            (Duration::from_nanos(here), Duration::from_nanos(here.min(slope.to)))
        })
    }

    /// The loss on the slope, if there is one.
    pub(crate) fn loss(&self, at: Instant) -> Option<f64> {
        self.loss.map(|slope| slope.at(at))
    }
}

impl<T: Copy> Slope<T> {
    fn end(&self) -> Instant {
        self.begin + Duration::from_nanos(self.over)
    }

    fn is_over(&self, at: Instant) -> bool {
        at >= self.end()
    }

    /// Steps are counted from the begin; very many that are long past are made in one.
    fn next_step(&self, at: Instant, now: Instant) -> Instant {
        let behind = (now - at).as_nanos() / STEP.as_nanos();
        let skipped = behind.saturating_sub(u128::from(MOST_STEPS));
        let steps = u32::try_from(skipped).unwrap_or(u32::MAX).saturating_add(1);
        (at + STEP.saturating_mul(steps)).min(self.end())
    }
}

impl Slope<u64> {
    fn at(&self, at: Instant) -> u64 {
        let gone = u64::try_from((at - self.begin).as_nanos()).unwrap_or(u64::MAX);
        if gone >= self.over {
            return self.to;
        }
        let part = u128::from(self.from.abs_diff(self.to)) * u128::from(gone);
        // A part of the difference, which fits.
        let part = u64::try_from(part / u128::from(self.over)).unwrap_or(u64::MAX);
        if self.from < self.to { self.from + part } else { self.from - part }
    }
}

impl Slope<f64> {
    /// Four operations that round exactly, hence the same everywhere.
    #[expect(clippy::cast_precision_loss, reason = "a share of 2^53 is exact enough")]
    fn at(&self, at: Instant) -> f64 {
        let gone = u64::try_from((at - self.begin).as_nanos()).unwrap_or(u64::MAX);
        if gone >= self.over {
            return self.to;
        }
        self.from + (self.to - self.from) * (gone as f64 / self.over as f64)
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The time for which the rate of a slope is constant.
const STEP: Duration = Duration::from_millis(10);

/// A link that was not used for longer makes up for this number of steps only.
const MOST_STEPS: u32 = 1_000_000;
