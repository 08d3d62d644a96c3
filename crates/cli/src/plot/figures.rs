//! The figures and their contents.

use punctual_figures::{Axis, Chart, Marker, Point, Series, Style};
use punctual_stats::read::TableKind;

use super::source::{Loaded, Source};

/// A figure: its title, its caption, and its panels.
struct PlotFigure {
    kind: TableKind,
    title: &'static str,
    caption: &'static str,
    panels: &'static [PlotPanel],
}

/// A panel, whose columns have one unit.
struct PlotPanel {
    label: &'static str,
    unit: Unit,
    /// Columns and their names in the figure.
    columns: &'static [(&'static str, &'static str)],
}

/// The kind of a column's values.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Unit {
    /// Packets since the previous row.
    Packets,
    /// The value times a factor.
    Scaled(Factor, &'static str),
}

/// A power of ten.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Factor {
    One,
    Thousandth,
    Millionth,
}

/// The charts of all files of one kind, without charts that would be empty.
pub(super) fn charts(loaded: &Loaded, kind: TableKind) -> Vec<Chart> {
    let figures = FIGURES.iter().filter(|figure| figure.kind == kind);
    let latency = (kind == TableKind::Metrics).then(|| latency(loaded)).flatten();
    latency.into_iter().chain(figures.filter_map(|figure| chart(figure, loaded))).collect()
}

fn chart(figure: &PlotFigure, loaded: &Loaded) -> Option<Chart> {
    let columns = || figure.panels.iter().flat_map(|panel| panel.columns);
    let has_any = |source: &&Source| columns().any(|(column, _)| source.has(column));
    let sources = loaded.sources.iter().filter(|source| source.kind == figure.kind);
    let sources: Vec<&Source> = sources.filter(has_any).collect();
    let mut panels: Vec<(Axis, Vec<Series>, Vec<Marker>)> = Vec::new();
    for panel in figure.panels {
        // The columns of a single connection share a panel. With several connections each column
        // has its own panel, or the lines could not be told apart.
        let together = sources.len() == 1;
        let groups: Vec<&[(&str, &str)]> =
            if together { vec![panel.columns] } else { panel.columns.chunks(1).collect() };
        for columns in groups {
            let series = series(&sources, panel, columns);
            if series.is_empty() {
                continue;
            }
            let label = match columns {
                [(_, name)] if panel.columns.len() > 1 => format!("{}: {name}", panel.label),
                _ => panel.label.to_owned(),
            };
            let is_receiver_buffer = columns.iter().any(|(column, _)| *column == "msRcvBuf");
            let markers = if is_receiver_buffer { latencies(&sources) } else { Vec::new() };
            let unit = unit(panel.unit, &sources);
            panels.push((Axis::linear(label, unit), series, markers));
        }
    }
    let mut panels = panels.into_iter();
    let (y, series, markers) = panels.next()?;
    let chart = Chart::new(figure.title, Axis::time("Time"), y).caption(figure.caption);
    let with = |chart: Chart, series, markers: Vec<Marker>| {
        markers.into_iter().fold(chart.all_series(series), Chart::marker)
    };
    let chart = with(chart, series, markers);
    Some(panels.fold(chart, |chart, (y, series, markers)| with(chart.panel(y), series, markers)))
}

fn series(sources: &[&Source], panel: &PlotPanel, columns: &[(&str, &str)]) -> Vec<Series> {
    let mut all = Vec::new();
    for source in sources {
        for (column, name) in columns.iter().filter(|(column, _)| source.has(column)) {
            let points = match panel.unit {
                Unit::Packets => packets(source, column, sources),
                Unit::Scaled(factor, _) => source.points(column, factor.value()),
            };
            // A file keeps its colour in all figures.
            all.push(match sources {
                [_] => Series::new(*name, points),
                _ => Series::new(source.name.clone(), points).slot(source.slot),
            });
        }
    }
    all
}

