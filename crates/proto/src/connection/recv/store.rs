//! Received packets on their way to the application.

use bytes::Bytes;
use punctual_units::Instant;
use punctual_wire::{DataHeader, SeqNo};

use super::buffer::{Insert, ReceiveBuffer, Stored};
use super::delivery::Delivery;
use super::file::FileReceipt;
use super::group_bypass::GroupBypass;
use super::nak_scheduler::Missing;
use super::playout::PlayoutCheck;
use super::timing::Timing;
use crate::config::Config;
use crate::connection::recv::messages::ReassembledMessage;
use crate::event::Message;
use crate::handshake::Negotiated;
use crate::path::Path;
use crate::statistics::Statistics;
use crate::wake_up::WakeUp;

/// The packets that were received and not yet delivered, when they are due, and how they are
/// delivered.
#[derive(Debug)]
pub(super) struct ReceiveStore {
    delivery: Delivery,
    buffer: ReceiveBuffer,
    timing: Timing,
    /// The check of a stream of bytes with a playout point.
    playout: Option<PlayoutCheck>,
}

impl ReceiveStore {
    /// An empty store of a connection on this path.
    pub(super) fn new(config: &Config, negotiated: &Negotiated, path: &Path) -> Self {
        Self {
            delivery: Delivery::new(config, negotiated, path),
            buffer: ReceiveBuffer::new(negotiated.fixed.receive_isn, config.receive_window()),
            timing: Timing::new(config, negotiated),
            playout: negotiated.playout.is_some().then(PlayoutCheck::default),
        }
    }

    /// The properties of the path have changed.
    pub(super) fn follow_path(&mut self, path: &Path) {
        self.delivery.follow_path(path);
    }

    /// When messages are due.
    pub(super) const fn timing(&self) -> &Timing {
        &self.timing
    }

    /// When messages are due, to follow the peer's clock or the time base of a group.
    pub(super) const fn timing_mut(&mut self) -> &mut Timing {
        &mut self.timing
    }

    /// The packet that arrives at `now` with this header, as it will be stored; a full payload has
    /// `full` bytes.
    #[inline(always)]
    pub(super) fn arrived(
        &mut self,
        now: Instant,
        header: &DataHeader,
        payload: Bytes,
        full: usize,
    ) -> Stored {
        let place = self.delivery.arrived(now, header, payload.len(), full);
        Stored { payload, time: self.timing.plausible_time(now, header.timestamp), place }
    }

    /// The next packet, which is a message or a piece of a stream.
    #[inline(always)]
    pub(super) fn recv_packet(&mut self, now: Instant, due_by: Instant) -> Result<Message, WakeUp> {
        let next = self.next_packet();
        let Some((seq, stored, lost_before)) =
            next.is_due(due_by).then(|| self.buffer.pop()).flatten()
        else {
            return Err(next);
        };
        let (origin, due) = self.timing.origin_and_due(now, stored.time);
        Ok(Message {
            payload: stored.payload,
            origin,
            due,
            seq,
            msgno: stored.place.msgno(),
            lost_before,
        })
    }

    /// The next message, or piece of a stream, of a file. Returns also the number of packets that
    /// were discarded with incomplete messages.
    #[inline(never)]
    pub(super) fn recv_of_file(&mut self, now: Instant) -> (Result<Message, WakeUp>, u64) {
        let Some(messages) = self.delivery.messages() else {
            return (self.recv_packet(now, now), 0);
        };
        let whole = messages.take(&mut self.buffer);
        let discarded = messages.take_discarded();
        let Some(ReassembledMessage { payload, seq, msgno, lost_before }) = whole else {
            return (Err(WakeUp::Never), discarded);
        };
        (Ok(Message { payload, origin: now, due: now, seq, msgno, lost_before }), discarded)
    }

    /// The due time of the packet at the front; never if there is no packet or one before it is
    /// missing.
    pub(super) fn next_delivery(&mut self) -> WakeUp {
        if let Some(messages) = self.delivery.messages() {
            let readable = messages.is_readable(&mut self.buffer);
            return if readable { WakeUp::Now } else { WakeUp::Never };
        }
        self.next_packet()
    }

