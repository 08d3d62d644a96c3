use std::collections::VecDeque;
use std::time::Duration;

use punctual_units::Instant;

/// The packets in the network: they were sent, have not arrived and are not known to be lost.
///
/// A receiver that counts its arrivals reports them in each ACK; toward others they are inferred.
/// Losses are known from NAKs, but not all of them: a lost copy is never reported, and a packet
/// that counts as lost may still arrive. So the number is kept within bounds that follow from time
/// alone: a packet that was sent within the least round trip cannot have been reported, and one
/// that was sent longer ago than the longest round trip is in the network no more.
#[derive(Debug, Default)]
pub(super) struct Pipe {
    sent: u64,
    /// The packets that left the network, because they arrived or were lost.
    left: u64,
    /// The arrivals that were reported; more than were sent if the network duplicates packets.
    arrived: u64,
    /// The most packets in the network since [`take_most`](Self::take_most).
    most: u64,
    /// Instants, and the number of packets that had been sent before; at most one each millisecond.
    history: VecDeque<(Instant, u64)>,
}

/// The time between two entries of the history.
const GRAIN: Duration = Duration::from_millis(1);
/// The most entries of the history.
const HISTORY: usize = 8_192;

impl Pipe {
    /// A packet is sent.
    pub(super) fn sent(&mut self, now: Instant) {
        if self.history.back().is_none_or(|&(at, _)| now >= at + GRAIN) {
            if self.history.len() == HISTORY {
                self.history.pop_front();
            }
            self.history.push_back((now, self.sent));
        }
        self.sent += 1;
        self.most = self.most.max(self.packets());
    }

    /// The most packets in the network since the last call.
    pub(super) fn take_most(&mut self) -> u64 {
        let now = self.packets();
        std::mem::replace(&mut self.most, now)
    }

    /// The receiver reports that `total` packets have arrived, modulo 2^32.
    pub(super) fn report(&mut self, total: u32) {
        #[expect(clippy::cast_possible_truncation, reason = "the report wraps as well")]
        let newly = total.wrapping_sub(self.arrived as u32);
        // An overtaken report is older: its difference wraps.
        if newly.cast_signed() > 0 {
            self.arrived += u64::from(newly);
            self.leave(newly.into());
        }
    }

    /// Whether a report of `total` says that more packets have arrived.
    pub(super) fn reports_more(&self, total: u32) -> bool {
        #[expect(clippy::cast_possible_truncation, reason = "the report wraps as well")]
        let known = self.arrived as u32;
        total.wrapping_sub(known).cast_signed() > 0
    }

    /// The receiver reports that this number of packets are lost.
    pub(super) fn lost(&mut self, packets: u64) {
        self.leave(packets);
    }

    /// The retransmission timeout expired: nothing is in the network.
    pub(super) fn clear(&mut self) {
        self.left = self.sent;
    }

    /// Keeps the number between the packets sent in the `least` time before `now` and the packets
    /// sent in the `longest`, and forgets older history.
    pub(super) fn bound(&mut self, now: Instant, least: Duration, longest: Duration) {
        while self.history.get(1).is_some_and(|&(at, _)| at + longest < now) {
            self.history.pop_front();
        }
        let (young, old) = (self.sent_since(now - least), self.sent_since(now - longest));
        self.left = self.sent - self.packets().clamp(young, old.max(young));
    }

    /// The number of packets in the network.
    pub(super) fn packets(&self) -> u64 {
        self.sent - self.left
    }

    fn leave(&mut self, packets: u64) {
        self.left = self.left.saturating_add(packets).min(self.sent);
    }

    /// The total of packets that have arrived.
    pub(super) const fn arrived(&self) -> u64 {
        self.arrived
    }

    /// When the oldest packet of the history was sent: the first one of all, in the first seconds.
    pub(super) fn oldest_sent(&self) -> Option<Instant> {
        self.history.front().map(|&(at, _)| at)
    }

    /// The number of packets that were sent at or after `since`, to a millisecond.
    pub(super) fn sent_since(&self, since: Instant) -> u64 {
        let place = self.history.partition_point(|&(at, _)| at < since);
        self.history.get(place).map_or(0, |&(_, before)| self.sent - before)
    }

    /// The earliest instant `since` at or after which at most `packets` packets were sent.
    pub(super) fn since(&self, packets: u64) -> Option<Instant> {
        let place = self.history.partition_point(|&(_, before)| self.sent - before > packets);
        self.history.get(place).or(self.history.back()).map(|&(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const AT: fn(u64) -> Instant = Instant::from_millis;

    /// A packet each millisecond for this number of milliseconds.
    fn sending(millis: u64) -> Pipe {
        let mut pipe = Pipe::default();
        for ms in 0..millis {
            pipe.sent(AT(1_000 + ms));
        }
        pipe
    }

    #[test]
    fn packets_are_in_the_network_until_they_arrive_or_are_lost() {
        let mut pipe = sending(100);
        pipe.report(40);
        pipe.lost(10);
        assert_eq!(pipe.packets(), 50);
        pipe.report(30);
        assert_eq!(pipe.packets(), 50, "an overtaken report");
        pipe.clear();
        assert_eq!(pipe.packets(), 0);
    }

    #[test]
    fn the_report_wraps() {
        let left = (1 << 32) - 10;
        let mut pipe = Pipe { sent: (1 << 32) + 100, left, arrived: left, ..Pipe::default() };
        pipe.report(20);
        assert_eq!(pipe.packets(), 80);
    }

    #[test]
    fn a_network_that_duplicates_packets_does_not_stop_the_count() {
        let mut pipe = sending(100);
        pipe.report(130);
        assert_eq!((pipe.packets(), pipe.arrived()), (0, 130));
        pipe.sent(AT(1_100));
        pipe.report(131);
        assert_eq!((pipe.packets(), pipe.arrived()), (0, 131));
        pipe.sent(AT(1_101));
        pipe.bound(AT(1_102), MS(20), MS(30));
        assert_eq!(pipe.packets(), 20, "those of the least round trip are on the way");
    }

    #[test]
    fn time_bounds_the_packets_in_the_network() {
        let mut pipe = sending(100);
        // Nothing was reported, but what was sent longer ago than 30 ms is gone.
        pipe.bound(AT(1_100), MS(20), MS(30));
        assert_eq!(pipe.packets(), 30);
        // Too much was reported lost.
        pipe.lost(25);
        pipe.bound(AT(1_100), MS(20), MS(30));
        assert_eq!(pipe.packets(), 20);
    }

    #[test]
    fn the_history_says_since_when_few_were_sent() {
        let pipe = sending(100);
        assert_eq!(pipe.sent_since(AT(1_090)), 10);
        assert_eq!(pipe.since(10), Some(AT(1_090)));
        assert_eq!(Pipe::default().since(10), None);
    }
}
