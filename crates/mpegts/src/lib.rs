//! MPEG transport streams (ISO/IEC 13818-1), as far as a relay and a checker need them.
//!
//! - [`Framer`] finds the packets in bytes that come in pieces of any size, and [`Layout`] tells
//!   whether there are any.
//! - [`Checker`] tells what happened to a stream on its way, from its own counters and clocks.
//! - [`Aligner`] makes messages of whole packets from messages of any size.
//! - [`PesReader`] joins the packets of a PID to PES packets, which have times.
//! - [`Inspector`] reads a stream as it passes: programs, formats, random access points, faults.
//! - [`Cut`] passes a stream on to a receiver that misses a part of it.
//! - [`PcrPacer`] tells when to send each packet of a file, by the clock in the file.
//!
//! A file in messages of seven packets, 1316 bytes, and when to send each:
//!
//! ```
//! use punctual_mpegts::{Framer, PacingError, PcrPacer};
//! # use std::time::Duration;
//! # fn send_at(_: Duration, _: &[u8]) {}
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/clip.ts");
//!
//! fn send_due(pacer: &mut PcrPacer, message: &mut Vec<u8>, start: &mut Duration) {
//!     while let Some((at, packet)) = pacer.pop() {
//!         if message.is_empty() {
//!             *start = at;
//!         }
//!         message.extend_from_slice(&packet);
//!         if message.len() == 1316 {
//!             send_at(*start, message);
//!             message.clear();
//!         }
//!     }
//! }
//!
//! let (mut framer, mut pacer) = (Framer::default(), PcrPacer::default());
//! let (mut message, mut start) = (Vec::new(), Duration::ZERO);
//! for block in std::fs::read(path)?.chunks(65_536) {
//!     framer.push(block);
//!     while let Some(packet) = framer.next_packet() {
//!         pacer.push(packet)?;
//!     }
//!     send_due(&mut pacer, &mut message, &mut start);
//! }
//! // The end of the file. To send it again, read it again: the time goes on.
//! pacer.finish()?;
//! send_due(&mut pacer, &mut message, &mut start);
//! # assert_eq!(start.as_secs(), 12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(test, expect(clippy::cast_possible_truncation, reason = "numbers in tests are small"))]

mod access;
mod aligner;
mod checker;
mod clock;
mod continuity;
mod cut;
mod format;
mod framer;
mod health;
mod inspector;
mod kind;
mod layout;
mod pacer;
mod packet;
mod pcr;
mod pes;
mod pes_header;
mod pid_check;
mod psi;
mod rate;
#[cfg(test)]
mod sample;
mod section;
mod stream;

pub use aligner::Aligner;
pub use checker::{Checker, StreamReport};
pub use clock::ClockReport;
pub use cut::Cut;
pub use format::{
    AudioFormat, BitReader, SampleFormat, VideoFormat, av1_format, h264_format, has_recovery_point,
    hevc_format, without_emulation_prevention,
};
pub use framer::Framer;
pub use health::{Fault, Health, Occurrences};
pub use inspector::Inspector;
pub use kind::StreamKind;
pub use layout::Layout;
pub use pacer::{PacingError, PcrPacer};
pub use packet::{NULL_PID, NotAPacket, PACKET_LEN, Packet, SYNC_BYTE};
pub use pcr::Pcr;
pub use pes::{PesPacket, PesReader, unwrap_timestamp};
pub use pes_header::PesHeader;
pub use pid_check::PidReport;
pub use psi::{ElementaryStream, Program};
pub use stream::RandomAccess;
