//! The deadline-aware retransmission policy: one retransmission for each distinct NAK, and copies
//! of a retransmission after which no further one can arrive in time.

use std::time::Duration;

use punctual_rtt::Rtt;
use punctual_units::Instant;

use crate::config::LOSS_TARGET;
use crate::measured_path::LeastRoundTrip;
use crate::policy::retransmit::{Decision, ReportedPacket, RetransmitPolicy, SenderView};
use crate::report_times::periodic_nak_interval;
use crate::windowed_ratio::WindowedRatio;

/// The margin for the error of this end's estimate of the peer's delivery time.
const LATE: Duration = Duration::from_millis(2);
/// The largest number of copies of one retransmission.
const MOST_COPIES: u32 = 7;
/// The largest number of copies of one retransmission without a target.
const MOST_COPIES_WITHOUT_TARGET: u32 = 3;
/// The least delay that counts as a queue.
const LEAST_QUEUE: Duration = Duration::from_millis(2);
/// A round trip longer than the least one by a quarter and by this has a queue, with any variance.
const QUEUE: Duration = Duration::from_millis(10);
/// If a second round fits, this share of p may be retransmitted in addition to p / (1 - p), the
/// least overhead that recovers all packets.
const ABOVE_BOUND: f64 = 0.1;

/// Retransmits once for each distinct NAK, does not retransmit packets that would arrive too late,
/// and sends copies of a retransmission after which no further one can arrive in time.
///
/// It sends as many copies as the target for unrecovered packets needs, within a limit. With p the
/// share of lost packets, it retransmits no more than p / (1 - p) and a tenth of p if a second
/// round of NAK and retransmission fits, and no more than the aggressive algorithm if only one
/// round fits. A ceiling replaces both limits, and beyond it nothing is retransmitted. No copies
/// are sent while the round-trip time shows a queue on the path: while it exceeds the least one of
/// ten minutes by four times its variance.
#[derive(Debug)]
pub struct Deadline {
    /// The share of packets that may stay unrecovered; `None` for the least that the limit permits.
    target: Option<f64>,
    allowance: Allowance,
    /// The share of retransmissions that were lost, so that the peer sent another NAK.
    lost_answers: WindowedRatio,
    /// The share of originals for which the last retransmission that can arrive in time was sent.
    last_answers: WindowedRatio,
    /// The number of originals that have been counted.
    originals: u64,
    queue: QueueDetector,
}

impl Deadline {
    /// A policy with this target, a share of all packets, and this ceiling, packets that may be
    /// retransmitted for each original. Without a target it sends as many copies as the ceiling
    /// permits, up to three of each packet; without a ceiling the limits of the [type](Self) apply.
    pub fn new(target: Option<f64>, ceiling: Option<f64>) -> Self {
        Self {
            target,
            allowance: Allowance::new(ceiling.map_or(Limit::Losses, Limit::Ceiling)),
            lost_answers: WindowedRatio::default(),
            last_answers: WindowedRatio::default(),
            originals: 0,
            queue: QueueDetector::default(),
        }
    }

    /// A policy that gives no packet up. It sends as many copies as the target needs, within the
    /// ceiling if there is one.
    pub(super) fn for_reliable(ceiling: Option<f64>) -> Self {
        let limit = ceiling.map_or(Limit::None, Limit::CopiesUpTo);
        Self { allowance: Allowance::new(limit), ..Self::new(None, None) }
    }

    /// Sets the share of packets that may stay unrecovered.
    pub(super) const fn set_target(&mut self, target: f64) {
        self.target = Some(target);
    }

    /// The number of retransmissions allowed for each lost original without a ceiling, if the share
    /// `loss` of the packets is lost (0 to 1).
    ///
    /// `only_round` is the time within which a retransmission has to be sent to arrive in time, if
    /// no second round of NAK and retransmission fits; `None` if one does.
    pub fn allowance(loss: f64, rtt: Rtt, only_round: Option<Duration>) -> f64 {
        let arrives = 1.0 - loss.clamp(0.0, 0.9);
        match only_round {
            // The aggressive algorithm answers each NAK that arrives; its peer sends one each
            // period.
            Some(left) => {
                let periods =
                    left.min(rtt.smoothed).as_secs_f64() / periodic_nak_interval(rtt).as_secs_f64();
                arrives * (1.0 + periods)
            }
            None => 1.0 / arrives + ABOVE_BOUND,
        }
    }

