//! Results of runs: rows, summaries with intervals, and published figures to show beside them.

mod blocks;
mod box_plot;
mod columns;
mod drawing;
mod estimate;
mod folder;
mod interval;
mod layout;
mod meta;
mod names;
#[cfg(feature = "parquet")]
mod parquet_file;
mod parts;
mod quic_model;
mod reference;
mod sheet;
mod tabulation;
mod tcp;

use std::path::PathBuf;

use crate::backend::Outcome;
use crate::plan::Plan;

pub use columns::{NamedNumber, full_name, result_columns};
pub use drawing::{Axis, Drawing, Line, Point};
pub use interval::Estimate;
pub use layout::ParameterColumn;
pub use meta::Meta;
pub use sheet::Sheet;
pub use tabulation::{Column, Tabulation};

pub(crate) use blocks::{BLOCKS, READCHUNKS, RECORDS, Record, blocks};
pub(crate) use columns::{
    is_total, lateness, link, quantiles, report, statistic_names, statistics, traffic,
};
pub(crate) use folder::Folder;
pub(crate) use layout::Layout;
pub(crate) use names::KnownNames;
pub(crate) use quic_model::{quic_model, quic_state};
pub(crate) use sheet::csv_line;
pub(crate) use tcp::{TcpCounts, TcpFound, tcp};

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
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
