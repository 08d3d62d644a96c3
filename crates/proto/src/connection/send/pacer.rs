use std::time::Duration;

use punctual_units::Instant;

/// How late the pacer may be and still catch up. A driver that wakes up late loses no rate; a
/// longer stall does not end in a burst.
const CREDIT: Duration = Duration::from_millis(10);

/// How far ahead of its time a packet may go out. What wakes up a driver costs more than what it
/// sends, so packets that are due within this time of each other leave together.
const QUANTUM: Duration = Duration::from_micros(100);

/// Spaces packets, originals and retransmissions alike, by the period that congestion control
/// sets.
#[derive(Debug)]
pub(crate) struct Pacer {
    period: Duration,
    next: Instant,
    idle: bool,
    /// The packet after a sequence number divisible by 16 follows at once: the probe pair.
    probe: bool,
}

impl Pacer {
    pub(crate) const fn new(period: Duration) -> Self {
        Self { period, next: Instant::ORIGIN, idle: true, probe: false }
    }

    /// Time between two packets.
    pub(crate) const fn period(&self) -> Duration {
        self.period
    }

    pub(crate) const fn set_period(&mut self, period: Duration) {
        self.period = period;
    }

    /// Whether a packet may go out at `now`.
    pub(crate) fn allows(&self, now: Instant) -> bool {
        self.idle || self.probe || self.next() <= now
    }

    /// When the next packet may go out.
    pub(crate) fn next(&self) -> Instant {
        self.next - QUANTUM
    }

    /// There was nothing to send: time that passes from here on is not made up for.
    pub(crate) const fn rest(&mut self) {
        self.idle = true;
        self.probe = false;
    }

    /// A packet goes out at `now`; `starts_probe` if the next one is to follow at once.
    pub(crate) fn sent(&mut self, now: Instant, starts_probe: bool) {
        let earliest = if self.idle { now } else { now - CREDIT };
        self.next = self.next.max(earliest) + self.period;
        self.idle = false;
        self.probe = starts_probe;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_rate_and_catches_up_after_a_late_wake_up() {
        let mut pacer = Pacer::new(Duration::from_millis(1));
        let start = Instant::from_millis(100);
        assert!(pacer.allows(start));
        pacer.sent(start, false);
        assert!(!pacer.allows(start));
        let late = Instant::from_millis(105);
        let mut sent = 0;
        while pacer.allows(late) {
            pacer.sent(late, false);
            sent += 1;
        }
        assert_eq!(sent, 5, "1 to 5 ms after the first");
    }

    #[test]
    fn packets_due_within_the_quantum_leave_together() {
        let mut pacer = Pacer::new(Duration::from_micros(10));
        let start = Instant::from_millis(100);
        let mut burst = |now| {
            let mut sent = 0;
            while pacer.allows(now) {
                pacer.sent(now, false);
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
        let mut pacer = Pacer::new(Duration::from_millis(1));
        pacer.sent(Instant::from_millis(100), false);
        pacer.rest();
        let later = Instant::from_millis(500);
        assert!(pacer.allows(later));
        pacer.sent(later, false);
        assert!(!pacer.allows(later));
    }

    #[test]
    fn a_probe_is_followed_at_once_and_charged_later() {
        let mut pacer = Pacer::new(Duration::from_millis(1));
        let start = Instant::from_millis(100);
        pacer.sent(start, true);
        assert!(pacer.allows(start));
        pacer.sent(start, false);
        assert_eq!(pacer.next(), Instant::from_millis(102) - QUANTUM);
    }
}
