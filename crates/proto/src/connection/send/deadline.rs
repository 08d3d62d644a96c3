//! The deadline-aware answer to loss reports: one for each distinct request, and more where it is
//! the last that can still arrive in time.

use std::time::Duration;

use punctual_rtt::Rtt;
use punctual_units::Instant;
use punctual_wire::SeqNo;

use super::retransmit::{Decision, ReportedPacket, RetransmitPolicy, SenderView};
use crate::connection::recv::periodic_nak_interval;
use crate::connection::share::{Share, WINDOW};

/// What is played a little later than this end reckons may still be of use.
const LATE: Duration = Duration::from_millis(2);
/// Packets that may be sent above what was earned so far, or saved up while there is nothing lost.
const SAVED: f64 = 256.0;
/// What may be sent before anything was earned: a stream begins with losses, too.
const FIRST: f64 = 8.0;
/// A further copy of one answer is worth less: it is sent where so many are saved up for each. More
/// where a ceiling is given, which may let hardly each answer have one: none is to have two because
/// little was lost for a moment.
const RESERVE: f64 = 24.0;
const RESERVE_UNDER_CEILING: f64 = 120.0;
/// Copies of one answer at most, besides it.
const MOST: u32 = 7;
/// The same where no target asks for more.
const MOST_UNASKED: u32 = 3;
/// The round trip has grown by a queue, not by chance, when it exceeds the least by a quarter and
/// this.
const QUEUE: Duration = Duration::from_millis(10);
/// What the efficient algorithm sends again of a stream that loses the share p is about
/// p (1 + (a - b p) p). These are a and b, by the round trips that are left when a loss is first
/// reported: what the lab measures on the published grid, rounded down. The grid's round trip is as
/// long as the period of reports, which makes it answer more: at 10 % of loss a point more than
/// with others.
const EFFICIENT: [(f64, f64, f64); 5] = [
    (0.9, 0.85, 2.5),
    (1.4, 2.25, 6.5),
    (1.9, 2.73, 6.0),
    (2.4, 3.2, 6.0),
    (f64::INFINITY, 3.45, 6.8),
];
/// Of long bursts it sends half of that again: their answers get through together, or not at all.
const IN_BURSTS: f64 = 0.5;

/// Where round trips vary, the efficient algorithm answers reports that were sent before its answer
/// came: about every second loss is answered once more.
const EFFICIENT_TWICE: f64 = 0.5;

/// Answers each distinct request once, nothing that comes too late, and sends more than one answer
/// when no further request can be answered in time.
///
/// How many more is decided by what is measured, by the target for what is not recovered, and by
/// the ceiling for what is sent again, whichever binds first. Copies stop while the round trip
/// grows, for then the path's queue does.
#[derive(Debug)]
pub struct Deadline {
    /// Share of packets that may be missing at last; `None` for as few as the ceiling lets.
    target: Option<f64>,
    /// Packets that may be sent again for each original; `None` for about what the efficient
    /// algorithm would send.
    ceiling: Option<f64>,
    /// Answers that were asked for again.
    lost_again: Share,
    /// Originals of which the last useful answer was reached.
    last_answers: Share,
    /// Of what is lost the share that no other loss stands before: one over the mean burst.
    bursts: Share,
    /// The last packet that was reported for the first time.
    last_lost: Option<SeqNo>,
    /// Packets that may be sent again besides what is asked for.
    saved: f64,
    /// The originals that have earned what they may cost.
    counted: u64,
    least_rtt: LeastRtt,
}

impl Deadline {
    /// With this target, a share of all packets, and this ceiling, packets sent again for each
    /// original. Without either it sends about what the
    /// [efficient one](crate::RetransmitAlgorithm::Efficient) would at a round trip of 20 ms.
    pub fn new(target: Option<f64>, ceiling: Option<f64>) -> Self {
        Self {
            target,
            ceiling,
            lost_again: Share::default(),
            last_answers: Share::default(),
            bursts: Share::over(WINDOW / 4, WINDOW / 128),
            last_lost: None,
            saved: FIRST,
            counted: 0,
            least_rtt: LeastRtt::default(),
        }
    }

    /// Earns what the originals since the last report may cost.
    fn follow(&mut self, view: &SenderView) {
        let sent = view.originals.saturating_sub(self.counted);
        self.counted = view.originals;
        self.last_answers.of(sent);
        if let Some(ceiling) = self.ceiling {
            self.earn(ceiling * sent as f64);
        }
        self.least_rtt.follow(view.originals, view.rtt.smoothed);
    }

