//! The handshake of version 5 (draft section 4.3). `caller.rs`, `listener.rs` and `rendezvous.rs`
//! decide when an end sends which handshake. `terms.rs` makes and checks the extensions, which are
//! common to all three, and `keys.rs` the key messages in them.

mod amplification_limit;
pub(crate) mod caller;
pub(crate) mod cookie;
pub(crate) mod derivation;
pub(crate) mod keys;
pub(crate) mod listener;
pub(crate) mod membership;
pub(crate) mod rendezvous;
pub(crate) mod repetition;
pub(crate) mod terms;

use std::time::Duration;

use punctual_crypto::{CipherMode, KeyLength};
use punctual_wire::{Handshake, RejectReason, SeqNo, SocketId};

pub(crate) use self::repetition::REPEAT;
use self::repetition::Repetition;
use self::terms::FixedPart;
use crate::agreed_time::AgreedTime;
use crate::config::Config;
use crate::crypt::Crypt;
use crate::error::CloseReason;
use crate::event::ConnectionInfo;
use crate::filter::Fec;
use crate::path::Path;
use crate::stream_id::RawStreamId;

/// The largest MSS that a peer may announce, bytes.
const MAX_MSS: u32 = 1_500;

/// The next step of a connecting end after a handshake of the peer.
#[derive(Debug)]
pub(crate) enum Step {
    /// Nothing: the handshake is no answer to the request.
    Ignore,
    /// Send the next request now, and repeat it at these intervals; `None` for the current ones.
    Request(Option<Repetition>),
    /// Send the next repetition now; the time of the one after it does not change.
    RequestInAdvance,
    /// The connection is established.
    Connected(Box<Negotiated>, Option<FinalHandshake>),
    /// The attempt has failed. If the peer has a socket already, send it a shutdown.
    Failed(CloseReason, Option<SocketId>),
    /// The attempt has failed. Send the peer this rejection.
    Refused(RejectReason, Box<Handshake>),
}

/// The last handshake of an end. It repeats it while the peer has not received it.
#[derive(Clone, Debug)]
pub(crate) struct FinalHandshake {
    pub(crate) handshake: Box<Handshake>,
    /// Whether to send it now.
    pub(crate) due: bool,
}

/// The way in which a receiver repeats its NAKs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum NakStyle {
    /// A NAK as soon as a loss is detected, and periodic NAKs (draft section 4.8.2).
    Periodic,
    /// A timer for each missing packet.
    PerPacket,
    /// A timer for each missing packet, and copies of each NAK, which the sender counts as one.
    PerPacketCopied,
}

/// The latencies that both ends agreed on.
#[derive(Clone, Debug)]
pub(crate) struct Latency {
    /// The delay that this end's receiver applies.
    pub(crate) receive: AgreedTime,
    /// The delay that the peer's receiver applies.
    pub(crate) peer: AgreedTime,
    /// The larger of the two delays in the initiator's request; `None` at the initiator, and for
    /// files.
    pub(crate) caller: Option<Duration>,
}

/// The peer's version, and its features as the flags of its HSREQ or HSRSP name them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerFeatures {
    pub(crate) version: u32,
    /// Whether the peer drops packets that are too late (TLPKTDROP), for which it needs our
    /// timestamps.
    pub(crate) too_late_drop: bool,
    pub(crate) periodic_nak: bool,
    pub(crate) retransmit_flag: bool,
    /// Whether the peer's receiver keeps a NAK timer for each packet.
    pub(crate) nak_timers: bool,
    /// Whether both ends report in their ACKs how many packets have arrived.
    pub(crate) counted_arrivals: bool,
}

/// The terms that two ends agreed on.
#[derive(Debug)]
pub(crate) struct Negotiated {
    /// The terms of the fixed parts. A link of a group takes its sequence numbers and its time base
    /// from the group.
    pub(crate) fixed: FixedPart,
    pub(crate) latency: Latency,
    pub(crate) peer: PeerFeatures,
    pub(crate) stream_id: RawStreamId,
    /// Whether this end delivers by timestamps.
    pub(crate) tsbpd_receive: bool,
    /// The time from when a byte should arrive to its use, for a stream of bytes with a playout
    /// point.
    pub(crate) playout: Option<AgreedTime>,
    /// How this end's receiver repeats its NAKs.
    pub(crate) nak_style: NakStyle,
    /// The packet filter, the same for both directions.
    pub(crate) filter: Option<Fec>,
    /// Whether both ends put messages into frames of a stream of bytes.
    pub(crate) framing: bool,
    /// Whether both ends resume this stream of bytes when its connection is lost.
    pub(crate) resumable: bool,
    /// Whether both ends follow each other to new addresses.
    pub(crate) path_update: bool,
    /// The initial sequence numbers in the handshakes, this end's first. A link of a group may
    /// begin with other numbers.
    pub(crate) handshake_isns: [SeqNo; 2],
    /// The peer's group that the connection is a link of.
    pub(crate) peer_group: Option<u32>,
    /// Bytes that encryption adds to a payload.
    pub(crate) payload_overhead: usize,
    /// The keys, or the reason why there are none; `None` if neither end wants encryption. The
    /// connection takes them out.
    pub(crate) crypt: Option<Box<Crypt>>,
}

impl Negotiated {
    /// The cipher of packets that this end sends, until the connection has taken the keys out.
    pub(crate) fn cipher(&self) -> Option<(CipherMode, KeyLength)> {
        self.crypt.as_ref().and_then(|crypt| crypt.cipher())
    }

    /// The largest payload of a packet on `path`, bytes.
    pub(crate) fn max_payload(&self, config: &Config, path: &Path) -> usize {
        let filter = if self.filter.is_some() { Fec::OVERHEAD } else { 0 };
        let room = path.packet_room(self.fixed.mss).saturating_sub(filter + self.payload_overhead);
        config.payload_size().min(room)
    }

    /// Tells what both ends have agreed on, and what the peer has told of itself.
    pub(crate) fn fill_info(&self, info: &mut ConnectionInfo) {
        info.peer_socket_id = self.fixed.peer_socket_id;
        info.stream_id.clone_from(&self.stream_id);
        info.peer_version = self.peer.version;
        info.path_update = self.path_update;
        info.framing = self.framing;
        info.resumable = self.resumable;
        info.receive_latency = self.latency.receive.get();
        info.peer_latency = self.latency.peer.get();
        info.caller_latency = self.latency.caller;
        info.packet_filter = self.filter.map(|fec| fec.to_string()).unwrap_or_default();
    }
}
