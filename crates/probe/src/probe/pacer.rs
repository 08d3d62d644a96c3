//! When the next message is due.

use std::time::Duration;

use bytes::Bytes;
use punctual_units::{Bitrate, Instant};

use crate::payload::{null_packets, ts_payload};

/// Sends equal messages at equal distances.
#[derive(Debug)]
pub(super) struct Pacer {
    message: Bytes,
    interval: Duration,
    next: Instant,
}

impl Pacer {
    /// A pacer for messages of at most `max_payload` bytes.
    pub(super) fn new(max_payload: usize, now: Instant) -> Self {
        Self { message: null_packets(ts_payload(max_payload)), interval: Duration::MAX, next: now }
    }

    /// Limits messages to `max_payload` bytes.
    pub(super) fn set_max_payload(&mut self, max_payload: usize) {
        self.message = null_packets(ts_payload(max_payload));
    }

    /// Sends at this rate of payloads from `now` on.
    pub(super) fn set_rate(&mut self, rate: Bitrate, now: Instant) {
        self.interval = rate.time_for(self.message.len() as u64);
        self.next = now;
    }

    /// Bytes of a message.
    pub(super) fn payload(&self) -> usize {
        self.message.len()
    }

    /// When the next message is due.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// The message that is due by `now`, if one is.
    pub(super) fn poll(&mut self, now: Instant) -> Option<Bytes> {
        if now < self.next {
            return None;
        }
        if now - self.next > LATEST {
            self.next = now;
        }
        self.next += self.interval;
        Some(self.message.clone())
    }

    /// Whether a message of another kind is due, each `interval`.
    pub(super) fn poll_other(&mut self, now: Instant, interval: Duration) -> bool {
        let due = now >= self.next;
        if due {
            self.next = now + interval;
        }
        due
    }

    /// The time that `messages` take at the present rate.
    pub(super) fn time_for(&self, messages: u32) -> Duration {
        self.interval.saturating_mul(messages)
    }
}

/// A sender that is later than this leaves messages out instead of sending a burst.
const LATEST: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const START: Instant = Instant::from_millis(1_000);

    /// A message each 10 ms.
    fn pacer() -> Pacer {
        let mut pacer = Pacer::new(1_316, START);
        pacer.set_rate(Bitrate::from_bits_per_sec(1_316 * 8 * 100), START);
        pacer
    }

    fn sent(pacer: &mut Pacer, now: Instant) -> usize {
        std::iter::from_fn(|| pacer.poll(now)).count()
    }

    #[test]
    fn messages_are_sent_at_the_rate() {
        let mut pacer = pacer();
        assert_eq!((pacer.payload(), pacer.time_for(3)), (1_316, MS(30)));
        assert_eq!((sent(&mut pacer, START), sent(&mut pacer, START + MS(9))), (1, 0));
        assert_eq!(sent(&mut pacer, START + MS(50)), 5);
        assert_eq!(pacer.next(), START + MS(60));
    }

    #[test]
    fn a_sender_that_is_very_late_sends_no_burst() {
        assert_eq!(sent(&mut pacer(), START + MS(100)), 11);
        assert_eq!(sent(&mut pacer(), START + MS(101)), 1);
    }
}
