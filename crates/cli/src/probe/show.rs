//! A measurement and its recommendation as text for people.

use std::fmt::Write;
use std::time::Duration;

use punctual_probe::{
    LinkKind, Measurement, NotEnough, ProbePeer, RateVerdict, Recommendation, StepKind, StepResult,
    TimeDistribution, Uris, describe,
};
use punctual_units::{DisplayBytes, DisplayDuration, share_in_percent};

/// One rate that was tried, in a line.
pub(super) fn step(step: &StepResult) -> String {
    let verdict = match step.verdict {
        RateVerdict::Clear if step.kind == StepKind::Sustained => "held for a while".to_owned(),
        RateVerdict::Clear => "carried".to_owned(),
        RateVerdict::Congested(sign) => format!("too much: {}", describe(sign)),
        RateVerdict::Unfinished => "not tried for long enough".to_owned(),
    };
    let rtt = step.rtt.map_or_else(|| "?".to_owned(), shown);
    format!("{:#}: {verdict} (RTT {rtt}, lost {})", step.rate, share_in_percent(step.loss))
}

/// All results.
pub(super) fn report(
    address: &str,
    measurement: &Measurement,
    recommendation: Result<(&Recommendation, &Uris), NotEnough>,
) -> String {
    let mut text = String::new();
    let who = match measurement.peer {
        ProbePeer::Punctual => "seen from both ends",
        ProbePeer::Other => "seen from this end only",
    };
    let _ = writeln!(text, "The link to {address}, {who}, in {}\n", shown(measurement.duration));
    measured(&mut text, measurement);
    rates(&mut text, measurement);
    match recommendation {
        Ok((recommendation, uris)) => {
            recommended(&mut text, recommendation);
            text += &uris.text(recommendation.latency);
            if uris.others.is_none() {
                row(&mut text, "", "A listener needs its cert and key, too, if it has any.");
            }
        }
        Err(error) => {
            let _ = writeln!(text, "\n{error}");
        }
    }
    text
}

/// A line with a name and its value.
fn row(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "  {name:<21} {value}");
}

fn measured(text: &mut String, measurement: &Measurement) {
    if let Some(rtt) = &measurement.delay.rtt {
        row(text, "round trip", &distribution(rtt));
    }
    if let Some(variation) = &measurement.delay.variation {
        let spread = format!(
            "{} median, {} p95, {} p99, {} most, all above the least",
            shown(variation.median),
            shown(variation.p95),
            shown(variation.p99),
            shown(variation.max)
        );
        row(text, "one-way delay", &spread);
    }
    if measurement.delay.spikes > 0 {
        row(text, "spikes", &format!("{} in the round-trip time", measurement.delay.spikes));
    }
    let loss = &measurement.losses.total;
    let interval = format!(
        "{}: {} of {} packets (95 % interval {} to {})",
        share_in_percent(loss.share),
        loss.lost,
        loss.packets,
        share_in_percent(loss.interval.0),
        share_in_percent(loss.interval.1)
    );
    row(text, "lost", &interval);
    if let Some(bursts) = measurement.losses.bursts {
        let bursts = format!(
            "{:.2} packets in a row on average, {} at most ({}); {} of all losses in bursts",
            bursts.mean,
            bursts.longest,
            shown(bursts.longest_time),
            share_in_percent(bursts.share_in_bursts)
        );
        row(text, "bursts of losses", &bursts);
    }
    if let Some(share) = measurement.return_path.loss {
        row(text, "lost on the way back", &share_in_percent(share));
    }
    if let Some(reordering) = measurement.reordering {
        let reordered = match reordering.distance {
            0 => "none".to_owned(),
            distance => {
                format!("{}, by up to {distance} packets", share_in_percent(reordering.share))
            }
        };
        row(text, "reordered", &reordered);
    }
    if let Some(share) = measurement.duplicates {
        row(text, "duplicates", &share_in_percent(share));
    }
    if let Some(largest) = measurement.largest_payload {
        row(text, "largest payload", &format!("{largest} bytes"));
    }
    missing(text, measurement);
}

