use std::collections::{BTreeMap, VecDeque};

use bytes::{Bytes, BytesMut};
use punctual_wire::{MsgNo, SeqNo};

use crate::connection::recv::buffer::{ReceiveBuffer, Stored};

/// Reassembles messages from their packets.
///
/// Messages are delivered in order. A complete message without the in-order flag may overtake
/// incomplete ones, if the configuration allows it. An incomplete message whose rest will never
/// come is discarded.
#[derive(Debug)]
pub(crate) struct Messages {
    /// The packet up to which the message at the front is complete, so that no packet is examined
    /// twice.
    scanned: SeqNo,
    /// Whether messages may overtake others.
    overtaking: bool,
    /// The received parts of messages without the in-order flag, by message number.
    ahead: BTreeMap<u32, Part>,
    /// The first and last packets of complete messages that may overtake others.
    ready: VecDeque<(SeqNo, SeqNo)>,
    /// Whether the first entry of `ready` was checked, so that it is not checked again for each
    /// packet that comes before it is taken.
    is_checked: bool,
    /// Packets discarded since the last `take_discarded`.
    discarded: u64,
}

/// The received part of a message whose packets come in any order.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    packets: u32,
    first: Option<SeqNo>,
    last: Option<SeqNo>,
}

/// A complete message.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct ReassembledMessage {
    pub(crate) payload: Bytes,
    pub(crate) seq: SeqNo,
    pub(crate) msgno: MsgNo,
    /// The number of packets given up just before it.
    pub(crate) lost_before: u32,
}

impl Messages {
    /// An empty reassembly; the first packet will have number `isn`.
    pub(crate) const fn new(isn: SeqNo, overtaking: bool) -> Self {
        Self {
            scanned: isn,
            overtaking,
            ahead: BTreeMap::new(),
            ready: VecDeque::new(),
            is_checked: false,
            discarded: 0,
        }
    }

    /// A packet was stored at `seq`.
    pub(crate) fn stored(&mut self, seq: SeqNo, buffer: &ReceiveBuffer) {
        let may_overtake = |packet: &&Stored| self.overtaking && !packet.place.in_order();
        let Some(packet) = buffer.get(seq).filter(may_overtake) else { return };
        let part = self.ahead.entry(packet.place.msgno().value()).or_default();
        part.packets += 1;
        if packet.place.begins() {
            part.first = Some(seq);
        }
        if packet.place.ends() {
            part.last = Some(seq);
        }
        if let (Some(first), Some(last)) = (part.first, part.last)
            && last.distance_from(first).unsigned_abs() + 1 == part.packets
        {
            self.ahead.remove(&packet.place.msgno().value());
            if buffer.acknowledged().is_before(first) {
                self.note_ready(first, last, buffer);
            }
        }
    }

    /// Whether a message can be taken.
    pub(crate) fn is_readable(&mut self, buffer: &mut ReceiveBuffer) -> bool {
        self.front(buffer).is_some() || self.overtaking(buffer).is_some()
    }

    /// The next complete message.
    pub(crate) fn take(&mut self, buffer: &mut ReceiveBuffer) -> Option<ReassembledMessage> {
        if let Some(last) = self.front(buffer) {
            let (seq, stored, lost_before) = buffer.pop()?;
            let msgno = stored.place.msgno();
            self.ahead.remove(&msgno.value());
            let rest = last.distance_from(seq).unsigned_abs();
            let packets = (0..rest).map_while(|_| buffer.pop().map(|(_, stored, _)| stored));
            return Some(ReassembledMessage {
                payload: join(stored, packets),
                seq,
                msgno,
                lost_before,
            });
        }
        let (seq, last) = self.overtaking(buffer)?;
        self.forget_ready();
        let stored = buffer.take_ahead(seq)?;
        let msgno = stored.place.msgno();
        let rest = last.distance_from(seq).unsigned_abs();
        let packets = (1..=rest).map_while(|i| buffer.take_ahead(seq.plus(i)));
        Some(ReassembledMessage { payload: join(stored, packets), seq, msgno, lost_before: 0 })
    }

