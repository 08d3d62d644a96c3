use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use punctual_units::Instant;
use punctual_wire::{DropRequest, MsgNo, Position, SeqNo};

use super::sent_numbers::SentNumbers;
use crate::seq_ring::SeqRing;
use crate::seq_run::SeqRun;
use crate::seq_set::SeqSet;

/// A packet in the send buffer: a message, or a part of one.
#[derive(Debug)]
pub(crate) struct BufferedPacket {
    pub(crate) payload: Bytes,
    pub(crate) origin: Instant,
    pub(crate) expires: Option<Instant>,
    pub(crate) last_retransmit: Option<Instant>,
    pub(crate) msgno: MsgNo,
    pub(crate) retransmissions: u32,
    pub(crate) in_order: bool,
    pub(crate) position: Position,
}

/// Packets and payload bytes that left the buffer without an acknowledgement.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Dropped {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

/// The buffer cannot take a message with this number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct NoRoom;

/// The messages from submission to acknowledgement, and the loss list.
///
/// The packets from `first` to `next_new` are in flight, those from `next_new` to `end` wait for
/// their first transmission. A message that is dropped in the middle leaves a hole.
#[derive(Debug)]
pub(crate) struct SendBuffer {
    ring: SeqRing<BufferedPacket>,
    lost: SeqSet,
    /// The run of the loss list that is retransmitted.
    lost_run: SeqRun,
    first: SeqNo,
    next_new: SeqNo,
    end: SeqNo,
    next_msgno: MsgNo,
    sent: SentNumbers,
    packets: usize,
    bytes: u64,
    limit: usize,
    /// The instants at which messages with a TTL expire, and their sequence numbers.
    expiries: BTreeSet<(Instant, u32)>,
}

impl SendBuffer {
    pub(crate) fn new(isn: SeqNo, limit: usize) -> Self {
        Self {
            ring: SeqRing::new(),
            lost: SeqSet::default(),
            lost_run: SeqRun::default(),
            first: isn,
            next_new: isn,
            end: isn,
            next_msgno: MsgNo::FIRST,
            sent: SentNumbers::new(isn),
            packets: 0,
            bytes: 0,
            limit,
            expiries: BTreeSet::new(),
        }
    }

    pub(crate) const fn is_full(&self) -> bool {
        self.span() >= self.limit
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.packets == 0
    }

    pub(crate) const fn packets(&self) -> usize {
        self.packets
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) const fn limit(&self) -> usize {
        self.limit
    }

    /// The number of packets in flight: sent, and neither acknowledged nor dropped.
    pub(crate) const fn flight(&self) -> u32 {
        self.next_new.distance_from(self.first).unsigned_abs()
    }

    /// The first of the newest `count` packets in flight.
    pub(crate) fn tail_of_flight(&self, count: usize) -> SeqNo {
        (1..=self.flight())
            .map(|back| self.next_new.minus(back))
            .filter(|&seq| self.ring.get(seq).is_some())
            .take(count)
            .last()
            .unwrap_or(self.first)
    }

    /// The oldest number that is neither acknowledged nor dropped.
    pub(crate) const fn first(&self) -> SeqNo {
        self.first
    }

    /// The number of the next first transmission.
    pub(crate) const fn next_new(&self) -> SeqNo {
        self.next_new
    }

    /// The numbers that the peer may name. They may reach beyond the next first transmission in a
    /// link of a group, which may continue with earlier numbers.
    pub(crate) const fn sent(&self) -> &SentNumbers {
        &self.sent
    }

    /// Gives the next message this number.
    pub(crate) const fn count_from(&mut self, msgno: MsgNo) {
        self.next_msgno = msgno;
    }

