//! A link's course as CSV: time, rate, delay and loss.

use std::time::Duration;

use punctual_units::{Bitrate, parse_bitrate_in, parse_duration_in, parse_share};

use crate::trace::{TraceError, TraceRow, content};

/// The rows of a text, checked.
pub(super) fn parse(text: &str) -> Result<Vec<TraceRow>, TraceError> {
    let mut lines = (1..).zip(text.lines().map(content)).filter(|(_, line)| !line.is_empty());
    let Some((number, header)) = lines.next() else {
        return Err(TraceError::whole("the header is missing: time,rate,delay,loss"));
    };
    let header = CsvHeader::parse(header).map_err(|problem| TraceError::at(number, problem))?;
    let mut rows = Vec::new();
    for (number, line) in lines {
        if rows.len() == MAX_ROWS {
            return Err(TraceError::at(number, "at most a million lines are possible"));
        }
        let row = header.row(line).map_err(|problem| TraceError::at(number, problem))?;
        check_order(rows.last(), &row).map_err(|problem| TraceError::at(number, problem))?;
        rows.push(row);
    }
    check(&rows)?;
    Ok(rows)
}

/// Whether these rows make a trace.
pub(super) fn check(rows: &[TraceRow]) -> Result<(), TraceError> {
    if rows.len() > MAX_ROWS {
        return Err(TraceError::at(MAX_ROWS + 1, "at most a million are possible"));
    }
    for (number, pair) in (2..).zip(rows.windows(2)) {
        check_order(Some(&pair[0]), &pair[1]).map_err(|it| TraceError::at(number, it))?;
    }
    let loss = |row: &TraceRow| row.loss.is_none_or(|loss| (0.0..=1.0).contains(&loss));
    if let Some(at) = rows.iter().position(|row| !loss(row)) {
        return Err(TraceError::at(at + 1, "a loss must be a share, 0 to 1"));
    }
    match rows.last() {
        None => Err(TraceError::whole("a trace needs at least one line with values")),
        Some(last) if last.at < SHORTEST_PERIOD => Err(TraceError::whole(
            "the last time must be at least 1ms; it is the period after which the trace repeats",
        )),
        Some(last) if last.at > LONGEST_PERIOD => {
            Err(TraceError::whole("the last time must be at most 292 years"))
        }
        Some(_) => Ok(()),
    }
}

/// The mean rate over the period.
pub(super) fn mean_rate(rows: &[TraceRow], interpolated: bool) -> Option<Bitrate> {
    let mut rate = rows.iter().find_map(|row| row.rate)?.as_bits_per_sec();
    let mut work = 0_u128;
    let mut since = Duration::ZERO;
    for row in rows {
        let next = row.rate.map_or(rate, Bitrate::as_bits_per_sec);
        let mean = if interpolated { rate.midpoint(next) } else { rate };
        work = work.saturating_add((row.at - since).as_nanos().saturating_mul(mean.into()));
        (rate, since) = (next, row.at);
    }
    let mean = work.checked_div(since.as_nanos())?;
    Some(Bitrate::from_bits_per_sec(u64::try_from(mean).unwrap_or(u64::MAX)))
}

/// The columns of a file, in its order.
struct CsvHeader(Vec<(CsvColumn, &'static str)>);

#[derive(Clone, Copy, Eq, PartialEq)]
enum CsvColumn {
    Time,
    Rate,
    Delay,
    Loss,
}

impl CsvHeader {
    fn parse(line: &str) -> Result<Self, String> {
        let columns = line.split(',').map(column).collect::<Result<Vec<_>, _>>()?;
        for (at, (column, _)) in columns.iter().enumerate() {
            if columns[..at].iter().any(|(other, _)| other == column) {
                return Err(format!("there are two columns of the same kind in `{line}`"));
            }
        }
        if !columns.iter().any(|(column, _)| *column == CsvColumn::Time) {
            return Err(format!("the column `time` is missing in `{line}`"));
        }
        Ok(Self(columns))
    }

    fn row(&self, line: &str) -> Result<TraceRow, String> {
        let fields: Vec<_> = line.split(',').map(str::trim).collect();
        if fields.len() != self.0.len() {
            let (found, expected) = (fields.len(), self.0.len());
            return Err(format!("{found} fields, but the header has {expected}"));
        }
        let mut row = TraceRow::default();
        for (&(column, unit), field) in self.0.iter().zip(fields) {
            if field.is_empty() && column != CsvColumn::Time {
                continue;
            }
            let bare = field.bytes().all(|c| c.is_ascii_digit() || c == b'.');
            let text = if bare { format!("{field}{unit}") } else { field.to_owned() };
            match column {
                CsvColumn::Time => row.at = duration(&text, Duration::from_secs(1))?,
                CsvColumn::Delay => row.delay = Some(duration(&text, Duration::from_millis(1))?),
                CsvColumn::Rate => {
                    let rate = parse_bitrate_in(&text, Bitrate::from_bits_per_sec(1));
                    row.rate = Some(rate.map_err(|error| error.to_string())?);
                }
                CsvColumn::Loss => {
                    row.loss = Some(parse_share(&text).map_err(|error| error.to_string())?);
                }
            }
        }
        Ok(row)
    }
}

fn column(name: &str) -> Result<(CsvColumn, &'static str), String> {
    let name = name.trim().to_ascii_lowercase();
    COLUMNS
        .iter()
        .find(|(known, ..)| *known == name)
        .map(|&(_, column, unit)| (column, unit))
        .ok_or_else(|| {
            format!(
                "unknown column `{name}`; write time, rate, delay or loss, or with a unit time_s, \
                 time_ms, rate_mbps, rate_kbps, rate_bps, delay_ms, delay_s, loss_%"
            )
        })
}

fn duration(text: &str, unit: Duration) -> Result<Duration, String> {
    parse_duration_in(text, unit).map_err(|error| error.to_string())
}

fn check_order(last: Option<&TraceRow>, row: &TraceRow) -> Result<(), String> {
    match last {
        Some(last) if row.at <= last.at => {
            Err(format!("time {:?} comes after {:?}, but times must ascend", row.at, last.at))
        }
        _ => Ok(()),
    }
}

const COLUMNS: [(&str, CsvColumn, &str); 15] = [
    ("time", CsvColumn::Time, ""),
    ("time_s", CsvColumn::Time, "s"),
    ("time_ms", CsvColumn::Time, "ms"),
    ("time_us", CsvColumn::Time, "us"),
    ("rate", CsvColumn::Rate, ""),
    ("rate_mbps", CsvColumn::Rate, "Mbps"),
    ("rate_kbps", CsvColumn::Rate, "kbps"),
    ("rate_bps", CsvColumn::Rate, "bps"),
    ("delay", CsvColumn::Delay, ""),
    ("delay_s", CsvColumn::Delay, "s"),
    ("delay_ms", CsvColumn::Delay, "ms"),
    ("delay_us", CsvColumn::Delay, "us"),
    ("loss", CsvColumn::Loss, ""),
    ("loss_%", CsvColumn::Loss, "%"),
    ("loss_percent", CsvColumn::Loss, "%"),
];

/// Of a trace that is played again and again.
const SHORTEST_PERIOD: Duration = Duration::from_millis(1);
/// Half of the clock's range.
const LONGEST_PERIOD: Duration = Duration::from_nanos(u64::MAX / 2);
/// 64 MB.
const MAX_ROWS: usize = 1_000_000;