    fn earn(&mut self, packets: f64) {
        self.saved = (self.saved + packets).min(SAVED);
    }

    fn pay(&mut self, packets: f64) {
        self.saved = (self.saved - packets).max(-SAVED);
    }

    /// Counts the answer to a report, and what it earns or costs.
    fn answered(&mut self, packet: &ReportedPacket, round_trips_left: f64, view: &SenderView) {
        let loss = view.loss;
        let is_first = packet.retransmissions == 0;
        if is_first {
            self.lost_again.of(1);
            self.lost(packet.seq);
        } else {
            self.lost_again.hit(1);
        }
        match (self.ceiling, is_first) {
            (None, true) => {
                let more = EFFICIENT.iter().find(|(most, ..)| round_trips_left < *most);
                let more = more.map_or(0.0, |(_, a, b)| (a - b * loss).max(0.0) * loss);
                self.earn(more * (IN_BURSTS + self.bursts.value()).min(1.0));
                if efficient_answers_twice(view.rtt) {
                    self.earn(EFFICIENT_TWICE);
                }
            }
            (None, false) | (Some(_), _) => self.pay(1.0),
        }
    }

    /// Counts a loss, and whether a burst begins with it.
    fn lost(&mut self, seq: SeqNo) {
        self.bursts.of(1);
        if self.last_lost.replace(seq).is_none_or(|last| last.next() != seq) {
            self.bursts.hit(1);
        }
    }

    /// How many copies an answer gets of which no later one can be in time.
    fn copies(&mut self, loss: f64) -> u32 {
        self.last_answers.hit(1);
        let wanted = self.target.map_or(MOST_UNASKED, |target| self.wanted_for(target, loss));
        let mut copies = 0;
        while copies < wanted && self.saved >= 1.0 + self.reserve() * f64::from(copies) {
            self.pay(1.0);
            copies += 1;
        }
        copies
    }

    /// An answer is on its way that was not the last that could be in time, but no later one can
    /// be: it gets its copies now.
    fn repeat(&mut self, left: Duration, view: &SenderView) -> Decision {
        if self.least_rtt.is_exceeded_by(view.rtt.smoothed) {
            return Decision::Suppress;
        }
        match self.copies(view.loss) {
            0 => Decision::Suppress,
            copies => Decision::Retransmit { copies: copies - 1, spacing: left * 7 / 8 / copies },
        }
    }

    /// With a target it is the target that says how much a further copy is worth.
    fn reserve(&self) -> f64 {
        match (self.target, self.ceiling) {
            (Some(_), _) => 0.0,
            (None, Some(_)) => RESERVE_UNDER_CEILING,
            (None, None) => RESERVE,
        }
    }

