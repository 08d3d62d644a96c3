//! `BBRv1` (draft-cardwell-iccrg-bbr-congestion-control-00).

mod bandwidth;
mod cycle;
mod policer;

use std::time::Duration;

use punctual_rates::FullPipe;
use punctual_units::Instant;

use super::leave_slow_start::{DelayRise, LossShare};
use super::{
    Cause, CongestionControl, INITIAL_WINDOW, LARGEST_PACKET, LEAST_WINDOW, PathView, first_window,
    half_of_peak, to_bytes, to_f64,
};
use crate::pacer::PacingRule;
use bandwidth::Bandwidth;
use cycle::Cycle;
use policer::Policer;

/// `BBRv1`: a window and a pace from the greatest bandwidth and the least round-trip time.
#[derive(Debug)]
pub(crate) struct Bbr {
    phase: Phase,
    window: u64,
    bandwidth: Bandwidth,
    policer: Policer,
    round_trip: RoundTrip,
    full_pipe: FullPipe,
    cycle: Cycle,
    pace: BbrPace,
    /// The signs that end the start on a long path.
    rise: DelayRise,
    losses: LossShare,
    congestion: AnsweredCongestion,
    probe: RoundTripProbe,
    /// Bytes acknowledged since the rate was last measured.
    acknowledged: u64,
    /// Bytes that were in flight after the acknowledgement before.
    in_flight_before: u64,
    wants_train: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    /// Until the bandwidth stops growing.
    Startup,
    /// The same on a path with a long round trip, by slow start.
    LongStartup,
    /// Empties the queue that the start has filled.
    Drain,
    ProbeBandwidth,
    ProbeRoundTrip,
}

/// The least round-trip time of the latest ten seconds.
#[derive(Clone, Copy, Debug, Default)]
struct RoundTrip {
    least: Option<Duration>,
    /// When it was last seen, within a twentieth.
    seen: Instant,
    has_expired: bool,
}

/// Gains, and the pace that follows from them.
#[derive(Clone, Copy, Debug)]
struct BbrPace {
    pacing_gain: f64,
    window_gain: f64,
    /// Bytes a second; 0 before the first measurement.
    rate: f64,
    burst: u64,
}

/// The latest congestion that was answered.
#[derive(Clone, Copy, Debug, Default)]
struct AnsweredCongestion {
    at: Instant,
    /// Losses of packets before this number belong to it.
    until: u64,
    was_timeout: bool,
}

/// The state of probing for the round-trip time.
#[derive(Clone, Copy, Debug, Default)]
struct RoundTripProbe {
    /// When it may end, once the window has become small.
    ends: Option<Instant>,
    has_passed_round: bool,
    window_before: u64,
}

impl Bbr {
    pub(crate) fn new() -> Self {
        Self {
            phase: Phase::Startup,
            window: INITIAL_WINDOW,
            bandwidth: Bandwidth::default(),
            policer: Policer::default(),
            round_trip: RoundTrip::default(),
            full_pipe: FullPipe::default(),
            cycle: Cycle::default(),
            pace: BbrPace { pacing_gain: HIGH_GAIN, window_gain: HIGH_GAIN, rate: 0.0, burst: 0 },
            rise: DelayRise::default(),
            losses: LossShare::default(),
            congestion: AnsweredCongestion::default(),
            probe: RoundTripProbe::default(),
            acknowledged: 0,
            in_flight_before: 0,
            wants_train: false,
        }
    }

    /// Bytes a second: the greatest of the latest rounds, or the rate of a policer.
    fn rate(&self) -> u64 {
        self.policer.rate().unwrap_or(self.bandwidth.greatest())
    }

    /// Bytes that fill the path `gain` times, and room for the bursts of both ends.
    fn target(&self, gain: f64) -> u64 {
        match self.round_trip.least {
            None => INITIAL_WINDOW,
            Some(least) => {
                to_bytes(gain * to_f64(self.rate()) * least.as_secs_f64()) + 3 * self.pace.burst
            }
        }
    }

