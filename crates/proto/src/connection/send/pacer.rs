use std::time::Duration;

use punctual_units::{Bitrate, Instant};

use super::input_rate::InputRate;
use crate::config::{Config, MaxBandwidth, PACKET_OVERHEAD};

/// What "unlimited" means at least: libsrt's 1 Gb/s.
const UNLIMITED: Bitrate = Bitrate::from_mbps(1_000);
/// How late the pacer may be and still catch up. A driver that wakes up late loses no rate; a
/// longer stall does not end in a burst.
const CREDIT: Duration = Duration::from_millis(10);

/// How far ahead of its time a packet may go out. What wakes up a driver costs more than what it
/// sends, so packets that are due within this time of each other leave together.
const QUANTUM: Duration = Duration::from_micros(100);

/// Spaces packets so that originals and retransmissions together stay within the maximum bandwidth
/// (draft section 5.1, LiveCC).
#[derive(Debug)]
pub(crate) struct Pacer {
    limit: MaxBandwidth,
    input_bandwidth: Bitrate,
    min_input_bandwidth: Bitrate,
    overhead_percent: u64,
    input: InputRate,
    /// Mean payload, bytes × 128: a smoothing by 1/128 without loss.
    mean_payload: u64,
    period: Duration,
    next: Instant,
    idle: bool,
    /// The packet after a sequence number divisible by 16 follows at once: the probe pair.
    probe: bool,
}

impl Pacer {
    pub(crate) fn new(config: &Config) -> Self {
        let mut pacer = Self {
            limit: config.max_bandwidth(),
            input_bandwidth: config.input_bandwidth(),
            min_input_bandwidth: config.min_input_bandwidth(),
            overhead_percent: u64::from(config.overhead_bandwidth()),
            input: InputRate::new(),
            mean_payload: config.payload_size() as u64 * 128,
            period: Duration::ZERO,
            next: Instant::ORIGIN,
            idle: true,
            probe: false,
        };
        pacer.update_period();
        pacer
    }