    /// Counts the originals that were sent since the last NAK.
    fn follow(&mut self, now: Instant, view: &SenderView) {
        let sent = view.originals.saturating_sub(self.originals);
        self.originals = view.originals;
        self.last_answers.add_trials(sent);
        self.allowance.originals(sent);
        self.queue.follow(now, view.rtt);
    }

    /// Counts a retransmission.
    fn answered(&mut self, packet: &ReportedPacket, left: Duration, view: &SenderView) {
        if packet.retransmissions == 0 {
            self.lost_answers.add_trials(1);
            // A queue lengthens the round. It must not allow copies, which would lengthen the
            // queue.
            let is_only_round = is_last_round(left, view) && !self.queue.sees_a_queue(view.rtt);
            self.allowance.lost(is_only_round.then_some(left), view);
        } else {
            self.lost_answers.add_hits(1);
        }
        self.allowance.retransmitted();
    }

    /// The number of copies of a retransmission after which no further one can arrive in time.
    fn copies(&mut self, loss: f64) -> u32 {
        self.last_answers.add_hits(1);
        let wanted =
            self.target.map_or(MOST_COPIES_WITHOUT_TARGET, |target| self.needed(target, loss));
        self.allowance.take_copies(wanted)
    }

    /// The number of copies that makes the share of unrecovered packets as small as `target`. Each
    /// last retransmission is lost with the measured probability, and so is each copy.
    fn needed(&self, target: f64, loss: f64) -> u32 {
        let reached = self.last_answers.value().max(target);
        let loss = loss.max(self.lost_answers.value()).clamp(1e-6, 0.9);
        let answers = (libm::log(target / reached) / libm::log(loss)).ceil().max(1.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded")]
        let answers = answers.min(f64::from(MOST_COPIES + 1)) as u32;
        answers - 1
    }

    /// Decides on a packet whose newest retransmission is in flight. When that one was sent, a
    /// further one could still have arrived in time; now none can, so its copies are sent now.
    fn repeat(&mut self, left: Duration, view: &SenderView) -> Decision {
        if self.queue.sees_a_queue(view.rtt) {
            return Decision::Suppress;
        }
        match self.copies(view.loss) {
            0 => Decision::Suppress,
            copies => Decision::Retransmit { copies: copies - 1, spacing: spacing(left, copies) },
        }
    }
}

impl Default for Deadline {
    /// The policy with the target and without the ceiling of a default [`Config`](crate::Config).
    fn default() -> Self {
        Self::new(Some(LOSS_TARGET), None)
    }
}

impl RetransmitPolicy for Deadline {
    fn decide(&mut self, now: Instant, packet: &ReportedPacket, view: &SenderView) -> Decision {
        self.follow(now, view);
        let rtt = view.rtt;
        let swing = (rtt.variance * 4).min(rtt.smoothed / 2);
        if packet.deadline.is_some_and(|deadline| now > deadline + LATE + swing) {
            return Decision::TooLate;
        }
        let left = packet.next_deadline.map_or(Duration::MAX, |until| until.saturating_since(now));
        let is_last = !left.is_zero() && is_last_round(left, view);
        if let Some(last) = packet.last_retransmit.filter(|&last| now < last + rtt.smoothed - swing)
        {
            let was_last = is_last_round(left.saturating_add(now - last), view);
            return if is_last && !was_last { self.repeat(left, view) } else { Decision::Suppress };
        }
        if !self.allowance.permits() {
            return Decision::Suppress;
        }
        self.answered(packet, left, view);
        if !is_last || self.queue.sees_a_queue(rtt) {
            return Decision::ONCE;
        }
        let copies = self.copies(view.loss);
        Decision::Retransmit { copies, spacing: spacing(left, copies) }
    }
}

/// Whether no further round fits into the remaining time.
fn is_last_round(left: Duration, view: &SenderView) -> bool {
    left <= view.round
}

/// The time between copies that are spread over the remaining time. The last one is sent a little
/// before its deadline.
fn spacing(left: Duration, copies: u32) -> Duration {
    left * 7 / 8 / copies.max(1)
}

/// The number of packets that may be retransmitted: a balance. Each loss adds to it, or each
/// original under a ceiling, and each retransmission takes from it.
#[derive(Debug)]
struct Allowance {
    limit: Limit,
    balance: f64,
}

/// The limit of retransmissions.
#[derive(Clone, Copy, Debug)]
enum Limit {
    /// This number of retransmissions for each original.
    Ceiling(f64),
    /// The same, but only copies are limited.
    CopiesUpTo(f64),
    /// By the lost originals: [`Deadline::allowance`].
    Losses,
    /// No limit but that of the copies of one retransmission.
    None,
}

impl Allowance {
    /// The balance at the start: streams begin with losses, too.
    const FIRST: f64 = 8.0;
    /// The balance is kept between this and its negative.
    const MOST: f64 = 256.0;
    /// A second copy of one retransmission is worth less than the first copy of another one. It is
    /// sent if the balance is higher by this, and a third one if it is higher by twice this.
    const STEP: f64 = 24.0;

