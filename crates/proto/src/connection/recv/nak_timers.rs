//! NAK timers of single missing packets: which packets are missing, when the last NAK for them was
//! sent, and when the next one is due.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use punctual_rtt::Rtt;
use punctual_units::Instant;
use punctual_wire::{LossListBuilder, SeqNo};

use super::missing::Missing;
use super::reordering_estimator::ReorderingEstimator;
use super::response_time::ResponseTime;
use crate::policy::nak::{MissingPackets, NakPolicy, ReceiverView, SentNak};
use crate::statistics::Statistics;

/// Greatest numbers of runs with a timer, of copies of NAKs that wait, and of copies of one NAK.
const WAITING: usize = 65_536;
const COPIES: usize = 256;
const COPIES_OF_ONE: u32 = 32;
/// Further copies of NAKs: the number for each packet that arrives, and the largest that is saved.
const SPARE: f64 = 0.15;
const MOST_SPARE: f64 = 128.0;
/// The NAK of a retransmission is searched for among this number of the oldest runs.
const SEARCHED: usize = 64;
/// The largest number of runs with a NAK at one time, and the pause before the others. It limits
/// the work that a peer causes which retransmits nothing.
const AT_ONCE: usize = 1_024;
const REST: Duration = Duration::from_millis(1);
/// Rounds that the statistics count separately; the last one includes all further ones.
const ROUNDS: usize = 4;

/// The missing packets of a receiver and their NAK timers.
#[derive(Debug)]
pub(crate) struct NakTimers {
    policy: Box<dyn NakPolicy>,
    /// Whether the peer recognises copies of a NAK, so that it answers all of them once.
    copies_allowed: bool,
    /// Runs without a NAK yet, because they may only be reordered, and until when.
    held: VecDeque<(Instant, MissingPackets)>,
    /// Runs with a NAK, in the order of their last NAKs.
    asked: VecDeque<Asked>,
    /// Runs with a NAK of which later packets were retransmitted.
    passed: VecDeque<Asked>,
    /// Copies of NAKs that are still to be sent, the next one first.
    copies: VecDeque<Copy>,
    reordering: ReorderingEstimator,
    response: ResponseTime,
    /// The sending time of the newest NAK with a retransmission. Earlier ones should have one, too.
    answered: Instant,
    /// No timer expires before this instant.
    rests_until: Instant,
    /// The arrival of the last retransmission. Many of them arrive one after the other.
    last_answer: Instant,
    /// The number of further copies of NAKs that may be sent now.
    spare_copies: f64,
    /// Packets with a repeated NAK.
    repeated: u64,
    /// Packets that arrived after one NAK, after two, and so on.
    recovered: [u64; ROUNDS],
}

#[derive(Clone, Debug)]
struct Asked {
    missing: MissingPackets,
    at: Instant,
    /// When the NAK before that was sent.
    before: Option<Instant>,
}

#[derive(Debug)]
struct Copy {
    due: Instant,
    made: Instant,
    /// The copies of one NAK share their list.
    list: Arc<LossListBuilder>,
}

impl NakTimers {
    /// The timers of a stream whose next packet is `first`. `copies_allowed`: the peer recognises
    /// copies of a NAK.
    pub(crate) fn new(policy: Box<dyn NakPolicy>, first: SeqNo, copies_allowed: bool) -> Self {
        Self {
            policy,
            copies_allowed,
            held: VecDeque::new(),
            asked: VecDeque::new(),
            passed: VecDeque::new(),
            copies: VecDeque::new(),
            reordering: ReorderingEstimator::new(first),
            response: ResponseTime::default(),
            answered: Instant::ORIGIN,
            rests_until: Instant::ORIGIN,
            last_answer: Instant::ORIGIN,
            spare_copies: MOST_SPARE / 2.0,
            repeated: 0,
            recovered: [0; ROUNDS],
        }
    }

    pub(super) fn view(&self, rtt: Rtt) -> ReceiverView {
        ReceiverView {
            rtt,
            response_time: self.response.retransmission_timeout(rtt),
            answered: self.answered,
            last_answer: self.last_answer,
            reordering_delay: self.reordering.reordering_delay(),
            loss: self.reordering.loss(),
            copies_allowed: self.copies_allowed,
            spare_copies: self.spare_copies,
        }
    }

    pub(super) fn fill(&self, statistics: &mut Statistics) {
        statistics.packets_requested_again = self.repeated;
        let [first, second, third, later] = self.recovered;
        statistics.recovered_first_round = first;
        statistics.recovered_second_round = second;
        statistics.recovered_third_round = third;
        statistics.recovered_later = later;
    }

