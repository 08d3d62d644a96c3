//! The schedule of NAKs, and the losses that they list.

use std::sync::Arc;
use std::time::Duration;

use punctual_rtt::Rtt;
use punctual_units::Instant;
use punctual_wire::{LossListBuilder, SeqNo};

use super::missing::Missing;
use super::nak_policy::PerPacketNakTimers;
use super::nak_timers::NakTimers;
use super::reorder_tolerance::ReorderTolerance;
use crate::config::{Config, NakAlgorithm, NakTimer};
use crate::filter::Arq;
use crate::handshake::{NakStyle, Negotiated};
use crate::policy::nak::SentNak;
use crate::report_times::periodic_nak_interval;
use crate::statistics::Statistics;
use crate::transmission::Transmission;

/// Least time between periodic NAKs of files (libsrt).
const LEAST_FILE_NAK_PERIOD: Duration = Duration::from_millis(300);
/// The period of NAKs begins with the last packet before the loss, but no earlier than this before
/// the loss is detected.
const SILENCE_BEFORE_LOSS: Duration = LONGEST_LOOK_AWAY;
/// The longest time for which libsrt does not check its timers while no packet arrives.
const LONGEST_LOOK_AWAY: Duration = Duration::from_millis(10);
/// Loss ranges that wait for the next NAK, at most; if there are more, it lists all losses.
const WAITING_RANGES: usize = 1_024;

/// The losses that the next NAK reports, and the timers of NAKs.
#[derive(Debug)]
pub(super) struct NakScheduler {
    repetition: NakRepetition,
    /// The losses that are reported beside a packet filter; without one, all of them.
    arq: Arq,
    is_file: bool,
    reordering: ReorderTolerance,
    /// The ranges that the next NAK lists as far as they are still missing.
    ranges: Vec<(SeqNo, SeqNo)>,
    /// Whether the next NAK lists all that is missing.
    lists_all: bool,
    /// When the packet before the present one arrived.
    heard_before: Instant,
    sent: u64,
}

/// How the receiver repeats its NAKs.
#[derive(Debug)]
enum NakRepetition {
    /// Not at all: the sender retransmits after a timeout.
    Never,
    /// All losses together, in a period.
    Periodic { timer: NakTimer, next: Option<Instant> },
    /// A timer for each missing packet.
    PacketTimers(Box<NakTimers>),
}

impl NakScheduler {
    pub(super) fn new(config: &Config, negotiated: &Negotiated, now: Instant) -> Self {
        let repetition = match nak_timers(config, negotiated) {
            Some(timers) => NakRepetition::PacketTimers(Box::new(timers)),
            None if config.periodic_nak() => {
                NakRepetition::Periodic { timer: config.nak_timer(), next: None }
            }
            None => NakRepetition::Never,
        };
        Self {
            repetition,
            arq: negotiated.filter.map_or(Arq::Always, |fec| fec.arq()),
            is_file: config.transmission() != Transmission::Live,
            reordering: ReorderTolerance::new(reorder_tolerance(config, negotiated)),
            ranges: Vec::new(),
            lists_all: false,
            heard_before: now,
            sent: 0,
        }
    }

    /// Sets the tolerance of reordered packets by these options.
    pub(super) fn set_reorder_tolerance(&mut self, config: &Config, negotiated: &Negotiated) {
        self.reordering.set_max(reorder_tolerance(config, negotiated));
    }

    pub(super) const fn arq(&self) -> Arq {
        self.arq
    }

    /// A packet arrives now; the one before it, of any kind, arrived at `heard_before`.
    pub(super) const fn note_arrival(&mut self, heard_before: Instant) {
        self.heard_before = heard_before;
    }

    /// An original arrived right after the newest packet. Returns whether the wait for a possibly
    /// reordered packet has ended, so that a loss has to be reported.
    #[inline(always)]
    pub(super) fn arrived_in_order(&mut self) -> bool {
        self.reordering.arrived_in_order();
        self.reordering.next_ripe().is_some()
    }

    /// A retransmission of `seq` arrived that was missing.
    pub(super) fn retransmission_arrived(&mut self, now: Instant, seq: SeqNo, rtt: Rtt) {
        self.reordering.forget(seq);
        if let NakRepetition::PacketTimers(timers) = &mut self.repetition {
            timers.came(now, seq, rtt);
        }
    }

