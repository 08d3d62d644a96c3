//! Paths whose figures are given and change little.

use std::time::Duration;

use punctual_units::Bitrate;

use crate::change::Change;
use crate::config::{Jitter, LinkConfig, QueueLimit, Reorder};
use crate::loss::Loss;
use crate::profile::{LinkProfile, PathProfile};
use crate::timeline::{Event, Timeline};

/// The laboratory link of the experiments on SRT's retransmissions: RTT 20 ms, 45 Mb/s. The
/// experiments vary the loss; add it to the path.
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

/// Wi-Fi at both ends of a path from Germany to Spain, as 3 Mb/s of QUIC datagrams met it.
///
/// - **Loss of 0.106 %, reordering of 2.2 in 100,000**: the means of the four experiments. Their
///   tables say percent, but the counts of packets show that they are shares.
/// - **TS-DF 33 ms on average, 292 ms at most**: jitter of a long tail, order kept, as Wi-Fi keeps
///   it while it repeats a frame. Of a Pareto distribution of shape 3 the largest of 285 packets,
///   those of a second, is 8 times its scale from the least on average, the largest of a quarter of
///   an hour 71 times: the same relation as 33 to 292. The scale is then 4.2 ms, the standard
///   deviation 3.6 ms.
/// - **RTT 55 ms and 40 Mb/s are assumed**: fibre from Rendsburg to Madrid and back takes about 30
///   ms, routers and Wi-Fi the rest; the rate is what the receiver's Wi-Fi of 20 MHz gives.
pub(super) fn wifi_to_wifi(_: u64) -> PathProfile {
    let config = LinkConfig {
        rate: Some(Bitrate::from_mbps(40)),
        delay: Duration::from_millis(26),
        jitter: Jitter::Pareto { std_dev: Duration::from_micros(3_600) },
        loss: Loss::Random(0.001_06),
        reorder: Reorder::Late { share: 0.000_022, by: Duration::from_millis(40) },
        ..LinkConfig::default()
    };
    config.into()
}

/// The link of picoquic's test: packets that are too long vanish after the drop.
///
/// The source counts the payload of UDP alone, for the rate and for the MTU. Our packets have the
/// headers of IPv4 and UDP: so the rate leaves out 28 bytes of each packet ([`HEADERS`]), and the
/// MTU, which is that of the packet, is 28 bytes larger than the source's. Its clock rounds the
/// time of a transmission down to a microsecond, ours does not.
pub(super) fn mtu_drop(_: u64) -> PathProfile {
    let config = LinkConfig {
        // 8 µs a byte by 2^20 instead of 10^6, which is how the source computes it.
        rate: Some(Bitrate::from_bits_per_sec(1_048_576)),
        // The article's queue drops packets that would wait for 200 ms, ours drops the ones that
        // would wait for longer than the limit.
        // for longer than the limit.
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
