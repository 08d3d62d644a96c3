//! The reasons of a recommendation, in sentences.

use punctual_units::{Bitrate, DisplayDuration, share_in_percent};

use crate::measurement::{
    Congestion, Limit, Measurement, ProbePeer, RateVerdict, StepKind, StepResult,
};
use crate::recommend::{Algorithm, Constraints, LinkKind, Reasons, Recommendation, Why};
use crate::step::scaled;

/// Adds to a recommendation why it is so, and what should be known.
pub(crate) fn explain(
    recommendation: &mut Recommendation,
    measurement: &Measurement,
    constraints: &Constraints,
    reasons: &Reasons,
) {
    let why = [
        ("latency", latency(recommendation, measurement, constraints, reasons)),
        ("stream_rate", rate(recommendation, measurement, constraints)),
        ("max_bandwidth", bandwidth(recommendation)),
        ("payload", payload(recommendation, measurement)),
        ("receive_buffer", buffers(recommendation)),
        ("reorder_tolerance", reordering(recommendation, measurement)),
        ("algorithm", algorithm(recommendation, measurement)),
        ("expected", expected(recommendation, measurement)),
        ("both_ends", both_ends(recommendation, measurement)),
    ];
    recommendation.why = why.map(|(setting, text)| Why { setting, text }).into();
    recommendation.warnings = warnings(recommendation, measurement, constraints);
}

/// Describes a sign of congestion, as the end of a sentence.
pub fn describe(sign: Congestion) -> String {
    match sign {
        Congestion::Loss { share } => {
            format!("{} of the packets were lost", share_in_percent(share))
        }
        Congestion::Queue { delay } => {
            format!("packets queued for {:#} all the time", DisplayDuration(delay))
        }
        Congestion::Throughput { delivered } if delivered == Bitrate::ZERO => {
            "nothing arrived for a time".to_owned()
        }
        Congestion::Throughput { delivered } => format!("only {delivered:#} arrived"),
        Congestion::Backlog { waiting } => {
            format!("the sender had {:#} of the stream waiting", DisplayDuration(waiting))
        }
    }
}

fn latency(
    recommendation: &Recommendation,
    measurement: &Measurement,
    constraints: &Constraints,
    reasons: &Reasons,
) -> String {
    let rtt = measurement.delay.rtt.map_or_else(Default::default, |rtt| rtt.median);
    let shown = |time| format!("{:#}", DisplayDuration(time));
    let kind = match recommendation.kind {
        LinkKind::Steady => "a steady link",
        LinkKind::Mobile => "a link that varies as mobile ones do",
    };
    let times = recommendation.latency.as_secs_f64() / rtt.as_secs_f64().max(1e-6);
    let mut text = if times < 20.0 {
        format!("{times:.1} times the RTT of {}; ", shown(rtt))
    } else {
        format!("the RTT is only {}; ", shown(rtt))
    };
    let latency = recommendation.latency;
    let margin = std::time::Duration::from_millis(10);
    if reasons.by_spike + margin >= latency && reasons.by_spike > reasons.by_rtt {
        text += &format!(
            "the round trip rose to {}, and a lower latency would not outlast that",
            shown(reasons.highest)
        );
    } else if reasons.by_burst + margin >= latency && reasons.by_burst > reasons.by_rtt {
        text += &format!(
            "at worst nothing came through for {}, and the losses of that time need up to three \
             round trips more",
            shown(measurement.losses.events.longest())
        );
    } else if reasons.by_rtt + margin >= latency {
        text += &format!("{} times is the rule for {kind}", reasons.factor);
    } else if measurement.changes && recommendation.expected.seen > constraints.target {
        text += &format!(
            "more would hardly lower the {} that came too late while the link had no room",
            share_in_percent(recommendation.expected.seen)
        );
    } else {
        text += &format!(
            "with {} of loss, {} rounds of retransmission leave no more than {} unrecovered",
            share_in_percent(measurement.losses.total.share),
            recommendation.expected.rounds,
            share_in_percent(constraints.target.max(recommendation.expected.seen))
        );
    }
    text
}

fn rate(
    recommendation: &Recommendation,
    measurement: &Measurement,
    constraints: &Constraints,
) -> String {
    let usable = measurement.rates.usable.unwrap_or_default();
    let limit = match measurement.rates.limit {
        Limit::Congested { at, sign } if at > usable => {
            format!("at {at:#}, {}", describe(sign))
        }
        Limit::Congested { .. } => "more was too much when it was tried for longer".to_owned(),
        Limit::MaxRate => "no higher rate was tried".to_owned(),
        Limit::Time => "there was no time to try a higher one".to_owned(),
        Limit::Stopped => "the probe ended before a higher one was tried".to_owned(),
    };
    let text = format!("the link carried {usable:#} ({limit})");
    match constraints.rate {
        Some(wish) if wish <= recommendation.stream_rate => {
            format!("as wished; {text}")
        }
        Some(wish) => format!("less than the {wish:#} that were wished: {text}"),
        None => format!("{text}, and a fifth of that is kept for retransmissions"),
    }
}

fn bandwidth(recommendation: &Recommendation) -> String {
    format!(
        "{} % above the stream for retransmissions; without a limit they would congest the link \
         themselves",
        recommendation.overhead_percent
    )
}

fn payload(recommendation: &Recommendation, measurement: &Measurement) -> String {
    let packets = recommendation.payload / 188;
    match measurement.largest_payload {
        Some(largest) if largest >= 1_456 => {
            format!("{packets} MPEG-TS packets; the path takes datagrams of 1500 bytes")
        }
        Some(largest) => format!(
            "{packets} MPEG-TS packets; larger payloads than {largest} bytes did not arrive"
        ),
        None => format!("{packets} MPEG-TS packets, the usual; messages of this size arrived"),
    }
}

