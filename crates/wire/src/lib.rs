//! SRT packets on the wire: a checked view to read, a valid value to write.
//!
//! [`Packet::parse`] turns a datagram into a [`DataPacket`] or a [`ControlPacket`]. Every length
//! and every sequence number is checked there, so what it returns can be used without further
//! doubt; it never panics, and it allocates for nothing but a [`Handshake`]. Writing is the other
//! way round: a value that exists is legal, so [`DataHeader::to_bytes`] and [`ControlPacket::emit`]
//! cannot fail.
//!
//! The crate knows the layout and nothing else. Whether a packet makes sense now (an ACK beyond
//! what was sent, a handshake out of turn) is the protocol machine's question.
//!
//! The layout is that of draft-sharabayko-srt section 3; where the draft and deployed peers differ,
//! this crate does what peers do and says so on the item.
//!
//! ```
//! use punctual_wire::{Control, ControlPacket, Packet, SocketId, Timestamp};
//!
//! let keep_alive = ControlPacket {
//!     timestamp: Timestamp::from_micros(1_000_000),
//!     dest: SocketId::new(0x2A),
//!     control: Control::KeepAlive,
//! };
//! let mut datagram = Vec::new();
//! keep_alive.emit(&mut datagram);
//! assert_eq!(datagram.len(), 20);
//! assert_eq!(Packet::parse(&datagram), Ok(Packet::Control(keep_alive)));
//! ```

#![forbid(unsafe_code)]

mod ack;
mod control;
mod data;
mod drop_request;
mod error;
mod handshake;
mod nak;
mod number;
mod packet;
mod reject;
mod words;

pub use ack::{Ack, AckArrivals, AckLink, AckRates, NewestArrival};
pub use control::{Control, ControlPacket};
pub use data::{DataHeader, DataPacket, KeyFlag, Position};
pub use drop_request::DropRequest;
pub use error::ParseError;
pub use handshake::{
    Extension, GroupExtension, HS_EXT_CONFIG, HS_EXT_HSREQ, HS_EXT_KMREQ, HS_MAGIC, Handshake,
    HandshakeRequest, HsExtension, HsFlags, MAX_STREAM_ID, PeerIp,
};
pub use nak::{LossList, LossListBuilder};
pub use number::{AckNo, MsgNo, SeqNo, SocketId, Timestamp};
pub use packet::{Packet, destination};
pub use reject::RejectReason;
