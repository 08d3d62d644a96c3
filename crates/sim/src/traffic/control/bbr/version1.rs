use punctual_rates::{FullPipe, Greatest, RoundCounter};
use punctual_units::{Bitrate, Instant};

use super::super::least_rtt::LeastRtt;
use super::super::{AckSummary, CongestionControl, INITIAL_WINDOW};
use super::{
    FIRST_ROUND_TRIP, LARGEST_QUANTUM, LEAST_RTT, LEAST_WINDOW, PACING_MARGIN, PROBE_RTT_TIME,
    ROUND_TRIP_LIFETIME, SavedWindow, scale, scale_rate,
};
use crate::seeds::SplitMix64;

/// BBR, version 1 (draft-cardwell-iccrg-bbr-congestion-control-00): it sends at the highest rate
/// at which packets arrived, with at most two bandwidth-delay products in flight.
///
/// As in Linux, it sends 1 % more slowly than it could, and drains the queue after each time that
/// it probed. Without Linux' detection of policers and of aggregated acknowledgements, which the
/// draft does not have.
#[derive(Debug)]
pub(in crate::traffic) struct Bbr1 {
    packet: u64,
    mode: Mode,
    /// `BtlBw`.
    bandwidth: Greatest<Bitrate>,
    /// `RTprop`.
    round_trip: LeastRtt,
    rounds: RoundCounter,
    full_pipe: FullPipe,
    recovery: SavedWindow,
    window: u64,
    pacing_rate: Bitrate,
    /// Samples of packets that were sent before this byte arrived tell of a window of `ProbeRtt`.
    unrepresentative_up_to: u64,
    is_restarting: bool,
    has_round_trip: bool,
    chance: SplitMix64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Mode {
    Startup,
    Drain,
    ProbeBandwidth { phase: usize, since: Instant },
    ProbeRtt { done: Option<Instant>, round_done: bool },
}

impl Bbr1 {
    /// A control for packets of `packet` bytes.
    pub(in crate::traffic) fn new(packet: u64, seed: u64) -> Self {
        let window = INITIAL_WINDOW * packet;
        Self {
            packet,
            mode: Mode::Startup,
            bandwidth: Greatest::of(BANDWIDTH_ROUNDS),
            round_trip: LeastRtt::new(ROUND_TRIP_LIFETIME),
            rounds: RoundCounter::default(),
            full_pipe: FullPipe::default(),
            recovery: SavedWindow::default(),
            window,
            pacing_rate: scale_rate(Bitrate::of(window, FIRST_ROUND_TRIP), HIGH_GAIN),
            unrepresentative_up_to: 0,
            is_restarting: false,
            has_round_trip: false,
            chance: SplitMix64::new(seed),
        }
    }

    /// The highest rate of the latest round trips; zero before the first sample.
    fn bandwidth(&self) -> Bitrate {
        self.bandwidth.get().unwrap_or(Bitrate::ZERO)
    }

    fn update_bandwidth(&mut self, ack: &AckSummary) {
        let Some(sample) = ack.rate else { return };
        let is_low = sample.is_app_limited || sample.prior_delivered < self.unrepresentative_up_to;
        if sample.is_valid() && (!is_low || sample.rate >= self.bandwidth()) {
            self.bandwidth.update(self.rounds.count(), sample.rate);
        }
    }

    fn advance_phase(&mut self, ack: &AckSummary) {
        let Mode::ProbeBandwidth { phase, since } = self.mode else { return };
        let is_long = ack.now - since > self.round_trip.get().unwrap_or_default();
        let gain = PACING_GAINS[phase];
        let is_over = if gain > 1.0 {
            is_long && (ack.lost > 0 || ack.prior_flight >= self.inflight(gain))
        } else if gain < 1.0 {
            is_long || ack.prior_flight <= self.inflight(1.0)
        } else {
            is_long
        };
        if is_over {
            self.mode =
                Mode::ProbeBandwidth { phase: (phase + 1) % PACING_GAINS.len(), since: ack.now };
        }
    }

