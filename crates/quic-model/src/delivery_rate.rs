//! Samples of the rate at which data arrives (draft-cheng-iccrg-delivery-rate-estimation).

use std::time::Duration;

use punctual_units::Instant;

/// Measures the rate from the acknowledgements of a path.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathDeliveryRate {
    /// Bytes acknowledged so far.
    delivered: u64,
    /// The latest sample's point.
    latest: Option<DeliveryPoint>,
    /// The point from which the next peak counts.
    peak_from: Option<DeliveryPoint>,
    rate: u64,
    peak: u64,
    /// Bytes that had been delivered when the newest packet of the latest sample was sent.
    delivered_before: u64,
    is_limited: bool,
    /// Samples are limited by the application until as much is delivered.
    limited_until: u64,
}

/// A point of the measurement: so much was delivered at that time, by a packet sent at that time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeliveryPoint {
    delivered: u64,
    at: Instant,
    sent: Instant,
}

/// The state when a packet was sent, which the packet keeps.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeliverySnapshot {
    point: DeliveryPoint,
    is_limited: bool,
}

impl PathDeliveryRate {
    /// For a packet that is sent now.
    pub(crate) fn stamp(&self) -> DeliverySnapshot {
        let point = self.latest.unwrap_or_default();
        DeliverySnapshot { point, is_limited: self.limited_until > 0 }
    }

    /// The application has nothing to send, so samples until now say little about the path.
    pub(crate) fn limited(&mut self) {
        self.limited_until = self.delivered;
    }

    /// A packet of this size was acknowledged.
    pub(crate) fn acknowledged(&mut self, bytes: u64) {
        self.delivered += bytes;
    }

    /// Takes a sample with the newest packet that an acknowledgement covers.
    pub(crate) fn sample(&mut self, now: Instant, sent: Instant, stamp: DeliverySnapshot) {
        self.sample_rate(now, sent, stamp);
        self.sample_peak(now, sent);
    }

    fn sample_rate(&mut self, now: Instant, sent: Instant, stamp: DeliverySnapshot) {
        let here = DeliveryPoint { delivered: self.delivered, at: now, sent };
        let Some(latest) = self.latest else {
            self.latest = Some(here);
            return;
        };
        if sent < latest.sent {
            return;
        }
        let Some(rate) = rate(stamp.point, here) else { return };
        if !stamp.is_limited || rate > self.rate {
            self.rate = rate;
        }
        self.latest = Some(here);
        self.delivered_before = stamp.point.delivered;
        self.is_limited = stamp.is_limited;
        if self.delivered > self.limited_until {
            self.limited_until = 0;
        }
    }

    fn sample_peak(&mut self, now: Instant, sent: Instant) {
        let here = DeliveryPoint { delivered: self.delivered, at: now, sent };
        match self.peak_from {
            Some(from) if sent < from.sent => {}
            Some(from) => {
                if let Some(rate) = rate(from, here) {
                    self.peak = self.peak.max(rate);
                    self.peak_from = Some(here);
                }
            }
            None => self.peak_from = Some(here),
        }
    }

    /// Bytes acknowledged so far.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// The latest rate, bytes a second; 0 before the first sample.
    pub(crate) fn rate(&self) -> u64 {
        self.rate
    }

    /// The greatest rate between two acknowledgements, bytes a second.
    pub(crate) fn peak(&self) -> u64 {
        self.peak
    }

    /// Bytes that had been delivered when the newest packet of the latest sample was sent. A round
    /// trip has passed since a moment if as much had been delivered then.
    pub(crate) fn delivered_before(&self) -> u64 {
        self.delivered_before
    }

    /// Whether the application limited the latest sample.
    pub(crate) fn is_limited(&self) -> bool {
        self.is_limited
    }
}

/// The rate between two points, over the longer of the times in which the data was sent and
/// acknowledged; `None` if that is too short to measure.
fn rate(from: DeliveryPoint, to: DeliveryPoint) -> Option<u64> {
    let acknowledged = to.at.saturating_since(from.at);
    if acknowledged <= LEAST_INTERVAL {
        return None;
    }
    let interval = acknowledged.max(to.sent.saturating_since(from.sent));
    let micros = u64::try_from(interval.as_micros()).ok()?.max(1);
    Some((to.delivered - from.delivered).saturating_mul(1_000_000) / micros)
}

const LEAST_INTERVAL: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn a_rate_is_the_bytes_over_the_longer_of_both_times() {
        let mut rate = PathDeliveryRate::default();
        rate.acknowledged(1_000);
        rate.sample(ms(100), ms(0), DeliverySnapshot::default());
        let stamp = rate.stamp();
        rate.acknowledged(5_000);
        // 5000 bytes, acknowledged in 50 ms but sent in 100 ms.
        rate.sample(ms(150), ms(100), stamp);
        assert_eq!(
            (rate.rate(), rate.delivered(), rate.delivered_before()),
            (50_000, 6_000, 1_000)
        );
    }

    #[test]
    fn a_sample_that_the_application_limits_counts_only_if_it_is_greater() {
        let mut rate = PathDeliveryRate::default();
        rate.acknowledged(1_000);
        rate.sample(ms(100), ms(0), DeliverySnapshot::default());
        let free = rate.stamp();
        rate.limited();
        let limited = rate.stamp();
        rate.acknowledged(10_000);
        rate.sample(ms(200), ms(100), free);
        assert_eq!(rate.rate(), 100_000);
        rate.acknowledged(1_000);
        rate.sample(ms(300), ms(110), limited);
        assert_eq!((rate.rate(), rate.is_limited()), (100_000, true));
    }

    #[test]
    fn the_peak_is_the_greatest_rate_between_two_acknowledgements() {
        let mut rate = PathDeliveryRate::default();
        for (at, bytes) in [(100, 1_000), (110, 2_000), (120, 4_000), (190, 1_000)] {
            rate.acknowledged(bytes);
            rate.sample(ms(at), ms(at - 100), DeliverySnapshot::default());
        }
        assert_eq!(rate.peak(), 400_000);
    }
}
