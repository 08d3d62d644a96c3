use std::time::Duration;

use punctual_rates::CubicCurve;
use punctual_units::Instant;

use super::leave_slow_start::{DelayRise, LossShare};
use super::{
    Cause, CongestionControl, GREATEST_ROUND_TRIP, INITIAL_WINDOW, LEAST_WINDOW, PathView,
    USUAL_ROUND_TRIP, half_of_peak, to_bytes, to_f64,
};
use crate::pacer::PacingRule;

/// CUBIC (RFC 9438 section 4).
#[derive(Debug)]
pub(crate) struct Cubic {
    window: u64,
    /// Slow start ends here; `None` before the path is known.
    threshold: Option<u64>,
    is_slow_start: bool,
    curve: CubicCurve,
    /// When the curve began.
    began: Instant,
    /// The greatest window before the latest reduction, in packets.
    greatest: f64,
    /// The origin of the curve before the latest reduction.
    began_before: Instant,
    /// The greatest window before the latest reduction but one, in packets.
    last_greatest: f64,
    /// The window that `NewReno` would have, in bytes.
    reno: f64,
    /// Losses of packets before this number belong to the loss that was answered.
    recovery: u64,
    rise: DelayRise,
    losses: LossShare,
}

impl Cubic {
    pub(crate) fn new() -> Self {
        Self {
            window: INITIAL_WINDOW,
            threshold: None,
            is_slow_start: true,
            curve: CubicCurve::between(f64::MAX, f64::MAX, 1.0),
            began: Instant::ORIGIN,
            greatest: f64::MAX,
            began_before: Instant::ORIGIN,
            last_greatest: f64::MAX,
            reno: to_f64(INITIAL_WINDOW),
            recovery: 0,
            rise: DelayRise::default(),
            losses: LossShare::default(),
        }
    }

    fn is_first_slow_start(&self) -> bool {
        self.is_slow_start && self.threshold.is_none()
    }

    /// Follows the curve up to the greatest window from `now` on.
    fn avoid(&mut self, now: Instant) {
        self.curve = CubicCurve::between(self.greatest * BETA, self.greatest, 1.0);
        self.began = now;
        self.began_before = now;
        self.is_slow_start = false;
    }

    /// The seconds since the curve began.
    fn age(&self, now: Instant) -> f64 {
        now.saturating_since(self.began).as_secs_f64()
    }

    /// The larger of both windows.
    fn follow(&mut self, path: &PathView) {
        let cubic = self.curve.window(self.age(path.now)) * to_f64(path.mtu);
        self.window = to_bytes(cubic.max(self.reno));
    }

    /// The round-trip time has risen: the queue is filled by a whole round trip of slow start, so
    /// part of the growth is taken back, and the curve begins at its flat part.
    fn leave_slow_start(&mut self, path: &PathView) {
        if let Some(floor) = self.rise.floor().filter(|floor| *floor > USUAL_ROUND_TRIP) {
            let usual =
                if floor > GREATEST_ROUND_TRIP { GREATEST_ROUND_TRIP } else { USUAL_ROUND_TRIP };
            let base = to_bytes(to_f64(self.window) * usual.as_secs_f64() / floor.as_secs_f64());
            self.window -= self.window.saturating_sub(base) / 2;
        }
        self.threshold = Some(self.window);
        self.greatest = to_f64(self.window) / to_f64(path.mtu);
        self.last_greatest = self.greatest;
        self.reno = to_f64(self.window);
        self.avoid(path.now);
        let elapsed = path.now.saturating_since(Instant::ORIGIN).as_secs_f64();
        self.curve = self.curve.rising_within(elapsed);
        self.began = path.now - Duration::from_secs_f64(self.curve.rise());
    }

    fn reduce(&mut self, path: &PathView, cause: Cause) {
        self.recovery = path.next_number;
        let mtu = to_f64(path.mtu);
        let greatest = to_f64(self.window) / mtu;
        // Fast convergence (RFC 9438 section 4.7). It also applies to the first reduction, as in
        // picoquic, if losses end slow start before the round-trip time rises.
        self.greatest = if greatest < self.last_greatest { greatest * BETA } else { greatest };
        self.last_greatest = greatest;
        let threshold = to_bytes(self.greatest * BETA * mtu);
        self.threshold = (threshold >= LEAST_WINDOW).then_some(threshold);
        if self.threshold.is_none() || cause == Cause::Timeout {
            if self.threshold.is_none() {
                self.reno = to_f64(LEAST_WINDOW);
            }
            self.window = LEAST_WINDOW;
            self.is_slow_start = true;
            self.began_before = self.began;
            self.began = path.now;
        } else {
            self.reno = to_f64(self.window) / 2.0;
            self.avoid(path.now);
            self.follow(path);
        }
    }
}

