//! Which blocks are under way: a record of each from its first transmission to its arrival.

use std::collections::VecDeque;

use punctual_netem::LinkEnd;
use punctual_units::Instant;
use punctual_wire::{Control, Packet, SeqNo, Timestamp};

/// A datagram at an end of a link, as it is seen from outside.
#[derive(Clone, Copy, Debug)]
pub(in crate::backend) struct SeenDatagram<'a> {
    pub(in crate::backend) at: Instant,
    /// Whether the link is that towards the receiver.
    pub(in crate::backend) is_up: bool,
    pub(in crate::backend) gate: LinkEnd,
    pub(in crate::backend) content: &'a [u8],
}

/// A block that has arrived.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Block {
    /// Its number, from 0.
    pub(super) index: u64,
    /// When it was sent for the first time.
    pub(super) sent: Instant,
    /// When it arrived for the first time.
    pub(super) arrived: Instant,
    /// Whether a retransmission of it arrived first.
    pub(super) is_retransmission: bool,
    /// Requests for it before it arrived.
    pub(super) requests: u32,
    /// The datagrams of those.
    pub(super) datagrams: u32,
}

/// The blocks that have been sent and have not all arrived.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// The number of the oldest block, and its sequence number once one has been sent.
    base: u64,
    front: Option<SeqNo>,
    pending: VecDeque<Pending>,
}

/// A block under way.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    sent: Option<Instant>,
    arrived: Option<Instant>,
    is_retransmission: bool,
    /// The time that the latest request for it bears.
    requested: Option<Timestamp>,
    requests: u32,
    datagrams: u32,
}

impl Ledger {
    /// Notes a datagram that passed a link.
    ///
    /// A block was sent with its first transmission that reached the link: a real host may lose an
    /// original on its way there.
    ///
    /// A request may be sent in several datagrams. They bear the same time, by which the sender
    /// knows that they are one request, and so does the ledger.
    pub(super) fn note(&mut self, seen: &SeenDatagram<'_>) {
        let Ok(packet) = Packet::parse(seen.content) else { return };
        match (packet, seen.gate, seen.is_up) {
            (Packet::Data(data), LinkEnd::Entrance, true) => self.sent(seen.at, data.header.seq),
            (Packet::Data(data), LinkEnd::Exit, true) => {
                self.arrived(seen.at, data.header.seq, data.header.retransmitted);
            }
            (Packet::Control(control), LinkEnd::Entrance, false) => {
                if let Control::Nak(list) = control.control {
                    list.ranges().for_each(|range| self.requested(control.timestamp, range));
                }
            }
            _ => {}
        }
    }

    fn sent(&mut self, at: Instant, seq: SeqNo) {
        let front = *self.front.get_or_insert(seq);
        let Ok(place) = usize::try_from(seq.distance_from(front)) else { return };
        if place > MOST_PENDING {
            return;
        }
        if place >= self.pending.len() {
            self.pending.resize(place + 1, Pending::default());
        }
        self.pending[place].sent.get_or_insert(at);
    }

    fn arrived(&mut self, at: Instant, seq: SeqNo, is_retransmission: bool) {
        if let Some(pending) = self.find(seq).filter(|pending| pending.arrived.is_none()) {
            pending.arrived = Some(at);
            pending.is_retransmission = is_retransmission;
        }
    }

    fn requested(&mut self, stamp: Timestamp, (first, last): (SeqNo, SeqNo)) {
        let mut seq = first;
        // A range that is longer than what is pending names blocks that nobody has sent.
        for _ in 0..=self.pending.len() {
            if let Some(pending) = self.find(seq).filter(|pending| pending.arrived.is_none()) {
                pending.datagrams += 1;
                if pending.requested != Some(stamp) {
                    pending.requested = Some(stamp);
                    pending.requests += 1;
                }
            }
            if seq == last {
                return;
            }
            seq = seq.next();
        }
    }

