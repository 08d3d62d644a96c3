use std::time::Duration;

use punctual_rates::{CUBIC_DECREASE as LEFT, CubicCurve, reno_growth};
use punctual_units::Instant;
use punctual_wire::SeqNo;

/// The window of a sender beside others that fill the queue of the path until packets are lost:
/// CUBIC (RFC 9438), which most of them use.
///
/// Only losses in a full queue are a sign of congestion here: [`handle_loss`](Self::handle_loss) is
/// not to be called for others. Several shares are several flows of CUBIC in one: the window grows
/// as many times as fast, and a loss lowers only one of them.
#[derive(Debug)]
pub(super) struct Competing {
    shares: f64,
    /// The window at the last loss, packets.
    most: f64,
    /// The window after it.
    least: f64,
    /// When the window began to grow.
    began: Instant,
    /// The window that NewReno would have (RFC 9438 section 4.3).
    reno: f64,
    updated: Instant,
    /// The first packet that was sent after the last decrease.
    recovery_ends: Option<SeqNo>,
}

/// The growth of NewReno's window per round trip that leaves it the same share with this decrease,
/// packets.
const RENO_GROWTH: f64 = reno_growth(LEFT);

impl Competing {
    /// From a window of `window` packets now; it was `most` before the others came.
    pub(super) fn new(now: Instant, window: f64, most: f64, shares: f64) -> Self {
        let most = most.max(window);
        Self {
            shares,
            most,
            least: window,
            began: now,
            reno: window,
            updated: now,
            recovery_ends: None,
        }
    }

    /// The window at `now`, with this round trip.
    pub(super) fn window(&mut self, now: Instant, rtt: Duration) -> f64 {
        let elapsed = now.saturating_since(self.updated).as_secs_f64();
        self.updated = now;
        self.reno += self.shares * RENO_GROWTH * elapsed / rtt.as_secs_f64().max(1e-3);
        let curve = CubicCurve::between(self.least, self.most, self.shares);
        let time = now.saturating_since(self.began).as_secs_f64();
        curve.window(time).max(self.reno).max(self.least)
    }

    /// Whether the loss of `lost` may lower the window: it was sent after the last decrease. Those
    /// sent before show the same full queue (RFC 6582 section 3.2: recover).
    pub(super) fn is_new(&self, lost: SeqNo) -> bool {
        self.recovery_ends.is_none_or(|end| !lost.is_before(end))
    }

    /// A packet was lost in a full queue; the next original is `next_new`. Returns the window after
    /// it.
    pub(super) fn handle_loss(&mut self, now: Instant, window: f64, next_new: SeqNo) -> f64 {
        self.recovery_ends = Some(next_new);
        let left = 1.0 - (1.0 - LEFT) / self.shares;
        // Section 4.7: a flow whose window does not reach its earlier value makes room for others.
        self.most = if window < self.most { window * f64::midpoint(1.0, left) } else { window };
        self.least = window * left;
        self.reno = self.least;
        self.began = now;
        self.updated = now;
        self.least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECS: fn(u64) -> Instant = |secs| Instant::from_millis(1_000 * secs);
    const RTT: Duration = Duration::from_millis(200);
    const NEXT: SeqNo = SeqNo::new(5_000);

    #[test]
    fn the_window_follows_the_cubic_curve() {
        let mut competing = Competing::new(SECS(0), 1_000.0, 1_000.0, 1.0);
        assert_eq!(competing.handle_loss(SECS(10), 1_000.0, NEXT), 700.0);
        // The cube root of 300 / 0.4 is 9.086 s.
        for (secs, window) in [(0, 700.0), (4, 947.4), (9, 1_000.0), (14, 1_047.4)] {
            let at = competing.window(SECS(10 + secs), RTT);
            assert!((at - window).abs() < 1.0, "{secs} s: {at}");
        }
    }

    #[test]
    fn a_small_window_grows_as_that_of_newreno() {
        let mut competing = Competing::new(SECS(0), 10.0, 10.0, 1.0);
        competing.handle_loss(SECS(0), 10.0, NEXT);
        let rtt = Duration::from_millis(20);
        let window = (1..=100).map(|n| competing.window(Instant::from_millis(10 * n), rtt)).last();
        // Fifty round trips.
        assert!(
            (window.unwrap_or_default() - (7.0 + 50.0 * RENO_GROWTH)).abs() < 0.1,
            "{window:?}"
        );
    }

    #[test]
    fn two_shares_lose_half_as_much() {
        let mut competing = Competing::new(SECS(0), 1_000.0, 1_000.0, 2.0);
        assert_eq!(competing.handle_loss(SECS(1), 1_000.0, NEXT), 850.0);
    }

    #[test]
    fn a_flow_that_shrinks_makes_room() {
        let mut competing = Competing::new(SECS(0), 1_000.0, 1_000.0, 1.0);
        competing.handle_loss(SECS(1), 1_000.0, NEXT);
        competing.handle_loss(SECS(2), 800.0, NEXT);
        assert!((competing.most - 680.0).abs() < 1e-9, "{}", competing.most);
    }

    #[test]
    fn one_full_queue_lowers_the_window_once() {
        let mut competing = Competing::new(SECS(0), 1_000.0, 1_000.0, 1.0);
        assert!(competing.is_new(SeqNo::new(4_990)));
        competing.handle_loss(SECS(1), 1_000.0, NEXT);
        let lost = [4_000, 4_999, 5_000, 5_001].map(SeqNo::new);
        assert_eq!(lost.map(|seq| competing.is_new(seq)), [false, false, true, true]);
    }
}
