//! The data of the figures: the connections of all files, on one clock.

use std::path::{Path, PathBuf};
use std::{fs, io};

use punctual_figures::Text;
use punctual_stats::read::{ConnectionRows, StatsTable, TableKind};

use crate::args::TimeAlignment;
use crate::exit::Failure;

/// The contents of all files.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) sources: Vec<Source>,
    pub(super) warnings: Vec<String>,
    align: TimeAlignment,
    files: usize,
}

/// The rows of one connection of one file.
#[derive(Debug)]
pub(super) struct Source {
    /// The name that no other connection has.
    pub(super) name: String,
    /// Its colour in all figures.
    pub(super) slot: usize,
    /// The file's name.
    pub(super) file: String,
    pub(super) kind: TableKind,
    pub(super) rows: ConnectionRows,
    /// Seconds from the start of the chart to the start of the file.
    offset: f64,
    /// Usual time between two rows, in seconds.
    pub(super) period: f64,
    /// Whether counts are totals instead of counts of one row.
    counts_go_on: bool,
}

/// Reads all files and puts them on one clock.
pub(super) fn load(files: &[PathBuf], align: Option<TimeAlignment>) -> Result<Loaded, Failure> {
    let mut tables = Vec::new();
    let mut warnings = Vec::new();
    for file in files {
        let text = read(file).map_err(|error| Failure::file(file, &error))?;
        let table = StatsTable::parse(&text)
            .map_err(|error| Failure::runtime(error.to_string()).at(file.display()))?;
        let told = table.warnings.iter().map(|warning| format!("{}: {warning}", file.display()));
        warnings.extend(told);
        if table.connections.iter().all(ConnectionRows::is_empty) {
            warnings.push(format!("{}: there are no rows in it", file.display()));
        }
        tables.push(table);
    }
    let align = choose(&tables, files, align)?;
    let first = tables.iter().filter_map(StatsTable::start_us).min();
    let names = distinct_names(files);
    let mut sources: Vec<Source> = Vec::new();
    for ((table, file), name) in tables.into_iter().zip(files).zip(names) {
        let offset = match (align, first, table.start_us()) {
            (TimeAlignment::Clock, Some(first), Some(start)) => seconds(start - first),
            _ => 0.0,
        };
        let several = table.connections.len() > 1;
        for rows in table.connections {
            let name = if several { name_of(&name, &rows, &sources) } else { name.clone() };
            let counts_go_on = table.kind == TableKind::Metrics || go_on(&rows);
            if counts_go_on && table.kind == TableKind::Statistics {
                warnings.push(format!(
                    "{name}: its counts go on from row to row (-fullstats?); what is drawn is what \
                     was added in each row"
                ));
            }
            let file = file_name(file);
            let period = period(&rows);
            let kind = table.kind;
            let alike = |source: &&Source| source.kind == kind;
            let slot = sources.iter().filter(alike).count();
            sources.push(Source { name, slot, file, kind, rows, offset, period, counts_go_on });
        }
    }
    Ok(Loaded { sources, warnings, align, files: files.len() })
}

