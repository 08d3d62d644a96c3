use std::time::Duration;

use punctual_units::{Bitrate, Instant};
use punctual_wire::SeqNo;

use super::loss_epoch::LossEpoch;
use super::progress::AckedRate;
use crate::chance::Chance;
use crate::config::{Config, MaxBandwidth};
use crate::policy::congestion::{CongestionControl, PathState};
use crate::windowed_ratio::WindowedRatio;

/// Time between two changes of the rate.
const RATE_PERIOD: Duration = Duration::from_millis(10);
const RATE_PERIOD_MICROS: f64 = 10_000.0;
/// The first window, packets, and the part of the window that is added to the share by the rate.
const FIRST_WINDOW: f64 = 16.0;
/// A lower share of lost packets counts as random loss of the link, not as a full queue.
const TOLERATED_LOSS: f64 = 0.02;
/// The number of acknowledged packets over which the share of losses is also measured, at least.
/// From twice this number on, the older ones count half.
const LOSS_SAMPLE: u64 = 128;
/// The factor by which a loss lengthens the period.
const SLOWER: f64 = 1.03;
/// The longest period, microseconds: with one packet per second the sender still notices that the
/// link can carry more.
const LONGEST_PERIOD: f64 = 1e6;

/// The file congestion control of libsrt (FileCC): a slow start by the window; then a rate that
/// grows with the capacity that seems to be left on the link, and shrinks by 3 % for losses. It
/// comes from UDT (draft-gg-udt-03 section 4).
///
/// Periods are fractional microseconds, as in libsrt: at 10 Gb/s a packet takes 1.2 µs.
#[derive(Debug)]
pub(crate) struct FileControl {
    mss: f64,
    /// The shortest period that the bandwidth limit allows, microseconds.
    least_period: f64,
    slow_start: bool,
    window: f64,
    max_window: f64,
    /// The time from one packet to the next, microseconds.
    period: f64,
    /// Packets acknowledged since the last change of the rate.
    acknowledged: u32,
    last_change: Option<Instant>,
    /// The recent ratio of losses to acknowledged packets.
    recent_loss: WindowedRatio,
    progress: AckedRate,
    /// Whether a loss was reported since the last change of the rate.
    loss: bool,
    /// The period at the last tolerated loss, or at the beginning of the last epoch, microseconds.
    last_decrease_period: f64,
    epoch: LossEpoch,
}

impl FileControl {
    /// A congestion control for packets of `mss` bytes that begin at `isn`, to a peer with a flow
    /// window of `peer_window`.
    pub(crate) fn new(
        mss: usize,
        limit: MaxBandwidth,
        peer_window: u32,
        isn: SeqNo,
        chance: Chance,
    ) -> Self {
        let mss = mss as f64;
        let least_period = least_period(limit, mss);
        Self {
            mss,
            least_period,
            slow_start: true,
            window: FIRST_WINDOW,
            max_window: f64::from(peer_window),
            period: least_period.max(1.0),
            acknowledged: 0,
            last_change: None,
            recent_loss: WindowedRatio::over(LOSS_SAMPLE, LOSS_SAMPLE),
            progress: AckedRate::default(),
            loss: false,
            last_decrease_period: 1.0,
            epoch: LossEpoch::new(isn, chance),
        }
    }

    /// From now on, limits the sender by the rate in place of the window: the rate at which packets
    /// reach the peer, either as the peer reports it or as they were acknowledged, whichever is
    /// higher. The peer reports too low a rate after a pause, and the rate would grow slowly from
    /// there.
    ///
    /// Before the peer has reported a rate, the window continues to limit the sender. (libsrt has
    /// no limit then, and no loss slows it down.)
    fn end_slow_start(&mut self, now: Instant, path: &PathState) {
        if self.slow_start && path.delivery_rate > 0 {
            self.slow_start = false;
            let acknowledged = self.progress.rate_until(now, path.rtt.smoothed);
            self.set_period(1e6 / f64::from(path.delivery_rate).max(acknowledged));
        }
    }

    /// Increases the rate according to the capacity that seems to be left on the link: a step for
    /// each power of ten of it.
    fn speed_up(&mut self, path: &PathState) {
        let at_last_loss = 2e6 / self.last_decrease_period;
        // The capacity is unknown before the peer has received a packet pair. libsrt takes it for
        // zero then.
        let capacity = if path.capacity > 0 { f64::from(path.capacity) } else { f64::INFINITY };
        let bandwidth = at_last_loss.min(capacity).floor();
        let mut left = (bandwidth - 1e6 / self.period).trunc();
        if self.period > self.last_decrease_period && (bandwidth / 9.0).floor() < left {
            left = (bandwidth / 9.0).floor();
        }
        let least = 1.0 / self.mss;
        // The growth of the rate, packets per rate period.
        let increase = if left > 0.0 {
            (power_of_ten_from(left * self.mss * 8.0) * 1.5e-6 / self.mss).max(least)
        } else {
            least
        };
        self.set_period(
            self.period * RATE_PERIOD_MICROS / (self.period * increase + RATE_PERIOD_MICROS),
        );
    }

