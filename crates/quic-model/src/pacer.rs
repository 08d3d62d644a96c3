//! Pacing by a token bucket.

use std::time::Duration;

use punctual_units::Instant;

/// How a congestion control wants packets paced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum PacingRule {
    /// A window in a round trip, with bursts of a quarter of the window. In slow start on a long
    /// path it is a quarter faster and bursts are larger, so that the window can grow.
    Window { slow_start: bool },
    /// A rate in bytes a second, and the bytes of a burst.
    Rate { rate: f64, burst: u64 },
}

/// A token bucket whose tokens are time: sending a packet takes the time of a packet at the rate
/// out of it, and time fills it up to the time of a burst.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    /// Nanoseconds in the bucket; less than nothing after a packet that was exempt.
    tokens: i64,
    capacity: i64,
    packet: i64,
    filled: Instant,
    /// Whether the next pause lasts until a train of packets may go.
    gathers: bool,
}

/// The properties of the path on which the pace depends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacedPath {
    /// Congestion window, bytes.
    pub(crate) window: u64,
    /// Bytes of a full packet.
    pub(crate) mtu: u64,
    pub(crate) smoothed: Duration,
}

impl Pacer {
    /// A full bucket at the pace of the first window.
    pub(crate) fn new(pace: PacedPath) -> Self {
        let mut pacer = Self {
            tokens: i64::MAX,
            capacity: 0,
            packet: 1,
            filled: Instant::ORIGIN,
            gathers: false,
        };
        pacer.set(PacingRule::Window { slow_start: true }, pace);
        pacer
    }

    /// Goes on at another pace.
    pub(crate) fn set(&mut self, pacing: PacingRule, pace: PacedPath) {
        let PacedPath { window, mtu, smoothed } = pace;
        let seconds = smoothed.as_secs_f64();
        let (rate, burst) = match pacing {
            PacingRule::Rate { rate, burst } => (rate, burst),
            // Few packets leave one by one, as acknowledgements come.
            PacingRule::Window { .. }
                if window < 8 * mtu || smoothed <= Duration::from_micros(1) =>
            {
                self.packet = 1;
                self.capacity = nanos(smoothed.as_secs_f64()).max(self.packet);
                self.tokens = self.tokens.min(self.capacity);
                return;
            }
            PacingRule::Window { slow_start } => {
                let rate = as_f64(window) / seconds;
                let burst = match window / 4 {
                    small if small < 2 * mtu => 2 * mtu,
                    quarter if slow_start && smoothed > LONG_PATH => {
                        let in_time = rate * LONGEST_BURST.as_secs_f64();
                        quarter.max(LEAST_LONG_BURST.max(as_u64(in_time)))
                    }
                    quarter => quarter.min(16 * mtu),
                };
                (if slow_start { rate * 1.25 } else { rate }, burst)
            }
        };
        if rate <= 0.0 {
            return;
        }
        self.packet = nanos(as_f64(mtu) / rate).clamp(1, nanos(seconds).max(1));
        self.capacity = nanos(as_f64(burst) / rate).max(self.packet);
        self.tokens = self.tokens.min(self.capacity);
    }

    /// Whether a packet may be sent now.
    pub(crate) fn is_open(&mut self, now: Instant) -> bool {
        self.fill(now);
        self.tokens >= self.packet
    }

    /// When a packet may be sent, if it may not be sent now.
    pub(crate) fn opens(&mut self, now: Instant) -> Instant {
        self.fill(now);
        let goal = match std::mem::take(&mut self.gathers) {
            true => self.capacity.min(TRAIN * self.packet),
            false => self.packet,
        };
        let wait = u64::try_from(goal - self.tokens).unwrap_or_default();
        // A microsecond more, so that rounding cannot make it too early.
        now + Duration::from_nanos(wait + 1_000)
    }

    /// A packet was sent.
    pub(crate) fn sent(&mut self, now: Instant) {
        self.fill(now);
        self.tokens -= self.packet;
    }

    /// A packet was declared lost. Its repetition waits for its own time, unless the bucket is
    /// empty anyway.
    pub(crate) fn lost(&mut self) {
        if self.tokens > self.packet {
            self.tokens -= self.packet;
        }
    }

