use super::leave_slow_start::DelayRise;
use super::{
    Cause, CongestionControl, INITIAL_WINDOW, LEAST_WINDOW, PathView, first_window, half_of_peak,
};
use crate::pacer::PacingRule;

/// `NewReno` (RFC 9002 section 7).
#[derive(Debug)]
pub(crate) struct NewReno {
    window: u64,
    /// Slow start ends here; `None` before the path is known.
    threshold: Option<u64>,
    is_slow_start: bool,
    /// Losses of packets before this number belong to the loss that was answered.
    recovery: u64,
    recovery_began: punctual_units::Instant,
    /// Bytes × bytes of acknowledged data that did not suffice for a byte of the window.
    rest: u64,
    rise: DelayRise,
}

impl NewReno {
    pub(crate) fn new() -> Self {
        Self {
            window: INITIAL_WINDOW,
            threshold: None,
            is_slow_start: true,
            recovery: 0,
            recovery_began: punctual_units::Instant::ORIGIN,
            rest: 0,
            rise: DelayRise::default(),
        }
    }

    fn is_first_slow_start(&self) -> bool {
        self.is_slow_start && self.threshold.is_none()
    }
}

impl CongestionControl for NewReno {
    fn acknowledged(&mut self, path: &PathView, bytes: u64) {
        if path.is_app_limited {
            return;
        }
        if self.is_slow_start {
            self.window += bytes;
            self.is_slow_start = self.threshold.is_none_or(|threshold| self.window < threshold);
        } else {
            let gained = bytes * path.mtu + self.rest;
            self.rest = gained % self.window;
            self.window += gained / self.window;
        }
    }

    fn measured_round_trip(&mut self, path: &PathView) {
        if !self.is_first_slow_start() {
            return;
        }
        self.window = self.window.max(first_window(path.least));
        if self.rise.has_risen(path.now, path.latest) {
            self.threshold = Some(self.window);
            self.is_slow_start = false;
        }
    }

    fn measured_rate(&mut self, path: &PathView) {
        if self.is_first_slow_start() {
            self.window = self.window.max(half_of_peak(path, path.smoothed));
        }
    }

    fn lost(&mut self, path: &PathView, number: u64, cause: Cause) {
        if number < self.recovery {
            return;
        }
        let half = (self.window / 2).max(LEAST_WINDOW);
        self.threshold = Some(half);
        self.is_slow_start = cause == Cause::Timeout;
        self.window = if self.is_slow_start { LEAST_WINDOW } else { half };
        self.recovery = path.next_number;
        self.recovery_began = path.now;
        self.rest = 0;
    }

    fn was_not_lost(&mut self, path: &PathView) {
        let is_recent = path.now.saturating_since(self.recovery_began) < path.smoothed
            && self.recovery > path.highest_acknowledged;
        if let Some(threshold) = self.threshold.filter(|_| is_recent) {
            self.window = self.window.max(2 * threshold);
            self.is_slow_start = false;
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::path;

    #[test]
    fn the_window_doubles_in_slow_start_and_then_grows_by_a_packet() {
        let mut reno = NewReno::new();
        reno.acknowledged(&path(0), 15_360);
        assert_eq!(reno.window(), 30_720);
        reno.lost(&path(100), 40, Cause::Acknowledgement);
        assert_eq!(reno.window(), 15_360);
        (0..15).for_each(|_| reno.acknowledged(&path(200), 1_024));
        // Bytes × 1000 / window, a little less than 1000 since the window grows meanwhile.
        assert!((16_300..=16_360).contains(&reno.window()), "{}", reno.window());
    }

    #[test]
    fn losses_of_one_flight_are_answered_once_and_a_timeout_begins_again() {
        let mut reno = NewReno::new();
        reno.acknowledged(&path(0), 50_000);
        reno.lost(&path(1), 60, Cause::Acknowledgement);
        let once = reno.window();
        reno.lost(&path(2), 99, Cause::Acknowledgement);
        assert_eq!(reno.window(), once, "packet 99 was sent before the loss was known");
        reno.lost(&path(3), 100, Cause::Timeout);
        assert_eq!(reno.window(), LEAST_WINDOW);
        assert!(reno.is_slow_start);
    }

    #[test]
    fn a_loss_that_was_none_is_undone() {
        let mut reno = NewReno::new();
        reno.acknowledged(&path(0), 50_000);
        let before = reno.window();
        reno.lost(&path(1), 60, Cause::Acknowledgement);
        reno.was_not_lost(&path(10));
        assert_eq!(reno.window(), before);
    }

    #[test]
    fn an_application_with_nothing_to_send_does_not_grow_the_window() {
        let mut reno = NewReno::new();
        reno.acknowledged(&PathView { is_app_limited: true, ..path(0) }, 9_000);
        assert_eq!(reno.window(), INITIAL_WINDOW);
    }
}
