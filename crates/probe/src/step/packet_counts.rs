//! Counts of packets, and the shares that follow from them.

use super::float;

/// Packets of some time, as the receiving end counted them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct PacketCounts {
    /// Packets stored for delivery.
    pub(crate) received: u64,
    /// Packets that were missing when a later one arrived, reordered ones included.
    pub(crate) missing: u64,
    /// Gaps that the missing packets left.
    pub(crate) gaps: u64,
    /// Missing packets whose originals arrived after all.
    pub(crate) reordered: u64,
}

impl PacketCounts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.received += other.received;
        self.missing += other.missing;
        self.gaps += other.gaps;
        self.reordered += other.reordered;
    }

    /// Packets that the link lost.
    pub(crate) fn lost(&self) -> u64 {
        self.missing.saturating_sub(self.reordered)
    }

    /// Share of packets that the link lost, 0 to 1.
    pub(crate) fn loss(&self) -> f64 {
        // A packet that was missing and came after all is in both counts.
        let all = self.received.max(self.missing).max(1);
        (float(self.lost()) / float(all)).min(1.0)
    }

    /// The longest run of missing packets that these counts allow: all gaps but one may be as
    /// short as can be.
    pub(crate) fn longest_gap(&self) -> u64 {
        self.missing.saturating_sub(self.gaps.saturating_sub(1)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reordered_packet_is_not_lost() {
        let mut counts = PacketCounts { received: 60, missing: 6, gaps: 4, reordered: 1 };
        counts.add(&PacketCounts { received: 40, ..PacketCounts::default() });
        assert_eq!((counts.lost(), counts.longest_gap()), (5, 3));
        assert!((counts.loss() - 0.05).abs() < 1e-12, "{}", counts.loss());
    }

    #[test]
    fn the_loss_is_a_share_whatever_a_peer_counts() {
        let of = |received, missing, reordered| {
            PacketCounts { received, missing, gaps: 9, reordered }.loss()
        };
        assert_eq!((of(0, 0, 0), of(3, 0, 7)), (0.0, 0.0));
        assert!((of(1, 100, 0) - 1.0).abs() < 1e-12);
    }
}
