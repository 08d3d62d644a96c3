//! The tables: figures, ratios, verdicts; on the terminal and in a Markdown file.

use std::fmt;

use crate::pair::Implementation;

/// One figure of the table, taken several times.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The name of the measurement.
    pub(crate) what: &'static str,
    /// Unit of the samples.
    pub(crate) unit: &'static str,
    /// The figure that should be reached.
    pub(crate) target: Target,
    /// One a repeat.
    pub(crate) samples: Vec<Sample>,
}

/// The implementations' figures of one repeat; `None` for one that was not measured.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    reference: Option<f64>,
    punctual: Option<f64>,
    c_library: Option<f64>,
}

impl Sample {
    /// A figure that only Punctual has.
    pub(crate) fn punctual(figure: Option<f64>) -> Self {
        Self { punctual: figure, ..Self::default() }
    }

    /// Punctual's figure beside that of a program that is compared with it.
    pub(crate) fn beside(reference: Option<f64>, punctual: Option<f64>) -> Self {
        Self { reference, punctual, c_library: None }
    }

    /// This implementation's figure.
    pub(crate) fn of(&mut self, implementation: Implementation) -> &mut Option<f64> {
        match implementation {
            Implementation::Libsrt => &mut self.reference,
            Implementation::Punctual => &mut self.punctual,
            Implementation::CLibrary => &mut self.c_library,
        }
    }

    /// Punctual's figure divided by the reference's.
    fn ratio(&self) -> Option<f64> {
        Some(self.punctual? / self.reference?)
    }

    /// The C library's figure divided by libsrt's.
    fn c_library_ratio(&self) -> Option<f64> {
        Some(self.c_library? / self.reference?)
    }

    /// The C library's figure less that of the library for Rust.
    fn c_library_excess(&self) -> Option<f64> {
        Some(self.c_library? - self.punctual?)
    }
}

/// The figure that the median should reach: Punctual's, or the C library's.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// This multiple of the reference's figure or more.
    AtLeastTimes(f64),
    /// This multiple of the reference's figure or less.
    AtMostTimes(f64),
    /// This figure or more, whatever the reference's is.
    AtLeast(f64),
    /// This figure or less, whatever the reference's is.
    AtMost(f64),
    /// Less than this figure, whatever the reference's is.
    Below(f64),
    /// Nothing: the figure is there to be compared with those of other versions.
    None,
    /// At most this much more than the figure of the library for Rust.
    AtMostMore(f64),
    /// This one, which the C library should reach: the row belongs to its table.
    OfCLibrary(&'static Self),
}

/// The rows of some scenarios under one heading.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    /// The heading of the table.
    pub(crate) heading: &'static str,
    /// The implementation that Punctual is compared with.
    pub(crate) reference: &'static str,
    /// The figures, for the library for Rust and for the C library.
    pub(crate) rows: Vec<Row>,
}

/// The tables, which read well on a terminal and are Markdown too: a table for each section, and
/// one with all rows of the C library.
pub(crate) fn tables(sections: &[Section]) -> String {
    let mut tables = String::new();
    for &Section { heading, reference, ref rows } in sections {
        let header = ["what", "target", reference, "Punctual", "ratio", "verdict"];
        let rows = rows.iter().filter(|row| !row.is_of_c_library());
        let rows = rows.map(|row| row.cells(reference)).collect();
        tables += &under(heading, &table(header.map(String::from), rows));
    }
    let header = ["what", "target", LIBSRT, "Punctual", "C library", "ratio", "verdict"];
    let all = sections.iter().flat_map(|section| &section.rows);
    let rows = all.filter(|row| row.is_of_c_library()).map(Row::c_library_cells);
    tables += &under(C_LIBRARY, &table(header.map(String::from), rows.collect()));
    tables
}

/// The text of a page: the machine and the tables.
pub(crate) fn text(sections: &[Section], machine: &str, quick: bool) -> String {
    let rough = if quick { "A quick run: one repeat, short runs, rough figures.\n\n" } else { "" };
    format!("{machine}\n\n{rough}{}", tables(sections))
}

/// The table under its heading, and an empty line; empty without rows.
fn under(heading: &str, table: &str) -> String {
    if table.is_empty() { String::new() } else { format!("### {heading}\n\n{table}\n") }
}

/// One table; empty without rows.
fn table<const N: usize>(header: [String; N], rows: Vec<[String; N]>) -> String {
    // A column without any figure is left out.
    let filled = |&column: &usize| rows.iter().any(|row| row[column] != NONE);
    let columns: Vec<usize> = (0..N).filter(filled).collect();
    if columns.is_empty() {
        return String::new();
    }
    let cells: Vec<_> = std::iter::once(header).chain(rows).collect();
    let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max();
    let columns = columns.into_iter().map(|column| (column, width(column).unwrap_or(0)));
    let columns: Vec<(usize, usize)> = columns.collect();
    let mut table = String::new();
    for (i, row) in cells.iter().enumerate() {
        for &(column, width) in &columns {
            table += &format!("| {:width$} ", row[column]);
        }
        table += "|\n";
        if i == 0 {
            for (_, width) in &columns {
                table += &format!("|{:-<1$}", "", width + 2);
            }
            table += "|\n";
        }
    }
    table
}