    /// The limit of the sending rate as it stands.
    pub(crate) fn max_bandwidth(&self) -> Bitrate {
        let with_overhead = |rate: Bitrate| {
            Bitrate::from_bits_per_sec(
                (rate.as_bits_per_sec()).saturating_mul(100 + self.overhead_percent) / 100,
            )
        };
        match self.limit {
            MaxBandwidth::Absolute(rate) => rate,
            // libsrt's fixed 1 Gb/s starves a faster input; here the limit follows the input.
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

    /// The input's rate, given or measured; `None` before either is known.
    pub(crate) fn input(&self) -> Option<Bitrate> {
        match self.input_bandwidth {
            Bitrate::ZERO => self.input.measured().map(|rate| rate.max(self.min_input_bandwidth)),
            given => Some(given),
        }
    }

    /// Time between two packets of mean size.
    pub(crate) const fn period(&self) -> Duration {
        self.period
    }

    /// The application submitted a message.
    pub(crate) fn submit(&mut self, now: Instant, payload: usize) {
        self.input.submit(now, payload);
    }

    /// The application submitted a message for which there is no room.
    pub(crate) const fn refuse(&mut self) {
        self.input.refuse();
    }

    /// Whether a packet may go out at `now`.
    pub(crate) fn allows(&self, now: Instant) -> bool {
        self.idle || self.probe || self.next() <= now
    }

    /// When the next packet may go out.
    pub(crate) fn next(&self) -> Instant {
        self.next - QUANTUM
    }

    /// There was nothing to send: time that passes from here on is not made up for.
    pub(crate) const fn rest(&mut self) {
        self.idle = true;
        self.probe = false;
    }

    /// A packet goes out at `now`; `starts_probe` if the next one is to follow at once.
    pub(crate) fn sent(&mut self, now: Instant, payload: usize, starts_probe: bool) {
        self.mean_payload = self.mean_payload - self.mean_payload / 128 + payload as u64;
        let earliest = if self.idle { now } else { now - CREDIT };
        self.next = self.next.max(earliest) + self.period;
        self.idle = false;
        self.probe = starts_probe;
    }

    /// Recomputes the period; called on each ACK as in LiveCC, and often enough without.
    pub(crate) fn update_period(&mut self) {
        self.period =
            self.max_bandwidth().time_for(self.mean_payload / 128 + PACKET_OVERHEAD as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pacer(limit: MaxBandwidth) -> Pacer {
        Pacer::new(&Config::default().with_max_bandwidth(limit))
    }

    #[test]
    fn keeps_the_rate_and_catches_up_after_a_late_wake_up() {
        // 1316 + 44 bytes at 10.88 Mb/s take 1 ms.
        let mut pacer = pacer(MaxBandwidth::Absolute(Bitrate::from_bits_per_sec(10_880_000)));
        assert_eq!(pacer.period(), Duration::from_millis(1));
        let start = Instant::from_millis(100);
        assert!(pacer.allows(start));
        pacer.sent(start, 1_316, false);
        assert!(!pacer.allows(start));
        let late = Instant::from_millis(105);
        let mut sent = 0;
        while pacer.allows(late) {
            pacer.sent(late, 1_316, false);
            sent += 1;
        }
        assert_eq!(sent, 5, "1 to 5 ms after the first");
    }

    #[test]
    fn packets_due_within_the_quantum_leave_together() {
        // 1360 bytes at 1.088 Gb/s take 10 µs.
        let mut pacer = pacer(MaxBandwidth::Absolute(Bitrate::from_mbps(1_088)));
        let start = Instant::from_millis(100);
        let mut burst = |now| {
            let mut sent = 0;
            while pacer.allows(now) {
                pacer.sent(now, 1_316, false);
                sent += 1;
            }
            sent
        };
        assert_eq!(burst(start), 11);
        assert_eq!(burst(start + Duration::from_micros(5)), 0);
        assert_eq!(burst(start + QUANTUM), 10, "the rate is kept");
    }

    #[test]
    fn an_idle_pacer_earns_no_burst() {
        let mut pacer = pacer(MaxBandwidth::Absolute(Bitrate::from_bits_per_sec(10_880_000)));
        pacer.sent(Instant::from_millis(100), 1_316, false);
        pacer.rest();
        let later = Instant::from_millis(500);
        assert!(pacer.allows(later));
        pacer.sent(later, 1_316, false);
        assert!(!pacer.allows(later));
    }

    #[test]
    fn a_probe_is_followed_at_once_and_charged_later() {
        let mut pacer = pacer(MaxBandwidth::Absolute(Bitrate::from_bits_per_sec(10_880_000)));
        let start = Instant::from_millis(100);
        pacer.sent(start, 1_316, true);
        assert!(pacer.allows(start));
        pacer.sent(start, 1_316, false);
        assert_eq!(pacer.next(), Instant::from_millis(102) - QUANTUM);
    }

    #[test]
    fn relative_bandwidth_adds_the_overhead_to_a_given_input_or_the_measured_one() {
        let config = Config::default()
            .with_max_bandwidth(MaxBandwidth::Relative)
            .with_input_bandwidth(Bitrate::from_mbps(8));
        assert_eq!(Pacer::new(&config).max_bandwidth(), Bitrate::from_mbps(10));
        let config = config
            .with_input_bandwidth(Bitrate::ZERO)
            .with_min_input_bandwidth(Bitrate::from_mbps(4));
        let mut pacer = Pacer::new(&config);
        assert_eq!(pacer.max_bandwidth(), Bitrate::from_mbps(1_250), "not measured yet");
        for i in 0..1_000 {
            pacer.submit(Instant::from_millis(i), 206);
        }
        assert_eq!(pacer.max_bandwidth(), Bitrate::from_mbps(5), "2 Mb/s count as 4");
    }

    #[test]
    fn unlimited_follows_an_input_faster_than_a_gigabit() {
        let mut pacer = pacer(MaxBandwidth::Unlimited);
        for i in 0..600_000u64 {
            pacer.submit(Instant::from_nanos(i * 2_720), 1_316);
        }
        // 1360 bytes each 2.72 µs are 4 Gb/s, and a quarter more is 5.
        assert_eq!(pacer.max_bandwidth(), Bitrate::from_mbps(5_000));
    }
}
