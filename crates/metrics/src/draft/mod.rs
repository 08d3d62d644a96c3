//! The payload and the metrics of draft-sharabayko-moq-metrics-00 ("Estimating Transmission Metrics
//! on a QUIC Connection", 2022).
//!
//! Its payloads tell in addition which of them belong together: a *group* is a frame of video, or a
//! group of pictures. A transmission delay is measured for whole groups, at the last payload of
//! each; everything else for each payload, as srt-xtransmit's format has it.
//!
//! Where the draft contradicts itself or leaves something open, this is what holds here:
//!
//! - **The checksum is MD5** of 16 bytes. The draft's text calls it SHA-128 once, which does not
//!   exist; the field's length and the rest of the text are MD5's. It covers the whole payload with
//!   the field's bytes as zeros.
//! - **The length is that of the whole payload.** The draft lists the fields in it and forgets the
//!   group.
//! - **Byte order** is the network's; the draft does not say.
//! - **The smoothed delay** has a factor of 1/16, as jitter has (RFC 3550); the draft leaves it
//!   open.
//! - **The reference of the TS-DF**, the first payload of a period, takes part with a difference of
//!   zero: a period with one payload has a TS-DF of zero.
//! - **Missing** payloads are not missing any more when they arrive after all; a damaged payload
//!   stays missing, because its number cannot be trusted.
//! - **Corrupted, duplicate, partial, and the distance of reordering**, for which the draft has
//!   headings alone: corrupted is a payload whose checksum does not match; partial one whose length
//!   is not that in its header; a duplicate's number arrived before; the distance of a reordered
//!   payload is that of its number below the next expected one (RFC 4737, section 4.3), and the
//!   largest is reported.
//! - **A received group** is one whose payloads have all arrived. One of which some are missing is
//!   *incomplete* once a later group has begun.

mod groups;
mod meter;
mod stamp;

pub use groups::GroupCounts;
pub use meter::{CSV_HEADER, Meter, Report};
pub use stamp::{MIN_PAYLOAD, Position, Stamp, StampWriter};