    /// Sets the window: the packets of a round trip and of the time between two ACKs. Each
    /// retransmission of a packet takes a round trip, in which the packets that arrive after it are
    /// not acknowledged; they are not in flight, though, and must not stop the sender.
    fn follow_rate(&mut self, path: &PathState) {
        if !self.slow_start && path.delivery_rate > 0 {
            let reported = f64::from(path.delivery_rate);
            let round_trip = micros(path.rtt.smoothed);
            let arrived = reported.min(self.progress.rate()) / 1e6 * micros(path.blocked);
            self.window =
                reported / 1e6 * (round_trip + RATE_PERIOD_MICROS) + arrived + FIRST_WINDOW;
        }
    }

    /// Whether the losses are few enough to be random losses of the link. One loss among fifty
    /// packets in flight is already 2 %, so that the share in flight alone would slow down a slow
    /// sender on a lossy link further and further.
    fn is_tolerated(&self, path: &PathState) -> bool {
        let in_flight = (micros(path.rtt.smoothed) / self.period).trunc();
        in_flight < 1.0
            || (path.in_loss_list as f64) < in_flight * TOLERATED_LOSS
            || self.recent_loss.known().is_some_and(|share| share < TOLERATED_LOSS)
    }

    fn slow_down(&mut self, path: &PathState) {
        self.set_period((self.period * SLOWER).ceil());
        self.epoch.decreased(path.next_new);
    }

    fn set_period(&mut self, micros: f64) {
        self.period = micros.min(LONGEST_PERIOD).max(self.least_period);
    }
}

impl CongestionControl for FileControl {
    fn period(&self) -> Duration {
        Duration::from_secs_f64(self.period / 1e6)
    }

    fn configured(&mut self, config: &Config) {
        self.least_period = least_period(config.max_bandwidth(), self.mss);
        if self.slow_start {
            self.period = self.least_period.max(1.0);
        } else {
            self.set_period(self.period);
        }
    }

    fn window(&self) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "a float saturates")]
        #[expect(clippy::cast_sign_loss, reason = "a window is never negative")]
        let window = self.window as u32;
        window
    }

    fn max_bandwidth(&self) -> Bitrate {
        #[expect(clippy::cast_possible_truncation, reason = "a float saturates")]
        #[expect(clippy::cast_sign_loss, reason = "a rate is never negative")]
        let bits = (self.mss * 8e6 / self.period) as u64;
        Bitrate::from_bits_per_sec(bits)
    }

    fn acknowledged(&mut self, now: Instant, packets: u32, path: &PathState) {
        self.recent_loss.add_trials(packets.into());
        self.progress.acknowledged(now, packets, path.rtt.smoothed);
        self.acknowledged += packets;
        if self.last_change.is_some_and(|last| now < last + RATE_PERIOD) {
            return;
        }
        self.last_change = Some(now);
        let acknowledged = std::mem::take(&mut self.acknowledged);
        if self.slow_start {
            self.window += f64::from(acknowledged);
            if self.window > self.max_window {
                self.window = self.max_window;
                self.end_slow_start(now, path);
            }
        } else {
            self.follow_rate(path);
        }
        if !self.slow_start && !std::mem::take(&mut self.loss) {
            self.speed_up(path);
        }
    }

    fn lost(&mut self, now: Instant, first: SeqNo, path: &PathState) {
        self.recent_loss.add_hits(path.newly_lost);
        self.end_slow_start(now, path);
        self.follow_rate(path);
        self.loss = true;
        if self.is_tolerated(path) {
            self.last_decrease_period = self.period;
        } else if self.epoch.is_ended_by(first) {
            self.last_decrease_period = self.period;
            self.slow_down(path);
            self.epoch.begin(path.next_new);
        } else if self.epoch.report() {
            self.slow_down(path);
        }
    }

    fn timed_out(&mut self, now: Instant, path: &PathState) {
        self.end_slow_start(now, path);
    }
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// The least power of ten that is no less than `value`.
fn power_of_ten_from(value: f64) -> f64 {
    let mut power = 1.0;
    while power < value {
        power *= 10.0;
    }
    power
}