    /// How many copies make the share of what is not recovered as small as `target`: of the last
    /// answers, each is lost with the share measured, and so is each copy.
    fn wanted_for(&self, target: f64, loss: f64) -> u32 {
        let reached = self.last_answers.value().max(target);
        let loss = loss.max(self.lost_again.value()).clamp(1e-6, 0.9);
        let answers = ((target / reached).ln() / loss.ln()).ceil().max(1.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded")]
        let answers = answers.min(f64::from(MOST + 1)) as u32;
        answers - 1
    }
}

impl Default for Deadline {
    fn default() -> Self {
        Self::new(None, None)
    }
}

impl RetransmitPolicy for Deadline {
    fn decide(&mut self, now: Instant, packet: &ReportedPacket, view: &SenderView) -> Decision {
        self.follow(view);
        let rtt = view.rtt;
        let swing = (rtt.variance * 4).min(rtt.smoothed / 2);
        if packet.deadline.is_some_and(|deadline| now > deadline + LATE + swing) {
            return Decision::TooLate;
        }
        let left = packet.next_deadline.map_or(Duration::MAX, |until| until.saturating_since(now));
        let is_last = !left.is_zero() && left <= view.round;
        if let Some(last) = packet.last_retransmit.filter(|&last| now < last + rtt.smoothed - swing)
        {
            let was_last = left.saturating_add(now - last) <= view.round;
            return if is_last && !was_last { self.repeat(left, view) } else { Decision::Suppress };
        }
        let round_trips_left = left.as_secs_f64() / rtt.smoothed.as_secs_f64().max(1e-6);
        self.answered(packet, round_trips_left, view);
        if !is_last || self.least_rtt.is_exceeded_by(rtt.smoothed) {
            return Decision::ONCE;
        }
        let more = self.copies(view.loss);
        // The last of them leaves a little before it must.
        Decision::Retransmit { copies: more, spacing: left * 7 / 8 / more.max(1) }
    }
}

/// Whether the efficient algorithm would answer a periodic report that left clearly before its last
/// answer came.
fn efficient_answers_twice(rtt: Rtt) -> bool {
    let period = periodic_nak_interval(rtt).as_nanos();
    let held_back = rtt.smoothed.saturating_sub(rtt.variance * 4).as_nanos();
    let answered = (held_back / period + 1) * period;
    answered * 10 <= rtt.smoothed.as_nanos() * 9
}

/// The least round trip of this window and the one before.
#[derive(Debug)]
struct LeastRtt {
    before: Duration,
    now: Duration,
    since: u64,
}

impl Default for LeastRtt {
    fn default() -> Self {
        Self { before: Duration::MAX, now: Duration::MAX, since: 0 }
    }
}

impl LeastRtt {
    fn follow(&mut self, originals: u64, rtt: Duration) {
        if originals.saturating_sub(self.since) >= WINDOW {
            *self = Self { before: self.now, now: rtt, since: originals };
        }
        self.now = self.now.min(rtt);
    }

