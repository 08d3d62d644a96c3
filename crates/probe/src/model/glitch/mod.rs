//! Glitches of a stream that loses nothing: how often a packet is not there when it is wanted.
//!
//! [`paper`] has the equations of the FASPstream paper as printed, with their slips. [`Playout`] is
//! the corrected model: it adds to them NAKs that are lost, NAKs in several datagrams, rounds that
//! take longer than a round trip, copies of retransmissions, losses in bursts, and the size of the
//! readchunk (`docs/model.md`). [`Question`] takes some figures of a stream and a path, and finds
//! the rest.

mod bursts;
mod conditions;
mod lateness;
mod mean_time;
pub mod paper;
mod playout;
mod question;
mod recovery;
mod rounds;
mod solve;

pub use conditions::{Conditions, ConditionsError, Setting};
pub use mean_time::DisplayMeanTime;
pub use playout::{Outcome, Playout, PlayoutError, WantedTime};
pub use question::{Answer, Answers, Question, QuestionError, SolvableFigure};
pub use recovery::{Effort, RecoveryEffort, RoundTiming};
