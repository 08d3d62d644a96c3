//! SRT packets on the wire: a checked view to read, a valid value to write.

#![forbid(unsafe_code)]

mod number;
mod reject;

pub use number::{AckNo, MsgNo, SeqNo, SocketId, Timestamp};
pub use reject::RejectReason;
