use std::time::Duration;

use punctual_rates::{FullPipe, Greatest, RoundCounter};
use punctual_units::{Bitrate, Instant};

use super::super::least_rtt::LeastRtt;
use super::super::{AckSummary, CongestionControl, INITIAL_WINDOW, RateSample};
use super::{
    FIRST_ROUND_TRIP, LARGEST_QUANTUM, LEAST_RTT, LEAST_WINDOW, PACING_MARGIN, PROBE_RTT_TIME,
    ROUND_TRIP_LIFETIME, SavedWindow, scale, scale_rate,
};
use crate::seeds::SplitMix64;

/// BBR, version 3 (draft-ietf-ccwg-bbr). It measures the path as version 1 does. Besides, it keeps
/// an upper bound of the packets in flight, which losses of more than 2 % show, and lower bounds of
/// rate and flight after each round trip with losses. Each five seconds it goes down to half a
/// bandwidth-delay product, to measure the round trip.
///
/// Without ECN, the detection of aggregated acknowledgements, and the response to idle times.
#[derive(Debug)]
pub(in crate::traffic) struct Bbr3 {
    packet: u64,
    mode: Mode,
    /// The highest rate of this cycle of probing and the one before (`BBR.max_bw`).
    bandwidth: Greatest<Bitrate>,
    cycle: u64,
    round_trip: ProbedRoundTrip,
    rounds: RoundCounter,
    full_pipe: FullPipe,
    bounds: Bounds,
    losses: LossSigns,
    probe: BandwidthProbe,
    recovery: SavedWindow,
    window: u64,
    pacing_rate: Bitrate,
    chance: SplitMix64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Mode {
    Startup,
    Drain,
    /// The phases of probing for bandwidth: empties the queue, keeps a distance to the bound,
    /// fills the pipe, raises the bound.
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt {
        done: Option<Instant>,
        round_done: bool,
    },
}

/// The least round trip of ten seconds, and when it is measured again.
#[derive(Debug)]
struct ProbedRoundTrip {
    least: LeastRtt,
    /// The least of five seconds.
    probed: LeastRtt,
    is_known: bool,
}

/// Bounds of what may be in flight, in bytes, and of the rate; `None` for no bound.
#[derive(Debug, Default)]
struct Bounds {
    upper_flight: Option<u64>,
    lower_flight: Option<u64>,
    lower_rate: Option<Bitrate>,
}

/// The signs of the present round trip.
#[derive(Debug, Default)]
struct LossSigns {
    is_lossy: bool,
    events: u32,
    highest_rate: Bitrate,
    most_delivered: u64,
}

/// The course of probing for bandwidth.
#[derive(Debug, Default)]
struct BandwidthProbe {
    cycle_began: Instant,
    wait: Duration,
    rounds_since: u64,
    /// Whether samples tell of a flight that probed, so that losses show the upper bound.
    samples: bool,
    /// The round trips of the present `Up`, which add 1, 2, 4 … packets each.
    raises: u32,
    /// Bytes acknowledged since the bound was raised.
    acknowledged: u64,
}

impl Bbr3 {
    /// A control for packets of `packet` bytes.
    pub(in crate::traffic) fn new(packet: u64, seed: u64) -> Self {
        let window = INITIAL_WINDOW * packet;
        Self {
            packet,
            mode: Mode::Startup,
            bandwidth: Greatest::of(2),
            cycle: 0,
            round_trip: ProbedRoundTrip {
                least: LeastRtt::new(ROUND_TRIP_LIFETIME),
                probed: LeastRtt::new(PROBE_RTT_INTERVAL),
                is_known: false,
            },
            rounds: RoundCounter::default(),
            full_pipe: FullPipe::default(),
            bounds: Bounds::default(),
            losses: LossSigns::default(),
            probe: BandwidthProbe::default(),
            recovery: SavedWindow::default(),
            window,
            pacing_rate: Bitrate::of(window, FIRST_ROUND_TRIP),
            chance: SplitMix64::new(seed),
        }
    }

    fn bandwidth(&self) -> Bitrate {
        let highest = self.bandwidth.get().unwrap_or(Bitrate::ZERO);
        self.bounds.lower_rate.map_or(highest, |bound| highest.min(bound))
    }

