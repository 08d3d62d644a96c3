//! Names for people.

use crate::results::Results;

/// A text that begins with a capital letter.
pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// The name of a backend.
pub(super) fn backend(name: &str) -> &str {
    match name {
        "sim" => "Punctual in virtual time (sim)",
        "net" => "Punctual on real sockets (net)",
        "external" => "other programs (external)",
        "quic-model" => "a model of QUIC in virtual time (quic-model)",
        other => other,
    }
}

/// A short name of a backend, for a column title.
pub(super) fn short_backend<'a>(results: &Results, name: &'a str) -> &'a str {
    match name {
        "quic-model" if results.meta.backends.len() < 2 => "our model",
        name if results.meta.backends.len() < 2 && name != "external" => "Punctual",
        name => name,
    }
}

/// The title of a metric or a column.
pub(super) fn title(results: &Results, name: &str) -> String {
    if results.metric(name).is_some() {
        return results.title_of(name);
    }
    let (end, column) = name.rsplit_once('.').unwrap_or(("", name));
    match (NAMES.iter().find(|(known, ..)| *known == column), end) {
        (Some((_, words, _)), "") => (*words).to_owned(),
        (Some((_, words, _)), end) => format!("{words} ({end})"),
        (None, _) => results.title_of(name),
    }
}

/// The common title of several columns of one unit: the shared beginning of their titles, or else
/// the quantity.
pub(super) fn shared_title(titles: &[String], unit: &str) -> String {
    let start = |title: &String| title.split(',').next().unwrap_or(title).to_owned();
    match titles {
        [] => String::new(),
        [one] => one.clone(),
        [first, rest @ ..] if rest.iter().all(|title| start(title) == start(first)) => start(first),
        _ => match unit {
            "Mb/s" => "rate",
            "ms" | "µs" | "s" => "time",
            "%" => "share",
            "B" => "bytes",
            "packets" => "packets",
            _ => "value",
        }
        .to_owned(),
    }
}

/// The unit of a metric or a column; empty for none.
pub(super) fn unit(results: &Results, name: &str) -> String {
    if let Some(metric) = results.metric(name) {
        return metric.unit.clone();
    }
    let column = name.rsplit_once('.').map_or(name, |(_, column)| column);
    let units = [("ms", "ms"), ("mbps", "Mb/s"), ("us", "µs"), ("pkt", "packets"), ("byte", "B")];
    let unit = units.iter().find(|(start, _)| column.starts_with(start));
    unit.map_or_else(String::new, |(_, unit)| (*unit).to_owned())
}

/// Whether a column of a series counts events since the previous row.
pub(super) fn is_count(name: &str) -> bool {
    let column = name.rsplit_once('.').map_or(name, |(_, column)| column);
    NAMES.iter().any(|(known, _, counts)| *known == column && *counts)
}

/// A parameter with its value: `loss 5 %`.
pub(super) fn parameter(results: &Results, name: &str, value: &str) -> String {
    match (name, value.parse::<f64>()) {
        ("backend" | "experiment", _) | (_, Err(_)) => value.to_owned(),
        (_, Ok(share)) if name.contains("loss") && (0.0..=1.0).contains(&share) => {
            format!("{name} {} %", trimmed(share * 100.0))
        }
        _ => format!("{name} {}", results.shown(name, value)),
    }
}

/// A value of a parameter without its name.
pub(super) fn value(results: &Results, name: &str, value: &str) -> String {
    let full = parameter(results, name, value);
    full.strip_prefix(&format!("{name} ")).map_or(full.clone(), str::to_owned)
}

/// An argument, quoted for a shell.
pub(super) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./+,=:@%".contains(c);
    match text.chars().all(plain) && !text.is_empty() {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// A number without trailing zeros.
fn trimmed(number: f64) -> String {
    let text = format!("{number:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Columns, their titles, and whether a series has them as counts of a row.
const NAMES: &[(&str, &str, bool)] = &[
    ("pktSent", "sent", true),
    ("pktSentUnique", "originals sent", true),
    ("pktRetrans", "retransmitted", true),
    ("pktSndLoss", "reported lost", true),
    ("pktSndDrop", "dropped", true),
    ("pktRecv", "received", true),
    ("pktRecvUnique", "received without duplicates", true),
    ("pktRcvLoss", "lost", true),
    ("pktRcvRetrans", "retransmitted", true),
    ("pktRcvDrop", "dropped", true),
    ("pktRcvBelated", "belated", true),
    ("pktReceived", "received", true),
    ("pktLost", "lost", true),
    ("pktReordered", "reordered", true),
    ("pktDuplicated", "duplicated", true),
    ("msRTT", "RTT", false),
    ("mbpsSendRate", "sending rate", false),
    ("mbpsRecvRate", "receiving rate", false),
    ("mbpsBandwidth", "estimated capacity", false),
    ("msSndBuf", "send buffer", false),
    ("msRcvBuf", "receive buffer", false),
    ("pktFlightSize", "in flight", false),
    ("usLatencyAvg", "latency, mean", false),
    ("usLatencyMin", "latency, least", false),
    ("usLatencyMax", "latency, greatest", false),
    ("usJitter", "jitter", false),
    ("usDelayFactor", "TS-DF", false),
    ("msLatest", "latest sample", false),
    ("msSmoothed", "smoothed RTT", false),
    ("msDeviation", "deviation", false),
    ("msTimer", "retransmission timer", false),
    ("byteWindow", "congestion window", false),
    ("byteInFlight", "in flight", false),
    ("byteMtu", "size of packets", false),
];
