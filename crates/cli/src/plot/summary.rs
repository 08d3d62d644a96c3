//! The sums and means of each connection, as tables.

use punctual_figures::{Page, Table, TableColumn};
use punctual_stats::read::TableKind;

use super::source::{Loaded, Source};

/// A line of a table: the name with its unit, the number of decimals, the value.
type Measure = (&'static str, usize, fn(&Source) -> Option<f64>);

/// Writes the tables that are not empty: a column for each connection, so that a few connections
/// fit on a phone.
pub(super) fn write(page: &mut Page, loaded: &Loaded) {
    page.heading("Summary");
    for (kind, caption, measures) in [
        (TableKind::Metrics, "At the application", METRICS),
        (TableKind::Statistics, "On the connection", STATISTICS),
    ] {
        let sources = || loaded.sources.iter().filter(|source| source.kind == kind);
        if sources().next().is_none() {
            continue;
        }
        let heads = sources().map(|source| TableColumn::number(source.name.clone()));
        let mut table = Table::new(caption, [TableColumn::text("")].into_iter().chain(heads));
        for (name, decimals, value) in measures {
            let values: Vec<Option<f64>> = sources().map(value).collect();
            if values.iter().any(Option::is_some) {
                let cells = values.into_iter().map(|value| shown(value, *decimals));
                table.row([(*name).to_owned()].into_iter().chain(cells));
            }
        }
        page.table(table);
    }
}

const STATISTICS: &[Measure] = &[
    ("time, s", 1, length),
    ("packets sent", 0, |source| sending(source, "pktSent")),
    ("retransmitted", 0, |source| sending(source, "pktRetrans")),
    ("retransmitted, % of originals", 2, overhead),
    ("reported lost", 0, |source| sending(source, "pktSndLoss")),
    ("dropped by the sender", 0, |source| sending(source, "pktSndDrop")),
    ("packets received", 0, |source| receiving(source, "pktRecv")),
    ("lost on the way", 0, |source| receiving(source, "pktRcvLoss")),
    ("dropped by the receiver", 0, |source| receiving(source, "pktRcvDrop")),
    ("unrecovered, %", 4, unrecovered),
    ("belated", 0, |source| receiving(source, "pktRcvBelated")),
    ("latency, ms", 0, |source| source.rows.last("msRcvTsbPdDelay").filter(|ms| *ms > 0.0)),
    ("RTT, mean, ms", 2, |source| mean(&source.points("msRTT", 1.0))),
    ("RTT, greatest, ms", 2, |source| greatest(&source.points("msRTT", 1.0))),
];

const METRICS: &[Measure] = &[
    ("time, s", 1, length),
    ("payloads received", 0, |source| source.total("pktReceived")),
    ("lost", 0, |source| source.total("pktLost")),
    ("reordered", 0, |source| source.total("pktReordered")),
    ("damaged", 0, |source| {
        Some(source.total("pktChecksumError")? + source.total("pktLengthError")?)
    }),
    ("latency, mean, ms", 2, |source| mean(&source.points("usLatencyAvg", 1e-3))),
    ("latency, least, ms", 2, |source| {
        let points = source.points("usLatencyMin", 1e-3);
        points.into_iter().map(|point| point.1).reduce(f64::min)
    }),
    ("latency, greatest, ms", 2, |source| greatest(&source.points("usLatencyMax", 1e-3))),
    ("jitter, mean, ms", 3, |source| mean(&source.points("usJitter", 1e-3))),
    ("TS-DF, mean, ms", 3, |source| mean(&source.points("usDelayFactor", 1e-3))),
];

/// A count of a connection that sends.
fn sending(source: &Source, column: &str) -> Option<f64> {
    source.has("pktSent").then(|| source.total(column)).flatten()
}

/// A count of a connection that receives.
fn receiving(source: &Source, column: &str) -> Option<f64> {
    source.has("pktRecv").then(|| source.total(column)).flatten()
}

fn overhead(source: &Source) -> Option<f64> {
    let again = sending(source, "pktRetrans")?;
    // Old files have no column of originals.
    let originals = source.total("pktSentUnique").or(Some(source.total("pktSent")? - again))?;
    (originals > 0.0).then(|| 100.0 * again / originals)
}

fn unrecovered(source: &Source) -> Option<f64> {
    let dropped = receiving(source, "pktRcvDrop")?;
    let all = || Some(source.total("pktRecv")? - source.total("pktRcvRetrans")?);
    let expected = source.total("pktRecvUnique").or_else(all)? + dropped;
    (expected > 0.0).then(|| 100.0 * dropped / expected)
}

/// Seconds from the first row to the last.
fn length(source: &Source) -> Option<f64> {
    Some(source.rows.seconds.last()? - source.rows.seconds.first()?)
}

fn mean(points: &[(f64, f64)]) -> Option<f64> {
    let sum: f64 = points.iter().map(|point| point.1).sum();
    (!points.is_empty()).then(|| sum / points.len() as f64)
}

fn greatest(points: &[(f64, f64)]) -> Option<f64> {
    points.iter().map(|point| point.1).reduce(f64::max)
}

/// A number with this number of decimals, or a dash if there is none.
fn shown(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.decimals$}"))
}
