//! The built-in policy of NAKs: a timer for each missing packet.

use std::time::Duration;

use punctual_units::Instant;

use crate::pace::QUANTUM;
use crate::policy::nak::{MissingPackets, NakPolicy, ReceiverView, SentNak};
use crate::report_times::{FEW_LAST, LEAST_MARGIN, copy_spacing};

/// Copies of a NAK while gaps are rare, when copies cost almost nothing. They bridge outages of the
/// return path.
const MANY: u32 = 31;
/// If this number of rounds of NAK and retransmission fits, one of them may be spent on a wait for
/// reordered packets.
const ROUNDS_TO_SPARE: u128 = 4;

/// A timer for each missing packet: repeats a NAK as soon as its retransmission is overdue, and
/// waits for reordered packets if no round of NAK and retransmission is lost by it.
#[derive(Clone, Copy, Debug, Default)]
pub struct PerPacketNakTimers;

impl PerPacketNakTimers {
    /// The wait from the detection to the first NAK, for packets that are only reordered.
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

    /// The instant at which the retransmission is overdue. If a further retransmission would then
    /// arrive too late, the NAK is repeated earlier.
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
        // While retransmissions arrive, these packets may follow them.
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
            // Enough copies remain for NAKs that are a last chance.
            if view.spare_copies >= f64::from(2 * MANY) {
                let round_trip = view.rtt.smoothed;
                // Copies within a quantum would leave together: fewer fit into a short round trip.
                let after = (round_trip * n / MANY).max(QUANTUM * n);
                return match n {
                    // The timeout allows for it.
                    1 => Some(after.min(copy_spacing)),
                    _ => (n <= MANY && after <= round_trip).then_some(after),
                };
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
