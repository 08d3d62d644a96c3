//! Parts that congestion controls share.
//!
//! The simulator's TCP flows follow Linux, the model of QUIC follows picoquic, and a stream by
//! delay competes with such flows. These parts are the same in all three: the curve of CUBIC
//! ([`CubicCurve`]), the count of round trips ([`RoundCounter`]), the greatest rate of the latest
//! round trips ([`Greatest`]), and the sign that the rate no longer grows ([`FullPipe`]). The
//! controls themselves stay with the programs that they reproduce, whose rules differ.
//!
//! ```
//! use punctual_rates::CubicCurve;
//!
//! // A window of 1,000 packets lost one, and 700 are left.
//! let curve = CubicCurve::between(700.0, 1_000.0, 1.0);
//! assert_eq!(curve.window(0.0).round(), 700.0);
//! assert_eq!(curve.window(curve.rise()), 1_000.0);
//! ```

#![forbid(unsafe_code)]

mod cubic;
mod full_pipe;
mod greatest;
mod rounds;

pub use self::cubic::{CUBIC_DECREASE, CubicCurve, reno_growth};
pub use self::full_pipe::FullPipe;
pub use self::greatest::Greatest;
pub use self::rounds::RoundCounter;
