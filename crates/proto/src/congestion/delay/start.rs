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
    /// The capacity that the receiver reported, packets per second, and since when it has been
    /// about that.
    capacity: Option<(f64, Instant)>,
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
/// The number of arrivals after which the capacity counts. It is the median over packet pairs, one
/// of 16 packets each; libsrt's covers 64 pairs and begins with 64 of a thousand packets a second.
const CAPACITY_SAMPLE: u64 = 1_024;
/// A capacity that moves by less than this share in a round trip is steady.
const STEADY: f64 = 0.125;

impl SlowStart {
    pub(super) const fn new() -> Self {
        Self { round_began: None, rate_before: 0.0, flat_rounds: 0, capacity: None }
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

    /// Follows the capacity that the receiver reported, packets per second, after `arrived`
    /// arrivals, which come at `rate` now. Returns it if it has been steady for a round trip and
    /// packets do not arrive faster: libsrt reports none while its ACK waits for a lost packet.
    pub(super) fn steady_capacity(
        &mut self,
        now: Instant,
        base: Duration,
        reported: u32,
        arrived: u64,
        rate: f64,
    ) -> Option<f64> {
        let reported = f64::from(reported);
        let before = self.capacity.filter(|(value, _)| (reported - value).abs() < STEADY * value);
        let (_, since) = *self.capacity.insert(before.unwrap_or((reported, now)));
        let is_known = reported > 0.0 && reported >= rate && arrived >= CAPACITY_SAMPLE;
        (is_known && now >= since + base.max(LEAST_ROUND)).then_some(reported)
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
    fn a_capacity_counts_when_it_was_steady_for_a_round_trip() {
        let mut start = SlowStart::new();
        let mut known = |ms, reported, arrived, rate| {
            start.steady_capacity(Instant::from_millis(ms), MS(100), reported, arrived, rate)
        };
        assert_eq!(known(1_000, 1_000, 500, 500.0), None);
        assert_eq!(
            known(1_100, 1_000, 1_000, 900.0),
            None,
            "that of 64 pairs which there were not"
        );
        assert_eq!(known(1_200, 1_000, 2_000, 2_000.0), None, "slower than the arrivals");
        assert_eq!(known(1_300, 5_000, 3_000, 2_000.0), None);
        assert_eq!(known(1_399, 5_100, 3_500, 2_000.0), None);
        assert_eq!(known(1_400, 4_900, 4_000, 2_000.0), Some(4_900.0));
        assert_eq!(known(1_500, 8_000, 4_500, 2_000.0), None);
    }

    #[test]
    fn it_ends_when_a_larger_window_delivers_no_more() {
        let rates = [0.0, 100.0, 200.0, 400.0, 450.0, 460.0, 450.0];
        assert_eq!(ends(&rates, true), Some(6));
        assert_eq!(ends(&rates, false), None, "the application sends no more");
    }
}
