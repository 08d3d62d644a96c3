//! Models of loss recovery: the probability that a lost packet is still missing after a time, the
//! number of retransmissions, and the latency that follows. They count rounds of NAK and
//! retransmission.
//!
//! [`Rounds`] are those of libsrt's two algorithms, where a periodic NAK lists everything that is
//! missing; [`TimedRounds`] are those of the deadline-aware one, where each packet has a NAK timer
//! and the last retransmission is sent more than once (`docs/retransmission.md`). [`needs`] inverts
//! both: it finds the least latency that leaves no more than a target missing.

mod latency;
mod periodic;
mod timed;

pub use latency::{Need, Needs, Path, PathError, bound, needs};
pub use periodic::Rounds;
pub use timed::{Outcome, TimedRounds};
