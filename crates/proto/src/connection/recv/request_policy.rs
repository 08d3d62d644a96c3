//! When a receiver asks for what is missing, and how often it says so.

use std::fmt;
use std::time::Duration;

use punctual_rtt::Rtt;
use punctual_units::Instant;
use punctual_wire::SeqNo;

use super::requests::{LEAST_MARGIN, apart};

/// Copies of a report where gaps are so rare that copies cost nothing that counts. They are for
/// outages of the way back.
const MANY: u32 = 31;
/// Copies of the last report that can be answered in time, where gaps are frequent.
const FEW_LAST: u32 = 3;
/// Of so many rounds that fit, one may be given up to wait for packets that others overtook.
const ROUNDS_TO_SPARE: u128 = 4;

/// Packets in a row that are missing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MissingPackets {
    /// The first of them.
    pub first: SeqNo,
    /// The last of them.
    pub last: SeqNo,
    /// When the packet behind them came.
    pub found: Instant,
    /// When they were last asked for; `None` if they were not yet.
    pub asked: Option<Instant>,
    /// How often they were asked for.
    pub requests: u32,
    /// When the answer to a packet behind them came that the same report asked for: theirs was sent
    /// before it.
    pub passed: Option<Instant>,
    /// When they are given up, because the packet behind them is due; `None` for never.
    pub deadline: Option<Instant>,
}

/// What a receiver knows of its stream and path when it decides on a request.
#[derive(Clone, Copy, Debug)]
pub struct ReceiverView {
    /// The round-trip time.
    pub rtt: Rtt,
    /// The time within which nearly all answers come (99 of 100).
    pub response: Duration,
    /// When the newest request was made that has been answered.
    pub answered: Instant,
    /// When the last answer came.
    pub last_answer: Instant,
    /// How much later packets came that others overtook; zero where that is rare, 5 % of what was
    /// missing or less.
    pub overtaking: Duration,
    /// Share of originals that are missing when those behind them come, over the last thousands.
    pub loss: f64,
    /// Whether the peer takes copies of a report for one.
    pub copied: bool,
    /// Copies of reports that may be sent besides the usual ones: three of them for each
    /// twenty packets that come.
    pub spare: f64,
}

/// A report that was just sent.
#[derive(Clone, Copy, Debug)]
pub struct SentReport {
    /// When.
    pub at: Instant,
    /// When the first of its packets is given up that no later report can bring in time; `None` if
    /// there is none.
    pub last_chance: Option<Instant>,
}

/// Decides when missing packets are asked for, and how often each report is sent.
pub trait RequestPolicy: fmt::Debug + Send {
    /// When `missing` is to be asked for, at first or again. What was asked for first comes first:
    /// this is heeded when all before it have had their turn. A packet whose answer could not come
    /// in time is not asked for.
    fn request_at(&self, missing: &MissingPackets, view: &ReceiverView) -> Instant;

    /// When the copy number `n` of `report`, from 1 to 32, is sent after it; `None` for no more. It
    /// is asked only where the peer takes all of them for one.
    fn copy_after(&self, n: u32, report: &SentReport, view: &ReceiverView) -> Option<Duration>;
}

/// Asks again when an answer is overdue, neither before it can have come nor long after, and waits
/// for packets that others overtook as long as that costs no round.
#[derive(Clone, Copy, Debug, Default)]
pub struct TimedRequests;

impl TimedRequests {
    /// How long after being found missing packets are asked for: reordering is not loss.
    fn wait(missing: &MissingPackets, view: &ReceiverView) -> Duration {
        let overtaking = view.overtaking;
        let Some(deadline) = missing.deadline else { return overtaking };
        let answer = view.rtt.smoothed + view.rtt.variance;
        let time = deadline.saturating_since(missing.found + answer).as_nanos();
        let round = view.patience().as_nanos().max(1);
        let costs_nothing = overtaking.as_nanos() <= time % round;
        let costs_little = time / round >= ROUNDS_TO_SPARE && overtaking.as_nanos() <= round;
        if costs_nothing || costs_little { overtaking } else { Duration::ZERO }
    }

    /// When the answer is overdue. Where it could still be awaited, but a further one would come
    /// too late then, it is asked for while there is time.
    fn overdue(missing: &MissingPackets, asked: Instant, view: &ReceiverView) -> Instant {
        let rtt = view.rtt;
        if asked + apart(rtt) + LEAST_MARGIN < view.answered {
            return asked;
        }
        let overdue = asked + view.patience();
        let answer = rtt.smoothed + rtt.variance;
        let last_call = missing.deadline.map(|deadline| deadline.saturating_sub(answer));
        let pressing = last_call.filter(|&at| at > asked + answer && at < overdue);
        let at = pressing.unwrap_or(overdue);
        // What was asked for may still stand behind the answers that are coming in.
        let pause = view.last_answer + apart(rtt);
        at.max(pause)
    }
}

impl RequestPolicy for TimedRequests {
    fn request_at(&self, missing: &MissingPackets, view: &ReceiverView) -> Instant {
        match (missing.asked, missing.passed) {
            (None, _) => missing.found + Self::wait(missing, view),
            (Some(_), Some(passed)) => passed + view.overtaking,
            (Some(asked), None) => Self::overdue(missing, asked, view),
        }
    }

    fn copy_after(&self, n: u32, report: &SentReport, view: &ReceiverView) -> Option<Duration> {
        let apart = apart(view.rtt);
        let Some(deadline) = report.last_chance else {
            // The last chance of what is missing keeps its share.
            if view.spare >= f64::from(2 * MANY) {
                return (n <= MANY).then(|| view.rtt.smoothed * n / MANY);
            }
            return [apart, view.rtt.smoothed / 2].get(n as usize - 1).copied();
        };
        if view.spare < f64::from(MANY) {
            return (n <= FEW_LAST).then(|| apart * n);
        }
        let left = deadline.saturating_since(report.at + view.rtt.smoothed);
        (n <= MANY).then(|| (left * n / MANY).max(apart * n / 4))
    }
}

impl ReceiverView {
    /// How long after a request its answer is overdue; the copy may be the one that arrived.
    pub fn patience(&self) -> Duration {
        let copy = if self.copied { apart(self.rtt) } else { Duration::ZERO };
        self.response + copy
    }
}
