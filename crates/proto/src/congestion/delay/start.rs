//! The beginning of a connection, until the link's rate is found.

use std::time::Duration;

use punctual_units::Instant;

use super::reported_capacity::ReportedCapacity;

/// The slow start: the window doubles in each round, until the path shows a queue, delivers no more
/// for a larger window, or loses many packets. While the window is far below what the reported
/// capacity needs, it grows faster, and it waits there while the report still moves.
#[derive(Debug)]
pub(super) struct SlowStart {
    /// When the current round began.
    round_began: Option<Instant>,
    /// The arrival rate at the end of the round before, packets per second.
    rate_before: f64,
    /// The number of rounds in a row in which the arrival rate hardly grew.
    flat_rounds: u32,
    capacity: ReportedCapacity,
    losses: RoundLosses,
    /// The factor by which the window grows in a round.
    factor: f64,
    /// The time from the first packet to the first report.
    first_report: Option<Duration>,
}

/// The numbers of packets that were reported lost, and that have arrived, in the present round.
#[derive(Debug, Default)]
struct RoundLosses {
    lost: u64,
    arrived: u64,
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
/// The share of the packets of a round that may be lost, and a number that is always allowed: links
/// that lose more than a fourth of the packets without being full are of no use.
const MOST_LOST: f64 = 0.25;
const LEAST_LOST: u64 = 16;
/// The usual growth of the window in a round.
const FACTOR: f64 = 2.0;
/// The growth while the window is below half of what the reported capacity needs. Half leaves room
/// for one round of the usual growth, which ends at the capacity.
///
/// A capacity that is reported far too high costs a longer queue once: at a rate that grows by *f*
/// in each round trip, the queue holds (*f* - 1) / ln *f* - 1 round trips of packets before the
/// first of them is reported, 0.44 for 2 and 1.16 for 4.
const FAR_BELOW_FACTOR: f64 = 4.0;
/// The share of the window for the reported capacity below which it grows by that factor.
const FAR_BELOW: f64 = 0.5;
/// The window grows faster only while the newest round trip shows at most this share of the
/// queueing delay that ends the slow start.
const NO_QUEUE: u32 = 8;

impl SlowStart {
    pub(super) fn new() -> Self {
        Self {
            round_began: None,
            rate_before: 0.0,
            flat_rounds: 0,
            capacity: ReportedCapacity::default(),
            losses: RoundLosses::default(),
            factor: FACTOR,
            first_report: None,
        }
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
        if queue > longest_queue(base) || self.losses.fill_the_queue() {
            return true;
        }
        let began = *self.round_began.get_or_insert(now);
        if now < began + round_time(base) {
            return false;
        }
        self.round_began = Some(now);
        self.losses = RoundLosses::default();
        let is_flat = window_is_used && rate < self.rate_before * GROWTH;
        self.flat_rounds = if is_flat { self.flat_rounds + 1 } else { 0 };
        self.rate_before = rate.max(self.rate_before);
        self.flat_rounds >= FLAT_ROUNDS
    }

    /// This number of packets was reported lost.
    pub(super) const fn lost(&mut self, packets: u64) {
        self.losses.lost += packets;
    }

    /// This number of packets has arrived.
    pub(super) const fn arrived(&mut self, packets: u64) {
        self.losses.arrived += packets;
    }

    /// The capacity that the receiver reports.
    pub(super) const fn capacity(&mut self) -> &mut ReportedCapacity {
        &mut self.capacity
    }

    /// Chooses the growth of a window of `window` packets, if the reported capacity needs one of
    /// `full` packets, and the newest round trip has a queue of `newest_queue`: far below the
    /// capacity, a queue contradicts the report.
    pub(super) fn choose_factor(
        &mut self,
        window: f64,
        full: f64,
        base: Duration,
        newest_queue: Duration,
    ) {
        self.factor = if window >= FAR_BELOW * full {
            FACTOR
        } else if newest_queue <= longest_queue(base) / NO_QUEUE {
            FAR_BELOW_FACTOR
        } else if newest_queue <= longest_queue(base) {
            FACTOR
        } else {
            1.0
        };
    }

    /// The growth of the window for each packet that arrives.
    pub(super) fn growth(&self) -> f64 {
        self.factor - 1.0
    }