    fn leave_startup(&mut self, ack: &AckSummary, new_round: bool) {
        let is_app_limited = ack.rate.is_none_or(|rate| rate.is_app_limited);
        if new_round && !is_app_limited {
            self.full_pipe.round_passed(self.bandwidth().as_bits_per_sec());
        }
        if self.mode == Mode::Startup && self.full_pipe.is_full() {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && ack.flight <= self.inflight(1.0) {
            self.probe_bandwidth(ack.now);
        }
    }

    /// Begins with any phase but the one that drains.
    fn probe_bandwidth(&mut self, now: Instant) {
        let others = PACING_GAINS.len() as u64 - 1;
        let drawn = usize::try_from(self.chance.next() % others).unwrap_or(0);
        let phase = (drawn + DRAIN_PHASE + 1) % PACING_GAINS.len();
        self.mode = Mode::ProbeBandwidth { phase, since: now };
    }

    fn update_round_trip(&mut self, ack: &AckSummary, new_round: bool) {
        let is_old = self.round_trip.update(ack.now, ack.rtt);
        let probes = matches!(self.mode, Mode::ProbeRtt { .. });
        if is_old && !probes && !self.is_restarting {
            self.save_window();
            self.mode = Mode::ProbeRtt { done: None, round_done: false };
        }
        if ack.packets > 0 {
            self.is_restarting = false;
        }
        let Mode::ProbeRtt { done, round_done } = self.mode else { return };
        self.unrepresentative_up_to = ack.delivered + ack.flight;
        match done {
            None if ack.flight <= LEAST_WINDOW * self.packet => {
                let done = Some(ack.now + PROBE_RTT_TIME);
                self.mode = Mode::ProbeRtt { done, round_done: false };
                self.rounds.restart(ack.delivered);
            }
            None => {}
            Some(_) if new_round => self.mode = Mode::ProbeRtt { done, round_done: true },
            Some(_) => {}
        }
        if done.is_some_and(|done| ack.now > done) && (round_done || new_round) {
            self.round_trip.refresh(ack.now);
            self.window = self.window.max(self.recovery.prior_window);
            if self.full_pipe.is_full() {
                self.probe_bandwidth(ack.now);
            } else {
                self.mode = Mode::Startup;
            }
        }
    }

    fn save_window(&mut self) {
        let probes = matches!(self.mode, Mode::ProbeRtt { .. });
        self.recovery.save(self.window, probes);
    }

    fn set_pacing_rate(&mut self, ack: &AckSummary) {
        if let Some(rtt) = ack.rtt
            && !self.has_round_trip
        {
            self.has_round_trip = true;
            let first = Bitrate::of(INITIAL_WINDOW * self.packet, rtt.max(LEAST_RTT));
            self.pacing_rate = scale_rate(first, HIGH_GAIN);
        }
        let rate = scale_rate(self.bandwidth(), self.gains().0 * PACING_MARGIN);
        if self.full_pipe.is_full() || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    fn set_window(&mut self, ack: &AckSummary) {
        let acked = ack.packets * self.packet;
        if self.recovery.is_on && ack.lost > 0 {
            self.window = self.window.saturating_sub(ack.lost * self.packet).max(self.packet);
        }
        if self.recovery.conserves {
            self.window = self.window.max(ack.flight + acked);
        } else if acked > 0 {
            let target = self.inflight(self.gains().1);
            if self.full_pipe.is_full() {
                self.window = (self.window + acked).min(target);
            } else if self.window < target || ack.delivered < INITIAL_WINDOW * self.packet {
                self.window += acked;
            }
            self.window = self.window.max(LEAST_WINDOW * self.packet);
        }
        if matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.window = self.window.min(LEAST_WINDOW * self.packet);
        }
    }

    /// The gains of pacing and of the window.
    fn gains(&self) -> (f64, f64) {
        match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (1.0 / HIGH_GAIN, HIGH_GAIN),
            Mode::ProbeBandwidth { phase, .. } => (PACING_GAINS[phase], WINDOW_GAIN),
            Mode::ProbeRtt { .. } => (1.0, 1.0),
        }
    }

    /// The bandwidth-delay product times `gain`, and room for the bursts of the two ends; bytes.
    fn inflight(&self, gain: f64) -> u64 {
        let Some(round_trip) = self.round_trip.get() else {
            return INITIAL_WINDOW * self.packet;
        };
        let bits = u128::from(self.bandwidth().as_bits_per_sec());
        let product = bits * round_trip.as_nanos() / 8_000_000_000;
        let bytes = scale(u64::try_from(product).unwrap_or(u64::MAX), gain);
        bytes + 3 * self.send_quantum()
    }

    /// The bytes that a sender with segmentation offload sends at once.
    fn send_quantum(&self) -> u64 {
        match self.pacing_rate {
            rate if rate < Bitrate::from_bits_per_sec(1_200_000) => self.packet,
            rate if rate < Bitrate::from_mbps(24) => 2 * self.packet,
            rate => (rate.as_bytes_per_sec() / 1_000).min(LARGEST_QUANTUM).max(2 * self.packet),
        }
    }
}

impl CongestionControl for Bbr1 {
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
        if new_round {
            self.recovery.conserves = false;
        }
        self.update_bandwidth(ack);
        self.advance_phase(ack);
        self.leave_startup(ack, new_round);
        self.update_round_trip(ack, new_round);
        self.set_pacing_rate(ack);
        self.set_window(ack);
    }

    fn on_loss(&mut self, ack: &AckSummary) {
        self.save_window();
        self.recovery.is_on = true;
        self.recovery.conserves = true;
        self.rounds.restart(ack.delivered);
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
        self.full_pipe.forget_rate();
        self.window = self.packet;
    }

