//! Counters of originals, of the packet filter and of dropped packets.

use std::time::Duration;

use punctual_units::Instant;

use super::buffer::Dropped;
use crate::statistics::Statistics;

/// The counters of sent and dropped packets. Bytes are payload, without headers.
#[derive(Debug, Default)]
pub(super) struct SendCounts {
    /// Bytes of the headers of a packet, for pacing and statistics.
    overhead: usize,
    originals: TrafficCounts,
    filter: TrafficCounts,
    dropped: TrafficCounts,
}

#[derive(Debug, Default)]
struct TrafficCounts {
    packets: u64,
    bytes: u64,
}

impl TrafficCounts {
    const fn add(&mut self, packets: u64, bytes: u64) {
        self.packets += packets;
        self.bytes += bytes;
    }

    /// Bytes with `overhead` bytes of headers for each packet.
    const fn gross(&self, overhead: usize) -> u64 {
        self.bytes + self.packets * overhead as u64
    }
}

impl SendCounts {
    /// For packets with `overhead` bytes of headers.
    pub(super) fn new(overhead: usize) -> Self {
        Self { overhead, ..Self::default() }
    }

    /// Bytes of the headers of a packet.
    pub(super) const fn overhead(&self) -> usize {
        self.overhead
    }

    /// Packets have `overhead` bytes of headers from now on; the counters use it for earlier ones,
    /// too.
    pub(super) const fn set_overhead(&mut self, overhead: usize) {
        self.overhead = overhead;
    }

    pub(super) const fn sent_original(&mut self, payload: usize) {
        self.originals.add(1, payload as u64);
    }

    pub(super) const fn sent_filter_packet(&mut self, payload: usize) {
        self.filter.add(1, payload as u64);
    }

    pub(super) const fn dropped(&mut self, dropped: &Dropped) {
        self.dropped.add(dropped.packets, dropped.bytes);
    }

    /// Packets sent for the first time.
    pub(super) const fn originals(&self) -> u64 {
        self.originals.packets
    }

    /// Fills in the counters and the totals; those of retransmissions are filled in before.
    pub(super) const fn fill_statistics(&self, statistics: &mut Statistics) {
        statistics.packets_sent_unique = self.originals.packets;
        statistics.bytes_sent_unique = self.originals.gross(self.overhead);
        statistics.packets_send_filter_extra = self.filter.packets;
        statistics.packets_sent =
            self.originals.packets + statistics.packets_retransmitted + self.filter.packets;
        statistics.bytes_sent = self.originals.gross(self.overhead)
            + statistics.bytes_retransmitted
            + self.filter.gross(self.overhead);
        statistics.packets_send_dropped = self.dropped.packets;
        statistics.bytes_send_dropped = self.dropped.gross(self.overhead);
    }
}

/// The time for which the send buffer was not empty.
#[derive(Debug, Default)]
pub(super) struct BusyTime {
    since: Option<Instant>,
    total: Duration,
}

impl BusyTime {
    pub(super) const fn begin(&mut self, now: Instant) {
        self.since = Some(now);
    }

    pub(super) fn end(&mut self, now: Instant) {
        if let Some(since) = self.since.take() {
            self.total += now - since;
        }
    }

    /// The instant since which the buffer has not been empty; `None` while it is empty.
    pub(super) const fn since(&self) -> Option<Instant> {
        self.since
    }

    pub(super) fn total(&self, now: Instant) -> Duration {
        self.total + self.since.map_or(Duration::ZERO, |since| now - since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_adds_up_over_pauses() {
        let at = Instant::from_millis;
        let mut busy = BusyTime::default();
        busy.begin(at(10));
        busy.end(at(15));
        busy.end(at(20));
        busy.begin(at(30));
        assert_eq!(busy.total(at(32)), Duration::from_millis(7));
        assert_eq!(busy.since(), Some(at(30)));
    }

    #[test]
    fn totals_have_headers_and_all_kinds_of_packets() {
        let mut counts = SendCounts::new(44);
        counts.sent_original(1_000);
        counts.sent_original(1_000);
        counts.sent_filter_packet(1_000);
        let overhead = 44;
        let mut statistics = Statistics {
            packets_retransmitted: 1,
            bytes_retransmitted: 1_000 + overhead,
            ..Statistics::default()
        };
        counts.fill_statistics(&mut statistics);
        assert_eq!((statistics.packets_sent_unique, statistics.packets_sent), (2, 4));
        assert_eq!(statistics.bytes_sent, 4 * (1_000 + overhead));
    }
}
