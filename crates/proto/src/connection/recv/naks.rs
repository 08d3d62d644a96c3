//! When NAKs go out, and which losses they list.

use std::time::Duration;

use punctual_rtt::Rtt;
use punctual_units::Instant;
use punctual_wire::{LossListBuilder, SeqNo};

use super::ReceiveHalf;
use crate::config::NakTimer;
use crate::filter::Arq;

/// Least time between periodic NAKs (draft section 4.8.2).
const LEAST_NAK_PERIOD: Duration = Duration::from_millis(20);
/// Least time between periodic NAKs of files (libsrt).
const LEAST_FILE_NAK_PERIOD: Duration = Duration::from_millis(300);
/// The period of NAKs begins with the last packet before the loss, but no earlier than this before
/// the loss is detected.
const SILENCE_BEFORE_LOSS: Duration = LONGEST_LOOK_AWAY;

/// How long libsrt leaves its timers alone when no packet comes.
const LONGEST_LOOK_AWAY: Duration = Duration::from_millis(10);

/// Loss ranges that wait for the next NAK, at most; if there are more, it lists all losses.
const REPORTS: usize = 1_024;

impl ReceiveHalf {
    /// The NAK that is due, of at most `max_words` words.
    pub(crate) fn take_nak(
        &mut self,
        now: Instant,
        max_words: usize,
        rtt: Rtt,
    ) -> Option<LossListBuilder> {
        let mut list = LossListBuilder::new(max_words);
        let ranges = std::mem::take(&mut self.nak_ranges);
        if std::mem::take(&mut self.nak_lists_all) {
            // Losses that may still be reordering wait for their own NAK.
            let stop = self.reordering.first_fresh();
            for (first, last) in self.buffer.missing().ranges_from(self.buffer.head()) {
                if stop.is_some_and(|stop| !first.is_before(stop)) || !list.push(first, last) {
                    break;
                }
            }
        } else {
            for &(first, last) in &ranges {
                self.list_missing(first, last, &mut list);
            }
        }
        if list.is_empty() {
            return None;
        }
        self.counts.naks_sent += 1;
        self.repeat(now, &list, &ranges, rtt);
        Some(list)
    }

    /// The copy of a NAK that is due, and when the NAK was sent: the copy is the same datagram.
    pub(crate) fn take_nak_copy(&mut self, now: Instant) -> Option<(Instant, LossListBuilder)> {
        let copy = self.nak_timers.as_mut()?.take_copy(now)?;
        self.counts.naks_sent += 1;
        Some(copy)
    }

    /// Whether the copy of a NAK is due.
    pub(crate) fn owes_nak_copy(&self, now: Instant) -> bool {
        let next = self.nak_timers.as_ref().and_then(|nak_timers| nak_timers.next_copy());
        next.is_some_and(|at| at <= now)
    }

    /// When the next NAK is due by a timer, if no packet brings it about before.
    pub(crate) fn next_nak(&self, now: Instant, rtt: Rtt) -> Option<Instant> {
        if let Some(nak_timers) = &self.nak_timers {
            return nak_timers.next(now, rtt);
        }
        match self.nak_timer {
            NakTimer::Exact => self.next_nak,
            NakTimer::WithPackets => self.next_nak.map(|at| at + LONGEST_LOOK_AWAY),
        }
    }

    /// A packet of any kind came in, and was processed. Returns whether it brings a periodic NAK
    /// about.
    pub(crate) fn look_at_nak_timer(&mut self, now: Instant, rtt: Rtt) -> bool {
        let due =
            self.nak_timer == NakTimer::WithPackets && self.next_nak.is_some_and(|at| at < now);
        if due {
            self.repeat_nak(now, rtt);
        }
        due
    }

    /// The NAK timer ran out.
    pub(crate) fn repeat_nak(&mut self, now: Instant, rtt: Rtt) {
        if self.nak_timers.is_some() {
            self.send_due_naks(now, rtt);
            return;
        }
        self.next_nak = None;
        if !self.buffer.missing().is_empty() {
            self.nak_lists_all = true;
            self.arm_nak(now, rtt);
        }
    }

    /// When a loss that may have been reordering is to be reported, or packets far from the stream
    /// are to be believed.
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

    /// The round-trip time was measured: a periodic NAK that is due later than the new interval
    /// allows comes sooner. By the initial estimate the first losses would wait until it is too
    /// late for them.
    pub(crate) fn hurry_nak(&mut self, now: Instant, rtt: Rtt) {
        let period = self.nak_period(rtt);
        self.next_nak = self.next_nak.map(|at| at.min(now + period));
    }

    /// The packets from `first` to `last` are missing: a later one came.
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

    /// Starts the timer of the periodic NAK. Its interval counts from when no packet was missing
    /// yet, as libsrt's does: the first repetition comes before the retransmission, and can replace
    /// a NAK that was lost. If it counted from the detection of the loss, a round trip of 20 ms
    /// would leave it to chance which comes first.
    fn arm_nak(&mut self, from: Instant, rtt: Rtt) {
        let periodic = self.periodic_nak && self.nak_timers.is_none();
        self.next_nak = periodic.then(|| from + self.nak_period(rtt));
    }

    /// Lists the losses from `first` to `last` in the next NAK, or starts their timer.
    pub(super) fn report_loss(&mut self, now: Instant, first: SeqNo, last: SeqNo, rtt: Rtt) {
        let deadline = self.given_up(last);
        if let Some(nak_timers) = &mut self.nak_timers
            && !nak_timers.found(now, first, last, deadline, rtt)
        {
            return;
        }
        self.list(first, last);
    }

    /// Lists the losses from `first` to `last` in the next NAK.
    pub(super) fn list(&mut self, first: SeqNo, last: SeqNo) {
        if self.nak_ranges.len() < REPORTS {
            self.nak_ranges.push((first, last));
        } else {
            // Where the filter asks for single losses, others must not be listed.
            self.nak_lists_all = self.arq == Arq::Always;
        }
    }

    /// Adds the packets to `list` that are still missing from `first` to `last`.
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

    /// Time between periodic NAKs (draft section 4.8.2; libsrt for files).
    fn nak_period(&self, rtt: Rtt) -> Duration {
        if self.delivery.is_file() {
            rtt.bound().max(LEAST_FILE_NAK_PERIOD)
        } else {
            periodic_nak_interval(rtt)
        }
    }
}

/// The time between periodic NAKs of live streams: half of RTT + 4 RTTVar, 20 ms at least (draft
/// section 4.8.2).
pub(crate) fn periodic_nak_interval(rtt: Rtt) -> Duration {
    (rtt.bound() / 2).max(LEAST_NAK_PERIOD)
}
