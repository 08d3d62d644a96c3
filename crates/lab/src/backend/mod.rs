//! The backends that run a plan: in virtual time, with real sockets, with other programs, or over
//! the model of QUIC.

mod blocks;
mod course;
mod external;
mod net;
mod quic;
mod quic_model;
mod ramp;
mod real;
mod series;
mod sim;
mod tcp;

pub use external::External;
pub use net::Net;
pub use quic_model::QuicModel;
pub use sim::Sim;

pub(crate) use blocks::{BUFFERS, Expected, ROUNDS, Totals};

use std::collections::BTreeMap;

use crate::results::NamedNumber;
use crate::run::RunSpec;

/// Runs one run of a plan.
pub trait Backend: Sync {
    /// How plans and results call it.
    fn name(&self) -> &'static str;

    /// The number of runs that it can do at a time, at most `wanted`. Backends in real time leave
    /// each run a core of its own.
    fn at_a_time(&self, wanted: usize) -> usize {
        wanted
    }

    /// Why this machine cannot run it, such as a right that the process lacks; `None` if it can. A
    /// sweep leaves such runs out.
    fn lacks(&self, _: &RunSpec) -> Option<String> {
        None
    }

    /// Runs it to its end.
    ///
    /// # Errors
    ///
    /// The error tells why it could not run at all. A stream that ended badly is an outcome.
    fn run(&self, spec: &RunSpec) -> Result<Outcome, String>;
}

/// The outcome of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// `ok`, or how it ended otherwise.
    pub status: String,
    /// Its figures by column. NaN means unknown.
    pub numbers: BTreeMap<String, f64>,
    /// Its course over time, if that was wanted.
    pub series: Option<Series>,
    /// Tables of its parts, by their names.
    pub records: BTreeMap<&'static str, Series>,
    /// Its packets as a pcapng file, if they were wanted.
    pub capture: Option<Vec<u8>>,
}

/// The course of a run: statistics of each period.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
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