/// Packets of each row, or a second if the files have rows of different periods.
fn packets(source: &Source, column: &str, sources: &[&Source]) -> Vec<(f64, f64)> {
    let counts = source.counts_in_a_period(column);
    if common_period(sources).is_some() {
        return counts;
    }
    counts.into_iter().map(|(at, count)| (at, count / source.period)).collect()
}

/// The period of all sources, in seconds, if they have the same.
fn common_period(sources: &[&Source]) -> Option<f64> {
    let first = sources.first()?.period;
    let alike = |source: &&Source| (source.period - first).abs() <= 0.1 * first;
    sources.iter().all(alike).then_some(first)
}

fn unit(unit: Unit, sources: &[&Source]) -> String {
    match (unit, common_period(sources)) {
        (Unit::Scaled(_, unit), _) => unit.to_owned(),
        (Unit::Packets, Some(period)) if period < 0.95 => {
            format!("in {:.0} ms", period * 1e3)
        }
        (Unit::Packets, Some(period)) if period >= 1.5 => format!("in {period:.0} s"),
        (Unit::Packets, _) => "a second".to_owned(),
    }
}

/// Lines at the receivers' latencies.
fn latencies(sources: &[&Source]) -> Vec<Marker> {
    let mut known: Vec<f64> =
        sources.iter().filter_map(|source| source.rows.last("msRcvTsbPdDelay")).collect();
    known.retain(|latency| *latency > 0.0);
    known.sort_by(f64::total_cmp);
    known.dedup();
    known.iter().map(|ms| Marker::horizontal(*ms, format!("latency {ms} ms"))).collect()
}

/// The end-to-end latency: an area from the least to the greatest, and the mean.
fn latency(loaded: &Loaded) -> Option<Chart> {
    let mut series = Vec::new();
    let sources = loaded.sources.iter().filter(|source| source.kind == TableKind::Metrics);
    for source in sources {
        let (low, high) =
            (source.points("usLatencyMin", 1e-3), source.points("usLatencyMax", 1e-3));
        let points = source.points("usLatencyAvg", 1e-3).into_iter().map(|(at, mean)| {
            let find = |points: &[(f64, f64)]| {
                let index = points.partition_point(|point| point.0 < at);
                points.get(index).filter(|point| point.0 == at).map(|point| point.1)
            };
            let interval = find(&low).zip(find(&high));
            Point { x: at, y: mean, interval, quartiles: None, heat: None }
        });
        let points: Vec<Point> = points.collect();
        if !points.is_empty() {
            let name = source.name.clone();
            series.push(Series::new(name, points).style(Style::Band).slot(source.slot));
        }
    }
    if series.is_empty() {
        return None;
    }
    let y = Axis::linear("Latency", "ms");
    let chart = Chart::new("End-to-end latency", Axis::time("Time"), y).caption(
        "Mean, and the range from the least to the greatest of each row: from the sending to the \
         receiving application, by the clocks of both hosts.",
    );
    Some(chart.all_series(series))
}

impl Factor {
    fn value(self) -> f64 {
        match self {
            Self::One => 1.0,
            Self::Thousandth => 1e-3,
            Self::Millionth => 1e-6,
        }
    }
}

const MS: Unit = Unit::Scaled(Factor::One, "ms");
const MS_OF_US: Unit = Unit::Scaled(Factor::Thousandth, "ms");
const MBPS: Unit = Unit::Scaled(Factor::One, "Mb/s");

