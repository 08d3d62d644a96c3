use std::time::Duration;

use punctual_units::Instant;

use crate::pace::Pace;
use crate::wake_up::WakeUp;

/// The longest delay that the pacer makes up for. A driver that wakes up late loses no rate; after
/// a longer stall there is no burst.
const CREDIT: Duration = Duration::from_millis(10);

/// Spaces originals and retransmissions at the pace that congestion control sets.
#[derive(Debug)]
pub(crate) struct Pacer {
    pace: Pace,
    next: Instant,
    /// The number of packets that may be sent at once after a pause; `None` outside a pause.
    pause: Option<u32>,
    /// The packet after a sequence number divisible by 16 follows at once: the probe pair.
    probe: bool,
}

impl Pacer {
    pub(crate) const fn new(pace: Pace) -> Self {
        Self { pace, next: Instant::ORIGIN, pause: Some(1), probe: false }
    }

    pub(crate) const fn set_pace(&mut self, pace: Pace) {
        self.pace = pace;
    }

    /// Whether a packet may be sent at `now`.
    pub(crate) fn allows(&self, now: Instant) -> bool {
        self.next().is_due(now)
    }

    /// The instant at which the next packet may be sent.
    pub(crate) fn next(&self) -> WakeUp {
        if self.pause.is_some() || self.probe {
            WakeUp::Now
        } else {
            WakeUp::At(self.next - self.pace.quantum())
        }
    }

    /// Nothing can be sent now: the pacer does not make up for the time until the next packet. Then
    /// `burst` packets may be sent at once, at least one.
    pub(crate) const fn rest(&mut self, burst: u32) {
        self.pause = Some(burst);
        self.probe = false;
    }

    /// A packet of `bytes`, including headers, is sent at `now`; `starts_probe` if the next one
    /// follows at once.
    pub(crate) fn sent(&mut self, now: Instant, bytes: usize, starts_probe: bool) {
        let wait = self.pace.after(bytes);
        let earliest = match self.pause.take() {
            Some(burst) => now - wait.saturating_mul(burst.saturating_sub(1)),
            None => now - CREDIT,
        };
        self.next = self.next.max(earliest) + wait;
        self.probe = starts_probe;
    }
}

#[cfg(test)]
mod tests {
    use punctual_units::Bitrate;

    use super::*;
    use crate::pace::QUANTUM;

    #[test]
    fn keeps_the_rate_and_catches_up_after_a_late_wake_up() {
        let mut pacer = Pacer::new(Pace::Packet(Duration::from_millis(1)));
        let start = Instant::from_millis(100);
        assert!(pacer.allows(start));
        pacer.sent(start, 1_360, false);
        assert!(!pacer.allows(start));
        let late = Instant::from_millis(105);
        let mut sent = 0;
        while pacer.allows(late) {
            pacer.sent(late, 1_360, false);
            sent += 1;
        }
        assert_eq!(sent, 5, "1 to 5 ms after the first");
    }

    #[test]
    fn packets_due_within_the_quantum_leave_together() {
        let mut pacer = Pacer::new(Pace::Packet(Duration::from_micros(10)));
        let start = Instant::from_millis(100);
        let mut burst = |now| {
            let mut sent = 0;
            while pacer.allows(now) {
                pacer.sent(now, 1_360, false);
                sent += 1;
            }
            sent
        };
        assert_eq!(burst(start), 11);
        assert_eq!(burst(start + Duration::from_micros(5)), 0);
        assert_eq!(burst(start + QUANTUM), 10, "the rate is kept");
    }

    #[test]
    fn an_idle_pacer_earns_no_burst() {
        let mut pacer = Pacer::new(Pace::Packet(Duration::from_millis(1)));
        pacer.sent(Instant::from_millis(100), 1_360, false);
        pacer.rest(1);
        let later = Instant::from_millis(500);
        assert!(pacer.allows(later));
        pacer.sent(later, 1_360, false);
        assert!(!pacer.allows(later));
    }

    #[test]
    fn after_a_pause_a_permitted_burst_is_sent_at_once() {
        let mut pacer = Pacer::new(Pace::Packet(Duration::from_millis(1)));
        pacer.sent(Instant::from_millis(100), 1_360, false);
        pacer.rest(10);
        let later = Instant::from_millis(500);
        let mut sent = 0;
        while pacer.allows(later) {
            pacer.sent(later, 1_360, false);
            sent += 1;
        }
        assert_eq!(sent, 10);
    }

    #[test]
    fn a_probe_is_followed_at_once_and_charged_later() {
        let mut pacer = Pacer::new(Pace::Packet(Duration::from_millis(1)));
        let start = Instant::from_millis(100);
        pacer.sent(start, 1_360, true);
        assert!(pacer.allows(start));
        pacer.sent(start, 1_360, false);
        assert_eq!(pacer.next(), WakeUp::At(Instant::from_millis(102) - QUANTUM));
    }

    #[test]
    fn without_a_limit_a_batch_leaves_together_and_the_rate_is_kept() {
        // Packets of 1,375 bytes: 11 µs each.
        let mut pacer = Pacer::new(Pace::about(Bitrate::from_mbps(1_000)));
        let start = Instant::from_millis(100);
        let mut burst = |now| {
            let allowed = |_: &u32| {
                let allowed = pacer.allows(now);
                if allowed {
                    pacer.sent(now, 1_375, false);
                }
                allowed
            };
            (0..1_000).take_while(allowed).count()
        };
        assert_eq!(burst(start), 46);
        assert_eq!(burst(start + Duration::from_millis(1)), 91);
    }
}