    /// The packets from `first` to `last` are missing, and are given up at `deadline`. Returns
    /// whether their NAK is due now.
    pub(super) fn found(
        &mut self,
        now: Instant,
        first: SeqNo,
        last: SeqNo,
        deadline: Option<Instant>,
        rtt: Rtt,
    ) -> bool {
        let passed_by = self.reordering.found(first, last);
        self.spare_copies = (self.spare_copies + SPARE * f64::from(passed_by)).min(MOST_SPARE);
        let missing = MissingPackets {
            first,
            last,
            detected: now,
            last_nak: None,
            naks: 0,
            passed_over: None,
            deadline,
        };
        let due = self.policy.nak_at(&missing, &self.view(rtt));
        if due > now && self.held.len() < WAITING {
            let place = self.held.partition_point(|&(other, _)| other <= due);
            self.held.insert(place, (due, missing));
            return false;
        }
        self.nak_sent(now, missing, None);
        true
    }

    /// A NAK for these is sent now. Beyond the limit the oldest run is forgotten.
    fn nak_sent(&mut self, now: Instant, missing: MissingPackets, before: Option<Instant>) {
        if self.asked.len() >= WAITING {
            self.asked.pop_front();
        }
        let naks = missing.naks.saturating_add(1);
        let missing = MissingPackets { last_nak: Some(now), naks, passed_over: None, ..missing };
        self.asked.push_back(Asked { missing, at: now, before });
    }

    /// A NAK was sent: its copies follow.
    pub(super) fn sent(&mut self, list: &LossListBuilder, nak: &SentNak, rtt: Rtt) {
        if !self.copies_allowed {
            return;
        }
        let view = self.view(rtt);
        let mut shared = None;
        for n in 1..=COPIES_OF_ONE {
            let Some(after) = self.policy.copy_after(n, nak, &view) else { return };
            if self.copies.len() >= COPIES {
                return;
            }
            self.spare_copies = (self.spare_copies - 1.0).max(0.0);
            let due = nak.at + after;
            let place = self.copies.partition_point(|copy| copy.due <= due);
            let list = Arc::clone(shared.get_or_insert_with(|| Arc::new(list.clone())));
            self.copies.insert(place, Copy { due, made: nak.at, list });
        }
    }

    /// The copy of a NAK that is due, and when the NAK was sent.
    pub(super) fn take_copy(&mut self, now: Instant) -> Option<(Instant, Arc<LossListBuilder>)> {
        self.copies.front().filter(|copy| copy.due <= now)?;
        self.copies.pop_front().map(|copy| (copy.made, copy.list))
    }

    /// When the next copy is due.
    pub(super) fn next_copy(&self) -> Option<Instant> {
        self.copies.front().map(|copy| copy.due)
    }

    /// When a copy or a timer is due; a copy that is due already waits to be written.
    pub(super) fn next(&self, now: Instant, rtt: Rtt) -> Option<Instant> {
        let copy = self.copies.iter().map(|copy| copy.due).find(|&due| due > now);
        copy.into_iter().chain(self.next_timer(rtt)).min()
    }

    /// The runs whose timers have expired, without packets that can no longer arrive in time.
    pub(super) fn take_due_naks(
        &mut self,
        now: Instant,
        missing: Missing<'_>,
        rtt: Rtt,
    ) -> Vec<(SeqNo, SeqNo)> {
        let mut runs = Vec::new();
        let mut due_runs = 0;
        while now >= self.rests_until
            && let Some(due) = self.take_due(now, rtt)
        {
            due_runs += 1;
            if due_runs == AT_ONCE {
                self.rests_until = now + REST;
            }
            let mut from = due.first;
            while let Some((first, last)) = missing.first_run(from, due.last) {
                if missing.is_wanted(now, last, rtt) {
                    if due.last_nak.is_some() {
                        let packets = last.distance_from(first).unsigned_abs() + 1;
                        self.repeated += u64::from(packets);
                    }
                    let deadline = missing.needed_by(last);
                    let run = MissingPackets { first, last, deadline, ..due };
                    self.nak_sent(now, run, due.last_nak);
                    runs.push((first, last));
                }
                from = last.next();
            }
        }
        runs
    }

    /// The instant at which the next timer expires.
    fn next_timer(&self, rtt: Rtt) -> Option<Instant> {
        let held = self.held.front().map(|&(due, _)| due);
        let firsts = [&self.passed, &self.asked].map(VecDeque::front);
        let mut due = held;
        if firsts.iter().any(Option::is_some) {
            let view = self.view(rtt);
            let repeats = firsts.into_iter().flatten();
            let repeats = repeats.map(|asked| self.policy.nak_at(&asked.missing, &view));
            due = held.into_iter().chain(repeats).min();
        }
        due.map(|due| due.max(self.rests_until))
    }

