use std::time::Duration;

use bytes::Bytes;
use punctual_wire::{MsgNo, Position, SeqNo};

use super::tsbpd::{PeerTime, Tsbpd};
use crate::seq_ring::SeqRing;
use crate::seq_set::SeqSet;

/// A packet that waits for its time.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) payload: Bytes,
    pub(crate) time: PeerTime,
    pub(crate) place: Place,
}

/// A packet's place: the number of its message, and how it stands in it. In the bits of a header,
/// so that live packets, which need only the number, carry no more memory around.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Place(u32);

impl Place {
    pub(crate) const fn new(msgno: MsgNo, position: Position, in_order: bool) -> Self {
        let position = (position as u32) << POSITION_SHIFT;
        Self(position | (in_order as u32) << IN_ORDER_SHIFT | msgno.value())
    }

    /// Of a live message, of which only the number matters.
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

/// What became of a packet that arrived.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Insert {
    /// It follows the newest one, or leaves `gap` numbers out.
    Newest { gap: u32 },
    /// It fills a place that was missing.
    Filled,
    /// It is stored already.
    Duplicate,
    /// Its place was passed: delivered or given up.
    Belated,
    /// It lies beyond the capacity.
    NoRoom,
}

/// Packets from arrival to delivery, and which are missing between them.
///
/// `head` is the next to be delivered and `end` follows the newest one. A number between them is
/// stored, missing, or given up: neither, and never missing again.
#[derive(Debug)]
pub(crate) struct ReceiveBuffer {
    ring: SeqRing<Stored>,
    missing: SeqSet,
    head: SeqNo,
    end: SeqNo,
    packets: usize,
    bytes: u64,
    limit: usize,
    /// Numbers passed since the last delivery because they were given up.
    given_up: u32,
    /// Numbers that were delivered before their turn.
    read_ahead: SeqSet,
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
            read_ahead: SeqSet::default(),
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

    /// Follows the newest number that arrived.
    pub(crate) const fn end(&self) -> SeqNo {
        self.end
    }

    /// How many more packets fit.
    pub(crate) const fn room(&self) -> usize {
        self.limit.saturating_sub(self.end.distance_from(self.head).unsigned_abs() as usize)
    }

    /// The first missing number, or the one after the newest: what an ACK says.
    pub(crate) fn acknowledged(&self) -> SeqNo {
        self.missing.first_from(self.head).unwrap_or(self.end)
    }

    /// Whether a packet that is not late finds a place.
    #[inline(always)]
    pub(crate) fn has_place_for(&self, seq: SeqNo) -> bool {
        seq.distance_from(self.head) < i32::try_from(self.limit).unwrap_or(i32::MAX)
    }

    #[inline(always)]
    pub(crate) fn insert(&mut self, seq: SeqNo, stored: Stored) -> Insert {
        if seq.is_before(self.head) {
            return Insert::Belated;
        }
        let span = seq.distance_from(self.head).unsigned_abs() as usize + 1;
        if span > self.limit {
            return Insert::NoRoom;
        }
        if seq.is_before(self.end) {
            if !self.missing.remove(seq) {
                let stored_already = self.ring.get(seq).is_some();
                return if stored_already { Insert::Duplicate } else { Insert::Belated };
            }
            self.store(seq, stored);
            return Insert::Filled;
        }
        self.reserve(span);
        let gap = seq.distance_from(self.end).unsigned_abs();
        if gap > 0 {
            self.missing.reserve(self.head, self.ring.capacity());
            for i in 0..gap {
                self.missing.insert(self.end.plus(i));
            }
        }
        self.end = seq.next();
        self.store(seq, stored);
        Insert::Newest { gap }
    }

    /// Starts over at `seq`; nothing may be stored. Returns how many numbers are passed over.
    pub(crate) fn jump(&mut self, seq: SeqNo) -> u32 {
        let skipped = self.missing.len();
        self.give_up_before(self.end);
        let beyond = seq.distance_from(self.end).unsigned_abs();
        self.given_up += self.end.distance_from(self.head).unsigned_abs() + beyond;
        self.head = seq;
        self.end = seq;
        u32::try_from(skipped).unwrap_or(u32::MAX) + beyond
    }

    /// Gives up every missing number before `seq`; returns how many there were.
    pub(crate) fn give_up_before(&mut self, seq: SeqNo) -> u32 {
        let mut count = 0;
        while let Some(missing) = self.missing.first_from(self.head) {
            if !missing.is_before(seq) {
                break;
            }
            self.missing.remove(missing);
            count += 1;
        }
        count
    }

    /// Gives up the missing numbers that lie too far back for `seq` to find a place with them, and
    /// moves past them; returns how many there were.
    pub(crate) fn give_way(&mut self, seq: SeqNo) -> u32 {
        let back = u32::try_from(self.limit).unwrap_or(u32::MAX).saturating_sub(1);
        let count = self.give_up_before(seq.minus(back));
        self.pass_gone();
        count
    }

    /// Gives up the missing numbers from `first` to `last`; returns how many there were. The sender
    /// may say so before anything behind them came: then they reach beyond the newest one.
    pub(crate) fn give_up(&mut self, first: SeqNo, last: SeqNo) -> u32 {
        let mut seq = if first.is_before(self.head) { self.head } else { first };
        let mut count = 0;
        while seq.is_before(self.end) && !seq.is_after(last) {
            count += u32::from(self.missing.remove(seq));
            seq = seq.next();
        }
        let follows = !first.is_after(self.end) && !last.is_before(self.end);
        let beyond = last.next().distance_from(self.end).unsigned_abs();
        if follows && beyond as usize <= self.room() {
            self.end = last.next();
            self.reserve(self.end.distance_from(self.head).unsigned_abs() as usize);
            count += beyond;
        }
        count
    }

