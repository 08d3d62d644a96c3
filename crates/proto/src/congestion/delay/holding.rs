use std::collections::VecDeque;
use std::time::Duration;

use punctual_units::Instant;

use super::pauses::NONE;
use super::rise::{self, Rise};
use super::rivals::PathView;

/// The rate and the window of a sender beside BBR, which gives way neither to a queue nor to
/// losses: those of BBR itself (draft-cardwell-iccrg-bbr-congestion-control-00), so that each flow
/// gets about the same.
///
/// The sender keeps its highest recent arrival rate, and sends up to twice the packets that this
/// rate has in the network without a queue. Once in eight round trips it tries a higher rate. It
/// pauses to measure the least round trip only if the pauses of the others do not empty the queue,
/// which happens when it has most of the link. The room that others leave in a pause is theirs, so
/// that no higher rate counts then.
#[derive(Debug)]
pub(super) struct Holding {
    /// The highest arrival rate of each of the last round trips, packets per second.
    rates: VecDeque<f64>,
    round_ends: Instant,
    /// The place in [`GAINS`].
    step: usize,
    step_began: Instant,
    /// The first round trips.
    rise: Option<Rise>,
    /// When the queue was last empty, or a pause of this sender ended.
    empty_at: Option<Instant>,
    /// Since when it has been empty, but for moments.
    empty_since: Instant,
    /// The end of a pause.
    pauses_until: Option<Instant>,
    /// The number of pauses since others emptied the queue.
    own_pauses: u32,
    /// The packets that were lost in this round trip (section 4.2.3.4: the window of BBR is smaller
    /// by them in the first round trip of a recovery).
    lost: f64,
}

/// The number of round trips whose highest rate is kept (section 4.1.1.3: BtlBwFilterLen).
const ROUNDS: usize = 10;
/// The window as a multiple of the packets in the network without a queue. BBR has 2 (section
/// 4.2.3.2: cwnd_gain), with which this sender gets three fourths of a long link beside BBR.
const WINDOW: f64 = 1.85;
/// The window is larger by the packets of this time, as that of BBR is by three send quanta
/// (section 4.2.3.2): the reports of arrivals, one each 10 ms, are so old on average.
const REPORTS: Duration = Duration::from_millis(5);
/// Losses of a round trip leave this share of the window at least.
const LEAST: f64 = 0.5;
/// The pace as a multiple of the rate, each for a least round trip (section 4.3.4.1).
const GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// The steps in which packets of the higher rate arrive. In others, more arrivals than the rate are
/// those of a queue that becomes shorter, and no sign of room.
const PROBED: usize = 2;
/// The longest time of the step with the higher rate, in least round trips.
const LONGEST_PROBE: u32 = 3;
/// The step with the lower rate, which follows the first round trips as well.
const LOWER: usize = 1;
/// The least round trips after an empty queue in which arrivals may be those of the room that
/// others left: a round trip until the sender's packets show it, and one in which they are counted.
const ECHO: u32 = 2;
/// A queue that is empty for longer, beyond that, is no pause: others are gone.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// A sender pauses when the queue was not empty for this time, longer than that between two pauses
/// of BBR, and for this time beyond a round trip (section 4.3.5: ProbeRTTDuration).
const WITHOUT_PAUSE: Duration = Duration::from_secs(12);
const PAUSE: Duration = Duration::from_millis(200);

impl Holding {
    /// From an arrival rate of `rate` packets per second on, over a link that has carried
    /// `highest`.
    pub(super) fn new(now: Instant, rate: f64, highest: f64) -> Self {
        Self {
            rates: VecDeque::from([rate]),
            round_ends: now,
            step: PROBED,
            step_began: now,
            rise: Rise::begin(rate, highest),
            empty_at: None,
            empty_since: now,
            pauses_until: None,
            own_pauses: 0,
            lost: 0.0,
        }
    }

