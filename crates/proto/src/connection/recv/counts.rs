use std::time::Duration;

use crate::config::PACKET_OVERHEAD;
use crate::statistics::Statistics;

/// The counters of the receiving half. Bytes are payload here, without headers.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    received: u64,
    bytes_received: u64,
    unique: u64,
    bytes_unique: u64,
    retransmitted: u64,
    lost: u64,
    gaps: u64,
    gaps_single: u64,
    reordered: u64,
    dropped: u64,
    undecrypted: u64,
    bytes_undecrypted: u64,
    pub(crate) not_authentic: u64,
    belated: u64,
    duplicate: u64,
    mean_lateness: Duration,
    jumps: u64,
    filter_extra: u64,
    filter_supplied: u64,
    filter_lost: u64,
    pub(crate) acks_sent: u64,
    pub(crate) ignored: u64,
}

impl Counts {
    pub(crate) fn arrived(&mut self, payload: usize, retransmitted: bool) {
        self.received += 1;
        self.bytes_received += payload as u64;
        self.retransmitted += u64::from(retransmitted);
    }

    /// A packet of the peer's filter.
    pub(crate) const fn filter_extra(&mut self) {
        self.filter_extra += 1;
    }

    pub(crate) const fn rebuilt(&mut self) {
        self.filter_supplied += 1;
    }

    /// Packets that the filter could not rebuild.
    pub(crate) fn filter_lost(&mut self, packets: u32) {
        self.filter_lost += u64::from(packets);
    }

    pub(crate) const fn stored(&mut self, payload: usize) {
        self.unique += 1;
        self.bytes_unique += payload as u64;
    }

    /// A gap of so many packets was found.
    pub(crate) fn lost(&mut self, packets: u64) {
        self.lost += packets;
        self.gaps += 1;
        self.gaps_single += u64::from(packets == 1);
    }

    /// An original came that others had overtaken.
    pub(crate) const fn reordered(&mut self) {
        self.reordered += 1;
    }

    pub(crate) const fn dropped(&mut self, packets: u64) {
        self.dropped += packets;
    }

    pub(crate) fn jumped(&mut self, packets: u64) {
        self.jumps += 1;
        self.lost(packets);
        self.dropped += packets;
    }

    /// The stream continues at packets that were skipped and had not been sent yet.
    pub(crate) const fn went_back(&mut self) {
        self.jumps += 1;
    }

    pub(crate) const fn undecrypted(&mut self, payload: usize) {
        self.undecrypted += 1;
        self.bytes_undecrypted += payload as u64;
        self.dropped += 1;
    }

    pub(crate) fn duplicate(&mut self, lateness: Duration) {
        self.duplicate += 1;
        self.belated(lateness);
    }

    pub(crate) fn belated(&mut self, lateness: Duration) {
        self.belated += 1;
        self.mean_lateness = (self.mean_lateness * 4 + lateness) / 5;
    }

    /// Mean payload of what was stored, bytes.
    pub(crate) fn mean_payload(&self) -> u64 {
        self.bytes_unique.checked_div(self.unique).unwrap_or(0)
    }

    pub(crate) fn fill(&self, statistics: &mut Statistics) {
        let headers = |packets: u64| packets * PACKET_OVERHEAD as u64;
        let estimate = |packets: u64| packets * (self.mean_payload() + PACKET_OVERHEAD as u64);
        statistics.packets_received = self.received;
        statistics.bytes_received = self.bytes_received + headers(self.received);
        statistics.packets_received_unique = self.unique;
        statistics.bytes_received_unique = self.bytes_unique + headers(self.unique);
        statistics.packets_received_retransmitted = self.retransmitted;
        statistics.packets_receive_lost = self.lost;
        statistics.bytes_receive_lost = estimate(self.lost);
        statistics.receive_gaps = self.gaps;
        statistics.receive_gaps_single = self.gaps_single;
        statistics.packets_reordered = self.reordered;
        statistics.packets_receive_dropped = self.dropped;
        statistics.bytes_receive_dropped = estimate(self.dropped);
        statistics.packets_undecrypted = self.undecrypted;
        statistics.bytes_undecrypted = self.bytes_undecrypted;
        statistics.packets_not_authentic = self.not_authentic;
        statistics.packets_belated = self.belated;
        statistics.packets_duplicate = self.duplicate;
        statistics.belated_time = self.mean_lateness;
        statistics.receive_jumps = self.jumps;
        statistics.packets_receive_filter_extra = self.filter_extra;
        statistics.packets_filter_supplied = self.filter_supplied;
        statistics.packets_filter_lost = self.filter_lost;
        statistics.acks_sent = self.acks_sent;
        statistics.packets_ignored += self.ignored;
    }
}
