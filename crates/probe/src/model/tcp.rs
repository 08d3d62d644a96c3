//! The rate of TCP on a path that loses packets, by published formulas, and the start-up delay that
//! follows for a live stream over it.
//!
//! All of them are means over long times and independent losses. A window of 6 to 9 segments, as on
//! a path of 200 ms and 2 % of loss, has many losses that end in a timeout, so single transfers are
//! far from the mean.

use std::time::Duration;

use thiserror::Error;

/// A TCP connection on a path that loses packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpPath {
    rtt: Duration,
    loss: f64,
    segment: u32,
    segments_per_ack: u32,
    timeout: Duration,
    initial_window: u32,
}

/// A figure of a TCP connection that is out of its range.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum TcpPathError {
    /// The formulas are for round trips of 1 ms to 10 s.
    #[error("the round-trip time is out of range; it must be 1 ms to 10 s")]
    RoundTrip,
    /// Without loss there is no rate by which a formula would limit it.
    #[error("the loss is {0}; the formulas of TCP's rate need more than 0, up to 0.5")]
    Loss(f64),
}

/// The delay until the first time span of a stream is there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StartUp {
    /// From the first segment on at the rate of the long run, in seconds: span × stream / rate.
    pub at_steady_rate: f64,
    /// The same beginning with slow start, in seconds.
    pub with_slow_start: f64,
}

impl TcpPath {
    /// A connection on a path with this round-trip time (1 ms to 10 s) and share of loss (more than
    /// 0, up to 0.5): segments of 1460 bytes, an ACK for each, a retransmission timeout of four
    /// round trips (RFC 5348 section 3.1), and an initial window of ten segments (RFC 6928).
    pub fn new(rtt: Duration, loss: f64) -> Result<Self, TcpPathError> {
        if !(Duration::from_millis(1)..=Duration::from_secs(10)).contains(&rtt) {
            return Err(TcpPathError::RoundTrip);
        }
        if !(f64::MIN_POSITIVE..=0.5).contains(&loss) {
            return Err(TcpPathError::Loss(loss));
        }
        let (segment, segments_per_ack, initial_window) = (1_460, 1, 10);
        Ok(Self { rtt, loss, segment, segments_per_ack, timeout: rtt * 4, initial_window })
    }

    /// Sends an ACK for each second segment (delayed ACKs, b = 2) in place of each.
    #[must_use]
    pub fn with_delayed_acks(self) -> Self {
        Self { segments_per_ack: 2, ..self }
    }

    /// Carries this number of bytes in a segment, at least 1.
    #[must_use]
    pub fn with_segment(self, bytes: u32) -> Self {
        Self { segment: bytes.max(1), ..self }
    }

    /// Retransmits after this time without an ACK.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// The rate of Reno by the square-root formula, in b/s: MSS / RTT · √(3 / (2 b p)).
    ///
    /// Mathis, Semke, Mahdavi, Ott: The macroscopic behavior of the TCP congestion avoidance
    /// algorithm, 1997. It leaves timeouts out, so it is too high at 2 % and more.
    pub fn mathis(&self) -> f64 {
        self.rate_of((1.5 / (f64::from(self.segments_per_ack) * self.loss)).sqrt())
    }

    /// The rate of Reno with timeouts, in b/s.
    ///
    /// Padhye, Firoiu, Towsley, Kurose: Modeling TCP throughput, 1998, equation 32 without the
    /// limit of the receiver's window: MSS / (RTT √(2bp/3) + T₀ min(1, 3 √(3bp/8)) p (1 + 32 p²)).
    pub fn pftk(&self) -> f64 {
        let (b, p) = (f64::from(self.segments_per_ack), self.loss);
        let avoidance = self.rtt.as_secs_f64() * (2.0 * b * p / 3.0).sqrt();
        let timeouts = (3.0 * (3.0 * b * p / 8.0).sqrt()).min(1.0) * p * (1.0 + 32.0 * p * p);
        self.bits() / (avoidance + self.timeout.as_secs_f64() * timeouts)
    }

    /// The mean window of CUBIC by its own curve, in segments: (C (3 + β) / (4 (1 − β)))^¼ ·
    /// RTT^¾ / p^¾ with β = 0.7 and C = 0.4 (RFC 9438 section 5, equation 6).
    pub fn cubic_window(&self) -> f64 {
        let factor = libm::pow(CUBIC_C * (3.0 + CUBIC_BETA) / (4.0 * (1.0 - CUBIC_BETA)), 0.25);
        factor * libm::pow(self.rtt.as_secs_f64() / self.loss, 0.75)
    }

    /// The rate of CUBIC by its own curve, in b/s.
    pub fn cubic_curve(&self) -> f64 {
        self.rate_of(self.cubic_window())
    }

    /// The rate of CUBIC, in b/s: by its own curve or as Reno's, whichever is higher, because it
    /// never has a smaller window than Reno would (RFC 9438 section 4.3). At 200 ms and 2 % it is
    /// Reno's. Timeouts are left out.
    pub fn cubic(&self) -> f64 {
        self.cubic_curve().max(self.mathis())
    }

    /// The rate that a window of this number of bytes allows, in b/s: 64 KiB, the largest without
    /// window scaling (RFC 7323), are 2.6 Mb/s at 200 ms.
    pub fn window_limit(&self, bytes: u32) -> f64 {
        f64::from(bytes) * 8.0 / self.rtt.as_secs_f64()
    }

