//! Messages that go to a balancing group before they are due.

use std::mem;

use bytes::Bytes;
use punctual_units::Instant;
use punctual_wire::SeqNo;

use super::buffer::Stored;
use super::timing::Timing;
use super::tsbpd::PeerTime;
use crate::event::Message;

/// The messages that a link received for a balancing group.
///
/// A message that another link has lost arrives late, after younger messages, and is due before
/// them. So the group gets each message at once. The receive buffer keeps an empty message in its
/// place, due no sooner than those before it, and continues to send NAKs for missing packets and to
/// drop them.
#[derive(Debug, Default)]
pub(super) struct GroupBypass {
    messages: Vec<Message>,
    newest: PeerTime,
}

impl GroupBypass {
    /// Takes the message out of a packet that will be stored; `None` if messages have no due times.
    pub(super) fn divert(
        &mut self,
        now: Instant,
        seq: SeqNo,
        stored: &mut Stored,
        timing: &Timing,
    ) -> Option<Message> {
        timing.tsbpd()?;
        let time = stored.time;
        self.newest = self.newest.max(time);
        stored.time = self.newest;
        let (origin, due) = timing.origin_and_due(now, time);
        Some(Message {
            payload: mem::replace(&mut stored.payload, Bytes::new()),
            origin,
            due,
            seq,
            msgno: stored.place.msgno(),
            lost_before: 0,
        })
    }

    /// Keeps a diverted message for the group.
    pub(super) fn keep(&mut self, message: Message) {
        self.messages.push(message);
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// The messages since the last call.
    pub(super) fn take(&mut self) -> Vec<Message> {
        mem::take(&mut self.messages)
    }
}

#[cfg(test)]
mod tests {
    use punctual_wire::{MsgNo, Timestamp};
    use std::time::Duration;

    use super::super::buffer::MessagePart;
    use super::super::tsbpd::Tsbpd;
    use super::*;

    #[test]
    fn an_overtaken_message_keeps_its_time_and_its_place_gets_the_newest() {
        let at = Instant::from_millis;
        let tsbpd = Tsbpd::new(at(0), Timestamp::from_micros(0));
        let timing = Timing::of(tsbpd, Duration::from_millis(120));
        let mut bypass = GroupBypass::default();
        for (seq, millis, due) in [(2, 20, 140), (1, 10, 130)] {
            let time = tsbpd.peer_time(at(30), Timestamp::from_micros(millis * 1_000));
            let payload = Bytes::from_static(b"payload");
            let mut stored = Stored { payload, time, place: MessagePart::of_live(MsgNo::FIRST) };
            let message = bypass.divert(at(30), SeqNo::new(seq), &mut stored, &timing).unwrap();
            assert_eq!((message.due, message.payload.len()), (at(due), 7));
            assert_eq!((timing.due(stored.time), stored.payload.len()), (Some(at(140)), 0));
            bypass.keep(message);
        }
        let taken: Vec<_> = bypass.take().iter().map(|message| message.seq).collect();
        assert_eq!(taken, [SeqNo::new(2), SeqNo::new(1)]);
        assert!(bypass.is_empty());
    }
}
