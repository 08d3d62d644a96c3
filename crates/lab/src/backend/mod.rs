//! Who runs a plan: virtual time, real sockets, or other people's programs.

mod course;
mod external;
mod net;
mod ramp;
mod real;
mod series;
mod sim;

pub use external::External;
pub use net::Net;
pub use sim::Sim;

use std::collections::BTreeMap;

use crate::results::NamedNumber;
use crate::run::RunSpec;

/// Runs one run of a plan.
pub trait Backend: Sync {
    /// How plans and results call it.
    fn name(&self) -> &'static str;

    /// How many runs it can do at a time, given that many workers are wanted. Those that need real
    /// time do no more than what leaves each run its own core.
    fn at_a_time(&self, wanted: usize) -> usize {
        wanted
    }

    /// Runs it to its end.
    ///
    /// # Errors
    ///
    /// What kept it from running at all. A stream that ended badly is an outcome.
    fn run(&self, spec: &RunSpec) -> Result<Outcome, String>;
}

/// What became of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// `ok`, or how it ended otherwise.
    pub status: String,
    /// What is known of it, by column. What is not a number is not known.
    pub numbers: BTreeMap<String, f64>,
    /// Its course over time, if that was wanted.
    pub series: Option<Series>,
    /// Its packets as a pcapng file, if they were wanted.
    pub capture: Option<Vec<u8>>,
}

/// The course of a run: statistics of each period.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Names of the columns; the first is `time_s`, the end of the period since the start.
    pub columns: Vec<String>,
    /// A row a period. What is not known is not a number.
    pub rows: Vec<Vec<f64>>,
}

impl Outcome {
    /// The status of a run that did what it should.
    pub const OK: &'static str = "ok";

    pub(crate) fn extend(&mut self, numbers: impl IntoIterator<Item = NamedNumber>) {
        self.numbers.extend(numbers);
    }

    pub(crate) fn set(&mut self, name: &str, number: f64) {
        self.numbers.insert(name.to_owned(), number);
    }
}
