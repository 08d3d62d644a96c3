//! Better settings where both ends are Punctual: deadline-aware retransmission.

use std::time::Duration;

use crate::expect::{Expected, Timed};
use crate::model::Need;
use crate::recommend::{Buffer, GRAIN, LONGEST_LATENCY, LinkKind, SettingsBasis, rounded_up};

/// How to set up a stream between two ends that know deadline-aware retransmission; the rest is as
/// for any other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BothEnds {
    /// The latency, and the loss recovery within it.
    pub need: Need,
    /// Least buffer of the end that receives \[rcvbuf\].
    pub receive_buffer: Buffer,
    /// Least buffer of the end that sends \[sndbuf\].
    pub send_buffer: Buffer,
    /// The loss to be expected.
    pub expected: Expected,
}

/// Settings that are better than those of any SRT program with `latency` and the expected loss
/// `others`: no more loss with less latency, or less loss with no more latency.
pub(crate) fn better(
    plan: &SettingsBasis<'_>,
    latency: Duration,
    others: &Expected,
) -> Option<BothEnds> {
    let least = rounded_up(least(plan));
    let mut now = least;
    while now < latency {
        if let Some((need, expected)) = within(plan, now) {
            return Some(with_buffers(plan, need, expected));
        }
        now += GRAIN;
    }
    // No less latency is enough: no more of it, then, if it does better.
    let (need, expected) = need(plan, latency);
    (least <= latency && expected.seen <= others.seen).then(|| with_buffers(plan, need, expected))
}

/// The least latency to consider: it has time for two rounds, also after the worst loss that was
/// measured. A link whose capacity changes from second to second needs as many round trips as with
/// any other algorithm, because it may become worse than it was. If only the round trips vary, the
/// model's own figures are used, as by `punctual latency`.
fn least(plan: &SettingsBasis<'_>) -> Duration {
    let rounds = plan.timed_rounds();
    let two_rounds = rounds.detection + rounds.rtt + rounds.period() + rounds.last_nak();
    let reasons = plan.reasons();
    let least = two_rounds.max(reasons.by_spike).max(reasons.burst + two_rounds);
    let least = match plan.kind {
        LinkKind::Mobile if plan.measurement.changes => least.max(reasons.by_rtt),
        LinkKind::Mobile | LinkKind::Steady => least,
    };
    least.min(LONGEST_LATENCY)
}

/// The needs at this latency, if it suffices.
fn within(plan: &SettingsBasis<'_>, latency: Duration) -> Option<(Need, Expected)> {
    let (need, expected) = need(plan, latency);
    plan.suffices(&expected).then_some((need, expected))
}

/// The needs at this latency. Copies of the last retransmission are not counted on: their number
/// depends on the sender's budget, and if the maximum bandwidth delays retransmissions, needless
/// NAKs use up most of it.
fn need(plan: &SettingsBasis<'_>, latency: Duration) -> (Need, Expected) {
    let model = Timed { rounds: plan.timed_rounds(), copies: 0 };
    let expected = plan.expected_by(&model, latency);
    let need = Need {
        latency,
        rounds: model.rounds.within(latency),
        copies: 0,
        overhead: plan.measurement.losses.total.share * model.rounds.outcome(latency, 0).sent,
        missing: expected.seen,
        // A sender that knows it sends as many copies as that needs when more is lost than was.
        sender_target: plan.constraints.target.min(MOST_TARGET),
    };
    (need, expected)
}

fn with_buffers(plan: &SettingsBasis<'_>, need: Need, expected: Expected) -> BothEnds {
    BothEnds {
        need,
        receive_buffer: plan.receive_buffer(need.latency),
        send_buffer: plan.send_buffer(need.latency),
        expected,
    }
}

/// The greatest `losstarget`.
const MOST_TARGET: f64 = 0.1;
