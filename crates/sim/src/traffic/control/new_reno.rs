use punctual_units::Instant;

use super::{AckSummary, CongestionControl, INITIAL_WINDOW};

/// Slow start and congestion avoidance of RFC 5681, with the first window of RFC 6928. The window
/// halves with the first loss of a recovery.
#[derive(Debug)]
pub(in crate::traffic) struct TcpNewReno {
    packet: u64,
    max_window: u64,
    window: u64,
    /// Up to here the window doubles each round trip.
    threshold: u64,
}

impl TcpNewReno {
    /// A control for packets of `packet` bytes, whose window is at most `max_window` bytes.
    pub(in crate::traffic) fn new(packet: u64, max_window: u64) -> Self {
        let max_window = max_window.max(packet);
        let window = (INITIAL_WINDOW * packet).min(max_window);
        Self { packet, max_window, window, threshold: u64::MAX }
    }
}

impl CongestionControl for TcpNewReno {
    fn window(&self) -> u64 {
        self.window
    }

    fn on_ack(&mut self, ack: &AckSummary) {
        if !ack.window_limited {
            return;
        }
        for _ in 0..ack.growing {
            let growth = if self.window < self.threshold {
                self.packet
            } else {
                (self.packet * self.packet / self.window).max(1)
            };
            self.window = (self.window + growth).min(self.max_window);
        }
    }

    fn on_loss(&mut self, _: &AckSummary) {
        self.threshold = (self.window / 2).max(2 * self.packet);
        self.window = self.threshold;
    }

    fn on_timeout(&mut self, _: Instant, flight: u64, repeated: bool) {
        if !repeated {
            self.threshold = (flight / 2).max(2 * self.packet);
        }
        self.window = self.packet;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::testing::ack;
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    #[test]
    fn the_window_doubles_halves_and_then_grows_by_a_packet_each_round_trip() {
        let mut control = TcpNewReno::new(1_000, u64::MAX);
        control.on_ack(&ack(RTT, 10, RTT));
        assert_eq!(control.window(), 20_000);
        control.on_loss(&ack(RTT, 0, RTT));
        assert_eq!(control.window(), 10_000);
        control.on_ack(&ack(RTT, 10, RTT));
        assert!((10_900..11_000).contains(&control.window()), "{control:?}");
    }

    #[test]
    fn a_repeated_timeout_leaves_the_threshold() {
        let mut control = TcpNewReno::new(1_000, u64::MAX);
        control.on_timeout(Instant::ORIGIN, 40_000, false);
        control.on_timeout(Instant::ORIGIN, 1_000, true);
        assert_eq!((control.window(), control.threshold), (1_000, 20_000));
    }

    #[test]
    fn the_window_stays_while_the_source_is_the_limit() {
        let mut control = TcpNewReno::new(1_000, u64::MAX);
        control.on_ack(&AckSummary { window_limited: false, ..ack(RTT, 10, RTT) });
        assert_eq!(control.window(), 10_000);
    }
}
