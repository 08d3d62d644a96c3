//! Round-trip time estimation, independent of the transport protocol.
//!
//! An [`RttEstimator`] turns the samples of one path into an estimate, [`Rtt`]. It is told of each
//! packet that asks for an acknowledgement when that packet is sent, and of each sample with the
//! number of the acknowledged packet. So an estimator may divide time into measurement epochs,
//! which end with the acknowledgement of a packet that was sent in them.
//!
//! Numbers are [`PacketNumber`]s, which never wrap. QUIC's packet numbers are such numbers; SRT's
//! ACK numbers and sequence numbers are expanded by [`PacketNumber::expand`].
//!
//! | estimator | updates | source |
//! |---|---|---|
//! | [`ClassicRtt`] | with each sample | the SRT draft, section 4.10; RFC 6298 |
//! | [`Rfc9002Rtt`] | with each sample, less the peer's delay | RFC 9002 section 5 |
//! | [`OnceStrictRtt`] | once in a round trip | the text "Update QUIC timers once per RTT", 2023 |
//! | [`OncePublishedRtt`] | mostly with each sample | the code that gave the text's results |
//! | [`QuantileRtt`] | with each sample | this project |
//!
//! [`BuiltInRtt`] names them for options and plans.
//!
//! [`RetransmissionTimer`] makes of an estimate the time after which an acknowledgement is overdue,
//! by one of four formulas ([`TimerRule`]).
//!
//! ```
//! use std::time::Duration;
//!
//! use punctual_rtt::{ClassicRtt, PacketNumber, RttEstimator, RttSample};
//! use punctual_units::Instant;
//!
//! let mut estimator = ClassicRtt::default();
//! let (sent, number) = (Instant::from_millis(100), PacketNumber::new(1));
//! estimator.sent(sent, number);
//! let acknowledged = Instant::from_millis(120);
//! estimator.acknowledged(&RttSample {
//!     now: acknowledged,
//!     number,
//!     rtt: acknowledged - sent,
//!     ack_delay: Duration::ZERO,
//! });
//! let estimate = estimator.estimate().expect("there was a sample");
//! assert_eq!(estimate.smoothed, Duration::from_millis(20));
//! assert_eq!(estimate.variance, Duration::from_millis(10));
//! ```

#![forbid(unsafe_code)]

mod adjust;
mod built_in;
mod classic;
mod epoch;
mod estimate;
mod estimator;
mod number;
mod once_published;
mod once_strict;
mod quantile;
mod rfc9002;
#[cfg(test)]
mod testing;
mod timer;

pub use built_in::BuiltInRtt;
pub use classic::ClassicRtt;
pub use estimate::Rtt;
pub use estimator::{RttEstimator, RttSample};
pub use number::PacketNumber;
pub use once_published::OncePublishedRtt;
pub use once_strict::OnceStrictRtt;
pub use quantile::QuantileRtt;
pub use rfc9002::Rfc9002Rtt;
pub use timer::{RetransmissionTimer, TimerRule};