impl Row {
    /// This row, and one for the C library with the same samples and this target.
    pub(crate) fn and_c_library(self, target: &'static Target) -> [Self; 2] {
        let c_library = Self { target: Target::OfCLibrary(target), ..self.clone() };
        [self, c_library]
    }

    const fn is_of_c_library(&self) -> bool {
        matches!(self.target, Target::OfCLibrary(_))
    }

    fn cells(&self, reference: &str) -> [String; 6] {
        let punctual = self.spread(|sample| sample.punctual);
        let ratio = self.spread(Sample::ratio);
        [
            self.what.to_owned(),
            self.target.describe(self.unit, reference),
            self.told(self.spread(|sample| sample.reference)),
            self.told(punctual),
            ratio.map_or(NONE.into(), |spread| spread.to_string()),
            verdict(self.target.met(ratio, punctual, None)),
        ]
    }

    fn c_library_cells(&self) -> [String; 7] {
        let c_library = self.spread(|sample| sample.c_library);
        let ratio = self.spread(Sample::c_library_ratio);
        let excess = self.spread(Sample::c_library_excess);
        [
            self.what.to_owned(),
            self.target.describe(self.unit, LIBSRT),
            self.told(self.spread(|sample| sample.reference)),
            self.told(self.spread(|sample| sample.punctual)),
            self.told(c_library),
            ratio.map_or(NONE.into(), |spread| spread.to_string()),
            verdict(self.target.met(ratio, c_library, excess)),
        ]
    }

    fn spread(&self, of: fn(&Sample) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.samples.iter().map(of))
    }

    fn told(&self, spread: Option<Spread>) -> String {
        spread.map_or(NONE.into(), |spread| format!("{spread} {}", self.unit))
    }
}

fn verdict(met: Option<bool>) -> String {
    match met {
        Some(true) => "met",
        Some(false) => "**missed**",
        None => NONE,
    }
    .to_owned()
}

impl Target {
    fn describe(self, unit: &str, reference: &str) -> String {
        match self {
            Self::AtLeastTimes(times) => format!("≥ {times} × {reference}"),
            Self::AtMostTimes(times) => format!("≤ {times} × {reference}"),
            Self::AtLeast(limit) => format!("≥ {limit} {unit}"),
            Self::AtMost(limit) => format!("≤ {limit} {unit}"),
            Self::Below(limit) => format!("< {limit} {unit}"),
            Self::None => NONE.into(),
            Self::AtMostMore(limit) => format!("≤ {limit} {unit} more than in Rust"),
            Self::OfCLibrary(target) => target.describe(unit, reference),
        }
    }

    /// Whether the medians reach the target; `None` if a figure for that was not measured. `excess`
    /// is what the C library has more than the one for Rust.
    fn met(
        self,
        ratio: Option<Spread>,
        figure: Option<Spread>,
        excess: Option<Spread>,
    ) -> Option<bool> {
        Some(match self {
            Self::AtLeastTimes(times) => ratio?.median >= times,
            Self::AtMostTimes(times) => ratio?.median <= times,
            Self::AtLeast(limit) => figure?.median >= limit,
            Self::AtMost(limit) => figure?.median <= limit,
            Self::Below(limit) => figure?.median < limit,
            Self::None => return None,
            Self::AtMostMore(limit) => excess?.median <= limit,
            Self::OfCLibrary(target) => return target.met(ratio, figure, excess),
        })
    }
}

/// Median, least and greatest of some figures.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    median: f64,
    min: f64,
    max: f64,
    count: usize,
}

impl Spread {
    /// Of those figures that there are; `None` without any.
    fn of(figures: impl Iterator<Item = Option<f64>>) -> Option<Self> {
        let mut figures: Vec<f64> = figures.flatten().collect();
        figures.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*figures.first()?, *figures.last()?);
        let middle = figures.len() / 2;
        let median = match figures.len() % 2 {
            1 => figures[middle],
            _ => f64::midpoint(figures[middle - 1], figures[middle]),
        };
        Some(Self { median, min, max, count: figures.len() })
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&short(self.median))?;
        if self.count > 1 {
            write!(f, " ({} to {})", short(self.min), short(self.max))?;
        }
        Ok(())
    }
}

/// Three significant digits, more where there are more before the point.
fn short(figure: f64) -> String {
    match figure.abs() {
        size if size >= 99.95 => format!("{figure:.0}"),
        size if size >= 9.995 => format!("{figure:.1}"),
        size if size >= 0.9995 => format!("{figure:.2}"),
        _ => format!("{figure:.3}"),
    }
}

/// The reference of most tables.
pub(crate) const LIBSRT: &str = "libsrt";
/// The text in place of a figure that was not measured.
const NONE: &str = "–";
/// The heading of the C library's table.
const C_LIBRARY: &str = "The C library in libsrt's place";

#[cfg(test)]
mod tests {
    use super::*;