const FIGURES: &[PlotFigure] = &[
    PlotFigure {
        kind: TableKind::Metrics,
        title: "Jitter",
        caption: "Smoothed variation of the transit time (RFC 3550) at the receiving application.",
        panels: &[PlotPanel {
            label: "Jitter",
            unit: MS_OF_US,
            columns: &[("usJitter", "jitter")],
        }],
    },
    PlotFigure {
        kind: TableKind::Metrics,
        title: "Time-stamped delay factor (TS-DF)",
        caption: "Spread of the transit times within each row (EBU TECH 3337).",
        panels: &[PlotPanel {
            label: "TS-DF",
            unit: MS_OF_US,
            columns: &[("usDelayFactor", "TS-DF")],
        }],
    },
    PlotFigure {
        kind: TableKind::Metrics,
        title: "Payloads received",
        caption: "Counted by the numbers in the payloads, after SRT has done its work.",
        panels: &[
            PlotPanel {
                label: "Payloads",
                unit: Unit::Packets,
                columns: &[("pktReceived", "received")],
            },
            PlotPanel {
                label: "Payloads",
                unit: Unit::Packets,
                columns: &[
                    ("pktLost", "lost"),
                    ("pktReordered", "reordered"),
                    ("pktChecksumError", "damaged"),
                    ("pktLengthError", "of wrong length"),
                ],
            },
        ],
    },
    PlotFigure {
        kind: TableKind::Statistics,
        title: "Sender: packets",
        caption: "Each report of a loss counts. Packets that are dropped are too late to be \
                  retransmitted.",
        panels: &[
            PlotPanel { label: "Packets", unit: Unit::Packets, columns: &[("pktSent", "sent")] },
            PlotPanel {
                label: "Packets",
                unit: Unit::Packets,
                columns: &[
                    ("pktRetrans", "retransmitted"),
                    ("pktSndLoss", "reported lost"),
                    ("pktSndDrop", "dropped"),
                ],
            },
        ],
    },
    PlotFigure {
        kind: TableKind::Statistics,
        title: "Receiver: packets",
        caption: "Packets that are dropped were given up; belated ones arrived after that.",
        panels: &[
            PlotPanel {
                label: "Packets",
                unit: Unit::Packets,
                columns: &[("pktRecv", "received")],
            },
            PlotPanel {
                label: "Packets",
                unit: Unit::Packets,
                columns: &[
                    ("pktRcvLoss", "lost"),
                    ("pktRcvRetrans", "retransmitted"),
                    ("pktRcvDrop", "dropped"),
                    ("pktRcvBelated", "belated"),
                    ("pktRcvUndecrypt", "not decrypted"),
                ],
            },
        ],
    },
    PlotFigure {
        kind: TableKind::Statistics,
        title: "Rates",
        caption: "With retransmissions.",
        panels: &[
            PlotPanel { label: "Sending", unit: MBPS, columns: &[("mbpsSendRate", "sending")] },
            PlotPanel { label: "Receiving", unit: MBPS, columns: &[("mbpsRecvRate", "receiving")] },
        ],
    },
    PlotFigure {
        kind: TableKind::Statistics,
        title: "Round-trip time",
        caption: "Smoothed, as the connection measures it.",
        panels: &[PlotPanel { label: "RTT", unit: MS, columns: &[("msRTT", "RTT")] }],
    },
    PlotFigure {
        kind: TableKind::Statistics,
        title: "Buffers",
        caption: "The time span of the packets that wait in them.",
        panels: &[
            PlotPanel { label: "Send buffer", unit: MS, columns: &[("msSndBuf", "send buffer")] },
            PlotPanel {
                label: "Receive buffer",
                unit: MS,
                columns: &[("msRcvBuf", "receive buffer")],
            },
        ],
    },
    PlotFigure {
        kind: TableKind::Statistics,
        title: "Window and pacing",
        caption: "Packets under way and not acknowledged; the room that is left in the buffers; \
                  the time between two packets; the link's capacity as estimated.",
        panels: &[
            PlotPanel {
                label: "In flight",
                unit: Unit::Scaled(Factor::One, "packets"),
                columns: &[("pktFlightSize", "in flight")],
            },
            PlotPanel {
                label: "Free in buffers",
                unit: Unit::Scaled(Factor::Millionth, "MB"),
                columns: &[("byteAvailSndBuf", "sender's"), ("byteAvailRcvBuf", "receiver's")],
            },
            PlotPanel {
                label: "Send period",
                unit: Unit::Scaled(Factor::One, "µs"),
                columns: &[("usPktSndPeriod", "send period")],
            },
            PlotPanel {
                label: "Capacity",
                unit: MBPS,
                columns: &[("mbpsBandwidth", "estimated capacity")],
            },
        ],
    },
];
