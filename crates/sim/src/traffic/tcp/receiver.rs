use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use punctual_units::Instant;

use super::Packet;
use super::progress::FlowProgress;

/// The receiver of a TCP flow.
#[derive(Debug)]
pub(super) struct Receiver {
    delays_answers: bool,
    arrivals: ArrivalLog,
    /// The next segment in order, and segments that arrived beyond a gap.
    next: u32,
    beyond: BTreeSet<u32>,
    /// Packets that were not answered.
    unanswered: u32,
    answer_at: Option<Instant>,
    progress: FlowProgress,
}

/// The packets that arrived, in order of arrival. The sender knows the first of them.
#[derive(Debug, Default)]
struct ArrivalLog {
    unknown: VecDeque<Packet>,
    known: u64,
}

impl Receiver {
    /// A receiver that answers each packet, or delays answers; segments have `payload` bytes.
    pub(super) fn new(delays_answers: bool, payload: u64, total: Option<u64>) -> Self {
        Self {
            delays_answers,
            arrivals: ArrivalLog::default(),
            next: 0,
            beyond: BTreeSet::new(),
            unanswered: 0,
            answer_at: None,
            progress: FlowProgress::new(payload, total),
        }
    }

    pub(super) fn handle_packet(&mut self, now: Instant, packet: Packet) {
        self.arrivals.add(packet);
        let before = self.next;
        if packet.segment >= self.next {
            self.beyond.insert(packet.segment);
        }
        while self.beyond.remove(&self.next) {
            self.next += 1;
        }
        if self.next > before {
            self.progress.advance(now, self.next);
        }
        self.unanswered += 1;
        // A packet out of order, one that fills a gap, and a copy are answered at once.
        let is_simple = self.next == before + 1 && self.beyond.is_empty();
        let is_due = !self.delays_answers || !is_simple || self.unanswered >= ANSWERED_TOGETHER;
        let at = if is_due { now } else { now + ANSWER_DELAY };
        self.answer_at = Some(self.answer_at.map_or(at, |before| before.min(at)));
    }

    /// The number of an answer that is due: that of all packets so far.
    pub(super) fn poll_answer(&mut self, now: Instant) -> Option<u64> {
        self.answer_at.take_if(|at| *at <= now)?;
        self.unanswered = 0;
        Some(self.arrivals.count())
    }

    /// When an answer is due.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.answer_at
    }

    /// The next packet that this answer tells the sender of, and whether it is the last one.
    pub(super) fn learn(&mut self, answer: u64) -> Option<(Packet, bool)> {
        self.arrivals.learn(answer)
    }

    pub(super) fn progress(&self) -> &FlowProgress {
        &self.progress
    }
}

impl ArrivalLog {
    fn add(&mut self, packet: Packet) {
        self.unknown.push_back(packet);
    }

    fn count(&self) -> u64 {
        self.known + self.unknown.len() as u64
    }

    fn learn(&mut self, answer: u64) -> Option<(Packet, bool)> {
        if self.known >= answer {
            return None;
        }
        let packet = self.unknown.pop_front()?;
        self.known += 1;
        Some((packet, self.known == answer))
    }
}

/// Full segments that one answer may cover (RFC 5681 section 4.2).
const ANSWERED_TOGETHER: u32 = 2;
/// As in Linux, `TCP_DELACK_MIN`.
const ANSWER_DELAY: Duration = Duration::from_millis(40);

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> Instant = Instant::from_millis;

    fn packet(number: u32) -> Packet {
        Packet { transmission: number, segment: number }
    }

    #[test]
    fn an_answer_tells_of_all_arrivals_before_it() {
        let mut arrivals = ArrivalLog::default();
        let answers = [7, 9, 8].map(|number| {
            arrivals.add(packet(number));
            arrivals.count()
        });
        assert_eq!(answers, [1, 2, 3]);
        assert_eq!(arrivals.learn(2), Some((packet(7), false)));
        assert_eq!(arrivals.learn(2), Some((packet(9), true)));
        assert_eq!(arrivals.learn(2), None);
        assert_eq!(arrivals.learn(1), None, "an older answer");
        arrivals.add(packet(10));
        assert_eq!((arrivals.count(), arrivals.learn(3)), (4, Some((packet(8), true))));
    }

    #[test]
    fn every_second_packet_in_order_is_answered_and_a_lone_one_after_40_ms() {
        let mut receiver = Receiver::new(true, 1_000, None);
        receiver.handle_packet(AT(0), packet(0));
        assert_eq!((receiver.poll_answer(AT(0)), receiver.poll_timeout()), (None, Some(AT(40))));
        receiver.handle_packet(AT(1), packet(1));
        assert_eq!((receiver.poll_answer(AT(1)), receiver.poll_timeout()), (Some(2), None));
        receiver.handle_packet(AT(2), packet(2));
        assert_eq!(receiver.poll_answer(AT(41)), None);
        assert_eq!(receiver.poll_answer(AT(42)), Some(3));
    }

    #[test]
    fn packets_out_of_order_and_those_that_fill_a_gap_are_answered_at_once() {
        let mut receiver = Receiver::new(true, 1_000, None);
        let answers = [0, 2, 3, 1, 1].map(|number| {
            receiver.handle_packet(AT(0), packet(number));
            receiver.poll_answer(AT(0))
        });
        assert_eq!(answers, [None, Some(2), Some(3), Some(4), Some(5)]);
        assert_eq!(receiver.progress().bytes(), 4_000);
    }
}