    fn row(target: Target, samples: &[(Option<f64>, f64)]) -> Row {
        let samples = samples
            .iter()
            .map(|&(reference, punctual)| Sample {
                reference,
                punctual: Some(punctual),
                c_library: Some(punctual + 1.0),
            })
            .collect();
        Row { what: "one thing", unit: "Mb/s", target, samples }
    }

    fn section(heading: &'static str, rows: Vec<Row>) -> Section {
        Section { heading, reference: LIBSRT, rows }
    }

    #[test]
    fn a_table_names_what_punctual_is_compared_with() {
        let rows = vec![row(Target::AtMostTimes(0.5), &[(Some(2.0), 0.5)])];
        let tables = tables(&[Section { heading: "Relays", reference: "peer", rows }]);
        assert!(tables.contains("| peer ") && tables.contains("≤ 0.5 × peer"), "{tables}");
    }

    #[test]
    fn a_row_quotes_medians_and_the_median_of_the_ratios() {
        let samples = [(Some(100.0), 450.0), (Some(200.0), 700.0), (Some(110.0), 440.0)];
        let cells = row(Target::AtLeastTimes(4.0), &samples).cells(LIBSRT);
        assert_eq!(cells[1], "≥ 4 × libsrt");
        assert_eq!(cells[2], "110 (100 to 200) Mb/s");
        assert_eq!(cells[3], "450 (440 to 700) Mb/s");
        assert_eq!(cells[4], "4.00 (3.50 to 4.50)");
        assert_eq!(cells[5], "met");
        let cells = row(Target::AtMostTimes(0.25), &[(Some(2.0), 0.502)]).cells(LIBSRT);
        assert_eq!(cells[2..], ["2.00 Mb/s", "0.502 Mb/s", "0.251", "**missed**"]);
    }

    #[test]
    fn without_libsrt_only_an_absolute_target_has_a_verdict() {
        let cells = row(Target::AtMostTimes(0.5), &[(None, 12.0)]).cells(LIBSRT);
        assert_eq!(cells[2..], [NONE, "12.0 Mb/s", NONE, NONE]);
        assert_eq!(row(Target::AtMost(12.0), &[(None, 12.0)]).cells(LIBSRT)[5], "met");
        assert_eq!(row(Target::AtLeast(12.0), &[(None, 11.9)]).cells(LIBSRT)[5], "**missed**");
        assert_eq!(row(Target::Below(12.0), &[(None, 12.0)]).cells(LIBSRT)[5], "**missed**");
    }

    #[test]
    fn the_median_of_an_even_number_is_the_middle() {
        let spread = Spread::of([Some(4.0), None, Some(1.0)].into_iter()).unwrap();
        assert_eq!(spread, Spread { median: 2.5, min: 1.0, max: 4.0, count: 2 });
        assert_eq!(Spread::of(std::iter::empty()), None);
    }

    #[test]
    fn all_lines_of_the_table_are_equally_wide() {
        let rows = vec![row(Target::AtMost(2.0), &[(Some(1.0), 2.0)])];
        let tables = tables(&[section("Rates", rows)]);
        let rows = tables.lines().filter(|line| line.starts_with('|'));
        let widths: Vec<usize> = rows.map(|line| line.chars().count()).collect();
        assert_eq!(widths.len(), 3);
        assert!(widths.iter().all(|&width| width == widths[0]), "{tables}");
    }

    #[test]
    fn each_section_has_its_heading_and_only_the_columns_with_figures() {
        let rows = |samples| vec![row(Target::AtMost(2.0), samples)];
        let sections =
            [section("Rates", rows(&[(Some(1.0), 2.0)])), section("Worlds", rows(&[(None, 2.0)]))];
        let text = text(&sections, "2 cores", true);
        let (rates, worlds) = text.split_once("### Worlds\n").unwrap();
        assert!(rates.starts_with("2 cores\n\nA quick run"), "{rates}");
        assert!(rates.contains("### Rates\n\n| what ") && rates.contains("| libsrt "), "{rates}");
        assert!(worlds.contains("| what ") && !worlds.contains("libsrt"), "{worlds}");
        assert!(worlds.contains("| Punctual ") && worlds.contains("| verdict "), "{worlds}");
    }

    #[test]
    fn the_c_library_has_a_table_of_its_own_with_targets_of_its_own() {
        let rust = row(Target::AtMostTimes(0.25), &[(Some(2.0), 0.5)]);
        let rows = rust.and_c_library(&Target::AtMostMore(0.9));
        let cells = rows[1].c_library_cells();
        let more = "≤ 0.9 Mb/s more than in Rust";
        assert_eq!(cells[1..4], [more, "2.00 Mb/s", "0.500 Mb/s"]);
        assert_eq!(cells[4..], ["1.50 Mb/s", "0.750", "**missed**"]);
        let tables = tables(&[section("Rates", rows.into())]);
        let (rust, c_library) = tables.split_once(C_LIBRARY).unwrap();
        assert!(rust.contains("met") && !rust.contains("**missed**"), "{rust}");
        assert!(c_library.contains("**missed**"), "{c_library}");
    }
}
