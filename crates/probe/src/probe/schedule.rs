//! Which rate is tried next, for how long, and when the probe ends.

use std::time::Duration;

use punctual_units::Bitrate;

use super::recommended;
use super::trials::Trials;
use crate::config::{LEAST_RATE, ProbeConfig};
use crate::measurement::{Congestion, Limit, RateVerdict, StepKind};
use crate::step::{Step, scaled};

/// The plan of a probe: a ramp upwards, or downwards if the first rate was too much, and then the
/// rate that is going to be recommended, for longer.
#[derive(Debug)]
pub(super) struct Schedule {
    config: ProbeConfig,
    stage: Stage,
    sustained_steps: u32,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    Up,
    Down,
    Sustained,
}

/// A step to be tried.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct StepAttempt {
    pub(super) rate: Bitrate,
    pub(super) time: Duration,
    pub(super) kind: StepKind,
}

impl Schedule {
    pub(super) fn new(config: ProbeConfig) -> Self {
        Self { config, stage: Stage::Up, sustained_steps: 0 }
    }

    /// The largest payload that the connection takes.
    pub(super) fn max_payload(&self) -> usize {
        self.config.max_payload()
    }

    /// The time within which a Punctual listener makes itself known.
    pub(super) fn greeting(&self) -> Duration {
        self.config.connection_latency() + GREETING
    }

    /// The time within which reports about the messages of all sizes come.
    pub(super) fn size_reports(&self) -> Duration {
        self.config.connection_latency() * 2 + GREETING
    }

    /// The first step.
    pub(super) fn first(&self) -> StepAttempt {
        self.ramp(self.config.start())
    }

    /// The step directly after one at `rate` that was not ended early, `elapsed` after the
    /// beginning; or the limit that ends the ramp.
    pub(super) fn after_step(
        &self,
        rate: Bitrate,
        elapsed: Duration,
    ) -> Result<StepAttempt, Option<Limit>> {
        let next = Bitrate::from_bits_per_sec(
            rate.as_bits_per_sec() + self.config.step().as_bits_per_sec(),
        );
        if self.stage != Stage::Up {
            Err(None)
        } else if next > self.config.max_rate() {
            Err(Some(Limit::MaxRate))
        } else if self.left(elapsed) < self.config.step_time() + self.reserve() {
            Err(Some(Limit::Time))
        } else {
            Ok(self.ramp(next))
        }
    }

    /// The time to send nothing after `step`: reports come late by the latency, and later than that
    /// while a queue empties.
    pub(super) fn pause(&self, step: Option<&Step>, rtt: Duration) -> Duration {
        let queue = match step.map(Step::verdict) {
            Some(RateVerdict::Congested(Congestion::Queue { delay })) => delay * 2,
            _ => Duration::ZERO,
        };
        self.config.connection_latency()
            + LEAST_PAUSE
            + rtt.min(LONGEST_EXTRA)
            + queue.min(LONGEST_EXTRA)
    }

    /// The step after a pause, when every step before has its verdict; `None` to end the probe.
    pub(super) fn after_pause(
        &mut self,
        trials: &Trials,
        elapsed: Duration,
    ) -> Option<StepAttempt> {
        match (self.stage, trials.usable()) {
            (Stage::Sustained, None) => None,
            (Stage::Up | Stage::Down, None) => self.lower(trials, elapsed),
            (_, Some(usable)) => self.sustained(trials, recommended(usable), elapsed),
        }
    }

    /// Half the lowest rate so far: none was usable.
    fn lower(&mut self, trials: &Trials, elapsed: Duration) -> Option<StepAttempt> {
        let half = scaled(trials.lowest_rate().unwrap_or_default(), 0.5);
        if half < LEAST_RATE || self.left(elapsed) < self.config.step_time() {
            return None;
        }
        self.stage = Stage::Down;
        Some(self.ramp(half))
    }