    /// The instant at which the timer of the first of these runs expires.
    fn due(&self, queue: &VecDeque<Asked>, rtt: Rtt) -> Option<Instant> {
        let asked = queue.front()?;
        Some(self.policy.nak_at(&asked.missing, &self.view(rtt)))
    }

    /// Takes out a run whose timer has expired at `now`.
    fn take_due(&mut self, now: Instant, rtt: Rtt) -> Option<MissingPackets> {
        if self.held.front().is_some_and(|&(due, _)| due <= now) {
            return self.held.pop_front().map(|(_, missing)| missing);
        }
        if self.due(&self.passed, rtt).is_some_and(|due| due <= now) {
            return self.passed.pop_front().map(|asked| asked.missing);
        }
        self.due(&self.asked, rtt).filter(|&due| due <= now)?;
        self.asked.pop_front().map(|asked| asked.missing)
    }

    /// A retransmission arrived.
    pub(super) fn came(&mut self, now: Instant, seq: SeqNo, rtt: Rtt) {
        let Some(index) = place_of(&self.asked, seq) else {
            if let Some(index) = place_of(&self.passed, seq) {
                self.count(self.passed[index].missing.naks);
            }
            return;
        };
        let Asked { missing, at, before } = self.asked[index].clone();
        self.count(missing.naks);
        self.last_answer = now;
        if now >= at + rtt.smoothed * 7 / 8 {
            self.answered = self.answered.max(at);
            self.response.sample(now - at, rtt);
            self.pass_over(now, index, seq);
        } else if let Some(before) = before {
            // It is the answer to the NAK before.
            self.response.sample(now - before, rtt);
        }
    }

    fn count(&mut self, naks: u32) {
        self.recovered[(naks as usize).clamp(1, ROUNDS) - 1] += 1;
    }

    /// A reordered original arrived.
    pub(super) fn overtaken(&mut self, now: Instant, seq: SeqNo) {
        let held = self.held.iter().map(|(_, missing)| missing);
        let asked = self.asked.iter().chain(&self.passed).map(|asked| &asked.missing);
        let found = held.chain(asked).take(SEARCHED).find(|missing| contains(missing, seq));
        if let Some(found) = found.map(|missing| missing.detected) {
            self.reordering.overtaken(now - found);
        }
    }

    /// Packet `seq` of the run at `index` was retransmitted. Retransmissions leave in the order of
    /// the numbers, so those of earlier packets in the same NAK were sent, and lost.
    fn pass_over(&mut self, now: Instant, index: usize, seq: SeqNo) {
        let at = self.asked[index].at;
        let mut i = self.asked.partition_point(|asked| asked.at < at);
        // Runs after the searched ones keep their places.
        let end = i.max(index) + SEARCHED;
        while i < end
            && let Some(asked) = self.asked.get_mut(i).filter(|asked| asked.at == at)
        {
            let missing = asked.missing;
            if !missing.first.is_before(seq) && missing.first != seq {
                i += 1;
                continue;
            }
            let until = if missing.last.is_before(seq) { missing.last } else { seq.minus(1) };
            if !until.is_before(missing.first) {
                let before = MissingPackets { last: until, passed_over: Some(now), ..missing };
                self.passed.push_back(Asked { missing: before, ..asked.clone() });
            }
            asked.missing.first =
                if missing.last.is_before(seq) { missing.last } else { seq }.next();
            if asked.missing.first.is_after(asked.missing.last) {
                self.asked.remove(i);
            } else {
                i += 1;
            }
        }
    }
}

/// The place of the run with `seq` among the oldest.
fn place_of(queue: &VecDeque<Asked>, seq: SeqNo) -> Option<usize> {
    queue.iter().take(SEARCHED).position(|asked| contains(&asked.missing, seq))
}

fn contains(missing: &MissingPackets, seq: SeqNo) -> bool {
    seq.is_within(missing.first, missing.last)
}

#[cfg(test)]
mod tests {
    use super::super::nak_policy::PerPacketNakTimers;
    use super::*;

    const AT: fn(u64) -> Instant = Instant::from_millis;
    const RTT: Rtt =
        Rtt { smoothed: Duration::from_millis(32), variance: Duration::from_millis(1) };

    fn nak_timers(copies_allowed: bool) -> NakTimers {
        NakTimers::new(Box::<PerPacketNakTimers>::default(), seq(0), copies_allowed)
    }