    /// Whether the path's queue grows: copies would make it longer.
    fn is_exceeded_by(&self, rtt: Duration) -> bool {
        let least = self.now.min(self.before);
        rtt > least + least / 4 + QUEUE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const RTT: Rtt = Rtt { smoothed: MS_20, variance: Duration::from_millis(1) };
    const MS_20: Duration = Duration::from_millis(20);
    /// When packets are too late.
    const DEADLINE: u64 = 1_000;

    fn view(originals: u64) -> SenderView {
        SenderView { rtt: RTT, originals, loss: 0.05, limit: None, round: MS(23) }
    }

    /// A packet that was sent again so often, at last at `last`, and is reported now.
    fn packet(last: Option<u64>, retransmissions: u32) -> ReportedPacket {
        ReportedPacket {
            seq: SeqNo::new(1),
            origin: Instant::from_millis(900),
            last_retransmit: last.map(Instant::from_millis),
            retransmissions,
            deadline: Some(Instant::from_millis(DEADLINE)),
            next_deadline: Some(Instant::from_millis(DEADLINE)),
        }
    }

    fn copies(answer: Decision) -> u32 {
        match answer {
            Decision::Retransmit { copies, .. } => copies,
            other => panic!("{other:?}"),
        }
    }

    /// A sender that knows a loss of 5 % and has saved up for copies.
    fn experienced(target: Option<f64>, ceiling: Option<f64>) -> Deadline {
        let mut policy = Deadline::new(target, ceiling);
        for i in 1..=100 {
            let early = ReportedPacket { deadline: None, next_deadline: None, ..packet(None, 0) };
            assert_eq!(policy.decide(Instant::ORIGIN, &early, &view(i * 20)), Decision::ONCE);
        }
        policy
    }

    #[test]
    fn what_the_last_answer_may_still_fill_is_old_news() {
        let mut policy = Deadline::default();
        let at = |ms| Instant::from_millis(ms);
        assert_eq!(policy.decide(at(915), &packet(Some(900), 1), &view(9)), Decision::Suppress);
        assert_eq!(policy.decide(at(917), &packet(Some(900), 1), &view(9)), Decision::ONCE);
    }

    #[test]
    fn an_answer_under_way_gets_its_copies_when_no_later_one_can_be_in_time() {
        let mut policy = experienced(None, None);
        let at = Instant::from_millis(984);
        // 16 ms are left; 10 ms ago it had more than a round, 4 ms ago it had not.
        let answer = policy.decide(at, &packet(Some(974), 1), &view(8_001));
        assert_eq!(answer, Decision::Retransmit { copies: 0, spacing: MS(14) });
        assert_eq!(policy.decide(at, &packet(Some(980), 1), &view(8_002)), Decision::Suppress);
    }

    #[test]
    fn what_cannot_arrive_in_time_is_not_sent() {
        let mut policy = experienced(None, Some(1.0));
        let answer = policy.decide(Instant::from_millis(1_007), &packet(None, 0), &view(8_001));
        assert_eq!(answer, Decision::TooLate);
    }

    #[test]
    fn copies_are_for_the_last_round_and_leave_before_the_deadline() {
        let mut policy = experienced(None, None);
        let answer = policy.decide(Instant::from_millis(976), &packet(None, 0), &view(8_001));
        assert_eq!(answer, Decision::ONCE, "24 ms leave another round");
        let answer = policy.decide(Instant::from_millis(984), &packet(None, 0), &view(8_002));
        assert_eq!(answer, Decision::Retransmit { copies: 1, spacing: MS(14) });
    }

    #[test]
    fn copies_leave_before_the_packet_behind_is_due_if_that_is_answered() {
        let mut policy = experienced(None, None);
        let next_deadline = Some(Instant::from_millis(992));
        let reported = ReportedPacket { next_deadline, ..packet(None, 0) };
        let answer = policy.decide(Instant::from_millis(984), &reported, &view(8_001));
        assert_eq!(answer, Decision::Retransmit { copies: 1, spacing: MS(7) });
        let next_deadline = Some(Instant::from_millis(980));
        let reported = ReportedPacket { next_deadline, ..packet(None, 0) };
        let answer = policy.decide(Instant::from_millis(984), &reported, &view(8_002));
        assert_eq!(answer, Decision::ONCE, "what comes after the packet behind it is of no use");
    }

    #[test]
    fn bursts_earn_half_as_many_copies() {
        let copies_of = |apart: u32| {
            let mut policy = Deadline::new(None, None);
            let copies = (0..20_000u32).map(|i| {
                let seq = SeqNo::new(1 + i * apart);
                let reported = ReportedPacket { seq, ..packet(None, 0) };
                let view = view(u64::from(i) * 20);
                copies(policy.decide(Instant::from_millis(984), &reported, &view))
            });
            f64::from(copies.sum::<u32>())
        };
        let (alone, in_bursts) = (copies_of(20), copies_of(1));
        assert!((0.45..0.55).contains(&(in_bursts / alone)), "{in_bursts} to {alone}");
    }

    #[test]
    fn no_copies_are_sent_into_a_growing_queue() {
        let mut policy = experienced(None, Some(1.0));
        let rtt = Rtt { smoothed: MS(36), ..RTT };
        let view = SenderView { rtt, ..view(8_001) };
        let answer = policy.decide(Instant::from_millis(984), &packet(None, 0), &view);
        assert_eq!(answer, Decision::ONCE);
    }

    #[test]
    fn where_round_trips_vary_the_efficient_algorithm_answers_more_often() {
        let rtt = |smoothed, variance| Rtt { smoothed: MS(smoothed), variance: MS(variance) };
        assert!(!efficient_answers_twice(rtt(20, 1)), "it reports each 20 ms");
        assert!(!efficient_answers_twice(rtt(60, 1)), "and answers after 56 ms at the earliest");
        assert!(efficient_answers_twice(rtt(75, 10)), "it reports after 57 ms, and answers then");
    }

    #[test]
    fn the_ceiling_holds_over_a_stream() {
        for ceiling in [0.06, 0.08, 0.1] {
            let mut policy = Deadline::new(None, Some(ceiling));
            let mut again = 0;
            for i in 1..=20_000 {
                let now = Instant::from_millis(984);
                again += 1 + copies(policy.decide(now, &packet(None, 0), &view(i * 20)));
            }
            let share = f64::from(again) / 400_000.0;
            assert!((ceiling - 0.002..=ceiling + 0.002).contains(&share), "{ceiling}: {share}");
        }
    }

    #[test]
    fn a_target_takes_as_many_copies_as_it_needs() {
        let at = Instant::from_millis(984);
        let last = |target| {
            let mut policy = experienced(Some(target), Some(4.0));
            // Of some 2 % of all packets the last answer is reached.
            for i in 0..200 {
                policy.decide(at, &packet(None, 0), &view(8_000 + i * 20));
            }
            copies(policy.decide(at, &packet(None, 0), &view(12_000)))
        };
        // Each answer leaves a twentieth of them.
        assert_eq!([0.01, 1e-3, 1e-4, 1e-5, 1e-9].map(last), [0, 1, 1, 2, 5]);
    }
}