    /// The original of `seq` arrived that was missing: `late_by` packets had overtaken it.
    pub(super) fn overtaken_arrived(&mut self, now: Instant, seq: SeqNo, late_by: u32) {
        self.reordering.arrived_late(seq, late_by);
        if let NakRepetition::PacketTimers(timers) = &mut self.repetition {
            timers.overtaken(now, seq);
        }
    }

    /// Nothing is missing any more.
    pub(super) const fn stop_period(&mut self) {
        if let NakRepetition::Periodic { next, .. } = &mut self.repetition {
            *next = None;
        }
    }

    /// Forgets all losses: the stream has jumped.
    pub(super) fn clear(&mut self) {
        self.ranges.clear();
        self.lists_all = false;
        self.stop_period();
    }

    /// Whether a NAK waits to be sent, apart from copies.
    pub(super) const fn is_due(&self) -> bool {
        self.lists_all || !self.ranges.is_empty()
    }

    /// The NAK that is due, of at most `max_words` words.
    pub(super) fn take(
        &mut self,
        now: Instant,
        max_words: usize,
        missing: Missing<'_>,
        rtt: Rtt,
    ) -> Option<LossListBuilder> {
        let mut list = LossListBuilder::new(max_words);
        let ranges = std::mem::take(&mut self.ranges);
        if std::mem::take(&mut self.lists_all) {
            // Losses that may be reordered packets wait for a NAK of their own.
            missing.list_all(self.reordering.first_fresh(), &mut list);
        } else {
            for &(first, last) in &ranges {
                missing.list(first, last, &mut list);
            }
        }
        if list.is_empty() {
            return None;
        }
        self.sent += 1;
        if let NakRepetition::PacketTimers(timers) = &mut self.repetition {
            let later = now + timers.view(rtt).retransmission_timeout();
            let last_chances = ranges
                .iter()
                .filter(|&&(_, last)| !missing.can_be_in_time(later, last, rtt))
                .filter_map(|&(_, last)| missing.needed_by(last));
            let nak = SentNak { at: now, last_chance: last_chances.min() };
            timers.sent(&list, &nak, rtt);
        }
        Some(list)
    }

    /// The copy of a NAK that is due, and when the NAK was sent: the copy is the same datagram.
    pub(super) fn take_copy(&mut self, now: Instant) -> Option<(Instant, Arc<LossListBuilder>)> {
        let NakRepetition::PacketTimers(timers) = &mut self.repetition else { return None };
        let copy = timers.take_copy(now)?;
        self.sent += 1;
        Some(copy)
    }

    /// Whether the copy of a NAK is due.
    pub(super) fn copy_is_due(&self, now: Instant) -> bool {
        match &self.repetition {
            NakRepetition::PacketTimers(timers) => timers.next_copy().is_some_and(|at| at <= now),
            NakRepetition::Never | NakRepetition::Periodic { .. } => false,
        }
    }

    /// The instant of the next NAK by a timer, unless a packet triggers it earlier.
    pub(super) fn next(&self, now: Instant, rtt: Rtt) -> Option<Instant> {
        match &self.repetition {
            NakRepetition::Never => None,
            NakRepetition::Periodic { timer: NakTimer::Exact, next } => *next,
            NakRepetition::Periodic { timer: NakTimer::WithPackets, next } => {
                next.map(|at| at + LONGEST_LOOK_AWAY)
            }
            NakRepetition::PacketTimers(timers) => timers.next(now, rtt),
        }
    }

    /// Whether a packet that arrives at `now` triggers a periodic NAK.
    pub(super) fn is_triggered(&self, now: Instant) -> bool {
        match self.repetition {
            NakRepetition::Periodic { timer: NakTimer::WithPackets, next } => {
                next.is_some_and(|at| at < now)
            }
            NakRepetition::Never
            | NakRepetition::Periodic { .. }
            | NakRepetition::PacketTimers(_) => false,
        }
    }