    fn seq(i: u32) -> SeqNo {
        SeqNo::new(1_000 + i)
    }

    fn list() -> LossListBuilder {
        let mut list = LossListBuilder::new(100);
        assert!(list.push(seq(0), seq(3)));
        list
    }

    fn ask(nak_timers: &mut NakTimers, at: u64, first: u32, last: u32, until: Option<u64>) {
        let deadline = until.map(AT);
        assert!(nak_timers.found(AT(at), seq(first), seq(last), deadline, RTT), "asked at once");
    }

    fn sent(nak_timers: &mut NakTimers, at: u64, last_chance: Option<u64>) {
        let nak = SentNak { at: AT(at), last_chance: last_chance.map(AT) };
        nak_timers.sent(&list(), &nak, RTT);
    }

    #[test]
    fn a_nak_is_overdue_a_round_trip_and_a_margin_after_it() {
        for (copies_allowed, overdue) in [(false, 136), (true, 138)] {
            let mut nak_timers = nak_timers(copies_allowed);
            ask(&mut nak_timers, 100, 0, 3, None);
            assert_eq!(
                nak_timers.next(AT(100), RTT),
                Some(AT(overdue)),
                "copies_allowed: {copies_allowed}"
            );
            assert!(nak_timers.take_due(AT(overdue - 1), RTT).is_none());
            let due = nak_timers.take_due(AT(overdue), RTT).expect("overdue");
            assert_eq!((due.first, due.last, due.naks), (seq(0), seq(3), 1));
            assert_eq!(nak_timers.next(AT(200), RTT), None);
        }
    }

    #[test]
    fn the_answer_to_a_later_nak_makes_an_earlier_one_overdue() {
        let mut nak_timers = nak_timers(true);
        ask(&mut nak_timers, 100, 0, 3, None);
        ask(&mut nak_timers, 110, 8, 8, None);
        // Too early to answer the second.
        nak_timers.came(AT(120), seq(8), RTT);
        assert_eq!(nak_timers.next_timer(RTT), Some(AT(138)));
        nak_timers.came(AT(142), seq(8), RTT);
        assert_eq!(nak_timers.next_timer(RTT), Some(AT(100)));
    }

    #[test]
    fn a_packet_asked_for_before_an_answered_one_is_overdue() {
        let mut nak_timers = nak_timers(true);
        ask(&mut nak_timers, 100, 0, 9, None);
        ask(&mut nak_timers, 100, 12, 19, None);
        nak_timers.came(AT(133), seq(2), RTT);
        assert_eq!(nak_timers.next_timer(RTT), Some(AT(133)));
        let due = nak_timers.take_due(AT(133), RTT).expect("overdue");
        assert_eq!((due.first, due.last), (seq(0), seq(1)));
        nak_timers.came(AT(134), seq(15), RTT);
        let mut due = Vec::new();
        while let Some(missing) = nak_timers.take_due(AT(134), RTT) {
            due.push((missing.first, missing.last));
        }
        assert_eq!(due, [(seq(3), seq(9)), (seq(12), seq(14))]);
        let rest = &nak_timers.asked[0].missing;
        assert_eq!((nak_timers.asked.len(), rest.first, rest.last), (1, seq(16), seq(19)));
    }

    #[test]
    fn a_nak_that_cannot_wait_goes_out_before_the_answer_is_overdue() {
        for (until, overdue) in [(166, 138), (168, 135), (180, 138)] {
            let mut nak_timers = nak_timers(true);
            ask(&mut nak_timers, 100, 0, 3, Some(until));
            assert_eq!(nak_timers.next_timer(RTT), Some(AT(overdue)), "given up at {until}");
        }
    }

    #[test]
    fn nothing_is_overdue_while_answers_come_in() {
        let mut nak_timers = nak_timers(true);
        ask(&mut nak_timers, 100, 0, 90, None);
        for i in 0..90 {
            nak_timers.came(AT(132) + Duration::from_micros(u64::from(i) * 200), seq(i), RTT);
        }
        assert_eq!(nak_timers.next_timer(RTT), Some(AT(132) + Duration::from_micros(19_800)));
    }

    /// Every tenth packet is missing; half of them arrive 3 ms after the packets that overtook
    /// them.
    fn reordering_delay() -> NakTimers {
        let mut nak_timers = nak_timers(true);
        for i in 1..=100 {
            ask(&mut nak_timers, u64::from(i), i * 10, i * 10, Some(0));
            if i % 2 == 0 {
                nak_timers.overtaken(AT(u64::from(i) + 3), seq(i * 10));
            }
            nak_timers.asked.clear();
        }
        nak_timers
    }