    /// Takes a rate of delivery.
    fn update_bandwidth(&mut self, path: &PathView) {
        let mut rate = path.rate;
        if self.phase == Phase::Startup {
            rate = rate.max(path.peak_rate / 2);
        }
        if let Some(least) = self.round_trip.least.filter(|least| !least.is_zero()) {
            rate = rate.max(to_bytes(to_f64(LEAST_WINDOW) / least.as_secs_f64()));
        }
        let is_round_start = self.bandwidth.update(path, rate);
        let is_probing = self.phase == Phase::ProbeBandwidth;
        if self.policer.update(path, is_round_start, is_probing) {
            self.cycle.restart(path.now, &mut self.bandwidth);
            self.follow_cycle();
        }
    }

    /// Ends the start on a long path.
    fn leave_long_startup(&mut self, path: &PathView) {
        self.bandwidth.begin_round(path);
        self.full_pipe = FullPipe::full();
        self.drain();
        if path.in_flight <= self.target(1.0) {
            self.probe_bandwidth(path);
        }
    }

    fn drain(&mut self) {
        self.phase = Phase::Drain;
        self.pace.pacing_gain = 1.0 / HIGH_GAIN;
        self.pace.window_gain = HIGH_GAIN;
    }

    fn probe_bandwidth(&mut self, path: &PathView) {
        self.phase = Phase::ProbeBandwidth;
        self.pace.window_gain = 2.0;
        let least = self.round_trip.least.unwrap_or_default();
        self.cycle.begin(path.now, least, &mut self.bandwidth);
        self.follow_cycle();
    }

    /// Takes the gain of the cycle. A probe sends at least four packets more than nothing.
    fn follow_cycle(&mut self) {
        let gain = self.cycle.gain();
        let least = self.round_trip.least.unwrap_or_default().as_secs_f64();
        let in_path = to_f64(self.bandwidth.greatest()) * least;
        let four = to_f64(4 * LARGEST_PACKET);
        self.pace.pacing_gain = if gain > 1.0 && in_path > 0.0 && in_path < four {
            gain.max(four / in_path)
        } else {
            gain
        };
    }

    fn check_cycle(&mut self, path: &PathView) {
        if self.phase != Phase::ProbeBandwidth {
            return;
        }
        let gain = self.pace.pacing_gain;
        let is_over = self.cycle.is_over(path.now, self.round_trip.least.unwrap_or(Duration::MAX));
        let has_reached = if gain > 1.0 {
            self.in_flight_before >= self.target(gain)
        } else {
            gain >= 1.0 || self.in_flight_before <= self.target(1.0)
        };
        if is_over && has_reached {
            self.cycle.advance(path.now, &mut self.bandwidth);
            self.follow_cycle();
        }
    }

    fn check_drain(&mut self, path: &PathView) {
        if self.phase == Phase::Startup && self.full_pipe.is_full() {
            self.drain();
        }
        if self.phase == Phase::Drain && path.in_flight <= self.target(1.0) {
            self.probe_bandwidth(path);
        }
    }

    fn check_probe_round_trip(&mut self, path: &PathView) {
        if self.phase != Phase::ProbeRoundTrip && self.round_trip.has_expired {
            let is_probing = self.phase == Phase::ProbeBandwidth;
            let before = if is_probing { self.probe.window_before } else { 0 };
            self.probe = RoundTripProbe {
                window_before: self.window.max(before),
                ..RoundTripProbe::default()
            };
            self.phase = Phase::ProbeRoundTrip;
            self.pace.pacing_gain = 1.0;
            self.pace.window_gain = 1.0;
        }
        if self.phase != Phase::ProbeRoundTrip {
            return;
        }
        match self.probe.ends {
            None if path.in_flight <= 4 * path.mtu => {
                self.probe.ends = Some(path.now + PROBE_ROUND_TRIP);
                self.bandwidth.wait_for_round(path);
            }
            None => {}
            Some(ends) => {
                self.probe.has_passed_round |= self.bandwidth.is_round_start();
                if self.probe.has_passed_round && path.now > ends {
                    self.round_trip.seen = path.now;
                    self.window = self.window.max(self.probe.window_before);
                    if self.full_pipe.is_full() {
                        self.probe_bandwidth(path);
                    } else {
                        self.phase = Phase::Startup;
                        self.pace.pacing_gain = HIGH_GAIN;
                        self.pace.window_gain = HIGH_GAIN;
                    }
                }
            }
        }
    }

