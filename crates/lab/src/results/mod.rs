//! Results of runs: rows, summaries with intervals, and published figures to show beside them.

pub(crate) mod blocks;
mod box_plot;
pub(crate) mod columns;
mod condition;
mod course;
pub(crate) mod drawing;
pub(crate) mod folder;
pub(crate) mod interval;
pub(crate) mod layout;
pub(crate) mod meta;
pub(crate) mod names;
#[cfg(feature = "parquet")]
mod parquet_file;
mod parts;
mod plot;
pub(crate) mod quic_model;
mod reference;
mod runs;
pub(crate) mod sheet;
pub(crate) mod tabulation;
pub(crate) mod tcp;

use std::path::{Path, PathBuf};

use crate::outcome::Outcome;
use crate::plan::value::literal;
use crate::plan::{Figure, Filter, Grouping, LABELS, Metric, Plan, keys};
use crate::results::folder::SERIES;
use crate::results::reference::Beside;
use crate::results::runs::Runs;

pub use crate::numbers::NamedNumber;
pub use columns::{full_name, result_columns};
pub use drawing::{Drawing, DrawnAxis, DrawnLine, DrawnPoint};
pub use interval::Estimate;
pub use layout::ParameterColumn;
pub use meta::Meta;
pub use sheet::Sheet;
pub use tabulation::{Column, Tabulation};

pub(crate) use folder::Folder;

/// The results of a plan, with the plan.
///
/// [`Results::load`] reads the folder of a sweep; [`Results::drawing`] and [`Results::tabulation`]
/// make the figures and tables of the plan.
#[derive(Clone, Debug)]
pub struct Results {
    /// The plan as it was run, with the values from the command line.
    pub plan: Plan,
    /// How they were made.
    pub meta: Meta,
    /// A row a run.
    pub sheet: Sheet,
    /// Where they lie; `None` if only in memory.
    pub folder: Option<PathBuf>,
    /// Where the plan lay, for references beside it.
    pub(crate) plan_folder: Option<PathBuf>,
}

/// From which lateness of the emulator's packets on, in µs, a run tells of the machine rather than
/// of the link. A host's own timers are some 0.1 ms late.
pub const LATE_US: f64 = 500.0;

/// The columns that tell it: of one packet of a hundred, each way.
pub(crate) const LATENESS_P99: [&str; 2] = ["up.usLateP99", "down.usLateP99"];

impl Results {
    /// Reads a folder of results, finished or not.
    ///
    /// # Errors
    ///
    /// The file that is missing or cannot be read.
    pub fn load(path: &Path) -> Result<Self, String> {
        Folder::new(path).load()
    }

    /// A figure of the plan as lines of points.
    pub fn drawing(&self, figure: &Figure) -> Drawing {
        Drawing::of(self, figure)
    }

    /// A table of the plan as rows of cells.
    pub fn tabulation(&self, table: &Grouping) -> Tabulation {
        Tabulation::of(self, table)
    }

    /// One summary for each group of runs that differ in more than their repeat: for the end of a
    /// command.
    pub fn summary(&self) -> Tabulation {
        Tabulation::summary(self)
    }

    /// Rows of runs that did not end well; no figure and no table holds them.
    pub fn failed_runs(&self) -> Vec<usize> {
        let failed = |row: &usize| self.sheet.text(*row, "status") != Outcome::OK;
        (0..self.sheet.rows().len()).filter(failed).collect()
    }

    /// Rows of runs in real time in which one packet of a hundred was later than
    /// [`LATE_US`], with how late that was, in µs.
    pub fn late_runs(&self) -> Vec<(usize, f64)> {
        let late = |row: usize| {
            let late = LATENESS_P99.into_iter().filter_map(|way| self.sheet.number(row, way));
            let most = late.fold(0.0, f64::max);
            (most > LATE_US).then_some((row, most))
        };
        (0..self.sheet.rows().len()).filter_map(late).collect()
    }

    /// Whether any run fulfils these conditions.
    pub fn has(&self, filters: &[Filter]) -> bool {
        Runs::selected(self, filters).first().is_some()
    }

    /// The course of a run.
    ///
    /// # Errors
    ///
    /// None was recorded, or it cannot be read.
    pub fn series_of(&self, row: usize) -> Result<Sheet, String> {
        self.record_of(row, SERIES)
    }

    /// The record of this name of a run.
    ///
    /// # Errors
    ///
    /// None was written, or it cannot be read.
    pub(crate) fn record_of(&self, row: usize, record: &str) -> Result<Sheet, String> {
        let none = || "these results lie in no folder".to_owned();
        let folder = Folder::new(self.folder.as_ref().ok_or_else(none)?);
        folder.record_of(self.sheet.text(row, "run"), self.sheet.text(row, "backend"), record)
    }

    /// The published figures of a reference of the plan.
    ///
    /// # Errors
    ///
    /// The plan has no such reference, or it cannot be read.
    pub(crate) fn beside(&self, name: &str) -> Result<Beside<'_>, String> {
        let reference = self.plan.references.iter().find(|reference| reference.name == name);
        let reference = reference.ok_or_else(|| format!("no reference `{name}`"))?;
        Beside::read(self, reference)
    }

    /// The metric of this name.
    pub fn metric(&self, name: &str) -> Option<&Metric> {
        self.plan.metrics.iter().find(|metric| metric.name == name)
    }

    /// The title of a metric or a column.
    pub fn title_of(&self, name: &str) -> String {
        self.metric(name).map_or_else(|| name.to_owned(), |metric| metric.title.clone())
    }

    /// A value of a parameter with its unit, for people.
    pub fn shown(&self, name: &str, value: &str) -> String {
        let unit = self.parameter(name).map_or("", |parameter| parameter.unit.as_str());
        if value.is_empty() || unit.is_empty() {
            value.to_owned()
        } else {
            format!("{value} {unit}")
        }
    }

    /// The parameter that a figure or formula means by `name`.
    pub(crate) fn parameter(&self, name: &str) -> Option<&ParameterColumn> {
        self.meta.parameters.iter().find(|parameter| parameter.is(name))
    }

    /// The full key of a parameter.
    pub(crate) fn key_of(&self, name: &str) -> Option<&str> {
        self.parameter(name).map(|parameter| parameter.key.as_str())
    }

    /// The name of the column that a figure or formula means by `name`.
    pub(crate) fn column_of(&self, name: &str) -> Option<String> {
        if self.sheet.column(name).is_some() {
            return Some(name.to_owned());
        }
        let parameter = self.parameter(name).map(|parameter| parameter.column.clone());
        parameter.or_else(|| full_name(name).filter(|name| self.sheet.column(name).is_some()))
    }

    /// The number of a run that a figure or formula means by `name`.
    pub(crate) fn number_of(&self, row: usize, name: &str) -> Option<f64> {
        self.sheet.number(row, &self.column_of(name)?)
    }

    /// A written value of a parameter as it is written in results.
    pub(crate) fn plain(&self, name: &str, written: &str) -> String {
        if LABELS.contains(&name) {
            return written.to_owned();
        }
        literal(written, self.key_of(name).and_then(keys::measure)).plain()
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