    /// Follows a report, with `packets` in the network. A sender that does not use its window
    /// learns only from a higher rate.
    pub(super) fn follow(&mut self, now: Instant, path: &PathView, packets: u64, is_used: bool) {
        if path.queue <= NONE {
            if self.empty_at.is_none_or(|at| now > at + path.base * ECHO) {
                self.empty_since = now;
                self.own_pauses = if self.pauses_until.is_some() { self.own_pauses } else { 0 };
            }
            self.empty_at = Some(now);
        }
        self.follow_pause(now, path.base);
        let rate = path.rate.min(self.most(now, path.base));
        if is_used && now >= self.round_ends {
            self.round_ends = now + path.round_trip();
            self.lost = 0.0;
            let highest = self.rate();
            if self.rise.as_mut().is_some_and(|rise| rise.ends(highest)) {
                self.rise = None;
                (self.step, self.step_began) = (LOWER, now);
            }
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

    /// Whether nobody else has emptied the queue for two pauses.
    pub(super) const fn is_alone(&self) -> bool {
        self.own_pauses >= 2
    }

    /// Packets were lost.
    pub(super) fn lost(&mut self, packets: u64) {
        self.lost += packets as f64;
    }

    fn follow_pause(&mut self, now: Instant, base: Duration) {
        if self.pauses_until.is_some_and(|end| now >= end) {
            self.pauses_until = None;
            self.own_pauses += 1;
            self.empty_at = Some(now);
        }
        if now >= *self.empty_at.get_or_insert(now) + WITHOUT_PAUSE {
            self.pauses_until.get_or_insert(now + base + PAUSE);
        }
    }

    /// The highest arrival rate that is believed now.
    fn most(&self, now: Instant, base: Duration) -> f64 {
        let highest = self.rate();
        let was_empty = || self.empty_at.is_some_and(|at| now < at + base * ECHO);
        let others_pause = || was_empty() && now < self.empty_since + LONGEST_PAUSE + base * ECHO;
        match self.rise {
            Some(rise) => rise.most(highest),
            None if self.step <= PROBED && !others_pause() => GAINS[0] * highest,
            None => highest,
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

    /// The largest number of packets in the network over a path with this least round trip; none in
    /// a pause.
    pub(super) fn window(&self, base: Duration) -> f64 {
        let gain = match (self.pauses_until, self.rise) {
            (Some(_), _) => return 0.0,
            (None, Some(_)) => rise::GAIN,
            (None, None) => WINDOW,
        };
        let window = self.rate() * (gain * base.as_secs_f64() + REPORTS.as_secs_f64());
        (window - self.lost).max(LEAST * window)
    }

    /// The rate of sending, packets per second.
    pub(super) fn pace(&self) -> f64 {
        let gain = if self.rise.is_some() { rise::GAIN } else { GAINS[self.step] };
        gain * self.rate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn view(rate: f64) -> PathView {
        PathView { base: MS(100), queue: MS(1), target: MS(12), rate }
    }

    /// The window, to a tenth of a packet.
    fn window(holding: &Holding) -> f64 {
        (holding.window(MS(100)) * 10.0).round() / 10.0
    }

    /// Follows reports of this rate each 10 ms for a round trip, which begins at `ms`.
    fn round(holding: &mut Holding, ms: u64, rate: f64, is_used: bool) {
        for at in (ms..ms + 100).step_by(10) {
            holding.follow(Instant::from_millis(at), &view(rate), 150, is_used);
        }
    }

    #[test]
    fn the_window_follows_the_highest_rate_of_ten_rounds() {
        let mut holding = Holding::new(Instant::ORIGIN, 1_000.0, 1_000.0);
        let windows = [0, 5, 12].map(|rounds| {
            let mut holding = Holding::new(Instant::ORIGIN, 1_000.0, 1_000.0);
            (0..rounds).for_each(|n| round(&mut holding, 100 * n, 600.0, true));
            window(&holding)
        });
        assert_eq!(windows, [190.0, 190.0, 114.0]);
        (0..40).for_each(|n| round(&mut holding, 100 * n, 600.0, false));
        assert_eq!(window(&holding), 190.0, "the application sends less");
    }

    #[test]
    fn losses_make_the_window_smaller_for_a_round_trip() {
        let mut holding = Holding::new(Instant::ORIGIN, 1_000.0, 1_000.0);
        holding.lost(25);
        assert_eq!(window(&holding), 165.0);
        holding.lost(500);
        assert_eq!(window(&holding), 95.0, "at least half of it is left");
        round(&mut holding, 0, 1_000.0, true);
        assert_eq!(window(&holding), 190.0);
    }

    #[test]
    fn the_sender_pauses_if_pauses_of_others_do_not_empty_the_queue() {
        let mut holding = Holding::new(Instant::ORIGIN, 1_000.0, 1_000.0);
        let paused: Vec<u64> = (0..20_000)
            .step_by(100)
            .filter(|&ms| {
                round(&mut holding, ms, 1_000.0, true);
                window(&holding) == 0.0
            })
            .collect();
        assert_eq!(paused, [12_000, 12_100, 12_200]);
        let mut holding = Holding::new(Instant::ORIGIN, 1_000.0, 1_000.0);
        for ms in (0..60_000).step_by(10) {
            let queue = MS(if ms % 10_400 < 200 { 0 } else { 50 });
            let path = PathView { queue, ..view(1_000.0) };
            holding.follow(Instant::from_millis(ms), &path, 150, true);
            assert!(window(&holding) > 0.0, "{ms} ms: others pause");
        }
    }

    #[test]
    fn each_eighth_round_trip_tries_a_higher_rate() {
        let mut holding = Holding::new(Instant::ORIGIN, 1_000.0, 1_000.0);
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
        let mut holding = Holding::new(Instant::ORIGIN, 1_000.0, 1_000.0);
        holding.step = PROBED + 1;
        round(&mut holding, 0, 3_000.0, true);
        assert_eq!(holding.rate(), 1_000.0, "a queue that becomes shorter");
        holding.step = 0;
        holding.follow(Instant::from_millis(200), &view(1_100.0), 150, true);
        assert_eq!(holding.rate(), 1_100.0);
        let pause = PathView { queue: MS(0), ..view(1_200.0) };
        holding.follow(Instant::from_millis(210), &pause, 150, true);
        assert_eq!(holding.rate(), 1_100.0, "others pause");
        for ms in (220..1_500).step_by(10) {
            let empty = PathView { queue: MS(0), ..view(1_200.0) };
            holding.step = 0;
            holding.follow(Instant::from_millis(ms), &empty, 150, true);
        }
        assert_eq!(holding.rate(), 1_200.0, "others are gone");
    }

    #[test]
    fn a_sender_rises_to_half_of_the_link_at_once() {
        let mut holding = Holding::new(Instant::ORIGIN, 500.0, 4_000.0);
        assert_eq!((holding.pace(), window(&holding)), (1_445.0, 147.0));
        (0..3).for_each(|n| round(&mut holding, 200 * n, 2_000.0, true));
        assert_eq!(holding.rate(), 2_000.0);
        assert_eq!(holding.pace(), 2_000.0, "the rise is over");
    }
}