/// The figures that could not be measured, grouped by the reason.
fn missing(text: &mut String, measurement: &Measurement) {
    let all = &measurement.missing;
    for (place, first) in all.iter().enumerate() {
        if all[..place].iter().any(|before| before.why == first.why) {
            continue;
        }
        let same: Vec<&str> =
            all.iter().filter(|it| it.why == first.why).map(|it| it.what).collect();
        let sentence = format!("{}: {}", same.join(", "), first.why);
        for (place, line) in wrapped(&sentence).iter().enumerate() {
            row(text, if place == 0 { "not measured" } else { "" }, line);
        }
    }
}

fn rates(text: &mut String, measurement: &Measurement) {
    let _ = writeln!(text, "\nRates");
    for result in &measurement.rates.steps {
        let line = step(result);
        let (rate, rest) = line.split_once(": ").unwrap_or((&line, ""));
        row(text, rate, rest);
    }
    if let Some(usable) = measurement.rates.usable {
        row(text, "usable", &format!("{usable:#}"));
    }
    if let Some(capacity) = measurement.rates.capacity {
        row(text, "capacity", &format!("{capacity:#} by packet pairs, a rough estimate"));
    }
}

fn recommended(text: &mut String, recommendation: &Recommendation) {
    let kind = match recommendation.kind {
        LinkKind::Steady => "a steady link",
        LinkKind::Mobile => "a moving link: it varies as mobile ones do",
    };
    let _ = writeln!(text, "\nRecommended for {kind}");
    let why = |setting: &str| {
        let found = recommendation.why.iter().find(|why| why.setting == setting);
        found.map_or(String::new(), |why| why.text.clone())
    };
    let mut advise = |name: &str, value: String, setting: &str| {
        row(text, name, &value);
        for line in wrapped(&why(setting)) {
            row(text, "", &line);
        }
    };
    advise("latency", shown(recommendation.latency), "latency");
    let both_ends = match &recommendation.both_ends {
        Some(both_ends) => format!("{}, retransmitalgo=deadline", shown(both_ends.need.latency)),
        None => "the same".to_owned(),
    };
    advise("Punctual both ends", both_ends, "both_ends");
    advise("rate of the stream", format!("{:#}", recommendation.stream_rate), "stream_rate");
    advise("maximum bandwidth", format!("{:#}", recommendation.max_bandwidth), "max_bandwidth");
    advise("payload", format!("{} bytes", recommendation.payload), "payload");
    let (receive, send) = (recommendation.receive_buffer, recommendation.send_buffer);
    let buffers = format!(
        "{} packets ({:#}) to receive, {} ({:#}) to send",
        receive.packets,
        DisplayBytes(receive.bytes as u64),
        send.packets,
        DisplayBytes(send.bytes as u64)
    );
    advise("buffers", buffers, "receive_buffer");
    let tolerance = format!("{} packets", recommendation.reorder_tolerance);
    advise("reorder tolerance", tolerance, "reorder_tolerance");
    let algorithm = match recommendation.algorithm.number() {
        0 => "aggressive",
        _ => "efficient",
    };
    advise("retransmission", algorithm.to_owned(), "algorithm");
    let expected = format!("{} of the packets", share_in_percent(recommendation.expected.share));
    advise("expected loss", expected, "expected");
    for warning in &recommendation.warnings {
        let _ = writeln!(text);
        for (place, line) in wrapped(warning).iter().enumerate() {
            row(text, if place == 0 { "note" } else { "" }, line);
        }
    }
}

fn distribution(times: &TimeDistribution) -> String {
    format!(
        "{} least, {} median, {} p95, {} p99, {} most",
        shown(times.min),
        shown(times.median),
        shown(times.p95),
        shown(times.p99),
        shown(times.max)
    )
}

fn shown(time: Duration) -> String {
    format!("{:#}", DisplayDuration(time))
}

/// The words of a sentence in lines of at most [`WIDTH`] characters.
fn wrapped(sentence: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in sentence.split(' ') {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// The most characters of a line after its name.
const WIDTH: usize = 74;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_broken_between_words() {
        let lines = wrapped(&"word ".repeat(40));
        assert!(lines.len() > 2 && lines.iter().all(|line| line.len() <= WIDTH), "{lines:?}");
        assert!(wrapped("").is_empty());
    }
}
