//! What is sent again: the peer's loss reports, silence, and whose turn it is.

use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::{LossList, SeqNo, Timestamp};

use super::budget::RetransmitBudget;
use super::retransmit::{Answer, ReportedPacket, SenderView};
use super::{SendHalf, Verdict, rates};
use crate::connection::recv::{half_bound, patience};
use crate::connection::rtt::Rtt;

/// Added to the first retransmission timeout, and to each round-trip bound in it.
const RETRANSMIT_BASE: Duration = Duration::from_millis(10);
const RETRANSMIT_MARGIN: Duration = Duration::from_millis(20);
/// Packets that probe the end of a paused stream.
const PROBES: usize = 2;
/// Loss reports that are remembered: more do not come within the time between a report and its
/// copy.
const REMEMBERED: usize = 32;

/// The newest loss reports, by what tells them apart: when they were made, and what they begin
/// with.
#[derive(Debug, Default)]
pub(super) struct Heard {
    reports: [Option<(Timestamp, SeqNo, usize)>; REMEMBERED],
    next: usize,
}

impl Heard {
    /// Whether this very report came before: the peer sent it twice, or the network did.
    fn again(&mut self, timestamp: Timestamp, list: &LossList<'_>) -> bool {
        let mut ranges = list.ranges();
        let Some((first, _)) = ranges.next() else { return false };
        let report = Some((timestamp, first, ranges.count()));
        if self.reports.contains(&report) {
            return true;
        }
        self.reports[self.next] = report;
        self.next = (self.next + 1) % REMEMBERED;
        false
    }
}

impl SendHalf {
    /// Queues what the peer reports lost; what is gone is announced as such.
    pub(crate) fn handle_nak(
        &mut self,
        now: Instant,
        timestamp: Timestamp,
        list: &LossList<'_>,
        rtt: Rtt,
    ) -> Verdict {
        self.counts.naks += 1;
        self.last_response = now;
        self.probing = None;
        let next_new = self.buffer.next_new();
        let honest = list.ranges().all(|(_, last)| last.is_before(next_new));
        if honest && self.heard.again(timestamp, list) {
            return Verdict::Repeated;
        }
        self.report_budget.refill(now, self.buffer.flight());
        let mut verdict = Verdict::Repeated;
        let (mut first_lost, mut newly_lost) = (None, 0);
        for (first, last) in list.ranges() {
            if !last.is_before(next_new) {
                verdict = Verdict::Odd;
                continue;
            }
            let Some((first, last)) = self.within_budget(first, last) else { continue };
            let added = self.report_lost(now, first, last, rtt);
            if added > 0 {
                newly_lost += added;
                first_lost = first_lost.or(Some(first));
                if verdict == Verdict::Repeated {
                    verdict = Verdict::Advanced;
                }
            }
        }
        if let Some(first) = first_lost {
            let path = self.path(rtt, newly_lost);
            self.control.get_mut().lost(now, first, &path);
            self.follow_control();
        }
        if self.returned.is_some() {
            self.return_lost(now);
        }
        verdict
    }

    /// What of a reported run can be missing at the peer, and may be looked at: nothing that lies
    /// farther back than this end keeps packets, and no more than an honest peer reports.
    fn within_budget(&mut self, first: SeqNo, last: SeqNo) -> Option<(SeqNo, SeqNo)> {
        let limit = u32::try_from(self.buffer.limit()).unwrap_or(u32::MAX);
        let least = self.buffer.first().minus(limit);
        let first = if first.is_before(least) { least } else { first };
        if last.is_before(first) {
            return None;
        }
        // What is gone is one answer, however much it is.
        let kept = if first.is_before(self.buffer.first()) { self.buffer.first() } else { first };
        let packets = last.distance_from(kept).max(-1) + 1;
        let taken = self.report_budget.take(packets.unsigned_abs().max(1));
        let lookable = kept.plus(taken).minus(1);
        (taken > 0).then(|| (first, if lookable.is_before(last) { lookable } else { last }))
    }

    /// When something in flight is to be sent again because nothing was acknowledged.
    pub(crate) fn next_silence(&self, rtt: Rtt) -> Option<Instant> {
        if self.buffer.flight() == 0 || self.never_repeats {
            return None;
        }
        let since = if self.retransmits_on_silence {
            self.last_progress
        } else {
            self.last_progress.max(self.last_original)
        };
        // From when it was done, not from when it was due: whoever wakes up late does it once.
        let since = self.last_silence.map_or(since + RETRANSMIT_BASE, |last| since.max(last));
        Some(since + rtt.bound() + RETRANSMIT_MARGIN)
    }

    /// Nothing was acknowledged for long. Where the peer does not repeat its loss reports,
    /// everything in flight counts as lost, and what was given up in between is announced again.
    /// Otherwise the stream has paused as well, and the newest packets do: nothing behind them
    /// would tell the peer that they are missing, which costs libsrt the end of a stream. They are
    /// two because a receiver believes a large gap only when a second packet says so.
    ///
    /// Of a file, nothing is added while packets that were reported lost still wait for their turn
    /// (libsrt's LATEREXMIT). And where the peer waits for a packet that was sent again already, at
    /// first only what is likely to be missing: most of what is in flight waits behind it there.
    pub(crate) fn handle_silence(&mut self, now: Instant, rtt: Rtt) {
        let is_first = self.last_silence.replace(now).is_none();
        let was_answered = self.reliable && self.buffer.repairs_of_oldest() > 0;
        if was_answered && is_first && !self.buffer.has_lost() {
            self.repeat_answers(now, rtt);
        } else if !(self.reliable && self.buffer.has_lost()) {
            let last = self.buffer.next_new().minus(1);
            let first = if self.retransmits_on_silence {
                self.acknowledged
            } else {
                self.buffer.tail_of_flight(PROBES)
            };
            self.report_lost(now, first, last, rtt);
            self.probing = Some((first, last));
        }
        let path = self.path(rtt, 0);
        self.control.get_mut().timed_out(now, &path);
        self.follow_control();
    }

