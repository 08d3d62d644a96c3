use std::time::Duration;

/// What a link did since it was made. All totals, except `queue_delay_max`.
///
/// Packets are conserved: `sent + duplicated` is `delivered + lost + dropped_by_queue` and those
/// still [in the link](crate::Link::in_flight).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct LinkStatistics {
    /// Packets put into the link.
    pub sent: u64,
    /// Bytes of those.
    pub sent_bytes: u64,
    /// Packets taken out of the link, copies included.
    pub delivered: u64,
    /// Bytes of those.
    pub delivered_bytes: u64,
    /// Packets lost at the entrance by chance or blackout.
    pub lost: u64,
    /// Packets, copies included, that the full queue refused.
    pub dropped_by_queue: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Packets, copies included, whose content was damaged after the queue took them.
    pub corrupted: u64,
    /// Packets delivered after one that had left the queue later (as RFC 4737 counts).
    pub reordered: u64,
    /// The longest time that a packet waited in the queue, without its own transmission.
    pub queue_delay_max: Duration,
}
