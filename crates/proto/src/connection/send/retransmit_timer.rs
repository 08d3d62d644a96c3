//! When the retransmission timeout expires: nothing was acknowledged for long.

use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::SeqNo;

use super::mode::LossRecovery;
use super::unreported_loss::UnreportedLoss;

/// Added to the first retransmission timeout.
const BASE: Duration = Duration::from_millis(10);
/// Added to the time that an answer takes.
const MARGIN: Duration = Duration::from_millis(20);
/// A closed window is probed this long after the peer's last response.
const WINDOW_PROBE: Duration = Duration::from_millis(50);

/// The retransmission timeout, and the range of packets that it made probes.
#[derive(Debug)]
pub(super) struct RetransmitTimer {
    /// The instant when an ACK last acknowledged more, or the first packet after a pause was sent.
    last_progress: Instant,
    last_original: Instant,
    /// The arrival of the last ACK or NAK.
    last_response: Instant,
    /// The instant when the timeout last expired, unless more was acknowledged since.
    last_timeout: Option<Instant>,
    /// The packets that the last timeout queued, until a NAK arrives.
    probes: Option<(SeqNo, SeqNo)>,
    /// The losses of a peer that reports each once.
    unreported: UnreportedLoss,
}

impl RetransmitTimer {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            last_progress: now,
            last_original: now,
            last_response: now,
            last_timeout: None,
            probes: None,
            unreported: UnreportedLoss::default(),
        }
    }

    /// At `now`, all originals before `next_new` were sent, and all before `oldest` acknowledged;
    /// the peer reports each loss once.
    pub(super) fn sent_originals(&mut self, now: Instant, next_new: SeqNo, oldest: SeqNo) {
        self.unreported.sent_originals(now, next_new, oldest);
    }

    /// The instant by which an original was sent; `None` if it was sent since.
    pub(super) fn sent_by(&self, seq: SeqNo) -> Option<Instant> {
        self.unreported.sent_by(seq)
    }

    /// The packets to retransmit, of those in flight from `oldest` to `newest`, if the peer has not
    /// reported them as lost.
    pub(super) fn unreported_run(&mut self, oldest: SeqNo, newest: SeqNo) -> (SeqNo, SeqNo) {
        self.unreported.run(oldest, newest)
    }

    /// There are packets to send after a pause.
    pub(super) const fn restart(&mut self, now: Instant) {
        self.last_progress = now;
    }

    /// An original is sent; `is_alone` if no other packet is in flight.
    pub(super) const fn sent_original(&mut self, now: Instant, is_alone: bool) {
        self.last_original = now;
        if is_alone {
            // All packets before it were acknowledged, or a closed window held it back.
            self.last_progress = now;
        }
    }

    /// An ACK arrived.
    pub(super) const fn handle_ack(&mut self, now: Instant) {
        self.last_response = now;
    }

    /// A NAK arrived: the peer itself reports its losses.
    pub(super) const fn handle_nak(&mut self, now: Instant) {
        self.last_response = now;
        self.probes = None;
    }

    /// More packets were acknowledged.
    pub(super) const fn progressed(&mut self, now: Instant) {
        self.last_progress = now;
        self.last_timeout = None;
    }

    /// The instant at which the timeout expires, with `flight` packets in flight, the oldest of
    /// which was sent by `oldest_sent`, if that is known, and if an answer takes `wait` at most.
    pub(super) fn next(
        &self,
        recovery: LossRecovery,
        flight: u32,
        oldest_sent: Option<Instant>,
        wait: Duration,
    ) -> Option<Instant> {
        let since = match recovery {
            _ if flight == 0 => return None,
            LossRecovery::Never => return None,
            LossRecovery::Timeout => oldest_sent.unwrap_or(self.last_progress),
            LossRecovery::PeriodicNak | LossRecovery::PacketTimers => {
                self.last_progress.max(self.last_original)
            }
        };
        // Counted from the handling of the last timeout, not from its due time, so that it expires
        // once after a late wake-up.
        let since = self.last_timeout.map_or(since + BASE, |last| since.max(last));
        Some(since + wait + MARGIN)
    }

    /// Whether an ACK or a NAK has arrived since the last timeout, or there was none.
    pub(super) fn has_response(&self) -> bool {
        self.last_timeout.is_none_or(|at| self.last_response > at)
    }

    /// The timeout expired. Returns whether it is the first since more was acknowledged.
    pub(super) const fn expire(&mut self, now: Instant) -> bool {
        self.last_timeout.replace(now).is_none()
    }

    /// The packets from `first` to `last` are retransmitted to probe whether the peer responds.
    pub(super) const fn probe(&mut self, first: SeqNo, last: SeqNo) {
        self.probes = Some((first, last));
    }

    /// Whether a packet is retransmitted because of a timeout instead of a NAK.
    pub(super) fn is_probe(&self, seq: SeqNo) -> bool {
        self.probes.is_some_and(|(first, last)| seq.is_within(first, last))
    }

    /// The instant at which a closed window is probed.
    pub(super) fn window_probe(&self) -> Instant {
        self.last_response + WINDOW_PROBE
    }

    pub(super) const fn last_response(&self) -> Instant {
        self.last_response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Instant = Instant::from_millis;

    const WAIT: Duration = Duration::from_millis(100);

    fn next(timer: &RetransmitTimer, recovery: LossRecovery) -> Option<Instant> {
        timer.next(recovery, 1, None, WAIT)
    }

    #[test]
    fn originals_postpone_the_timeout_only_where_the_peer_repeats_naks() {
        let mut timer = RetransmitTimer::new(MS(0));
        timer.sent_original(MS(0), true);
        timer.sent_original(MS(50), false);
        // The wait of 100 ms, 20 ms and the first 10 ms.
        assert_eq!(next(&timer, LossRecovery::Timeout), Some(MS(130)));
        assert_eq!(next(&timer, LossRecovery::PeriodicNak), Some(MS(180)));
        assert_eq!(next(&timer, LossRecovery::PacketTimers), Some(MS(180)));
        assert_eq!(next(&timer, LossRecovery::Never), None);
        assert_eq!(timer.next(LossRecovery::Timeout, 0, None, WAIT), None, "nothing is in flight");
    }

    #[test]
    fn a_timeout_that_was_handled_late_expires_once() {
        let mut timer = RetransmitTimer::new(MS(0));
        assert!(timer.expire(MS(700)));
        assert_eq!(next(&timer, LossRecovery::Timeout), Some(MS(820)));
        assert!(!timer.expire(MS(820)));
        timer.progressed(MS(900));
        assert!(timer.expire(MS(1_030)), "the first since the last progress");
    }

    #[test]
    fn packets_of_a_timeout_are_probes_until_the_peer_sends_a_nak() {
        let mut timer = RetransmitTimer::new(MS(0));
        timer.probe(SeqNo::new(7), SeqNo::new(9));
        assert!(timer.is_probe(SeqNo::new(8)) && !timer.is_probe(SeqNo::new(10)));
        timer.handle_nak(MS(5));
        assert!(!timer.is_probe(SeqNo::new(8)));
    }
}