    /// Bytes: the bandwidth-delay product times `gain`.
    fn product(&self, gain: f64) -> u64 {
        let Some(round_trip) = self.round_trip.least.get() else {
            return INITIAL_WINDOW * self.packet;
        };
        let bits = u128::from(self.bandwidth().as_bits_per_sec());
        let bytes = bits * round_trip.as_nanos() / 8_000_000_000;
        scale(u64::try_from(bytes).unwrap_or(u64::MAX), gain)
    }

    /// Bytes: a product and room for the bursts of the sender.
    fn inflight(&self, gain: f64) -> u64 {
        let most = self.product(gain).max(3 * self.send_quantum()).max(LEAST_WINDOW * self.packet);
        if self.mode == Mode::Up { most + 2 * self.packet } else { most }
    }

    /// The bytes that a sender with segmentation offload sends at once.
    fn send_quantum(&self) -> u64 {
        let least = if self.pacing_rate < Bitrate::from_bits_per_sec(1_200_000) { 1 } else { 2 };
        let of_a_millisecond = self.pacing_rate.as_bytes_per_sec() / 1_000;
        of_a_millisecond.min(LARGEST_QUANTUM).max(least * self.packet)
    }

    /// The gains of pacing and of the window.
    fn gains(&self) -> (f64, f64) {
        match self.mode {
            Mode::Startup => (STARTUP_GAIN, 2.0),
            Mode::Drain => (0.5, 2.0),
            Mode::Down => (0.9, 2.0),
            Mode::Cruise | Mode::Refill => (1.0, 2.0),
            Mode::Up => (1.25, 2.25),
            Mode::ProbeRtt { .. } => (1.0, PROBE_RTT_GAIN),
        }
    }

    fn probes_bandwidth(&self) -> bool {
        matches!(self.mode, Mode::Down | Mode::Cruise | Mode::Refill | Mode::Up)
    }

    fn update_bandwidth(&mut self, ack: &AckSummary) {
        let Some(sample) = ack.rate.filter(RateSample::is_valid) else { return };
        self.losses.highest_rate = self.losses.highest_rate.max(sample.rate);
        self.losses.most_delivered =
            self.losses.most_delivered.max(ack.delivered - sample.prior_delivered);
        if !sample.is_app_limited || Some(sample.rate) >= self.bandwidth.get() {
            self.bandwidth.update(self.cycle, sample.rate);
        }
    }

    /// Lowers the bounds after a round trip with losses, while nothing probes.
    fn end_round(&mut self) {
        let probes = matches!(self.mode, Mode::Startup | Mode::Refill | Mode::Up);
        let losses = std::mem::take(&mut self.losses);
        if losses.is_lossy && !probes {
            let highest = self.bandwidth.get().unwrap_or(Bitrate::ZERO);
            let rate = self.bounds.lower_rate.unwrap_or(highest);
            let flight = self.bounds.lower_flight.unwrap_or(self.window);
            self.bounds.lower_rate = Some(losses.highest_rate.max(scale_rate(rate, BETA)));
            self.bounds.lower_flight = Some(losses.most_delivered.max(scale(flight, BETA)));
        }
        if self.mode == Mode::Startup && losses.is_lossy && losses.events >= STARTUP_LOSSES {
            self.full_pipe = FullPipe::full();
            self.bounds.upper_flight = Some(self.product(1.0).max(losses.most_delivered));
        }
    }

    /// Losses of more than 2 % of the flight show the upper bound; otherwise it may rise.
    fn update_upper_bound(&mut self, ack: &AckSummary, new_round: bool) {
        let Some(sample) = ack.rate else { return };
        let limit = sample.flight / 50;
        if ack.lost > 0 {
            self.losses.is_lossy = true;
            self.losses.events += 1;
        }
        let is_high = ack.lost > 0 && sample.lost > limit;
        if is_high {
            if self.probe.samples {
                self.probe.samples = false;
                let least = scale(self.target(), BETA);
                if !sample.is_app_limited {
                    self.bounds.upper_flight = Some(sample.flight.max(least));
                }
                if self.mode == Mode::Up {
                    self.go_down(ack);
                }
            }
            return;
        }
        let Some(bound) = &mut self.bounds.upper_flight else { return };
        *bound = (*bound).max(sample.flight);
        if self.mode == Mode::Up {
            self.raise_upper_bound(ack, new_round);
        }
    }

