use std::time::Duration;

use punctual_units::{Bitrate, Instant};
use punctual_wire::SeqNo;

use super::input_rate::InputRate;
use crate::config::{Config, MaxBandwidth};
use crate::pace::Pace;
use crate::policy::congestion::{CongestionControl, PathState};

/// The least limit if the bandwidth is unlimited: libsrt's 1 Gb/s.
const UNLIMITED: Bitrate = Bitrate::from_mbps(1_000);

/// Live congestion control: originals and retransmissions together stay within the maximum
/// bandwidth, and there is no other limit (draft section 5.1, LiveCC).
#[derive(Debug)]
pub(crate) struct LiveControl {
    limit: MaxBandwidth,
    input_bandwidth: Bitrate,
    min_input_bandwidth: Bitrate,
    overhead_percent: u64,
    input: InputRate,
    /// The mean size of a packet, headers included, bytes × 128, so that smoothing by 1/128 loses
    /// nothing by rounding.
    mean_size: u64,
    period: Duration,
    pace: Pace,
}

impl LiveControl {
    /// A congestion control for packets with `overhead` bytes of headers.
    pub(crate) fn new(config: &Config, overhead: usize) -> Self {
        let mut control = Self {
            limit: config.max_bandwidth(),
            input_bandwidth: config.input_bandwidth(),
            min_input_bandwidth: config.min_input_bandwidth(),
            overhead_percent: u64::from(config.overhead_bandwidth()),
            input: InputRate::new(),
            mean_size: (config.payload_size() + overhead) as u64 * 128,
            period: Duration::ZERO,
            pace: Pace::Packet(Duration::ZERO),
        };
        control.update();
        control
    }

    /// Takes over the limits of these options.
    pub(crate) fn configure(&mut self, config: &Config) {
        self.limit = config.max_bandwidth();
        self.input_bandwidth = config.input_bandwidth();
        self.min_input_bandwidth = config.min_input_bandwidth();
        self.overhead_percent = u64::from(config.overhead_bandwidth());
        self.update();
    }

    /// The application submitted a packet of `bytes`, headers included.
    #[inline]
    pub(crate) fn submitted(&mut self, now: Instant, bytes: usize) {
        self.input.submit(now, bytes);
    }

    /// The application submitted a message for which there is no room.
    pub(crate) const fn refused(&mut self) {
        self.input.refuse();
    }

    /// The input's rate, configured or measured; `None` in its first 100 ms.
    pub(crate) fn input(&self) -> Option<Bitrate> {
        match self.input_bandwidth {
            Bitrate::ZERO => {
                let rate = self.input.measured().or_else(|| self.input.so_far());
                rate.map(|rate| rate.max(self.min_input_bandwidth))
            }
            given => Some(given),
        }
    }

    /// The rate of this number of packets of mean size a second.
    pub(crate) fn as_rate(&self, packets_per_sec: u32) -> Bitrate {
        Bitrate::from_bytes_per_sec(u64::from(packets_per_sec) * (self.mean_size / 128))
    }

    /// A packet of `bytes`, headers included, is sent.
    pub(crate) const fn sent(&mut self, bytes: usize) {
        self.mean_size = self.mean_size - self.mean_size / 128 + bytes as u64;
    }

    /// The spacing of packets.
    pub(crate) const fn pace(&self) -> Pace {
        self.pace
    }

    /// Recomputes the pace and the period, on each ACK as in LiveCC, and at other events.
    fn update(&mut self) {
        let limit = self.max_bandwidth();
        self.pace = match self.limit {
            MaxBandwidth::Unlimited => Pace::about(limit),
            MaxBandwidth::Absolute(_) | MaxBandwidth::Relative => Pace::at(limit),
        };
        self.period = limit.time_for(self.mean_size / 128);
    }
}

impl CongestionControl for LiveControl {
    /// The time between two packets of mean size, for the statistics.
    fn period(&self) -> Duration {
        self.period
    }

    fn window(&self) -> u32 {
        u32::MAX
    }

    /// The current limit of the sending rate.
    fn max_bandwidth(&self) -> Bitrate {
        let with_overhead = |rate: Bitrate| {
            Bitrate::from_bits_per_sec(
                (rate.as_bits_per_sec()).saturating_mul(100 + self.overhead_percent) / 100,
            )
        };
        match self.limit {
            MaxBandwidth::Absolute(rate) => rate,
            // libsrt's fixed 1 Gb/s is too low for a faster input; here the limit follows the
            // input.
            MaxBandwidth::Unlimited => match self.input.measured() {
                Some(input) => UNLIMITED.max(with_overhead(input)),
                None => Bitrate::from_mbps(10_000),
            },
            MaxBandwidth::Relative if self.input_bandwidth > Bitrate::ZERO => {
                with_overhead(self.input_bandwidth)
            }
            MaxBandwidth::Relative => {
                with_overhead(self.input.rate().max(self.min_input_bandwidth))
            }
        }
    }

    fn acknowledged(&mut self, _now: Instant, _packets: u32, _path: &PathState) {
        self.update();
    }

    fn lost(&mut self, _now: Instant, _first: SeqNo, _path: &PathState) {}

    fn timed_out(&mut self, _now: Instant, _path: &PathState) {
        self.update();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(limit: MaxBandwidth) -> LiveControl {
        LiveControl::new(&Config::default().with_max_bandwidth(limit), 44)
    }

    #[test]
    fn the_period_is_that_of_a_packet_of_mean_size() {
        // 1316 + 44 bytes at 10.88 Mb/s take 1 ms.
        let mut live = control(MaxBandwidth::Absolute(Bitrate::from_bits_per_sec(10_880_000)));
        assert_eq!(live.period(), Duration::from_millis(1));
        for _ in 0..10_000 {
            live.sent(680);
        }
        live.update();
        assert_eq!(live.period(), Duration::from_micros(500));
        assert_eq!(live.window(), u32::MAX);
    }

    #[test]
    fn relative_bandwidth_adds_overhead_to_the_given_or_measured_input() {
        let config = Config::default()
            .with_max_bandwidth(MaxBandwidth::Relative)
            .with_input_bandwidth(Bitrate::from_mbps(8));
        assert_eq!(LiveControl::new(&config, 44).max_bandwidth(), Bitrate::from_mbps(10));
        let config = config
            .with_input_bandwidth(Bitrate::ZERO)
            .with_min_input_bandwidth(Bitrate::from_mbps(4));
        let mut live = LiveControl::new(&config, 44);
        assert_eq!(live.max_bandwidth(), Bitrate::from_mbps(1_250), "not measured yet");
        for i in 0..1_000 {
            live.submitted(Instant::from_millis(i), 250);
        }
        assert_eq!(live.max_bandwidth(), Bitrate::from_mbps(5), "2 Mb/s count as 4");
    }

    #[test]
    fn unlimited_follows_an_input_faster_than_a_gigabit() {
        let mut live = control(MaxBandwidth::Unlimited);
        for i in 0..600_000u64 {
            live.submitted(Instant::from_nanos(i * 2_720), 1_360);
        }
        // 1360 bytes every 2.72 µs are 4 Gb/s, and a quarter more is 5.
        assert_eq!(live.max_bandwidth(), Bitrate::from_mbps(5_000));
    }
}
