//! The figures of a link, from the steps that represent it.

use std::time::Duration;

use crate::events::LossEvents;
use crate::measurement::{
    LossBursts, Losses, PacketLoss, ProbePeer, Reordering, TimeDistribution, Unmeasured,
};
use crate::report::Totals;
use crate::step::{SenderTotals, Step, float, median};

pub(crate) fn rtt(steps: &[&Step]) -> Option<TimeDistribution> {
    TimeDistribution::of(steps.iter().flat_map(|step| step.rtts()).map(|&us| us.into()).collect())
}

/// The distribution of the one-way delay beyond its minimum.
pub(crate) fn delay_variation(steps: &[&Step]) -> Option<TimeDistribution> {
    let transits = || steps.iter().flat_map(|step| step.transits());
    let least = i64::from(*transits().min()?);
    let beyond = |&us: &i32| u64::try_from(i64::from(us) - least).unwrap_or(0);
    TimeDistribution::of(transits().map(beyond).collect())
}

/// Number of times that the round trip rose far above its median.
pub(crate) fn spikes(steps: &[&Step], rtt: Option<&TimeDistribution>) -> u64 {
    let Some(rtt) = rtt else { return 0 };
    let bound = (rtt.median * 2).max(rtt.median + SPIKE);
    let high = |us: &u32| Duration::from_micros((*us).into()) > bound;
    let mut spikes = 0;
    for step in steps {
        let mut before = false;
        for now in step.rtts().iter().map(high) {
            spikes += u64::from(now && !before);
            before = now;
        }
    }
    spikes
}

pub(crate) fn events(steps: &[&Step]) -> LossEvents {
    let mut all = LossEvents::default();
    for step in steps {
        all.merge(step.loss_events());
    }
    all
}

/// The losses; `reported` if the receiver told of them.
pub(crate) fn losses(steps: &[&Step], reported: bool) -> Losses {
    let events = events(steps);
    let lost = steps.iter().map(|step| step.counts().lost()).sum();
    Losses {
        total: PacketLoss::of(lost, steps.iter().map(|step| step.counts().received).sum()),
        bursts: reported.then(|| bursts(steps, &events)).flatten(),
        of_retransmissions: retransmission_loss(steps),
        events,
    }
}

fn bursts(steps: &[&Step], events: &LossEvents) -> Option<LossBursts> {
    let (first, last) = totals(steps)?;
    let since = |field: fn(&Totals) -> u64| field(&last).saturating_sub(field(&first));
    let reordered = since(|totals| totals.reordered);
    // A reordered packet leaves a gap of one as a rule.
    let gaps = since(|totals| totals.gaps).saturating_sub(reordered);
    let single = since(|totals| totals.gaps_single).saturating_sub(reordered);
    let lost = since(|totals| totals.lost).saturating_sub(reordered);
    if lost == 0 {
        return None;
    }
    let longest_time = events.longest();
    Some(LossBursts {
        runs: gaps.max(1),
        mean: float(lost) / float(gaps.max(1)),
        longest: steps.iter().map(|step| step.longest_run()).max().unwrap_or(1),
        longest_time,
        share_in_bursts: 1.0 - float(single.min(lost)) / float(lost),
    })
}

pub(crate) fn reordering(steps: &[&Step], distance: u32) -> Reordering {
    let reordered: u64 = steps.iter().map(|step| step.counts().reordered).sum();
    let received: u64 = steps.iter().map(|step| step.counts().received).sum();
    let share = float(reordered) / float(received.max(1));
    Reordering { share, distance: if reordered > 0 { distance } else { 0 } }
}

/// Share of packets that the link duplicated. Needless retransmissions are not the link's fault,
/// and do not count.
pub(crate) fn duplicates(steps: &[&Step]) -> f64 {
    let Some((first, last)) = totals(steps) else { return 0.0 };
    let since = |field: fn(&Totals) -> u64| field(&last).saturating_sub(field(&first));
    let needless = since(|totals| totals.retransmitted)
        .saturating_sub(since(|totals| totals.lost).saturating_sub(since(|t| t.dropped)));
    let copies = since(|totals| totals.duplicate).saturating_sub(needless);
    float(copies) / float(since(|totals| totals.received).max(1))
}

fn retransmission_loss(steps: &[&Step]) -> Option<f64> {
    let mut sent = 0;
    let mut arrived = 0;
    for step in steps {
        let Some((first, last)) = step.receiver() else { continue };
        let Some((before, after)) = step.sender() else { continue };
        sent += after.retransmitted.saturating_sub(before.retransmitted);
        arrived += last.retransmitted.saturating_sub(first.retransmitted);
    }
    (sent >= FEW).then(|| (1.0 - float(arrived) / float(sent)).clamp(0.0, 1.0))
}

/// Share of packets lost on the way back, by the numbers of the ACKs that came.
pub(crate) fn return_loss(steps: &[&Step]) -> Option<f64> {
    let sender = sender(steps);
    (sender.acks_expected >= FEW).then(|| float(sender.acks_missed) / float(sender.acks_expected))
}

/// The probability that an ACK is lost if the one before was.
pub(crate) fn return_loss_again(steps: &[&Step]) -> Option<f64> {
    let sender = sender(steps);
    let alone = float(sender.ack_gaps) / float(sender.acks_missed.max(1));
    (sender.acks_missed >= FEW).then(|| (1.0 - alone).clamp(0.0, 1.0))
}

pub(crate) fn missing(peer: ProbePeer, steps: &[&Step]) -> Vec<Unmeasured> {
    let mut missing = Vec::new();
    let mut add = |what, why| missing.push(Unmeasured { what, why });
    if peer == ProbePeer::Other {
        add("RTT spikes", "the peer's ACKs tell a smoothed RTT, in which short spikes do not show");
        add("exact loss", "retransmissions are counted, and some of them may have been needless");
        for what in ["bursts of loss", "reordering", "duplicates", "one-way delay variation"] {
            add(what, "only the receiving end sees that: run `punctual probe --listen` there");
        }
        add("the largest payload", "another program is not sent messages of odd sizes");
    } else if retransmission_loss(steps).is_none() {
        add("loss of retransmissions", "too few were needed to tell");
    }
    if median(&steps.iter().filter_map(|step| step.rtt()).collect::<Vec<_>>()).is_none() {
        add("round-trip time", "no ACK was answered");
    }
    missing
}

/// The sender's counts over the steps.
fn sender(steps: &[&Step]) -> SenderTotals {
    let mut sum = SenderTotals::default();
    for (first, last) in steps.iter().filter_map(|step| step.sender()) {
        sum.retransmitted += last.retransmitted.saturating_sub(first.retransmitted);
        sum.acks_expected += last.acks_expected.saturating_sub(first.acks_expected);
        sum.acks_missed += last.acks_missed.saturating_sub(first.acks_missed);
        sum.ack_gaps += last.ack_gaps.saturating_sub(first.ack_gaps);
    }
    sum
}

/// The receiver's counts over the steps: their sum, and zero before it.
fn totals(steps: &[&Step]) -> Option<(Totals, Totals)> {
    let mut sum: Option<Totals> = None;
    for (first, last) in steps.iter().filter_map(|step| step.receiver()) {
        let sum = sum.get_or_insert_default();
        sum.add_since(&first, &last);
    }
    sum.map(|sum| (Totals::default(), sum))
}

/// A round trip that exceeds the median by this, and twice the median, is a spike.
const SPIKE: Duration = Duration::from_millis(50);

/// A share is not told from fewer than this.
const FEW: u64 = 50;
