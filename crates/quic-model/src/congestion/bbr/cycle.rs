//! The cycle of gains by which BBR probes for bandwidth.

use std::time::Duration;

use punctual_units::Instant;

use super::Bandwidth;

/// Eight phases of a round trip: six at the bandwidth, one a quarter above it, and one below it to
/// drain the queue. While the bandwidth grows, the cycle is shorter, so that it probes more often.
#[derive(Clone, Debug, Default)]
pub(super) struct Cycle {
    phase: usize,
    /// The phase with which a cycle begins.
    first: usize,
    began: Instant,
    /// A loss ends the phase early.
    pub(super) ends_by_loss: bool,
}

impl Cycle {
    /// Begins on a path with this round-trip time. Longer ones begin nearer to the probe.
    pub(super) fn begin(&mut self, now: Instant, round_trip: Duration, bandwidth: &mut Bandwidth) {
        let hundreds = round_trip.min(Duration::from_millis(610)).as_millis() / 100;
        self.first = match usize::try_from(hundreds) {
            Ok(hundreds) if round_trip > Duration::from_millis(100) => hundreds.min(LATEST_FIRST),
            _ => 2,
        };
        self.phase = self.first;
        bandwidth.assume_growth();
        self.advance(now, bandwidth);
    }

    /// Begins in the third phase.
    pub(super) fn restart(&mut self, now: Instant, bandwidth: &mut Bandwidth) {
        self.phase = 2;
        self.advance(now, bandwidth);
    }

    /// The next phase.
    pub(super) fn advance(&mut self, now: Instant, bandwidth: &mut Bandwidth) {
        self.ends_by_loss = false;
        self.began = now;
        self.phase += 1;
        if self.phase >= GAINS.len() {
            self.first = match bandwidth.take_growth() {
                true => (self.first + 1).min(LATEST_FIRST),
                false => self.first.saturating_sub(1),
            };
            self.phase = self.first;
        }
    }

    /// The pacing gain of the phase.
    pub(super) fn gain(&self) -> f64 {
        GAINS[self.phase]
    }

    /// Whether the phase has lasted as long as a round trip, or ends early.
    pub(super) fn is_over(&self, now: Instant, round_trip: Duration) -> bool {
        self.ends_by_loss || now.saturating_since(self.began) > round_trip
    }
}

const GAINS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.25, 0.75];
/// The last phase with which a cycle may begin.
const LATEST_FIRST: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_probes_once_and_drains_after_it() {
        let (mut cycle, mut bandwidth) = (Cycle::default(), Bandwidth::default());
        cycle.begin(Instant::ORIGIN, Duration::from_millis(200), &mut bandwidth);
        let gains: Vec<f64> = (0..12)
            .map(|_| {
                let gain = cycle.gain();
                cycle.advance(Instant::ORIGIN, &mut bandwidth);
                gain
            })
            .collect();
        // From phase 3; the bandwidth counts as grown, so the next cycle begins with phase 3, and
        // the one after it with phase 2.
        let expected = [1.0, 1.0, 1.0, 1.25, 0.75, 1.0, 1.0, 1.0, 1.25, 0.75, 1.0, 1.0];
        assert_eq!(gains, expected);
    }

    #[test]
    fn a_phase_lasts_a_round_trip_or_until_a_loss() {
        let (mut cycle, mut bandwidth) = (Cycle::default(), Bandwidth::default());
        let round_trip = Duration::from_millis(50);
        cycle.restart(Instant::ORIGIN, &mut bandwidth);
        assert!(!cycle.is_over(Instant::from_millis(50), round_trip));
        assert!(cycle.is_over(Instant::from_millis(51), round_trip));
        cycle.ends_by_loss = true;
        assert!(cycle.is_over(Instant::from_millis(1), round_trip));
    }
}