    /// The NAK timer expired.
    pub(super) fn repeat(&mut self, now: Instant, missing: Missing<'_>, rtt: Rtt) {
        let period = self.period(rtt);
        match &mut self.repetition {
            NakRepetition::PacketTimers(timers) => {
                for (first, last) in timers.take_due_naks(now, missing, rtt) {
                    self.list(first, last);
                }
            }
            NakRepetition::Periodic { next, .. } => {
                let is_missing = !missing.is_empty();
                *next = is_missing.then(|| now + period);
                self.lists_all |= is_missing;
            }
            NakRepetition::Never => self.lists_all |= !missing.is_empty(),
        }
    }

    /// The instant at which the wait for a possibly reordered packet ends.
    pub(super) fn next_ripe(&self) -> Option<Instant> {
        self.reordering.next_ripe()
    }

    /// Reports the losses whose wait for reordered packets has ended.
    pub(super) fn report_ripe(&mut self, now: Instant, missing: Missing<'_>, rtt: Rtt) {
        while let Some((first, last)) = self.reordering.take_ripe(now) {
            self.report(now, (first, last), missing, rtt);
        }
    }

    /// The round-trip time was measured: a periodic NAK that is due later than the new interval is
    /// moved forward. By the initial estimate the first losses would be reported too late.
    pub(super) fn hurry(&mut self, now: Instant, rtt: Rtt) {
        let latest = now + self.period(rtt);
        if let NakRepetition::Periodic { next: Some(at), .. } = &mut self.repetition {
            *at = latest.min(*at);
        }
    }

    /// The packets of `gap` are missing: a later one arrived.
    pub(super) fn handle_gap(
        &mut self,
        now: Instant,
        gap: (SeqNo, SeqNo),
        missing: Missing<'_>,
        rtt: Rtt,
    ) {
        if self.arq != Arq::Always {
            return;
        }
        if !self.reordering.hold(now, gap.0, gap.1, periodic_nak_interval(rtt)) {
            self.report(now, gap, missing, rtt);
        }
        // The interval begins when no packet was missing yet, as libsrt's does: the first
        // repetition is sent before the retransmission can arrive, and can replace a lost NAK. If
        // the interval began at the detection of the loss, with a round trip of 20 ms either could
        // be first.
        let period = self.period(rtt);
        if let NakRepetition::Periodic { next: next @ None, .. } = &mut self.repetition {
            *next = Some(self.heard_before.max(now - SILENCE_BEFORE_LOSS) + period);
        }
    }

    /// Lists the losses of `range` in the next NAK, or starts their timer.
    pub(super) fn report(
        &mut self,
        now: Instant,
        (first, last): (SeqNo, SeqNo),
        missing: Missing<'_>,
        rtt: Rtt,
    ) {
        if let NakRepetition::PacketTimers(timers) = &mut self.repetition
            && !timers.found(now, first, last, missing.needed_by(last), rtt)
        {
            return;
        }
        self.list(first, last);
    }

    pub(super) fn fill_statistics(&self, statistics: &mut Statistics) {
        if let NakRepetition::PacketTimers(timers) = &self.repetition {
            timers.fill(statistics);
        }
        statistics.naks_sent = self.sent;
        statistics.reorder_distance = self.reordering.distance();
        statistics.reorder_tolerance = self.reordering.tolerance();
    }

    fn list(&mut self, first: SeqNo, last: SeqNo) {
        if self.ranges.len() < WAITING_RANGES {
            self.ranges.push((first, last));
        } else {
            // If the filter reports single losses, others must not be listed.
            self.lists_all = self.arq == Arq::Always;
        }
    }

    /// Time between periodic NAKs (draft section 4.8.2; libsrt for files).
    fn period(&self, rtt: Rtt) -> Duration {
        if self.is_file {
            rtt.bound().max(LEAST_FILE_NAK_PERIOD)
        } else {
            periodic_nak_interval(rtt)
        }
    }
}

/// The largest tolerance of reordered packets. If the peer does not mark retransmissions, late
/// originals cannot be distinguished from them, and the tolerance is zero.
const fn reorder_tolerance(config: &Config, negotiated: &Negotiated) -> u32 {
    if negotiated.peer.retransmit_flag { config.reorder_tolerance() } else { 0 }
}

