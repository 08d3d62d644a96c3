//! Glitches of a stream that loses nothing: how often a packet is not there when it is wanted.
//!
//! [`paper`] has the equations of the FASPstream paper as printed, with their slips. [`Playout`] is
//! the corrected model: it adds to them NAKs that are lost, NAKs in several datagrams, rounds that
//! take longer than a round trip, copies of retransmissions, losses in bursts, and the size of the
//! readchunk (`docs/model.md`).

mod bursts;
mod lateness;
pub mod paper;
mod playout;
mod recovery;
mod rounds;

pub use playout::{Outcome, Playout, PlayoutError, Wanted};
pub use recovery::{Effort, Recovery, RoundTiming};
