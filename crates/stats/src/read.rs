//! Reading what the SRT tools write: files of statistics and of metrics, ours, libsrt's and
//! srt-xtransmit's, told apart by their columns.

mod json;
mod lines;
mod number;

use std::fmt;

use punctual_units::parse_timepoint;

use crate::FIELDS;
use lines::{LeftOutLines, Lines};

/// A file of statistics or metrics, read whole.
#[derive(Clone, Debug, PartialEq)]
pub struct StatsTable {
    /// The kind of its columns.
    pub kind: TableKind,
    /// The rows of each connection, in the order in which they first appear.
    pub connections: Vec<ConnectionRows>,
    /// Faults that did not keep the file from being read.
    pub warnings: Vec<String>,
}

/// The kind of a file's columns.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TableKind {
    /// Statistics of connections: libsrt's columns, `msRTT`, `pktSent` and their like.
    Statistics,
    /// Metrics of payloads: srt-xtransmit's columns, `usLatencyAvg`, `usJitter` and their like.
    Metrics,
}

/// The rows of one connection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConnectionRows {
    /// The socket ID or, in metrics, the connection's number. Empty if the file has neither.
    pub id: String,
    /// The peer's address; empty for a group, and if the file has no addresses.
    pub peer: String,
    /// The time at which each row was written, in microseconds since 1970-01-01 UTC; empty if the
    /// file has no `Timepoint`.
    pub timepoints_us: Vec<i64>,
    /// Seconds from the first row of the whole file to each row.
    pub seconds: Vec<f64>,
    columns: Vec<(String, Vec<Option<f64>>)>,
}

/// Why a file could not be read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ReadStatsError {
    /// The line, from 1.
    pub line: u64,
    /// The column's name, where the fault is in one.
    pub column: Option<String>,
    /// The fault, and its remedy.
    pub what: String,
}

impl StatsTable {
    /// Reads the text of a file: CSV, or JSON as libsrt's tools and ours write it, which gets the
    /// columns of the CSV.
    ///
    /// Values that are missing or not finite are `None`. A last line that was cut off, as by a
    /// program that still writes, is left out with a warning. The header may be repeated, as by a
    /// program that was started again. Lines that are no rows, such as those of a log that goes to
    /// the same file, are left out and counted in a warning. The fields may be separated by
    /// semicolons or tabs, and have decimal commas then.
    ///
    /// # Errors
    ///
    /// [`ReadStatsError`] when the columns are unknown, every line has more or fewer fields than
    /// the header, a known column has something else than a number, or the text is not legal JSON.
    pub fn parse(text: &str) -> Result<Self, ReadStatsError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.trim_start().starts_with(['{', '[']) {
            return Self::from_json(text);
        }
        Self::from_csv(text)
    }

    fn from_json(text: &str) -> Result<Self, ReadStatsError> {
        let json::Records { names, records, warnings } = json::Records::read(text)?;
        let mut rows = ParsedRows::new(&names)?;
        rows.table.warnings = warnings;
        for (line, record) in &records {
            rows.add(record, *line)?;
        }
        Ok(rows.finish())
    }

    fn from_csv(text: &str) -> Result<Self, ReadStatsError> {
        let mut lines = Lines::of(text);
        let mut rows = lines.header()?;
        let header = rows.names.clone();
        let mut left_out = LeftOutLines::default();
        while let Some((line, record)) = lines.next() {
            if record.iter().eq(&header) {
                continue;
            }
            // The last number of a line without an end may lack digits.
            if lines.is_cut() {
                let warning = format!("line {line}: the last line has no end; it was left out");
                rows.table.warnings.push(warning);
                break;
            }
            match record.len() == header.len() {
                true => rows.add(&record, line)?,
                false => left_out.add(line, record.len(), header.len()),
            }
        }
        let has_rows = !rows.table.connections.is_empty();
        rows.table.warnings.extend(left_out.warning(has_rows)?);
        Ok(rows.finish())
    }

    /// The time at which the first row was written, in microseconds since 1970-01-01 UTC; `None` if
    /// the file has no `Timepoint`.
    pub fn start_us(&self) -> Option<i64> {
        self.connections.iter().flat_map(|rows| &rows.timepoints_us).copied().min()
    }
}

impl ConnectionRows {
    /// The values of a column, one a row; `None` if the file has no such column.
    pub fn column(&self, name: &str) -> Option<&[Option<f64>]> {
        self.columns.iter().find(|(known, _)| known == name).map(|(_, values)| values.as_slice())
    }

    /// Time and value of each row that has a value in this column.
    pub fn points(&self, name: &str) -> impl Iterator<Item = (f64, f64)> {
        let values = self.column(name).unwrap_or_default();
        self.seconds.iter().zip(values).filter_map(|(at, value)| Some((*at, (*value)?)))
    }

    /// The sum of a column: of counts that are cleared at each row, the count of the whole file.
    pub fn sum(&self, name: &str) -> Option<f64> {
        Some(self.column(name)?.iter().flatten().sum())
    }

    /// The last value of a column: of counts that go on, the count of the whole file.
    pub fn last(&self, name: &str) -> Option<f64> {
        self.column(name)?.iter().rev().flatten().next().copied()
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.seconds.len()
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.seconds.is_empty()
    }
}

impl ReadStatsError {
    fn at(line: u64, what: String) -> Self {
        Self { line, column: None, what }
    }
}

impl fmt::Display for ReadStatsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        if let Some(column) = &self.column {
            write!(f, "column {column}: ")?;
        }
        f.write_str(&self.what)
    }
}

impl std::error::Error for ReadStatsError {}

