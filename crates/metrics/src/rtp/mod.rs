//! RTP (RFC 3550), as far as a relay of transport streams needs it (RFC 2250).
//!
//! - [`RtpPacket`] reads a packet; [`rtp_header`] writes the header of one.
//! - [`ReorderBuffer`] puts packets in the order of their numbers, and counts missing ones.

mod packet;
mod reorder;

pub use packet::{MPEG_TS, RTP_HEADER_LEN, RtpHeader, RtpPacket, rtp_header};
pub use reorder::ReorderBuffer;
