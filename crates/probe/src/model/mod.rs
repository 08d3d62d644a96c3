//! How likely a lost packet is still missing after a time, what it costs to send it again, and
//! what latency that takes: rounds of report and retransmission.
//!
//! [`Rounds`] are those of libsrt's two algorithms, where everything that is missing is reported
//! once a period; [`TimedRounds`] are those of the deadline-aware one, where each packet is asked
//! for by a clock of its own and the last answer is sent more than once (`docs/retransmission.md`).
//! [`needs`] turns both around: the least latency that leaves no more than a target missing.

mod latency;
mod periodic;
mod timed;

pub use latency::{Need, Needs, Path, PathError, bound, needs};
pub use periodic::Rounds;
pub use timed::{Outcome, TimedRounds};
