//! The time from a NAK to its retransmission.

use std::time::Duration;

use punctual_rtt::Rtt;

use crate::report_times::LEAST_MARGIN;

/// The share of retransmissions that may arrive after the timeout; each of them is sent twice.
const LATER: f64 = 0.01;
/// With each retransmission the estimate moves by this fraction of the round trip, times `LATER` or
/// the rest.
const STEP: u32 = 32;

/// The time within which nearly all retransmissions arrive: a quantile of the measured times, which
/// the estimate follows in steps.
#[derive(Debug, Default)]
pub(super) struct ResponseTime {
    estimate: Option<Duration>,
}

impl ResponseTime {
    /// A retransmission arrived the time `took` after its NAK.
    pub(super) fn sample(&mut self, took: Duration, rtt: Rtt) {
        if took > longest(rtt) {
            // It answers a later copy of the NAK.
            return;
        }
        let step = rtt.smoothed / STEP;
        let estimate = self.estimate.unwrap_or_else(|| longest(rtt));
        self.estimate = Some(if took > estimate {
            estimate + step.mul_f64(1.0 - LATER)
        } else {
            estimate.saturating_sub(step.mul_f64(LATER))
        });
    }

    /// The timeout of a retransmission: at least a round trip, at most [`longest`].
    pub(super) fn retransmission_timeout(&self, rtt: Rtt) -> Duration {
        let longest = longest(rtt);
        self.estimate.map_or(longest, |estimate| estimate.clamp(rtt.smoothed, longest))
    }
}

/// The timeout before the first retransmissions, and the greatest one.
fn longest(rtt: Rtt) -> Duration {
    rtt.smoothed + (rtt.variance * 4).max(LEAST_MARGIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MICROS: fn(u64) -> Duration = Duration::from_micros;
    const RTT: Rtt =
        Rtt { smoothed: Duration::from_millis(20), variance: Duration::from_millis(2) };

    #[test]
    fn nearly_all_retransmissions_come_within_the_timeout() {
        let mut response = ResponseTime::default();
        assert_eq!(response.retransmission_timeout(RTT), MICROS(28_000));
        // Spread evenly over 4 ms: 99 of 100 come within 3.96 of them.
        for i in 0..20_000 {
            response.sample(MICROS(20_000 + i * 1_237 % 4_000), RTT);
        }
        let retransmission_timeout = response.retransmission_timeout(RTT);
        assert!(
            (MICROS(23_700)..MICROS(24_700)).contains(&retransmission_timeout),
            "{retransmission_timeout:?}"
        );
    }

    #[test]
    fn the_timeout_stays_between_the_round_trip_and_its_bound() {
        let mut response = ResponseTime::default();
        for _ in 0..10_000 {
            response.sample(MICROS(5_000), RTT);
        }
        assert_eq!(response.retransmission_timeout(RTT), RTT.smoothed);
        for _ in 0..1_000 {
            response.sample(MICROS(28_000), RTT);
            response.sample(MICROS(90_000), RTT);
        }
        assert!(response.retransmission_timeout(RTT) > MICROS(27_300));
    }
}
