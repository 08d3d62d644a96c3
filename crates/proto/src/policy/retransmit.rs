//! The policy of retransmission: which of the packets that the peer reported lost are
//! retransmitted, and when.

use std::fmt;
use std::time::Duration;

use punctual_rtt::Rtt;
use punctual_units::{Bitrate, Instant};
use punctual_wire::SeqNo;

/// The next packet in the loss list.
#[derive(Clone, Copy, Debug)]
pub struct ReportedPacket {
    /// Its sequence number.
    pub seq: SeqNo,
    /// The instant at which the application submitted it.
    pub origin: Instant,
    /// Its last retransmission; `None` if only the original was sent.
    pub last_retransmit: Option<Instant>,
    /// The number of its retransmissions so far.
    pub retransmissions: u32,
    /// The latest instant at which its retransmission is of use: the peer drops it when the next
    /// packet that it has is due, at that packet's origin plus the peer's latency. `None` if the
    /// peer waits for all packets, or if this retransmission probes a silent peer.
    pub deadline: Option<Instant>,
    /// The same for a retransmission after that of the next packet: if that one arrives first, the
    /// peer drops this one when that one is due. In a stream of bytes with a playout point, where
    /// nothing is dropped, the playout point of the next packet.
    pub next_deadline: Option<Instant>,
}

/// The sender's knowledge of its stream and path when it decides on a retransmission.
#[derive(Clone, Copy, Debug)]
pub struct SenderView {
    /// The round-trip time.
    pub rtt: Rtt,
    /// The number of originals sent so far.
    pub originals: u64,
    /// The share of originals that were reported lost, over the last thousands; small while fewer
    /// were sent.
    pub loss: f64,
    /// The limit of the rate of retransmissions; `None` for no separate limit.
    pub limit: Option<Bitrate>,
    /// The time from a retransmission to the next one of the same packet, if the first one is lost.
    pub round: Duration,
}

/// The decision on a packet that was reported lost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Decision {
    /// It is not retransmitted: the NAK was sent before the last retransmission can have arrived,
    /// or the limit of retransmissions is reached.
    Suppress,
    /// It is not retransmitted: it would arrive too late to be played.
    TooLate,
    /// It is retransmitted now.
    Retransmit {
        /// Further copies, unless the packet is acknowledged first.
        copies: u32,
        /// The time between the copies.
        spacing: Duration,
    },
}

impl Decision {
    /// It is retransmitted now, once.
    pub const ONCE: Self = Self::Retransmit { copies: 0, spacing: Duration::ZERO };
}

/// Decides whether a packet that was reported lost is retransmitted now, and with how many copies.
///
/// A packet that is not retransmitted leaves the loss list, and returns only with another NAK.
pub trait RetransmitPolicy: fmt::Debug + Send {
    /// The decision on `packet` at `now`.
    fn decide(&mut self, now: Instant, packet: &ReportedPacket, view: &SenderView) -> Decision;
}
