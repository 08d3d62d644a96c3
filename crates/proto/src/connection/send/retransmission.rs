//! The choice of the next retransmission.

use std::time::Duration;

use punctual_rtt::Rtt;
use punctual_units::{Bitrate, Instant};
use punctual_wire::SeqNo;

use super::budget::{Rates, RetransmitBudget};
use super::buffer::SendBuffer;
use super::mode::{LossRecovery, SendMode};
use super::redundant_retransmits::RedundantRetransmits;
use super::repeats::{RepeatLimit, StreamRates};
use super::retransmit_timer::RetransmitTimer;
use crate::config::Config;
use crate::handshake::Negotiated;
use crate::policy::retransmit::{Decision, ReportedPacket, RetransmitPolicy, SenderView};
use crate::report_times::{last_nak_copies, periodic_nak_interval, retransmission_timeout};
use crate::statistics::Statistics;
use crate::wake_up::WakeUp;
use crate::windowed_ratio::WindowedRatio;

/// The retransmissions of a connection: the policy, its view of the losses, the copies that it
/// plans, and the limit of their rate.
#[derive(Debug)]
pub(super) struct Retransmission {
    policy: Box<dyn RetransmitPolicy>,
    /// The share of originals that were reported lost.
    loss: WindowedRatio,
    copies: RedundantRetransmits,
    budget: Option<RetransmitBudget>,
    repeats: Option<RepeatLimit>,
    counts: RetransmissionCounts,
}

#[derive(Debug, Default)]
struct RetransmissionCounts {
    packets: u64,
    bytes: u64,
    copies: u64,
    lost: u64,
    /// Reports that the policy or a limit suppressed, and reports that arrived too late.
    old: u64,
    too_late: u64,
}

/// The state of the sender that a retransmission depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Situation<'a> {
    pub(super) rtt: Rtt,
    /// The newest round trip, not smoothed.
    pub(super) newest_rtt: Duration,
    pub(super) mode: &'a SendMode,
    pub(super) timer: &'a RetransmitTimer,
    /// Originals sent so far.
    pub(super) originals: u64,
    /// Bytes of the headers of a packet.
    pub(super) overhead: usize,
    pub(super) rates: Rates,
    /// The rate that arrives at the peer; `None` if the peer does not report it.
    pub(super) arriving: Option<Bitrate>,
}

/// The limits of the rate of retransmissions, by the options.
#[derive(Debug)]
pub(super) struct RateLimits {
    budget: Option<RetransmitBudget>,
    repeats: Option<RepeatLimit>,
}

impl RateLimits {
    pub(super) fn of(config: &Config, negotiated: &Negotiated) -> Self {
        Self {
            budget: RetransmitBudget::of(config, negotiated),
            repeats: RepeatLimit::of(config, negotiated),
        }
    }
}

impl Retransmission {
    pub(super) fn new(policy: Box<dyn RetransmitPolicy>, limits: RateLimits) -> Self {
        Self {
            policy,
            loss: WindowedRatio::default(),
            copies: RedundantRetransmits::default(),
            budget: limits.budget,
            repeats: limits.repeats,
            counts: RetransmissionCounts::default(),
        }
    }

    /// Limits retransmissions like this from now on; earlier spending counts.
    pub(super) fn set_limits(&mut self, limits: RateLimits) {
        let RateLimits { mut budget, repeats } = limits;
        if let (Some(new), Some(old)) = (&mut budget, &self.budget) {
            new.continue_from(old);
        }
        self.budget = budget;
        self.repeats = repeats.and_then(|new| self.repeats.take().or(Some(new)));
    }

    /// The instant at which a packet may be retransmitted; never if no packet waits or the budget
    /// is zero.
    pub(super) fn next(&self, buffer: &SendBuffer) -> WakeUp {
        let repeats = self.repeats.as_ref().and_then(RepeatLimit::next);
        let later = WakeUp::from(self.copies.next()).min(WakeUp::from(repeats));
        let waits = if buffer.has_lost() { WakeUp::Now } else { later };
        waits.max(self.budget_opens())
    }

