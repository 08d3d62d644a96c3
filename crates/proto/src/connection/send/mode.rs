//! The mode of sending: which packets this end may drop, and how losses are recovered.

use std::time::Duration;

use crate::agreed_time::AgreedTime;
use crate::config::Config;
use crate::filter::Arq;
use crate::handshake::Negotiated;
use crate::transmission::Transmission;

/// Least age at which the sender drops, and the margin, nanoseconds (draft section 4.6; libsrt).
const LEAST_DROP_AGE: i64 = 1_000_000_000;
const DROP_MARGIN: u64 = 20_000_000;

/// How a connection sends.
#[derive(Debug)]
pub(super) struct SendMode {
    pub(super) delivery: PeerDelivery,
    pub(super) recovery: LossRecovery,
}

/// Which packets the sender may drop before they are acknowledged. A message with a time to live is
/// dropped after it in every mode.
#[derive(Debug)]
pub(super) enum PeerDelivery {
    /// The peer drops packets that are too late (TLPKTDROP, draft section 4.6).
    TooLateDrop {
        /// The peer's latency: it is too late to send a packet that is older.
        latency: AgreedTime,
        /// The time beyond the latency after which this end drops a message, nanoseconds; `None` if
        /// it never does.
        drop_delay: Option<i64>,
    },
    /// Live, and the peer waits for every packet.
    InOrder,
    /// A file or a stream of bytes: packets leave the send buffer only when they have arrived.
    Reliable {
        /// The age at which the receiver uses a byte; `None` without a playout point.
        playout: Option<AgreedTime>,
    },
}

/// How lost packets are recovered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum LossRecovery {
    /// The peer repeats its NAK for all missing packets (draft section 4.8.2).
    PeriodicNak,
    /// The peer sends NAKs by a timer for each missing packet.
    PacketTimers,
    /// The peer reports a loss once, or this end does not rely on a repetition: if nothing is
    /// acknowledged for a timeout, all packets in flight count as lost; those of a file only if the
    /// peer does not answer at all, and otherwise the oldest one.
    Timeout,
    /// Nothing is retransmitted: the packet filter alone recovers losses.
    Never,
}

impl SendMode {
    pub(super) fn new(config: &Config, negotiated: &Negotiated) -> Self {
        let is_file = config.transmission() != Transmission::Live;
        let delivery = if negotiated.peer.too_late_drop {
            let latency = negotiated.latency.peer.clone();
            let nanos = |delay: Duration| i64::try_from(delay.as_nanos()).unwrap_or(i64::MAX);
            PeerDelivery::TooLateDrop { latency, drop_delay: config.send_drop_delay().map(nanos) }
        } else if is_file {
            PeerDelivery::Reliable { playout: negotiated.playout.clone() }
        } else {
            PeerDelivery::InOrder
        };
        let recovery = if negotiated.filter.is_some_and(|fec| fec.arq() == Arq::Never) {
            LossRecovery::Never
        } else if negotiated.peer.nak_timers {
            LossRecovery::PacketTimers
        } else if is_file || !negotiated.peer.periodic_nak {
            LossRecovery::Timeout
        } else {
            LossRecovery::PeriodicNak
        };
        Self { delivery, recovery }
    }
}

impl PeerDelivery {
    /// Whether originals are sent before retransmissions: the peer drops late packets.
    pub(super) const fn sends_originals_first(&self) -> bool {
        matches!(self, Self::TooLateDrop { .. })
    }

    pub(super) const fn is_reliable(&self) -> bool {
        matches!(self, Self::Reliable { .. })
    }

    /// The age after which a packet arrives too late to be played; `None` if the peer waits for
    /// all.
    pub(super) fn useful_age(&self) -> Option<Duration> {
        match self {
            Self::TooLateDrop { latency, .. } => Some(latency.get()),
            Self::InOrder | Self::Reliable { .. } => None,
        }
    }

    /// The age by which a packet is needed: after it the peer drops it, or has a glitch. `None` if
    /// there is no such age.
    pub(super) fn needed_age(&self) -> Option<Duration> {
        match self {
            Self::TooLateDrop { latency, .. } => Some(latency.get()),
            Self::Reliable { playout } => playout.as_ref().map(AgreedTime::get),
            Self::InOrder => None,
        }
    }

    /// The age in nanoseconds beyond which messages are dropped; `None` if the sender drops none.
    #[inline(always)]
    pub(super) fn drop_age(&self) -> Option<u64> {
        match self {
            Self::TooLateDrop { latency, drop_delay: Some(delay) } => {
                let age = latency.nanos().saturating_add(*delay).max(LEAST_DROP_AGE);
                Some(age.cast_unsigned() + DROP_MARGIN)
            }
            _ => None,
        }
    }
}
