//! Loss reports: when the NAKs go out, and what they list.

use std::time::Duration;

use punctual_rtt::Rtt;
use punctual_units::Instant;
use punctual_wire::{LossListBuilder, SeqNo};

use super::ReceiveHalf;
use crate::config::NakTimer;
use crate::filter::Arq;

/// Least time between periodic loss reports (draft section 4.8.2).
const LEAST_NAK_PERIOD: Duration = Duration::from_millis(20);
/// The same for files, in libsrt.
const LEAST_FILE_NAK_PERIOD: Duration = Duration::from_millis(300);
/// How long before a loss is found the last packet came, at most, for the period of loss reports.
const SILENCE_BEFORE_LOSS: Duration = LONGEST_LOOK_AWAY;

/// How long libsrt leaves its timers alone when no packet comes.
const LONGEST_LOOK_AWAY: Duration = Duration::from_millis(10);

/// Loss ranges that wait for the next NAK; beyond this the whole list is sent.
const REPORTS: usize = 1_024;

impl ReceiveHalf {
    /// The loss report that is due, of at most `max_words` words.
    pub(crate) fn take_nak(
        &mut self,
        now: Instant,
        max_words: usize,
        rtt: Rtt,
    ) -> Option<LossListBuilder> {
        let mut list = LossListBuilder::new(max_words);
        let reports = std::mem::take(&mut self.nak_ranges);
        if std::mem::take(&mut self.nak_lists_all) {
            // Losses that may still be reordering wait for their own report.
            let stop = self.reordering.first_fresh();
            for (first, last) in self.buffer.missing().ranges_from(self.buffer.head()) {
                if stop.is_some_and(|stop| !first.is_before(stop)) || !list.push(first, last) {
                    break;
                }
            }
        } else {
            for &(first, last) in &reports {
                self.list_missing(first, last, &mut list);
            }
        }
        if list.is_empty() {
            return None;
        }
        self.counts.naks_sent += 1;
        self.repeat(now, &list, &reports, rtt);
        Some(list)
    }

    /// The copy of a loss report that is due, and when the report was made: it is the same datagram
    /// once more.
    pub(crate) fn take_nak_copy(&mut self, now: Instant) -> Option<(Instant, LossListBuilder)> {
        let copy = self.nak_timers.as_mut()?.take_copy(now)?;
        self.counts.naks_sent += 1;
        Some(copy)
    }

    /// Whether the copy of a loss report is due.
    pub(crate) fn owes_nak_copy(&self, now: Instant) -> bool {
        let next = self.nak_timers.as_ref().and_then(|nak_timers| nak_timers.next_copy());
        next.is_some_and(|at| at <= now)
    }

    /// When the periodic loss report is sent, if no packet brings it about before.
    pub(crate) fn next_nak(&self, now: Instant, rtt: Rtt) -> Option<Instant> {
        if let Some(nak_timers) = &self.nak_timers {
            return nak_timers.next(now, rtt);
        }
        match self.nak_timer {
            NakTimer::Exact => self.next_nak,
            NakTimer::WithPackets => self.next_nak.map(|at| at + LONGEST_LOOK_AWAY),
        }
    }

    /// A packet of any kind came in, and was taken in. Whether it brings the loss report about.
    pub(crate) fn look_at_nak_timer(&mut self, now: Instant, rtt: Rtt) -> bool {
        let due =
            self.nak_timer == NakTimer::WithPackets && self.next_nak.is_some_and(|at| at < now);
        if due {
            self.repeat_nak(now, rtt);
        }
        due
    }

    /// The periodic loss report is due.
    pub(crate) fn repeat_nak(&mut self, now: Instant, rtt: Rtt) {
        if self.nak_timers.is_some() {
            self.ask_due(now, rtt);
            return;
        }
        self.next_nak = None;
        if !self.buffer.missing().is_empty() {
            self.nak_lists_all = true;
            self.arm_nak(now, rtt);
        }
    }

