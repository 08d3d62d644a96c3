//! Requests by clocks of their own: each missing packet is asked for again when the answer is
//! overdue, neither before it can have come nor long after.

use std::collections::VecDeque;
use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::{LossListBuilder, SeqNo};

use super::ReceiveHalf;
use super::response::ResponseTime;
use crate::connection::rtt::Rtt;
use crate::handshake::RequestStyle;
use crate::statistics::Statistics;

/// Least time beyond a round trip before an answer counts as overdue: what hosts may be late.
pub(super) const LEAST_MARGIN: Duration = Duration::from_millis(1);
/// Bounds of the time between a request and its copy, which is a sixteenth of the round trip.
const LEAST_APART: Duration = Duration::from_micros(500);
const MOST_APART: Duration = Duration::from_millis(5);
/// Requests and copies of reports that wait at most.
const WAITING: usize = 65_536;
const COPIES: usize = 256;
/// Among so many of the oldest requests the one is looked for that a packet answers.
const SEARCHED: usize = 64;
/// Rounds that are told apart in the statistics; the last stands for all further ones.
const ROUNDS: usize = 4;

/// What was asked for and has not come.
#[derive(Debug)]
pub(crate) struct Requests {
    /// Whether each report is sent more than once.
    copied: bool,
    /// In the order in which they were asked for, and so in that in which they are overdue.
    asked: VecDeque<Asked>,
    /// Copies of reports that are still to be sent, the next one first.
    copies: VecDeque<Copy>,
    response: ResponseTime,
    /// When the newest request was made that has been answered: earlier ones should have been.
    answered: Instant,
    /// When the last answer came: many of them come one behind the other.
    last_answer: Instant,
    /// Packets asked for again.
    repeated: u64,
    /// Packets that came when they had been asked for once, twice, and so on.
    recovered: [u64; ROUNDS],
}

#[derive(Clone, Debug)]
struct Asked {
    first: SeqNo,
    last: SeqNo,
    at: Instant,
    /// When they were asked for before that.
    before: Option<Instant>,
    /// When they are given up; `None` for never.
    until: Option<Instant>,
    /// How often these packets have been asked for.
    round: usize,
}

#[derive(Debug)]
struct Copy {
    due: Instant,
    made: Instant,
    list: LossListBuilder,
}

/// The time between a request and its copy.
fn apart(rtt: Rtt) -> Duration {
    (rtt.smoothed / 16).clamp(LEAST_APART, MOST_APART)
}

/// What a sender takes for the time from a request to its repetition.
pub(crate) fn patience(rtt: Rtt) -> Duration {
    rtt.smoothed + (rtt.variance * 2).max(LEAST_MARGIN) + apart(rtt)
}

impl Requests {
    /// What is needed to ask in this way, if it is by clocks of single packets.
    pub(crate) fn new(style: RequestStyle) -> Option<Self> {
        (style != RequestStyle::Periodic).then(|| Self {
            copied: style == RequestStyle::TimedCopied,
            asked: VecDeque::new(),
            copies: VecDeque::new(),
            response: ResponseTime::default(),
            answered: Instant::ORIGIN,
            last_answer: Instant::ORIGIN,
            repeated: 0,
            recovered: [0; ROUNDS],
        })
    }

    /// How long after a request its answer is overdue; the copy may be the one that arrived.
    fn patience(&self, rtt: Rtt) -> Duration {
        let copy = if self.copied { apart(rtt) } else { Duration::ZERO };
        self.response.patience(rtt) + copy
    }

    pub(super) fn fill(&self, statistics: &mut Statistics) {
        statistics.packets_requested_again = self.repeated;
        let [first, second, third, later] = self.recovered;
        statistics.recovered_first_round = first;
        statistics.recovered_second_round = second;
        statistics.recovered_third_round = third;
        statistics.recovered_later = later;
    }

    /// The packets from `first` to `last` are asked for. Of very many the oldest are left alone.
    pub(crate) fn ask(&mut self, now: Instant, first: SeqNo, last: SeqNo, until: Option<Instant>) {
        self.push(Asked { first, last, at: now, before: None, until, round: 1 });
    }

    fn push(&mut self, asked: Asked) {
        if self.asked.len() >= WAITING {
            self.asked.pop_front();
        }
        self.asked.push_back(asked);
    }

    /// A report was sent at `now`: its copies follow, more of them if it is the last that can be
    /// answered in time.
    pub(crate) fn sent(&mut self, now: Instant, list: &LossListBuilder, is_last: bool, rtt: Rtt) {
        if !self.copied || self.copies.len() >= COPIES {
            return;
        }
        let apart = apart(rtt);
        let last = [apart, apart * 2, apart * 3];
        let ordinary = [apart, rtt.smoothed / 2];
        for after in if is_last { &last[..] } else { &ordinary[..] } {
            let due = now + *after;
            let place = self.copies.partition_point(|copy| copy.due <= due);
            self.copies.insert(place, Copy { due, made: now, list: list.clone() });
        }
    }

