use std::time::Duration;

use bytes::Bytes;
use punctual_wire::{MsgNo, Position, SeqNo};

use super::tsbpd::{PeerTime, Tsbpd};
use super::window::ReceiveWindow;
use crate::seq_ring::SeqRing;
use crate::seq_run::SeqRun;
use crate::seq_set::SeqSet;

/// A packet that waits for its delivery.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) payload: Bytes,
    pub(crate) time: PeerTime,
    pub(crate) place: MessagePart,
}

/// The part of a message that a packet carries: the message number, and the place in the message.
/// It has the bits of the header, so that live packets, which need only the number, take no more
/// memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct MessagePart(u32);

impl MessagePart {
    pub(crate) const fn new(msgno: MsgNo, position: Position, in_order: bool) -> Self {
        let position = (position as u32) << POSITION_SHIFT;
        Self(position | (in_order as u32) << IN_ORDER_SHIFT | msgno.value())
    }

    /// The part of a live message, which is a whole message.
    pub(crate) const fn of_live(msgno: MsgNo) -> Self {
        Self(msgno.value())
    }

    /// The number of the message.
    pub(crate) const fn msgno(self) -> MsgNo {
        MsgNo::new(self.0)
    }

    /// Whether the message begins with the packet.
    pub(crate) const fn begins(self) -> bool {
        self.0 >> POSITION_SHIFT & 0b10 != 0
    }

    /// Whether the message ends with the packet.
    pub(crate) const fn ends(self) -> bool {
        self.0 >> POSITION_SHIFT & 0b01 != 0
    }

    /// Whether the message must not overtake others.
    pub(crate) const fn in_order(self) -> bool {
        self.0 >> IN_ORDER_SHIFT & 1 != 0
    }
}

const POSITION_SHIFT: u32 = 30;
const IN_ORDER_SHIFT: u32 = 29;

/// The result of storing a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Insert {
    /// It is the newest one; `gap` numbers before it are missing.
    Newest { gap: u32 },
    /// It was missing.
    Filled,
    /// It is stored already.
    Duplicate,
    /// Its number was passed: delivered or dropped.
    Belated,
    /// It lies beyond the capacity.
    NoRoom,
}

/// The packets from their arrival to their delivery, and the missing ones between them.
///
/// `head` is the next to be delivered and `end` follows the newest one. A number between them is
/// stored, missing, or gone: dropped, or delivered out of order. Runs of missing and gone numbers
/// are handled as runs, so that the cost of a packet hardly grows with the gap before it.
#[derive(Debug)]
pub(crate) struct ReceiveBuffer {
    ring: SeqRing<Stored>,
    missing: SeqSet,
    head: SeqNo,
    end: SeqNo,
    packets: usize,
    bytes: u64,
    limit: usize,
    /// The number of dropped packets since the last delivery.
    given_up: u32,
    /// Numbers that are neither stored nor missing.
    gone: SeqSet,
    /// Those of them that were delivered out of order.
    read_ahead: SeqSet,
    /// The missing and gone numbers from the first missing one on.
    gap: SeqRun,
}

impl ReceiveBuffer {
    pub(crate) fn new(isn: SeqNo, limit: usize) -> Self {
        Self {
            ring: SeqRing::new(),
            missing: SeqSet::default(),
            head: isn,
            end: isn,
            packets: 0,
            bytes: 0,
            limit,
            given_up: 0,
            gone: SeqSet::default(),
            read_ahead: SeqSet::default(),
            gap: SeqRun::default(),
        }
    }

    pub(crate) const fn packets(&self) -> usize {
        self.packets
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) const fn missing(&self) -> &SeqSet {
        &self.missing
    }

    pub(crate) const fn head(&self) -> SeqNo {
        self.head
    }

    /// The number after the newest packet.
    pub(crate) const fn end(&self) -> SeqNo {
        self.end
    }

    /// The numbers between which packets are stored.
    #[inline(always)]
    pub(crate) const fn window(&self) -> ReceiveWindow {
        ReceiveWindow::new(self.head, self.end, self.limit)
    }