    fn find(&mut self, seq: SeqNo) -> Option<&mut Pending> {
        let place = usize::try_from(seq.distance_from(self.front?)).ok()?;
        self.pending.get_mut(place)
    }

    /// Takes the oldest block, if it has arrived: blocks come in their order.
    pub(super) fn next_arrived(&mut self) -> Option<Block> {
        let oldest = self.pending.front()?;
        let block = Block {
            index: self.base,
            sent: oldest.sent?,
            arrived: oldest.arrived?,
            is_retransmission: oldest.is_retransmission,
            requests: oldest.requests,
            datagrams: oldest.datagrams,
        };
        self.pending.pop_front();
        self.base += 1;
        self.front = self.front.map(SeqNo::next);
        Some(block)
    }

    /// Blocks that were sent and have not arrived.
    pub(super) fn missing(&self) -> usize {
        self.pending.iter().filter(|pending| pending.arrived.is_none()).count()
    }
}

/// More blocks than any window holds: a sequence number beyond it is no block of the stream.
const MOST_PENDING: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> Instant = Instant::from_millis;
    const STAMP: fn(u32) -> Timestamp = Timestamp::from_micros;

    fn seq(number: u32) -> SeqNo {
        // The numbers begin again in the middle of the test.
        SeqNo::new(0x7FFF_FFFE).plus(number)
    }

    fn ledger() -> Ledger {
        let mut ledger = Ledger::default();
        (0..4).for_each(|number| ledger.sent(AT(number.into()), seq(number)));
        ledger
    }

    #[test]
    fn blocks_come_in_order_with_their_times_and_requests() {
        let mut ledger = ledger();
        ledger.arrived(AT(100), seq(0), false);
        ledger.arrived(AT(103), seq(3), false);
        // Two requests, the first in three datagrams.
        for (stamp, last) in [(103, 2), (103, 2), (103, 2), (309, 1)] {
            ledger.requested(STAMP(stamp), (seq(1), seq(last)));
        }
        let first = ledger.next_arrived().unwrap();
        assert_eq!((first.index, first.sent, first.arrived), (0, AT(0), AT(100)));
        assert_eq!((first.requests, first.is_retransmission), (0, false));
        assert_eq!((ledger.next_arrived(), ledger.missing()), (None, 2));
        ledger.arrived(AT(303), seq(2), true);
        ledger.arrived(AT(510), seq(1), true);
        let late = ledger.next_arrived().unwrap();
        assert_eq!((late.index, late.arrived, late.is_retransmission), (1, AT(510), true));
        assert_eq!((late.requests, late.datagrams), (2, 4));
        let other = ledger.next_arrived().unwrap();
        assert_eq!((other.requests, other.datagrams), (1, 3));
        assert_eq!(ledger.next_arrived().map(|block| block.requests), Some(0));
        assert_eq!((ledger.next_arrived(), ledger.missing()), (None, 0));
    }

    #[test]
    fn requests_and_copies_after_the_arrival_do_not_count() {
        let mut ledger = ledger();
        ledger.arrived(AT(100), seq(0), false);
        ledger.requested(STAMP(101), (seq(0), seq(0)));
        ledger.arrived(AT(400), seq(0), true);
        let block = ledger.next_arrived().unwrap();
        assert_eq!((block.requests, block.arrived, block.is_retransmission), (0, AT(100), false));
        ledger.arrived(AT(401), seq(0), true);
        ledger.requested(STAMP(401), (seq(0), seq(0)));
        assert_eq!(ledger.missing(), 3, "the numbers of blocks that were taken mean nothing");
    }

    #[test]
    fn a_long_range_and_a_strange_number_do_no_harm() {
        let mut ledger = ledger();
        ledger.sent(AT(5), seq(1 << 24));
        ledger.requested(STAMP(6), (seq(0), seq(1 << 30)));
        assert_eq!((ledger.pending.len(), ledger.pending[3].requests), (4, 1));
    }
}