    fn raise_upper_bound(&mut self, ack: &AckSummary, new_round: bool) {
        let Some(bound) = self.bounds.upper_flight else { return };
        if !ack.window_limited || self.window < bound {
            return;
        }
        if new_round {
            self.probe.raises = (self.probe.raises + 1).min(30);
        }
        self.probe.acknowledged += ack.packets * self.packet;
        let step = (self.window >> self.probe.raises).max(self.packet);
        let steps = self.probe.acknowledged / step;
        self.probe.acknowledged -= steps * step;
        self.bounds.upper_flight = Some(bound + steps * self.packet);
    }

    /// Bytes: one product, or the bound if it is lower.
    fn target(&self) -> u64 {
        let product = self.product(1.0);
        product.min(self.bounds.upper_flight.unwrap_or(u64::MAX)).min(self.window)
    }

    /// Bytes: the upper bound less a room for other flows.
    fn bound_with_headroom(&self) -> u64 {
        let Some(bound) = self.bounds.upper_flight else { return u64::MAX };
        let room = scale(bound, HEADROOM).max(self.packet);
        bound.saturating_sub(room).max(LEAST_WINDOW * self.packet)
    }

    fn advance(&mut self, ack: &AckSummary, new_round: bool) {
        if self.mode == Mode::Startup && self.full_pipe.is_full() {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && ack.flight <= self.inflight(1.0) {
            self.go_down(ack);
        }
        if !self.probes_bandwidth() {
            return;
        }
        self.probe.rounds_since += u64::from(new_round);
        match self.mode {
            Mode::Down | Mode::Cruise if self.is_time_to_probe(ack) => self.refill(ack),
            Mode::Down if ack.flight <= self.bound_with_headroom().min(self.inflight(1.0)) => {
                self.mode = Mode::Cruise;
            }
            Mode::Refill if new_round => {
                self.mode = Mode::Up;
                self.probe.samples = true;
                self.probe.raises = 0;
                self.probe.cycle_began = ack.now;
                self.full_pipe = FullPipe::default();
                self.full_pipe.round_passed(self.bandwidth().as_bits_per_sec());
                self.rounds.restart(ack.delivered);
            }
            Mode::Up => self.end_up(ack),
            _ => {}
        }
    }

    /// Raising goes on while the upper bound is the limit, and ends when the rate no longer grows.
    fn end_up(&mut self, ack: &AckSummary) {
        let is_bounded = self.bounds.upper_flight.is_some_and(|bound| self.window >= bound);
        if ack.window_limited && is_bounded {
            self.full_pipe = FullPipe::default();
            self.full_pipe.round_passed(ack.rate.map_or(0, |rate| rate.rate.as_bits_per_sec()));
        } else if self.full_pipe.is_full() {
            self.go_down(ack);
        }
    }

    /// After two to three seconds, or as many round trips as packets are in the pipe, at most 63:
    /// as often as a flow of Reno loses a packet.
    fn is_time_to_probe(&self, ack: &AckSummary) -> bool {
        let of_reno = (self.target() / self.packet).min(63);
        ack.now - self.probe.cycle_began > self.probe.wait || self.probe.rounds_since >= of_reno
    }

    fn go_down(&mut self, ack: &AckSummary) {
        self.mode = Mode::Down;
        self.cycle += 1;
        self.full_pipe = FullPipe::full();
        self.probe = BandwidthProbe {
            cycle_began: ack.now,
            wait: Duration::from_millis(2_000 + self.chance.next() % 1_000),
            rounds_since: self.chance.next() % 2,
            samples: false,
            ..BandwidthProbe::default()
        };
        self.losses = LossSigns::default();
        self.rounds.restart(ack.delivered);
    }

    fn refill(&mut self, ack: &AckSummary) {
        self.mode = Mode::Refill;
        self.bounds.lower_flight = None;
        self.bounds.lower_rate = None;
        self.losses = LossSigns::default();
        self.rounds.restart(ack.delivered);
    }

    fn update_round_trip(&mut self, ack: &AckSummary, new_round: bool) {
        let is_old = self.round_trip.probed.update(ack.now, ack.rtt);
        self.round_trip.least.update(ack.now, ack.rtt);
        let probes = matches!(self.mode, Mode::ProbeRtt { .. });
        if is_old && !probes {
            self.save_window();
            self.mode = Mode::ProbeRtt { done: None, round_done: false };
        }
        let Mode::ProbeRtt { done, round_done } = self.mode else { return };
        match done {
            None if ack.flight <= self.probe_rtt_window() => {
                let done = Some(ack.now + PROBE_RTT_TIME);
                self.mode = Mode::ProbeRtt { done, round_done: false };
                self.rounds.restart(ack.delivered);
            }
            None => {}
            Some(_) if new_round => self.mode = Mode::ProbeRtt { done, round_done: true },
            Some(_) => {}
        }
        if done.is_some_and(|done| ack.now > done) && (round_done || new_round) {
            self.round_trip.probed.refresh(ack.now);
            self.window = self.window.max(self.recovery.prior_window);
            self.bounds.lower_flight = None;
            self.bounds.lower_rate = None;
            if self.full_pipe.is_full() {
                self.go_down(ack);
                self.mode = Mode::Cruise;
            } else {
                self.mode = Mode::Startup;
            }
        }
    }

    fn probe_rtt_window(&self) -> u64 {
        self.product(PROBE_RTT_GAIN).max(LEAST_WINDOW * self.packet)
    }

    fn save_window(&mut self) {
        let probes = matches!(self.mode, Mode::ProbeRtt { .. });
        self.recovery.save(self.window, probes);
    }

    fn set_pacing_rate(&mut self, ack: &AckSummary) {
        if let Some(rtt) = ack.rtt
            && !self.round_trip.is_known
        {
            self.round_trip.is_known = true;
            let first = Bitrate::of(INITIAL_WINDOW * self.packet, rtt.max(LEAST_RTT));
            self.pacing_rate = scale_rate(first, STARTUP_GAIN);
        }
        let rate = scale_rate(self.bandwidth(), self.gains().0 * PACING_MARGIN);
        if self.full_pipe.is_full() || self.mode == Mode::Up || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    fn set_window(&mut self, ack: &AckSummary) {
        let acked = ack.packets * self.packet;
        let most = self.inflight(self.gains().1);
        if self.recovery.is_on && ack.lost > 0 {
            self.window = self.window.saturating_sub(ack.lost * self.packet).max(self.packet);
        }
        if self.recovery.conserves {
            self.window = self.window.max(ack.flight + acked);
        } else if self.full_pipe.is_full() || self.mode == Mode::Up {
            self.window = (self.window + acked).min(most);
        } else if self.window < most || ack.delivered < INITIAL_WINDOW * self.packet {
            self.window += acked;
        }
        let bound = match self.mode {
            Mode::Down | Mode::Refill | Mode::Up => self.bounds.upper_flight.unwrap_or(u64::MAX),
            Mode::Cruise | Mode::ProbeRtt { .. } => self.bound_with_headroom(),
            Mode::Startup | Mode::Drain => u64::MAX,
        };
        let bound = bound.min(self.bounds.lower_flight.unwrap_or(u64::MAX));
        self.window = self.window.min(bound).max(LEAST_WINDOW * self.packet);
        if matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.window = self.window.min(self.probe_rtt_window());
        }
    }
}

impl CongestionControl for Bbr3 {
    fn window(&self) -> u64 {
        self.window
    }

