//! Requests by clocks of their own: each missing packet is asked for again when the answer is
//! overdue, neither before it can have come nor long after.

use std::collections::VecDeque;
use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::{LossListBuilder, SeqNo};

use super::ReceiveHalf;
use crate::connection::rtt::Rtt;

/// Least time beyond a round trip before an answer counts as overdue: what hosts may be late.
const LEAST_MARGIN: Duration = Duration::from_millis(1);
/// Bounds of the time between a request and its copy, which is a sixteenth of the round trip.
const LEAST_APART: Duration = Duration::from_micros(500);
const MOST_APART: Duration = Duration::from_millis(5);
/// Among so many of the oldest requests the one is looked for that a packet answers.
const SEARCHED: usize = 64;
/// Rounds that are told apart in the statistics; the last stands for all further ones.
pub(crate) const ROUNDS: usize = 4;

/// What was asked for and has not come.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// In the order in which they were asked for, and so in that in which they are overdue.
    asked: VecDeque<Asked>,
    /// Second copies of reports, for the case that the first is lost.
    copies: VecDeque<Copy>,
    /// When the newest request was made that has been answered: earlier ones should have been.
    answered: Instant,
    /// Packets asked for again.
    pub(crate) repeated: u64,
    /// Packets that came when they had been asked for once, twice, and so on.
    pub(crate) recovered: [u64; ROUNDS],
}

#[derive(Clone, Debug)]
struct Asked {
    first: SeqNo,
    last: SeqNo,
    at: Instant,
    /// How often these packets have been asked for.
    round: usize,
}

#[derive(Debug)]
struct Copy {
    due: Instant,
    made: Instant,
    list: LossListBuilder,
}

/// The time between a request and its copy.
fn apart(rtt: Rtt) -> Duration {
    (rtt.smoothed / 16).clamp(LEAST_APART, MOST_APART)
}

/// How long after a request its answer is overdue. The copy may be the one that arrived.
fn patience(rtt: Rtt) -> Duration {
    rtt.smoothed + (rtt.variance * 4).max(LEAST_MARGIN) + apart(rtt)
}

impl Requests {
    /// The packets from `first` to `last` are asked for.
    pub(crate) fn ask(&mut self, now: Instant, first: SeqNo, last: SeqNo, round: usize) {
        self.asked.push_back(Asked { first, last, at: now, round });
    }

    /// A report was sent at `now`: its copy follows.
    pub(crate) fn sent(&mut self, now: Instant, list: &LossListBuilder, rtt: Rtt) {
        self.copies.push_back(Copy { due: now + apart(rtt), made: now, list: list.clone() });
    }

    /// The copy of a report that is due, and when the report was made.
    pub(crate) fn take_copy(&mut self, now: Instant) -> Option<(Instant, LossListBuilder)> {
        self.copies.front().filter(|copy| copy.due <= now)?;
        self.copies.pop_front().map(|copy| (copy.made, copy.list))
    }

    /// When the next copy is due.
    pub(crate) fn next_copy(&self) -> Option<Instant> {
        self.copies.front().map(|copy| copy.due)
    }

    /// A packet that was sent again came in.
    pub(crate) fn came(&mut self, now: Instant, seq: SeqNo, rtt: Rtt) {
        let asks = |asked: &&Asked| !seq.is_before(asked.first) && !seq.is_after(asked.last);
        let Some(asked) = self.asked.iter().take(SEARCHED).find(asks) else { return };
        self.recovered[asked.round.min(ROUNDS) - 1] += 1;
        // Else it answers an earlier request.
        if now >= asked.at + rtt.smoothed * 7 / 8 {
            self.answered = self.answered.max(asked.at);
        }
    }

    /// When the answer to the oldest request is overdue.
    pub(crate) fn next_overdue(&self, rtt: Rtt) -> Option<Instant> {
        let asked = self.asked.front()?;
        let overtaken = asked.at + apart(rtt) + LEAST_MARGIN < self.answered;
        Some(if overtaken { asked.at } else { asked.at + patience(rtt) })
    }

    /// Takes out the oldest request whose answer is overdue at `now`.
    fn take_overdue(&mut self, now: Instant, rtt: Rtt) -> Option<Asked> {
        self.next_overdue(rtt).filter(|&at| at <= now)?;
        self.asked.pop_front()
    }
}

impl ReceiveHalf {
    /// Asks again for what is overdue and can still be in time.
    pub(super) fn ask_again(&mut self, now: Instant, rtt: Rtt) {
        let Some(mut requests) = self.requests.take() else { return };
        while let Some(asked) = requests.take_overdue(now, rtt) {
            let mut from = asked.first;
            while let Some((first, last)) = self.first_missing(from, asked.last) {
                if self.can_be_in_time(now, last, rtt) {
                    requests.repeated += u64::from(last.distance_from(first).unsigned_abs()) + 1;
                    requests.ask(now, first, last, asked.round + 1);
                    self.list(first, last);
                }
                from = last.next();
            }
        }
        self.requests = Some(requests);
    }

    /// The first run of missing packets between `from` and `to`.
    fn first_missing(&self, from: SeqNo, to: SeqNo) -> Option<(SeqNo, SeqNo)> {
        let head = self.buffer.head();
        let from = if from.is_before(head) { head } else { from };
        let (first, last) = self.buffer.missing().ranges_from(from).next()?;
        let within = !first.is_after(to) && !first.is_before(from);
        within.then(|| (first, if last.is_after(to) { to } else { last }))
    }

    /// Whether an answer to a request for `last` would come before it is given up, which is when
    /// the packet behind it is due.
    fn can_be_in_time(&self, now: Instant, last: SeqNo, rtt: Rtt) -> bool {
        let Some(tsbpd) = self.tsbpd.as_ref().filter(|_| self.too_late_drop) else { return true };
        let behind = self.buffer.get(last.next());
        behind.is_none_or(|stored| now + rtt.smoothed * 7 / 8 < tsbpd.due(stored.time))
    }
}
