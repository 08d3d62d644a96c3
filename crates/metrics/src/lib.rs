//! Measures of how well a stream arrived, taken from its payloads.
//!
//! A generator writes a [stamp](write_stamp) into each payload: a number, the time by two clocks,
//! the length and a checksum. The receiver hands every payload to a [`Meter`] with the time of its
//! arrival and takes a [`MeterReport`] once a period. Payload and report are those of
//! srt-xtransmit, so each program can stand at either end. Where that program counts otherwise, the
//! metric's page says what differs and why.
//!
//! | metric | from | source |
//! |---|---|---|
//! | [`TransmissionDelay`] | system clocks of both ends | RFC 7679 |
//! | [`InterarrivalJitter`] | differences on monotonic clocks | RFC 3550 |
//! | [`DelayFactor`] | differences on monotonic clocks | EBU TECH 3337 |
//! | [`Sequence`]: lost, reordered, duplicated | payload numbers | RFC 4737, RFC 5560 |
//! | [`Integrity`] | length and checksum | |
//!
//! [`rtp`] reads and orders the packets in which a transport stream comes from contribution
//! encoders. [`Quantiles`] keeps a distribution in bounded memory.
//!
//! Everything here is pure. Time is an argument, in microseconds of the clock that the stamp uses;
//! the same samples give the same report anywhere.
//!
//! ```
//! use punctual_metrics::{CSV_HEADER, Meter, write_stamp};
//!
//! let mut payload = [0; 1316];
//! let mut meter = Meter::default();
//! for seq in 0..10 {
//!     let sent = 1_000 * seq;
//!     write_stamp(&mut payload, seq as u64, sent, sent)?;
//!     meter.submit(&payload, sent + 120_000, sent + 120_000)?;
//! }
//! let report = meter.report();
//! assert_eq!(report.latency_us_max, Some(120_000));
//! assert_eq!(report.delay_factor_us, Some(0));
//! println!("{CSV_HEADER}\n{}", report.csv_row("2022-04-14T17:46:13.441614+0200", 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod checksum;
mod delay_factor;
mod integrity;
mod jitter;
mod latency;
mod meter;
mod quantiles;
pub mod rtp;
mod sequence;
mod stamp;

pub use checksum::Checksum;
pub use delay_factor::DelayFactor;
pub use integrity::Integrity;
pub use jitter::InterarrivalJitter;
pub use latency::TransmissionDelay;
pub use meter::{CSV_HEADER, Meter, MeterReport};
pub use quantiles::Quantiles;
pub use sequence::{ArrivalOrder, Sequence, SequenceCounts};
pub use stamp::{
    MIN_PAYLOAD, PayloadTooShort, ReadStampError, Stamp, StampReader, StampWriter, fill,
    write_stamp,
};
