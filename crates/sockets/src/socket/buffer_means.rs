//! The mean contents of a connection's buffers over about the last second: libsrt's `srt_bstats`
//! shows them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use punctual::{Instant, Statistics};

/// The time over which contents are averaged, as in libsrt.
const PERIOD: Duration = Duration::from_secs(1);
/// The least time between two samples, as in libsrt.
const INTERVAL: Duration = Duration::from_millis(25);

/// The contents of a buffer, as means.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BufferLevel {
    /// The number of packets.
    pub packets: f64,
    /// The bytes of their payloads.
    pub bytes: f64,
    /// The time from the oldest to the newest message, milliseconds.
    pub millis: f64,
}

/// The contents of both buffers of a connection, as means.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BufferLevels {
    /// The send buffer.
    pub send: BufferLevel,
    /// The receive buffer.
    pub receive: BufferLevel,
}

/// Samples the buffers of a connection when the program sends or asks for statistics.
#[derive(Debug, Default)]
pub(super) struct BufferMeans {
    /// The instant of the last sample, microseconds. It changes under the lock, and is read without
    /// it by every call that sends.
    sampled: AtomicU64,
    means: Mutex<BufferLevels>,
}

impl BufferMeans {
    /// Whether the last sample was taken a while ago.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.age(now) >= INTERVAL
    }

    /// Takes a sample, unless the last one was taken shortly before. Returns the means.
    pub(super) fn sample(&self, now: Instant, present: &Statistics) -> BufferLevels {
        let mut means = self.means.lock().unwrap_or_else(PoisonError::into_inner);
        let age = self.age(now);
        if age >= INTERVAL {
            // A sample stands for the time since the one before it.
            let weight = age.min(PERIOD).as_secs_f64() / PERIOD.as_secs_f64();
            *means = means.mixed(levels(present), weight);
            self.sampled.store(now.as_micros(), Ordering::Relaxed);
        }
        *means
    }

    fn age(&self, now: Instant) -> Duration {
        now.saturating_since(Instant::from_micros(self.sampled.load(Ordering::Relaxed)))
    }
}

impl BufferLevels {
    fn mixed(self, sample: Self, weight: f64) -> Self {
        Self {
            send: self.send.mixed(sample.send, weight),
            receive: self.receive.mixed(sample.receive, weight),
        }
    }
}

impl BufferLevel {
    fn mixed(self, sample: Self, weight: f64) -> Self {
        let mix = |mean: f64, sample: f64| mean + (sample - mean) * weight;
        Self {
            packets: mix(self.packets, sample.packets),
            bytes: mix(self.bytes, sample.bytes),
            millis: mix(self.millis, sample.millis),
        }
    }
}

fn levels(present: &Statistics) -> BufferLevels {
    #[expect(clippy::cast_precision_loss, reason = "buffers are far smaller")]
    let level = |packets: u32, bytes: u64, span: Duration| BufferLevel {
        packets: packets.into(),
        bytes: bytes as f64,
        millis: span.as_secs_f64() * 1e3,
    };
    BufferLevels {
        send: level(
            present.send_buffer_packets,
            present.send_buffer_bytes,
            present.send_buffer_span,
        ),
        receive: level(
            present.receive_buffer_packets,
            present.receive_buffer_bytes,
            present.receive_buffer_span,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::from_millis(10_000 + ms)
    }

    fn holding(packets: u32) -> Statistics {
        let mut present = Statistics::default();
        present.send_buffer_packets = packets;
        present.send_buffer_bytes = u64::from(packets) * 100;
        present.receive_buffer_packets = 2 * packets;
        present
    }

    #[test]
    fn after_a_second_without_samples_the_mean_is_the_present_level() {
        let means = BufferMeans::default();
        for (at, packets) in [(0, 40), (1_000, 20), (60_000, 0)] {
            assert_eq!(means.sample(ms(at), &holding(packets)), levels(&holding(packets)));
        }
    }

    #[test]
    fn a_sample_weighs_as_long_as_the_time_since_the_one_before() {
        let means = BufferMeans::default();
        means.sample(ms(0), &holding(40));
        let half = means.sample(ms(500), &holding(0));
        assert_eq!((half.send.packets, half.send.bytes, half.receive.packets), (20., 2_000., 40.));
        assert_eq!(means.sample(ms(600), &holding(0)).send.packets, 18.);
    }

    #[test]
    fn samples_in_quick_succession_change_nothing() {
        let means = BufferMeans::default();
        assert!(means.is_due(ms(0)));
        means.sample(ms(0), &holding(40));
        assert!(!means.is_due(ms(24)) && means.is_due(ms(25)));
        assert_eq!(means.sample(ms(24), &holding(0)).send.packets, 40.);
        assert_eq!(means.sample(ms(25), &holding(0)).send.packets, 39.);
    }
}
