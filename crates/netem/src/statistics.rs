use std::time::Duration;

use crate::loss::LossCause;

/// Totals of a link since it was made, and the greatest queueing delay.
///
/// Packets are conserved: `sent + duplicated` is `delivered + dropped()` and those still
/// [in the link](crate::Link::in_flight), where [`dropped`](Self::dropped) is
/// `lost + dropped_by_queue + dropped_by_codel + dropped_by_mtu`.
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
    /// Packets lost at the entrance: `lost_by_chance + lost_by_pattern + lost_in_outage`.
    pub lost: u64,
    /// Of those, by chance: random and Gilbert–Elliott loss.
    pub lost_by_chance: u64,
    /// Of those, by periodic or timed loss, or because they were listed.
    pub lost_by_pattern: u64,
    /// Of those, while nothing came through: an outage of the timeline, or [`crate::Loss::All`].
    pub lost_in_outage: u64,
    /// Packets, copies included, that the full queue refused.
    pub dropped_by_queue: u64,
    /// Packets, copies included, that CoDel took out of the queue.
    pub dropped_by_codel: u64,
    /// Packets, copies included, that were transmitted for nothing, being longer than the MTU.
    pub dropped_by_mtu: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Packets, copies included, whose content was damaged after the queue took them.
    pub corrupted: u64,
    /// Packets delivered after one that had left the queue later (as RFC 4737 counts).
    pub reordered: u64,
    /// The longest time that a packet waited in the queue, without its own transmission.
    pub queue_delay_max: Duration,
}

impl LinkStatistics {
    /// Packets that did not and will not come out, by whatever cause.
    pub fn dropped(&self) -> u64 {
        self.lost + self.dropped_by_queue + self.dropped_by_codel + self.dropped_by_mtu
    }

    /// The packets that did not and will not come out, by cause, in words for people.
    pub fn drops(&self) -> [(&'static str, u64); 6] {
        [
            ("lost by chance", self.lost_by_chance),
            ("lost by pattern", self.lost_by_pattern),
            ("lost in an outage", self.lost_in_outage),
            ("dropped by the queue", self.dropped_by_queue),
            ("dropped by CoDel", self.dropped_by_codel),
            ("dropped, too long", self.dropped_by_mtu),
        ]
    }

    /// Adds what another link did.
    pub fn merge(&mut self, other: &Self) {
        self.sent += other.sent;
        self.sent_bytes += other.sent_bytes;
        self.delivered += other.delivered;
        self.delivered_bytes += other.delivered_bytes;
        self.lost += other.lost;
        self.lost_by_chance += other.lost_by_chance;
        self.lost_by_pattern += other.lost_by_pattern;
        self.lost_in_outage += other.lost_in_outage;
        self.dropped_by_queue += other.dropped_by_queue;
        self.dropped_by_codel += other.dropped_by_codel;
        self.dropped_by_mtu += other.dropped_by_mtu;
        self.duplicated += other.duplicated;
        self.corrupted += other.corrupted;
        self.reordered += other.reordered;
        self.queue_delay_max = self.queue_delay_max.max(other.queue_delay_max);
    }

    pub(crate) fn count_lost(&mut self, cause: LossCause) {
        self.lost += 1;
        match cause {
            LossCause::Generators => self.lost_by_chance += 1,
            LossCause::Pattern => self.lost_by_pattern += 1,
            LossCause::Outage => self.lost_in_outage += 1,
        }
    }
}