    /// Whether the number was passed: delivered or dropped.
    pub(crate) fn has_passed(&self, seq: SeqNo) -> bool {
        seq.is_before(self.head)
            || seq.is_before(self.end)
                && !self.missing.contains(seq)
                && self.ring.get(seq).is_none()
    }

    /// The number of an ACK: the first missing one, or the one after the newest packet.
    pub(crate) fn acknowledged(&self) -> SeqNo {
        self.missing.first_from(self.head).unwrap_or(self.end)
    }

    #[inline(always)]
    pub(crate) fn insert(&mut self, seq: SeqNo, stored: Stored) -> Insert {
        if seq.is_before(self.head) {
            return Insert::Belated;
        }
        let mut span = seq.distance_from(self.head).unsigned_abs() as usize + 1;
        if span > self.limit {
            self.pass_gone();
            span = seq.distance_from(self.head).unsigned_abs() as usize + 1;
            if span > self.limit {
                return Insert::NoRoom;
            }
        }
        if seq.is_before(self.end) {
            if !self.missing.remove(seq) {
                let stored_already = self.ring.get(seq).is_some();
                return if stored_already { Insert::Duplicate } else { Insert::Belated };
            }
            self.gap.removed(seq, self.missing.first_from(self.head));
            self.store(seq, stored);
            return Insert::Filled;
        }
        self.reserve(span);
        let gap = seq.distance_from(self.end).unsigned_abs();
        if gap > 0 {
            self.reserve_sets();
            self.missing.insert_run(self.end, gap);
        }
        self.end = seq.next();
        self.store(seq, stored);
        Insert::Newest { gap }
    }

    /// Continues at `seq`; the buffer must be empty. The missing packets before it and `beyond`
    /// more count as dropped; returns their number.
    pub(crate) fn jump(&mut self, seq: SeqNo, beyond: u32) -> u32 {
        let skipped = u32::try_from(self.missing.len()).unwrap_or(u32::MAX);
        self.give_up_missing(self.head, self.end.minus(1));
        self.pass_gone();
        self.given_up = self.given_up.saturating_add(beyond);
        self.head = seq;
        self.end = seq;
        skipped + beyond
    }

    /// Continues at `seq`, which may lie before the delivered packets, and forgets the stored
    /// packets; returns their number.
    pub(crate) fn restart(&mut self, seq: SeqNo) -> usize {
        let stored = self.packets;
        *self = Self::new(seq, self.limit);
        stored
    }

    /// Drops the missing packets from `first` to `last`; returns their number. Numbers after the
    /// newest packet, which the sender has announced to send no more, are dropped if there is room
    /// and `first` leaves none out.
    pub(crate) fn give_up(&mut self, first: SeqNo, last: SeqNo) -> u32 {
        let given_up = self.give_up_missing(first, last);
        let follows = !first.is_after(self.end) && !last.is_before(self.end);
        let beyond = last.next().distance_from(self.end).unsigned_abs();
        if !follows || beyond > self.window().room() {
            return given_up;
        }
        let from = self.end;
        self.end = last.next();
        self.reserve(self.end.distance_from(self.head).unsigned_abs() as usize);
        self.reserve_sets();
        self.gone.insert_run(from, beyond);
        given_up + beyond
    }

    fn give_up_missing(&mut self, first: SeqNo, last: SeqNo) -> u32 {
        let first = if first.is_before(self.head) { self.head } else { first };
        let last = if last.is_before(self.end) { last } else { self.end.minus(1) };
        if self.missing.is_empty() || last.is_before(first) {
            return 0;
        }
        self.reserve_sets();
        for (start, end) in self.missing.ranges_from(first) {
            if start.is_after(last) || start.is_before(first) {
                break;
            }
            let end = if end.is_after(last) { last } else { end };
            self.gone.insert_run(start, count(start, end));
        }
        self.missing.remove_run(first, count(first, last))
    }

