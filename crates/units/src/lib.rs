//! Time and rate as Punctual counts them, and the way people write them.
//!
//! [`Instant`] is a point on a clock that the caller owns: real or virtual. [`Bitrate`] is a rate
//! in bits per second. [`UtcTime`] is a point in time by the clock of the day.
//!
//! The `parse_*` functions read `120ms`, `45Mbps`, `64KiB` or `5%` exactly, without going through
//! floating point, and say what was wrong and what would be right otherwise:
//!
//! ```
//! use std::time::Duration;
//! use punctual_units::{Bitrate, DisplayDuration, parse_duration};
//!
//! assert_eq!(parse_duration("0.1ms"), Ok(Duration::from_micros(100)));
//! assert_eq!("1.25Gbps".parse(), Ok(Bitrate::from_mbps(1_250)));
//! assert_eq!(
//!     parse_duration("12mss").unwrap_err().to_string(),
//!     "`12mss`: unknown unit `mss`; did you mean `ms`?",
//! );
//! assert_eq!(DisplayDuration(Duration::from_micros(20_500)).to_string(), "20.5 ms");
//! ```
//!
//! [`Bitrate`], [`DisplayDuration`] and [`DisplayBytes`] print a quantity in the largest unit that
//! leaves at least 1 before the decimal point. `{}` prints every digit, so that what is printed can
//! be parsed back; `{:.1}` prints that many decimals; `{:#}` prints three digits, for people.

#![forbid(unsafe_code)]

mod bitrate;
mod display;
mod error;
mod instant;
mod parse;
mod text;
mod text_file;
mod timepoint;

pub use bitrate::Bitrate;
pub use display::{DisplayBytes, DisplayDuration, grouped, percent, share_in_percent};
pub use error::ParseUnitError;
pub use instant::Instant;
pub use parse::{
    parse_bitrate, parse_bitrate_in, parse_bitrate_in_bits, parse_bytes, parse_bytes_in,
    parse_count, parse_duration, parse_duration_in, parse_share,
};
pub use text::{one_line, without_os_error};
pub use text_file::{read_text, text_of};
pub use timepoint::{Calendar, NotATime, UtcTime, parse_timepoint};
