//! Losses that a link of a balancing group returns to the group.

use punctual_wire::{DropRequest, MsgNo, SeqNo};

use super::buffer::SendBuffer;
use super::drop_request::DropRequests;

/// The packets that the peer reported lost and that the group retransmits over its best link. Only
/// a link of a balancing group has any.
#[derive(Debug, Default)]
pub(super) struct ReturnedLosses {
    is_on: bool,
    packets: Vec<SeqNo>,
}

impl ReturnedLosses {
    /// Returns losses to the group from now on.
    pub(super) const fn turn_on(&mut self) {
        self.is_on = true;
    }

    /// Takes the loss list if losses are returned to the group, and announces to the peer that this
    /// link does not retransmit them.
    pub(super) fn take_from(&mut self, buffer: &mut SendBuffer, drops: &mut DropRequests) {
        if !self.is_on {
            return;
        }
        let mut drop = |(first, last)| {
            drops.push(DropRequest { msgno: MsgNo::CONTROL, first, last });
        };
        let mut run: Option<(SeqNo, SeqNo)> = None;
        while let Some(seq) = buffer.give_back_lost() {
            self.packets.push(seq);
            run = match run {
                Some((first, last)) if last.next() == seq => Some((first, seq)),
                Some(whole) => {
                    drop(whole);
                    Some((seq, seq))
                }
                None => Some((seq, seq)),
            };
        }
        run.into_iter().for_each(drop);
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// The packets that were reported lost since the last call.
    pub(super) fn take(&mut self) -> Vec<SeqNo> {
        std::mem::take(&mut self.packets)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use punctual_units::Instant;

    use super::*;

    #[test]
    fn losses_go_back_to_the_group_and_the_peer_hears_of_each_run() {
        let mut buffer = SendBuffer::new(SeqNo::new(10), 50);
        for _ in 0..9 {
            buffer.push(Bytes::from_static(b"payload"), Instant::ORIGIN, None, true);
            buffer.take_new();
        }
        let (mut returned, mut drops) = (ReturnedLosses::default(), DropRequests::default());
        for (first, last) in [(11, 12), (15, 15)] {
            buffer.report_lost(SeqNo::new(first), SeqNo::new(last), |_, _| {});
        }
        returned.take_from(&mut buffer, &mut drops);
        assert!(returned.is_empty() && drops.is_empty(), "no group takes them");
        returned.turn_on();
        returned.take_from(&mut buffer, &mut drops);
        assert_eq!(returned.take(), [11, 12, 15].map(SeqNo::new));
        assert!(returned.is_empty() && !buffer.has_lost());
        let runs: Vec<_> = std::iter::from_fn(|| drops.pop()).collect();
        assert_eq!(runs.len(), 2);
        assert_eq!((runs[0].first, runs[0].last), (SeqNo::new(11), SeqNo::new(12)));
        assert_eq!((runs[1].first, runs[1].last), (SeqNo::new(15), SeqNo::new(15)));
    }
}