    /// The copy of a report that is due, and when the report was made.
    pub(crate) fn take_copy(&mut self, now: Instant) -> Option<(Instant, LossListBuilder)> {
        self.copies.front().filter(|copy| copy.due <= now)?;
        self.copies.pop_front().map(|copy| (copy.made, copy.list))
    }

    /// When the next copy is due.
    pub(crate) fn next_copy(&self) -> Option<Instant> {
        self.copies.front().map(|copy| copy.due)
    }

    /// When a copy or a repetition has its turn; a copy that is due already waits to be written.
    pub(crate) fn next(&self, now: Instant, rtt: Rtt) -> Option<Instant> {
        let copy = self.copies.iter().map(|copy| copy.due).find(|&due| due > now);
        copy.into_iter().chain(self.next_overdue(rtt)).min()
    }

    /// A packet that was sent again came in.
    pub(crate) fn came(&mut self, now: Instant, seq: SeqNo, rtt: Rtt) {
        let asks = |asked: &&Asked| !seq.is_before(asked.first) && !seq.is_after(asked.last);
        let Some(asked) = self.asked.iter().take(SEARCHED).find(asks) else { return };
        self.recovered[asked.round.min(ROUNDS) - 1] += 1;
        self.last_answer = now;
        if now >= asked.at + rtt.smoothed * 7 / 8 {
            self.answered = self.answered.max(asked.at);
            self.response.sample(now - asked.at, rtt);
        } else if let Some(before) = asked.before {
            // It answers the request before.
            self.response.sample(now - before, rtt);
        }
    }

    /// When the answer to the oldest request is overdue. Where it could still be awaited, but a
    /// further one would come too late then, it is asked for while there is time.
    pub(crate) fn next_overdue(&self, rtt: Rtt) -> Option<Instant> {
        let asked = self.asked.front()?;
        if asked.at + apart(rtt) + LEAST_MARGIN < self.answered {
            return Some(asked.at);
        }
        let overdue = asked.at + self.patience(rtt);
        let answer = rtt.smoothed + rtt.variance;
        let last_call = asked.until.map(|until| until.saturating_sub(answer));
        let pressing = last_call.filter(|&at| at > asked.at + answer && at < overdue);
        let at = pressing.unwrap_or(overdue);
        // What was asked for may still stand behind the answers that are coming in.
        let pause = self.last_answer + apart(rtt);
        Some(at.max(pause.min(at + rtt.smoothed / 2)))
    }

    /// Takes out the oldest request whose answer is overdue at `now`.
    fn take_overdue(&mut self, now: Instant, rtt: Rtt) -> Option<Asked> {
        self.next_overdue(rtt).filter(|&at| at <= now)?;
        self.asked.pop_front()
    }
}

impl ReceiveHalf {
    /// Asks again for what is overdue and can still be in time.
    pub(super) fn ask_again(&mut self, now: Instant, rtt: Rtt) {
        let Some(mut requests) = self.requests.take() else { return };
        while let Some(asked) = requests.take_overdue(now, rtt) {
            let mut from = asked.first;
            while let Some((first, last)) = self.first_missing(from, asked.last) {
                if self.can_be_in_time(now, last, rtt) {
                    requests.repeated += u64::from(last.distance_from(first).unsigned_abs()) + 1;
                    requests.push(Asked {
                        first,
                        last,
                        at: now,
                        before: Some(asked.at),
                        until: self.given_up(last),
                        round: asked.round + 1,
                    });
                    self.list(first, last);
                }
                from = last.next();
            }
        }
        self.requests = Some(requests);
    }

    /// The first run of missing packets between `from` and `to`.
    fn first_missing(&self, from: SeqNo, to: SeqNo) -> Option<(SeqNo, SeqNo)> {
        let head = self.buffer.head();
        let from = if from.is_before(head) { head } else { from };
        let (first, last) = self.buffer.missing().ranges_from(from).next()?;
        let within = !first.is_after(to) && !first.is_before(from);
        within.then(|| (first, if last.is_after(to) { to } else { last }))
    }

    /// Whether a request for `last` at `now` is the last that can be answered in time.
    pub(super) fn is_last_chance(&self, now: Instant, last: SeqNo, rtt: Rtt) -> bool {
        let patience = self.requests.as_ref().map_or(Duration::ZERO, |asks| asks.patience(rtt));
        !self.can_be_in_time(now + patience, last, rtt)
    }

    /// When what is missing up to `last` is given up: the packet behind it is due.
    pub(super) fn given_up(&self, last: SeqNo) -> Option<Instant> {
        let tsbpd = self.tsbpd.as_ref().filter(|_| self.too_late_drop)?;
        Some(tsbpd.due(self.buffer.get(last.next())?.time))
    }

