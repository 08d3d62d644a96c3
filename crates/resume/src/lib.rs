//! Streams of bytes that outlive their connections.
//!
//! A connection ends when the network is away for longer than its idle timeout, and with it the
//! bytes in its buffers. A [`Sender`] therefore keeps every message in a [`Spool`] until the
//! receiver has confirmed that it is written, and when both ends have found each other again, the
//! [`Receiver`] says at which byte it is and the sender goes on there.
//!
//! The stream is in [frames](punctual_proto::FrameReader), and the two ends exchange [`Record`]s in
//! control frames between them: the receiver its position, the sender the beginning and the end.
//! Offsets count the bytes of messages from the beginning of the stream, without their frames.
//! Before either end tells anything about the stream, both prove by a keyed hash that they have the
//! [secret](StreamSecret) that the first connection told.
//! Both ends agree on this in the handshake: see
//! [`Config::with_resume`](punctual_proto::Config::with_resume).
//!
//! Sender and receiver are state machines without input and output: they take bytes that a
//! connection has received, and give the bytes that it has to send.

#![forbid(unsafe_code)]

mod memory;
mod peer;
mod receiver;
mod record;
mod secret;
mod sender;
mod spool;

pub use memory::MemorySpool;
pub use peer::ResumePeer;
pub use receiver::{Beginning, Receiver};
pub use record::{Record, RecordError};
pub use secret::{Nonce, Proof, StreamSecret};
pub use sender::{PeerFormat, ResumeError, Resumption, Sender, Sent};
pub use spool::{Kept, Spool, SpoolError};