    /// When a loss that may have been reordering is to be reported, or what came elsewhere is to be
    /// believed.
    pub(crate) fn next_ripe(&self) -> Option<Instant> {
        let elsewhere = self.elsewhere.as_ref().and_then(|elsewhere| elsewhere.next());
        self.reordering.next_ripe().into_iter().chain(elsewhere).min()
    }

    pub(crate) fn report_ripe_losses(&mut self, now: Instant, rtt: Rtt) {
        while let Some((first, last)) = self.reordering.take_ripe(now) {
            self.report_loss(now, first, last, rtt);
        }
        if self.elsewhere.as_ref().is_some_and(|it| it.next().is_some_and(|at| at <= now)) {
            self.look_elsewhere(now, rtt);
        }
    }

    /// The round-trip time was measured: a loss report that waits longer than it says comes sooner.
    /// The initial estimate would let the first losses wait until it is too late for them.
    pub(crate) fn hurry_nak(&mut self, now: Instant, rtt: Rtt) {
        let period = self.nak_period(rtt);
        self.next_nak = self.next_nak.map(|at| at.min(now + period));
    }

    /// Packets from `first` to `last` are missing behind those that came.
    pub(super) fn handle_gap(&mut self, now: Instant, first: SeqNo, last: SeqNo, rtt: Rtt) {
        if self.arq != Arq::Always {
            return;
        }
        if !self.reordering.hold(now, first, last, periodic_nak_interval(rtt)) {
            self.report_loss(now, first, last, rtt);
        }
        if self.next_nak.is_none() {
            self.arm_nak(self.heard_before.max(now - SILENCE_BEFORE_LOSS), rtt);
        }
    }

    /// Arms the periodic loss report. Its period counts from when nothing was missing yet, as
    /// libsrt's does: the first repeat comes before the answer to the first report, where it can
    /// replace a report that was lost. Were the loss's detection the start, a round trip of 20 ms
    /// would leave it to chance which is first.
    fn arm_nak(&mut self, from: Instant, rtt: Rtt) {
        let periodic = self.periodic_nak && self.nak_timers.is_none();
        self.next_nak = periodic.then(|| from + self.nak_period(rtt));
    }

    /// Asks for the losses from `first` to `last` in the next report, or when their turn comes.
    pub(super) fn report_loss(&mut self, now: Instant, first: SeqNo, last: SeqNo, rtt: Rtt) {
        let deadline = self.given_up(last);
        if let Some(nak_timers) = &mut self.nak_timers
            && !nak_timers.found(now, first, last, deadline, rtt)
        {
            return;
        }
        self.list(first, last);
    }

    /// Lists the losses from `first` to `last` in the next report.
    pub(super) fn list(&mut self, first: SeqNo, last: SeqNo) {
        if self.nak_ranges.len() < REPORTS {
            self.nak_ranges.push((first, last));
        } else {
            // What is reported on request only must not draw everything else with it.
            self.nak_lists_all = self.arq == Arq::Always;
        }
    }

    /// Lists what is still missing from `first` to `last`.
    fn list_missing(&self, first: SeqNo, last: SeqNo, list: &mut LossListBuilder) {
        let first = if first.is_before(self.buffer.head()) { self.buffer.head() } else { first };
        for (start, end) in self.buffer.missing().ranges_from(first) {
            if start.is_after(last) || start.is_before(first) {
                return;
            }
            let end = if end.is_after(last) { last } else { end };
            if !list.push(start, end) {
                return;
            }
        }
    }

    /// Time between periodic loss reports (draft section 4.8.2; libsrt for files).
    fn nak_period(&self, rtt: Rtt) -> Duration {
        match self.file {
            Some(_) => rtt.bound().max(LEAST_FILE_NAK_PERIOD),
            None => periodic_nak_interval(rtt),
        }
    }
}

/// Half the round-trip bound, after which live losses are reported again.
pub(crate) fn periodic_nak_interval(rtt: Rtt) -> Duration {
    (rtt.bound() / 2).max(LEAST_NAK_PERIOD)
}
