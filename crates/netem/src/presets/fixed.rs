//! Paths whose figures are given and change little.

use std::time::Duration;

use punctual_units::Bitrate;

use crate::change::Change;
use crate::config::{LinkConfig, QueueLimit};
use crate::loss::Loss;
use crate::profile::{LinkProfile, PathProfile};
use crate::timeline::{Event, Timeline};

/// The laboratory link of the experiments on SRT's retransmissions: RTT 20 ms, 45 Mb/s. The loss is
/// what the experiments vary; add it to the path.
pub(super) fn lab(_: u64) -> PathProfile {
    let config = LinkConfig::default()
        .with_rate(Some(Bitrate::from_mbps(45)))
        .with_delay(Duration::from_millis(10));
    config.into()
}

/// Some 15,000 km of fibre, and loss on both ways.
pub(super) fn intercontinental(_: u64) -> PathProfile {
    let config = LinkConfig {
        delay: Duration::from_millis(100),
        loss: Loss::Random(0.02),
        ..LinkConfig::default()
    };
    config.into()
}

/// The link of picoquic's test: packets that are too long vanish after the drop.
///
/// The source counts the payload of UDP alone, for the rate and for the MTU. Our packets have the
/// headers of IPv4 and UDP: so the rate leaves out 28 bytes of each packet ([`HEADERS`]), and the
/// MTU, which is that of the packet, is 28 bytes larger than the source's. Its clock rounds the time
/// of a transmission down to a microsecond, ours does not.
pub(super) fn mtu_drop(_: u64) -> PathProfile {
    let config = LinkConfig {
        // 8 µs a byte by 2^20 instead of 10^6, which is how the source computes it.
        rate: Some(Bitrate::from_bits_per_sec(1_048_576)),
        // It drops what would wait for 200 ms, we what would wait for longer than the limit.
        queue: QueueLimit::Time(Duration::from_millis(200) - Duration::from_nanos(1)),
        mtu: Some(1_536 + HEADERS),
        overhead: -28,
        delay: Duration::from_millis(100),
        ..LinkConfig::default()
    };
    let drop = Event::set(Duration::from_micros(1_222_964), Change::Mtu(Some(1_394 + HEADERS)));
    LinkProfile::from(config).with_timeline(Timeline::new().with(drop)).into()
}

/// Bytes of the headers of IPv4 and UDP.
const HEADERS: usize = 28;