    fn set_pace(&mut self, path: &PathView) {
        let rate = self.pace.pacing_gain * to_f64(self.rate());
        if self.full_pipe.is_full() || rate > self.pace.rate {
            self.pace.rate = rate;
        }
        self.pace.burst = match self.pace.rate {
            slow if slow < 150_000.0 => path.mtu,
            medium if medium < 3_000_000.0 => 2 * path.mtu,
            fast => to_bytes(fast * 0.001).min(0x10000),
        };
    }

    fn set_window(&mut self, path: &PathView, acknowledged: u64) {
        let target = self.target(self.pace.window_gain);
        if self.full_pipe.is_full() {
            self.window = (self.window + acknowledged).min(target);
        } else if self.window < target || path.delivered < INITIAL_WINDOW {
            self.window += acknowledged;
        }
        self.window = self.window.max(4 * path.mtu);
        if self.phase == Phase::ProbeRoundTrip {
            self.window = self.window.min(4 * path.mtu);
        }
    }

    /// Answers congestion, at most once in a round trip; a timeout always, unless the answer before
    /// was to a timeout.
    fn congested(&mut self, path: &PathView, cause: Cause) {
        let is_timeout = cause == Cause::Timeout;
        let is_recent = path.now < self.congestion.at + path.smoothed;
        let is_answered = self.cycle.ends_by_loss || is_recent;
        let is_first_timeout = is_timeout && !self.congestion.was_timeout;
        if is_answered && !is_first_timeout {
            return;
        }
        self.window = if is_timeout { LEAST_WINDOW } else { (self.window / 2).max(LEAST_WINDOW) };
        self.congestion =
            AnsweredCongestion { at: path.now, until: path.next_number, was_timeout: is_timeout };
        match self.phase {
            Phase::LongStartup => self.leave_long_startup(path),
            Phase::Startup => {
                self.full_pipe = FullPipe::full();
                self.drain();
            }
            _ => self.cycle.ends_by_loss = true,
        }
    }
}

impl CongestionControl for Bbr {
    fn acknowledged(&mut self, _: &PathView, bytes: u64) {
        self.acknowledged += bytes;
    }

    fn measured_round_trip(&mut self, path: &PathView) {
        if self.phase == Phase::Startup && path.least > LONG {
            self.phase = Phase::LongStartup;
            self.window = self.window.max(first_window(path.least));
        }
        if self.phase == Phase::LongStartup && self.rise.has_risen(path.now, path.latest) {
            self.leave_long_startup(path);
        }
    }

    fn measured_rate(&mut self, path: &PathView) {
        let acknowledged = std::mem::take(&mut self.acknowledged);
        self.wants_train = false;
        self.update_bandwidth(path);
        if self.phase == Phase::LongStartup {
            if self.round_trip.least.is_none_or(|least| path.latest <= least) {
                self.round_trip.least = Some(path.latest);
                self.round_trip.seen = path.now;
            }
            if !path.is_app_limited {
                self.window += acknowledged;
            }
            let half = half_of_peak(path, self.round_trip.least.unwrap_or_default());
            self.wants_train = self.window >= half && path.smoothed > super::USUAL_ROUND_TRIP;
            self.window = self.window.max(half);
            return;
        }
        self.check_cycle(path);
        if self.bandwidth.is_round_start() && !path.is_rate_limited {
            self.full_pipe.round_passed(self.bandwidth.greatest());
        }
        self.check_drain(path);
        self.round_trip.update(path);
        self.check_probe_round_trip(path);
        self.set_pace(path);
        self.set_window(path, acknowledged);
        self.in_flight_before = path.in_flight;
    }

    fn lost(&mut self, path: &PathView, number: u64, cause: Cause) {
        if number >= self.congestion.until && self.losses.is_high(number, cause) {
            self.congested(path, cause);
        }
    }

    fn was_not_lost(&mut self, _: &PathView) {}

    fn window(&self) -> u64 {
        self.window
    }

    fn pacing(&self) -> PacingRule {
        match self.phase {
            Phase::LongStartup => PacingRule::Window { slow_start: true },
            _ if self.pace.rate <= 0.0 => PacingRule::Window { slow_start: true },
            _ => PacingRule::Rate { rate: self.pace.rate, burst: self.pace.burst },
        }
    }

    fn wants_train(&self) -> bool {
        self.wants_train
    }

