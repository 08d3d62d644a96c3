use std::time::Duration;

use punctual_rates::{CUBIC_DECREASE as BETA, CubicCurve, reno_growth};
use punctual_units::Instant;

use super::hystart::HyStart;
use super::{AckSummary, CongestionControl, INITIAL_WINDOW};

/// CUBIC (RFC 9438), with HyStart in its first slow start. Windows are in packets.
#[derive(Debug)]
pub(in crate::traffic) struct TcpCubic {
    packet: u64,
    max_window: f64,
    window: f64,
    /// Up to here the window grows as in slow start.
    threshold: f64,
    /// The window of the last loss, or a little less (`W_max`).
    plateau: Option<f64>,
    /// The window when the last loss was found (`cwnd_prior`).
    before_loss: f64,
    epoch: Option<CubicEpoch>,
    hystart: Option<HyStart>,
    /// When the last answer came.
    answered: Instant,
}

/// Congestion avoidance since the last loss.
#[derive(Debug)]
struct CubicEpoch {
    start: Instant,
    curve: CubicCurve,
    /// The window of a Reno flow with the same losses (`W_est`).
    reno: f64,
}

impl TcpCubic {
    /// A control for packets of `packet` bytes, whose window is at most `max_window` bytes.
    pub(in crate::traffic) fn new(packet: u64, max_window: u64) -> Self {
        let max_window = packets(max_window.max(packet), packet);
        Self {
            packet,
            max_window,
            window: packets(INITIAL_WINDOW * packet, packet).min(max_window),
            threshold: f64::INFINITY,
            plateau: None,
            before_loss: f64::INFINITY,
            epoch: None,
            hystart: Some(HyStart::default()),
            answered: Instant::ORIGIN,
        }
    }

    fn slow_start(&mut self, ack: &AckSummary) {
        let growth = match &mut self.hystart {
            Some(hystart) => hystart.growth(ack, self.window),
            None => Some(count(ack.growing)),
        };
        match growth {
            Some(growth) => self.window = (self.window + growth).min(self.threshold),
            None => self.threshold = self.window,
        }
    }

    /// RFC 9438 sections 4.2 to 4.5.
    fn avoid_congestion(&mut self, ack: &AckSummary) {
        self.hystart = None;
        let (window, plateau) = (self.window, self.plateau);
        let epoch = self.epoch.get_or_insert_with(|| CubicEpoch::new(ack.now, window, plateau));
        let acked = count(ack.growing);
        let share = if epoch.reno >= self.before_loss { 1.0 } else { RENO_SHARE };
        epoch.reno += share * acked / window;
        let time = ack.now - epoch.start;
        if epoch.curve(time) < epoch.reno {
            self.window = window.max(epoch.reno);
        } else {
            let target = epoch.curve(time + ack.smoothed_rtt).clamp(window, 1.5 * window);
            self.window += acked * (target - window) / window;
        }
    }
}

impl CongestionControl for TcpCubic {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 2^53")]
    fn window(&self) -> u64 {
        (self.window * count(self.packet)) as u64
    }

    fn on_ack(&mut self, ack: &AckSummary) {
        let silence = ack.now - self.answered;
        self.answered = ack.now;
        if !ack.window_limited {
            // The curve stands still while the application is the limit (section 5.8).
            if let Some(epoch) = &mut self.epoch {
                epoch.start += silence;
            }
            return;
        }
        if ack.growing == 0 {
            return;
        }
        if self.window < self.threshold {
            self.slow_start(ack);
        } else {
            self.avoid_congestion(ack);
        }
        self.window = self.window.min(self.max_window);
    }

    fn on_loss(&mut self, _: &AckSummary) {
        // A flow whose window did not come back to the old one makes room (fast convergence,
        // section 4.7).
        let gave_way = self.plateau.is_some_and(|plateau| self.window < plateau);
        self.plateau = Some(self.window * if gave_way { (1.0 + BETA) / 2.0 } else { 1.0 });
        self.before_loss = self.window;
        self.window = (self.window * BETA).max(LEAST_WINDOW);
        self.threshold = self.window;
        self.epoch = None;
    }

    fn on_timeout(&mut self, _: Instant, _: u64, repeated: bool) {
        if !repeated {
            self.before_loss = self.window;
            self.threshold = (self.window * BETA).max(LEAST_WINDOW);
        }
        self.window = 1.0;
        // The curve begins anew where congestion avoidance does (section 4.8).
        self.plateau = None;
        self.epoch = None;
        self.hystart = None;
    }
}

impl CubicEpoch {
    /// Congestion avoidance from `window` on, below or from the `plateau`.
    fn new(start: Instant, window: f64, plateau: Option<f64>) -> Self {
        let plateau = plateau.filter(|plateau| *plateau > window).unwrap_or(window);
        Self { start, curve: CubicCurve::between(window, plateau, 1.0), reno: window }
    }

