//! Events for the application, and the messages that it exchanges.

use std::time::Duration;

use bytes::Bytes;
use punctual_crypto::{CipherMode, KeyLength};
use punctual_units::Instant;
use punctual_wire::{MsgNo, RejectReason, SeqNo, SocketId};

use crate::encryption::KeyState;
use crate::error::{CloseReason, PeerError};
use crate::group_offer::GroupOffer;
use crate::ids::{ConnectionId, IncomingId};
use crate::path::PathId;
use crate::stream_id::RawStreamId;
use crate::transmission::Transmission;

/// An event that the application should know of or react to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A caller completed its handshake with the listener and waits for
    /// [`Endpoint::accept`](crate::Endpoint::accept) or
    /// [`Endpoint::reject`](crate::Endpoint::reject).
    Incoming(Incoming),
    /// A caller at this address was rejected for this reason, without an
    /// [`Incoming`](Self::Incoming), because its handshake does not fit the listener's
    /// configuration. The rejection has been sent.
    CallerRefused(PathId, RejectReason),
    /// The caller has given up, or its time has run out, before it was accepted or rejected.
    IncomingGone(IncomingId),
    /// A connection by [`Endpoint::connect`](crate::Endpoint::connect) or
    /// [`Attempt::rendezvous`](crate::Attempt::rendezvous) is established.
    Connected(ConnectionId),
    /// At least one message is due for delivery. The event is not repeated before `recv` has
    /// returned `None`.
    Readable(ConnectionId),
    /// There is room for messages again after `send` returned
    /// [`SendError::Full`](crate::SendError::Full); or the next `send` will return an error of the
    /// peer ([`SendError::PeerError`](crate::SendError::PeerError)).
    Writable(ConnectionId),
    /// A link of a balancing group has messages or losses for its group, to be taken by
    /// [`Connection::take_link_messages`](crate::Connection::take_link_messages) and
    /// [`Connection::take_link_losses`](crate::Connection::take_link_losses). The event is repeated
    /// until they are taken.
    LinkNews(ConnectionId),
    /// The peer has moved to another address, and has proved that it receives there. The connection
    /// continues at that address, which is now [`ConnectionInfo::path`].
    PeerMoved(ConnectionId, PathId),
    /// The connection has ended, or the handshake has failed. Messages that were received before
    /// may still be read; then call [`ConnectionGuard::release`](crate::ConnectionGuard::release).
    Closed(ConnectionId, CloseReason),
}

/// A caller that waits for the application's answer.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// The caller's ID, for `accept` and `reject`.
    pub id: IncomingId,
    /// The caller's address.
    pub path: PathId,
    /// Its stream ID; empty if it sent none.
    pub stream_id: RawStreamId,
    /// Its SRT version, 0x00MMmmpp.
    pub peer_version: u32,
    /// Its socket ID.
    pub peer_socket_id: SocketId,
    /// Whether it wants encryption, and so has a passphrase.
    pub encrypted: bool,
    /// The group of which its connection is to become a link, if any.
    pub group: Option<GroupOffer>,
}

/// Whether a connection is readable, writable or broken.
///
/// An event reports a change once; this state can be read at any time
/// ([`Connection::readiness`](crate::Connection::readiness)).
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
    /// The peer's current address: see [`Event::PeerMoved`].
    pub path: PathId,
    /// This end's socket ID.
    pub socket_id: SocketId,
    /// The peer's socket ID; zero while connecting.
    pub peer_socket_id: SocketId,
    /// The stream ID that the caller sent.
    pub stream_id: RawStreamId,
    /// The peer's SRT version, 0x00MMmmpp; zero while connecting.
    pub peer_version: u32,
    /// Whether the handshake is complete.
    pub connected: bool,
    /// The negotiated delay that this end's receiver applies.
    pub receive_latency: Duration,
    /// The negotiated delay that the peer's receiver applies.
    pub peer_latency: Duration,
    /// The larger of the two delays in the peer's request, before this end's own options were
    /// applied; `None` at the end that made the request, and for files.
    pub caller_latency: Option<Duration>,
    /// The largest payload of one message, bytes.
    pub max_payload: usize,
    /// The packet filter that both ends use, with all its keys; empty if there is none.
    pub packet_filter: String,
    /// The smoothed round-trip time.
    pub rtt: Duration,
    /// The transmission mode.
    pub transmission: Transmission,
    /// Whether both ends keep the boundaries of messages in a stream of bytes by
    /// [frames](crate::FrameReader).
    pub framing: bool,
    /// Whether both ends resume this stream of bytes when its connection is lost.
    pub resumable: bool,
    /// The last error that the peer reported: see [`SendError::PeerError`].
    ///
    /// [`SendError::PeerError`]: crate::SendError::PeerError
    pub peer_error: Option<PeerError>,
    /// The state of the keys for packets that this end sends \[sndkmstate\].
    pub send_key_state: KeyState,
    /// The state of the keys for packets that it receives \[rcvkmstate\].
    pub receive_key_state: KeyState,
    /// The cipher of packets that this end sends; `None` if they are not encrypted.
    pub cipher: Option<(CipherMode, KeyLength)>,
    /// Whether both ends follow each other to new addresses. `true` only if the peer is this
    /// implementation too, since no other supports it.
    pub path_update: bool,
}

/// A received message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Message {
    /// The payload. It has not been copied since the socket delivered it.
    pub payload: Bytes,
    /// When the sender's application submitted it, on this end's clock, corrected for drift. It is
    /// later than the real time by the one-way delay.
    pub origin: Instant,
    /// When it was due: the origin time plus the latency.
    pub due: Instant,
    /// Its sequence number.
    pub seq: SeqNo,
    /// Its message number.
    pub msgno: MsgNo,
    /// The number of messages just before this one that were dropped as too late, or given up by
    /// the sender.
    pub lost_before: u32,
}

/// Options for sending one message.
#[derive(Clone, Copy, Debug, Default)]
pub struct SendOptions {
    /// The message is dropped if it is not acknowledged within this time. By default, only too-late
    /// packet drop drops it.
    pub ttl: Option<Duration>,
    /// The origin time; by default the current time. A time more than a minute in the future counts
    /// as the current time.
    pub origin: Option<Instant>,
    /// The in-order flag of the packet. Live receivers deliver in order with or without it.
    pub in_order: bool,
}

impl SendOptions {
    /// The origin time of a message that is sent at `now`.
    pub(crate) fn origin_at(&self, now: Instant) -> Instant {
        self.origin.filter(|&origin| origin <= now + MOST_AHEAD).unwrap_or(now)
    }
}

/// The longest time from now to an origin time in the future. Messages are kept for it, so it
/// bounds the memory of a group that keeps them for its other links.
const MOST_AHEAD: Duration = Duration::from_secs(60);
