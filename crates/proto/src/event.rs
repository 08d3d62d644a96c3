//! Events for the application, and the messages that it exchanges.

use std::time::Duration;

use bytes::Bytes;
use punctual_crypto::{CipherMode, KeyLength};
use punctual_units::Instant;
use punctual_wire::{MsgNo, RejectReason, SeqNo, SocketId};

use crate::config::Transmission;
use crate::encryption::KeyState;
use crate::endpoint::ConnectionId;
use crate::error::{CloseReason, PeerError};
use crate::group::GroupOffer;
use crate::path::PathId;

/// Something that the application should know or act on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A caller completed its handshake with the listener and waits for
    /// [`Endpoint::accept`](crate::Endpoint::accept) or
    /// [`Endpoint::reject`](crate::Endpoint::reject).
    Incoming(Incoming),
    /// A caller at this address was refused before the application was asked, because its handshake
    /// does not fit the listener's configuration. It was told so.
    CallerRefused(PathId, RejectReason),
    /// The caller withdrew or ran out of time before it was accepted or rejected.
    IncomingGone(IncomingId),
    /// A connection that was dialled with [`Endpoint::connect`](crate::Endpoint::connect) or
    /// [`Endpoint::rendezvous`](crate::Endpoint::rendezvous) stands.
    Connected(ConnectionId),
    /// At least one message is due for delivery. Not told again until `recv` has returned `None`.
    Readable(ConnectionId),
    /// There is room for messages again after `send` said
    /// [`SendError::Full`](crate::SendError::Full), or `send` will say what went wrong at the peer
    /// ([`SendError::PeerError`](crate::SendError::PeerError)).
    Writable(ConnectionId),
    /// A link of a balancing group has something for its group: take it by
    /// [`Endpoint::take_link_messages`](crate::Endpoint::take_link_messages) and
    /// [`Endpoint::take_link_losses`](crate::Endpoint::take_link_losses). Told again until then.
    LinkNews(ConnectionId),
    /// The peer is at another address now, and has proved it; the connection goes on there.
    /// [`ConnectionInfo::path`] is that address.
    PeerMoved(ConnectionId, PathId),
    /// The peer's end is gone or the attempt to connect failed. What was received before may still
    /// be read; call [`Endpoint::release`](crate::Endpoint::release) when done.
    Closed(ConnectionId, CloseReason),
}

/// Names a caller that waits for the application's answer.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct IncomingId(pub(crate) u64);

/// A caller that waits for the application's answer.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// Names this caller in `accept` and `reject`.
    pub id: IncomingId,
    /// The caller's address.
    pub path: PathId,
    /// The stream ID it sent; empty if none.
    pub stream_id: String,
    /// Its SRT version, 0x00MMmmpp.
    pub peer_version: u32,
    /// Its socket ID.
    pub peer_socket_id: SocketId,
    /// Whether it wants to encrypt, and so has a passphrase.
    pub encrypted: bool,
    /// The group that it is to be a link of, if it is.
    pub group: Option<GroupOffer>,
}

/// Whether a connection is readable, writable or broken.
///
/// Events tell a change once; this state can be asked for at any time
/// ([`Endpoint::readiness`](crate::Endpoint::readiness)).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Readiness {
    /// A message, or bytes of a stream, can be received now.
    pub readable: bool,
    /// A message of one packet, or bytes of a stream, can be submitted now.
    pub writable: bool,
    /// The connection has ended, or was never established. Messages that were received before may
    /// still be readable.
    pub broken: bool,
}

/// The terms that the two ends of a connection agreed on.
#[derive(Clone, Debug)]
pub struct ConnectionInfo {
    /// The peer's address as it is now: see [`Event::PeerMoved`].
    pub path: PathId,
    /// This end's socket ID.
    pub socket_id: SocketId,
    /// The peer's socket ID; zero while connecting.
    pub peer_socket_id: SocketId,
    /// The stream ID that the caller sent.
    pub stream_id: String,
    /// The peer's SRT version, 0x00MMmmpp; zero while connecting.
    pub peer_version: u32,
    /// Whether both ends have shaken hands.
    pub connected: bool,
    /// Delay that this end's receiver applies (negotiated).
    pub receive_latency: Duration,
    /// Delay that the peer's receiver applies (negotiated).
    pub peer_latency: Duration,
    /// The larger of the two delays that the caller asked for, before this end's own counted; known
    /// to a listener's end of a live stream alone.
    pub caller_latency: Option<Duration>,
    /// Largest payload of one message, bytes.
    pub max_payload: usize,
    /// The smoothed round-trip time.
    pub rtt: Duration,
    /// How data travel.
    pub transmission: Transmission,
    /// The last error that the peer reported: see [`SendError::PeerError`].
    ///
    /// [`SendError::PeerError`]: crate::SendError::PeerError
    pub peer_error: Option<PeerError>,
    /// How far the ends are with the keys of what this end sends \[sndkmstate\].
    pub send_key_state: KeyState,
    /// The same of what it receives \[rcvkmstate\].
    pub receive_key_state: KeyState,
    /// The cipher of what this end sends; `None` if that is in the clear.
    pub cipher: Option<(CipherMode, KeyLength)>,
    /// Whether both ends follow each other to new addresses. Only this implementation does, so it
    /// also tells who the peer is.
    pub path_update: bool,
}

/// A message as it is delivered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Message {
    /// The payload, never copied since it left the socket.
    pub payload: Bytes,
    /// When the sender's application submitted it, on this end's clock (one network transit later
    /// than it really happened, drift corrected).
    pub origin: Instant,
    /// When it was due: origin + latency.
    pub due: Instant,
    /// Its sequence number.
    pub seq: SeqNo,
    /// Its message number.
    pub msgno: MsgNo,
    /// Messages dropped as too late, or given up by the sender, just before this one.
    pub lost_before: u32,
}

/// How one message is to be sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct SendOptions {
    /// Drop the message if it is not acknowledged within this time. Default: only TLPKTDROP drops.
    pub ttl: Option<Duration>,
    /// When the message originated, if not now. Must not lie in the future; clamped to now.
    pub origin: Option<Instant>,
    /// The in-order flag of the packet; live receivers deliver in order whatever it says.
    pub in_order: bool,
}
