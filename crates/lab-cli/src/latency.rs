//! `punctual-lab latency`: the latency that a link needs, by the model.

use std::fmt::Write;
use std::time::Duration;

use punctual_probe::model::{Need, Needs, bound, needs};
use punctual_probe::uris_of_needs;
use punctual_units::{DisplayDuration, share_in_percent};
use serde_json::{Value, json};

use crate::args::LatencyArgs;
use punctual_program::exit::Failure;
use punctual_program::output::print;

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
        share_in_percent(args.target_loss),
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
    line(&mut text, head.map(str::to_owned), "for");
    for (place, need) in needs.deadline.iter().enumerate() {
        let (name, use_for) = match place {
            0 => ("deadline", "Punctual at both ends"),
            _ => ("", "the same, with fewer copies"),
        };
        line(&mut text, cells(name, need, Some(need.copies)), use_for);
    }
    if needs.deadline.is_empty() {
        line(&mut text, out_of_reach("deadline"), "");
    }
    for (name, need, use_for) in [
        ("efficient", needs.efficient, "other programs: libsrt's default"),
        ("aggressive", needs.aggressive, "other programs, retransmitalgo=0"),
    ] {
        match need {
            Some(need) => line(&mut text, cells(name, &need, None), use_for),
            None => line(&mut text, out_of_reach(name), ""),
        }
    }
    let _ = writeln!(
        text,
        "\nTo recover all of {} of loss at least {} must be retransmitted, whatever the algorithm.",
        share_in_percent(args.loss),
        share_in_percent(bound(args.loss))
    );
    if let Some(uris) = uris_of_needs(needs, "host:4200") {
        let latency = needs.efficient.map_or(Duration::ZERO, |need| need.latency);
        text += &uris.text(latency);
    }
    text
}

/// The question that the options ask, in a sentence.
fn question(args: &LatencyArgs) -> String {
    let mut text = format!(
        "Least latency for {} unrecovered, at a round trip of {:#}",
        share_in_percent(args.target_loss),
        DisplayDuration(args.rtt)
    );
    if !args.jitter.is_zero() {
        let _ = write!(text, " ± {:#}", DisplayDuration(args.jitter));
    }
    let (there, back) = (share_in_percent(args.loss), share_in_percent(args.loss_back()));
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
        share_in_percent(need.overhead),
        share_in_percent(need.missing),
    ]
}

fn out_of_reach(name: &str) -> [String; 6] {
    let dash = || "-".to_owned();
    [name.to_owned(), "out of reach".to_owned(), dash(), dash(), dash(), dash()]
}

/// A line of the table; `use_for` says whose answer it is.
fn line(
    text: &mut String,
    [name, latency, rounds, copies, again, missing]: [String; 6],
    use_for: &str,
) {
    let line = format!(
        "  {name:<14}{latency:>13}{rounds:>8}{copies:>8}{again:>10}{missing:>15}  {use_for}"
    );
    let _ = writeln!(text, "{}", line.trim_end());
}

/// The keys of the sender's URI.
fn query(need: &Need) -> String {
    let pair = |(key, value): (&str, String)| format!("{key}={value}");
    need.deadline_keys().into_iter().map(pair).collect::<Vec<_>>().join("&")
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
        value["keys"] = json!(query(need));
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