    /// Gives the next message the number `seq` and the message number `msgno` of its group. Returns
    /// the numbers that are passed over, which are holes. Only an empty buffer can go back.
    pub(crate) fn renumber(
        &mut self,
        seq: SeqNo,
        msgno: MsgNo,
    ) -> Result<Option<(SeqNo, SeqNo)>, NoRoom> {
        self.sent.follow_group();
        let from = self.end;
        let ahead = seq.distance_from(from);
        if self.is_empty() {
            self.first = seq;
            self.next_new = seq;
            self.end = seq;
        } else if ahead < 0 || self.span() + ahead.unsigned_abs() as usize >= self.limit {
            return Err(NoRoom);
        } else {
            self.reserve(self.span() + ahead.unsigned_abs() as usize + 1);
            self.end = seq;
        }
        self.next_msgno = msgno;
        Ok((ahead > 0).then(|| (from, seq.minus(1))))
    }

    /// The number after the newest one.
    pub(crate) const fn end(&self) -> SeqNo {
        self.end
    }

    pub(crate) const fn has_new(&self) -> bool {
        self.next_new.is_before(self.end)
    }

    pub(crate) const fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// The number of packets in the loss list.
    pub(crate) const fn lost(&self) -> usize {
        self.lost.len()
    }

    /// The packet with this number; `None` if it was acknowledged or dropped, however long ago.
    pub(crate) fn get(&self, seq: SeqNo) -> Option<&BufferedPacket> {
        if self.covers(seq) { self.ring.get(seq) } else { None }
    }

    /// [`get`](Self::get), to change the packet.
    pub(crate) fn get_mut(&mut self, seq: SeqNo) -> Option<&mut BufferedPacket> {
        if self.covers(seq) { self.ring.get_mut(seq) } else { None }
    }

    /// Whether the number lies within the buffer. The ring holds a newer packet in the place of one
    /// that is long gone.
    const fn covers(&self, seq: SeqNo) -> bool {
        !seq.is_before(self.first) && seq.is_before(self.end)
    }

    /// Whether the packet is in flight: sent, and neither acknowledged nor dropped.
    pub(crate) fn is_in_flight(&self, seq: SeqNo) -> bool {
        seq.is_before(self.next_new) && self.get(seq).is_some()
    }

    pub(crate) fn oldest(&self) -> Option<&BufferedPacket> {
        self.ring.get(self.first)
    }

    /// The number of reports that the oldest packet is lost.
    pub(crate) fn repairs_of_oldest(&self) -> u32 {
        let waits = u32::from(self.lost.contains(self.first));
        self.oldest().map_or(0, |oldest| oldest.retransmissions + waits)
    }

    /// The time from the origin of the oldest message to that of the newest one.
    pub(crate) fn span_in_time(&self) -> Duration {
        match (self.ring.get(self.first), self.ring.get(self.end.minus(1))) {
            (Some(oldest), Some(newest)) => newest.origin - oldest.origin,
            _ => Duration::ZERO,
        }
    }

    /// The sequence number of the next message's first packet, and its message number.
    pub(crate) const fn next_message(&self) -> (SeqNo, MsgNo) {
        (self.end, self.next_msgno)
    }

    /// The number of further packets that fit.
    pub(crate) const fn room(&self) -> usize {
        self.limit.saturating_sub(self.span())
    }

    /// Takes a message of one packet in; the buffer must not be full.
    #[inline(always)]
    pub(crate) fn push(
        &mut self,
        payload: Bytes,
        origin: Instant,
        expires: Option<Instant>,
        in_order: bool,
    ) {
        self.push_packet(payload, origin, expires, in_order, Position::Solo);
        self.next_msgno = self.next_msgno.next();
    }

    /// Takes a message in, or bytes of a stream, cut into packets of at most `max` bytes; there
    /// must be room.
    #[inline(never)]
    pub(crate) fn push_parts(
        &mut self,
        mut payload: Bytes,
        max: usize,
        origin: Instant,
        expires: Option<Instant>,
        in_order: bool,
    ) {
        let mut position = Position::Solo;
        if payload.len() > max {
            position = Position::First;
            while payload.len() > max {
                self.push_packet(payload.split_to(max), origin, expires, in_order, position);
                position = Position::Middle;
            }
            position = Position::Last;
        }
        self.push_packet(payload, origin, expires, in_order, position);
        self.next_msgno = self.next_msgno.next();
    }

