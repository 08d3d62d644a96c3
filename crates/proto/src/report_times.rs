//! The times of ACKs and NAKs, which a receiver keeps to and its sender counts on.

use std::time::Duration;

use punctual_rtt::Rtt;

/// Time between full ACKs (draft section 3.2.4).
pub(crate) const ACK_PERIOD: Duration = Duration::from_millis(10);
/// Copies of the last NAK that can be answered in time, while gaps are frequent.
pub(crate) const FEW_LAST: u32 = 3;
/// The least time beyond a round trip before a retransmission counts as overdue, because of delays
/// in hosts.
pub(crate) const LEAST_MARGIN: Duration = Duration::from_millis(1);
/// Bounds of the time between a NAK and its copy, which is a sixteenth of the round trip.
const LEAST_COPY_SPACING: Duration = Duration::from_micros(500);
const MOST_COPY_SPACING: Duration = Duration::from_millis(5);
/// Least time between periodic NAKs (draft section 4.8.2).
const LEAST_NAK_PERIOD: Duration = Duration::from_millis(20);

/// The time between a NAK and its copy.
pub(crate) fn copy_spacing(rtt: Rtt) -> Duration {
    (rtt.smoothed / 16).clamp(LEAST_COPY_SPACING, MOST_COPY_SPACING)
}

/// A sender's estimate of the time from a NAK to its repetition.
pub(crate) fn retransmission_timeout(rtt: Rtt) -> Duration {
    rtt.smoothed + (rtt.variance * 2).max(LEAST_MARGIN) + copy_spacing(rtt)
}

/// The time from the last NAK that can be answered in time to its last copy but one.
pub(crate) fn last_nak_copies(rtt: Rtt) -> Duration {
    copy_spacing(rtt) * (FEW_LAST - 1)
}

/// The time between periodic NAKs of live streams: half of RTT + 4 RTTVar, 20 ms at least (draft
/// section 4.8.2).
pub(crate) fn periodic_nak_interval(rtt: Rtt) -> Duration {
    (rtt.bound() / 2).max(LEAST_NAK_PERIOD)
}