    fn knows_path(&self) -> bool {
        !matches!(self.phase, Phase::Startup | Phase::LongStartup)
    }
}

impl RoundTrip {
    fn update(&mut self, path: &PathView) {
        let Some(least) = self.least else {
            (self.least, self.seen) = (Some(path.latest), path.now);
            return;
        };
        let age = path.now.saturating_since(self.seen);
        self.has_expired = age > FORGETS && age > least * 20;
        if path.latest <= least || self.has_expired {
            (self.least, self.seen) = (Some(path.latest), path.now);
        } else if (path.latest - least) * 20 < least {
            self.seen = path.now;
        }
    }
}

/// 2 / ln 2.
const HIGH_GAIN: f64 = 2.885_390_081_777_9;
/// A longer round trip than this is started by slow start.
const LONG: Duration = Duration::from_millis(50);
const FORGETS: Duration = Duration::from_secs(10);
const PROBE_ROUND_TRIP: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::path;

    /// An acknowledgement at this time: a rate in bytes a second, and the round trip in ms.
    fn feed(bbr: &mut Bbr, now: u64, rate: u64, round_trip: u64, in_flight: u64) {
        let delivered = now * rate / 1_000;
        let latest = Duration::from_millis(round_trip);
        let view = PathView {
            rate,
            latest,
            least: Duration::from_millis(20),
            smoothed: latest,
            in_flight,
            delivered,
            delivered_before: delivered.saturating_sub(rate * round_trip / 1_000),
            ..path(now)
        };
        bbr.acknowledged(&view, 1_000);
        bbr.measured_round_trip(&view);
        bbr.measured_rate(&view);
    }

    #[test]
    fn a_start_that_finds_no_more_bandwidth_drains_and_then_probes() {
        let mut bbr = Bbr::new();
        for step in 1..=4 {
            feed(&mut bbr, step * 40, 1_000_000, 20, 80_000);
        }
        assert_eq!(bbr.phase, Phase::Drain);
        feed(&mut bbr, 200, 1_000_000, 20, 10_000);
        assert_eq!(bbr.phase, Phase::ProbeBandwidth);
        assert_eq!(bbr.pacing(), PacingRule::Rate { rate: 1e6, burst: 2_000 });
        // Twice 20 ms of a megabyte a second, and three bursts.
        (0..60).for_each(|step| feed(&mut bbr, 201 + step, 1_000_000, 20, 20_000));
        assert_eq!(bbr.window(), 46_000);
    }

    #[test]
    fn after_ten_seconds_without_the_least_round_trip_it_is_probed() {
        let mut bbr = Bbr::new();
        for step in 1..=5 {
            feed(&mut bbr, step * 40, 1_000_000, 20, 10_000);
        }
        feed(&mut bbr, 11_000, 1_000_000, 60, 10_000);
        assert_eq!((bbr.phase, bbr.window()), (Phase::ProbeRoundTrip, 4_000));
        feed(&mut bbr, 11_050, 1_000_000, 60, 3_000);
        feed(&mut bbr, 11_300, 1_000_000, 20, 3_000);
        assert_eq!(bbr.phase, Phase::ProbeBandwidth);
    }

    #[test]
    fn a_long_path_is_started_by_slow_start_until_many_packets_are_lost() {
        let mut bbr = Bbr::new();
        let long = PathView { least: Duration::from_millis(200), ..path(200) };
        bbr.measured_round_trip(&long);
        assert_eq!((bbr.phase, bbr.window()), (Phase::LongStartup, 30_720));
        for number in 22..25 {
            bbr.lost(&long, number, Cause::Acknowledgement);
        }
        assert!(!bbr.knows_path());
        bbr.lost(&long, 25, Cause::Acknowledgement);
        assert!(bbr.knows_path());
        assert_eq!(bbr.window(), 15_360);
    }

    #[test]
    fn a_timeout_leaves_the_least_window_and_counts_once() {
        let mut bbr = Bbr::new();
        bbr.lost(&path(1_000), 30, Cause::Timeout);
        assert_eq!(bbr.window(), LEAST_WINDOW);
        bbr.window = 50_000;
        bbr.lost(&path(1_010), 120, Cause::Timeout);
        assert_eq!(bbr.window(), 50_000);
    }
}