    fn on_restart(&mut self) {
        self.is_restarting = true;
        if matches!(self.mode, Mode::ProbeBandwidth { .. }) {
            self.pacing_rate = scale_rate(self.bandwidth(), PACING_MARGIN);
        }
    }
}

/// 2 / ln 2: the least gain by which the rate doubles each round trip.
const HIGH_GAIN: f64 = 2.885_390_081_777_927;
const WINDOW_GAIN: f64 = 2.0;
/// One phase each least round trip: probing, draining, and six at the rate.
const PACING_GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const DRAIN_PHASE: usize = 1;
const BANDWIDTH_ROUNDS: u64 = 10;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::super::testing::ack;
    use super::*;
    use crate::traffic::tcp::delivery_rate::RateSample;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// A path that delivers at most `mbps` with a round trip of 100 ms; one answer each round trip
    /// for all packets of it.
    struct Path {
        control: Bbr1,
        now: Duration,
        delivered: u64,
    }

    impl Path {
        fn new() -> Self {
            Self { control: Bbr1::new(1_000, 1), now: Duration::ZERO, delivered: 0 }
        }

        fn round(&mut self, mbps: u64, rtt: Duration) -> (f64, f64) {
            self.now += rtt;
            let most = Bitrate::from_mbps(mbps).as_bytes_per_sec() / 10;
            let bytes = self.control.window().min(most);
            let prior_delivered = self.delivered;
            self.delivered += bytes;
            let rate = RateSample {
                rate: Bitrate::of(bytes, MS(100)),
                prior_delivered,
                interval: MS(100),
                is_app_limited: false,
                ..RateSample::default()
            };
            self.control.on_ack(&AckSummary {
                delivered: self.delivered,
                rate: Some(rate),
                prior_flight: self.control.window(),
                flight: self.control.window().min(self.control.pacing_rate.as_bytes_per_sec() / 10),
                ..ack(self.now, bytes / 1_000, rtt)
            });
            self.control.gains()
        }
    }

    #[test]
    fn startup_ends_after_three_rounds_without_a_higher_rate() {
        let mut path = Path::new();
        let gains: Vec<f64> = (0..8).map(|_| path.round(8, MS(100)).0).collect();
        // 10, 20, 40, 80 packets and then 100, which the path delivers: 8 Mb/s.
        let startup = gains.iter().take_while(|gain| **gain == HIGH_GAIN).count();
        assert_eq!(startup, 7, "{gains:?}");
        assert_eq!(path.control.bandwidth(), Bitrate::from_mbps(8));
    }

    #[test]
    fn the_window_is_two_bandwidth_delay_products_and_three_bursts() {
        let mut path = Path::new();
        (0..40).for_each(|_| {
            path.round(8, MS(100));
        });
        assert!(matches!(path.control.mode, Mode::ProbeBandwidth { .. }), "{:?}", path.control);
        // 100 kB, twice, and three bursts of two packets.
        assert_eq!(path.control.window(), 206_000);
    }

    #[test]
    fn the_gains_go_round_in_eight_round_trips() {
        let mut path = Path::new();
        (0..40).for_each(|_| {
            path.round(8, MS(100));
        });
        let mut gains: Vec<f64> = (0..16).map(|_| path.round(8, MS(101)).0).collect();
        let probe = gains.iter().position(|gain| *gain == 1.25).expect("a probe");
        gains.rotate_left(probe);
        assert_eq!(gains[..8], PACING_GAINS);
    }

    #[test]
    fn the_round_trip_is_probed_each_ten_seconds_with_four_packets() {
        let mut path = Path::new();
        let windows: Vec<u64> = (0..220)
            .map(|round| {
                let has_queue = round > 5 && path.control.window() > 4_000;
                path.round(8, MS(if has_queue { 101 } else { 100 }));
                path.control.window()
            })
            .collect();
        let small: Vec<usize> = (10..220).filter(|round| windows[*round] == 4_000).collect();
        assert!((4..=10).contains(&small.len()), "{small:?}");
        let first = small[0];
        let again = small.iter().find(|round| **round > first + 10).expect("a second probe");
        assert!((99..106).contains(&(again - first)), "{small:?}");
        assert_eq!(path.control.bandwidth(), Bitrate::from_mbps(8));
    }

    #[test]
    fn recovery_sends_a_packet_for_each_arrival_and_takes_the_window_back() {
        let mut path = Path::new();
        (0..40).for_each(|_| {
            path.round(8, MS(100));
        });
        let lossy = AckSummary { flight: 90_000, lost: 3, ..ack(path.now, 2, MS(100)) };
        path.control.on_loss(&lossy);
        assert_eq!(path.control.window(), 92_000);
        path.control.on_recovered();
        assert_eq!(path.control.window(), 206_000);
    }
}
