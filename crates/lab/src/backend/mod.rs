//! The backends that run a plan: in virtual time, with real sockets, with other programs, or over
//! the model of QUIC.

pub(crate) mod blocks;
mod course;
pub(crate) mod external;
pub(crate) mod net;
mod quic;
mod quic_model;
mod ramp;
mod real;
mod series;
pub(crate) mod sim;
mod tcp;

pub use external::External;
pub use net::Net;
pub use quic_model::QuicModel;
pub use sim::Sim;

pub use crate::outcome::{Outcome, RunSeries};
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