/// The period at which packets of `mss` bytes reach the limit, microseconds.
fn least_period(limit: MaxBandwidth, mss: f64) -> f64 {
    match limit {
        MaxBandwidth::Absolute(rate) => {
            #[expect(clippy::cast_possible_truncation, reason = "a packet has 1500 bytes at most")]
            #[expect(clippy::cast_sign_loss, reason = "a size is never negative")]
            let mss = mss as u64;
            rate.time_for(mss).as_secs_f64() * 1e6
        }
        // A file has no input rate to which a limit could be relative.
        MaxBandwidth::Unlimited | MaxBandwidth::Relative => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use punctual_rtt::Rtt;

    use super::*;

    fn control(limit: MaxBandwidth) -> FileControl {
        FileControl::new(1_500, limit, 8_192, SeqNo::new(1_000), Chance::new([1; 32]))
    }

    fn path(delivery_rate: u32, capacity: u32, in_loss_list: usize, next: u32) -> PathState {
        PathState {
            rtt: Rtt { smoothed: Duration::from_millis(90), variance: Duration::ZERO },
            latest_rtt: Duration::from_millis(90),
            base_rtt: Duration::from_millis(90),
            in_flight: 0,
            arrived: None,
            packet_size: 1_500,
            delivery_rate,
            capacity,
            in_loss_list,
            newly_lost: 1,
            blocked: Duration::ZERO,
            next_new: SeqNo::new(next),
        }
    }

    fn at(periods: u64) -> Instant {
        Instant::from_millis(1_000 + periods * 10)
    }

    #[test]
    fn slow_start_grows_by_acknowledged_packets_up_to_the_peers_window() {
        let mut file = control(MaxBandwidth::Unlimited);
        let path = path(5_000, 8_000, 0, 9_000);
        assert_eq!((file.window(), file.period()), (16, Duration::from_micros(1)));
        file.acknowledged(at(0), 16, &path);
        assert_eq!(file.window(), 32);
        file.acknowledged(at(0), 10, &path);
        assert_eq!(file.window(), 32, "one look each 10 ms");
        file.acknowledged(at(1), 10, &path);
        assert_eq!((file.window(), file.period()), (52, Duration::from_micros(1)));
        file.acknowledged(at(2), 10_000, &path);
        // 5,000 packets per second, and the first increase.
        assert!(file.period() < Duration::from_micros(200));
        assert!(file.period() > Duration::from_micros(190), "{:?}", file.period());
        file.acknowledged(at(3), 10, &path);
        // 5,000 packets per second for 90 + 10 ms, and 16.
        assert_eq!(file.window(), 516);
    }

    #[test]
    fn the_rate_grows_by_the_power_of_ten_of_the_free_capacity() {
        let mut file = control(MaxBandwidth::Unlimited);
        file.slow_start = false;
        file.period = 200.0;
        file.last_decrease_period = 1.0;
        // 10,000 - 5,000 packets per second of 1500 bytes are 60 Mb/s, which count as 100: 0.1 more
        // packets in 10 ms.
        file.acknowledged(at(0), 1, &path(5_000, 10_000, 0, 9_000));
        assert!((file.period - 200.0 * 10_000.0 / (200.0 * 0.1 + 10_000.0)).abs() < 1e-9);
        // Nothing left: the least increase.
        file.period = 200.0;
        file.acknowledged(at(1), 1, &path(5_000, 4_000, 0, 9_000));
        let least = 200.0 * 10_000.0 / (200.0 / 1_500.0 + 10_000.0);
        assert!((file.period - least).abs() < 1e-9);
        // Slower than at the last loss: a ninth of the bandwidth, 1,111 packets, 13 Mb/s, counts.
        file.period = 200.0;
        file.last_decrease_period = 199.0;
        file.acknowledged(at(2), 1, &path(5_000, 10_000, 0, 9_000));
        assert!((file.period - 200.0 * 10_000.0 / (200.0 * 0.1 + 10_000.0)).abs() < 1e-9);
    }

    #[test]
    fn few_losses_count_as_random_and_stop_the_growth_only_once() {
        let mut file = control(MaxBandwidth::Unlimited);
        file.slow_start = false;
        file.period = 100.0;
        // 900 packets are in flight: 17 are below 2 %, 18 are not.
        file.lost(at(0), SeqNo::new(2_000), &path(5_000, 10_000, 17, 9_000));
        assert_eq!((file.period, file.last_decrease_period), (100.0, 100.0));
        file.acknowledged(at(1), 1, &path(5_000, 10_000, 0, 9_000));
        assert_eq!(file.period, 100.0, "something was lost");
        file.acknowledged(at(2), 1, &path(5_000, 10_001, 0, 9_000));
        assert!(file.period < 100.0);
    }

    #[test]
    fn a_loss_before_the_peer_reports_a_rate_does_not_end_slow_start() {
        let mut file = control(MaxBandwidth::Unlimited);
        file.acknowledged(at(0), 16, &path(0, 0, 0, 9_000));
        file.lost(at(0), SeqNo::new(2_000), &path(0, 0, 1, 9_000));
        file.timed_out(at(0), &path(0, 0, 1, 9_000));
        file.acknowledged(at(1), 30, &path(0, 0, 0, 9_000));
        assert_eq!((file.window(), file.period()), (62, Duration::from_micros(1)));
        file.lost(at(2), SeqNo::new(2_100), &path(5_000, 8_000, 1, 9_000));
        assert_eq!(file.period(), Duration::from_micros(200));
        assert_eq!(file.window(), 516);
    }

    #[test]
    fn slow_start_ends_at_the_acknowledged_rate_if_that_is_higher() {
        let mut file = control(MaxBandwidth::Unlimited);
        let rtt = Rtt { smoothed: Duration::from_millis(1), variance: Duration::ZERO };
        let path = PathState { rtt, ..path(5, 1_000, 0, 9_000) };
        for period in 0..5 {
            file.acknowledged(at(period), 100, &path);
        }
        file.lost(at(4), SeqNo::new(1_500), &PathState { in_loss_list: 1, ..path });
        assert_eq!(file.period(), Duration::from_micros(100), "400 packets in 40 ms");
    }

    #[test]
    fn an_unknown_capacity_does_not_stop_the_growth() {
        let mut file = control(MaxBandwidth::Unlimited);
        file.slow_start = false;
        file.period = 200.0;
        file.last_decrease_period = 200.0;
        file.acknowledged(at(0), 1, &path(5_000, 0, 0, 9_000));
        // Up to twice the rate at the last loss: 60 Mb/s more, which count as 100.
        assert!((file.period - 200.0 * 10_000.0 / (200.0 * 0.1 + 10_000.0)).abs() < 1e-9);
    }

    #[test]
    fn a_slow_sender_measures_loss_over_acknowledged_packets() {
        for (each, slower) in [(100, false), (30, true)] {
            let mut file = control(MaxBandwidth::Unlimited);
            file.slow_start = false;
            // Nine packets are in flight: a single one is more than 2 % of them.
            file.period = 10_000.0;
            for i in 0..600 {
                let path = path(100, 10_000, 1, 9_000 + i);
                file.acknowledged(at(0), 1, &path);
                if i % each == 0 {
                    file.period = 10_000.0;
                    file.lost(at(0), SeqNo::new(8_999 + i), &path);
                }
                if i > 500 && i % each == 0 {
                    assert_eq!(file.period > 10_000.0, slower, "1 of {each}, {i}");
                }
            }
        }
    }

    #[test]
    fn the_window_covers_packets_that_arrive_after_a_repeated_loss() {
        let mut file = control(MaxBandwidth::Unlimited);
        file.slow_start = false;
        let path = path(5_000, 10_000, 0, 9_000);
        for i in 0..60 {
            // 4,000 packets per second are acknowledged; the peer reports 5,000.
            file.acknowledged(at(i), 40, &path);
        }
        assert_eq!(file.window(), 516);
        for (ms, window) in [(90, 516 + 360), (180, 516 + 720), (900, 516 + 3_600)] {
            let blocked = Duration::from_millis(ms);
            file.lost(at(60), SeqNo::new(8_000), &PathState { blocked, ..path });
            assert!(file.window().abs_diff(window) < 20, "{}, {ms} ms", file.window());
        }
    }

    #[test]
    fn losses_lengthen_the_period_five_times_an_epoch_at_most() {
        let mut file = control(MaxBandwidth::Unlimited);
        file.slow_start = false;
        file.period = 100.0;
        let path = path(5_000, 10_000, 100, 9_000);
        file.lost(at(0), SeqNo::new(2_000), &path);
        assert_eq!((file.period, file.last_decrease_period), (103.0, 100.0));
        let mut periods = Vec::new();
        for _ in 0..10 {
            file.lost(at(0), SeqNo::new(8_000), &path);
            periods.push(file.period);
        }
        assert_eq!(periods[..5], [107.0, 111.0, 115.0, 119.0, 119.0], "always rounded up");
        assert_eq!(periods[9], 119.0);
        file.lost(at(0), SeqNo::new(9_000), &path);
        assert_eq!((file.period, file.last_decrease_period), (123.0, 119.0), "a new epoch");
    }

    #[test]
    fn a_bandwidth_limit_is_the_floor_of_the_period() {
        let limit = MaxBandwidth::Absolute(Bitrate::from_mbps(12));
        let mut file = control(limit);
        assert_eq!(file.period(), Duration::from_millis(1));
        file.timed_out(at(0), &path(1_000_000, 0, 0, 9_000));
        assert_eq!(file.period(), Duration::from_millis(1));
        assert_eq!(file.max_bandwidth(), Bitrate::from_mbps(12));
    }
}