    /// The delay until `span` of a stream of `stream` b/s is there, if TCP gets `rate` b/s in the
    /// long run, from the first segment's arrival on. A live source cannot be quicker than `span`.
    ///
    /// Slow start is that of Cardwell, Savage, Anderson: Modeling TCP latency, 2000, equations 5,
    /// 11 and 15: it ends with the first loss. Timeouts after it are left out.
    pub fn start_up(&self, stream: f64, span: Duration, rate: f64) -> StartUp {
        let bits = stream * span.as_secs_f64();
        let segments = (bits / self.bits()).max(1.0);
        // Segments until the first loss, that one included, on the mean.
        let until_loss =
            (1.0 - libm::pow(1.0 - self.loss, segments)) * (1.0 - self.loss) / self.loss;
        let slow = (until_loss + 1.0).min(segments);
        let growth = 1.0 + 1.0 / f64::from(self.segments_per_ack);
        let first = f64::from(self.initial_window);
        let round_trips = libm::log(slow * (growth - 1.0) / first + 1.0) / libm::log(growth);
        let slow_start = self.rtt.as_secs_f64() * (round_trips - 1.0).max(0.0);
        let rest = (segments - slow) * self.bits() / rate;
        let least = span.as_secs_f64();
        StartUp {
            at_steady_rate: (bits / rate).max(least),
            with_slow_start: (slow_start + rest).max(least),
        }
    }

    fn rate_of(&self, window: f64) -> f64 {
        window * self.bits() / self.rtt.as_secs_f64()
    }

    fn bits(&self) -> f64 {
        f64::from(self.segment) * 8.0
    }
}

/// CUBIC's constants (RFC 9438 sections 4.1.1 and 5.1).
const CUBIC_C: f64 = 0.4;
const CUBIC_BETA: f64 = 0.7;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn path(loss: f64) -> TcpPath {
        TcpPath::new(MS(200), loss).expect("a path")
    }

    #[track_caller]
    fn assert_mbps(rate: f64, expected: f64, digits: f64) {
        assert!((rate / 1e6 - expected).abs() <= digits / 2.0, "{rate}, not {expected}");
    }

    #[test]
    fn the_formulas_give_known_rates_at_200_ms() {
        let (each, second) = (path(0.02), path(0.02).with_delayed_acks());
        assert_mbps(each.mathis(), 0.506, 0.001);
        assert_mbps(second.mathis(), 0.358, 0.001);
        assert_mbps(each.pftk(), 0.428, 0.001);
        assert_mbps(second.pftk(), 0.302, 0.0011);
        assert!((each.cubic_window() - 5.9).abs() < 0.05, "{}", each.cubic_window());
        assert_mbps(each.cubic_curve(), 0.346, 0.001);
        assert_mbps(each.cubic(), 0.506, 0.001);
        let one_percent = path(0.01);
        assert_mbps(one_percent.mathis(), 0.72, 0.011);
        assert_mbps(one_percent.with_delayed_acks().mathis(), 0.51, 0.01);
        assert_mbps(one_percent.cubic_curve(), 0.58, 0.01);
        assert_mbps(each.window_limit(65_536), 2.6, 0.1);
    }

    #[test]
    fn the_first_second_takes_12_to_132_seconds_at_2_percent() {
        for (mbps, least, most) in [(6.0, 11.9, 19.8), (10.0, 19.8, 33.1), (40.0, 79.1, 132.2)] {
            let (path, second) = (path(0.02), Duration::from_secs(1));
            let delay = |rate| path.start_up(mbps * 1e6, second, rate);
            let (quick, slow) = (delay(path.mathis()), delay(path.with_delayed_acks().pftk()));
            assert!((quick.at_steady_rate - least).abs() < 0.05, "{quick:?}");
            assert!((slow.at_steady_rate - most).abs() < 0.05, "{slow:?}");
            // Slow start brings some 50 segments in half a second, a second's worth at 0.5 Mb/s.
            let gain = quick.at_steady_rate - quick.with_slow_start;
            assert!((0.3..1.0).contains(&gain), "{quick:?}");
        }
    }

    #[test]
    fn a_live_source_is_not_overtaken() {
        let quick = TcpPath::new(MS(10), 1e-6).expect("a path");
        let start = quick.start_up(1e6, Duration::from_secs(1), quick.cubic());
        assert!((start.at_steady_rate - 1.0).abs() < 1e-12, "{start:?}");
        assert!((start.with_slow_start - 1.0).abs() < 1e-12, "{start:?}");
    }

    #[test]
    fn figures_without_a_formula_are_refused() {
        let error = TcpPath::new(MS(200), 0.0).unwrap_err().to_string();
        assert_eq!(error, "the loss is 0; the formulas of TCP's rate need more than 0, up to 0.5");
        assert!(TcpPath::new(MS(200), f64::NAN).is_err() && TcpPath::new(MS(200), 0.6).is_err());
        assert!(TcpPath::new(MS(0), 0.02).is_err() && TcpPath::new(MS(11_000), 0.02).is_err());
    }

    proptest! {
        #[test]
        fn more_loss_and_longer_ways_slow_tcp_down(
            ms in 1..5_000_u64, loss in 1e-6..0.4_f64, more in 1.0..1.2_f64, longer in 1..5_000_u64,
        ) {
            let at = |ms, loss| TcpPath::new(MS(ms), loss).expect("a path");
            let near = at(ms, loss);
            for other in [at(ms, loss * more), at(ms + longer, loss)] {
                prop_assert!(other.mathis() <= near.mathis() && other.pftk() <= near.pftk());
                prop_assert!(other.cubic() <= near.cubic());
                prop_assert!(other.cubic() >= other.mathis() && other.pftk() <= other.mathis());
            }
        }
    }
}