    #[inline(never)]
    fn note_expiry(&mut self, at: Instant) {
        self.expiries.insert((at, self.end.value()));
    }

    #[inline(always)]
    fn push_packet(
        &mut self,
        payload: Bytes,
        origin: Instant,
        expires: Option<Instant>,
        in_order: bool,
        position: Position,
    ) {
        self.reserve(self.span() + 1);
        self.packets += 1;
        self.bytes += payload.len() as u64;
        if let Some(at) = expires {
            self.note_expiry(at);
        }
        self.ring.insert(
            self.end,
            BufferedPacket {
                payload,
                origin,
                expires,
                last_retransmit: None,
                msgno: self.next_msgno,
                retransmissions: 0,
                in_order,
                position,
            },
        );
        self.end = self.end.next();
    }

    /// Makes room for `span` numbers from the oldest one on.
    #[inline(always)]
    fn reserve(&mut self, span: usize) {
        if span > self.ring.capacity() {
            self.grow(span);
        }
    }

    /// The loss list stores numbers by their remainders, as the ring does: it must not be smaller,
    /// or a message dropped after a lost one would be confused with it.
    #[cold]
    fn grow(&mut self, span: usize) {
        self.ring.reserve(self.first, span);
        if !self.lost.is_empty() {
            self.lost.reserve(self.first, self.ring.capacity());
        }
    }

    /// The number of the next message that was never sent; it counts as sent from now on.
    pub(crate) fn take_new(&mut self) -> Option<SeqNo> {
        let seq = self.has_new().then_some(self.next_new)?;
        self.next_new = seq.next();
        self.pass_holes();
        Some(seq)
    }

    /// The oldest number that was reported lost; it is no longer in the list from now on.
    pub(crate) fn take_lost(&mut self) -> Option<SeqNo> {
        while let Some(seq) = self.lost.first_from(self.first) {
            self.lost.remove(seq);
            if self.ring.get(seq).is_some() {
                return Some(seq);
            }
        }
        None
    }

    /// The first number after `seq` that was not reported lost.
    pub(crate) fn behind_lost(&self, seq: SeqNo) -> SeqNo {
        let is_lost = |seq| self.lost.contains(seq);
        self.lost_run.end(seq.next(), is_lost, |seq| self.lost.first_gap_from(seq))
    }

    /// The origin of a packet in flight.
    pub(crate) fn sent_origin(&self, seq: SeqNo) -> Option<Instant> {
        self.get(seq).filter(|_| seq.is_before(self.next_new)).map(|packet| packet.origin)
    }

    /// Drops the oldest message that was reported lost; returns its number.
    pub(crate) fn give_back_lost(&mut self) -> Option<SeqNo> {
        let seq = self.take_lost()?;
        self.remove(seq);
        self.settle(self.first);
        Some(seq)
    }

    /// Puts the packets in flight from `first` to `last` into the loss list; returns the number of
    /// new ones. `gone` is called with each run of dropped packets.
    pub(crate) fn report_lost(
        &mut self,
        first: SeqNo,
        last: SeqNo,
        mut gone: impl FnMut(SeqNo, SeqNo),
    ) -> u64 {
        let mut run = first.is_before(self.first).then_some(first);
        let mut seq = if run.is_some() { self.first } else { first };
        self.lost.reserve(self.first, self.ring.capacity());
        let mut added = 0;
        if self.packets == self.span() && seq.is_before(self.next_new) && !seq.is_after(last) {
            // No message was dropped in the middle.
            let to = if last.is_before(self.next_new) { last.next() } else { self.next_new };
            added = self.lost.insert_run(seq, to.distance_from(seq).unsigned_abs()).into();
            if let Some(start) = run.take() {
                gone(start, seq.minus(1));
            }
            seq = to;
        }
        while seq.is_before(self.next_new) && !seq.is_after(last) {
            if self.ring.get(seq).is_none() {
                run = run.or(Some(seq));
            } else {
                added += u64::from(self.lost.insert(seq));
                if let Some(start) = run.take() {
                    gone(start, seq.minus(1));
                }
            }
            seq = seq.next();
        }
        if let Some(start) = run {
            gone(start, if last.is_before(seq) { last } else { seq.minus(1) });
        }
        added
    }

