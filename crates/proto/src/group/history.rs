use std::collections::VecDeque;
use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::SeqNo;

use super::GroupMessage;

/// The messages that no link has acknowledged yet. A link that takes over sends them.
#[derive(Debug, Default)]
pub(super) struct History {
    messages: VecDeque<GroupMessage>,
}

impl History {
    pub(super) fn push(&mut self, message: GroupMessage) {
        self.messages.push_back(message);
    }

    /// The message with this number, if it is still kept.
    pub(super) fn get(&self, seq: SeqNo) -> Option<&GroupMessage> {
        let steps = seq.distance_from(self.messages.front()?.seq);
        self.messages.get(usize::try_from(steps).ok()?)
    }

    /// The oldest number; `None` if there is no message.
    pub(super) fn first(&self) -> Option<SeqNo> {
        self.messages.front().map(|message| message.seq)
    }

    /// Drops the messages before `seq`.
    pub(super) fn acknowledge(&mut self, seq: SeqNo) {
        while self.messages.front().is_some_and(|message| message.seq.is_before(seq)) {
            self.messages.pop_front();
        }
    }

    /// Drops the messages with an origin time before `limit`, which the peer could not deliver in
    /// time.
    pub(super) fn drop_before(&mut self, limit: Instant) {
        while self.messages.front().is_some_and(|message| message.origin < limit) {
            self.messages.pop_front();
        }
    }

    /// The mean time between messages; `None` for fewer than two.
    pub(super) fn interval(&self) -> Option<Duration> {
        let (first, last) = (self.messages.front()?, self.messages.back()?);
        let steps = u32::try_from(self.messages.len() - 1).ok().filter(|&steps| steps > 0)?;
        Some(last.origin.saturating_since(first.origin) / steps)
    }
}