impl CongestionControl for Cubic {
    fn acknowledged(&mut self, path: &PathView, bytes: u64) {
        if path.is_app_limited {
            return;
        }
        if self.is_slow_start {
            self.window += bytes;
            if self.threshold.is_some_and(|threshold| self.window >= threshold) {
                self.reno = to_f64(self.window) / 2.0;
                self.avoid(path.now);
            }
        } else {
            self.reno += to_f64(bytes) * to_f64(path.mtu) / self.reno;
            self.follow(path);
        }
    }

    fn measured_round_trip(&mut self, path: &PathView) {
        if self.is_first_slow_start() && self.rise.has_risen(path.now, path.latest) {
            self.leave_slow_start(path);
        }
    }

    fn measured_rate(&mut self, path: &PathView) {
        if self.is_slow_start {
            self.window = self.window.max(half_of_peak(path, path.smoothed));
        }
    }

    fn lost(&mut self, path: &PathView, number: u64, cause: Cause) {
        let counts = match self.is_slow_start {
            true => {
                self.losses.is_high(number, cause)
                    && (path.now.saturating_since(self.began) > path.smoothed
                        || self.recovery <= path.highest_acknowledged)
            }
            false => number >= self.recovery && self.losses.is_high(number, cause),
        };
        if counts {
            self.reduce(path, cause);
        }
    }

    fn was_not_lost(&mut self, path: &PathView) {
        if self.threshold.is_none() {
            return;
        }
        self.greatest = self.last_greatest;
        self.avoid(self.began_before);
        self.reno = self.curve.window(self.age(path.now)) * to_f64(path.mtu);
        self.threshold = Some(to_bytes(self.greatest * BETA * to_f64(path.mtu)));
        self.window = to_bytes(self.reno).max(LEAST_WINDOW);
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn pacing(&self) -> PacingRule {
        PacingRule::Window { slow_start: self.is_first_slow_start() }
    }

    fn knows_path(&self) -> bool {
        self.threshold.is_some()
    }
}

/// The share of the window that a loss leaves.
const BETA: f64 = 7.0 / 8.0;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::congestion::testing::path;

    /// A control that left slow start with 100 packets and then lost many of them.
    fn reduced() -> Cubic {
        let mut cubic = Cubic::new();
        cubic.window = 100_000;
        cubic.threshold = Some(100_000);
        cubic.is_slow_start = false;
        cubic.last_greatest = 100.0;
        cubic.reduce(&path(1_000), Cause::Acknowledgement);
        cubic
    }

    #[test]
    fn a_reduction_leaves_seven_eighths_and_the_curve_returns_after_k() {
        let mut cubic = reduced();
        assert_eq!(cubic.window(), 87_500);
        // K is the cube root of 100 / 8 / 0.4, which is 3.15 s.
        assert!((cubic.curve.rise() - libm::cbrt(31.25)).abs() < 1e-9);
        cubic.reno = 1.0;
        cubic.acknowledged(&path(1_000 + 3_150), 0);
        assert!((99_900..=100_000).contains(&cubic.window()), "{}", cubic.window());
    }

    #[test]
    fn few_losses_are_no_congestion_and_many_are() {
        let mut cubic = reduced();
        for number in [100, 160, 220] {
            cubic.lost(&path(5_000), number, Cause::Acknowledgement);
        }
        assert_eq!(cubic.window(), 87_500);
        for number in 300..304 {
            cubic.lost(&path(6_000), number, Cause::Acknowledgement);
        }
        // Less than the greatest before: fast convergence takes another eighth.
        assert_eq!(cubic.window(), to_bytes(87_500.0 * BETA * BETA));
    }

    #[test]
    fn a_timeout_begins_slow_start_again_up_to_the_threshold() {
        let mut cubic = reduced();
        cubic.lost(&path(5_000), 200, Cause::Timeout);
        assert_eq!(cubic.window(), LEAST_WINDOW);
        assert!(cubic.is_slow_start && !cubic.is_first_slow_start());
        cubic.acknowledged(&path(5_100), 90_000);
        assert!(!cubic.is_slow_start);
    }

    proptest! {
        #[test]
        fn the_window_is_never_less_than_the_least(
            steps in proptest::collection::vec((0..5_u8, 0..300_u64), 0..200),
        ) {
            let mut cubic = Cubic::new();
            for (at, (step, number)) in (1..).zip(steps) {
                let path = path(at * 37);
                match step {
                    0 => cubic.lost(&path, number, Cause::Acknowledgement),
                    1 => cubic.lost(&path, number, Cause::Timeout),
                    2 => cubic.was_not_lost(&path),
                    _ => cubic.acknowledged(&path, 1_000),
                }
                prop_assert!(cubic.window() >= LEAST_WINDOW, "{cubic:?}");
            }
        }
    }
}