    /// Releases all packets before `next`. Returns whether there were any.
    pub(crate) fn acknowledge(&mut self, next: SeqNo) -> bool {
        let before = self.first;
        let released = next.distance_from(before).clamp(0, self.end.distance_from(before));
        if self.has_lost() && self.lost.remove_run(before, released.unsigned_abs()) > 0 {
            self.lost_run.clear();
        }
        for _ in 0..released {
            self.release(self.first);
            self.first = self.first.next();
        }
        self.settle(before);
        released > 0
    }

    /// Drops the messages at the front that originated before `limit`.
    pub(crate) fn drop_before(&mut self, limit: Instant) -> Dropped {
        let (mut dropped, before) = (Dropped::default(), self.first);
        while self.first.is_before(self.end)
            && self.ring.get(self.first).is_none_or(|packet| packet.origin < limit)
        {
            if let Some(bytes) = self.remove(self.first) {
                dropped.packets += 1;
                dropped.bytes += bytes;
            }
            self.first = self.first.next();
        }
        self.settle(before);
        dropped
    }

    /// Drops one message whose TTL has ended at `now`, if there is one. Returns the announcement
    /// for the peer, and the dropped packets. Parts of the message may have been acknowledged
    /// before.
    pub(crate) fn drop_expired(&mut self, now: Instant) -> Option<(DropRequest, Dropped)> {
        let (_, seq) = self.expiries.first().filter(|&&(at, _)| at <= now)?;
        let seq = SeqNo::new(*seq);
        let msgno = self.ring.get(seq)?.msgno;
        let is_part = |buffer: &Self, seq: SeqNo| {
            !seq.is_before(buffer.first)
                && seq.is_before(buffer.end)
                && buffer.ring.get(seq).is_some_and(|packet| packet.msgno == msgno)
        };
        let mut first = seq;
        while is_part(self, first.minus(1)) {
            first = first.minus(1);
        }
        let (mut next, mut dropped) = (first, Dropped::default());
        while is_part(self, next) {
            if let Some(bytes) = self.remove(next) {
                dropped.packets += 1;
                dropped.bytes += bytes;
            }
            next = next.next();
        }
        self.settle(self.first);
        Some((DropRequest { msgno, first, last: next.minus(1) }, dropped))
    }

