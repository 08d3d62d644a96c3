//! The deadline-aware answer to loss reports: one for each distinct request, and more where it is
//! the last that can still arrive in time.

use std::time::Duration;

use punctual_units::Instant;

use super::retransmit::{Answer, ReportedPacket, RetransmitPolicy, SenderView};

/// Least time that a peer lets pass beyond a round trip before it asks again.
const LEAST_MARGIN: Duration = Duration::from_millis(2);
/// What is played a little later than this end reckons may still be of use.
const LATE: Duration = Duration::from_millis(2);
/// Packets over which the loss is measured; the last as many count at least, twice as many at most.
const WINDOW: u64 = 4_096;
/// Copies that may be saved up while there is little to answer.
const SAVED: f64 = 32.0;
/// Copies of one answer at most, besides it.
const MOST: u32 = 3;
/// A further copy of the same answer is worth less: it is allowed where so many are saved up.
const RESERVE: f64 = 8.0;
/// The round trip has grown by a queue, not by chance, when it exceeds the least by a quarter and
/// this.
const QUEUE: Duration = Duration::from_millis(10);

/// Answers each distinct request once, nothing that comes too late, and sends more than one answer
/// when no further request can be answered in time.
///
/// What copies cost is held to the square of the measured loss: as much as is lost of what is sent
/// again. So all of it is spent no more than a policy that answers old news by chance.
#[derive(Debug)]
pub struct Deadline {
    /// Where the present window began: originals sent, and the first answers since.
    from: u64,
    first_answers: u64,
    /// Share of originals that were lost, in the window before.
    before: Option<f64>,
    /// Copies that may be sent.
    saved: f64,
    /// The originals that have been counted for what is saved.
    counted: u64,
    least_rtt: Duration,
}

impl Default for Deadline {
    fn default() -> Self {
        Self {
            from: 0,
            first_answers: 0,
            before: None,
            saved: 0.0,
            counted: 0,
            least_rtt: Duration::MAX,
        }
    }
}

impl Deadline {
    /// The share of originals that are lost.
    fn loss(&self, originals: u64) -> f64 {
        let sent = originals.saturating_sub(self.from);
        let now = ratio(self.first_answers, sent.max(WINDOW / 8));
        match self.before {
            None => now,
            Some(before) => {
                let weight = ratio(sent, WINDOW).min(1.0);
                now * weight + before * (1.0 - weight)
            }
        }
    }

    /// Follows what was sent since the last report.
    fn follow(&mut self, view: &SenderView) {
        let loss = self.loss(view.originals);
        let sent = view.originals.saturating_sub(self.counted);
        self.counted = view.originals;
        self.saved = (self.saved + loss * loss * sent as f64).min(SAVED);
        if view.originals.saturating_sub(self.from) >= WINDOW {
            self.before = Some(loss);
            self.from = view.originals;
            self.first_answers = 0;
            self.least_rtt = view.rtt.smoothed;
        }
        self.least_rtt = self.least_rtt.min(view.rtt.smoothed);
    }

    /// Whether the path's queue grows: copies would make it longer.
    fn is_congested(&self, view: &SenderView) -> bool {
        view.rtt.smoothed > self.least_rtt + self.least_rtt / 4 + QUEUE
    }

    /// How many copies may be sent of an answer of which no later one can be in time.
    fn spend(&mut self) -> u32 {
        let mut copies = 0;
        while copies < MOST && self.saved >= 1.0 + RESERVE * f64::from(copies) {
            self.saved -= 1.0;
            copies += 1;
        }
        copies
    }
}

impl RetransmitPolicy for Deadline {
    fn answer(&mut self, now: Instant, packet: &ReportedPacket, view: &SenderView) -> Answer {
        self.follow(view);
        let rtt = view.rtt;
        let swing = (rtt.variance * 4).min(rtt.smoothed / 2);
        if packet.last_retransmit.is_some_and(|last| now < last + (rtt.smoothed - swing)) {
            return Answer::Old;
        }
        let left = match packet.deadline {
            Some(deadline) if now > deadline + LATE + swing => return Answer::TooLate,
            Some(deadline) => deadline.saturating_since(now),
            None => Duration::MAX,
        };
        self.first_answers += u64::from(packet.retransmissions == 0);
        let round = rtt.smoothed + (rtt.variance * 4).max(LEAST_MARGIN);
        if left > round || self.is_congested(view) {
            return Answer::ONCE;
        }
        let more = self.spend();
        Answer::Send { more, apart: (left / (more + 1)).min(rtt.smoothed / 2) }
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}
