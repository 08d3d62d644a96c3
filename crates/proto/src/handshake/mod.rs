//! The handshake of version 5 (draft section 4.3). `caller.rs`, `listener.rs` and `rendezvous.rs`
//! decide when an end sends which handshake; `terms.rs` makes and checks the extensions, which are
//! the same for all three, and `keys.rs` the key messages in them.

mod amplification_limit;
pub(crate) mod caller;
pub(crate) mod cookie;
pub(crate) mod keys;
pub(crate) mod listener;
pub(crate) mod rendezvous;
pub(crate) mod repetition;
pub(crate) mod terms;

use std::time::Duration;

use punctual_crypto::{CipherMode, KeyLength};
use punctual_wire::{Handshake, RejectReason, SeqNo, SocketId};

pub(crate) use self::repetition::REPEAT;
use self::repetition::Repetition;
use self::terms::FixedPart;
use crate::config::Config;
use crate::connection::crypt::Crypt;
use crate::error::CloseReason;
use crate::filter::Fec;
use crate::path::Path;

/// The largest MSS that a peer may name.
const MAX_MSS: u32 = 1_500;

/// The next step of an end that wants to connect, after a handshake of the peer.
#[derive(Debug)]
pub(crate) enum Step {
    /// Nothing: the handshake does not answer the request.
    Ignore,
    /// The next request is to be sent now, and repeated at this pace; `None` for the pace so far.
    Request(Option<Repetition>),
    /// The next repetition is to be sent now, and the one behind it when it would be anyway.
    RequestInAdvance,
    /// The connection is established.
    Connected(Box<Negotiated>, Option<FinalHandshake>),
    /// The attempt is over. The peer, if it has a socket already, is to be told so.
    Failed(CloseReason, Option<SocketId>),
    /// The attempt is over, and the peer is to be told why.
    Refused(RejectReason, Box<Handshake>),
}

/// The last handshake of an end, which it repeats to a peer that did not get it.
#[derive(Clone, Debug)]
pub(crate) struct FinalHandshake {
    pub(crate) handshake: Box<Handshake>,
    /// Whether it is to be sent now.
    pub(crate) due: bool,
}

/// How a receiver repeats its NAKs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum NakStyle {
    /// A NAK as soon as a loss is found, and one with everything missing once a period (draft
    /// section 4.8.2).
    Periodic,
    /// A timer for each missing packet.
    PerPacket,
    /// A timer for each missing packet, and copies of each NAK, which the sender takes for one.
    PerPacketCopied,
}

/// The latencies that both ends agreed on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Latency {
    /// Delay that this end's receiver applies.
    pub(crate) receive: Duration,
    /// Delay that the peer's receiver applies.
    pub(crate) peer: Duration,
    /// The larger delay that a caller asked this listener for, if it did.
    pub(crate) caller: Option<Duration>,
}

/// The peer's version, and its features as the flags of its HSREQ or HSRSP name them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerFeatures {
    pub(crate) version: u32,
    /// Whether the peer skips packets that are too late: it needs our timestamps for that.
    pub(crate) too_late_drop: bool,
    pub(crate) periodic_nak: bool,
    pub(crate) retransmit_flag: bool,
    /// Whether the peer's receiver keeps a NAK timer for each packet.
    pub(crate) nak_timers: bool,
}

/// The terms that two ends agreed on.
#[derive(Debug)]
pub(crate) struct Negotiated {
    /// The fixed parts. A link of a group takes numbers and time base from its group.
    pub(crate) fixed: FixedPart,
    pub(crate) latency: Latency,
    pub(crate) peer: PeerFeatures,
    pub(crate) stream_id: String,
    /// Whether this end delivers by timestamps.
    pub(crate) tsbpd_receive: bool,
    /// How this end's receiver repeats its NAKs.
    pub(crate) nak_style: NakStyle,
    /// The packet filter of both directions.
    pub(crate) filter: Option<Fec>,
    /// Whether both ends follow each other to new addresses.
    pub(crate) path_update: bool,
    /// The first numbers of both directions as the handshake said them, this end's first: a link of
    /// a group counts from others.
    pub(crate) handshake_isns: [SeqNo; 2],
    /// The peer's group that the connection is a link of.
    pub(crate) peer_group: Option<u32>,
    /// Bytes that encryption adds to a payload.
    pub(crate) payload_overhead: usize,
    /// The keys, or the reason why there are none; `None` where no end wants encryption. The
    /// connection takes them out.
    pub(crate) crypt: Option<Box<Crypt>>,
}

impl Negotiated {
    /// The cipher of what this end sends, until the connection has taken the keys out.
    pub(crate) fn cipher(&self) -> Option<(CipherMode, KeyLength)> {
        self.crypt.as_ref().and_then(|crypt| crypt.cipher())
    }

    /// Largest payload of a packet that goes by `path`.
    pub(crate) fn max_payload(&self, config: &Config, path: &Path) -> usize {
        let filter = if self.filter.is_some() { Fec::OVERHEAD } else { 0 };
        let room = path.packet_room(self.fixed.mss).saturating_sub(filter + self.payload_overhead);
        config.payload_size().min(room)
    }
}