    /// The factor by which packets are sent faster than the window per round trip.
    ///
    /// If the rate grows by the factor *f* in each round trip, its last value is ln *f* / (1 - 1 /
    /// *f*) times the packets in the network per round trip: 1.39 for 2 and 1.85 for 4.
    pub(super) fn pace(&self) -> f64 {
        let factor = self.factor.max(FACTOR);
        libm::log(factor) / (1.0 - 1.0 / factor)
    }

    /// A report came at `now`; the first packet was sent at `began`. Returns the time from the
    /// first packet to the first report, which is a round trip and at most the time between two
    /// reports.
    pub(super) fn reported(&mut self, now: Instant, began: Instant) -> Duration {
        *self.first_report.get_or_insert(now.saturating_since(began))
    }

    /// The time from the first packet to the first report.
    pub(super) const fn first_report(&self) -> Option<Duration> {
        self.first_report
    }
}

impl RoundLosses {
    /// Whether so much is lost that the queue must be full: a sender that joins others at a full
    /// queue sees none grow.
    fn fill_the_queue(&self) -> bool {
        let most = MOST_LOST * (self.lost + self.arrived) as f64;
        self.lost > LEAST_LOST && self.lost as f64 > most
    }
}

/// The duration of a round over a path with the round trip `base`.
pub(super) fn round_time(base: Duration) -> Duration {
    base.max(LEAST_ROUND)
}

/// The queueing delay that ends the slow start over a path with the round trip `base`.
fn longest_queue(base: Duration) -> Duration {
    (base / QUEUE_SHARE).clamp(LEAST_QUEUE, MOST_QUEUE)
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
    fn a_queue_ends_the_slow_start() {
        let mut start = SlowStart::new();
        assert!(!start.ends(Instant::ORIGIN, MS(100), MS(12), 1.0, true));
        assert!(start.ends(Instant::ORIGIN, MS(100), MS(13), 1.0, true));
        assert!(start.ends(Instant::ORIGIN, MS(20), MS(5), 1.0, true), "4 ms at least");
        assert!(start.ends(Instant::ORIGIN, MS(300), MS(17), 1.0, true), "16 ms at most");
    }

    #[test]
    fn the_loss_of_a_fourth_of_the_packets_ends_the_slow_start() {
        let ends = |lost, arrived| {
            let mut start = SlowStart::new();
            start.lost(lost);
            start.arrived(arrived);
            start.ends(Instant::ORIGIN, MS(100), MS(0), 1.0, true)
        };
        assert!(!ends(16, 10), "few packets tell nothing");
        assert!(!ends(30, 90) && ends(31, 90));
    }

    #[test]
    fn a_window_far_below_the_capacity_grows_faster_while_there_is_no_queue() {
        let mut start = SlowStart::new();
        let mut growth = |window, full, queue| {
            start.choose_factor(window, full, MS(100), queue);
            start.growth()
        };
        assert_eq!(growth(32.0, 1_000.0, MS(0)), 3.0);
        assert_eq!(growth(499.0, 1_000.0, MS(1)), 3.0);
        assert_eq!(growth(499.0, 1_000.0, MS(2)), 1.0, "a short queue");
        assert_eq!(growth(499.0, 1_000.0, MS(13)), 0.0, "a long one");
        assert_eq!(growth(500.0, 1_000.0, MS(13)), 1.0);
        assert_eq!(growth(500.0, 1_000.0, MS(0)), 1.0, "one doubling is left");
        assert_eq!(growth(32.0, 0.0, MS(0)), 1.0, "nothing is reported");
    }

    #[test]
    fn packets_are_sent_as_fast_as_the_window_grows() {
        let mut start = SlowStart::new();
        assert!((start.pace() - 1.386).abs() < 0.001);
        start.choose_factor(1.0, 100.0, MS(100), MS(0));
        assert!((start.pace() - 1.848).abs() < 0.001);
    }

    #[test]
    fn a_larger_window_that_delivers_no_more_ends_the_slow_start() {
        let rates = [0.0, 100.0, 200.0, 400.0, 450.0, 460.0, 450.0];
        assert_eq!(ends(&rates, true), Some(6));
        assert_eq!(ends(&rates, false), None, "the application sends no more");
    }
}