    /// The number of packets of incomplete messages that were discarded since the last call.
    pub(crate) const fn take_discarded(&mut self) -> u64 {
        std::mem::replace(&mut self.discarded, 0)
    }

    /// The last packet of the message at the front, if it is complete.
    fn front(&mut self, buffer: &mut ReceiveBuffer) -> Option<SeqNo> {
        loop {
            let (head, stored) = buffer.front()?;
            let (msgno, begins) = (stored.place.msgno(), stored.place.begins());
            if self.scanned.is_before(head) || self.scanned.is_after(buffer.end()) {
                self.scanned = head;
            }
            if begins {
                match self.scan(head, msgno, buffer) {
                    Scan::Complete => return Some(self.scanned),
                    Scan::Waits => return None,
                    Scan::Broken => {}
                }
            } else {
                // The rest of a message whose beginning was given up.
                self.scanned = head.next();
            }
            self.discard(head, msgno, buffer);
        }
    }

    /// Examines the next packets of the message at `head`.
    fn scan(&mut self, head: SeqNo, msgno: MsgNo, buffer: &ReceiveBuffer) -> Scan {
        loop {
            let Some(packet) = buffer.get(self.scanned) else {
                let comes = self.scanned == buffer.end() || buffer.missing().contains(self.scanned);
                return if comes { Scan::Waits } else { Scan::Broken };
            };
            let begins = packet.place.begins();
            if packet.place.msgno() != msgno || begins != (self.scanned == head) {
                return Scan::Broken;
            }
            if packet.place.ends() {
                return Scan::Complete;
            }
            self.scanned = self.scanned.next();
        }
    }

    /// Discards the scanned packets of the message at `head`.
    fn discard(&mut self, head: SeqNo, msgno: MsgNo, buffer: &mut ReceiveBuffer) {
        self.ahead.remove(&msgno.value());
        let mut seq = head;
        while seq.is_before(self.scanned) {
            self.discarded += u64::from(buffer.discard(seq));
            seq = seq.next();
        }
    }

    /// The first message in `ready` that is still in the buffer.
    fn overtaking(&mut self, buffer: &ReceiveBuffer) -> Option<(SeqNo, SeqNo)> {
        while let Some(&(first, last)) = self.ready.front() {
            // Packets leave the buffer in order: if the first one is there, all are.
            let is_kept = !first.is_before(buffer.head()) && buffer.get(first).is_some();
            if is_kept && (self.is_checked || is_whole(first, last, buffer)) {
                self.is_checked = true;
                return Some((first, last));
            }
            self.forget_ready();
        }
        None
    }

    fn forget_ready(&mut self) {
        self.ready.pop_front();
        self.is_checked = false;
    }

    fn note_ready(&mut self, first: SeqNo, last: SeqNo, buffer: &ReceiveBuffer) {
        // Removes messages that were delivered in order, from time to time.
        if self.ready.len() > 2 * buffer.packets() {
            self.ready.retain(|&(first, _)| !first.is_before(buffer.head()));
            self.is_checked = false;
        }
        self.ready.push_back((first, last));
    }
}

enum Scan {
    /// All packets have come; `scanned` is the last one.
    Complete,
    /// The next packet has not come yet.
    Waits,
    /// The next packet will not come.
    Broken,
}

/// Whether the packets from `first` to `last` are one message that may overtake others. The headers
/// come from the peer and may be inconsistent.
fn is_whole(first: SeqNo, last: SeqNo, buffer: &ReceiveBuffer) -> bool {
    if first.is_before(buffer.head()) || last.is_before(first) || !last.is_before(buffer.end()) {
        return false;
    }
    let Some(msgno) = buffer.get(first).map(|packet| packet.place.msgno()) else { return false };
    (0..=last.distance_from(first).unsigned_abs()).map(|i| first.plus(i)).all(|seq| {
        buffer.get(seq).is_some_and(|packet| {
            packet.place.msgno() == msgno
                && !packet.place.in_order()
                && packet.place.begins() == (seq == first)
                && packet.place.ends() == (seq == last)
        })
    })
}

