use std::time::Duration;

use punctual_units::{Bitrate, DisplayDuration};
use thiserror::Error;

/// The ramp of a probe and its times. The default is gentle: from 2.5 Mb/s up by 2.5 Mb/s each
/// 15 s, to 20 Mb/s or the first congestion, and two minutes and a half in all.
///
/// The ramp is that of the article on 4G networks in the SRT cookbook, from half its first rate.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ProbeConfig {
    start: Bitrate,
    step: Bitrate,
    step_time: Duration,
    max_rate: Bitrate,
    duration: Duration,
    sustained: Duration,
    connection_latency: Duration,
    max_payload: usize,
}

/// A setting of a probe that is out of its range.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{name} is {value}; it must be {expected}")]
pub struct ProbeConfigError {
    name: &'static str,
    value: String,
    expected: String,
}

impl Default for ProbeConfig {
    fn default() -> Self {
        Self {
            start: Bitrate::from_bits_per_sec(2_500_000),
            step: Bitrate::from_bits_per_sec(2_500_000),
            step_time: Duration::from_secs(15),
            max_rate: Bitrate::from_mbps(20),
            duration: Duration::from_secs(210),
            sustained: Duration::from_secs(30),
            connection_latency: Duration::from_millis(500),
            max_payload: 1_456,
        }
    }
}

impl ProbeConfig {
    /// Payload rates that are tried: `start`, and `step` more each `step_time`, up to `max`. Rates
    /// are 100 kb/s to 1 Gb/s, `max` no less than `start`, and there are at most 64 steps. A step
    /// lasts 1 s to 10 min.
    pub fn with_ramp(
        self,
        start: Bitrate,
        step: Bitrate,
        step_time: Duration,
        max: Bitrate,
    ) -> Result<Self, ProbeConfigError> {
        check_rate("the first rate", start)?;
        check_rate("the step", step)?;
        check_rate("the highest rate", max)?;
        if max < start {
            return Err(ProbeConfigError {
                name: "the highest rate",
                value: max.to_string(),
                expected: format!("no less than the first, {start}"),
            });
        }
        let steps = (max.as_bits_per_sec() - start.as_bits_per_sec()) / step.as_bits_per_sec();
        if steps >= MAX_STEPS {
            return Err(ProbeConfigError {
                name: "the step",
                value: step.to_string(),
                expected: format!("so large that {max} is reached in {MAX_STEPS} steps"),
            });
        }
        check_time("the time of a step", step_time, LEAST_STEP, LONGEST_STEP)?;
        Ok(Self { start, step, step_time, max_rate: max, ..self })
    }

    /// The longest time that the whole probe may take: 3 s to 6 h. The ramp ends in time for the
    /// rest.
    pub fn with_duration(self, duration: Duration) -> Result<Self, ProbeConfigError> {
        check_time("the duration", duration, LEAST_DURATION, LONGEST_DURATION)?;
        Ok(Self { duration, ..self })
    }

    /// The time for which the rate that is going to be recommended is tried after the ramp: up to
    /// 1 h, zero to leave that out. Default 30 s.
    pub fn with_sustained_time(self, time: Duration) -> Result<Self, ProbeConfigError> {
        check_time("the time at the recommended rate", time, Duration::ZERO, LONGEST_SUSTAINED)?;
        Ok(Self { sustained: time, ..self })
    }

    /// The properties of the connection: its latency, by which reports come late, and the largest
    /// payload of a message in bytes, at least 188. Default 500 ms and 1456 bytes.
    #[must_use]
    pub fn with_connection(self, latency: Duration, max_payload: usize) -> Self {
        Self { connection_latency: latency, max_payload: max_payload.max(TS_PACKET), ..self }
    }

    /// The first rate of the ramp.
    pub fn start(&self) -> Bitrate {
        self.start
    }

    /// The difference between one rate of the ramp and the next.
    pub fn step(&self) -> Bitrate {
        self.step
    }

    /// The duration of a step.
    pub fn step_time(&self) -> Duration {
        self.step_time
    }

    /// The highest rate that is tried.
    pub fn max_rate(&self) -> Bitrate {
        self.max_rate
    }

    /// The longest time that the whole probe may take.
    pub fn duration(&self) -> Duration {
        self.duration
    }

    /// The time for which the rate that is going to be recommended is tried after the ramp.
    pub fn sustained_time(&self) -> Duration {
        self.sustained
    }

    /// The latency of the connection, by which reports come late.
    pub(crate) fn connection_latency(&self) -> Duration {
        self.connection_latency
    }

    /// The largest payload that the connection takes.
    pub(crate) fn max_payload(&self) -> usize {
        self.max_payload
    }
}

fn check_rate(name: &'static str, rate: Bitrate) -> Result<(), ProbeConfigError> {
    if (LEAST_RATE..=HIGHEST_RATE).contains(&rate) {
        return Ok(());
    }
    let expected = format!("{LEAST_RATE} to {HIGHEST_RATE}");
    Err(ProbeConfigError { name, value: rate.to_string(), expected })
}

fn check_time(
    name: &'static str,
    time: Duration,
    least: Duration,
    most: Duration,
) -> Result<(), ProbeConfigError> {
    if (least..=most).contains(&time) {
        return Ok(());
    }
    let expected = format!("{} to {}", DisplayDuration(least), DisplayDuration(most));
    Err(ProbeConfigError { name, value: DisplayDuration(time).to_string(), expected })
}

/// Bytes of an MPEG-TS packet.
pub(crate) const TS_PACKET: usize = 188;

/// The lowest rate that is ever tried.
pub(crate) const LEAST_RATE: Bitrate = Bitrate::from_bits_per_sec(100_000);
const HIGHEST_RATE: Bitrate = Bitrate::from_mbps(1_000);
const MAX_STEPS: u64 = 64;
const LEAST_STEP: Duration = Duration::from_secs(1);
const LONGEST_STEP: Duration = Duration::from_secs(600);
const LEAST_DURATION: Duration = Duration::from_secs(3);
const LONGEST_DURATION: Duration = Duration::from_secs(6 * 3_600);
const LONGEST_SUSTAINED: Duration = Duration::from_secs(3_600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_out_of_range_name_themselves_and_the_range() {
        let mbps = Bitrate::from_mbps;
        let step = Duration::from_secs(5);
        let ramp = |start, add, max| {
            ProbeConfig::default().with_ramp(start, add, step, max).unwrap_err().to_string()
        };
        assert_eq!(
            ramp(mbps(20), mbps(1), mbps(10)),
            "the highest rate is 10 Mb/s; it must be no less than the first, 20 Mb/s"
        );
        assert_eq!(
            ramp(mbps(0), mbps(1), mbps(10)),
            "the first rate is 0 b/s; it must be 100 kb/s to 1 Gb/s"
        );
        assert!(ramp(mbps(1), mbps(1), mbps(100)).contains("64 steps"));
        let error = ProbeConfig::default().with_duration(Duration::from_secs(1)).unwrap_err();
        assert_eq!(error.to_string(), "the duration is 1 s; it must be 3 s to 21600 s");
    }
}
