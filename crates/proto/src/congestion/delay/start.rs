use std::time::Duration;

use punctual_units::Instant;

/// The slow start: the window doubles in each round, until the path shows a queue or delivers no
/// more for a larger window.
#[derive(Debug)]
pub(super) struct SlowStart {
    /// When the current round began.
    round_began: Option<Instant>,
    /// The arrival rate at the end of the round before, packets per second.
    rate_before: f64,
    /// The number of rounds in a row in which the arrival rate hardly grew.
    flat_rounds: u32,
}

/// The least duration of a round: the arrival rate is measured over this time.
const LEAST_ROUND: Duration = Duration::from_millis(50);
/// The growth of the arrival rate in a round below which the path counts as full (BBR,
/// draft-cardwell-iccrg-bbr-congestion-control-00 section 4.3.1.2).
const GROWTH: f64 = 1.25;
/// The number of such rounds that end the slow start (the same section).
const FLAT_ROUNDS: u32 = 3;
/// Bounds of the queueing delay that ends the slow start, which is an eighth of the round trip
/// (RFC 9406: MIN_RTT_THRESH, MAX_RTT_THRESH, MIN_RTT_DIVISOR).
const LEAST_QUEUE: Duration = Duration::from_millis(4);
const MOST_QUEUE: Duration = Duration::from_millis(16);
const QUEUE_SHARE: u32 = 8;

impl SlowStart {
    pub(super) const fn new() -> Self {
        Self { round_began: None, rate_before: 0.0, flat_rounds: 0 }
    }

    /// Follows a report of the receiver. Returns whether the slow start ends: at a queueing delay
    /// of `queue` over a path with the round trip `base`, and at an arrival rate of `rate` packets
    /// per second. A sender that does not use its window learns nothing from the rate.
    pub(super) fn ends(
        &mut self,
        now: Instant,
        base: Duration,
        queue: Duration,
        rate: f64,
        window_is_used: bool,
    ) -> bool {
        if queue > (base / QUEUE_SHARE).clamp(LEAST_QUEUE, MOST_QUEUE) {
            return true;
        }
        let began = *self.round_began.get_or_insert(now);
        if now < began + base.max(LEAST_ROUND) {
            return false;
        }
        self.round_began = Some(now);
        let is_flat = window_is_used && rate < self.rate_before * GROWTH;
        self.flat_rounds = if is_flat { self.flat_rounds + 1 } else { 0 };
        self.rate_before = rate.max(self.rate_before);
        self.flat_rounds >= FLAT_ROUNDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// The round in which the slow start ends, with these arrival rates.
    fn ends(rates: &[f64], is_used: bool) -> Option<usize> {
        let mut start = SlowStart::new();
        rates.iter().enumerate().position(|(round, &rate)| {
            let now = Instant::from_millis(100 * round as u64);
            start.ends(now, MS(100), MS(0), rate, is_used)
        })
    }

    #[test]
    fn it_ends_with_a_queue() {
        let mut start = SlowStart::new();
        assert!(!start.ends(Instant::ORIGIN, MS(100), MS(12), 1.0, true));
        assert!(start.ends(Instant::ORIGIN, MS(100), MS(13), 1.0, true));
        assert!(start.ends(Instant::ORIGIN, MS(20), MS(5), 1.0, true), "4 ms at least");
        assert!(start.ends(Instant::ORIGIN, MS(300), MS(17), 1.0, true), "16 ms at most");
    }

    #[test]
    fn it_ends_when_a_larger_window_delivers_no_more() {
        let rates = [0.0, 100.0, 200.0, 400.0, 450.0, 460.0, 450.0];
        assert_eq!(ends(&rates, true), Some(6));
        assert_eq!(ends(&rates, false), None, "the application sends no more");
    }
}
