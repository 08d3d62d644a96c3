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
//! [`ClassicRtt`] is the estimator of the SRT draft, section 4.10.
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

mod classic;
mod estimate;
mod estimator;
mod number;

pub use classic::ClassicRtt;
pub use estimate::Rtt;
pub use estimator::{RttEstimator, RttSample};
pub use number::PacketNumber;