    fn pacing_rate(&self) -> Option<Bitrate> {
        Some(self.pacing_rate)
    }

    fn reduces_in_proportion(&self) -> bool {
        false
    }

    fn on_ack(&mut self, ack: &AckSummary) {
        let new_round = ack.begins_round(&mut self.rounds);
        self.update_bandwidth(ack);
        self.update_upper_bound(ack, new_round);
        if new_round {
            self.recovery.conserves = false;
            self.end_round();
            let is_app_limited = ack.rate.is_none_or(|rate| rate.is_app_limited);
            if !is_app_limited && matches!(self.mode, Mode::Startup | Mode::Up) {
                let highest = self.bandwidth.get().unwrap_or(Bitrate::ZERO);
                self.full_pipe.round_passed(highest.as_bits_per_sec());
            }
        }
        self.advance(ack, new_round);
        self.update_round_trip(ack, new_round);
        self.set_pacing_rate(ack);
        self.set_window(ack);
    }

    fn on_loss(&mut self, ack: &AckSummary) {
        self.save_window();
        self.recovery.is_on = true;
        self.recovery.conserves = true;
        self.window = ack.flight + ack.packets.max(1) * self.packet;
    }

    fn on_recovered(&mut self) {
        self.recovery.is_on = false;
        self.recovery.conserves = false;
        self.window = self.window.max(self.recovery.prior_window);
    }