    /// Whether an answer to a request for `last` would come before it is given up.
    fn can_be_in_time(&self, now: Instant, last: SeqNo, rtt: Rtt) -> bool {
        self.given_up(last).is_none_or(|until| now + rtt.smoothed * 7 / 8 < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> Instant = Instant::from_millis;
    const RTT: Rtt =
        Rtt { smoothed: Duration::from_millis(32), variance: Duration::from_millis(1) };

    fn requests(style: RequestStyle) -> Requests {
        Requests::new(style).expect("timed")
    }

    fn seq(i: u32) -> SeqNo {
        SeqNo::new(1_000 + i)
    }

    fn report() -> LossListBuilder {
        let mut list = LossListBuilder::new(100);
        assert!(list.push(seq(0), seq(3)));
        list
    }

    #[test]
    fn a_request_is_overdue_a_round_trip_and_a_margin_after_it() {
        assert!(Requests::new(RequestStyle::Periodic).is_none());
        for (style, overdue) in [(RequestStyle::Timed, 136), (RequestStyle::TimedCopied, 138)] {
            let mut requests = requests(style);
            requests.ask(AT(100), seq(0), seq(3), None);
            assert_eq!(requests.next(AT(100), RTT), Some(AT(overdue)), "{style:?}");
            assert!(requests.take_overdue(AT(overdue - 1), RTT).is_none());
            assert!(requests.take_overdue(AT(overdue), RTT).is_some());
            assert_eq!(requests.next(AT(200), RTT), None);
        }
    }

    #[test]
    fn the_answer_to_a_later_request_makes_an_earlier_one_overdue() {
        let mut requests = requests(RequestStyle::TimedCopied);
        requests.ask(AT(100), seq(0), seq(3), None);
        requests.ask(AT(110), seq(8), seq(8), None);
        // Too early to answer the second.
        requests.came(AT(120), seq(8), RTT);
        assert_eq!(requests.next_overdue(RTT), Some(AT(138)));
        requests.came(AT(142), seq(8), RTT);
        assert_eq!(requests.next_overdue(RTT), Some(AT(100)));
    }

    #[test]
    fn who_cannot_wait_longer_asks_before_the_answer_is_overdue() {
        for (until, overdue) in [(166, 138), (168, 135), (180, 138)] {
            let mut requests = requests(RequestStyle::TimedCopied);
            requests.ask(AT(100), seq(0), seq(3), Some(AT(until)));
            assert_eq!(requests.next_overdue(RTT), Some(AT(overdue)), "given up at {until}");
        }
    }

    #[test]
    fn nothing_is_overdue_while_answers_come_in() {
        let mut requests = requests(RequestStyle::TimedCopied);
        requests.ask(AT(100), seq(0), seq(90), None);
        for i in 0..90 {
            requests.came(AT(132) + Duration::from_micros(u64::from(i) * 200), seq(i), RTT);
        }
        assert_eq!(requests.next_overdue(RTT), Some(AT(132) + Duration::from_micros(19_800)));
        // A single answer each two milliseconds is no such thing for long.
        for i in 0..20 {
            requests.came(AT(150 + i * 2), seq(90), RTT);
        }
        assert_eq!(requests.next_overdue(RTT), Some(AT(154)));
    }

    #[test]
    fn a_report_is_sent_again_soon_and_after_half_a_round_trip() {
        let mut requests = requests(RequestStyle::TimedCopied);
        requests.sent(AT(100), &report(), false, RTT);
        let mut copies = Vec::new();
        for ms in 100..200 {
            while let Some((made, _)) = requests.take_copy(AT(ms)) {
                assert_eq!(made, AT(100), "the same datagram");
                copies.push(ms);
            }
        }
        assert_eq!(copies, [102, 116]);
    }

    #[test]
    fn the_last_report_that_can_be_answered_is_sent_four_times() {
        let mut requests = requests(RequestStyle::TimedCopied);
        requests.sent(AT(100), &report(), false, RTT);
        requests.sent(AT(101), &report(), true, RTT);
        let due: Vec<_> = requests.copies.iter().map(|copy| copy.due).collect();
        assert_eq!(due, [102, 103, 105, 107, 116].map(AT));
        assert_eq!(requests.next(AT(103), RTT), Some(AT(105)), "what is due waits to be written");
    }

    #[test]
    fn a_sender_that_would_answer_both_is_asked_once() {
        let mut requests = requests(RequestStyle::Timed);
        requests.sent(AT(100), &report(), true, RTT);
        assert_eq!(requests.next_copy(), None);
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut requests = requests(RequestStyle::TimedCopied);
        for i in 0..100_000 {
            requests.ask(AT(1), seq(i), seq(i), None);
            requests.sent(AT(1), &report(), true, RTT);
        }
        assert_eq!(requests.asked.len(), WAITING);
        assert!(requests.copies.len() <= COPIES + 3);
    }
}
