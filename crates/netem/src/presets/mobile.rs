//! A moderately bad mobile link.

use std::time::Duration;

use punctual_units::Bitrate;

use crate::config::{Jitter, LinkConfig, QueueLimit};
use crate::loss::Loss;
use crate::profile::PathProfile;

/// One direction of a moderately bad mobile link, as a camera on a 4G modem has it: use it both
/// ways, with two seeds, for an RTT of 60 ms and some 2 % of loss each way.
///
/// - **Rate 20 Mb/s, queue 300 ms.** What a 4G subscription usually promises; the base station
///   buffers deeply, so that too much data shows as delay long before it shows as loss.
/// - **Delay 25 ms, normal jitter of 6 ms, order kept.** The radio link delivers in order and holds
///   everything behind a packet that it repeats, so packets come in clusters. At 5 Mb/s the mean
///   delay becomes 30 ms, its 99th percentile 40 ms and the interarrival jitter of RFC 3550 3 ms.
/// - **Gilbert–Elliott loss of 2.1 %.** Fades and handovers lose packets in bursts: one packet in
///   20 falls into a bad spell, of 10 packets on average, that loses 40 % of them; else 0.1 % is
///   lost.
pub fn mobile() -> LinkConfig {
    LinkConfig {
        rate: Some(Bitrate::from_mbps(20)),
        queue: QueueLimit::Time(Duration::from_millis(300)),
        delay: Duration::from_millis(25),
        jitter: Jitter::Normal { std_dev: Duration::from_millis(6) },
        loss: Loss::GilbertElliott { p: 0.1 / 19.0, r: 0.1, good_loss: 0.001, bad_loss: 0.4 },
        ..LinkConfig::default()
    }
}

/// [`mobile`] both ways.
pub(super) fn path(_: u64) -> PathProfile {
    mobile().into()
}
