use std::collections::VecDeque;
use std::time::Duration;

use punctual_units::Instant;

/// The rate at which packets arrive at the receiver.
#[derive(Debug, Default)]
pub(super) struct ArrivalRate {
    /// Totals of arrivals and when they were reported, over the latest window.
    reports: VecDeque<(Instant, u64)>,
    /// A rate that the receiver computed.
    reported: f64,
}

/// The least time over which the rate is measured.
pub(super) const LEAST_WINDOW: Duration = Duration::from_millis(50);
/// The most reports in a window.
const REPORTS: usize = 512;

impl ArrivalRate {
    /// The receiver reported the total of its arrivals. The rate is measured over a round trip.
    pub(super) fn count(&mut self, now: Instant, total: u64, rtt: Duration) {
        let window = rtt.max(LEAST_WINDOW);
        while self.reports.get(1).is_some_and(|&(at, _)| at + window <= now)
            || self.reports.len() >= REPORTS
        {
            self.reports.pop_front();
        }
        self.reports.push_back((now, total));
    }

    /// The receiver reported a rate, packets per second, instead of a total.
    pub(super) fn report(&mut self, packets_per_sec: u32) {
        self.reported = f64::from(packets_per_sec);
    }

    /// Packets per second; 0 while unknown.
    pub(super) fn per_second(&self) -> f64 {
        let (Some(&(from, before)), Some(&(to, after))) =
            (self.reports.front(), self.reports.back())
        else {
            return self.reported;
        };
        let time = to.saturating_since(from).as_secs_f64();
        if time > 0.0 { (after - before) as f64 / time } else { self.reported }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_last_round_trip() {
        let mut rate = ArrivalRate::default();
        assert_eq!(rate.per_second(), 0.0);
        let rtt = Duration::from_millis(100);
        for n in 0..50 {
            // 1000 packets per second, then 2000.
            let total = if n < 30 { 10 * n } else { 300 + 20 * (n - 30) };
            rate.count(Instant::from_millis(1_000 + 10 * n), total, rtt);
        }
        assert!((rate.per_second() - 2_000.0).abs() < 1.0, "{}", rate.per_second());
    }

    #[test]
    fn a_reported_rate_stands_in_for_totals() {
        let mut rate = ArrivalRate::default();
        rate.report(700);
        assert_eq!(rate.per_second(), 700.0);
    }
}
