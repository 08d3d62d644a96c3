//! Handing messages to a group before they are due.

use std::mem;

use bytes::Bytes;
use punctual_wire::SeqNo;

use super::ReceiveHalf;
use super::buffer::Stored;
use super::tsbpd::{PeerTime, Tsbpd};
use crate::event::Message;

/// What came in for a group that balances its links.
///
/// A message that another link did not deliver comes late among younger ones, and is due before
/// them. So the group has to have it at once: what the receive buffer keeps in its place is empty,
/// and due no sooner than what came before it. The buffer goes on asking for what is missing, and
/// giving it up, as it does.
#[derive(Debug, Default)]
pub(super) struct Early {
    messages: Vec<Message>,
    newest: PeerTime,
}

impl Early {
    /// Takes the message out of what is to be stored.
    pub(super) fn divert(&mut self, seq: SeqNo, stored: &mut Stored, tsbpd: &Tsbpd) -> Message {
        let time = stored.time;
        self.newest = self.newest.max(time);
        stored.time = self.newest;
        Message {
            payload: mem::replace(&mut stored.payload, Bytes::new()),
            origin: tsbpd.origin(time),
            due: tsbpd.due(time),
            seq,
            msgno: stored.place.msgno(),
            lost_before: 0,
        }
    }
}

impl ReceiveHalf {
    /// From now on a group takes what comes in, due or not.
    pub(crate) fn hand_over_early(&mut self) {
        self.early = Some(Box::default());
    }

    /// Whether something waits for the group.
    #[inline]
    pub(crate) fn has_early(&self) -> bool {
        self.early.as_ref().is_some_and(|early| !early.messages.is_empty())
    }

    /// What waits for the group.
    pub(crate) fn take_early(&mut self) -> Vec<Message> {
        self.early.as_mut().map(|early| mem::take(&mut early.messages)).unwrap_or_default()
    }

    pub(super) fn keep_early(&mut self, message: Message) {
        if let Some(early) = &mut self.early {
            early.messages.push(message);
        }
    }
}