    /// The first packet stored behind a missing number: when it is due, that number is too late.
    pub(crate) fn first_behind_gap(&self) -> Option<(SeqNo, &Stored)> {
        let mut seq = self.missing.first_from(self.head)?;
        // Numbers given up lie behind a gap only after a drop request in the middle.
        while seq.is_before(self.end) {
            seq = self.missing.first_gap_from(seq);
            if let Some(stored) = self.ring.get(seq) {
                return Some((seq, stored));
            }
            seq = seq.next();
        }
        None
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

    /// Moves past numbers that were given up, or read before their turn.
    #[inline(never)]
    fn pass_gone(&mut self) {
        while self.ring.get(self.head).is_none()
            && self.head.is_before(self.end)
            && !self.missing.contains(self.head)
        {
            self.given_up += u32::from(!self.read_ahead.remove(self.head));
            self.head = self.head.next();
        }
    }

    /// Takes the packet that `front` shows, with how many were given up just before it.
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

    /// The packet stored at `seq`, which may be any number: a full ring has the first one's slot
    /// for the one behind the last.
    pub(crate) fn get(&self, seq: SeqNo) -> Option<&Stored> {
        let within = !seq.is_before(self.head) && seq.is_before(self.end);
        self.ring.get(seq).filter(|_| within)
    }

    /// Takes a packet before its turn.
    pub(crate) fn take_ahead(&mut self, seq: SeqNo) -> Option<Stored> {
        let stored = self.ring.take(seq)?;
        self.packets -= 1;
        self.bytes -= stored.payload.len() as u64;
        self.read_ahead.reserve(self.head, self.ring.capacity());
        self.read_ahead.insert(seq);
        Some(stored)
    }

    /// Gives up a packet that came; `false` if there is none.
    pub(crate) fn discard(&mut self, seq: SeqNo) -> bool {
        let Some(stored) = self.ring.take(seq) else { return false };
        self.packets -= 1;
        self.bytes -= stored.payload.len() as u64;
        true
    }

    /// From the oldest stored packet's origin to the newest's.
    pub(crate) fn span_in_time(&self, tsbpd: Option<&Tsbpd>) -> Duration {
        let (Some(tsbpd), Some(newest)) = (tsbpd, self.ring.get(self.end.minus(1))) else {
            return Duration::ZERO;
        };
        let span = self.end.distance_from(self.head);
        let oldest = (0..span).find_map(|i| self.ring.get(self.head.plus(i.unsigned_abs())));
        oldest.map_or(Duration::ZERO, |oldest| {
            tsbpd.origin(newest.time).saturating_since(tsbpd.origin(oldest.time))
        })
    }

    /// Makes room for `span` numbers from the next to be delivered on.
    fn reserve(&mut self, span: usize) {
        if span > self.ring.capacity() {
            self.grow(span);
        }
    }

    /// The sets know numbers by their remainders as the ring does: one that has members must not be
    /// smaller, or a number beyond it would be taken for one of them.
    #[cold]
    fn grow(&mut self, span: usize) {
        self.ring.reserve(self.head, span);
        for set in [&mut self.missing, &mut self.read_ahead] {
            if !set.is_empty() {
                set.reserve(self.head, self.ring.capacity());
            }
        }
    }

    fn store(&mut self, seq: SeqNo, stored: Stored) {
        self.packets += 1;
        self.bytes += stored.payload.len() as u64;
        self.ring.insert(seq, stored);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use punctual_units::Instant;
    use punctual_wire::Timestamp;

    use super::*;

    fn stored(tag: u32) -> Stored {
        let tsbpd = Tsbpd::new(Instant::ORIGIN, Timestamp::from_micros(0), Duration::ZERO);
        Stored {
            payload: Bytes::copy_from_slice(&tag.to_be_bytes()),
            time: tsbpd.peer_time(Instant::ORIGIN, Timestamp::from_micros(tag)),
            place: Place::new(MsgNo::FIRST, Position::Solo, false),
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
        assert_eq!(buffer.give_up_before(isn.plus(2)), 1);
        assert_eq!(buffer.insert(isn.plus(1), stored(1)), Insert::Belated);
        assert_eq!(buffer.pop().map(|(seq, _, lost)| (seq, lost)), Some((isn, 0)));
        assert_eq!(buffer.pop().map(|(seq, _, lost)| (seq, lost)), Some((isn.plus(2), 1)));
        assert!(buffer.pop().is_none(), "the third is missing");
        assert_eq!(buffer.insert(isn.plus(200), stored(9)), Insert::NoRoom);
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
        buffer.give_up_before(isn.plus(1));
        buffer.pop();
        assert_eq!(buffer.jump(isn.plus(5_000)), 4_998);
        assert_eq!(buffer.insert(isn.plus(5_000), stored(2)), Insert::Newest { gap: 0 });
        assert_eq!(buffer.pop().map(|(_, _, lost)| lost), Some(4_998));
    }

    proptest! {
        /// Whatever arrives and whenever, delivery is each packet once, in order, as it was sent.
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
                if skip && let Some((seq, _)) = buffer.first_behind_gap() {
                    buffer.give_up_before(seq);
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