/// The timers of single missing packets, if both ends agreed on them.
fn nak_timers(config: &Config, negotiated: &Negotiated) -> Option<NakTimers> {
    let copies_allowed = match negotiated.nak_style {
        NakStyle::Periodic => return None,
        NakStyle::PerPacket => false,
        NakStyle::PerPacketCopied => true,
    };
    let policy = match config.nak_algorithm() {
        NakAlgorithm::Standard => Box::<PerPacketNakTimers>::default(),
        NakAlgorithm::Custom(factory) => factory.make(),
    };
    Some(NakTimers::new(policy, negotiated.fixed.receive_isn, copies_allowed))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use punctual_wire::{MsgNo, Timestamp};

    use super::super::buffer::{MessagePart, ReceiveBuffer, Stored};
    use super::super::timing::Timing;
    use super::super::tsbpd::Tsbpd;
    use super::*;

    const MS: fn(u64) -> Instant = Instant::from_millis;
    const RTT: Rtt =
        Rtt { smoothed: Duration::from_millis(40), variance: Duration::from_millis(5) };

    fn seq(i: u32) -> SeqNo {
        SeqNo::new(1_000 + i)
    }

    fn scheduler(repetition: NakRepetition) -> NakScheduler {
        NakScheduler {
            repetition,
            arq: Arq::Always,
            is_file: false,
            reordering: ReorderTolerance::new(0),
            ranges: Vec::new(),
            lists_all: false,
            heard_before: MS(95),
            sent: 0,
        }
    }

    fn periodic(timer: NakTimer) -> NakScheduler {
        scheduler(NakRepetition::Periodic { timer, next: None })
    }

    /// A buffer to which packets 0 and 4 came at 100 ms, with a latency of 120 ms.
    fn gap_of_three() -> (ReceiveBuffer, Timing) {
        let mut buffer = ReceiveBuffer::new(seq(0), 100);
        let tsbpd = Tsbpd::new(MS(0), Timestamp::from_micros(0));
        for i in [0, 4] {
            let time = tsbpd.peer_time(MS(100), Timestamp::from_micros(100_000));
            let place = MessagePart::of_live(MsgNo::FIRST);
            buffer.insert(seq(i), Stored { payload: Bytes::new(), time, place });
        }
        (buffer, Timing::of(tsbpd, Duration::from_millis(120)))
    }

    fn ranges(list: Option<LossListBuilder>) -> Vec<(SeqNo, SeqNo)> {
        list.map(|list| list.as_list().ranges().collect()).unwrap_or_default()
    }

    #[test]
    fn a_gap_is_reported_at_once_and_again_each_period() {
        let (buffer, timing) = gap_of_three();
        let missing = Missing::new(&buffer, &timing);
        let mut naks = periodic(NakTimer::Exact);
        naks.handle_gap(MS(100), (seq(1), seq(3)), missing, RTT);
        assert!(naks.is_due());
        assert_eq!(ranges(naks.take(MS(100), 99, missing, RTT)), [(seq(1), seq(3))]);
        // Half of 40 + 4 x 5 ms after the packet before the gap.
        assert_eq!(naks.next(MS(100), RTT), Some(MS(125)));
        naks.repeat(MS(125), missing, RTT);
        assert_eq!(ranges(naks.take(MS(125), 99, missing, RTT)), [(seq(1), seq(3))]);
        assert_eq!(naks.next(MS(125), RTT), Some(MS(155)));
        naks.stop_period();
        assert_eq!((naks.next(MS(126), RTT), naks.is_due()), (None, false));
    }

    #[test]
    fn a_period_that_waits_for_packets_ends_with_one_or_10_ms_later() {
        let (buffer, timing) = gap_of_three();
        let missing = Missing::new(&buffer, &timing);
        let mut naks = periodic(NakTimer::WithPackets);
        naks.handle_gap(MS(100), (seq(1), seq(3)), missing, RTT);
        assert!(!naks.is_triggered(MS(125)) && naks.is_triggered(MS(126)));
        assert_eq!(naks.next(MS(100), RTT), Some(MS(135)));
    }

    #[test]
    fn without_repetition_a_loss_is_reported_once() {
        let (buffer, timing) = gap_of_three();
        let missing = Missing::new(&buffer, &timing);
        let mut naks = scheduler(NakRepetition::Never);
        naks.handle_gap(MS(100), (seq(1), seq(3)), missing, RTT);
        assert_eq!(ranges(naks.take(MS(100), 99, missing, RTT)), [(seq(1), seq(3))]);
        assert_eq!((naks.next(MS(100), RTT), naks.is_due()), (None, false));
    }
}
