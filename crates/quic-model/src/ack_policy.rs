//! When a receiver acknowledges.

use std::time::Duration;

/// The acknowledgements that a receiver sends.
///
/// An acknowledgement is due when as many packets have come as one is to cover, when the oldest of
/// them has waited for the delay, and at once when a packet comes out of order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AckPolicy {
    /// One for this many packets, at least 1, and after this delay in any case (RFC 9000 section
    /// 13.2.2: 2 packets; `max_ack_delay`: 25 ms).
    Every {
        /// Packets that one acknowledgement covers.
        packets: u64,
        /// The time for which it may wait.
        delay: Duration,
    },
    /// The sender asks for a quarter of its window at a time, between 2 and 64 packets, and for a
    /// delay of a quarter of the least round trip, between 1 and 10 ms
    /// (draft-ietf-quic-ack-frequency, as picoquic used it in 2023).
    Negotiated {
        /// The delay until the first request arrives: 1 ms in the published code's classic arm,
        /// 10 ms in its other arms.
        first_delay: Duration,
    },
}

impl AckPolicy {
    /// The policy of the published arms that update once per round trip.
    pub const RETUNED: Self = Self::Negotiated { first_delay: LONGEST_DELAY };
    /// The policy of the published classic arm, which did not compute the delay before the first
    /// request.
    pub const NOT_RETUNED: Self = Self::Negotiated { first_delay: SHORTEST_DELAY };

    /// The packets and the delay with which a receiver begins.
    pub(crate) fn first(self) -> (u64, Duration) {
        match self {
            Self::Every { packets, delay } => (packets.max(1), delay),
            Self::Negotiated { first_delay } => (2, first_delay),
        }
    }

    /// Whether the sender asks for the acknowledgements that it wants.
    pub(crate) fn is_negotiated(self) -> bool {
        matches!(self, Self::Negotiated { .. })
    }

    /// The greatest delay that the receiver announces to its peer.
    pub fn max_delay(self) -> Duration {
        match self {
            Self::Every { delay, .. } => delay,
            Self::Negotiated { .. } => LONGEST_DELAY,
        }
    }
}

/// The state of a sender from which it computes its request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    pub(crate) window: u64,
    pub(crate) mtu: u64,
    /// Whether the congestion control has left its first slow start.
    pub(crate) knows_path: bool,
    pub(crate) smoothed: Duration,
    pub(crate) least: Duration,
    /// Bytes a second.
    pub(crate) rate: u64,
}

impl Demand {
    /// The packets that one acknowledgement is to cover, and its delay.
    pub(crate) fn request(&self) -> (u64, Duration) {
        let in_window = (self.window / self.mtu.max(1)).max(2);
        let mut packets = if self.knows_path { in_window } else { in_window / 2 };
        if self.smoothed < 4 * SHORTEST_DELAY {
            let smoothed = self.smoothed.max(SHORTEST_DELAY).as_micros();
            packets *= u64::try_from(4_000 / smoothed).unwrap_or(1);
        }
        let least = match self.rate {
            fast if fast > FAST && self.least > Duration::from_millis(100) => 10,
            fast if fast > FAST => 4,
            _ => 2,
        };
        let quarter = packets.div_ceil(4);
        let packets = match quarter {
            many if many > 32 => (32 + (packets.saturating_sub(128)) / 8).min(64),
            few => few.max(least),
        };
        (packets, (self.least / 4).clamp(SHORTEST_DELAY, LONGEST_DELAY))
    }
}

const SHORTEST_DELAY: Duration = Duration::from_millis(1);
const LONGEST_DELAY: Duration = Duration::from_millis(10);
/// A rate above which acknowledgements are rarer, bytes a second.
const FAST: u64 = 2_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn demand(window: u64, knows_path: bool) -> Demand {
        Demand { window, mtu: 1_000, knows_path, smoothed: MS(200), least: MS(200), rate: 100_000 }
    }

    #[test]
    fn a_sender_asks_for_a_quarter_of_its_window_at_a_time() {
        let packets = |window, knows| demand(window, knows).request().0;
        assert_eq!(packets(40_000, true), 10);
        assert_eq!(packets(40_000, false), 5, "half as many while the window grows");
        assert_eq!(packets(3_000, true), 2);
        assert_eq!(packets(200_000, true), 41);
        assert_eq!(packets(9_000_000, true), 64);
    }

    #[test]
    fn the_delay_is_a_quarter_of_the_round_trip_within_limits() {
        let delay = |least| Demand { least: MS(least), ..demand(40_000, true) }.request().1;
        assert_eq!([delay(2), delay(20), delay(200)], [MS(1), MS(5), MS(10)]);
    }

    #[test]
    fn a_fast_path_is_acknowledged_more_rarely() {
        let fast = Demand { rate: 3_000_000, ..demand(10_000, true) };
        assert_eq!(fast.request().0, 10);
        assert_eq!(Demand { least: MS(50), ..fast }.request().0, 4);
        let short = Demand { smoothed: Duration::from_micros(1_300), rate: 0, ..fast };
        assert_eq!(short.request().0, 8, "three times as many on a path of 1.3 ms");
    }
}
