use std::time::Duration;

use punctual_units::Instant;

/// Least time that a rate is measured over. A packet that is repaired holds up what is
/// acknowledged for a round trip or two, and then it comes all at once.
const LEAST_PERIOD: Duration = Duration::from_millis(100);
const ROUND_TRIPS: u32 = 3;

/// How many packets per second are acknowledged: what really arrives at the peer, whatever it says
/// of it. libsrt's receivers tell how fast the packets of a burst follow each other.
#[derive(Debug, Default)]
pub(super) struct Progress {
    since: Option<Instant>,
    packets: u64,
    /// Of the last two periods.
    rates: [f64; 2],
}

impl Progress {
    /// So many `packets` were acknowledged.
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

    /// Packets per second, the higher of the last two periods; 0 if unknown.
    pub(super) fn rate(&self) -> f64 {
        self.rates[0].max(self.rates[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_what_is_acknowledged_however_it_comes() {
        let mut progress = Progress::default();
        assert_eq!(progress.rate(), 0.0);
        let round_trip = Duration::from_millis(20);
        // 4,000 packets a second, and all at once after 40 ms now and then.
        for i in 0..60 {
            let packets = if i % 15 < 3 { 0 } else { 40 + 120 * u32::from(i % 15 == 3) };
            progress.acknowledged(Instant::from_millis(1_000 + i * 10), packets, round_trip);
        }
        assert!((3_000.0..5_500.0).contains(&progress.rate()), "{}", progress.rate());
    }
}