    /// The due time of the second live message, unless it is due at `now` already.
    pub(super) fn second_delivery_after(&self, now: Instant) -> Option<Instant> {
        let second = self.buffer.second().filter(|_| !self.delivery.is_file())?;
        self.timing.due(second.time).filter(|&due| due > now)
    }

    #[inline(always)]
    fn next_packet(&mut self) -> WakeUp {
        let Some((_, stored)) = self.buffer.front() else { return WakeUp::Never };
        self.timing.due(stored.time).map_or(WakeUp::Now, WakeUp::At)
    }

    /// Whether no packet is stored.
    pub(super) const fn is_empty(&self) -> bool {
        self.buffer.packets() == 0
    }

    /// Bytes of the stored packets, each with `extra` bytes beside its payload.
    pub(super) const fn held(&self, extra: u64) -> u64 {
        self.buffer.bytes() + self.buffer.packets() as u64 * extra
    }

    /// Whether nothing is left to be delivered after `recv` has found nothing.
    pub(super) fn is_drained(&self) -> bool {
        self.is_empty() || self.keeps_all()
    }

    /// Whether a file is incomplete: packets are missing or wait for missing ones.
    pub(super) fn is_truncated(&self) -> bool {
        let whole = self.is_empty() && !self.has_missing();
        self.keeps_all() && !whole
    }

    /// The deadline of missing packets: a packet after them is due then.
    pub(super) fn next_skip(&self) -> Option<Instant> {
        let (_, stored) = self.buffer.first_behind_gap()?;
        self.timing.give_up_at(stored.time)
    }

    /// Drops the packets that are missing before packets that are due. Returns their number.
    pub(super) fn skip_late(&mut self, now: Instant) -> u64 {
        let mut dropped = 0;
        while self.next_skip().is_some_and(|at| at <= now) {
            let Some((seq, _)) = self.buffer.first_behind_gap() else { break };
            dropped += u64::from(self.buffer.give_up_before(seq));
        }
        dropped
    }

    /// The peer has closed the connection: all missing packets are dropped, unless all are kept.
    /// Returns their number.
    pub(super) fn close(&mut self) -> u64 {
        if self.keeps_all() {
            return 0;
        }
        u64::from(self.buffer.give_up_before(self.buffer.end()))
    }

    /// Drops the missing packets from `first` to `last`, up to the newest packet; returns their
    /// number.
    pub(super) fn give_up(&mut self, first: SeqNo, last: SeqNo) -> u32 {
        self.buffer.give_up(first, last)
    }

    /// As [`give_up`](Self::give_up), also beyond the newest packet if there is room.
    pub(super) fn give_up_beyond(&mut self, first: SeqNo, last: SeqNo) -> u32 {
        self.buffer.give_up_beyond(first, last)
    }

    /// Drops the missing packets that are so far back that there is no room for `seq` beside them,
    /// unless late packets are waited for; returns their number.
    pub(super) fn give_way(&mut self, seq: SeqNo) -> u32 {
        if self.timing.drops_too_late() { self.buffer.give_way(seq) } else { 0 }
    }

    /// Continues at `seq`; nothing may be stored. The missing packets before it and `beyond` more
    /// count as dropped; returns their number.
    pub(super) fn jump(&mut self, seq: SeqNo, beyond: u32) -> u32 {
        self.buffer.jump(seq, beyond)
    }

    /// Continues at `seq`, which may lie before the delivered packets, and forgets the stored
    /// packets; returns their number.
    pub(super) fn restart(&mut self, seq: SeqNo) -> u64 {
        self.buffer.restart(seq) as u64
    }

    /// The number after the newest packet.
    #[inline(always)]
    pub(super) const fn end(&self) -> SeqNo {
        self.buffer.end()
    }

