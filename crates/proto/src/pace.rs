//! The wait from one packet to the next, which congestion control sets and the pacer keeps.

use std::time::Duration;

use punctual_units::Bitrate;

/// The time by which a packet may be sent early. A wake-up costs a driver more than a packet, so
/// packets that are due within this time of each other are sent together.
pub(crate) const QUANTUM: Duration = Duration::from_micros(100);

/// The same at a pace without a limit: about the time of one GSO batch at 1 Gb/s.
const LOOSE_QUANTUM: Duration = Duration::from_micros(500);

/// The wait after a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// The same after each packet of any size, as in FileCC.
    Packet(Duration),
    /// By a rate that is a limit: nanoseconds for 65,536 bytes.
    Bytes(u64),
    /// The same by a rate that is not a limit, and only spreads long bursts.
    Loose(u64),
}

impl Pace {
    /// The pace with `rate` as a limit, including headers.
    pub(crate) fn at(rate: Bitrate) -> Self {
        Self::Bytes(nanos_at(rate))
    }

    /// The pace near `rate`, including headers, which is not a limit.
    pub(crate) fn about(rate: Bitrate) -> Self {
        Self::Loose(nanos_at(rate))
    }

    /// The time after a packet of `bytes`, headers included.
    pub(crate) fn after(self, bytes: usize) -> Duration {
        match self {
            Self::Packet(period) => period,
            Self::Bytes(nanos) | Self::Loose(nanos) => {
                Duration::from_nanos((bytes as u64).saturating_mul(nanos) >> 16)
            }
        }
    }

    /// The time by which a packet may be sent early.
    pub(crate) const fn quantum(self) -> Duration {
        match self {
            Self::Packet(_) | Self::Bytes(_) => QUANTUM,
            Self::Loose(_) => LOOSE_QUANTUM,
        }
    }
}

/// Nanoseconds for 65,536 bytes.
fn nanos_at(rate: Bitrate) -> u64 {
    // No more than 2^48, three days: the product with a packet's size stays far below 2^64.
    let nanos = rate.time_for(1 << 16).as_nanos().min(1 << 48);
    u64::try_from(nanos).unwrap_or(1 << 48)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_a_rate_each_packet_takes_its_own_time() {
        // 10.88 Mb/s: 1360 bytes take 1 ms, 68 bytes a twentieth of it.
        let pace = Pace::at(Bitrate::from_bits_per_sec(10_880_000));
        assert_eq!(pace.after(1_360), Duration::from_millis(1));
        assert_eq!(pace.after(68), Duration::from_micros(50));
        assert!(Pace::at(Bitrate::ZERO).after(1_500) > Duration::from_secs(3_600));
        assert_eq!(Pace::at(Bitrate::from_mbps(10_000)).after(1_360), Duration::from_nanos(1_088));
    }
}