    fn on_timeout(&mut self, _: Instant, _: u64, _: bool) {
        self.save_window();
        self.recovery.is_on = true;
        self.recovery.conserves = false;
        self.window = self.packet;
    }
}

/// 4 ln 2: the least gain by which the rate doubles each round trip.
const STARTUP_GAIN: f64 = 2.77;
/// The share of a bound that a round trip with losses leaves.
const BETA: f64 = 0.7;
/// The share of the upper bound that is left to others.
const HEADROOM: f64 = 0.15;
/// Answers with losses in a round trip that end `Startup`.
const STARTUP_LOSSES: u32 = 6;
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
const PROBE_RTT_GAIN: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::super::super::testing::ack;
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// A path of 8 Mb/s and 100 ms, with one answer each round trip for all packets of it; its
    /// bandwidth-delay product is 100 packets of 1,000 bytes.
    struct Path {
        control: Bbr3,
        now: Duration,
        delivered: u64,
    }

    impl Path {
        fn new() -> Self {
            Self { control: Bbr3::new(1_000, 1), now: MS(0), delivered: 0 }
        }

        /// A round trip in which `lost` packets of the flight are lost.
        fn round(&mut self, rtt: Duration, lost: u64) {
            self.now += rtt;
            let flight =
                self.control.window().min(self.control.pacing_rate.as_bytes_per_sec() / 10);
            let bytes = flight.min(100_000) - lost * 1_000;
            let prior_delivered = self.delivered;
            self.delivered += bytes;
            let rate = RateSample {
                rate: Bitrate::of(bytes, MS(100)),
                prior_delivered,
                interval: MS(100),
                is_app_limited: false,
                flight,
                lost: lost * 1_000,
            };
            self.control.on_ack(&AckSummary {
                delivered: self.delivered,
                rate: Some(rate),
                prior_flight: flight,
                flight,
                lost,
                ..ack(self.now, bytes / 1_000, rtt)
            });
        }
    }

    #[test]
    fn the_start_ends_with_the_rate_of_the_path() {
        let mut path = Path::new();
        (0..12).for_each(|_| path.round(MS(100), 0));
        assert!(path.control.probes_bandwidth(), "{:?}", path.control.mode);
        assert_eq!(path.control.bandwidth(), Bitrate::from_mbps(8));
    }

    #[test]
    fn the_round_trip_is_measured_each_five_seconds_with_half_a_product() {
        let mut path = Path::new();
        let small: Vec<u64> = (0..220)
            .filter(|_| {
                let has_queue = path.now > MS(500) && path.control.window() > 60_000;
                path.round(MS(if has_queue { 101 } else { 100 }), 0);
                matches!(path.control.mode, Mode::ProbeRtt { .. })
            })
            .collect();
        let begins: Vec<u64> =
            small.iter().copied().filter(|round| !small.contains(&(round - 1))).collect();
        assert!(begins.len() >= 3, "{small:?}");
        // Five seconds after the last one, and the rounds of it.
        let times: Vec<u64> = begins.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(times.iter().all(|rounds| (50..56).contains(rounds)), "{times:?}");
    }

    #[test]
    fn losses_of_more_than_two_percent_bound_the_flight() {
        let mut path = Path::new();
        (0..12).for_each(|_| path.round(MS(100), 0));
        let probing = (0..60).find(|_| {
            path.round(MS(100), 0);
            path.control.mode == Mode::Up
        });
        assert!(probing.is_some(), "{:?}", path.control);
        path.round(MS(100), 1);
        assert_eq!(path.control.bounds.upper_flight, None, "one in a hundred");
        path.round(MS(100), 5);
        assert_eq!(path.control.mode, Mode::Down);
        let bound = path.control.bounds.upper_flight.expect("a bound");
        assert!((70_000..=140_000).contains(&bound), "{bound} bytes");
    }
}