    /// The window after `time` (equation 1).
    fn curve(&self, time: Duration) -> f64 {
        self.curve.window(time.as_secs_f64())
    }
}

fn packets(bytes: u64, packet: u64) -> f64 {
    count(bytes) / count(packet)
}

#[expect(clippy::cast_precision_loss, reason = "53 bits are plenty")]
fn count(number: u64) -> f64 {
    number as f64
}

/// The growth of a Reno flow's window that keeps as much as CUBIC after a loss.
const RENO_SHARE: f64 = reno_growth(BETA);
/// Packets (RFC 9438 section 4.6).
const LEAST_WINDOW: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::super::testing::ack;
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// A control in congestion avoidance with a window of `packets` packets, which has lost one.
    fn after_a_loss(packets: f64) -> TcpCubic {
        let mut control = TcpCubic::new(1_000, u64::MAX / 2);
        (control.window, control.threshold) = (packets, packets);
        control.on_loss(&ack(MS(0), 0, MS(100)));
        control
    }

    /// The windows after some seconds, with a round trip of 200 ms.
    fn course<const N: usize>(control: &mut TcpCubic, seconds: [u64; N]) -> [f64; N] {
        let mut now = 0;
        seconds.map(|until| {
            while now < until * 1_000 {
                let packets = control.window() / 1_000 / 20;
                control.on_ack(&ack(MS(now), packets.max(1), MS(200)));
                now += 10;
            }
            control.window
        })
    }

    #[test]
    fn the_window_after_a_loss_follows_the_cubic_function() {
        // 1000 packets; 700 after the loss. K is the cube root of 300 / 0.4, 9.0856 s.
        let mut control = after_a_loss(1_000.0);
        assert!((control.window - 700.0).abs() < 1e-9);
        let windows = course(&mut control, [2, 5, 9, 12, 15]);
        // 0.4 (t - K)³ + 1000 at these times.
        let expected = [857.7, 972.7, 999.9997, 1_009.9, 1_082.8];
        for (window, expected) in windows.into_iter().zip(expected) {
            // The window aims at the curve a round trip later and reaches it within one.
            assert!((window / expected - 1.0).abs() < 0.012, "{windows:?} {expected}");
        }
        let epoch = control.epoch.expect("congestion avoidance");
        assert!((epoch.curve.rise() - 9.0856).abs() < 1e-4, "{epoch:?}");
        assert!((epoch.curve(Duration::from_secs(2)) - 857.697).abs() < 0.01);
    }

    #[test]
    fn a_small_window_grows_as_fast_as_that_of_reno() {
        // Ten packets; seven after the loss. In 1 s of 200 ms the curve is flat, and Reno's window
        // grows by 0.529 packets each of five round trips.
        let mut control = after_a_loss(10.0);
        let mut now = 0;
        for _ in 0..5 {
            let whole = control.window() / 1_000;
            for _ in 0..whole {
                control.on_ack(&ack(MS(now), 1, MS(20)));
            }
            now += 20;
        }
        let expected = 7.0 + 5.0 * 0.529;
        assert!((control.window - expected).abs() < 0.3, "{control:?}");
    }

    #[test]
    fn a_flow_that_loses_below_its_old_window_makes_room() {
        let mut control = after_a_loss(100.0);
        assert_eq!(control.plateau, Some(100.0));
        control.on_loss(&ack(MS(0), 0, MS(100)));
        let plateau = control.plateau.expect("a loss");
        assert!((plateau - 70.0 * 0.85).abs() < 1e-9);
        assert!((control.window - 49.0).abs() < 1e-9);
    }

    #[test]
    fn a_timeout_leads_back_to_slow_start_up_to_seven_tenths() {
        let mut control = after_a_loss(100.0);
        control.on_timeout(Instant::ORIGIN, 70_000, false);
        control.on_timeout(Instant::ORIGIN, 1_000, true);
        assert_eq!(control.window(), 1_000);
        control.on_ack(&ack(MS(100), 1, MS(100)));
        assert_eq!(control.window(), 2_000);
        control.on_ack(&ack(MS(100), 99, MS(100)));
        assert_eq!(control.window(), 49_000);
    }

    #[test]
    fn the_curve_stands_still_while_the_source_is_the_limit() {
        let mut control = after_a_loss(1_000.0);
        control.on_ack(&ack(MS(0), 1, MS(100)));
        control.on_ack(&AckSummary { window_limited: false, ..ack(MS(9_000), 1, MS(100)) });
        let epoch = control.epoch.as_ref().expect("congestion avoidance");
        assert_eq!(epoch.start, Instant::ORIGIN + MS(9_000));
        assert!(control.window < 701.0, "{control:?}");
    }
}