    /// The packet to retransmit at `now`.
    pub(super) fn choose(
        &mut self,
        now: Instant,
        buffer: &mut SendBuffer,
        situation: &Situation<'_>,
    ) -> Option<SeqNo> {
        if !self.budget_opens().is_due(now) {
            return None;
        }
        self.loss.set_trials(situation.originals);
        let (seq, is_limited) = match self.choose_lost(now, buffer, situation) {
            Some(lost) => lost,
            None => (self.choose_copy(now, buffer)?, true),
        };
        if is_limited && let Some(limit) = &mut self.repeats {
            let rates = StreamRates { input: situation.rates.input, arriving: situation.arriving };
            let bytes = buffer.get(seq).map_or(0, |packet| packet.payload.len());
            limit.sent(now, bytes + situation.overhead, rates, situation.rtt.smoothed);
        }
        Some(seq)
    }

    /// Packets were added to the loss list.
    pub(super) const fn count_lost(&mut self, packets: u64) {
        self.counts.lost += packets;
    }

    /// Packets that were added to the loss list so far.
    pub(super) const fn lost(&self) -> u64 {
        self.counts.lost
    }

    /// A packet with `payload` bytes and `overhead` bytes of headers was retransmitted.
    pub(super) fn sent(&mut self, now: Instant, payload: usize, overhead: usize, rates: Rates) {
        self.counts.packets += 1;
        self.counts.bytes += payload as u64;
        if let Some(budget) = &mut self.budget {
            budget.sent(now, payload + overhead, rates);
        }
    }

    pub(super) const fn fill_statistics(&self, overhead: usize, statistics: &mut Statistics) {
        let headers = self.counts.packets * overhead as u64;
        statistics.packets_retransmitted = self.counts.packets;
        statistics.bytes_retransmitted = self.counts.bytes + headers;
        statistics.packets_send_lost = self.counts.lost;
        statistics.reports_old = self.counts.old;
        statistics.reports_too_late = self.counts.too_late;
        statistics.packets_copied = self.counts.copies;
    }

    /// A packet to retransmit that was reported lost, and whether it counts against the limit.
    fn choose_lost(
        &mut self,
        now: Instant,
        buffer: &mut SendBuffer,
        situation: &Situation<'_>,
    ) -> Option<(SeqNo, bool)> {
        let waits = self.repeats.as_ref().is_some_and(|limit| limit.next().is_some());
        if !waits && !buffer.has_lost() {
            return None;
        }
        let mut view = self.view(situation);
        let useful_age = situation.mode.delivery.useful_age();
        while let Some(seq) = self.repeats.as_mut().and_then(|limit| limit.take(now)) {
            // The oldest packet is the first to be late, and a link that is too slow has a queue of
            // most of the round trip.
            let arrives = now + situation.newest_rtt;
            let origin = buffer.sent_origin(seq);
            let is_late = |origin| useful_age.is_some_and(|age| arrives > origin + age);
            if origin.is_none_or(is_late) {
                continue;
            }
            let run_end = buffer.behind_lost(seq);
            if self.decide(now, buffer, situation, &mut view, (seq, run_end)) {
                return Some((seq, true));
            }
        }
        // The end of a run of lost packets is searched for once.
        let mut run_end = buffer.first();
        while let Some(seq) = buffer.take_lost() {
            if !run_end.is_after(seq) {
                run_end = buffer.behind_lost(seq);
            }
            let is_probe = situation.timer.is_probe(seq);
            let Some(packet) = buffer.get(seq) else { continue };
            let waits = self.repeats.as_ref().is_some_and(|limit| limit.next().is_some());
            let is_limited = (packet.retransmissions > 0 || waits) && !is_probe;
            if is_limited
                && let Some(limit) = &mut self.repeats
                && (waits || !limit.permits(now))
            {
                // The NAK may be older than the last retransmission.
                let Rtt { smoothed, variance } = situation.rtt;
                let least = smoothed.saturating_sub((variance * 4).min(smoothed / 2));
                if packet.last_retransmit.is_none_or(|last| now >= last + least) {
                    limit.wait(packet.origin, seq);
                } else {
                    self.counts.old += 1;
                }
            } else if self.decide(now, buffer, situation, &mut view, (seq, run_end)) {
                return Some((seq, is_limited));
            }
        }
        None
    }