    const fn new(limit: Limit) -> Self {
        Self { limit, balance: Self::FIRST }
    }

    /// Originals were sent.
    fn originals(&mut self, packets: u64) {
        if let Limit::Ceiling(ceiling) | Limit::CopiesUpTo(ceiling) = self.limit {
            self.add(ceiling * packets as f64);
        }
    }

    /// A packet was reported lost for the first time. `only_round` as for
    /// [`Deadline::allowance`].
    fn lost(&mut self, only_round: Option<Duration>, view: &SenderView) {
        if matches!(self.limit, Limit::Losses) {
            self.add(Deadline::allowance(view.loss, view.rtt, only_round));
        }
    }

    /// Whether a packet may be retransmitted at all. The losses of a burst may be, before the
    /// originals that allow it are sent.
    const fn permits(&self) -> bool {
        !matches!(self.limit, Limit::Ceiling(_)) || self.balance >= 1.0 - Self::MOST
    }

    /// A retransmission was sent.
    fn retransmitted(&mut self) {
        self.add(-1.0);
    }

    /// Takes as many of the wanted copies as the balance permits.
    fn take_copies(&mut self, wanted: u32) -> u32 {
        if matches!(self.limit, Limit::None) {
            return wanted;
        }
        let mut copies = 0;
        while copies < wanted && self.balance >= 1.0 + Self::STEP * f64::from(copies) {
            self.add(-1.0);
            copies += 1;
        }
        copies
    }

    fn add(&mut self, packets: f64) {
        self.balance = (self.balance + packets).clamp(-Self::MOST, Self::MOST);
    }
}

/// Whether there is a queue on the path, by its round-trip time.
#[derive(Debug, Default)]
struct QueueDetector {
    least: LeastRoundTrip,
}

impl QueueDetector {
    fn follow(&mut self, now: Instant, rtt: Rtt) {
        // The initial estimate is not a measurement of the path.
        if rtt != Rtt::INITIAL {
            self.least.sample(now, rtt.smoothed);
        }
    }

    /// Whether the round-trip time exceeds the least one by more than chance. With a memory shorter
    /// than ten minutes, the round trip through a queue that stays full would become the least one.
    fn sees_a_queue(&self, rtt: Rtt) -> bool {
        let base = self.least.get();
        let chance = (rtt.variance * 4).clamp(LEAST_QUEUE, base / 4 + QUEUE);
        rtt.smoothed > base.saturating_add(chance)
    }
}

#[cfg(test)]
mod tests {
    use punctual_wire::SeqNo;

    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const AT: fn(u64) -> Instant = Instant::from_millis;
    /// Its period of NAKs is 20 ms.
    const RTT: Rtt =
        Rtt { smoothed: Duration::from_millis(20), variance: Duration::from_millis(1) };
    /// When packets are too late.
    const DEADLINE: u64 = 1_000;

    fn view(originals: u64) -> SenderView {
        SenderView { rtt: RTT, originals, loss: 0.05, limit: None, round: MS(23) }
    }

    /// A packet with this number of retransmissions, the last one at `last`.
    fn packet(last: Option<u64>, retransmissions: u32) -> ReportedPacket {
        ReportedPacket {
            seq: SeqNo::new(1),
            origin: AT(900),
            last_retransmit: last.map(AT),
            retransmissions,
            deadline: Some(AT(DEADLINE)),
            next_deadline: Some(AT(DEADLINE)),
        }
    }

    fn copies(decision: Decision) -> u32 {
        match decision {
            Decision::Retransmit { copies, .. } => copies,
            other => panic!("{other:?}"),
        }
    }