    /// The first packet after a missing one: when it is due, the missing one is too late.
    pub(crate) fn first_behind_gap(&self) -> Option<(SeqNo, &Stored)> {
        let Some(missing) = self.missing.first_from(self.head) else {
            self.gap.clear();
            return None;
        };
        let is_absent = |seq| self.missing.contains(seq) || self.gone.contains(seq);
        let search = |seq| self.missing.first_outside(&self.gone, seq);
        let seq = self.gap.end(missing, is_absent, search);
        let stored = self.ring.get(seq).filter(|_| seq.is_before(self.end))?;
        Some((seq, stored))
    }

    /// The next packet to be delivered, unless a missing one comes first.
    #[inline(always)]
    pub(crate) fn front(&mut self) -> Option<(SeqNo, &Stored)> {
        if self.ring.get(self.head).is_none() {
            self.pass_gone();
        }
        let stored = self.ring.get(self.head)?;
        Some((self.head, stored))
    }

    /// The packet after the front, if it has arrived.
    pub(crate) fn second(&self) -> Option<&Stored> {
        self.ring.get(self.head.next())
    }

    /// Moves past packets that were dropped, or delivered out of order.
    #[inline(never)]
    fn pass_gone(&mut self) {
        if self.gone.is_empty() {
            return;
        }
        let to = self.gone.first_gap_from(self.head);
        let to = if to.is_after(self.end) { self.end } else { to };
        let passed = to.distance_from(self.head).unsigned_abs();
        self.gone.remove_run(self.head, passed);
        let read = self.read_ahead.remove_run(self.head, passed);
        self.given_up = self.given_up.saturating_add(passed - read);
        self.head = to;
    }

    /// Takes the packet at the front, and the number of packets dropped right before it.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<(SeqNo, Stored, u32)> {
        let (seq, _) = self.front()?;
        let stored = self.ring.take(seq)?;
        self.packets -= 1;
        self.bytes -= stored.payload.len() as u64;
        self.head = seq.next();
        self.ring.shrink(self.head, self.end.distance_from(self.head).unsigned_abs() as usize, 1);
        Some((seq, stored, std::mem::take(&mut self.given_up)))
    }

    /// The packet `seq`, if it is stored. Any number is allowed: in a full ring the number after
    /// the last one has the slot of the first.
    pub(crate) fn get(&self, seq: SeqNo) -> Option<&Stored> {
        let within = !seq.is_before(self.head) && seq.is_before(self.end);
        self.ring.get(seq).filter(|_| within)
    }

    /// Takes a packet out of order.
    pub(crate) fn take_ahead(&mut self, seq: SeqNo) -> Option<Stored> {
        let stored = self.ring.take(seq)?;
        self.packets -= 1;
        self.bytes -= stored.payload.len() as u64;
        self.reserve_sets();
        self.gone.insert(seq);
        self.read_ahead.reserve(self.head, self.ring.capacity());
        self.read_ahead.insert(seq);
        Some(stored)
    }

    /// Drops a stored packet; `false` if it is not stored.
    pub(crate) fn discard(&mut self, seq: SeqNo) -> bool {
        let bytes = self.ring.remove(seq, |stored| stored.payload.len() as u64);
        let Some(bytes) = bytes else { return false };
        self.packets -= 1;
        self.bytes -= bytes;
        self.reserve_sets();
        self.gone.insert(seq);
        true
    }

    /// The time from the origin of the oldest stored packet to that of the newest one.
    pub(crate) fn span_in_time(&self, tsbpd: Option<&Tsbpd>) -> Duration {
        let (Some(tsbpd), Some(newest)) = (tsbpd, self.ring.get(self.end.minus(1))) else {
            return Duration::ZERO;
        };
        let oldest = self.ring.get(self.missing.first_outside(&self.gone, self.head));
        oldest.map_or(Duration::ZERO, |oldest| {
            tsbpd.origin(newest.time).saturating_since(tsbpd.origin(oldest.time))
        })
    }

    /// Makes room for `span` numbers from the front on.
    fn reserve(&mut self, span: usize) {
        if span > self.ring.capacity() {
            self.grow(span);
        }
    }

    /// The sets store numbers by their remainders, as the ring does: a set with members must not be
    /// smaller than the ring, or a number beyond its size would be confused with a member.
    #[cold]
    fn grow(&mut self, span: usize) {
        self.ring.reserve(self.head, span);
        if !self.missing.is_empty() || !self.gone.is_empty() {
            self.reserve_sets();
        }
        if !self.read_ahead.is_empty() {
            self.read_ahead.reserve(self.head, self.ring.capacity());
        }
    }

    /// Gives the sets of missing and of gone numbers the same size, at least the ring's: they are
    /// searched together.
    fn reserve_sets(&mut self) {
        let sets = self.missing.capacity().max(self.gone.capacity());
        let span = self.ring.capacity().max(sets);
        self.missing.reserve(self.head, span);
        self.gone.reserve(self.head, span);
    }

    fn store(&mut self, seq: SeqNo, stored: Stored) {
        self.packets += 1;
        self.bytes += stored.payload.len() as u64;
        self.ring.insert(seq, stored);
    }
}

