//! The missing packets and their deadlines.

use punctual_rtt::Rtt;
use punctual_units::Instant;
use punctual_wire::{LossListBuilder, SeqNo};

use super::buffer::{ReceiveBuffer, Stored};
use super::timing::Timing;

/// The missing packets and their deadlines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Missing<'a> {
    buffer: &'a ReceiveBuffer,
    timing: &'a Timing,
}

impl<'a> Missing<'a> {
    /// The packets that are missing in this buffer.
    pub(super) const fn new(buffer: &'a ReceiveBuffer, timing: &'a Timing) -> Self {
        Self { buffer, timing }
    }
}

impl Missing<'_> {
    /// Whether there are none.
    #[inline(always)]
    pub(super) const fn is_empty(self) -> bool {
        self.buffer.missing().is_empty()
    }

    /// Whether a packet is stored that has missing ones before it.
    #[inline]
    pub(super) fn are_passed(self) -> bool {
        self.buffer.first_behind_gap().is_some()
    }

    /// The first packet that has missing ones before it, and the instant at which these are
    /// dropped: it is due then.
    pub(super) fn next_skip(self) -> Option<(SeqNo, Instant)> {
        let (seq, stored) = self.buffer.first_behind_gap()?;
        Some((seq, self.timing.give_up_at(stored.time)?))
    }

    /// Whether packet `seq` was passed although it is not due yet: the packets that passed it were
    /// forged.
    pub(super) fn shows_forgery(self, now: Instant, seq: SeqNo, stored: &Stored) -> bool {
        self.buffer.has_passed(seq) && self.timing.shows_forgery(now, stored.time)
    }

    /// The first run of missing packets between `from` and `to`.
    pub(super) fn first_run(self, from: SeqNo, to: SeqNo) -> Option<(SeqNo, SeqNo)> {
        let head = self.buffer.head();
        let from = if from.is_before(head) { head } else { from };
        let (first, last) = self.buffer.missing().ranges_from(from).next()?;
        let within = !first.is_after(to) && !first.is_before(from);
        within.then(|| (first, if last.is_after(to) { to } else { last }))
    }

    /// The deadline of the packets missing up to `last`: the packet after them is due then, or at
    /// its playout point.
    pub(super) fn needed_by(self, last: SeqNo) -> Option<Instant> {
        self.timing.needed_by(self.buffer.get(last.next())?.time)
    }

    /// Whether the retransmission of `last` would arrive before its deadline.
    pub(super) fn can_be_in_time(self, now: Instant, last: SeqNo, rtt: Rtt) -> bool {
        self.needed_by(last).is_none_or(|until| now + rtt.smoothed * 7 / 8 < until)
    }

    /// Whether the retransmission of `last` is still of use: the receiver waits for it, or it would
    /// arrive in time.
    pub(super) fn is_wanted(self, now: Instant, last: SeqNo, rtt: Rtt) -> bool {
        !self.timing.drops_too_late() || self.can_be_in_time(now, last, rtt)
    }

    /// Adds all missing packets before `stop` to `list`, as far as there is room.
    pub(super) fn list_all(self, stop: Option<SeqNo>, list: &mut LossListBuilder) {
        for (first, last) in self.buffer.missing().ranges_from(self.buffer.head()) {
            if stop.is_some_and(|stop| !first.is_before(stop)) || !list.push(first, last) {
                break;
            }
        }
    }

    /// Adds the packets still missing from `first` to `last` to `list`, as far as there is room.
    pub(super) fn list(self, first: SeqNo, last: SeqNo, list: &mut LossListBuilder) {
        let first = if first.is_before(self.buffer.head()) { self.buffer.head() } else { first };
        for (start, end) in self.buffer.missing().ranges_from(first) {
            if start.is_after(last) || start.is_before(first) {
                return;
            }
            let end = if end.is_after(last) { last } else { end };
            if !list.push(start, end) {
                return;
            }
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

    const MS: fn(u64) -> Instant = Instant::from_millis;
    const SEQ: fn(u32) -> SeqNo = SeqNo::new;

    #[test]
    fn missing_packets_are_given_up_when_the_one_behind_is_due() {
        let mut buffer = ReceiveBuffer::new(SEQ(1_000), 100);
        let tsbpd = Tsbpd::new(MS(0), Timestamp::from_micros(0));
        for seq in [1_000, 1_004] {
            let time = tsbpd.peer_time(MS(100), Timestamp::from_micros(100_000));
            let place = MessagePart::of_live(MsgNo::FIRST);
            buffer.insert(SEQ(seq), Stored { payload: Bytes::new(), time, place });
        }
        let timing = Timing::of(tsbpd, Duration::from_millis(120));
        let missing = Missing::new(&buffer, &timing);
        let rtt = Rtt { smoothed: Duration::from_millis(40), variance: Duration::ZERO };
        assert!(!missing.is_empty() && missing.are_passed());
        assert_eq!(missing.next_skip(), Some((SEQ(1_004), MS(220))));
        assert_eq!(missing.needed_by(SEQ(1_003)), Some(MS(220)));
        assert!(missing.can_be_in_time(MS(184), SEQ(1_003), rtt));
        assert!(!missing.can_be_in_time(MS(185), SEQ(1_003), rtt));
        let run = missing.first_run(SEQ(1_000), SEQ(1_002));
        assert_eq!(run, Some((SEQ(1_001), SEQ(1_002))));
    }
}
