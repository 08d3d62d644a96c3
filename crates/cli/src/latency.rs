//! `punctual latency`: the latency that a link needs, by the model.

use std::fmt::Write;

use punctual_probe::model::{Need, Needs, bound, needs};
use punctual_probe::percent;
use punctual_units::DisplayDuration;
use serde_json::{Value, json};

use crate::args::LatencyArgs;
use crate::exit::Failure;
use crate::print::print;

/// Computes the latency and prints it.
pub(crate) fn run(args: &LatencyArgs) -> Result<(), Failure> {
    let path = args.path().map_err(|error| Failure::usage(error.to_string()))?;
    let needs = needs(&path, args.target_loss, args.ceiling, args.max_latency);
    if args.json {
        print(format!("{:#}\n", document(args, &needs)))?;
    } else {
        print(text(args, &needs))?;
    }
    let [aggressive, efficient] = [&needs.aggressive, &needs.efficient].map(Option::is_some);
    if aggressive || efficient || !needs.deadline.is_empty() {
        return Ok(());
    }
    Err(Failure::runtime(format!(
        "{} of unrecovered packets is out of reach within {:#}; a longer --max-latency may help",
        percent(args.target_loss),
        DisplayDuration(args.max_latency)
    )))
}

fn text(args: &LatencyArgs, needs: &Needs) -> String {
    let mut text = format!("{}\n\n", question(args));
    if args.loss <= args.target_loss {
        text += "The link loses no more than that by itself: no retransmission is needed.\n";
        return text;
    }
    let head = ["retransmission", "latency", "rounds", "copies", "overhead", "unrecovered"];
    line(&mut text, head.map(str::to_owned));
    let mut name = "deadline";
    for need in &needs.deadline {
        line(&mut text, cells(name, need, Some(need.copies)));
        name = "";
    }
    if needs.deadline.is_empty() {
        line(&mut text, out_of_reach(name));
    }
    for (name, need) in [("aggressive", needs.aggressive), ("efficient", needs.efficient)] {
        line(&mut text, need.map_or_else(|| out_of_reach(name), |need| cells(name, &need, None)));
    }
    let _ = writeln!(
        text,
        "\nTo recover all of {} of loss at least {} must be retransmitted, whatever the algorithm.",
        percent(args.loss),
        percent(bound(args.loss))
    );
    if let Some(need) = needs.deadline.first() {
        text += "\nBetween two Punctual ends, to send and to listen:\n";
        ends(&mut text, &query(need, args.ceiling), need);
    }
    if let Some(need) = needs.efficient {
        text += "Between any SRT programs, efficient (FFmpeg and OBS count microseconds):\n";
        ends(&mut text, &format!("latency={}", need.latency.as_millis()), &need);
    }
    text
}

/// The URIs of both ends: the longer of their latencies holds.
fn ends(text: &mut String, keys: &str, need: &Need) {
    let _ = writeln!(text, "    'srt://host:4200?{keys}'");
    let _ = writeln!(text, "    'srt://:4200?latency={}'", need.latency.as_millis());
}

/// The question that the options ask, in a sentence.
fn question(args: &LatencyArgs) -> String {
    let mut text = format!(
        "Least latency for {} unrecovered, at a round trip of {:#}",
        percent(args.target_loss),
        DisplayDuration(args.rtt)
    );
    if !args.jitter.is_zero() {
        let _ = write!(text, " ± {:#}", DisplayDuration(args.jitter));
    }
    let (there, back) = (percent(args.loss), percent(args.loss_back()));
    if there == back {
        let _ = write!(text, " and {there} of loss both ways");
    } else {
        let _ = write!(text, ", {there} of loss there and {back} back");
    }
    if args.bursts > 1.0 {
        let _ = write!(text, ", {} packets in a row on the mean", args.bursts);
    }
    text
}

fn cells(name: &str, need: &Need, copies: Option<u32>) -> [String; 6] {
    [
        name.to_owned(),
        format!("{} ms", need.latency.as_millis()),
        need.rounds.to_string(),
        copies.map_or_else(|| "-".to_owned(), |copies| copies.to_string()),
        percent(need.overhead),
        percent(need.missing),
    ]
}

fn out_of_reach(name: &str) -> [String; 6] {
    let dash = || "-".to_owned();
    [name.to_owned(), "out of reach".to_owned(), dash(), dash(), dash(), dash()]
}

fn line(text: &mut String, [name, latency, rounds, copies, again, missing]: [String; 6]) {
    let _ =
        writeln!(text, "  {name:<14}{latency:>13}{rounds:>8}{copies:>8}{again:>12}{missing:>22}");
}

/// The keys of the sender's URI.
fn query(need: &Need, ceiling: Option<f64>) -> String {
    let pair = |(key, value): (&str, String)| format!("{key}={value}");
    need.deadline_keys(ceiling).into_iter().map(pair).collect::<Vec<_>>().join("&")
}

/// The schema `punctual-latency/1`: `rtt_ms`, `jitter_ms`, `loss_share`, `return_loss_share`,
/// `burst_packets`, `rate_bps`, `target_share`, `ceiling_share`, `bound_share`; `aggressive`,
/// `efficient`: `latency_ms`, `rounds`, `overhead_share`, `unrecovered_share`, or `null` where the
/// target is out of reach; `deadline`: a list of the same with `copies`, `loss_target_share` and
/// `keys` of a sender's URI, the least latency first.
fn document(args: &LatencyArgs, needs: &Needs) -> Value {
    let deadline = |need: &Need| {
        let mut value = figures(need);
        value["copies"] = json!(need.copies);
        value["loss_target_share"] = json!(need.sender_target);
        value["keys"] = json!(query(need, args.ceiling));
        value
    };
    json!({
        "schema": "punctual-latency/1",
        "rtt_ms": args.rtt.as_secs_f64() * 1_000.0,
        "jitter_ms": args.jitter.as_secs_f64() * 1_000.0,
        "loss_share": args.loss,
        "return_loss_share": args.loss_back(),
        "burst_packets": args.bursts,
        "rate_bps": args.rate.as_bits_per_sec(),
        "target_share": args.target_loss,
        "ceiling_share": args.ceiling,
        "bound_share": bound(args.loss),
        "aggressive": needs.aggressive.as_ref().map(figures),
        "efficient": needs.efficient.as_ref().map(figures),
        "deadline": needs.deadline.iter().map(deadline).collect::<Vec<_>>(),
    })
}

fn figures(need: &Need) -> Value {
    json!({
        "latency_ms": need.latency.as_millis(),
        "rounds": need.rounds,
        "overhead_share": need.overhead,
        "unrecovered_share": need.missing,
    })
}
