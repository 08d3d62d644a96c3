//! Received packets on their way to the application.

use punctual_units::Instant;
use punctual_wire::SeqNo;

use super::buffer::{Insert, ReceiveBuffer, Stored};
use super::counts::ReceiveCounts;
use super::delivery::Delivery;
use super::messages::ReassembledMessage;
use super::missing::Missing;
use super::playout::PlayoutCheck;
use super::timing::Timing;
use super::window::ReceiveWindow;
use crate::config::Config;
use crate::event::Message;
use crate::handshake::Negotiated;
use crate::statistics::Statistics;
use crate::wake_up::WakeUp;

/// The packets that were received and not yet delivered, and the way in which they are delivered.
///
/// Their due times follow the peer's clock, [`Timing`], which the receiving half keeps.
#[derive(Debug)]
pub(super) struct ReceiveStore {
    delivery: Delivery,
    buffer: ReceiveBuffer,
    /// The check of a stream of bytes with a playout point.
    playout: Option<PlayoutCheck>,
}

/// The packets that are stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldPackets {
    pub(super) packets: usize,
    /// The bytes of their payloads.
    pub(super) bytes: u64,
}

impl ReceiveStore {
    /// An empty store.
    pub(super) fn new(config: &Config, negotiated: &Negotiated) -> Self {
        let isn = negotiated.fixed.receive_isn;
        Self {
            delivery: Delivery::new(config, isn),
            buffer: ReceiveBuffer::new(isn, config.receive_window()),
            playout: negotiated.playout.is_some().then(PlayoutCheck::default),
        }
    }

    /// The way in which packets are delivered.
    #[inline(always)]
    pub(super) const fn delivery(&self) -> &Delivery {
        &self.delivery
    }

    /// The numbers between which packets are stored.
    #[inline(always)]
    pub(super) const fn window(&self) -> ReceiveWindow {
        self.buffer.window()
    }

    /// The stored packets.
    #[inline(always)]
    pub(super) const fn held(&self) -> HeldPackets {
        HeldPackets { packets: self.buffer.packets(), bytes: self.buffer.bytes() }
    }

    /// The missing packets and their deadlines.
    #[inline(always)]
    pub(super) const fn missing<'a>(&'a self, timing: &'a Timing) -> Missing<'a> {
        Missing::new(&self.buffer, timing)
    }

    /// The number of an ACK: the first missing one, or the one after the newest packet.
    #[inline]
    pub(super) fn acknowledged(&self) -> SeqNo {
        self.buffer.acknowledged()
    }

    /// Stores a packet at `seq`.
    #[inline(always)]
    pub(super) fn insert(
        &mut self,
        now: Instant,
        seq: SeqNo,
        stored: Stored,
        timing: &Timing,
    ) -> Insert {
        let readable_to = self.playout.as_ref().map(|_| self.buffer.acknowledged());
        let insert = self.buffer.insert(seq, stored);
        if matches!(insert, Insert::Newest { .. } | Insert::Filled) {
            self.delivery.stored(seq, &self.buffer);
        }
        if let (Some(playout), Some(first)) = (&mut self.playout, readable_to) {
            playout.became_readable(now, first, &self.buffer, timing);
        }
        insert
    }

    /// The next message, or piece of a stream, if it is due at `due_by`, or else the instant of
    /// [`next_delivery`](Self::next_delivery). Counts the packets that are discarded with
    /// incomplete messages.
    #[inline(always)]
    pub(super) fn recv(
        &mut self,
        now: Instant,
        due_by: Instant,
        timing: &Timing,
        counts: &mut ReceiveCounts,
    ) -> Result<Message, WakeUp> {
        if self.delivery.is_file() {
            let (message, discarded) = self.recv_of_file(now, timing);
            counts.dropped(discarded);
            return message;
        }
        self.recv_packet(now, due_by, timing)
    }

    #[inline(always)]
    fn recv_packet(
        &mut self,
        now: Instant,
        due_by: Instant,
        timing: &Timing,
    ) -> Result<Message, WakeUp> {
        let next = self.next_packet(timing);
        if !next.is_due(due_by) {
            return Err(next);
        }
        let Some((seq, stored, lost_before)) = self.buffer.pop() else { return Err(next) };
        let (origin, due) = timing.origin_and_due(now, stored.time);
        Ok(Message {
            payload: stored.payload,
            origin,
            due,
            seq,
            msgno: stored.place.msgno(),
            lost_before,
        })
    }

