//! The retransmission timer of a TCP-like flow (RFC 6298).

use std::time::Duration;

use punctual_units::Instant;

/// Round trips of a flow, and the timer that follows from them.
#[derive(Debug)]
pub(super) struct TcpRetransmissionTimer {
    /// The smoothed round trip and its variance.
    rtt: Option<[Duration; 2]>,
    least_rtt: Duration,
    /// The least that the timeout is longer than the smoothed round trip.
    least_variance: Duration,
    backoff: u32,
    due: Option<Instant>,
}

impl TcpRetransmissionTimer {
    /// A stopped timer, whose timeout is at least `least_variance` longer than the round trip.
    pub(super) fn new(least_variance: Duration) -> Self {
        Self { rtt: None, least_rtt: Duration::MAX, least_variance, backoff: 0, due: None }
    }

    /// When it fires; `None` while it is stopped.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Starts it again at `now`.
    pub(super) fn start(&mut self, now: Instant) {
        self.due = Some(now + self.timeout());
    }

    pub(super) fn stop(&mut self) {
        self.due = None;
    }

    /// It fired in vain: the next timeout is twice as long.
    pub(super) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
    }

    /// Whether it fired in vain and no packet was acknowledged since.
    pub(super) fn has_backed_off(&self) -> bool {
        self.backoff > 0
    }

    /// A packet was acknowledged: the timeout is the usual one again.
    pub(super) fn reset_backoff(&mut self) {
        self.backoff = 0;
    }

    /// A round trip was measured.
    pub(super) fn sample(&mut self, sample: Duration) {
        self.least_rtt = self.least_rtt.min(sample);
        self.rtt = Some(match self.rtt {
            None => [sample, sample / 2],
            Some([smoothed, variance]) => {
                [(smoothed * 7 + sample) / 8, (variance * 3 + smoothed.abs_diff(sample)) / 4]
            }
        });
    }

    /// The smoothed round trip; zero before the first sample.
    pub(super) fn rtt(&self) -> Duration {
        self.rtt.map_or(Duration::ZERO, |[smoothed, _]| smoothed)
    }

    /// The least round trip; zero before the first sample.
    pub(super) fn least_rtt(&self) -> Duration {
        if self.rtt.is_some() { self.least_rtt } else { Duration::ZERO }
    }

    fn timeout(&self) -> Duration {
        let timeout = self
            .rtt
            .map_or(FIRST_TIMEOUT, |[rtt, variance]| rtt + (variance * 4).max(self.least_variance));
        timeout.max(LEAST_TIMEOUT) * (1 << self.backoff)
    }
}

const FIRST_TIMEOUT: Duration = Duration::from_secs(1);
/// As in Linux.
const LEAST_TIMEOUT: Duration = Duration::from_millis(200);
const MAX_BACKOFF: u32 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn timeout(timer: &mut TcpRetransmissionTimer) -> Duration {
        timer.start(Instant::ORIGIN);
        timer.due().expect("it runs") - Instant::ORIGIN
    }

    #[test]
    fn the_timeout_is_the_round_trip_and_four_variances() {
        let mut timer = TcpRetransmissionTimer::new(Duration::ZERO);
        assert_eq!((timeout(&mut timer), timer.rtt()), (MS(1_000), Duration::ZERO));
        timer.sample(MS(400));
        assert_eq!((timeout(&mut timer), timer.rtt()), (MS(1_200), MS(400)));
        timer.sample(MS(320));
        // 390 ms, and 170 ms of variance.
        assert_eq!((timeout(&mut timer), timer.rtt()), (MS(1_070), MS(390)));
        timer.stop();
        assert_eq!(timer.due(), None);
    }

    #[test]
    fn the_timeout_is_longer_than_the_round_trip_by_the_least_variance() {
        let mut timer = TcpRetransmissionTimer::new(MS(200));
        (0..50).for_each(|_| timer.sample(MS(150)));
        assert_eq!((timeout(&mut timer), timer.least_rtt()), (MS(350), MS(150)));
    }

    #[test]
    fn the_timeout_doubles_up_to_64_times_and_is_200_ms_at_least() {
        let mut timer = TcpRetransmissionTimer::new(Duration::ZERO);
        timer.sample(MS(1));
        assert_eq!(timeout(&mut timer), MS(200));
        for _ in 0..9 {
            timer.back_off();
        }
        assert_eq!(timeout(&mut timer), MS(200 * 64));
        timer.reset_backoff();
        assert_eq!(timeout(&mut timer), MS(200));
    }
}
