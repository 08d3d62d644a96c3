//! What does better where both ends are Punctual: deadline-aware retransmission.

use std::time::Duration;

use crate::expect::{Expected, Timed};
use crate::model::Need;
use crate::recommend::{Buffer, GRAIN, LONGEST_LATENCY, LinkKind, Plan, rounded_up};

/// How to set up a stream between two ends that know deadline-aware retransmission; the rest is as
/// for any other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BothEnds {
    /// The latency, and what is done within it.
    pub need: Need,
    /// Least buffer of the end that receives \[rcvbuf\].
    pub receive_buffer: Buffer,
    /// Least buffer of the end that sends \[sndbuf\].
    pub send_buffer: Buffer,
    /// What will stay lost.
    pub expected: Expected,
}

/// What is better than what any SRT program can do with `latency`, of which `others` is expected:
/// as little lost with less latency, or less lost with no more of it.
pub(crate) fn better(plan: &Plan<'_>, latency: Duration, others: &Expected) -> Option<BothEnds> {
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

/// The least latency that is to be thought of: that two requests can be answered in, also behind
/// what was worst while it was measured. A link whose room changes from second to second has as
/// many round trips as with any other algorithm: it may do worse than it did. Where round trips
/// merely vary, the model's own figures tell by how much, as those of `punctual latency` do.
fn least(plan: &Plan<'_>) -> Duration {
    let rounds = plan.timed_rounds();
    let two_rounds = rounds.detection + rounds.rtt + rounds.period() + rounds.last_request();
    let reasons = plan.reasons();
    let least = two_rounds.max(reasons.by_spike).max(reasons.burst + two_rounds);
    let least = match plan.kind {
        LinkKind::Mobile if plan.measurement.changes => least.max(reasons.by_rtt),
        LinkKind::Mobile | LinkKind::Steady => least,
    };
    least.min(LONGEST_LATENCY)
}

/// What is needed at this latency, if it is enough.
fn within(plan: &Plan<'_>, latency: Duration) -> Option<(Need, Expected)> {
    let (need, expected) = need(plan, latency);
    plan.suffices(&expected).then_some((need, expected))
}

/// What is needed at this latency. Copies of the last answer are not counted on: they are as many
/// as the sender's budget leaves, and where the maximum bandwidth keeps answers waiting, what is
/// asked for in vain takes most of that.
fn need(plan: &Plan<'_>, latency: Duration) -> (Need, Expected) {
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
        needs_ceiling: false,
    };
    (need, expected)
}

fn with_buffers(plan: &Plan<'_>, need: Need, expected: Expected) -> BothEnds {
    BothEnds {
        need,
        receive_buffer: plan.receive_buffer(need.latency),
        send_buffer: plan.send_buffer(need.latency),
        expected,
    }
}

/// What `losstarget` may be at most.
const MOST_TARGET: f64 = 0.1;