    /// The number of an ACK: the first missing one, or the one after the newest packet.
    #[inline]
    pub(super) fn acknowledged(&self) -> SeqNo {
        self.buffer.acknowledged()
    }

    /// Whether packets are missing.
    #[inline(always)]
    pub(super) fn has_missing(&self) -> bool {
        !self.buffer.missing().is_empty()
    }

    /// Whether a packet is stored that has missing ones before it.
    #[inline]
    pub(super) fn has_behind_gap(&self) -> bool {
        self.buffer.first_behind_gap().is_some()
    }

    /// Whether packet `seq` was passed although it is not due yet: the packets that passed it were
    /// forged.
    pub(super) fn shows_forgery(&self, now: Instant, seq: SeqNo, stored: &Stored) -> bool {
        self.buffer.has_passed(seq) && self.timing.shows_forgery(now, stored.time)
    }

    /// The missing packets and their deadlines.
    #[inline(always)]
    pub(super) const fn missing(&self) -> Missing<'_> {
        Missing { buffer: &self.buffer, timing: &self.timing }
    }

    /// Whether missing packets are never dropped.
    pub(super) fn keeps_all(&self) -> bool {
        self.delivery.keeps_all()
    }

    /// Whether packets are of a file.
    #[inline(always)]
    pub(super) const fn is_of_file(&self) -> bool {
        self.delivery.is_file()
    }

    /// Whether packets are of a stream of bytes, without gaps.
    pub(super) fn is_stream(&self) -> bool {
        self.delivery.is_stream()
    }

    /// The rates of a file's packets.
    pub(super) const fn file(&self) -> Option<&FileReceipt> {
        self.delivery.file()
    }

    /// Returns whether the last packet of a message or of a piece of a stream has arrived, and
    /// takes the mark back.
    #[inline]
    pub(super) const fn take_quick_ack(&mut self) -> bool {
        self.delivery.take_quick_ack()
    }

    /// Passes messages to a balancing group from now on.
    pub(super) fn bypass_to_group(&mut self) {
        self.delivery.bypass_to_group();
    }

    /// Whether messages wait for the group.
    #[inline]
    pub(super) fn has_bypassed(&self) -> bool {
        self.delivery.bypass().is_some_and(|bypass| !bypass.is_empty())
    }

    /// The messages that wait for the group.
    pub(super) fn take_bypassed(&mut self) -> Vec<Message> {
        self.delivery.bypass_mut().map(GroupBypass::take).unwrap_or_default()
    }

    /// The most packets that are stored.
    pub(super) const fn limit(&self) -> usize {
        self.buffer.limit()
    }

    /// Whether there is room for a packet that is not late.
    #[inline(always)]
    pub(super) fn has_place_for(&self, seq: SeqNo) -> bool {
        self.buffer.has_place_for(seq)
    }

    /// Whether `seq` lies beyond the room after the newest packet.
    pub(super) fn is_beyond_room(&self, seq: SeqNo) -> bool {
        let beyond = usize::try_from(seq.distance_from(self.end()));
        beyond.is_ok_and(|beyond| beyond >= self.buffer.room())
    }

    /// The last number that there is room for.
    pub(super) fn last_place(&self) -> SeqNo {
        self.end().plus(self.room()).minus(1)
    }

    /// The packets that the buffer has room for.
    #[inline]
    pub(super) fn room(&self) -> u32 {
        u32::try_from(self.buffer.room()).unwrap_or(u32::MAX)
    }

    /// Stores a packet at `seq`. A balancing group gets its message at once.
    #[inline(always)]
    pub(super) fn insert(&mut self, now: Instant, seq: SeqNo, mut stored: Stored) -> Insert {
        let diverted = match (self.delivery.bypass_mut(), self.timing.tsbpd()) {
            (Some(bypass), Some(_)) => Some(bypass.divert(now, seq, &mut stored, &self.timing)),
            _ => None,
        };
        let readable_to = self.playout.as_ref().map(|_| self.buffer.acknowledged());
        let insert = self.buffer.insert(seq, stored);
        let is_new = matches!(insert, Insert::Newest { .. } | Insert::Filled);
        if is_new {
            self.delivery.stored(seq, &self.buffer);
        }
        if let (Some(playout), Some(first)) = (&mut self.playout, readable_to) {
            playout.became_readable(now, first, &self.buffer, &self.timing);
        }
        if is_new
            && let Some(message) = diverted
            && let Some(bypass) = self.delivery.bypass_mut()
        {
            bypass.keep(message);
        }
        insert
    }

    pub(super) fn fill_statistics(&self, mss: usize, statistics: &mut Statistics) {
        statistics.receive_buffer_available = (self.buffer.room() * mss) as u64;
        statistics.receive_buffer_packets =
            u32::try_from(self.buffer.packets()).unwrap_or(u32::MAX);
        statistics.receive_buffer_bytes = self.buffer.bytes();
        statistics.receive_buffer_span = self.buffer.span_in_time(self.timing.tsbpd());
        self.timing.fill_statistics(statistics);
        if let Some(playout) = &self.playout {
            playout.fill(statistics);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use punctual_wire::{MsgNo, Timestamp};

    use super::super::buffer::MessagePart;
    use super::super::tsbpd::Tsbpd;
    use super::*;

    const AT: fn(u64) -> Instant = Instant::from_millis;

    /// A live store with a latency of 100 ms, for a stream from 1 s on.
    fn store() -> ReceiveStore {
        let tsbpd = Tsbpd::new(AT(1_000), Timestamp::default());
        ReceiveStore {
            delivery: Delivery::Live,
            buffer: ReceiveBuffer::new(SeqNo::new(1), 100),
            timing: Timing::of(tsbpd, Duration::from_millis(100)),
            playout: None,
        }
    }

    /// The packet with this number, of a stream of one each 10 ms, arrives in time.
    fn arrives(store: &mut ReceiveStore, number: u32) -> Insert {
        let now = AT(1_000 + 10 * u64::from(number));
        let time = store.timing.plausible_time(now, Timestamp::from_micros(number * 10_000));
        let place = MessagePart::of_live(MsgNo::FIRST);
        let stored = Stored { payload: Bytes::from_static(b"payload"), time, place };
        store.insert(now, SeqNo::new(number), stored)
    }

    #[test]
    fn a_message_is_delivered_when_it_is_due() {
        let mut store = store();
        arrives(&mut store, 1);
        arrives(&mut store, 2);
        assert_eq!(store.recv_packet(AT(1_109), AT(1_109)).err(), Some(WakeUp::At(AT(1_110))));
        assert_eq!(store.second_delivery_after(AT(1_110)), Some(AT(1_120)));
        let message = store.recv_packet(AT(1_110), AT(1_110)).unwrap();
        assert_eq!((message.seq, message.due), (SeqNo::new(1), AT(1_110)));
        assert_eq!(store.next_delivery(), WakeUp::At(AT(1_120)));
        assert!(!store.is_drained());
    }

    #[test]
    fn missing_packets_are_skipped_when_a_packet_behind_them_is_due() {
        let mut store = store();
        arrives(&mut store, 1);
        arrives(&mut store, 4);
        store.recv_packet(AT(1_110), AT(1_110)).unwrap();
        assert_eq!((store.next_delivery(), store.next_skip()), (WakeUp::Never, Some(AT(1_140))));
        assert_eq!((store.skip_late(AT(1_139)), store.skip_late(AT(1_140))), (0, 2));
        let message = store.recv_packet(AT(1_140), AT(1_140)).unwrap();
        assert_eq!((message.seq, message.lost_before), (SeqNo::new(4), 2));
        assert!(store.is_drained() && !store.is_truncated());
    }

    #[test]
    fn at_the_end_of_a_live_stream_nothing_is_waited_for() {
        let mut store = store();
        arrives(&mut store, 2);
        assert_eq!((store.close(), store.close()), (1, 0));
        assert!(store.recv_packet(AT(1_120), AT(1_120)).is_ok());
    }
}