    /// The instant at which the first TTL ends.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.expiries.first().map(|&(at, _)| at)
    }

    /// Removes a packet, also from the loss list; returns the bytes of its payload.
    fn remove(&mut self, seq: SeqNo) -> Option<u64> {
        let bytes = self.release(seq)?;
        if self.lost.remove(seq) {
            self.lost_run.removed(seq, self.lost.first_from(self.first));
        }
        Some(bytes)
    }

    /// Removes a packet that is not in the loss list; returns the bytes of its payload.
    #[inline(always)]
    fn release(&mut self, seq: SeqNo) -> Option<u64> {
        let last = |packet: &BufferedPacket| (packet.payload.len() as u64, packet.expires);
        let (bytes, expires) = self.ring.remove(seq, last)?;
        self.packets -= 1;
        self.bytes -= bytes;
        if let Some(at) = expires {
            self.forget_expiry(at, seq);
        }
        Some(bytes)
    }

    #[inline(never)]
    fn forget_expiry(&mut self, at: Instant, seq: SeqNo) {
        self.expiries.remove(&(at, seq.value()));
    }

    /// Moves past holes, at the front and before the next first transmission, and frees memory;
    /// `before` was the first number before messages were removed.
    fn settle(&mut self, before: SeqNo) {
        while self.first.is_before(self.end) && self.ring.get(self.first).is_none() {
            self.first = self.first.next();
        }
        if self.next_new.is_before(self.first) {
            self.next_new = self.first;
        }
        self.pass_holes();
        let passed = self.first.distance_from(before).unsigned_abs() as usize;
        self.ring.shrink(self.first, self.span(), passed);
    }

    /// Moves past holes before the next first transmission. The peer may acknowledge them, because
    /// they were announced to it.
    fn pass_holes(&mut self) {
        while self.has_new() && self.ring.get(self.next_new).is_none() {
            self.next_new = self.next_new.next();
        }
        self.sent.extend_to(self.next_new);
    }

    const fn span(&self) -> usize {
        self.end.distance_from(self.first).unsigned_abs() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(n: u64) -> SendBuffer {
        let mut buffer = SendBuffer::new(SeqNo::new(0x7FFF_FFFE), 1_000);
        for i in 0..n {
            buffer.push(Bytes::from_static(b"four"), Instant::from_millis(i), None, false);
        }
        buffer
    }

    #[test]
    fn acknowledged_messages_leave_with_their_loss_reports() {
        let mut buffer = filled(5);
        let isn = buffer.first();
        for _ in 0..4 {
            buffer.take_new();
        }
        let mut gone = Vec::new();
        let mut report = |first, last| buffer.report_lost(first, last, |a, b| gone.push((a, b)));
        assert_eq!(report(isn.minus(3), isn.plus(10)), 4);
        assert_eq!(report(isn, isn), 0, "reported already");
        assert_eq!(report(isn.minus(3), isn.minus(2)), 0);
        assert_eq!(gone, [(isn.minus(3), isn.minus(1)), (isn.minus(3), isn.minus(2))]);
        assert!(buffer.acknowledge(isn.plus(2)));
        assert!(!buffer.acknowledge(isn.plus(1)));
        assert_eq!(buffer.take_lost(), Some(isn.plus(2)));
        assert_eq!(buffer.take_lost(), Some(isn.plus(3)));
        assert!(buffer.take_lost().is_none());
        assert_eq!((buffer.packets(), buffer.bytes(), buffer.flight()), (3, 12, 2));
    }

    #[test]
    fn a_number_that_is_long_gone_is_not_taken_for_the_packet_in_its_place() {
        let mut buffer = filled(64);
        let isn = buffer.first();
        let places = u32::try_from(buffer.ring.capacity()).unwrap();
        while buffer.take_new().is_some() {}
        buffer.acknowledge(isn.plus(10));
        for i in 64..64 + 10 {
            buffer.push(Bytes::from_static(b"newer"), Instant::from_millis(i), None, false);
            buffer.take_new();
        }
        assert_eq!(buffer.ring.capacity(), places as usize, "each newer one has an older's place");
        for seq in (0..10).map(|i| isn.plus(i)) {
            assert!(buffer.get(seq).is_none() && buffer.get_mut(seq).is_none());
            assert!(!buffer.is_in_flight(seq) && buffer.sent_origin(seq).is_none());
            let newer = seq.plus(places);
            assert!(buffer.is_in_flight(newer) && buffer.sent_origin(newer).is_some());
        }
    }

    #[test]
    fn too_old_messages_are_given_up_sent_or_not() {
        let mut buffer = filled(5);
        buffer.take_new();
        let dropped = buffer.drop_before(Instant::from_millis(3));
        assert_eq!(dropped, Dropped { packets: 3, bytes: 12 });
        assert_eq!(buffer.take_new(), Some(SeqNo::new(0x7FFF_FFFE).plus(3)));
        assert_eq!(buffer.flight(), 1);
    }

    #[test]
    fn a_message_whose_time_is_over_leaves_a_hole() {
        let mut buffer = filled(1);
        let isn = buffer.first();
        buffer.push(
            Bytes::from_static(b"x"),
            Instant::from_millis(1),
            Some(Instant::from_millis(9)),
            false,
        );
        buffer.push(Bytes::from_static(b"y"), Instant::from_millis(2), None, false);
        assert_eq!(buffer.next_expiry(), Some(Instant::from_millis(9)));
        assert!(buffer.drop_expired(Instant::from_millis(8)).is_none());
        assert_eq!(
            buffer.drop_expired(Instant::from_millis(9)).map(|(request, _)| request.first),
            Some(isn.plus(1))
        );
        assert_eq!(buffer.next_expiry(), None);
        assert_eq!(buffer.take_new(), Some(isn));
        assert_eq!(buffer.tail_of_flight(2), isn);
        assert_eq!(buffer.take_new(), Some(isn.plus(2)));
        assert_eq!(buffer.tail_of_flight(1), isn.plus(2));
        assert_eq!(buffer.tail_of_flight(2), isn, "not the hole");
        assert!(buffer.acknowledge(isn.next()));
        assert_eq!(buffer.first(), isn.plus(2));
    }

    #[test]
    fn message_numbers_wrap_past_zero() {
        let mut buffer = filled(0);
        let isn = buffer.first();
        buffer.next_msgno = MsgNo::new(MsgNo::MAX.value() - 1);
        for _ in 0..4 {
            buffer.push(Bytes::from_static(b"four"), Instant::ORIGIN, None, false);
        }
        let numbers = (0..4).map(|i| buffer.get(isn.plus(i)).map(|packet| packet.msgno.value()));
        let expected = [0x03FF_FFFE, 0x03FF_FFFF, 1, 2].map(Some);
        assert!(numbers.eq(expected), "0 is the packet filter's");
    }

    #[test]
    fn a_long_backlog_grows_the_buffer_to_its_limit() {
        let mut buffer = filled(1_000);
        assert_eq!(buffer.room(), 0);
        assert_eq!(buffer.span_in_time(), Duration::from_millis(999));
        while buffer.take_new().is_some() {}
        buffer.acknowledge(buffer.next_new());
        assert!(buffer.is_empty() && buffer.room() == 1_000);
    }

    #[test]
    fn a_message_of_several_packets_has_one_number_and_is_given_up_as_a_whole() {
        let mut buffer = filled(1);
        let isn = buffer.first();
        let late = Some(Instant::from_millis(9));
        buffer.push_parts(Bytes::from_static(b"0123456789"), 4, Instant::ORIGIN, late, true);
        buffer.push_parts(Bytes::from_static(b"01234567"), 4, Instant::ORIGIN, None, true);
        let position = |i| buffer.get(isn.plus(i)).map(|packet| packet.position);
        let positions: Vec<_> = (0..6).map_while(position).collect();
        use Position::{First, Last, Middle, Solo};
        assert_eq!(positions, [Solo, First, Middle, Last, First, Last]);
        let number = |i| buffer.get(isn.plus(i)).map(|packet| packet.msgno.value());
        assert!((0..6).map_while(number).eq([1, 2, 2, 2, 3, 3]));
        assert_eq!(buffer.get(isn.plus(3)).map(|packet| &packet.payload[..]), Some(&b"89"[..]));
        // Its first packet has arrived; the other two are given up.
        for _ in 0..3 {
            buffer.take_new();
        }
        buffer.acknowledge(isn.plus(2));
        let (request, dropped) = buffer.drop_expired(Instant::from_millis(9)).expect("expired");
        assert_eq!((request.first, request.last), (isn.plus(2), isn.plus(3)));
        assert_eq!(request.msgno.value(), 2);
        assert_eq!(dropped, Dropped { packets: 2, bytes: 6 });
        assert!(buffer.drop_expired(Instant::from_millis(9)).is_none());
        assert_eq!(buffer.take_new(), Some(isn.plus(4)));
    }
}