    /// Decides whether the packet `seq` is retransmitted now; `run_end` follows the run of lost
    /// packets of which it is one. `view` is that of all packets of this choice.
    fn decide(
        &mut self,
        now: Instant,
        buffer: &mut SendBuffer,
        situation: &Situation<'_>,
        view: &mut SenderView,
        (seq, run_end): (SeqNo, SeqNo),
    ) -> bool {
        // A probe is useful at any age.
        let is_probe = situation.timer.is_probe(seq);
        let useful_age = situation.mode.delivery.useful_age().filter(|_| !is_probe);
        let needed_age = situation.mode.delivery.needed_age().filter(|_| !is_probe);
        // The peer drops the missing packets before that packet when that packet is due.
        let behind = buffer.sent_origin(run_end);
        let next = buffer.get(seq.next()).map(|packet| packet.origin);
        let Some(packet) = buffer.get_mut(seq) else { return false };
        let budget = self.budget.as_ref().filter(|_| !is_probe);
        if budget.is_some_and(|budget| budget.is_wasted_on(now, packet.origin)) {
            return false;
        }
        let reported = ReportedPacket {
            seq,
            origin: packet.origin,
            last_retransmit: packet.last_retransmit,
            retransmissions: packet.retransmissions,
            deadline: useful_age.map(|age| behind.unwrap_or(packet.origin) + age),
            next_deadline: needed_age.map(|age| next.unwrap_or(packet.origin) + age),
        };
        if reported.retransmissions == 0 && !is_probe {
            self.loss.add_hits(1);
            view.loss = self.loss.value();
        }
        match self.policy.decide(now, &reported, view) {
            Decision::Suppress => self.counts.old += 1,
            Decision::TooLate => self.counts.too_late += 1,
            Decision::Retransmit { copies, spacing } => {
                packet.last_retransmit = Some(now);
                packet.retransmissions += 1;
                for n in 1..=copies {
                    self.copies.plan(now + spacing * n, seq);
                }
                return true;
            }
        }
        false
    }

    /// A copy that is due, unless the packet was acknowledged or dropped meanwhile, or the limit is
    /// reached.
    fn choose_copy(&mut self, now: Instant, buffer: &SendBuffer) -> Option<SeqNo> {
        while let Some(seq) = self.copies.take(now) {
            let is_permitted = self.repeats.as_ref().is_none_or(|limit| limit.permits(now));
            if is_permitted && buffer.is_in_flight(seq) {
                self.counts.copies += 1;
                return Some(seq);
            }
        }
        None
    }

    fn view(&self, situation: &Situation<'_>) -> SenderView {
        let rtt = situation.rtt;
        SenderView {
            rtt,
            originals: situation.originals,
            loss: self.loss.value(),
            limit: self.budget.as_ref().and_then(|budget| budget.rate(situation.rates)),
            // The peer's NAK timer for a packet and most copies of its last NAK, or the period of
            // its NAKs.
            round: match situation.mode.recovery {
                LossRecovery::PacketTimers => retransmission_timeout(rtt) + last_nak_copies(rtt),
                LossRecovery::PeriodicNak | LossRecovery::Timeout | LossRecovery::Never => {
                    rtt.smoothed + periodic_nak_interval(rtt)
                }
            },
        }
    }

    /// The instant at which the budget allows a retransmission.
    fn budget_opens(&self) -> WakeUp {
        self.budget.as_ref().map_or(WakeUp::Now, |budget| budget.next().into())
    }
}
