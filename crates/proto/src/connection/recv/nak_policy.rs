//! When a receiver sends a NAK for missing packets, and how often it repeats the NAK.

use std::fmt;
use std::time::Duration;

use punctual_rtt::Rtt;
use punctual_units::Instant;
use punctual_wire::SeqNo;

use super::nak_timers::{LEAST_MARGIN, copy_spacing};

/// Copies of a NAK where gaps are so rare that copies cost next to nothing. They bridge outages of
/// the way back.
const MANY: u32 = 31;
/// Copies of the last NAK that can be answered in time, where gaps are frequent.
pub(super) const FEW_LAST: u32 = 3;
/// If this number of rounds fits, one of them may be given up to wait for reordered packets.
const ROUNDS_TO_SPARE: u128 = 4;

/// A run of missing packets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MissingPackets {
    /// The first of them.
    pub first: SeqNo,
    /// The last of them.
    pub last: SeqNo,
    /// When the packet after them came, so that they were found to be missing.
    pub detected: Instant,
    /// When the last NAK for them was sent; `None` before the first.
    pub last_nak: Option<Instant>,
    /// The number of NAKs that were sent for them, copies aside.
    pub naks: u32,
    /// When the retransmission of a later packet of the same NAK came. Retransmissions leave in the
    /// order of the numbers, so that theirs was sent before it. `None` if none came.
    pub passed_over: Option<Instant>,
    /// When they are given up, because the packet after them is due; `None` for never.
    pub deadline: Option<Instant>,
}

/// The receiver's knowledge of its stream and path when it decides on a NAK.
#[derive(Clone, Copy, Debug)]
pub struct ReceiverView {
    /// The estimate of the round-trip time.
    pub rtt: Rtt,
    /// The time from a NAK within which 99 of 100 retransmissions come.
    pub response_time: Duration,
    /// When the newest NAK was sent that has been answered by a retransmission.
    pub answered: Instant,
    /// When the last retransmission came.
    pub last_answer: Instant,
    /// How much later than the packets behind them reordered packets came. Zero where reordering is
    /// rare: where it explains 5 % of the missing packets or less.
    pub reordering_delay: Duration,
    /// Share of originals that are missing when later packets come, from 0 to 1, over the last
    /// thousands.
    pub loss: f64,
    /// Whether the peer recognises copies of a NAK, so that it answers all of them once.
    pub copies_allowed: bool,
    /// Copies of NAKs that may be sent beside the usual ones: three for each twenty packets that
    /// come.
    pub spare_copies: f64,
}

/// A NAK that was just sent.
#[derive(Clone, Copy, Debug)]
pub struct SentNak {
    /// When it was sent.
    pub at: Instant,
    /// For some of its packets this may be the last NAK that brings them in time: when the first of
    /// these is given up. `None` if a later NAK can still bring all of them.
    pub last_chance: Option<Instant>,
}

/// Decides when a receiver sends a NAK for missing packets, and how many copies of it.
///
/// There is a policy for each connection. Only the runs of missing packets come to it one by one;
/// the connection remembers them, and lists those whose NAK is due at one time in one packet.
pub trait NakPolicy: fmt::Debug + Send {
    /// When the first or the next NAK for `missing` is sent. Runs are taken in the order of their
    /// NAKs, so that the instant is heeded once all runs before this one have had their turn. No
    /// NAK is sent for a packet whose retransmission could not come in time.
    fn nak_at(&self, missing: &MissingPackets, view: &ReceiverView) -> Instant;

    /// How long after `nak` its copy number `n`, from 1 to 32, is sent; `None` for no more copies.
    /// It is called only where the peer recognises copies.
    fn copy_after(&self, n: u32, nak: &SentNak, view: &ReceiverView) -> Option<Duration>;
}

/// A timer for each missing packet: repeats a NAK when its retransmission is overdue, neither
/// before that can have come nor long after, and waits for reordered packets as long as that costs
/// no round.
#[derive(Clone, Copy, Debug, Default)]
pub struct PerPacketNakTimers;

impl PerPacketNakTimers {
    /// How long to wait from the detection to the first NAK: reordering is not loss.
    fn wait(missing: &MissingPackets, view: &ReceiverView) -> Duration {
        let reordering_delay = view.reordering_delay;
        let Some(deadline) = missing.deadline else { return reordering_delay };
        let answer = view.rtt.smoothed + view.rtt.variance;
        let time = deadline.saturating_since(missing.detected + answer).as_nanos();
        let round = view.retransmission_timeout().as_nanos().max(1);
        let costs_nothing = reordering_delay.as_nanos() <= time % round;
        let costs_little = time / round >= ROUNDS_TO_SPARE && reordering_delay.as_nanos() <= round;
        if costs_nothing || costs_little { reordering_delay } else { Duration::ZERO }
    }

    /// When the retransmission is overdue. If a further one would come too late after that, the NAK
    /// is repeated while there is time.
    fn overdue(missing: &MissingPackets, asked: Instant, view: &ReceiverView) -> Instant {
        let rtt = view.rtt;
        if asked + copy_spacing(rtt) + LEAST_MARGIN < view.answered {
            return asked;
        }
        let overdue = asked + view.retransmission_timeout();
        let answer = rtt.smoothed + rtt.variance;
        let last_call = missing.deadline.map(|deadline| deadline.saturating_sub(answer));
        let pressing = last_call.filter(|&at| at > asked + answer && at < overdue);
        let at = pressing.unwrap_or(overdue);
        // The packets may still wait behind the retransmissions that are coming in.
        let pause = view.last_answer + copy_spacing(rtt);
        at.max(pause)
    }
}

impl NakPolicy for PerPacketNakTimers {
    fn nak_at(&self, missing: &MissingPackets, view: &ReceiverView) -> Instant {
        match (missing.last_nak, missing.passed_over) {
            (None, _) => missing.detected + Self::wait(missing, view),
            (Some(_), Some(passed)) => passed + view.reordering_delay,
            (Some(asked), None) => Self::overdue(missing, asked, view),
        }
    }

    fn copy_after(&self, n: u32, nak: &SentNak, view: &ReceiverView) -> Option<Duration> {
        let copy_spacing = copy_spacing(view.rtt);
        let Some(deadline) = nak.last_chance else {
            // The copies for a last chance keep their share.
            if view.spare_copies >= f64::from(2 * MANY) {
                return (n <= MANY).then(|| view.rtt.smoothed * n / MANY);
            }
            return [copy_spacing, view.rtt.smoothed / 2].get(n as usize - 1).copied();
        };
        if view.spare_copies < f64::from(MANY) {
            return (n <= FEW_LAST).then(|| copy_spacing * n);
        }
        let left = deadline.saturating_since(nak.at + view.rtt.smoothed);
        (n <= MANY).then(|| (left * n / MANY).max(copy_spacing * n / 4))
    }
}

impl ReceiverView {
    /// How long after a NAK its retransmission is overdue. The copy of the NAK may be the one that
    /// the peer received.
    pub fn retransmission_timeout(&self) -> Duration {
        let copy = if self.copies_allowed { copy_spacing(self.rtt) } else { Duration::ZERO };
        self.response_time + copy
    }
}