/// The count of numbers from `first` to `last`.
const fn count(first: SeqNo, last: SeqNo) -> u32 {
    last.distance_from(first).unsigned_abs() + 1
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use punctual_units::Instant;
    use punctual_wire::Timestamp;

    use super::*;

    fn stored(tag: u32) -> Stored {
        let tsbpd = Tsbpd::new(Instant::ORIGIN, Timestamp::from_micros(0));
        Stored {
            payload: Bytes::copy_from_slice(&tag.to_be_bytes()),
            time: tsbpd.peer_time(Instant::ORIGIN, Timestamp::from_micros(tag)),
            place: MessagePart::new(MsgNo::FIRST, Position::Solo, false),
        }
    }

    #[test]
    fn a_number_that_is_missing_is_not_taken_for_one_far_behind_it() {
        let mut buffer = ReceiveBuffer::new(SeqNo::new(0), 100_000);
        for number in (0..20_000).filter(|&number| number != 1) {
            buffer.insert(SeqNo::new(number), stored(number));
        }
        for number in 2..20_000 {
            let again = buffer.insert(SeqNo::new(number), stored(number));
            assert_eq!(again, Insert::Duplicate, "{number}");
        }
        assert_eq!((buffer.packets(), buffer.acknowledged()), (19_999, SeqNo::new(1)));
        assert_eq!(buffer.insert(SeqNo::new(1), stored(1)), Insert::Filled);
    }

    #[test]
    fn gaps_fill_and_duplicates_are_known() {
        let isn = SeqNo::new(0x7FFF_FFFE);
        let mut buffer = ReceiveBuffer::new(isn, 100);
        assert_eq!(buffer.insert(isn, stored(0)), Insert::Newest { gap: 0 });
        assert_eq!(buffer.insert(isn.plus(4), stored(4)), Insert::Newest { gap: 3 });
        assert_eq!(buffer.insert(isn.plus(2), stored(2)), Insert::Filled);
        assert_eq!(buffer.insert(isn.plus(2), stored(2)), Insert::Duplicate);
        assert_eq!(buffer.acknowledged(), isn.plus(1));
        assert_eq!(buffer.first_behind_gap().map(|(seq, _)| seq), Some(isn.plus(2)));
        assert_eq!(buffer.give_up(isn, isn.plus(1)), 1);
        assert_eq!(buffer.insert(isn.plus(1), stored(1)), Insert::Belated);
        assert_eq!(buffer.pop().map(|(seq, _, lost)| (seq, lost)), Some((isn, 0)));
        assert_eq!(buffer.pop().map(|(seq, _, lost)| (seq, lost)), Some((isn.plus(2), 1)));
        assert!(buffer.pop().is_none(), "the third is missing");
        assert_eq!(buffer.insert(isn.plus(200), stored(9)), Insert::NoRoom);
    }

    #[test]
    fn the_second_packet_is_the_one_behind_the_front() {
        let isn = SeqNo::new(0x7FFF_FFFE);
        let mut buffer = ReceiveBuffer::new(isn, 100);
        for number in [0, 1, 3] {
            buffer.insert(isn.plus(number), stored(number));
        }
        let second = |buffer: &ReceiveBuffer| buffer.second().map(|it| it.payload.clone());
        assert_eq!(second(&buffer), Some(stored(1).payload));
        buffer.pop();
        assert_eq!(second(&buffer), None, "it is missing");
    }

    #[test]
    fn numbers_given_up_before_anything_came_behind_them() {
        let isn = SeqNo::new(0x7FFF_FFFE);
        let mut buffer = ReceiveBuffer::new(isn, 100);
        buffer.insert(isn, stored(0));
        assert_eq!(buffer.give_up(isn.plus(2), isn.plus(3)), 0, "1 may still come");
        assert_eq!(buffer.give_up(isn, isn.plus(2)), 2);
        assert_eq!((buffer.acknowledged(), buffer.end()), (isn.plus(3), isn.plus(3)));
        assert_eq!(buffer.give_up(isn.plus(3), isn.plus(100)), 0, "beyond the capacity");
        assert_eq!(buffer.insert(isn.plus(2), stored(2)), Insert::Belated);
        assert_eq!(buffer.insert(isn.plus(3), stored(3)), Insert::Newest { gap: 0 });
        assert_eq!(buffer.pop().map(|(seq, _, lost)| (seq, lost)), Some((isn, 0)));
        assert_eq!(buffer.pop().map(|(seq, _, lost)| (seq, lost)), Some((isn.plus(3), 2)));
    }

    #[test]
    fn a_jump_passes_over_everything_missing() {
        let isn = SeqNo::new(10);
        let mut buffer = ReceiveBuffer::new(isn, 100);
        buffer.insert(isn.plus(1), stored(1));
        buffer.give_up(isn, isn);
        buffer.pop();
        assert_eq!(buffer.jump(isn.plus(5_000), 4_998), 4_998);
        assert_eq!(buffer.insert(isn.plus(5_000), stored(2)), Insert::Newest { gap: 0 });
        assert_eq!(buffer.pop().map(|(_, _, lost)| lost), Some(4_998));
    }

    proptest! {
        /// For any order of arrival, each packet is delivered once, in order, unchanged.
        #[test]
        fn delivers_in_order_once_what_was_stored(
            isn in 0u32..=0x7FFF_FFFF,
            arrivals in prop::collection::vec((0u32..400, any::<bool>()), 1..600),
        ) {
            let isn = SeqNo::new(isn);
            let mut buffer = ReceiveBuffer::new(isn, 256);
            let mut held = BTreeMap::new();
            let mut delivered = Vec::new();
            for (offset, skip) in arrivals {
                let outcome = buffer.insert(isn.plus(offset), stored(offset));
                if matches!(outcome, Insert::Newest { .. } | Insert::Filled) {
                    prop_assert!(held.insert(offset, ()).is_none());
                }
                let missing = buffer.acknowledged().distance_from(isn).unsigned_abs();
                let behind = held.range(missing..).next().map(|(&offset, ())| isn.plus(offset));
                prop_assert_eq!(buffer.first_behind_gap().map(|(seq, _)| seq), behind);
                if skip && let Some((seq, _)) = buffer.first_behind_gap() {
                    buffer.give_up(buffer.head(), seq.minus(1));
                }
                while let Some((seq, packet, _)) = buffer.pop() {
                    let offset = seq.distance_from(isn).unsigned_abs();
                    prop_assert_eq!(&packet.payload[..], &offset.to_be_bytes());
                    prop_assert!(held.remove(&offset).is_some());
                    delivered.push(offset);
                }
                prop_assert_eq!(buffer.packets(), held.len());
            }
            prop_assert!(delivered.is_sorted_by(|a, b| a < b));
        }
    }
}
