//! When a receiver sends a NAK for missing packets, and how often it repeats the NAK.

use std::fmt;
use std::time::Duration;

use punctual_rtt::Rtt;
use punctual_units::Instant;
use punctual_wire::SeqNo;

use crate::report_times::copy_spacing;

/// A run of missing packets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MissingPackets {
    /// The first of them.
    pub first: SeqNo,
    /// The last of them.
    pub last: SeqNo,
    /// The instant when the packet after them arrived, which showed the gap.
    pub detected: Instant,
    /// The instant of the last NAK for them; `None` before the first.
    pub last_nak: Option<Instant>,
    /// The number of NAKs for them, without copies.
    pub naks: u32,
    /// The arrival of the retransmission of a later packet of the same NAK; `None` if there was
    /// none. Retransmissions are sent in the order of the numbers, so theirs was sent earlier.
    pub passed_over: Option<Instant>,
    /// The instant at which they are dropped because the packet after them is due; `None` for
    /// never.
    pub deadline: Option<Instant>,
}

/// The receiver's knowledge of its stream and path when it decides on a NAK.
#[derive(Clone, Copy, Debug)]
pub struct ReceiverView {
    /// The estimate of the round-trip time.
    pub rtt: Rtt,
    /// The time after a NAK within which 99 of 100 retransmissions arrive.
    pub response_time: Duration,
    /// The sending time of the newest NAK for which a retransmission has arrived.
    pub answered: Instant,
    /// The arrival of the last retransmission.
    pub last_answer: Instant,
    /// The delay of reordered packets after the packets that overtook them. Zero while reordering
    /// is rare: while it explains 5 % of the missing packets or less.
    pub reordering_delay: Duration,
    /// The share of originals that are missing when later packets arrive, from 0 to 1, over the
    /// last thousands of packets.
    pub loss: f64,
    /// Whether the peer recognises copies of a NAK, so that it answers all of them once.
    pub copies_allowed: bool,
    /// The number of further copies of NAKs that may be sent now. It grows by three for each twenty
    /// packets that arrive.
    pub spare_copies: f64,
}

/// A NAK that was just sent.
#[derive(Clone, Copy, Debug)]
pub struct SentNak {
    /// When it was sent.
    pub at: Instant,
    /// The earliest deadline among the packets for which this is the last NAK that can be answered
    /// in time; `None` if a later NAK is in time for all of them.
    pub last_chance: Option<Instant>,
}

/// Decides when a receiver sends a NAK for missing packets, and how many copies of it.
///
/// There is a policy for each connection. It decides on one run of missing packets at a time; the
/// connection remembers the runs, and lists those whose NAKs are due at the same time in one
/// packet.
pub trait NakPolicy: fmt::Debug + Send {
    /// The instant of the first or the next NAK for `missing`. Runs are handled in the order of
    /// their last NAKs, so that a run waits for those before it. No NAK is sent for a packet whose
    /// retransmission could not arrive in time.
    fn nak_at(&self, missing: &MissingPackets, view: &ReceiverView) -> Instant;

    /// The delay of copy number `n`, from 1 to 32, after `nak`; `None` for no further copies. It is
    /// called only if the peer recognises copies.
    fn copy_after(&self, n: u32, nak: &SentNak, view: &ReceiverView) -> Option<Duration>;
}

impl ReceiverView {
    /// The time after a NAK at which its retransmission is overdue. If the peer received only the
    /// copy of the NAK, the retransmission arrives later by the spacing of copies.
    pub fn retransmission_timeout(&self) -> Duration {
        let copy = if self.copies_allowed { copy_spacing(self.rtt) } else { Duration::ZERO };
        self.response_time + copy
    }
}
