//! The rate at which packets arrive (draft-cheng-iccrg-delivery-rate-estimation).

use std::time::Duration;

use punctual_units::{Bitrate, Instant};

/// The rate between the sending of a packet and the answer to it.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::traffic) struct RateSample {
    pub(in crate::traffic) rate: Bitrate,
    /// Bytes that had arrived when the packet was sent.
    pub(in crate::traffic) prior_delivered: u64,
    /// The time over which the rate was measured; zero if it was too short for a rate.
    pub(in crate::traffic) interval: Duration,
    /// Whether the application had too little data then.
    pub(in crate::traffic) is_app_limited: bool,
    /// Bytes in flight when the packet was sent, itself included.
    pub(in crate::traffic) flight: u64,
    /// Bytes that were found to be lost since then.
    pub(in crate::traffic) lost: u64,
}

impl RateSample {
    /// Whether the rate means anything.
    pub(in crate::traffic) fn is_valid(&self) -> bool {
        self.interval > Duration::ZERO
    }
}

/// Measures the rate at which a flow's packets arrive.
#[derive(Debug)]
pub(super) struct FlowDeliveryRate {
    /// Bytes that arrived, and when the last of them did.
    delivered: u64,
    delivered_at: Instant,
    /// When the newest packet that arrived was sent.
    first_sent: Instant,
    /// The application had too little data before this byte.
    app_limited_up_to: u64,
    /// Bytes that were found to be lost.
    lost: u64,
    /// The newest packet of this answer.
    newest: Option<(Instant, Snapshot)>,
}

/// The state of the flow when a packet was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Snapshot {
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    is_app_limited: bool,
    flight: u64,
    lost: u64,
}

impl FlowDeliveryRate {
    pub(super) fn new() -> Self {
        Self {
            delivered: 0,
            delivered_at: Instant::ORIGIN,
            first_sent: Instant::ORIGIN,
            app_limited_up_to: 0,
            lost: 0,
            newest: None,
        }
    }

    /// Bytes that arrived.
    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// A packet of `bytes` bytes is sent, with `flight` bytes in flight before it.
    pub(super) fn on_send(&mut self, now: Instant, bytes: u64, flight: u64) -> Snapshot {
        if flight == 0 {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        Snapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            is_app_limited: self.is_app_limited(),
            flight: flight + bytes,
            lost: self.lost,
        }
    }

    /// Whether the application had too little data for all packets in flight.
    pub(super) fn is_app_limited(&self) -> bool {
        self.app_limited_up_to > self.delivered
    }

    /// The application has no data, with `flight` bytes in flight.
    pub(super) fn on_source_empty(&mut self, flight: u64) {
        self.app_limited_up_to = self.delivered + flight.max(1);
    }

    /// A packet of `bytes` bytes arrived that was sent at `sent`. A later one of the same answer
    /// counts for the sample if it was sent later.
    pub(super) fn on_arrival(&mut self, now: Instant, bytes: u64, sent: Instant, then: Snapshot) {
        self.on_late_arrival(now, bytes);
        if self.newest.is_none_or(|(newest, _)| sent >= newest) {
            self.newest = Some((sent, then));
            self.first_sent = self.first_sent.max(sent);
        }
    }

    /// A packet arrived of which the sender does not remember when it was sent.
    pub(super) fn on_late_arrival(&mut self, now: Instant, bytes: u64) {
        self.delivered += bytes;
        self.delivered_at = now;
    }

    /// A packet of `bytes` bytes was lost.
    pub(super) fn on_loss(&mut self, bytes: u64) {
        self.lost += bytes;
    }

    /// The rate after all arrivals of an answer. Intervals below the least round trip are too short
    /// for one: answers came in a bunch.
    pub(super) fn sample(&mut self, least_rtt: Duration) -> Option<RateSample> {
        let (sent, then) = self.newest.take()?;
        let sending = sent - then.first_sent;
        let arriving = self.delivered_at - then.delivered_at;
        let interval = sending.max(arriving);
        let interval = if interval < least_rtt { Duration::ZERO } else { interval };
        Some(RateSample {
            rate: Bitrate::of(self.delivered - then.delivered, interval),
            prior_delivered: then.delivered,
            interval,
            is_app_limited: then.is_app_limited,
            flight: then.flight,
            lost: self.lost - then.lost,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> Instant = Instant::from_millis;
    const RTT: Duration = Duration::from_millis(50);

    #[test]
    fn the_rate_is_that_of_sending_or_of_arriving_whichever_is_lower() {
        let mut rate = FlowDeliveryRate::new();
        // Ten packets at once; they arrive each 10 ms.
        let sent: Vec<Snapshot> = (0..10).map(|n| rate.on_send(AT(0), 1_000, 1_000 * n)).collect();
        for (n, snapshot) in (0..).zip(&sent[..9]) {
            rate.on_arrival(AT(50 + 10 * n), 1_000, AT(0), *snapshot);
            rate.sample(RTT);
        }
        rate.on_arrival(AT(140), 1_000, AT(0), sent[9]);
        // 10 kB in 140 ms.
        let sample = rate.sample(RTT).expect("a packet arrived");
        assert_eq!(sample.rate, Bitrate::of(10_000, Duration::from_millis(140)));
        // Answers that come all at once, to packets that were sent each 10 ms.
        let sent: Vec<_> = (0..10)
            .map(|n| (AT(150 + 10 * n), rate.on_send(AT(150 + 10 * n), 1_000, 1_000 * n)))
            .collect();
        for (at, snapshot) in sent {
            rate.on_arrival(AT(300), 1_000, at, snapshot);
        }
        let sample = rate.sample(RTT).expect("a packet arrived");
        assert_eq!(sample.rate, Bitrate::of(10_000, Duration::from_millis(150)));
        assert!(sample.is_valid() && !sample.is_app_limited);
    }

    #[test]
    fn packets_after_a_silence_of_the_application_are_marked_for_a_round_trip() {
        let mut rate = FlowDeliveryRate::new();
        let first = rate.on_send(AT(0), 1_000, 0);
        rate.on_source_empty(1_000);
        let second = rate.on_send(AT(10), 1_000, 1_000);
        rate.on_arrival(AT(50), 1_000, AT(0), first);
        let third = rate.on_send(AT(50), 1_000, 1_000);
        assert_eq!(
            [first, second, third].map(|packet| packet.is_app_limited),
            [false, true, false]
        );
    }

    #[test]
    fn an_interval_below_the_least_round_trip_gives_no_rate() {
        let mut rate = FlowDeliveryRate::new();
        let packet = rate.on_send(AT(0), 1_000, 0);
        rate.on_arrival(AT(40), 1_000, AT(0), packet);
        assert!(!rate.sample(RTT).expect("a packet arrived").is_valid());
        assert!(rate.sample(RTT).is_none(), "no arrival");
    }
}