    /// Lets the next pause last until a train of packets may go. So the bottleneck sees bursts that
    /// measure it.
    pub(crate) fn gather(&mut self) {
        self.gathers = true;
    }

    fn fill(&mut self, now: Instant) {
        let elapsed = now.saturating_since(self.filled).as_nanos();
        self.filled = self.filled.max(now);
        let elapsed = i64::try_from(elapsed).unwrap_or(i64::MAX);
        self.tokens = self.tokens.max(-self.packet).saturating_add(elapsed).min(self.capacity);
    }
}

/// Packets of a train.
const TRAIN: i64 = 10;
/// A path is long if its smoothed round-trip time is longer.
const LONG_PATH: Duration = Duration::from_millis(60);
/// The least and the longest burst of slow start on a long path.
const LEAST_LONG_BURST: u64 = 0x8000;
const LONGEST_BURST: Duration = Duration::from_millis(15);

#[expect(clippy::cast_precision_loss, reason = "windows are far below 2^53 bytes")]
fn as_f64(bytes: u64) -> f64 {
    bytes as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is clamped")]
fn as_u64(bytes: f64) -> u64 {
    bytes.clamp(0.0, 1e15) as u64
}

#[expect(clippy::cast_possible_truncation, reason = "it is clamped")]
fn nanos(seconds: f64) -> i64 {
    (seconds * 1e9).clamp(0.0, 1e18) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    fn pace(window: u64) -> PacedPath {
        PacedPath { window, mtu: 1_000, smoothed: Duration::from_millis(100) }
    }

    #[test]
    fn packets_leave_at_the_rate_after_a_burst() {
        let mut pacer = Pacer::new(pace(100_000));
        pacer.set(PacingRule::Rate { rate: 1e6, burst: 3_000 }, pace(100_000));
        let (mut now, mut sent) = (us(0), Vec::new());
        while sent.len() < 6 {
            match pacer.is_open(now) {
                true => {
                    sent.push(now.as_micros());
                    pacer.sent(now);
                }
                false => now = pacer.opens(now),
            }
        }
        // A thousand bytes at a megabyte a second take a millisecond. The microsecond that is added
        // to a wait stays in the bucket.
        assert_eq!(sent, [0, 0, 0, 1_001, 2_001, 3_001]);
    }

    #[test]
    fn slow_start_on_a_long_path_begins_with_32_kib() {
        let mut pacer = Pacer::new(pace(32_000));
        let mut burst = 0;
        while pacer.is_open(us(0)) {
            pacer.sent(us(0));
            burst += 1;
        }
        assert_eq!(burst, 32);
    }

    #[test]
    fn a_small_window_is_not_paced() {
        let mut pacer = Pacer::new(pace(7_000));
        for _ in 0..100 {
            assert!(pacer.is_open(us(5)));
            pacer.sent(us(5));
        }
    }

    #[test]
    fn a_path_without_any_delay_is_not_paced() {
        let pace = PacedPath { smoothed: Duration::ZERO, ..pace(100_000) };
        let mut pacer = Pacer::new(pace);
        let mut now = us(0);
        for _ in 0..100 {
            if !pacer.is_open(now) {
                now = pacer.opens(now);
            }
            assert!(pacer.is_open(now));
            pacer.sent(now);
        }
        assert!(now < us(1_000), "{now}");
    }

    #[test]
    fn a_gathered_train_waits_for_ten_packets_once() {
        let mut pacer = Pacer::new(pace(100_000));
        pacer.set(PacingRule::Rate { rate: 1e6, burst: 20_000 }, pace(100_000));
        while pacer.is_open(us(0)) {
            pacer.sent(us(0));
        }
        pacer.gather();
        assert_eq!(pacer.opens(us(0)), us(10_001));
        assert_eq!(pacer.opens(us(0)), us(1_001));
    }

    #[test]
    fn a_lost_packet_makes_the_next_one_wait() {
        let mut pacer = Pacer::new(pace(100_000));
        pacer.set(PacingRule::Rate { rate: 1e6, burst: 3_000 }, pace(100_000));
        pacer.lost();
        pacer.lost();
        pacer.lost();
        assert!(pacer.is_open(us(0)), "the last packet's time stays");
        pacer.sent(us(0));
        assert!(!pacer.is_open(us(0)));
    }
}
