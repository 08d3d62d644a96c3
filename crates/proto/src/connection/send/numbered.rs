//! Sending with the numbers of a group.

use punctual_units::Instant;
use punctual_wire::{DropRequest, MsgNo, SeqNo};

use super::SendHalf;
use crate::group::GroupMessage;

impl SendHalf {
    /// Takes a message with the numbers that its group gave it; `false` if there is no room. The
    /// peer is told of the numbers that are left out: it gets them by other links.
    pub(crate) fn submit_numbered(&mut self, now: Instant, message: GroupMessage) -> bool {
        self.drop_late(now);
        if self.buffer.is_full() {
            return false;
        }
        let Ok(left_out) = self.buffer.renumber(message.seq, message.msgno) else { return false };
        if let Some((first, last)) = left_out {
            self.drop_requests.push(DropRequest { msgno: MsgNo::CONTROL, first, last });
        }
        if self.buffer.is_empty() {
            self.acknowledged = message.seq;
            self.busy_since = Some(now);
            self.last_progress = now;
        }
        self.control.submitted(now, message.payload.len());
        let GroupMessage { payload, origin, expires, in_order, .. } = message;
        self.buffer.push(payload, origin, expires, in_order);
        true
    }

    /// From now on what is reported lost goes back to the group, which sends it by the best link.
    pub(crate) fn return_losses(&mut self) {
        self.returned = Some(Vec::new());
    }

    /// Gives up what is in the loss list, tells the peer so, and keeps its numbers for the group.
    pub(super) fn return_lost(&mut self, now: Instant) {
        let mut run: Option<(SeqNo, SeqNo)> = None;
        while let Some(seq) = self.buffer.give_back_lost() {
            self.returned.get_or_insert_default().push(seq);
            run = match run {
                Some((first, last)) if last.next() == seq => Some((first, seq)),
                Some((first, last)) => {
                    self.drop_requests.push(DropRequest { msgno: MsgNo::CONTROL, first, last });
                    Some((seq, seq))
                }
                None => Some((seq, seq)),
            };
        }
        if let Some((first, last)) = run {
            self.drop_requests.push(DropRequest { msgno: MsgNo::CONTROL, first, last });
        }
        self.note_idle(now);
    }

    /// Whether something waits for the group.
    pub(crate) fn has_returned(&self) -> bool {
        self.returned.as_ref().is_some_and(|returned| !returned.is_empty())
    }

    /// What was reported lost since this was last asked.
    pub(crate) fn take_returned(&mut self) -> Vec<SeqNo> {
        self.returned.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Somebody waits for room; [`becomes_writable`](Self::becomes_writable) tells when there is.
    pub(crate) const fn await_room(&mut self) {
        if self.refused == 0 {
            self.refused = 1;
        }
    }

    /// Forgets everything that waits to be sent or acknowledged: other links carry it.
    pub(crate) fn forget_all(&mut self, now: Instant) {
        self.buffer.acknowledge(self.buffer.end());
        self.note_idle(now);
    }

    /// All numbers before this one have been acknowledged.
    pub(crate) const fn acknowledged(&self) -> SeqNo {
        self.acknowledged
    }

    /// When the peer last answered to data.
    pub(crate) const fn last_response(&self) -> Instant {
        self.last_response
    }

    /// Since when there is something to acknowledge without a pause.
    pub(crate) const fn waiting_since(&self) -> Option<Instant> {
        self.busy_since
    }

    /// How many more messages the buffer takes.
    pub(crate) const fn room(&self) -> usize {
        self.buffer.limit().saturating_sub(self.buffer.packets())
    }
}