/// The rows as they are read.
struct ParsedRows {
    table: StatsTable,
    names: Vec<String>,
    timepoint: Option<usize>,
    time: Option<usize>,
    id: Option<usize>,
    peer: Option<usize>,
    /// Milliseconds of each row of each connection, where the file has them.
    times_ms: Vec<Vec<Option<f64>>>,
}

impl ParsedRows {
    fn new(header: &csv::StringRecord) -> Result<Self, ReadStatsError> {
        let names: Vec<String> = header.iter().map(str::to_owned).collect();
        // libsrt has `Time` twice, with one value: the first counts.
        let find = |name: &str| names.iter().position(|known| known == name);
        let kind = if METRICS.iter().any(|name| find(name).is_some()) {
            TableKind::Metrics
        } else if names.iter().any(|name| is_statistic(name) && name != "Time") {
            TableKind::Statistics
        } else {
            let what = "these are columns neither of statistics (msRTT, pktSent, …) nor of metrics \
                        (usLatencyAvg, usJitter, …)";
            return Err(ReadStatsError::at(1, what.to_owned()));
        };
        let (timepoint, time) = (find("Timepoint"), find("Time"));
        if timepoint.is_none() && time.is_none() {
            let what = "there is no column of time: `Timepoint` or `Time`";
            return Err(ReadStatsError::at(1, what.to_owned()));
        }
        let id = if kind == TableKind::Metrics { find("iConn") } else { find("SocketID") };
        let table = StatsTable { kind, connections: Vec::new(), warnings: Vec::new() };
        let peer = find("peer");
        Ok(Self { table, names, timepoint, time, id, peer, times_ms: Vec::new() })
    }

    /// Adds a row, which has a field for each name.
    fn add(&mut self, record: &csv::StringRecord, line: u64) -> Result<(), ReadStatsError> {
        let id = self.id.map_or("", |index| &record[index]);
        let position = self.table.connections.iter().position(|rows| rows.id == id);
        let index = position.unwrap_or_else(|| self.open(id));
        if let Some(column) = self.peer {
            record[column].clone_into(&mut self.table.connections[index].peer);
        }
        if let Some(column) = self.timepoint
            && self.time.is_some()
            && parse_timepoint(&record[column]).is_none()
        {
            self.go_by_time(line, &record[column]);
        }
        let fault = |column: usize, what: String| ReadStatsError {
            line,
            column: Some(self.names[column].clone()),
            what,
        };
        if let Some(column) = self.timepoint {
            let text = &record[column];
            match parse_timepoint(text) {
                Some(timepoint) => self.table.connections[index].timepoints_us.push(timepoint),
                None => {
                    let form = "2022-04-14T17:46:13.44+0200";
                    return Err(fault(column, format!("`{text}` is no time such as {form}")));
                }
            }
        }
        if let Some(column) = self.time {
            let time = number::parse(&record[column]).map_err(|what| fault(column, what))?;
            self.times_ms[index].push(time);
        }
        for (column, name) in self.names.iter().enumerate() {
            let value = match number::parse(&record[column]) {
                Ok(value) => value,
                Err(what) if is_statistic(name) || METRICS.contains(&name.as_str()) => {
                    return Err(fault(column, what));
                }
                // A column of somebody else's, who may write what he likes.
                Err(_) => None,
            };
            self.table.connections[index].columns[column].1.push(value);
        }
        Ok(())
    }

    /// Takes the times of all rows from `Time`, because a `Timepoint` has an unknown form.
    fn go_by_time(&mut self, line: u64, text: &str) {
        self.timepoint = None;
        self.table.connections.iter_mut().for_each(|rows| rows.timepoints_us.clear());
        self.table.warnings.push(format!(
            "line {line}: column Timepoint: `{text}` has no known form; the column Time is used"
        ));
    }

    /// Begins a connection, and gives its place.
    fn open(&mut self, id: &str) -> usize {
        let columns = self.names.iter().map(|name| (name.clone(), Vec::new())).collect();
        let rows = ConnectionRows { id: id.to_owned(), columns, ..ConnectionRows::default() };
        self.table.connections.push(rows);
        self.times_ms.push(Vec::new());
        self.table.connections.len() - 1
    }

    fn finish(mut self) -> StatsTable {
        let start_us = self.table.start_us();
        let start_ms = self.times_ms.iter().flatten().flatten().copied().reduce(f64::min);
        for (rows, times) in self.table.connections.iter_mut().zip(self.times_ms) {
            rows.seconds = match (start_us, start_ms) {
                (Some(start), _) => {
                    rows.timepoints_us.iter().map(|at| seconds_since(start, *at)).collect()
                }
                (None, start) => times
                    .iter()
                    .map(|time| time.map_or(f64::NAN, |ms| (ms - start.unwrap_or(0.0)) / 1e3))
                    .collect(),
            };
        }
        self.table
    }
}

/// Exact to the microsecond for more than two hundred years.
fn seconds_since(start_us: i64, at_us: i64) -> f64 {
    at_us.saturating_sub(start_us) as f64 / 1e6
}

fn is_statistic(name: &str) -> bool {
    FIELDS.iter().any(|field| field.csv == name) || MORE.contains(&name)
}

/// Columns of statistics that srt-xtransmit writes and libsrt's tools do not.
const MORE: [&str; 2] = ["weight", "pktReorderTolerance"];

/// Columns of metrics. (`punctual-metrics` writes them, but depends on nothing here.)
const METRICS: [&str; 11] = [
    "usLatencyMin",
    "usLatencyMax",
    "usLatencyAvg",
    "usJitter",
    "usDelayFactor",
    "pktReceived",
    "pktLost",
    "pktReordered",
    "pktReorderDist",
    "pktChecksumError",
    "pktLengthError",
];

#[cfg(test)]
#[path = "read/tests.rs"]
mod tests;