    /// A sender that knows a loss of 5 % and has a balance for copies.
    fn experienced(target: Option<f64>, ceiling: Option<f64>) -> Deadline {
        let mut policy = Deadline::new(target, ceiling);
        for i in 1..=100 {
            let early = ReportedPacket { deadline: None, next_deadline: None, ..packet(None, 0) };
            assert_eq!(policy.decide(Instant::ORIGIN, &early, &view(i * 20)), Decision::ONCE);
        }
        policy
    }

    /// Packets retransmitted for each lost one, of 20,000 that are reported `left` milliseconds
    /// before it is too late, each once.
    fn spent(policy: &mut Deadline, loss: f64, left: u64) -> f64 {
        let reported = 20_000;
        let apart = (1.0 / loss).round();
        let answers = (1..=reported).map(|i| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole")]
            let originals = (f64::from(i) * apart) as u64;
            let view = SenderView { loss, ..view(originals) };
            1 + copies(policy.decide(AT(DEADLINE - left), &packet(None, 0), &view))
        });
        f64::from(answers.sum::<u32>()) / f64::from(reported)
    }

    #[test]
    fn a_nak_from_before_the_last_answer_can_have_arrived_is_old() {
        let mut policy = Deadline::default();
        assert_eq!(policy.decide(AT(915), &packet(Some(900), 1), &view(9)), Decision::Suppress);
        assert_eq!(policy.decide(AT(917), &packet(Some(900), 1), &view(9)), Decision::ONCE);
    }

    #[test]
    fn an_answer_on_its_way_gets_copies_once_no_later_one_can_be_in_time() {
        let mut policy = experienced(None, None);
        // 16 ms are left. Ten milliseconds ago there was time for a further round, four ago not.
        let answer = policy.decide(AT(984), &packet(Some(974), 1), &view(8_001));
        assert_eq!(answer, Decision::Retransmit { copies: 0, spacing: MS(14) });
        assert_eq!(policy.decide(AT(984), &packet(Some(980), 1), &view(8_002)), Decision::Suppress);
    }

    #[test]
    fn a_packet_that_would_arrive_too_late_is_not_retransmitted() {
        let mut policy = experienced(None, Some(1.0));
        assert_eq!(policy.decide(AT(1_007), &packet(None, 0), &view(8_001)), Decision::TooLate);
    }

    #[test]
    fn only_the_last_answer_gets_copies_and_they_leave_in_time() {
        let mut policy = experienced(None, None);
        let answer = policy.decide(AT(976), &packet(None, 0), &view(8_001));
        assert_eq!(answer, Decision::ONCE, "24 ms leave another round");
        let answer = policy.decide(AT(984), &packet(None, 0), &view(8_002));
        assert_eq!(answer, Decision::Retransmit { copies: 1, spacing: MS(14) });
    }

    #[test]
    fn copies_leave_before_the_packet_behind_is_due() {
        let mut policy = experienced(None, None);
        let reported = ReportedPacket { next_deadline: Some(AT(992)), ..packet(None, 0) };
        let answer = policy.decide(AT(984), &reported, &view(8_001));
        assert_eq!(answer, Decision::Retransmit { copies: 1, spacing: MS(7) });
        let reported = ReportedPacket { next_deadline: Some(AT(980)), ..packet(None, 0) };
        let answer = policy.decide(AT(984), &reported, &view(8_002));
        assert_eq!(answer, Decision::ONCE, "the packet behind it is due already");
    }

    /// The copies where the round trip is `millis` milliseconds, and mostly varies by `variance`.
    fn copies_at(policy: &mut Deadline, now: Instant, millis: u64, variance: u64) -> u32 {
        let rtt = Rtt { smoothed: MS(millis), variance: MS(variance) };
        let until = Some(now + MS(16));
        let packet = ReportedPacket { deadline: until, next_deadline: until, ..packet(None, 0) };
        copies(policy.decide(now, &packet, &SenderView { rtt, ..view(8_001) }))
    }

    #[test]
    fn no_copies_are_sent_into_a_queue() {
        let mut policy = experienced(None, Some(1.0));
        assert!(copies_at(&mut policy, AT(984), 22, 0) > 0, "2 ms are no queue");
        assert_eq!(copies_at(&mut policy, AT(985), 23, 0), 0);
        assert!(copies_at(&mut policy, AT(986), 32, 3) > 0, "the round trip varies so much");
        assert_eq!(copies_at(&mut policy, AT(987), 36, 9), 0, "a quarter and 10 ms");
    }