    /// Returns also the number of packets that were discarded with incomplete messages.
    #[inline(never)]
    fn recv_of_file(&mut self, now: Instant, timing: &Timing) -> (Result<Message, WakeUp>, u64) {
        let Some(messages) = self.delivery.messages() else {
            return (self.recv_packet(now, now, timing), 0);
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
    pub(super) fn next_delivery(&mut self, timing: &Timing) -> WakeUp {
        let Some(messages) = self.delivery.messages() else { return self.next_packet(timing) };
        if messages.is_readable(&mut self.buffer) { WakeUp::Now } else { WakeUp::Never }
    }

    #[inline(always)]
    fn next_packet(&mut self, timing: &Timing) -> WakeUp {
        let Some((_, stored)) = self.buffer.front() else { return WakeUp::Never };
        timing.due(stored.time).map_or(WakeUp::Now, WakeUp::At)
    }

    /// The due time of the second live message, unless it is due at `now` already.
    pub(super) fn second_delivery_after(&self, now: Instant, timing: &Timing) -> Option<Instant> {
        let second = self.buffer.second().filter(|_| !self.delivery.is_file())?;
        timing.due(second.time).filter(|&due| due > now)
    }

    /// Drops the missing packets from `first` to `last`; returns their number. Numbers after the
    /// newest packet, which the sender has announced to send no more, are dropped if there is room
    /// and `first` leaves none out.
    pub(super) fn give_up(&mut self, first: SeqNo, last: SeqNo) -> u32 {
        self.buffer.give_up(first, last)
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

    pub(super) fn fill_statistics(&self, mss: usize, timing: &Timing, statistics: &mut Statistics) {
        statistics.receive_buffer_available = u64::from(self.window().room()) * mss as u64;
        let HeldPackets { packets, bytes } = self.held();
        statistics.receive_buffer_packets = u32::try_from(packets).unwrap_or(u32::MAX);
        statistics.receive_buffer_bytes = bytes;
        statistics.receive_buffer_span = self.buffer.span_in_time(timing.tsbpd());
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
    struct Live {
        store: ReceiveStore,
        timing: Timing,
        counts: ReceiveCounts,
    }

    impl Live {
        fn new() -> Self {
            let tsbpd = Tsbpd::new(AT(1_000), Timestamp::default());
            let store = ReceiveStore {
                delivery: Delivery::Live,
                buffer: ReceiveBuffer::new(SeqNo::new(1), 100),
                playout: None,
            };
            let timing = Timing::of(tsbpd, Duration::from_millis(100));
            Self { store, timing, counts: ReceiveCounts::default() }
        }

        /// The packet with this number, of a stream of one each 10 ms, arrives in time.
        fn arrives(&mut self, number: u32) -> Insert {
            let now = AT(1_000 + 10 * u64::from(number));
            let time = self.timing.plausible_time(now, Timestamp::from_micros(number * 10_000));
            let place = MessagePart::of_live(MsgNo::FIRST);
            let stored = Stored { payload: Bytes::from_static(b"payload"), time, place };
            self.store.insert(now, SeqNo::new(number), stored, &self.timing)
        }

        fn recv(&mut self, millis: u64) -> Result<Message, WakeUp> {
            self.store.recv(AT(millis), AT(millis), &self.timing, &mut self.counts)
        }
    }

    #[test]
    fn a_message_is_delivered_when_it_is_due() {
        let mut live = Live::new();
        live.arrives(1);
        live.arrives(2);
        assert_eq!(live.recv(1_109).err(), Some(WakeUp::At(AT(1_110))));
        let second = live.store.second_delivery_after(AT(1_110), &live.timing);
        assert_eq!(second, Some(AT(1_120)));
        let message = live.recv(1_110).unwrap();
        assert_eq!((message.seq, message.due), (SeqNo::new(1), AT(1_110)));
        assert_eq!(live.store.next_delivery(&live.timing), WakeUp::At(AT(1_120)));
        assert_eq!(live.store.held().packets, 1);
    }

    #[test]
    fn packets_behind_missing_ones_wait_until_these_are_given_up() {
        let mut live = Live::new();
        live.arrives(1);
        live.arrives(4);
        live.recv(1_110).unwrap();
        assert_eq!(live.store.next_delivery(&live.timing), WakeUp::Never);
        let (behind, at) = live.store.missing(&live.timing).next_skip().unwrap();
        assert_eq!((behind, at), (SeqNo::new(4), AT(1_140)));
        assert_eq!(live.store.give_up(live.store.acknowledged(), behind.minus(1)), 2);
        let message = live.recv(1_140).unwrap();
        assert_eq!((message.seq, message.lost_before), (SeqNo::new(4), 2));
        assert_eq!(live.store.held().packets, 0);
    }
}
