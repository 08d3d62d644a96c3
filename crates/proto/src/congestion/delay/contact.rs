//! The contact with the receiver: its reports, and the packets since the last one.

use std::time::Duration;

use punctual_units::Instant;

use crate::report_times::ACK_PERIOD;

/// Beyond the bound of the round trip, packets are in the network no more.
const MARGIN: Duration = Duration::from_millis(20);
/// The time without any report from the receiver after which the network counts as dead, and the
/// time between two packets then.
const SILENCE: Duration = Duration::from_millis(500);
const PROBE: Duration = Duration::from_millis(100);
/// A report that is later than this counts as lost, and the largest number of reports in a row for
/// which packets are sent all the same.
const LATE: Duration = Duration::from_millis(2);
const MOST_LOST: f64 = 3.0;
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

    /// The instant at which a packet may be sent although the window is full, because the reports
    /// of `periods` periods must be lost by then. Packets arrive all the same: a sender that waited
    /// for the next report would leave the link idle. `None` if that is too many reports.
    pub(super) fn next_without_reports(&self, periods: f64) -> Option<Instant> {
        let last = self.last_report?;
        (periods <= MOST_LOST).then(|| last + ACK_PERIOD.mul_f64(periods.floor()) + LATE)
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
    fn up_to_three_lost_reports_stop_nothing() {
        let mut contact = Contact::new();
        assert_eq!(contact.next_without_reports(1.0), None, "no report yet");
        contact.reported(MS(1_000), Duration::from_millis(60));
        let next = [1.0, 1.9, 2.1, 3.0].map(|periods| contact.next_without_reports(periods));
        assert_eq!(next, [1_012, 1_012, 1_022, 1_032].map(|ms| Some(MS(ms))));
        assert_eq!(contact.next_without_reports(3.1), None);
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
