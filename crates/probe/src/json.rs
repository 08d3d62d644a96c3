//! A measurement and its recommendation as JSON. Names end with their unit; a value that was not
//! measured is `null`. New names may come; the meaning of a name stays as long as `schema` does.

use std::time::Duration;

use punctual_units::Bitrate;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::both_ends::BothEnds;
use crate::expect::Expected;
use crate::measurement::{
    Congestion, Limit, Measurement, ProbePeer, RateVerdict, StepKind, StepResult, TimeDistribution,
};
use crate::recommend::{Buffer, LinkKind, NotEnough, Recommendation};
use crate::uris::Uris;

/// Everything about a probe as one JSON object of the schema `punctual-probe/1`:
///
/// - `schema`, `peer` (`punctual` or `other`), `duration_s`
/// - `rtt_ms`, `delay_variation_ms`: `samples`, `min`, `median`, `p95`, `p99`, `max`;
///   `rtt_variance_ms`, `rtt_spikes`
/// - `watched_s`, `troubled_s`: of the rates that the link carried without congestion
/// - `loss`: `packets`, `lost`, `share`, `low`, `high`; shares are 0 to 1
/// - `bursts`: `runs`, `mean_packets`, `longest_packets`, `longest_ms`, `share_in_bursts`
/// - `reordering`: `share`, `distance_packets`; `duplicate_share`, `retransmission_loss_share`,
///   `return_loss_share`, `return_loss_again_share`
/// - `steps`: `rate_bps`, `time_s`, `soak`, `delivered_bps`, `loss_share`, `rtt_ms`, `verdict`
///   (`clear`, `congested`, `unfinished`), `sign` (of congestion: `kind` and its figure)
/// - `changes`: whether the link changes from second to second; `sustained_bps`: carried whenever
///   it was tried for a while
/// - `usable_bps`, `limit` (`kind`: `congested`, `max_rate`, `time`, `stopped`), `capacity_bps`,
///   `largest_payload_bytes`, `missing` (`what`, `why`)
/// - `recommendation`, or `null` with `no_recommendation` saying why: `link`, `latency_ms`,
///   `stream_rate_bps`, `max_bandwidth_bps`, `overhead_percent`, `payload_bytes`,
///   `receive_buffer` and `send_buffer` (`packets`, `bytes`), `reorder_tolerance_packets`,
///   `retransmit_algorithm` (libsrt's number), `expected` (`unrecovered_share`, `at_most`,
///   `seen_share`, `rounds`), `why` (an object from setting to sentence), `warnings`, `uris`
/// - in it also `both_ends`, better settings where both ends are Punctual, or `null`:
///   `latency_ms`, `retransmit_algorithm` (`deadline`), `rounds`, `overhead_share`,
///   `loss_target_share`, `receive_buffer`, `send_buffer`, `expected`; in `uris` those of Punctual
///   go by it
pub fn document(
    measurement: &Measurement,
    recommendation: Result<(&Recommendation, &Uris), NotEnough>,
) -> Value {
    let mut all = measured(measurement);
    match recommendation {
        Ok((recommendation, uris)) => {
            all.insert("recommendation".to_owned(), recommended(recommendation, uris));
        }
        Err(error) => {
            all.insert("recommendation".to_owned(), Value::Null);
            all.insert("no_recommendation".to_owned(), Value::String(error.to_string()));
        }
    }
    Value::Object(all)
}

fn measured(measurement: &Measurement) -> Map<String, Value> {
    let loss = &measurement.losses.total;
    let value = json!({
        "schema": "punctual-probe/1",
        "peer": match measurement.peer {
            ProbePeer::Punctual => "punctual",
            ProbePeer::Other => "other",
        },
        "duration_s": measurement.duration.as_secs_f64(),
        "rtt_ms": measurement.delay.rtt.as_ref().map(MillisecondTimes::of),
        "rtt_variance_ms": ms(measurement.delay.rtt_variance),
        "rtt_spikes": measurement.delay.spikes,
        "delay_variation_ms": measurement.delay.variation.as_ref().map(MillisecondTimes::of),
        "watched_s": measurement.watched.time.as_secs_f64(),
        "troubled_s": measurement.watched.troubled.as_secs_f64(),
        "loss": {
            "packets": loss.packets,
            "lost": loss.lost,
            "share": loss.share,
            "low": loss.interval.0,
            "high": loss.interval.1,
        },
        "bursts": measurement.losses.bursts.map(|bursts| json!({
            "runs": bursts.runs,
            "mean_packets": bursts.mean,
            "longest_packets": bursts.longest,
            "longest_ms": ms(bursts.longest_time),
            "share_in_bursts": bursts.share_in_bursts,
        })),
        "reordering": measurement.reordering.map(|reordering| json!({
            "share": reordering.share,
            "distance_packets": reordering.distance,
        })),
        "duplicate_share": measurement.duplicates,
        "retransmission_loss_share": measurement.losses.of_retransmissions,
        "return_loss_share": measurement.return_path.loss,
        "return_loss_again_share": measurement.return_path.loss_again,
        "steps": measurement.rates.steps.iter().map(step).collect::<Vec<_>>(),
        "changes": measurement.changes,
        "sustained_bps": measurement.rates.sustained.map(Bitrate::as_bits_per_sec),
        "usable_bps": measurement.rates.usable.map(Bitrate::as_bits_per_sec),
        "limit": limit(measurement.rates.limit),
        "capacity_bps": measurement.rates.capacity.map(Bitrate::as_bits_per_sec),
        "largest_payload_bytes": measurement.largest_payload,
        "missing": measurement
            .missing
            .iter()
            .map(|missing| json!({ "what": missing.what, "why": missing.why }))
            .collect::<Vec<_>>(),
    });
    match value {
        Value::Object(all) => all,
        _ => Map::new(),
    }
}

