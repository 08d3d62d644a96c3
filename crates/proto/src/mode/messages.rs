use std::collections::{BTreeMap, VecDeque};

use bytes::{Bytes, BytesMut};
use punctual_wire::{MsgNo, SeqNo};

use crate::connection::recv::buffer::{ReceiveBuffer, Stored};

/// Puts messages together from their packets.
///
/// Messages are delivered in order; one that need not be, and is whole, may overtake those that
/// still miss a packet, if the reader allows it. Of a message that will never be whole nothing is
/// delivered.
#[derive(Debug)]
pub(crate) struct Messages {
    /// Up to where the message at the front is known to be there; no packet is looked at twice.
    scanned: SeqNo,
    /// Whether any may overtake others.
    overtaking: bool,
    /// What has come of the messages that need not be in order.
    ahead: BTreeMap<u32, Part>,
    /// First and last packets of whole messages that may overtake others.
    ready: VecDeque<(SeqNo, SeqNo)>,
    /// Whether the first of those was looked through: it is not again for each packet that comes
    /// before it is taken.
    looked_through: bool,
    /// Packets thrown away since that was last asked.
    discarded: u64,
}

/// What is known of a message whose packets come in any order.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    packets: u32,
    first: Option<SeqNo>,
    last: Option<SeqNo>,
}

/// A whole message.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct ReassembledMessage {
    pub(crate) payload: Bytes,
    pub(crate) seq: SeqNo,
    pub(crate) msgno: MsgNo,
    /// Packets given up just before it.
    pub(crate) lost_before: u32,
}

impl Messages {
    /// Before anything came; the first packet is `isn`.
    pub(crate) const fn new(isn: SeqNo, overtaking: bool) -> Self {
        Self {
            scanned: isn,
            overtaking,
            ahead: BTreeMap::new(),
            ready: VecDeque::new(),
            looked_through: false,
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

    /// The next message that is whole.
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

    /// Packets of messages that will never be whole, thrown away since this was last asked.
    pub(crate) const fn take_discarded(&mut self) -> u64 {
        std::mem::replace(&mut self.discarded, 0)
    }

    /// The last packet of the message at the front, if all of it is there.
    fn front(&mut self, buffer: &mut ReceiveBuffer) -> Option<SeqNo> {
        loop {
            let (head, stored) = buffer.front()?;
            let (msgno, begins) = (stored.place.msgno(), stored.place.begins());
            if self.scanned.is_before(head) || self.scanned.is_after(buffer.end()) {
                self.scanned = head;
            }
            if begins {
                match self.scan(head, msgno, buffer) {
                    Scan::ReassembledMessage => return Some(self.scanned),
                    Scan::Waits => return None,
                    Scan::Broken => {}
                }
            } else {
                // The rest of a message whose start was given up.
                self.scanned = head.next();
            }
            self.discard(head, msgno, buffer);
        }
    }

    /// Goes on from packet to packet of the message at `head`.
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
                return Scan::ReassembledMessage;
            }
            self.scanned = self.scanned.next();
        }
    }

    /// Throws away what was scanned of the message at `head`.
    fn discard(&mut self, head: SeqNo, msgno: MsgNo, buffer: &mut ReceiveBuffer) {
        self.ahead.remove(&msgno.value());
        let mut seq = head;
        while seq.is_before(self.scanned) {
            self.discarded += u64::from(buffer.discard(seq));
            seq = seq.next();
        }
    }

    /// The first message that may overtake the others and still stands as it was noted.
    fn overtaking(&mut self, buffer: &ReceiveBuffer) -> Option<(SeqNo, SeqNo)> {
        while let Some(&(first, last)) = self.ready.front() {
            // What stands before it goes first: who has its first packet still has all of it.
            let stands = !first.is_before(buffer.head()) && buffer.get(first).is_some();
            if stands && (self.looked_through || is_whole(first, last, buffer)) {
                self.looked_through = true;
                return Some((first, last));
            }
            self.forget_ready();
        }
        None
    }

    fn forget_ready(&mut self) {
        self.ready.pop_front();
        self.looked_through = false;
    }

    fn note_ready(&mut self, first: SeqNo, last: SeqNo, buffer: &ReceiveBuffer) {
        // Those that were delivered in their turn are forgotten from time to time.
        if self.ready.len() > 2 * buffer.packets() {
            self.ready.retain(|&(first, _)| !first.is_before(buffer.head()));
            self.looked_through = false;
        }
        self.ready.push_back((first, last));
    }
}

enum Scan {
    /// All packets are there; the last one was scanned.
    ReassembledMessage,
    /// The next one has not come yet.
    Waits,
    /// The next one will not come.
    Broken,
}

/// Whether the packets from `first` to `last` are one message that may overtake others. Who sends
/// them says so in each header, and may say nonsense.
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

/// One payload from those of a message's packets; not copied if there is only one.
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
    fn a_message_comes_when_its_last_packet_does_and_in_order() {
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
    fn a_whole_message_that_need_not_be_in_order_overtakes() {
        let mut bed = Bed::new();
        bed.put(0, 1, First, false);
        bed.put(3, 2, Last, false);
        bed.put(4, 3, Solo, true);
        bed.put(5, 4, Solo, false);
        assert_eq!(bed.take(), Some((4, vec![5])), "3 wants to be in order");
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
        assert_eq!(whole.lost_before, 0, "what was read before its turn was not lost");
    }

    #[test]
    fn of_a_message_that_was_given_up_nothing_is_delivered() {
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
    fn nonsense_in_the_headers_stops_nothing() {
        let mut bed = Bed::new();
        // A start without an end, an end without a start, one number for two messages.
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
        /// Messages of any sizes in any order of arrival: each comes once and whole, and those that
        /// are to be in order are.
        #[test]
        fn every_message_comes_once_and_whole(
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
