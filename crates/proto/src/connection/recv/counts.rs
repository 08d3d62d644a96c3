use std::time::Duration;

use crate::statistics::Statistics;

/// The counters of the receiving half. Bytes are payload, without headers.
#[derive(Debug, Default)]
pub(crate) struct ReceiveCounts {
    received: u64,
    bytes_received: u64,
    unique: u64,
    bytes_unique: u64,
    retransmitted: u64,
    reordered: u64,
    dropped: u64,
    jumps: u64,
    losses: LostPackets,
    late: LatePackets,
    encryption: UnreadablePackets,
    filter: FilterPackets,
    sharing: Sharing,
    acks_sent: u64,
    ignored: u64,
}

/// The part of its stream that a connection carries. It decides how packets count that the sender
/// does not send (again) by this connection.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Sharing {
    /// All of it: the stream lacks them.
    #[default]
    Whole,
    /// The packets that its group gives each link. It never had the others: it joined later, or was
    /// on standby.
    OfLinks,
    /// Another share than the other links: the group sends them by another link.
    Balanced,
}

/// Packets whose numbers were left out.
#[derive(Debug, Default)]
struct LostPackets {
    packets: u64,
    gaps: u64,
    gaps_of_one: u64,
}

/// Packets that arrived after their number was filled or passed.
#[derive(Debug, Default)]
struct LatePackets {
    belated: u64,
    duplicate: u64,
    mean_lateness: Duration,
}

/// Packets that could not be decrypted.
#[derive(Debug, Default)]
struct UnreadablePackets {
    packets: u64,
    bytes: u64,
    not_authentic: u64,
}

/// Packets of the peer's filter, and data packets that it rebuilt or could not rebuild.
#[derive(Debug, Default)]
struct FilterPackets {
    extra: u64,
    supplied: u64,
    lost: u64,
}

impl ReceiveCounts {
    /// The total of packets that have arrived, modulo 2^32.
    pub(crate) const fn arrivals(&self) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "it wraps")]
        {
            self.received as u32
        }
    }

    /// The total of packets that are never delivered, modulo 2^32.
    pub(crate) const fn never_delivered(&self) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "it wraps")]
        {
            self.dropped as u32
        }
    }

    pub(crate) fn arrived(&mut self, payload: usize, retransmitted: bool) {
        self.received += 1;
        self.bytes_received += payload as u64;
        self.retransmitted += u64::from(retransmitted);
    }

    /// A packet of the peer's filter.
    pub(crate) const fn filter_extra(&mut self) {
        self.filter.extra += 1;
    }

    pub(crate) const fn rebuilt(&mut self) {
        self.filter.supplied += 1;
    }

    /// Packets that the filter could not rebuild.
    pub(crate) fn filter_lost(&mut self, packets: u32) {
        self.filter.lost += u64::from(packets);
    }

    /// Packets were ignored.
    pub(crate) const fn ignored(&mut self, packets: u64) {
        self.ignored += packets;
    }

    pub(crate) const fn ack_sent(&mut self) {
        self.acks_sent += 1;
    }

    pub(crate) const fn stored(&mut self, payload: usize) {
        self.unique += 1;
        self.bytes_unique += payload as u64;
    }

    /// A gap of `packets` packets was found.
    pub(crate) fn lost(&mut self, packets: u64) {
        self.losses.packets += packets;
        self.losses.gaps += 1;
        self.losses.gaps_of_one += u64::from(packets == 1);
    }

    /// A reordered original arrived.
    pub(crate) const fn reordered(&mut self) {
        self.reordered += 1;
    }

    pub(crate) const fn dropped(&mut self, packets: u64) {
        self.dropped += packets;
    }

    /// The sender gave up packets. `listed`: they were counted as lost.
    pub(crate) const fn given_up(&mut self, packets: u64, listed: bool) {
        match self.sharing {
            Sharing::Whole => self.dropped += packets,
            Sharing::OfLinks if listed => {
                self.losses.packets = self.losses.packets.saturating_sub(packets);
            }
            Sharing::OfLinks | Sharing::Balanced => {}
        }
    }

    /// The connection is a link of a group; `balanced` if each link gets other messages.
    pub(crate) const fn is_link(&mut self, balanced: bool) {
        self.sharing = if balanced { Sharing::Balanced } else { Sharing::OfLinks };
    }

    pub(crate) fn jumped_ahead(&mut self, packets: u64) {
        self.jumps += 1;
        if matches!(self.sharing, Sharing::Whole) {
            self.lost(packets);
        }
        self.given_up(packets, false);
    }

    /// The stream jumped back, to packets that it had skipped.
    pub(crate) const fn jumped_back(&mut self) {
        self.jumps += 1;
    }

    /// A packet's authentication tag was wrong.
    pub(crate) const fn not_authentic(&mut self) {
        self.encryption.not_authentic += 1;
    }

    pub(crate) const fn undecrypted(&mut self, payload: usize) {
        self.encryption.packets += 1;
        self.encryption.bytes += payload as u64;
        self.dropped += 1;
    }

    pub(crate) fn duplicate(&mut self, lateness: Duration) {
        self.late.duplicate += 1;
        self.belated(lateness);
    }

    pub(crate) fn belated(&mut self, lateness: Duration) {
        self.late.belated += 1;
        self.late.mean_lateness = (self.late.mean_lateness * 4 + lateness) / 5;
    }

    /// The mean payload of the stored packets, bytes.
    pub(crate) fn mean_payload(&self) -> u64 {
        self.bytes_unique.checked_div(self.unique).unwrap_or(0)
    }

    /// Fills in the counters, with `overhead` bytes of headers for each packet.
    pub(crate) fn fill(&self, overhead: usize, statistics: &mut Statistics) {
        let headers = |packets: u64| packets * overhead as u64;
        let estimate = |packets: u64| packets * (self.mean_payload() + overhead as u64);
        statistics.packets_received = self.received;
        statistics.bytes_received = self.bytes_received + headers(self.received);
        statistics.packets_received_unique = self.unique;
        statistics.bytes_received_unique = self.bytes_unique + headers(self.unique);
        statistics.packets_received_retransmitted = self.retransmitted;
        statistics.packets_receive_lost = self.losses.packets;
        statistics.bytes_receive_lost = estimate(self.losses.packets);
        statistics.receive_gaps = self.losses.gaps;
        statistics.receive_gaps_single = self.losses.gaps_of_one;
        statistics.packets_reordered = self.reordered;
        statistics.packets_receive_dropped = self.dropped;
        statistics.bytes_receive_dropped = estimate(self.dropped);
        statistics.packets_undecrypted = self.encryption.packets;
        statistics.bytes_undecrypted = self.encryption.bytes;
        statistics.packets_not_authentic = self.encryption.not_authentic;
        statistics.packets_belated = self.late.belated;
        statistics.packets_duplicate = self.late.duplicate;
        statistics.belated_time = self.late.mean_lateness;
        statistics.receive_jumps = self.jumps;
        statistics.packets_receive_filter_extra = self.filter.extra;
        statistics.packets_filter_supplied = self.filter.supplied;
        statistics.packets_filter_lost = self.filter.lost;
        statistics.acks_sent = self.acks_sent;
        statistics.packets_ignored += self.ignored;
    }
}
