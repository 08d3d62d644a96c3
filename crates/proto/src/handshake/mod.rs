//! The handshake of version 5 (draft section 4.3): what each side says, checks and concludes. Who
//! speaks when is the roles' business; what stands in the extensions, and what is agreed on by it,
//! is the same for all and stands in `terms.rs`.

mod amplification_limit;
pub(crate) mod caller;
pub(crate) mod cookie;
pub(crate) mod keys;
pub(crate) mod listener;
pub(crate) mod rendezvous;
pub(crate) mod repetition;
pub(crate) mod terms;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use punctual_crypto::{CipherMode, KeyLength};
use punctual_wire::{Handshake, RejectReason, SeqNo, SocketId};

pub(crate) use self::repetition::REPEAT;
use self::repetition::Repetition;
use self::terms::TimeBase;
use crate::config::{Config, SRT_HEADER, UDP_IPV4_OVERHEAD, UDP_IPV6_OVERHEAD};
use crate::connection::crypt::Crypt;
use crate::error::CloseReason;
use crate::filter::Fec;

/// The largest MSS that a peer may name.
const MAX_MSS: u32 = 1_500;

/// What a handshake of the peer's means to an end that wants to connect.
#[derive(Debug)]
pub(crate) enum Step {
    /// Nothing: it is no answer to what was asked.
    Ignore,
    /// The next request is to be sent now, and repeated at this pace; `None` for the pace so far.
    Request(Option<Repetition>),
    /// The next repetition is to be sent now, and the one behind it when it would be anyway.
    RequestInAdvance,
    /// The connection stands.
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

/// How a receiver asks for what is lost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum NakStyle {
    /// At once, and for everything that is missing once a period.
    Periodic,
    /// For each packet by a clock of its own.
    PerPacket,
    /// The same, and each report more than once: the sender takes all of them for one.
    PerPacketCopied,
}

/// What two ends agreed on.
#[derive(Debug)]
pub(crate) struct Negotiated {
    pub(crate) peer_socket_id: SocketId,
    pub(crate) peer_version: u32,
    pub(crate) stream_id: String,
    pub(crate) send_isn: SeqNo,
    pub(crate) receive_isn: SeqNo,
    pub(crate) mss: usize,
    pub(crate) peer_flow_window: u32,
    /// Delay that this end's receiver applies.
    pub(crate) receive_latency: Duration,
    /// Delay that the peer's receiver applies.
    pub(crate) peer_latency: Duration,
    /// The larger delay that a caller asked this listener for, if it did.
    pub(crate) caller_latency: Option<Duration>,
    /// Whether this end delivers by timestamps.
    pub(crate) tsbpd_receive: bool,
    /// Whether the peer skips what is late: it needs our timestamps for that.
    pub(crate) peer_too_late_drop: bool,
    pub(crate) peer_periodic_nak: bool,
    pub(crate) peer_retransmit_flag: bool,
    /// How this end's receiver asks for what is lost.
    pub(crate) nak_style: NakStyle,
    /// Whether the peer's receiver asks by clocks of its own.
    pub(crate) peer_has_nak_timers: bool,
    /// The packet filter of both directions.
    pub(crate) filter: Option<Fec>,
    /// Whether both ends follow each other to new addresses.
    pub(crate) path_update: bool,
    /// The cookie that both ends know.
    pub(crate) cookie: u32,
    /// The first numbers of both directions as the handshake said them, this end's first: a link of
    /// a group counts from others.
    pub(crate) handshake_isns: [SeqNo; 2],
    /// The packet that fixes the receiver's time base.
    pub(crate) base: TimeBase,
    /// The peer's group that the connection is a link of.
    pub(crate) peer_group: Option<u32>,
    /// Bytes that encryption adds to a payload.
    pub(crate) payload_overhead: usize,
    /// The keys, or why there are none; `None` where nobody wants encryption. The connection takes
    /// them out.
    pub(crate) crypt: Option<Box<Crypt>>,
}

impl Negotiated {
    /// The cipher of what this end sends, until the connection has taken the keys out.
    pub(crate) fn cipher(&self) -> Option<(CipherMode, KeyLength)> {
        self.crypt.as_ref().and_then(|crypt| crypt.cipher())
    }

    /// Largest payload of a message to `remote`.
    pub(crate) fn max_payload(&self, config: &Config, remote: SocketAddr) -> usize {
        let filter = if self.filter.is_some() { Fec::OVERHEAD } else { 0 };
        let room = self.packet_room(remote).saturating_sub(filter + self.payload_overhead);
        config.payload_size().min(room)
    }

    /// Bytes behind the SRT header that fit a packet to `remote`.
    pub(crate) fn packet_room(&self, remote: SocketAddr) -> usize {
        let overhead = match remote.ip() {
            IpAddr::V4(_) => UDP_IPV4_OVERHEAD,
            IpAddr::V6(_) => UDP_IPV6_OVERHEAD,
        };
        self.mss.saturating_sub(overhead + SRT_HEADER)
    }
}
