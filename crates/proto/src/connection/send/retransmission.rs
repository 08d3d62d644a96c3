//! The choice of the next retransmission.

use punctual_rtt::Rtt;
use punctual_units::Instant;
use punctual_wire::SeqNo;

use super::budget::{Rates, RetransmitBudget};
use super::buffer::SendBuffer;
use super::mode::{LossRecovery, SendMode};
use super::redundant_retransmits::RedundantRetransmits;
use super::retransmit::{Decision, ReportedPacket, RetransmitPolicy, SenderView};
use super::retransmit_timer::RetransmitTimer;
use crate::connection::recv::{last_nak_copies, periodic_nak_interval, retransmission_timeout};
use crate::connection::windowed_ratio::WindowedRatio;
use crate::statistics::Statistics;
use crate::wake_up::WakeUp;

/// The retransmissions of a connection: the policy, its view of the losses, the copies that it
/// plans, and the limit of their rate.
#[derive(Debug)]
pub(super) struct Retransmission {
    policy: Box<dyn RetransmitPolicy>,
    /// The share of originals that were reported lost.
    loss: WindowedRatio,
    copies: RedundantRetransmits,
    budget: Option<RetransmitBudget>,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    packets: u64,
    bytes: u64,
    copies: u64,
    lost: u64,
    /// Reports that the policy suppressed, and reports that arrived too late.
    old: u64,
    too_late: u64,
}

/// The state of the sender that a retransmission depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Situation<'a> {
    pub(super) rtt: Rtt,
    pub(super) mode: SendMode,
    pub(super) timer: &'a RetransmitTimer,
    /// Originals sent so far.
    pub(super) originals: u64,
    pub(super) rates: Rates,
}

impl Retransmission {
    pub(super) fn new(policy: Box<dyn RetransmitPolicy>, budget: Option<RetransmitBudget>) -> Self {
        Self {
            policy,
            loss: WindowedRatio::default(),
            copies: RedundantRetransmits::default(),
            budget,
            counts: Counts::default(),
        }
    }

    /// Limits retransmissions by this budget from now on; earlier spending counts.
    pub(super) fn set_budget(&mut self, mut budget: Option<RetransmitBudget>) {
        if let (Some(new), Some(old)) = (&mut budget, &self.budget) {
            new.continue_from(old);
        }
        self.budget = budget;
    }

    /// The instant at which a packet may be retransmitted; never if no packet waits or the budget
    /// is zero.
    pub(super) fn next(&self, buffer: &SendBuffer) -> WakeUp {
        let waits = if buffer.has_lost() { WakeUp::Now } else { WakeUp::from(self.copies.next()) };
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
        self.choose_lost(now, buffer, situation).or_else(|| self.choose_copy(now, buffer))
    }

    /// Packets were added to the loss list.
    pub(super) const fn count_lost(&mut self, packets: u64) {
        self.counts.lost += packets;
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

    fn choose_lost(
        &mut self,
        now: Instant,
        buffer: &mut SendBuffer,
        situation: &Situation<'_>,
    ) -> Option<SeqNo> {
        if !buffer.has_lost() {
            return None;
        }
        let mut view = self.view(situation);
        // The end of a run of lost packets is searched for once.
        let mut run_end = buffer.first();
        while let Some(seq) = buffer.take_lost() {
            if !run_end.is_after(seq) {
                run_end = buffer.behind_lost(seq);
            }
            // A probe is useful at any age.
            let is_probe = situation.timer.is_probe(seq);
            let useful_age = situation.mode.delivery.useful_age().filter(|_| !is_probe);
            let needed_age = situation.mode.delivery.needed_age().filter(|_| !is_probe);
            // The peer drops the missing packets before that packet when that packet is due.
            let behind = buffer.sent_origin(run_end);
            let next = buffer.get(seq.next()).map(|packet| packet.origin);
            let Some(packet) = buffer.get_mut(seq) else { continue };
            let budget = self.budget.as_ref().filter(|_| !is_probe);
            if budget.is_some_and(|budget| budget.is_wasted_on(now, packet.origin)) {
                continue;
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
            match self.policy.decide(now, &reported, &view) {
                Decision::Suppress => self.counts.old += 1,
                Decision::TooLate => self.counts.too_late += 1,
                Decision::Retransmit { copies, spacing } => {
                    packet.last_retransmit = Some(now);
                    packet.retransmissions += 1;
                    for n in 1..=copies {
                        self.copies.plan(now + spacing * n, seq);
                    }
                    return Some(seq);
                }
            }
        }
        None
    }

    /// A copy that is due, unless the packet was acknowledged or dropped meanwhile.
    fn choose_copy(&mut self, now: Instant, buffer: &SendBuffer) -> Option<SeqNo> {
        while let Some(seq) = self.copies.take(now) {
            if buffer.is_in_flight(seq) {
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
