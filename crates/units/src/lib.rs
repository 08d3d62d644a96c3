//! Time and rate as Punctual counts them, and the way people write them.
//!
//! [`Instant`] is a point on a clock that the caller owns: real or virtual. [`Bitrate`] is a rate in
//! bits per second. [`mod@parse`] reads `120ms`, `45Mbps` or `5%` and says what was wrong otherwise.

#![forbid(unsafe_code)]

mod bitrate;
mod instant;

pub use bitrate::Bitrate;
pub use instant::Instant;
