use std::collections::VecDeque;
use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::{DropRequest, MsgNo, SeqNo};

/// The largest number of messages that wait to be sent; for further ones the peer's next NAK is
/// answered.
const WAITING: usize = 32;

/// The announcements of dropped packets to the peer (DROPREQ), with a limit for repeated NAKs.
#[derive(Debug, Default)]
pub(crate) struct DropRequests {
    waiting: VecDeque<DropRequest>,
    /// The last number of the newest announcement, and its instant.
    announced: Option<(SeqNo, Instant)>,
}

impl DropRequests {
    /// A NAK arrived for dropped packets. They are announced once within `rtt`.
    pub(crate) fn asked(&mut self, now: Instant, first: SeqNo, last: SeqNo, rtt: Duration) {
        if let Some((up_to, at)) = self.announced
            && !last.is_after(up_to)
            && now < at + rtt
        {
            return;
        }
        self.announced = Some((last, now));
        self.push(DropRequest { msgno: MsgNo::CONTROL, first, last });
    }

    /// A message was dropped after its time to live.
    pub(crate) fn push(&mut self, request: DropRequest) {
        if self.waiting.len() < WAITING && !self.waiting.contains(&request) {
            self.waiting.push_back(request);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<DropRequest> {
        self.waiting.pop_front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_question_within_a_round_trip_gets_one_answer() {
        let mut drops = DropRequests::default();
        let rtt = Duration::from_millis(20);
        for ms in [0, 5, 19, 20, 21] {
            drops.asked(Instant::from_millis(ms), SeqNo::new(1), SeqNo::new(4), rtt);
            if ms < 20 {
                assert!(drops.pop().is_none() == (ms > 0), "at {ms} ms");
            }
        }
        assert!(drops.pop().is_some());
        assert!(drops.pop().is_none());
    }
}