    #[test]
    fn a_queue_that_stays_for_minutes_is_no_longer_path() {
        let mut policy = experienced(None, Some(1.0));
        for second in (0..540).step_by(3) {
            assert_eq!(copies_at(&mut policy, AT(1_000 + second * 1_000), 60, 1), 0, "{second} s");
        }
    }

    #[test]
    fn the_initial_round_trip_time_does_not_count_as_the_least() {
        let mut policy = Deadline::new(None, Some(1.0));
        let with = |rtt, originals| SenderView { rtt, round: MS(330), ..view(originals) };
        policy.decide(AT(700), &packet(None, 0), &with(Rtt::INITIAL, 100));
        let rtt = Rtt { smoothed: MS(300), variance: MS(5) };
        let answer = policy.decide(AT(700), &packet(None, 0), &with(rtt, 200));
        assert!(copies(answer) > 0, "300 ms are no queue: {answer:?}");
    }

    #[test]
    fn where_one_round_fits_the_limit_is_what_the_aggressive_algorithm_sends() {
        // It answers a NAK each 20 ms, if that arrives.
        for (loss, left) in [(0.01, 10), (0.05, 5), (0.05, 10), (0.05, 20), (0.1, 10), (0.2, 20)] {
            let allowed = (1.0 - loss) * (1.0 + left as f64 / 20.0);
            let spent = spent(&mut Deadline::new(None, None), loss, left);
            let bound = allowed.max(1.0);
            assert!((spent / bound - 1.0).abs() < 0.01, "{loss}, {left}: {spent} of {bound}");
        }
    }

    #[test]
    fn where_two_rounds_fit_a_tenth_of_what_is_lost_may_be_spent_on_copies() {
        let mut policy = Deadline::new(None, None);
        let (mut sent, losses) = (0_u64, 20_000);
        for i in 1..=losses {
            let view = SenderView { loss: 0.1, ..view(i * 10) };
            let first = policy.decide(AT(960), &packet(None, 0), &view);
            assert_eq!(first, Decision::ONCE, "a further round fits");
            sent += 1;
            // The answer to each tenth is lost.
            if i % 10 == 0 {
                let again = policy.decide(AT(984), &packet(Some(960), 1), &view);
                sent += 1 + u64::from(copies(again));
            }
        }
        let share = sent as f64 / losses as f64;
        let bound = 1.0 / 0.9 + 0.1;
        assert!((share / bound - 1.0).abs() < 0.01, "{share} of {bound}");
    }

    #[test]
    fn a_target_that_is_reached_without_copies_costs_nothing() {
        let mut policy = Deadline::new(Some(0.1), None);
        assert_eq!(spent(&mut policy, 0.05, 20).to_bits(), 1.0_f64.to_bits());
    }

    #[test]
    fn no_answer_gets_a_second_copy_while_others_have_none() {
        let mut policy = Deadline::new(None, None);
        let view = |i: u64| SenderView { loss: 0.1, ..view(i * 10) };
        let most = (1..1_000).map(|i| copies(policy.decide(AT(984), &packet(None, 0), &view(i))));
        assert_eq!(most.max(), Some(1), "1.6 packets for each loss are one copy at most");
    }

    #[test]
    fn a_ceiling_holds_over_a_stream() {
        for ceiling in [0.06, 0.08, 0.1] {
            let spent = spent(&mut Deadline::new(None, Some(ceiling)), 0.05, 16) * 0.05;
            assert!((ceiling - 0.002..=ceiling + 0.002).contains(&spent), "{ceiling}: {spent}");
        }
    }

    #[test]
    fn a_target_takes_as_many_copies_as_it_needs() {
        let last = |target| {
            let mut policy = experienced(Some(target), Some(4.0));
            // The last answer is reached by some 2 % of all packets.
            for i in 0..200 {
                policy.decide(AT(984), &packet(None, 0), &view(8_000 + i * 20));
            }
            copies(policy.decide(AT(984), &packet(None, 0), &view(12_000)))
        };
        // A twentieth of the answers is lost.
        assert_eq!([0.01, 1e-3, 1e-4, 1e-5, 1e-9].map(last), [0, 1, 1, 2, 5]);
    }
}
