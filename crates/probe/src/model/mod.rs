//! Models of loss recovery: the probability that a lost packet is still missing after a time, the
//! number of retransmissions, and the latency that follows. They count rounds of NAK and
//! retransmission.
//!
//! [`Rounds`] are those of libsrt's two algorithms, where a periodic NAK lists everything that is
//! missing; [`TimedRounds`] are those of the deadline-aware one, where each packet has a NAK timer
//! and the last retransmission is sent more than once (`docs/retransmission.md`). [`needs`] inverts
//! both: it finds the least latency that leaves no more than a target missing.
//!
//! [`glitch`] is the model of a stream that loses nothing: it says how rarely a packet comes later
//! than its playout point (`docs/model.md`). [`tcp`] has the formulas of TCP's rate beside
//! it.

mod gilbert;
pub mod glitch;
mod latency;
mod periodic;
pub mod tcp;
mod timed;

pub use latency::{Need, Needs, PathFigureError, PathFigures, bound, needs};
pub use periodic::Rounds;
pub use timed::{Outcome, TimedRounds};