/// Joins the payloads of a message's packets. A single payload is not copied.
fn join(first: Stored, rest: impl Iterator<Item = Stored>) -> Bytes {
    if first.place.ends() {
        return first.payload;
    }
    let rest: Vec<Bytes> = rest.map(|stored| stored.payload).collect();
    let size = first.payload.len() + rest.iter().map(Bytes::len).sum::<usize>();
    let mut whole = BytesMut::with_capacity(size);
    whole.extend_from_slice(&first.payload);
    for part in rest {
        whole.extend_from_slice(&part);
    }
    whole.freeze()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use punctual_wire::Position::{self, First, Last, Middle, Solo};

    use super::*;
    use crate::connection::recv::buffer::{Insert, MessagePart};
    use crate::connection::recv::tsbpd::PeerTime;

    const ISN: SeqNo = SeqNo::new(0x7FFF_FFFE);

    struct Bed {
        messages: Messages,
        buffer: ReceiveBuffer,
    }

    impl Bed {
        fn new() -> Self {
            Self { messages: Messages::new(ISN, true), buffer: ReceiveBuffer::new(ISN, 256) }
        }

        fn put(&mut self, offset: u32, msgno: u32, position: Position, in_order: bool) {
            let stored = Stored {
                payload: Bytes::from(vec![u8::try_from(offset % 251).expect("a byte")]),
                time: PeerTime::default(),
                place: MessagePart::new(MsgNo::new(msgno), position, in_order),
            };
            let seq = ISN.plus(offset);
            if matches!(self.buffer.insert(seq, stored), Insert::Newest { .. } | Insert::Filled) {
                self.messages.stored(seq, &self.buffer);
            }
        }

        fn take(&mut self) -> Option<(u32, Vec<u8>)> {
            let readable = self.messages.is_readable(&mut self.buffer);
            let whole = self.messages.take(&mut self.buffer);
            assert_eq!(whole.is_some(), readable);
            whole.map(|whole| (whole.msgno.value(), whole.payload.to_vec()))
        }
    }

    #[test]
    fn a_message_is_delivered_in_order_when_its_last_packet_comes() {
        let mut bed = Bed::new();
        bed.put(0, 1, First, true);
        bed.put(2, 1, Last, true);
        bed.put(3, 2, Solo, true);
        assert_eq!(bed.take(), None);
        bed.put(1, 1, Middle, true);
        assert_eq!(bed.take(), Some((1, vec![0, 1, 2])));
        assert_eq!(bed.take(), Some((2, vec![3])));
        assert_eq!(bed.take(), None);
    }

    #[test]
    fn a_complete_message_without_the_in_order_flag_overtakes() {
        let mut bed = Bed::new();
        bed.put(0, 1, First, false);
        bed.put(3, 2, Last, false);
        bed.put(4, 3, Solo, true);
        bed.put(5, 4, Solo, false);
        assert_eq!(bed.take(), Some((4, vec![5])), "3 has the in-order flag");
        assert_eq!(bed.take(), None);
        bed.put(2, 2, First, false);
        assert_eq!(bed.take(), Some((2, vec![2, 3])));
        bed.put(1, 1, Last, false);
        assert_eq!(bed.take(), Some((1, vec![0, 1])));
        assert_eq!(bed.take(), Some((3, vec![4])));
        assert_eq!(bed.take(), None);
        assert_eq!(bed.buffer.packets(), 0);
        assert_eq!(bed.buffer.acknowledged(), ISN.plus(6));
        bed.put(6, 5, Solo, true);
        let whole = bed.messages.take(&mut bed.buffer).expect("a message");
        assert_eq!(whole.lost_before, 0, "packets that were read out of order are not lost");
    }

    #[test]
    fn a_message_with_a_packet_given_up_is_discarded() {
        let mut bed = Bed::new();
        bed.put(0, 1, First, true);
        bed.put(2, 1, Last, true);
        bed.put(4, 2, Last, false);
        bed.put(5, 3, Solo, true);
        bed.buffer.give_up(ISN.plus(1), ISN.plus(1));
        assert_eq!(bed.take(), None);
        bed.buffer.give_up(ISN.plus(3), ISN.plus(3));
        assert_eq!(bed.take(), Some((3, vec![5])));
        assert_eq!(bed.messages.take_discarded(), 3);
    }

    #[test]
    fn a_message_may_fill_the_ring() {
        let mut bed = Bed::new();
        for offset in 0..200 {
            let position = if offset == 0 { First } else { Middle };
            bed.put(offset, 1, position, true);
            assert_eq!(bed.take(), None, "after {offset} packets");
        }
        bed.put(200, 1, Last, true);
        assert_eq!(bed.take().map(|(_, payload)| payload.len()), Some(201));
    }

    #[test]
    fn inconsistent_headers_do_not_stop_delivery() {
        let mut bed = Bed::new();
        // A first packet without a last one, a last one without a first one, one number for two
        // messages.
        bed.put(0, 1, First, true);
        bed.put(1, 2, First, false);
        bed.put(2, 2, First, false);
        bed.put(3, 3, Middle, false);
        bed.put(4, 4, Last, false);
        bed.put(5, 5, Solo, true);
        assert_eq!(bed.take(), Some((5, vec![5])));
        assert_eq!((bed.messages.take_discarded(), bed.buffer.packets()), (5, 0));
    }

    proptest! {
        /// For messages of any sizes in any order of arrival: each is delivered once and complete,
        /// and messages with the in-order flag are delivered in order.
        #[test]
        fn every_message_is_delivered_once_and_complete(
            sizes in prop::collection::vec((1u32..6, any::<bool>()), 1..30),
            order in prop::collection::vec(any::<u32>(), 150),
            reads in prop::collection::vec(any::<bool>(), 150),
        ) {
            let mut packets = Vec::new();
            for (&(size, in_order), msgno) in sizes.iter().zip(1..) {
                for i in 0..size {
                    let position = match (i == 0, i + 1 == size) {
                        (true, true) => Solo,
                        (true, false) => First,
                        (false, true) => Last,
                        (false, false) => Middle,
                    };
                    let offset = u32::try_from(packets.len()).expect("few");
                    packets.push((offset, msgno, position, in_order));
                }
            }
            let mut shuffled: Vec<_> = order.iter().zip(&packets).collect();
            shuffled.sort_by_key(|(key, packet)| (**key, packet.0));
            let mut bed = Bed::new();
            let mut taken = BTreeMap::new();
            let mut ordered = Vec::new();
            let mut read = |bed: &mut Bed| {
                while let Some((msgno, payload)) = bed.take() {
                    if sizes[msgno as usize - 1].1 {
                        ordered.push(msgno);
                    }
                    assert!(taken.insert(msgno, payload).is_none(), "twice");
                }
            };
            for ((_, &(offset, msgno, position, in_order)), reads) in shuffled.into_iter().zip(reads)
            {
                bed.put(offset, msgno, position, in_order);
                if reads {
                    read(&mut bed);
                }
            }
            read(&mut bed);
            prop_assert!(ordered.is_sorted());
            prop_assert_eq!(taken.len(), sizes.len());
            let mut offset = 0;
            for (msgno, payload) in taken {
                let size = sizes[msgno as usize - 1].0;
                let expected: Vec<u8> =
                    (offset..offset + size).map(|it| u8::try_from(it % 251).expect("a byte")).collect();
                prop_assert_eq!(payload, expected);
                offset += size;
            }
            prop_assert!(bed.messages.ahead.is_empty());
        }
    }
}
