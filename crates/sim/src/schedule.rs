use std::time::Duration;

use punctual_units::Bitrate;

use crate::error::WorldError;

/// How fast a stream sends, from when on: payload bits a second, in steps.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RateSchedule(Vec<(Duration, Bitrate)>);

impl RateSchedule {
    /// One rate all the time.
    pub fn constant(rate: Bitrate) -> Self {
        Self(vec![(Duration::ZERO, rate)])
    }

    /// `start` at first, and `step` more each `every`, for `total` in all; after that the last rate
    /// stays. This is how the usable rate of a link is searched for. Without a pause between its
    /// steps there is one rate only, `start`.
    pub fn ramp(start: Bitrate, step: Bitrate, every: Duration, total: Duration) -> Self {
        let mut steps = vec![(Duration::ZERO, start)];
        let (mut at, mut bits) = (every, start.as_bits_per_sec());
        while every > Duration::ZERO && at < total {
            bits = bits.saturating_add(step.as_bits_per_sec());
            steps.push((at, Bitrate::from_bits_per_sec(bits)));
            at = at.saturating_add(every);
        }
        Self(steps)
    }

    /// Each rate from its time on, which counts from the stream's first message. Before the first
    /// step, and at rate zero, nothing is sent.
    ///
    /// # Errors
    ///
    /// Each step must come after the one before it.
    pub fn steps(steps: Vec<(Duration, Bitrate)>) -> Result<Self, WorldError> {
        match steps.windows(2).find(|pair| pair[1].0 <= pair[0].0) {
            Some(pair) => Err(WorldError::StepOrder(pair[1].0)),
            None => Ok(Self(steps)),
        }
    }

    /// The rate at `time` since the first message.
    pub fn rate_at(&self, time: Duration) -> Bitrate {
        let begun = self.0.iter().rev().find(|(from, _)| *from <= time);
        begun.map_or(Bitrate::ZERO, |&(_, rate)| rate)
    }

    /// The steps: each rate and since when.
    pub fn as_steps(&self) -> &[(Duration, Bitrate)] {
        &self.0
    }

    /// Whether messages can be timed at all of its rates.
    pub(crate) fn check(&self) -> Result<(), WorldError> {
        match self.0.iter().find(|(_, rate)| *rate >= TERABIT) {
            Some(&(_, rate)) => Err(WorldError::Rate(rate)),
            None => Ok(()),
        }
    }

    fn nanos(&self, step: usize) -> Option<u64> {
        let (from, _) = self.0.get(step)?;
        Some(u64::try_from(from.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// Faster than that, several messages fall into a nanosecond.
const TERABIT: Bitrate = Bitrate::from_mbps(1_000_000);

/// When each message of a stream is sent, exactly: message n when the rates of the schedule have
/// made n messages, to the nanosecond above. No rounding adds up.
#[derive(Clone, Debug)]
pub(crate) struct MessagePace {
    schedule: RateSchedule,
    /// Nanobits of a message: a rate in bits a second makes that many of them each nanosecond.
    message: u64,
    step: usize,
    /// Up to here, nanoseconds, ...
    at: u64,
    /// The nanobits of the next message that have not accrued yet.
    owed: u64,
}

impl MessagePace {
    /// A pace of messages of `size` bytes, up to 64 KiB.
    pub(crate) fn new(schedule: RateSchedule, size: usize) -> Self {
        let at = schedule.nanos(0).unwrap_or(0);
        Self { schedule, message: size as u64 * 8_000_000_000, step: 0, at, owed: 0 }
    }
}

impl Iterator for MessagePace {
    type Item = Duration;

    /// The time of the next message since the schedule's start; `None` if there will be none.
    fn next(&mut self) -> Option<Duration> {
        loop {
            let rate = self.schedule.0.get(self.step)?.1.as_bits_per_sec();
            let end = self.schedule.nanos(self.step + 1);
            if rate > 0 {
                let at = self.at.checked_add(self.owed.div_ceil(rate))?;
                if end.is_none_or(|end| at < end) {
                    // The rest of the nanosecond accrues for the next message.
                    let spare = (at - self.at) * rate - self.owed;
                    self.at = at;
                    self.owed = self.message.saturating_sub(spare);
                    return Some(Duration::from_nanos(at));
                }
            }
            let end = end?;
            self.owed = self.owed.saturating_sub((end - self.at).saturating_mul(rate));
            self.at = end;
            self.step += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn mbps(rate: u64) -> Bitrate {
        Bitrate::from_mbps(rate)
    }

    #[test]
    fn a_constant_rate_is_kept_for_ever() {
        let pace = MessagePace::new(RateSchedule::constant(mbps(10)), 1_316);
        let times: Vec<Duration> = pace.take(1_000_000).collect();
        for n in [0_usize, 1, 2, 3, 999, 999_999] {
            assert_eq!(times[n], mbps(10).time_for(n as u64 * 1_316), "message {n}");
        }
    }

    #[test]
    fn a_rate_that_does_not_divide_loses_nothing_over_steps() {
        let steps = (0..100).map(|n| (SECOND * n, Bitrate::from_bits_per_sec(999_983))).collect();
        let stepped: Vec<_> =
            MessagePace::new(RateSchedule::steps(steps).unwrap(), 1_000).take(20_000).collect();
        let constant = RateSchedule::constant(Bitrate::from_bits_per_sec(999_983));
        let steady: Vec<_> = MessagePace::new(constant, 1_000).take(20_000).collect();
        for (a, b) in stepped.iter().zip(&steady) {
            // A step may begin within the nanosecond to which the one before it was rounded.
            assert!(a.abs_diff(*b) <= Duration::from_nanos(1), "{a:?} {b:?}");
        }
    }

    #[test]
    fn a_ramp_climbs_by_its_step_and_stays_at_its_end() {
        let ramp = RateSchedule::ramp(mbps(2), mbps(3), SECOND, SECOND * 3);
        let expected = [(Duration::ZERO, mbps(2)), (SECOND, mbps(5)), (SECOND * 2, mbps(8))];
        assert_eq!(ramp.as_steps(), expected);
        assert_eq!(ramp.rate_at(SECOND * 9), mbps(8));
        let messages = MessagePace::new(ramp, 1_250).take_while(|at| *at < SECOND * 3).count();
        assert_eq!(messages, 1_500);
    }

    #[test]
    fn nothing_is_sent_at_rate_zero_or_before_the_first_step() {
        let steps = vec![(SECOND, mbps(1)), (SECOND * 2, mbps(0)), (SECOND * 5, mbps(1))];
        let pace = MessagePace::new(RateSchedule::steps(steps).unwrap(), 125_000 / 2);
        let halves: Vec<u128> = pace.take(4).map(|at| at.as_millis() / 500).collect();
        assert_eq!(halves, [2, 3, 10, 11]);
        assert_eq!(MessagePace::new(RateSchedule::constant(mbps(0)), 100).next(), None);
    }

    #[test]
    fn steps_must_rise() {
        let error = RateSchedule::steps(vec![(SECOND, mbps(1)), (SECOND, mbps(2))]).unwrap_err();
        assert_eq!(error, WorldError::StepOrder(SECOND));
        assert_eq!(RateSchedule::steps(Vec::new()).unwrap().rate_at(SECOND), mbps(0));
    }
}