fn buffers(recommendation: &Recommendation) -> String {
    let (receive, send) = (recommendation.receive_buffer, recommendation.send_buffer);
    let rule = "the receiver holds the latency and half a round trip at the maximum bandwidth";
    if receive.packets.max(send.packets) > DEFAULT_BUFFER {
        format!("{rule}; libsrt's default of {DEFAULT_BUFFER} packets is too small for that")
    } else {
        format!("{rule}; libsrt's default of {DEFAULT_BUFFER} packets is enough, Punctual's grows")
    }
}

fn reordering(recommendation: &Recommendation, measurement: &Measurement) -> String {
    match measurement.reordering {
        None => "the peer does not report reordering".to_owned(),
        Some(seen) if recommendation.reorder_tolerance > 0 => format!(
            "{} of the packets were reordered, by up to {} others; waiting for them saves needless \
             retransmissions",
            share_in_percent(seen.share),
            seen.distance
        ),
        Some(seen) if seen.share > 0.0 => {
            "too few packets were reordered to wait for them".to_owned()
        }
        Some(_) => "no packet was reordered: a gap is a loss and is reported at once".to_owned(),
    }
}

fn algorithm(recommendation: &Recommendation, measurement: &Measurement) -> String {
    match recommendation.algorithm {
        Algorithm::Efficient => "about half the retransmissions of the aggressive one; at this \
             latency it recovers as much as is wanted"
            .to_owned(),
        Algorithm::Aggressive => format!(
            "retransmitting on every NAK saves latency here, and at a loss of {} it costs little",
            share_in_percent(measurement.losses.total.share)
        ),
    }
}

fn expected(recommendation: &Recommendation, measurement: &Measurement) -> String {
    let expected = recommendation.expected;
    let rounds = match expected.rounds {
        1 => "one round".to_owned(),
        rounds => format!("{rounds} rounds"),
    };
    let lost = share_in_percent(measurement.losses.total.share);
    let mut text = if measurement.changes {
        format!(
            "this link changes from second to second: a stream loses nearly nothing most of the \
             time, and much while the link has no room for it; this is the mean over such times, \
             reckoned from {} seen and half a second more, because so short a look does not show \
             all; of {lost} lost on the way, {rounds} of retransmission bring back the rest",
            share_in_percent(expected.seen),
        )
    } else {
        format!(
            "of {lost} lost on the way, {rounds} of retransmission bring back all but {}",
            share_in_percent(expected.share)
        )
    };
    text += &format!(
        "; for how long it was measured, up to {} must be reckoned with",
        share_in_percent(expected.at_most)
    );
    text
}

fn both_ends(recommendation: &Recommendation, measurement: &Measurement) -> String {
    let Some(both_ends) = &recommendation.both_ends else {
        let why = if measurement.changes {
            "the link's capacity changes from second to second, and that sets the latency, not \
             the number of rounds"
        } else {
            "the longest round trips and losses that were seen set the latency, not the number \
             of rounds"
        };
        return format!("deadline-aware retransmission needs as much here: {why}");
    };
    let need = &both_ends.need;
    let rounds = match need.rounds {
        1 => "one round".to_owned(),
        rounds => format!("{rounds} rounds"),
    };
    format!(
        "deadline-aware retransmission, which both ends must know: there is time for {rounds} of \
         retransmission; about {} of the packets are retransmitted, and {} stay lost",
        share_in_percent(need.overhead),
        share_in_percent(both_ends.expected.share)
    )
}

fn warnings(
    recommendation: &Recommendation,
    measurement: &Measurement,
    constraints: &Constraints,
) -> Vec<String> {
    let mut warnings = Vec::new();
    if recommendation.expected.share > constraints.target {
        let reason = if recommendation.expected.seen <= constraints.target {
            "cannot be promised on a link that changes".to_owned()
        } else {
            format!("is out of reach within {:#}", DisplayDuration(constraints.max_latency))
        };
        warnings.push(format!(
            "the wanted {} of unrecovered packets {reason}: expect {}",
            share_in_percent(constraints.target),
            share_in_percent(recommendation.expected.share)
        ));
    }
    warnings.extend(untried(recommendation, measurement));
    if measurement.peer == ProbePeer::Other {
        warnings.push(
            "judged from the sender's side alone: spikes and bursts do not show there; with \
             `punctual probe --listen` at the other end the advice is better"
                .to_owned(),
        );
    }
    if measurement.losses.total.share > 0.3 {
        warnings.push("more than 30 % of the packets are lost: this link is not fit".to_owned());
    }
    warnings
}

/// A warning, if the recommended rate was not sustained.
fn untried(recommendation: &Recommendation, measurement: &Measurement) -> Option<String> {
    let rate = recommendation.stream_rate;
    if measurement.rates.sustained.is_some_and(|sustained| rate <= sustained) {
        return None;
    }
    let sustained =
        || measurement.rates.steps.iter().filter(|step| step.kind == StepKind::Sustained);
    let failed = |step: &&StepResult| matches!(step.verdict, RateVerdict::Congested(_));
    let Some(least) = sustained().filter(failed).map(|step| step.rate).min() else {
        return Some(format!(
            "{rate:#} was not tried for a while: it rests on the steps of the ramp alone"
        ));
    };
    Some(format!(
        "no steady rate was found: the link carried {least:#} for seconds but not for a while; \
         {rate:#} is a guess below that which was not tried itself; probe again from a lower rate \
         (--max-rate {:#}), or for longer (--duration)",
        scaled(rate, 1.25)
    ))
}

/// libsrt's buffers, packets.
pub(crate) const DEFAULT_BUFFER: usize = 8_192;
