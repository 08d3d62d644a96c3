//! The outcome of a run.

use std::collections::BTreeMap;

use crate::numbers::NamedNumber;

/// The outcome of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// `ok`, or how it ended otherwise.
    pub status: String,
    /// Its figures by column. NaN means unknown.
    pub numbers: BTreeMap<String, f64>,
    /// Its course over time, if that was wanted.
    pub series: Option<RunSeries>,
    /// Tables of its parts, by their names.
    pub records: BTreeMap<&'static str, RunSeries>,
    /// Its packets as a pcapng file, if they were wanted.
    pub capture: Option<Vec<u8>>,
}

/// The course of a run: statistics of each period.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunSeries {
    /// Names of the columns; the first is `time_s`, the end of the period since the start.
    pub columns: Vec<String>,
    /// A row for each period. NaN means unknown.
    pub rows: Vec<Vec<f64>>,
}

impl Outcome {
    /// The status of a successful run.
    pub const OK: &'static str = "ok";

    pub(crate) fn extend(&mut self, numbers: impl IntoIterator<Item = NamedNumber>) {
        self.numbers.extend(numbers);
    }

    pub(crate) fn set(&mut self, name: &str, number: f64) {
        self.numbers.insert(name.to_owned(), number);
    }
}