/// The text of a file. Damaged bytes of UTF-8 cost the line that they are in, not the file.
fn read(file: &Path) -> io::Result<String> {
    let bytes = fs::read(file)?;
    match bytes[..] {
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => punctual_units::text_of(bytes),
        _ => Ok(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

impl Loaded {
    /// The contents, in a sentence.
    pub(super) fn lead(&self) -> Text {
        let rows: usize = self.sources.iter().map(|source| source.rows.len()).sum();
        let connections = self.sources.len();
        let plural = |count: usize, word: &str| {
            if count == 1 { format!("{count} {word}") } else { format!("{count} {word}s") }
        };
        let (rows, series) = (plural(rows, "row"), plural(connections, "connection"));
        let how = match (self.files, self.align) {
            (1, _) => String::new(),
            (_, TimeAlignment::Start) => ", each drawn from its own start".to_owned(),
            (_, TimeAlignment::Clock) => ", laid over each other by the clock".to_owned(),
        };
        Text::from(format!("{rows} of {series} in {}{how}.", plural(self.files, "file")))
    }
}

impl Source {
    /// Time and value of each row that has a value, which is multiplied by `factor`.
    pub(super) fn points(&self, column: &str, factor: f64) -> Vec<(f64, f64)> {
        let points = self.rows.points(column);
        let points = points.filter(|(_, value)| *value != 0.0 || !MEASURED.contains(&column));
        points.map(|(at, value)| (at + self.offset, value * factor)).collect()
    }

    /// The same for a count, by the difference that each row makes.
    pub(super) fn counts(&self, column: &str) -> Vec<(f64, f64)> {
        let points = self.points(column, 1.0);
        if !self.counts_go_on {
            return points;
        }
        let mut before = 0.0;
        let added = |(at, total): (f64, f64)| {
            // A count that fell far has begun again; one that fell a little was corrected.
            let added = if total < 0.5 * before { total } else { total - before };
            before = total;
            (at, added)
        };
        points.into_iter().map(added).collect()
    }

    /// The same as it would be in rows of the usual period: a connection rarely ends with a whole
    /// one, and its last row would be drawn as a fall. A row of less than a tenth of a period says
    /// nothing and is left out.
    pub(super) fn counts_in_a_period(&self, column: &str) -> Vec<(f64, f64)> {
        let mut before = f64::NEG_INFINITY;
        let scaled = |(at, count): (f64, f64)| {
            let part = ((at - before) / self.period).min(1.0);
            before = at;
            match part {
                ..0.1 => None,
                ..0.9 => Some((at, count / part)),
                _ => Some((at, count)),
            }
        };
        self.counts(column).into_iter().filter_map(scaled).collect()
    }

    /// The whole count of a column.
    pub(super) fn total(&self, column: &str) -> Option<f64> {
        self.rows.column(column)?;
        Some(self.counts(column).iter().map(|(_, count)| count).sum())
    }

    /// Whether a column has anything but zeros.
    pub(super) fn has(&self, column: &str) -> bool {
        self.rows.points(column).any(|(_, value)| value != 0.0)
    }
}

/// The common time axis of the files.
fn choose(
    tables: &[StatsTable],
    files: &[PathBuf],
    wish: Option<TimeAlignment>,
) -> Result<TimeAlignment, Failure> {
    let without = tables.iter().position(|table| table.start_us().is_none());
    match (wish, without) {
        (Some(TimeAlignment::Clock), Some(index)) => Err(Failure::usage(format!(
            "{}: it has no `Timepoint`, so it cannot be laid over others by the clock; use --align \
             start",
            files[index].display()
        ))),
        (Some(align), _) => Ok(align),
        (None, Some(_)) => Ok(TimeAlignment::Start),
        (None, None) => {
            let starts = tables.iter().filter_map(StatsTable::start_us);
            let ends = tables.iter().filter_map(|table| {
                table.connections.iter().flat_map(|rows| &rows.timepoints_us).max().copied()
            });
            let overlap = starts.max() <= ends.min();
            Ok(if overlap { TimeAlignment::Clock } else { TimeAlignment::Start })
        }
    }
}

/// Whether the counts of statistics are totals: packets are counted and never fall, over enough
/// rows that this is not by chance, and they grow to many times the difference of a row.
fn go_on(rows: &ConnectionRows) -> bool {
    ["pktSent", "pktRecv"].into_iter().any(|column| {
        let counts: Vec<f64> = rows.points(column).map(|(_, count)| count).collect();
        let steady = counts.windows(2).all(|pair| pair[0] <= pair[1]);
        let (Some(first), Some(last)) = (counts.first(), counts.last()) else { return false };
        counts.len() >= 5 && steady && *last > 3.0 * first.max(1.0)
    })
}

/// The median distance of two rows, in seconds.
fn period(rows: &ConnectionRows) -> f64 {
    let mut steps: Vec<f64> = rows.seconds.windows(2).map(|pair| pair[1] - pair[0]).collect();
    steps.retain(|step| *step > 0.0);
    steps.sort_by(f64::total_cmp);
    steps.get(steps.len() / 2).copied().unwrap_or(1.0)
}

/// The name of one of several connections of a file: by its peer's address if the file has it, with
/// a number if a link was called again.
fn name_of(file: &str, rows: &ConnectionRows, named: &[Source]) -> String {
    let is_group = rows.id.parse().is_ok_and(|id: u32| id >> 30 == 1);
    let name = match &*rows.peer {
        "" if is_group => format!("{file} group"),
        "" => return format!("{file} #{}", rows.id),
        peer => format!("{file} {peer}"),
    };
    let before = named.iter().filter(|it| {
        let rest = it.name.strip_prefix(&name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(" ("))
    });
    match before.count() {
        0 => name,
        count => format!("{name} ({})", count + 1),
    }
}

/// Names of the files without their extension, and with their folder if two are the same.
fn distinct_names(files: &[PathBuf]) -> Vec<String> {
    let stem = |file: &Path| {
        file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
    };
    let is_alone = |file: &PathBuf| files.iter().filter(|f| stem(f) == stem(file)).count() == 1;
    let name = |file: &PathBuf| {
        if is_alone(file) { stem(file) } else { file.display().to_string() }
    };
    files.iter().map(name).collect()
}

fn file_name(file: &Path) -> String {
    file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

fn seconds(micros: i64) -> f64 {
    micros as f64 / 1e6
}

/// Columns in which 0 says that nothing was measured yet, as on a link that waits in reserve.
const MEASURED: &[&str] = &["mbpsBandwidth", "msRTT"];

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
