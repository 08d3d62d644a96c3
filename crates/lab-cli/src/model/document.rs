//! The answers as JSON.

use punctual_probe::model::glitch::{Answer, Setting, SolvableFigure, WantedTime};
use serde_json::{Value, json};

use super::Answered;
use super::tcp::Rival;

/// The schema `punctual-model/1`: `setting`: `return_loss_share` (`null`: as `loss_share`),
/// `burst_packets`, `jitter_ms`, `block_bytes`, `nak_datagrams`, `last_nak_datagrams`, `margin_ms`
/// (`null`: that of the NAK timers), `readchunk_ms`, `whole_readchunks`; `wanted`: `mean_time_s`,
/// `overhead_share`; `solved`: the figure that was solved for, or `null`; `varied`: figures;
/// `answers`: a list of `rate_bps`, `loss_share`, `rtt_ms`, `buffer_ms`, `copies`, `rounds`,
/// `mean_time_s` (`null`: no glitches), `glitch_share` (of readchunks), `late_share`,
/// `overhead_share`, `copies_share`, `naks_per_packet`, `is_enough`, `is_at_bound`; `tcp`:
/// `mathis_bps`, `pftk_bps`, `cubic_bps`, `first_second_s`, or `null`.
pub(super) fn document(answered: &Answered) -> Value {
    let mut document = json!({ "schema": "punctual-model/1" });
    let Answered { question, setting, answers } = answered;
    document["setting"] = settings(setting);
    document["wanted"] =
        json!({ "mean_time_s": question.mean_time, "overhead_share": question.overhead });
    document["solved"] = json!(answers.solved.map(name));
    document["varied"] = json!(answers.varied.iter().map(|it| name(*it)).collect::<Vec<_>>());
    document["answers"] = answers.answers.iter().map(figures).collect();
    document["tcp"] = json!(Rival::of(answered).map(|rival| rival.document()));
    document
}

fn settings(setting: &Setting) -> Value {
    json!({
        "return_loss_share": setting.return_loss,
        "burst_packets": setting.burst,
        "jitter_ms": setting.jitter.as_secs_f64() * 1e3,
        "block_bytes": setting.block,
        "nak_datagrams": setting.datagrams,
        "last_nak_datagrams": setting.last_datagrams,
        "margin_ms": setting.margin.map(|margin| margin.as_secs_f64() * 1e3),
        "readchunk_ms": setting.readchunk.as_secs_f64() * 1e3,
        "whole_readchunks": setting.wanted == WantedTime::ByChunk,
    })
}

fn figures(answer: &Answer) -> Value {
    let Answer { conditions, outcome, is_enough, is_at_bound } = answer;
    json!({
        "rate_bps": conditions.rate.as_bits_per_sec(),
        "loss_share": conditions.loss,
        "rtt_ms": conditions.rtt.as_secs_f64() * 1e3,
        "buffer_ms": conditions.buffer.as_secs_f64() * 1e3,
        "copies": conditions.copies,
        "rounds": outcome.rounds,
        "mean_time_s": outcome.mean_time,
        "glitch_share": outcome.glitch_probability,
        "late_share": outcome.late,
        "overhead_share": outcome.overhead,
        "copies_share": outcome.copies,
        "naks_per_packet": outcome.naks,
        "is_enough": is_enough,
        "is_at_bound": is_at_bound,
    })
}

fn name(figure: SolvableFigure) -> &'static str {
    match figure {
        SolvableFigure::Buffer => "buffer",
        SolvableFigure::Loss => "loss",
        SolvableFigure::RoundTrip => "rtt",
        SolvableFigure::Rate => "rate",
    }
}
