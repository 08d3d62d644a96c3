use std::time::Duration;

use punctual_units::Instant;

/// The shortest period of a measurement. A lost packet delays the ACK for a round trip or two, and
/// then many packets are acknowledged at once.
const LEAST_PERIOD: Duration = Duration::from_millis(100);
/// The shortest time after which an unfinished period counts.
const LEAST_BEGUN: Duration = Duration::from_millis(10);
const ROUND_TRIPS: u32 = 3;

/// The rate at which packets are acknowledged, which is the rate at which they arrive at the peer.
/// (libsrt's receivers report the rate within a burst instead.)
#[derive(Debug, Default)]
pub(super) struct AckedRate {
    since: Option<Instant>,
    packets: u64,
    /// The rates of the last two periods, packets per second.
    rates: [f64; 2],
}

impl AckedRate {
    /// An ACK acknowledged `packets` packets.
    pub(super) fn acknowledged(&mut self, now: Instant, packets: u32, round_trip: Duration) {
        let Some(since) = self.since else {
            self.since = Some(now);
            return;
        };
        self.packets += u64::from(packets);
        let time = now - since;
        if time >= LEAST_PERIOD.max(round_trip * ROUND_TRIPS) {
            self.rates = [self.packets as f64 / time.as_secs_f64(), self.rates[0]];
            self.packets = 0;
            self.since = Some(now);
        }
    }

    /// The highest rate, packets per second, of the last two periods, and of the unfinished one if
    /// it has lasted for a round trip and for 10 ms; 0 if unknown.
    pub(super) fn rate_until(&self, now: Instant, round_trip: Duration) -> f64 {
        let begun = self.since.map(|since| (now - since).max(Duration::ZERO));
        let begun = begun.filter(|&time| time >= LEAST_BEGUN.max(round_trip));
        begun.map_or(0.0, |time| self.packets as f64 / time.as_secs_f64()).max(self.rate())
    }

    /// The higher rate of the last two periods, packets per second; 0 if unknown.
    pub(super) fn rate(&self) -> f64 {
        self.rates[0].max(self.rates[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_the_same_for_steady_acks_and_for_acks_in_bursts() {
        let mut progress = AckedRate::default();
        assert_eq!(progress.rate(), 0.0);
        let round_trip = Duration::from_millis(20);
        // 4,000 packets per second; sometimes none are acknowledged for 30 ms, and then all at
        // once.
        for i in 0..60 {
            let packets = if i % 15 < 3 { 0 } else { 40 + 120 * u32::from(i % 15 == 3) };
            progress.acknowledged(Instant::from_millis(1_000 + i * 10), packets, round_trip);
        }
        assert!((3_000.0..5_500.0).contains(&progress.rate()), "{}", progress.rate());
    }

    #[test]
    fn an_unfinished_period_counts_after_a_round_trip_and_10_ms() {
        let mut progress = AckedRate::default();
        let at = |millis: u64| Instant::from_millis(1_000 + millis);
        for millis in 0..5 {
            progress.acknowledged(at(millis * 4), 40, Duration::from_millis(20));
        }
        assert_eq!(progress.rate(), 0.0);
        assert_eq!(progress.rate_until(at(9), Duration::from_millis(1)), 0.0);
        assert_eq!(progress.rate_until(at(16), Duration::from_millis(20)), 0.0);
        assert_eq!(progress.rate_until(at(16), Duration::from_millis(1)), 10_000.0);
    }
}