    #[test]
    fn reordering_is_waited_for_where_that_costs_no_round() {
        // Two rounds take 33 and 71 ms; of three or more, one may be spent.
        for (latency, waits) in [(40, true), (70, true), (72, false), (76, true), (200, true)] {
            let mut nak_timers = reordering_delay();
            let deadline = Some(AT(1_000 + latency));
            let now = nak_timers.found(AT(1_000), seq(2_000), seq(2_003), deadline, RTT);
            assert_eq!(now, !waits, "{latency} ms");
            if waits {
                assert_eq!(nak_timers.next(AT(1_000), RTT), Some(AT(1_003)));
                assert_eq!(nak_timers.take_due(AT(1_002), RTT), None);
                let due = nak_timers.take_due(AT(1_003), RTT).expect("nothing came");
                assert_eq!((due.naks, due.last_nak), (0, None));
            }
        }
    }

    fn copies(nak_timers: &mut NakTimers) -> Vec<Instant> {
        let mut copies = Vec::new();
        while let Some(at) = nak_timers.next_copy() {
            let (made, _) = nak_timers.take_copy(at).expect("due");
            assert_eq!(made, AT(100), "the same datagram");
            copies.push(at);
        }
        copies
    }

    #[test]
    fn a_nak_is_copied_soon_and_after_half_a_round_trip() {
        let mut nak_timers = nak_timers(true);
        nak_timers.spare_copies = 0.0;
        sent(&mut nak_timers, 100, None);
        assert_eq!(nak_timers.next(AT(102), RTT), Some(AT(116)), "what is due waits to be written");
        assert_eq!(copies(&mut nak_timers), [102, 116].map(AT));
    }

    #[test]
    fn the_last_nak_that_can_be_answered_has_three_copies() {
        let mut nak_timers = nak_timers(true);
        nak_timers.spare_copies = 0.0;
        sent(&mut nak_timers, 100, Some(150));
        assert_eq!(copies(&mut nak_timers), [102, 104, 106].map(AT));
    }

    #[test]
    fn where_gaps_are_rare_a_nak_is_copied_while_it_can_be_of_use() {
        let mut nak_timers = nak_timers(true);
        nak_timers.spare_copies = 93.0;
        sent(&mut nak_timers, 100, None);
        let often = copies(&mut nak_timers);
        assert_eq!((often.len(), often.last()), (31, Some(&AT(132))), "a round trip");
        sent(&mut nak_timers, 100, Some(156));
        let last = copies(&mut nak_timers);
        assert_eq!((last.len(), last.last()), (31, Some(&AT(124))), "24 ms are left");
        sent(&mut nak_timers, 100, None);
        sent(&mut nak_timers, 100, None);
        assert_eq!(copies(&mut nak_timers).len(), 4, "what was spare is spent");
    }

    #[test]
    fn on_a_short_path_copies_keep_their_distance() {
        let mut nak_timers = nak_timers(true);
        nak_timers.spare_copies = MOST_SPARE;
        let rtt = Rtt { smoothed: Duration::from_millis(2), variance: Duration::ZERO };
        nak_timers.sent(&list(), &SentNak { at: AT(100), last_chance: None }, rtt);
        let expected: Vec<_> = (1..=20).map(|n| AT(100) + Duration::from_micros(100) * n).collect();
        assert_eq!(copies(&mut nak_timers), expected);
    }

    #[test]
    fn each_twenty_packets_allow_three_copies_of_naks() {
        let mut nak_timers = nak_timers(true);
        nak_timers.spare_copies = 0.0;
        ask(&mut nak_timers, 100, 99, 99, None);
        assert!((nak_timers.spare_copies - 15.0).abs() < 1e-9, "a hundred packets have gone by");
        ask(&mut nak_timers, 100, 5_000, 5_000, None);
        assert!((nak_timers.spare_copies - MOST_SPARE).abs() < 1e-9);
    }

    #[test]
    fn a_sender_that_would_answer_both_is_asked_once() {
        let mut nak_timers = nak_timers(false);
        sent(&mut nak_timers, 100, Some(150));
        assert_eq!(nak_timers.next_copy(), None);
    }

    #[test]
    fn waiting_naks_and_copies_are_bounded() {
        let mut nak_timers = nak_timers(true);
        for i in 0..100_000 {
            ask(&mut nak_timers, 1, i, i, None);
            sent(&mut nak_timers, 1, Some(2));
        }
        assert_eq!((nak_timers.asked.len(), nak_timers.copies.len()), (WAITING, COPIES));
    }
}
