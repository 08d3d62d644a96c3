use std::collections::VecDeque;
use std::time::Duration;

use punctual_units::Instant;

use super::rivals::PathView;

/// The rate and the window of a sender beside BBR, which gives way neither to a queue nor to
/// losses: those of BBR itself (draft-cardwell-iccrg-bbr-congestion-control-00), so that each flow
/// gets about the same.
///
/// The sender keeps its highest recent arrival rate, and sends up to twice the packets that this
/// rate has in the network without a queue. Once in eight round trips it tries a higher rate. It
/// never stops to measure the least round trip: the pauses of the others show it.
#[derive(Debug)]
pub(super) struct Holding {
    /// The highest arrival rate of each of the last round trips, packets per second.
    rates: VecDeque<f64>,
    round_ends: Instant,
    /// The place in [`GAINS`].
    step: usize,
    step_began: Instant,
}

/// The number of round trips whose highest rate is kept (section 4.1.1.3: BtlBwFilterLen).
const ROUNDS: usize = 10;
/// The window as a multiple of the packets in the network without a queue (section 4.2.3.2:
/// cwnd_gain).
const WINDOW: f64 = 2.0;
/// The pace as a multiple of the rate, each for a least round trip (section 4.3.4.1).
const GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// The steps in which packets of the higher rate arrive. In others, more arrivals than the rate are
/// those of a queue that becomes shorter, and no sign of room.
const PROBED: usize = 2;
/// The longest time of the step with the higher rate, in least round trips.
const LONGEST_PROBE: u32 = 3;

impl Holding {
    /// From an arrival rate of `rate` packets per second on.
    pub(super) fn new(now: Instant, rate: f64) -> Self {
        Self { rates: VecDeque::from([rate]), round_ends: now, step: PROBED, step_began: now }
    }

    /// Follows a report, with `packets` in the network. A sender that does not use its window
    /// learns only from a higher rate.
    pub(super) fn follow(&mut self, now: Instant, path: &PathView, packets: u64, is_used: bool) {
        let highest = self.rate();
        let most = if self.step <= PROBED { GAINS[0] * highest } else { highest };
        let rate = path.rate.min(most);
        if is_used && now >= self.round_ends {
            self.round_ends = now + path.round_trip();
            self.rates.push_back(rate);
            if self.rates.len() > ROUNDS {
                self.rates.pop_front();
            }
        } else if let Some(newest) = self.rates.back_mut() {
            *newest = newest.max(rate);
        }
        if self.step_is_over(now, path.base, packets as f64) {
            self.step = (self.step + 1) % GAINS.len();
            self.step_began = now;
        }
    }

    /// The higher rate lasts until its packets are in the network, and the lower one until they
    /// have left it (section 4.3.4.3).
    fn step_is_over(&self, now: Instant, base: Duration, packets: f64) -> bool {
        let elapsed = now.saturating_since(self.step_began);
        let wanted = GAINS[self.step] * self.rate() * base.as_secs_f64();
        let is_long = elapsed >= base;
        match GAINS[self.step] {
            gain if gain > 1.0 => is_long && packets >= wanted || elapsed >= base * LONGEST_PROBE,
            gain if gain < 1.0 => is_long || packets <= self.rate() * base.as_secs_f64(),
            _ => is_long,
        }
    }

    /// The highest arrival rate, packets per second.
    fn rate(&self) -> f64 {
        self.rates.iter().copied().fold(0.0, f64::max)
    }

    /// The largest number of packets in the network over a path with this least round trip.
    pub(super) fn window(&self, base: Duration) -> f64 {
        WINDOW * self.rate() * base.as_secs_f64()
    }

    /// The rate of sending, packets per second.
    pub(super) fn pace(&self) -> f64 {
        GAINS[self.step] * self.rate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn view(rate: f64) -> PathView {
        PathView { base: MS(100), queue: MS(0), target: MS(12), rate }
    }

    /// Follows reports of this rate each 10 ms for a round trip, which begins at `ms`.
    fn round(holding: &mut Holding, ms: u64, rate: f64, is_used: bool) {
        for at in (ms..ms + 100).step_by(10) {
            holding.follow(Instant::from_millis(at), &view(rate), 150, is_used);
        }
    }

    #[test]
    fn the_window_is_twice_the_path_at_the_highest_rate_of_ten_rounds() {
        let mut holding = Holding::new(Instant::ORIGIN, 1_000.0);
        let windows = [0, 5, 12].map(|rounds| {
            let mut holding = Holding::new(Instant::ORIGIN, 1_000.0);
            (0..rounds).for_each(|n| round(&mut holding, 100 * n, 600.0, true));
            holding.window(MS(100))
        });
        assert_eq!(windows, [200.0, 200.0, 120.0]);
        (0..40).for_each(|n| round(&mut holding, 100 * n, 600.0, false));
        assert_eq!(holding.window(MS(100)), 200.0, "the application sends less");
    }

    #[test]
    fn each_eighth_round_trip_tries_a_higher_rate() {
        let mut holding = Holding::new(Instant::ORIGIN, 1_000.0);
        let mut paces = Vec::new();
        for n in 0..16 {
            round(&mut holding, 100 * n, 1_000.0, true);
            paces.push(holding.pace());
        }
        assert_eq!(paces.iter().filter(|&&pace| pace == 1_250.0).count(), 2, "{paces:?}");
        assert_eq!(paces.iter().filter(|&&pace| pace == 750.0).count(), 2, "{paces:?}");
    }

    #[test]
    fn only_a_try_finds_a_higher_rate() {
        let mut holding = Holding::new(Instant::ORIGIN, 1_000.0);
        holding.step = PROBED + 1;
        round(&mut holding, 0, 3_000.0, true);
        assert_eq!(holding.rate(), 1_000.0, "a queue that becomes shorter");
        holding.step = 0;
        holding.follow(Instant::from_millis(200), &view(1_100.0), 150, true);
        assert_eq!(holding.rate(), 1_100.0);
    }
}
