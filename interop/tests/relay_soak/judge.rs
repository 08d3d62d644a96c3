//! The judgement on what a viewer got.

use std::collections::BTreeSet;
use std::ops::AddAssign;

use punctual::Message;
use punctual_mpegts::Checker;

use crate::source::{MAP_PID, video_pid};

/// Judges the stream of one viewer.
pub(crate) struct Judge {
    /// Checks what came since the latest message that was lost on the viewer's own link.
    checker: Checker,
    pids: BTreeSet<u16>,
    got: Got,
}

/// The messages that viewers got, and their faults.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Got {
    pub(crate) messages: u64,
    /// Messages that were lost on the way from the relay and not repaired in time.
    pub(crate) lost: u64,
    /// Jumps of a counter that nothing announced and no lost message explains.
    pub(crate) continuity_errors: u64,
    /// The same of the clock.
    pub(crate) clock_errors: u64,
    /// Bytes outside packets, and packets of another stream.
    pub(crate) foreign: u64,
}

impl Judge {
    /// Judges a viewer of the stream of this number.
    pub(crate) fn new(number: u16) -> Self {
        let pids = BTreeSet::from([0, MAP_PID, video_pid(number)]);
        Self { checker: Checker::default(), pids, got: Got::default() }
    }

    /// Takes in the next message. Behind a lost one any counter and any clock is right.
    pub(crate) fn push(&mut self, message: &Message) {
        if message.lost_before > 0 {
            self.close_part();
            self.got.lost += u64::from(message.lost_before);
        }
        self.got.messages += 1;
        self.checker.push(&message.payload);
    }

    /// The messages until now.
    pub(crate) fn finish(mut self) -> Got {
        self.close_part();
        self.got
    }

    fn close_part(&mut self) {
        let mut part = std::mem::take(&mut self.checker);
        part.finish();
        let report = part.report();
        let total = report.total();
        self.got.continuity_errors += total.continuity_errors;
        self.got.clock_errors += total.pcr_discontinuities;
        let others = report.pids.iter().filter(|(pid, _)| !self.pids.contains(pid));
        self.got.foreign += report.skipped_bytes + others.map(|(_, it)| it.packets).sum::<u64>();
    }
}

impl AddAssign for Got {
    fn add_assign(&mut self, more: Self) {
        self.messages += more.messages;
        self.lost += more.lost;
        self.continuity_errors += more.continuity_errors;
        self.clock_errors += more.clock_errors;
        self.foreign += more.foreign;
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use punctual::{Instant, MsgNo, SeqNo};

    use super::*;
    use crate::source::TestStream;

    fn message(payload: Bytes, lost_before: u32) -> Message {
        let at = Instant::ORIGIN;
        let (seq, msgno) = (SeqNo::new(0), MsgNo::FIRST);
        Message { payload, origin: at, due: at, seq, msgno, lost_before }
    }

    fn judge(number: u16, messages: impl IntoIterator<Item = (Bytes, u32)>) -> Got {
        let mut judge = Judge::new(number);
        messages.into_iter().for_each(|(payload, lost)| judge.push(&message(payload, lost)));
        judge.finish()
    }

    #[test]
    fn a_gap_is_an_error_unless_the_link_lost_the_messages() {
        let mut stream = TestStream::new(3, 25);
        let sent: Vec<_> = (0..50).map(|_| stream.next_message()).collect();
        let whole = sent.iter().map(|it| (it.clone(), 0));
        assert_eq!(judge(3, whole.clone()), Got { messages: 50, ..Got::default() });
        let hidden = whole.clone().enumerate().filter(|(at, _)| *at != 20).map(|it| it.1);
        assert_eq!(judge(3, hidden).continuity_errors, 1);
        let told = sent.iter().enumerate().filter(|(at, _)| *at != 20);
        let told = told.map(|(at, it)| (it.clone(), u32::from(at == 21)));
        assert_eq!(judge(3, told), Got { messages: 49, lost: 1, ..Got::default() });
    }

    #[test]
    fn packets_of_another_stream_are_foreign() {
        let mut stream = TestStream::new(4, 25);
        let got = judge(3, [(stream.next_message(), 0), (stream.next_message(), 0)]);
        assert_eq!(got.foreign, 5 + 7);
    }
}
