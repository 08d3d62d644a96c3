//! The sums and means of each file, as tables.

use punctual_figures::{Column, Page, Table};
use punctual_stats::read::TableKind;

use super::source::{Loaded, Source};

/// Writes the tables that there is something for.
pub(super) fn write(page: &mut Page, loaded: &Loaded) {
    page.heading("Summary");
    for (kind, caption, columns, cells) in [
        (TableKind::Statistics, "Statistics", STATISTICS, statistics as fn(&Source) -> Vec<String>),
        (TableKind::Metrics, "Metrics", METRICS, metrics),
    ] {
        let sources = loaded.sources.iter().filter(|source| source.kind == kind);
        let rows: Vec<Vec<String>> = sources.map(cells).collect();
        if rows.is_empty() {
            continue;
        }
        let heads = columns.iter().enumerate().map(|(index, name)| match index {
            0 => Column::text(*name),
            _ => Column::number(*name),
        });
        let mut table = Table::new(caption, heads);
        rows.into_iter().for_each(|row| table.row(row));
        page.table(table);
    }
}

const STATISTICS: &[&str] = &[
    "connection",
    "time, s",
    "sent",
    "retransmitted",
    "overhead, %",
    "dropped by sender",
    "received",
    "lost",
    "dropped by receiver",
    "unrecovered, %",
    "RTT, ms",
    "greatest RTT, ms",
];

fn statistics(source: &Source) -> Vec<String> {
    let total = |column: &str| source.total(column);
    let (sent, again) = (total("pktSent"), total("pktRetrans"));
    let (received, dropped) = (total("pktRecv"), total("pktRcvDrop"));
    // What was sent first, without what was sent again; old files have no column of its own.
    let originals = total("pktSentUnique").or_else(|| Some(sent? - again?));
    let arrived = total("pktRecvUnique").or_else(|| Some(received? - total("pktRcvRetrans")?));
    let share = |part: Option<f64>, whole: Option<f64>| {
        let whole = whole.filter(|whole| *whole > 0.0)?;
        Some(100.0 * part? / whole)
    };
    let expected = arrived.zip(dropped).map(|(arrived, dropped)| arrived + dropped);
    let rtt = source.points("msRTT", 1.0);
    vec![
        source.name.clone(),
        decimals(length(source), 1),
        decimals(sent, 0),
        decimals(again, 0),
        decimals(share(again, originals), 2),
        decimals(total("pktSndDrop"), 0),
        decimals(received, 0),
        decimals(total("pktRcvLoss"), 0),
        decimals(dropped, 0),
        decimals(share(dropped, expected), 4),
        decimals(mean(&rtt), 2),
        decimals(greatest(&rtt), 2),
    ]
}

const METRICS: &[&str] = &[
    "connection",
    "time, s",
    "received",
    "lost",
    "reordered",
    "damaged",
    "latency, ms",
    "least, ms",
    "greatest, ms",
    "jitter, ms",
    "TS-DF, ms",
];

fn metrics(source: &Source) -> Vec<String> {
    let least = source.points("usLatencyMin", 1e-3).into_iter().map(|point| point.1);
    let damaged = source
        .total("pktChecksumError")
        .zip(source.total("pktLengthError"))
        .map(|(checksum, length)| checksum + length);
    vec![
        source.name.clone(),
        decimals(length(source), 1),
        decimals(source.total("pktReceived"), 0),
        decimals(source.total("pktLost"), 0),
        decimals(source.total("pktReordered"), 0),
        decimals(damaged, 0),
        decimals(mean(&source.points("usLatencyAvg", 1e-3)), 2),
        decimals(least.reduce(f64::min), 2),
        decimals(greatest(&source.points("usLatencyMax", 1e-3)), 2),
        decimals(mean(&source.points("usJitter", 1e-3)), 3),
        decimals(mean(&source.points("usDelayFactor", 1e-3)), 3),
    ]
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

/// A number with so many decimals, or a dash where there is none.
fn decimals(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.decimals$}"))
}
