//! The timer that finds out that nothing was acknowledged for long.

use std::time::Duration;

use punctual_rtt::Rtt;
use punctual_units::Instant;
use punctual_wire::SeqNo;

use super::mode::LossRecovery;

/// Added to the first retransmission timeout.
const BASE: Duration = Duration::from_millis(10);
/// Added to each round-trip bound in a timeout.
const MARGIN: Duration = Duration::from_millis(20);
/// A closed window is probed this long after the peer's last response.
const WINDOW_PROBE: Duration = Duration::from_millis(50);

/// The retransmission timeout, and the range of packets that it made probes.
#[derive(Debug)]
pub(super) struct RetransmitTimer {
    /// When an ACK last acknowledged more, or the first packet after a pause was sent.
    last_progress: Instant,
    last_original: Instant,
    /// When an ACK or a NAK last came.
    last_response: Instant,
    /// When the timeout last expired without progress since.
    last_timeout: Option<Instant>,
    /// The packets that the last timeout queued, until the peer sends a NAK.
    probes: Option<(SeqNo, SeqNo)>,
}

impl RetransmitTimer {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            last_progress: now,
            last_original: now,
            last_response: now,
            last_timeout: None,
            probes: None,
        }
    }

    /// Packets are to be sent after none were.
    pub(super) const fn restart(&mut self, now: Instant) {
        self.last_progress = now;
    }

    /// An original is sent; `is_alone` if no other packet is in flight.
    pub(super) const fn sent_original(&mut self, now: Instant, is_alone: bool) {
        self.last_original = now;
        if is_alone {
            // The first after all before it was acknowledged, or held back by a closed window.
            self.last_progress = now;
        }
    }

    /// An ACK came in.
    pub(super) const fn handle_ack(&mut self, now: Instant) {
        self.last_response = now;
    }

    /// A NAK came in: the peer says itself what is missing.
    pub(super) const fn handle_nak(&mut self, now: Instant) {
        self.last_response = now;
        self.probes = None;
    }

    /// More packets were acknowledged.
    pub(super) const fn progressed(&mut self, now: Instant) {
        self.last_progress = now;
        self.last_timeout = None;
    }

    /// When the timeout expires; `flight` packets are in flight.
    pub(super) fn next(&self, recovery: LossRecovery, flight: u32, rtt: Rtt) -> Option<Instant> {
        let since = match recovery {
            _ if flight == 0 => return None,
            LossRecovery::Never => return None,
            LossRecovery::Timeout => self.last_progress,
            LossRecovery::PeriodicNak | LossRecovery::PacketTimers => {
                self.last_progress.max(self.last_original)
            }
        };
        // From when the last timeout was handled, not from when it was due: after a late wake-up
        // it expires once.
        let since = self.last_timeout.map_or(since + BASE, |last| since.max(last));
        Some(since + rtt.bound() + MARGIN)
    }

    /// The timeout expired; whether it is the first since the last progress.
    pub(super) const fn expire(&mut self, now: Instant) -> bool {
        self.last_timeout.replace(now).is_none()
    }

    /// The packets from `first` to `last` are sent again to ask whether the peer is there.
    pub(super) const fn probe(&mut self, first: SeqNo, last: SeqNo) {
        self.probes = Some((first, last));
    }

    /// Whether a packet is sent again because of a timeout, and not of a NAK.
    pub(super) fn is_probe(&self, seq: SeqNo) -> bool {
        self.probes.is_some_and(|(first, last)| seq.is_within(first, last))
    }

    /// When a closed window is probed.
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

    fn rtt() -> Rtt {
        Rtt { smoothed: Duration::from_millis(80), variance: Duration::from_millis(5) }
    }

    fn next(timer: &RetransmitTimer, recovery: LossRecovery) -> Option<Instant> {
        timer.next(recovery, 1, rtt())
    }

    #[test]
    fn originals_postpone_the_timeout_only_where_the_peer_repeats_naks() {
        let mut timer = RetransmitTimer::new(MS(0));
        timer.sent_original(MS(0), true);
        timer.sent_original(MS(50), false);
        // 80 + 4 x 5 ms, 20 ms and the first 10 ms.
        assert_eq!(next(&timer, LossRecovery::Timeout), Some(MS(130)));
        assert_eq!(next(&timer, LossRecovery::PeriodicNak), Some(MS(180)));
        assert_eq!(next(&timer, LossRecovery::PacketTimers), Some(MS(180)));
        assert_eq!(next(&timer, LossRecovery::Never), None);
        assert_eq!(timer.next(LossRecovery::Timeout, 0, rtt()), None, "nothing is in flight");
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
    fn what_a_timeout_queued_is_a_probe_until_the_peer_sends_a_nak() {
        let mut timer = RetransmitTimer::new(MS(0));
        timer.probe(SeqNo::new(7), SeqNo::new(9));
        assert!(timer.is_probe(SeqNo::new(8)) && !timer.is_probe(SeqNo::new(10)));
        timer.handle_nak(MS(5));
        assert!(!timer.is_probe(SeqNo::new(8)));
    }
}