    /// Queues what was sent again already, and the newest packets: an answer was lost, and nothing
    /// may have come behind those.
    fn repeat_answers(&mut self, now: Instant, rtt: Rtt) {
        let end = self.buffer.next_new();
        let tail = self.buffer.tail_of_flight(PROBES);
        let mut seq = self.acknowledged;
        while seq.is_before(end) {
            let again = self.buffer.get(seq).is_none_or(|packet| packet.retransmissions > 0);
            if again || !seq.is_before(tail) {
                self.report_lost(now, seq, seq, rtt);
            }
            seq = seq.next();
        }
    }

    /// Queues what is in flight from `first` to `last`, and announces what of it is gone. Returns
    /// how many packets are new in the loss list.
    fn report_lost(&mut self, now: Instant, first: SeqNo, last: SeqNo, rtt: Rtt) -> u64 {
        let drop_requests = &mut self.drop_requests;
        // Of a file, what was acknowledged has arrived and may wait to be read: a peer that is told
        // to forget it might do so.
        let arrived = self.reliable.then_some(self.acknowledged);
        let added = self.buffer.report_lost(first, last, |first, last| {
            let first = match arrived {
                Some(arrived) if last.is_before(arrived) => return,
                Some(arrived) if first.is_before(arrived) => arrived,
                _ => first,
            };
            drop_requests.asked(now, first, last, rtt.smoothed);
        });
        self.counts.lost += added;
        added
    }

    /// When something may be sent again; `None` if nothing waits for it.
    pub(super) fn next_again(&self) -> Option<Instant> {
        let waits = if self.buffer.has_lost() { Some(Instant::ORIGIN) } else { self.copies.next() };
        Some(waits?.max(self.budget_opens()?))
    }

    /// Whose turn it is to be sent again at `now`.
    pub(super) fn choose_again(&mut self, now: Instant, rtt: Rtt) -> Option<SeqNo> {
        if self.budget_opens().is_none_or(|at| at > now) {
            return None;
        }
        self.choose_lost(now, rtt).or_else(|| self.choose_copy(now))
    }

    fn choose_lost(&mut self, now: Instant, rtt: Rtt) -> Option<SeqNo> {
        let mut view = self.view(rtt);
        // A run of lost packets has one end, which is looked for once.
        let mut run_end = self.buffer.first();
        while let Some(seq) = self.buffer.take_lost() {
            if !run_end.is_after(seq) {
                run_end = self.buffer.behind_lost(seq);
            }
            // When the packet there is due, the peer gives up what is missing before it.
            let behind = self.buffer.sent_origin(run_end);
            let next = self.buffer.get(seq.next()).map(|packet| packet.origin);
            // What asks whether the peer is there may be as old as it likes.
            let probes = self.probes(seq);
            let Some(packet) = self.buffer.get_mut(seq) else { continue };
            let budget = self.budget.as_ref().filter(|_| !probes);
            if budget.is_some_and(|budget| budget.is_wasted_on(now, packet.origin)) {
                continue;
            }
            let useful_age = self.useful_age.filter(|_| !probes);
            let reported = ReportedPacket {
                seq,
                origin: packet.origin,
                last_retransmit: packet.last_retransmit,
                retransmissions: packet.retransmissions,
                deadline: useful_age.map(|age| behind.unwrap_or(packet.origin) + age),
                next_deadline: useful_age.map(|age| next.unwrap_or(packet.origin) + age),
            };
            if reported.retransmissions == 0 && !probes {
                self.reported.hit(1);
                view.loss = self.reported.value();
            }
            match self.policy.answer(now, &reported, &view) {
                Answer::Old => self.counts.old += 1,
                Answer::TooLate => self.counts.too_late += 1,
                Answer::Send { more, apart } => {
                    packet.last_retransmit = Some(now);
                    packet.retransmissions += 1;
                    for n in 1..=more {
                        self.copies.plan(now + apart * n, seq);
                    }
                    return Some(seq);
                }
            }
        }
        None
    }

    /// Whether it is sent again because the peer is silent, not because it reported it.
    fn probes(&self, seq: SeqNo) -> bool {
        self.probing.is_some_and(|(first, last)| seq.is_within(first, last))
    }

    fn view(&mut self, rtt: Rtt) -> SenderView {
        let originals = self.counts.sent_unique;
        self.reported.up_to(originals);
        let loss = self.reported.value();
        let limit = self.budget.as_ref().and_then(|budget| budget.rate(rates(&self.control)));
        SenderView { rtt, originals, loss, limit, round: self.round(rtt) }
    }

    /// How long after an answer the next can leave: the peer's patience, or the period after which
    /// it asks for everything again.
    fn round(&self, rtt: Rtt) -> Duration {
        if self.peer_times_requests { patience(rtt) } else { rtt.smoothed + half_bound(rtt) }
    }

    /// A copy whose time has come, unless the packet arrived or was given up meanwhile.
    fn choose_copy(&mut self, now: Instant) -> Option<SeqNo> {
        while let Some(seq) = self.copies.take(now) {
            if self.buffer.is_in_flight(seq) {
                self.counts.copies += 1;
                return Some(seq);
            }
        }
        None
    }

    /// When the budget lets a retransmission out; `None` for never.
    fn budget_opens(&self) -> Option<Instant> {
        self.budget.as_ref().map_or(Some(Instant::ORIGIN), RetransmitBudget::next)
    }
}