    /// The rate that is going to be recommended, for a while.
    fn sustained(
        &mut self,
        trials: &Trials,
        rate: Bitrate,
        elapsed: Duration,
    ) -> Option<StepAttempt> {
        let wanted = self.config.sustained_time();
        let again = match self.stage {
            Stage::Up | Stage::Down => true,
            Stage::Sustained => {
                let failed = trials.last().is_some_and(Step::is_congested);
                // A link that changes is watched for longer: half a minute of it tells little.
                let more = trials.sustained_clear() < 2 && trials.link_changes();
                (failed || more) && self.sustained_steps < MOST_SUSTAINED
            }
        };
        let time = wanted.min(self.left(elapsed).saturating_sub(self.reserve_after_step()));
        if !again || wanted.is_zero() || time < wanted.min(self.config.step_time()) {
            return None;
        }
        self.stage = Stage::Sustained;
        self.sustained_steps += 1;
        Some(StepAttempt { rate, time, kind: StepKind::Sustained })
    }

    fn ramp(&self, rate: Bitrate) -> StepAttempt {
        StepAttempt { rate, time: self.config.step_time(), kind: StepKind::Ramp }
    }

    fn left(&self, elapsed: Duration) -> Duration {
        self.config.duration().saturating_sub(elapsed)
    }

    /// Time that is kept for the steps after the ramp.
    fn reserve(&self) -> Duration {
        self.config.sustained_time() + self.reserve_after_step() * 2
    }

    fn reserve_after_step(&self) -> Duration {
        self.config.connection_latency() + LEAST_PAUSE
    }
}

/// Beyond its latency, a Punctual listener makes itself known within this time.
const GREETING: Duration = Duration::from_millis(1_500);
const LEAST_PAUSE: Duration = Duration::from_millis(1_500);
/// The most by which a round trip, or a queue, lengthens a pause.
const LONGEST_EXTRA: Duration = Duration::from_secs(3);
const MOST_SUSTAINED: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const SECS: fn(u64) -> Duration = Duration::from_secs;
    const KBPS: fn(u64) -> Bitrate = |kbps| Bitrate::from_bits_per_sec(kbps * 1_000);

    #[test]
    fn the_ramp_rises_by_equal_steps_up_to_its_highest_rate() {
        let schedule = Schedule::new(ProbeConfig::default());
        let mut rates = vec![schedule.first().rate];
        let end = loop {
            match schedule.after_step(rates[rates.len() - 1], SECS(0)) {
                Ok(attempt) => rates.push(attempt.rate),
                Err(limit) => break limit,
            }
        };
        let expected: Vec<Bitrate> = (1..=8).map(|step| KBPS(2_500 * step)).collect();
        assert_eq!((rates, end), (expected, Some(Limit::MaxRate)));
    }

    #[test]
    fn the_ramp_ends_in_time_for_the_sustained_step() {
        let schedule = Schedule::new(ProbeConfig::default());
        // A step of 15 s, 30 s of the recommended rate and two pauses of 2 s end at 210 s.
        assert!(schedule.after_step(KBPS(2_500), SECS(161)).is_ok());
        assert_eq!(schedule.after_step(KBPS(2_500), SECS(162)), Err(Some(Limit::Time)));
    }

    #[test]
    fn without_a_usable_rate_lower_ones_are_tried_down_to_the_least() {
        let config = ProbeConfig::default();
        let config = config.with_ramp(KBPS(400), KBPS(100), SECS(2), KBPS(400)).unwrap();
        let mut schedule = Schedule::new(config);
        let mut trials = Trials::default();
        let mut rates = Vec::new();
        let mut next = Some(schedule.first());
        while let Some(attempt) = next {
            rates.push(attempt.rate);
            let load = crate::step::Load::new(attempt.rate, 1_000);
            trials.begin(Step::new(load, SECS(0), attempt.time, attempt.kind));
            assert!(rates.len() == 1 || schedule.after_step(attempt.rate, SECS(0)) == Err(None));
            next = schedule.after_pause(&trials, SECS(10));
        }
        assert_eq!(rates, [KBPS(400), KBPS(200), KBPS(100)]);
    }
}
