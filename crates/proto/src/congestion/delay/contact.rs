//! The contact with the receiver: its reports, and the packets since the last one.

use std::time::Duration;

use punctual_units::Instant;

/// Beyond the bound of the round trip, packets are in the network no more.
const MARGIN: Duration = Duration::from_millis(20);
/// The time without any report from the receiver after which the network counts as dead, and the
/// time between two packets then.
const SILENCE: Duration = Duration::from_millis(500);
const PROBE: Duration = Duration::from_millis(100);
/// The bound of the round trip before the first report.
const FIRST_BOUND: Duration = Duration::from_secs(1);

/// The times of the last report and of the last packet, and the bound of a round trip.
#[derive(Debug)]
pub(super) struct Contact {
    last_report: Option<Instant>,
    last_sent: Instant,
    longest_rtt: Duration,
}

impl Contact {
    pub(super) const fn new() -> Self {
        Self { last_report: None, last_sent: Instant::ORIGIN, longest_rtt: FIRST_BOUND }
    }

    /// A packet is sent.
    pub(super) const fn sent(&mut self, now: Instant) {
        self.last_sent = now;
    }

    pub(super) const fn last_sent(&self) -> Instant {
        self.last_sent
    }

    /// A report arrived; a round trip takes `longest_rtt` at most. Returns the time since the
    /// report before.
    pub(super) fn reported(&mut self, now: Instant, longest_rtt: Duration) -> Duration {
        self.longest_rtt = longest_rtt;
        self.last_report.replace(now).map_or(Duration::ZERO, |at| now.saturating_since(at))
    }

    /// The longest time for which a packet counts as in the network.
    pub(super) fn longest_in_network(&self) -> Duration {
        self.longest_rtt + MARGIN
    }

    /// The instant at which a packet may be sent although the window is full: when the oldest
    /// packets must have left the network, of which `oldest` is the instant of sending.
    pub(super) fn next_despite_window(&self, oldest: impl FnOnce() -> Option<Instant>) -> Instant {
        if self.last_report.is_none_or(|at| self.last_sent > at + SILENCE) {
            return self.last_sent + PROBE;
        }
        oldest().map_or(self.last_sent, |since| since + self.longest_in_network())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Instant = Instant::from_millis;

    #[test]
    fn a_packet_may_be_sent_when_the_oldest_must_have_left_the_network() {
        let mut contact = Contact::new();
        assert_eq!(contact.reported(MS(900), Duration::from_millis(60)), Duration::ZERO);
        contact.sent(MS(1_000));
        assert_eq!(contact.next_despite_window(|| Some(MS(950))), MS(1_030));
        assert_eq!(contact.next_despite_window(|| None), MS(1_000), "no packet is in the network");
        assert_eq!(contact.reported(MS(910), Duration::from_millis(70)).as_millis(), 10);
    }

    #[test]
    fn without_reports_a_packet_is_sent_each_100_ms() {
        let mut contact = Contact::new();
        contact.sent(MS(1_000));
        assert_eq!(contact.next_despite_window(|| Some(MS(0))), MS(1_100));
        contact.reported(MS(1_050), Duration::from_millis(60));
        contact.sent(MS(1_550));
        assert_eq!(contact.next_despite_window(|| Some(MS(1_500))), MS(1_580));
        contact.sent(MS(1_551));
        assert_eq!(contact.next_despite_window(|| Some(MS(1_500))), MS(1_651));
    }
}
