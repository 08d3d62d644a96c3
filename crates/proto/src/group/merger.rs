use std::collections::BTreeMap;

use punctual_units::Instant;
use punctual_wire::{MsgNo, SeqNo};

use super::message_distance;
use crate::event::Message;

/// Merges the messages of all links into one stream: each message once, in order.
///
/// All links share a time base, so that a message is due at the same time on every link that has
/// it. When all messages that are due have been handed in, a number without a message is lost.
#[derive(Debug, Default)]
pub(super) struct Merger {
    next: Option<LinkPlace>,
    /// The position of `next` in the stream, which does not wrap.
    place: i64,
    waiting: BTreeMap<i64, Message>,
    counts: Received,
}

/// The number that determines the position of a message in the stream.
#[derive(Clone, Copy, Debug)]
enum LinkPlace {
    /// A sequence number, which all links share.
    Packet(SeqNo),
    /// A message number, where each link has its own sequence numbers.
    Message(MsgNo),
}

impl LinkPlace {
    /// The distance from this place to the message; negative if the message is before it.
    fn ahead(self, message: &Message) -> i64 {
        match self {
            Self::Packet(next) => message.seq.distance_from(next).into(),
            Self::Message(next) => message_distance(message.msgno, next),
        }
    }

    /// The place after that of the message.
    const fn after(self, message: &Message) -> Self {
        match self {
            Self::Packet(_) => Self::Packet(message.seq.next()),
            Self::Message(_) => Self::Message(message.msgno.next()),
        }
    }
}

/// Counts of received messages.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Received {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// Messages that no link delivered.
    pub(super) lost: u64,
    /// Messages that another link had already delivered, or that came too late.
    pub(super) copies: u64,
}

impl Merger {
    /// Sets the first sequence number of the stream.
    pub(super) const fn start_at(&mut self, seq: SeqNo) {
        self.next = Some(LinkPlace::Packet(seq));
    }

    /// Sets the first message number of a stream whose links have their own sequence numbers.
    pub(super) const fn start_at_message(&mut self, msgno: MsgNo) {
        self.next = Some(LinkPlace::Message(msgno));
    }

    /// The next sequence number to be delivered; `None` before the stream begins, and where links
    /// have their own sequence numbers.
    pub(super) const fn next(&self) -> Option<SeqNo> {
        match self.next {
            Some(LinkPlace::Packet(seq)) => Some(seq),
            _ => None,
        }
    }

    /// When the first message that is held is due; `None` if none is held.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|(_, message)| message.due)
    }

    pub(super) const fn counts(&self) -> &Received {
        &self.counts
    }

    /// Takes in a message of a link. Returns `false` if it is a copy or too late.
    pub(super) fn insert(&mut self, message: Message) -> bool {
        let next = *self.next.get_or_insert(LinkPlace::Packet(message.seq));
        let place = self.place + next.ahead(&message);
        if place < self.place || self.waiting.contains_key(&place) {
            self.counts.copies += 1;
            return false;
        }
        self.waiting.insert(place, message);
        true
    }

    /// The next message, if it is due at `now`.
    pub(super) fn take(&mut self, now: Instant) -> Option<Message> {
        let entry = self.waiting.first_entry().filter(|entry| entry.get().due <= now)?;
        let (place, mut message) = entry.remove_entry();
        let lost = u32::try_from(place - self.place).unwrap_or(u32::MAX);
        message.lost_before = lost;
        self.place = place + 1;
        self.next = self.next.map(|next| next.after(&message));
        self.counts.packets += 1;
        self.counts.bytes += message.payload.len() as u64;
        self.counts.lost += u64::from(lost);
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::*;
    use bytes::Bytes;
    use proptest::prelude::*;

    fn message(seq: SeqNo, at: u64) -> Message {
        let due = Instant::from_millis(at);
        Message {
            payload: Bytes::copy_from_slice(&seq.value().to_be_bytes()),
            origin: due - Duration::from_millis(5),
            due,
            seq,
            msgno: MsgNo::FIRST,
            lost_before: 7,
        }
    }

    proptest! {
        /// The stream is the union of the links' messages, each once and in order, and a number
        /// that no link has is lost; for any messages and any times of handing in.
        #[test]
        fn the_stream_is_the_union_of_the_links(
            isn in 0u32..=0x7FFF_FFFF,
            links in prop::collection::vec(prop::collection::vec(any::<bool>(), 60), 1..4),
            stops in prop::collection::btree_set(0u64..60, 0..20),
        ) {
            let isn = SeqNo::new(isn);
            let mut merger = Merger::default();
            merger.start_at(isn);
            let mut heads = vec![0u64; links.len()];
            let mut delivered = Vec::new();
            let mut lost = 0;
            for now in stops.into_iter().chain([60]) {
                for (link, head) in links.iter().zip(&mut heads) {
                    for at in (*head..=now).take_while(|&at| at < 60) {
                        if link[usize::try_from(at).unwrap()] {
                            merger.insert(message(isn.plus(u32::try_from(at).unwrap()), at));
                        }
                    }
                    *head = now + 1;
                }
                while let Some(message) = merger.take(Instant::from_millis(now)) {
                    delivered.push(message.seq.distance_from(isn));
                    lost += message.lost_before;
                }
            }
            let union: BTreeSet<i32> = (0..60i32)
                .filter(|&at| links.iter().any(|link| link[usize::try_from(at).unwrap()]))
                .collect();
            let end = union.last().map_or(0, |last| last + 1);
            prop_assert_eq!(&delivered, &union.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(lost, u32::try_from(end).unwrap() - u32::try_from(union.len()).unwrap());
            let copies: usize = links.iter().map(|l| l.iter().filter(|&&b| b).count()).sum();
            prop_assert_eq!(merger.counts().copies, (copies - union.len()) as u64);
            prop_assert_eq!(merger.counts().packets, union.len() as u64);
        }
    }

    #[test]
    fn a_message_is_not_delivered_before_it_is_due() {
        let mut merger = Merger::default();
        merger.start_at(SeqNo::new(5));
        merger.insert(message(SeqNo::new(6), 20));
        assert_eq!(merger.take(Instant::from_millis(19)), None);
        merger.insert(message(SeqNo::new(5), 10));
        let seqs: Vec<u32> = std::iter::from_fn(|| merger.take(Instant::from_millis(20)))
            .map(|message| message.seq.value())
            .collect();
        assert_eq!(seqs, [5, 6]);
    }

    #[test]
    fn messages_of_balancing_links_are_ordered_by_message_numbers() {
        let mut merger = Merger::default();
        merger.start_at_message(MsgNo::MAX);
        let with = |msgno, seq, at| Message { msgno, ..message(SeqNo::new(seq), at) };
        let numbers = [MsgNo::MAX, MsgNo::FIRST, MsgNo::new(2), MsgNo::new(4)];
        assert!(merger.insert(with(numbers[3], 7, 40)));
        assert!(merger.insert(with(numbers[1], 900, 20)));
        assert!(merger.insert(with(numbers[0], 8, 10)));
        assert!(!merger.insert(with(numbers[1], 9, 20)), "another link has delivered it");
        assert!(merger.insert(with(numbers[2], 901, 30)));
        assert_eq!(merger.next_due(), Some(Instant::from_millis(10)));
        let taken: Vec<_> = std::iter::from_fn(|| merger.take(Instant::from_millis(50)))
            .map(|message| (message.msgno, message.lost_before))
            .collect();
        assert_eq!(taken, [(numbers[0], 0), (numbers[1], 0), (numbers[2], 0), (numbers[3], 1)]);
    }
}