fn recommended(recommendation: &Recommendation, uris: &Uris) -> Value {
    let why: Map<String, Value> = recommendation
        .why
        .iter()
        .map(|why| (why.setting.to_owned(), Value::String(why.text.clone())))
        .collect();
    json!({
        "link": match recommendation.kind {
            LinkKind::Steady => "steady",
            LinkKind::Mobile => "mobile",
        },
        "latency_ms": ms(recommendation.latency),
        "stream_rate_bps": recommendation.stream_rate.as_bits_per_sec(),
        "max_bandwidth_bps": recommendation.max_bandwidth.as_bits_per_sec(),
        "overhead_percent": recommendation.overhead_percent,
        "payload_bytes": recommendation.payload,
        "receive_buffer": buffer(recommendation.receive_buffer),
        "send_buffer": buffer(recommendation.send_buffer),
        "reorder_tolerance_packets": recommendation.reorder_tolerance,
        "retransmit_algorithm": recommendation.algorithm.number(),
        "expected": expected(&recommendation.expected),
        "both_ends": recommendation.both_ends.as_ref().map(both_ends),
        "why": why,
        "warnings": recommendation.warnings,
        "uris": uris_of(uris),
    })
}

fn uris_of(uris: &Uris) -> Value {
    let mut all = json!({
        "punctual": uris.punctual,
        "punctual_listener": uris.punctual_listener,
    });
    if let Some(others) = &uris.others {
        all["srt_live_transmit"] = json!(others.srt_live_transmit);
        all["srt_live_transmit_listener"] = json!(others.srt_live_transmit_listener);
        all["ffmpeg"] = json!(others.ffmpeg);
        all["obs"] = json!(others.obs);
    }
    all
}

fn both_ends(both_ends: &BothEnds) -> Value {
    let need = &both_ends.need;
    json!({
        "latency_ms": ms(need.latency),
        "retransmit_algorithm": "deadline",
        "rounds": need.rounds,
        "overhead_share": need.overhead,
        "loss_target_share": need.sender_target,
        "receive_buffer": buffer(both_ends.receive_buffer),
        "send_buffer": buffer(both_ends.send_buffer),
        "expected": expected(&both_ends.expected),
    })
}

fn expected(expected: &Expected) -> Value {
    json!({
        "unrecovered_share": expected.share,
        "at_most": expected.at_most,
        "seen_share": expected.seen,
        "rounds": expected.rounds,
    })
}

fn buffer(buffer: Buffer) -> Value {
    json!({ "packets": buffer.packets, "bytes": buffer.bytes })
}

fn step(step: &StepResult) -> Value {
    let (verdict, cause) = match step.verdict {
        RateVerdict::Clear => ("clear", Value::Null),
        RateVerdict::Congested(cause) => ("congested", sign(cause)),
        RateVerdict::Unfinished => ("unfinished", Value::Null),
    };
    json!({
        "rate_bps": step.rate.as_bits_per_sec(),
        "time_s": step.time.as_secs_f64(),
        "soak": step.kind == StepKind::Sustained,
        "delivered_bps": step.delivered.as_bits_per_sec(),
        "loss_share": step.loss,
        "rtt_ms": step.rtt.map(ms),
        "verdict": verdict,
        "sign": cause,
    })
}

fn limit(limit: Limit) -> Value {
    match limit {
        Limit::Congested { at, sign: cause } => {
            json!({ "kind": "congested", "at_bps": at.as_bits_per_sec(), "sign": sign(cause) })
        }
        Limit::MaxRate => json!({ "kind": "max_rate" }),
        Limit::Time => json!({ "kind": "time" }),
        Limit::Stopped => json!({ "kind": "stopped" }),
    }
}

fn sign(sign: Congestion) -> Value {
    match sign {
        Congestion::Loss { share } => json!({ "kind": "loss", "share": share }),
        Congestion::Queue { delay } => json!({ "kind": "queue", "delay_ms": ms(delay) }),
        Congestion::Throughput { delivered } => {
            json!({ "kind": "throughput", "delivered_bps": delivered.as_bits_per_sec() })
        }
        Congestion::Backlog { waiting } => {
            json!({ "kind": "backlog", "waiting_ms": ms(waiting) })
        }
    }
}

/// A distribution in milliseconds.
#[derive(Serialize)]
struct MillisecondTimes {
    samples: u64,
    min: f64,
    median: f64,
    p95: f64,
    p99: f64,
    max: f64,
}

impl MillisecondTimes {
    fn of(times: &TimeDistribution) -> Self {
        Self {
            samples: times.samples,
            min: ms(times.min),
            median: ms(times.median),
            p95: ms(times.p95),
            p99: ms(times.p99),
            max: ms(times.max),
        }
    }
}

/// Milliseconds, to the microsecond.
#[expect(clippy::cast_precision_loss, reason = "times of a probe are below 2^53 microseconds")]
fn ms(time: Duration) -> f64 {
    time.as_micros() as f64 / 1_000.0
}
