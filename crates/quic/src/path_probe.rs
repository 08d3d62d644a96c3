//! Small packets that show whether only the large ones are lost.

use std::time::Duration;

use punctual_units::Instant;

/// The shortest and the longest time without an ACK after which a small packet is sent.
const LEAST: Duration = Duration::from_millis(50);
const MOST: Duration = Duration::from_millis(500);

/// Watches a connection that sends datagrams and gets no acknowledgement. When the path has become
/// too small for its datagrams, each packet with one is lost, and so are QUIC's own probes, which
/// have the same size. Without an acknowledgement no packet is declared lost, and the fall of the
/// MTU remains unnoticed for seconds. A small packet arrives and is acknowledged; the packets that
/// were lost before it then show the new MTU.
#[derive(Debug, Default)]
pub(crate) struct PathProbe {
    /// The next check; `None` while no datagrams are sent.
    next: Option<Instant>,
    /// Bytes acknowledged and datagrams sent at the last check.
    last: (u64, u64),
}

impl PathProbe {
    /// Datagrams are sent.
    pub(crate) fn note_sending(&mut self, now: Instant, rtt: Duration) {
        if self.next.is_none() {
            self.next = Some(now + interval(rtt));
        }
    }

    pub(crate) const fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Whether the time of the next check has come.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.next.is_some_and(|next| next <= now)
    }

    /// Checks a connection of which `acknowledged` bytes were acknowledged and `datagrams` sent so
    /// far. Returns whether a small packet is to be sent.
    pub(crate) fn check(
        &mut self,
        now: Instant,
        acknowledged: u64,
        datagrams: u64,
        rtt: Duration,
    ) -> bool {
        let before = std::mem::replace(&mut self.last, (acknowledged, datagrams));
        let sends = datagrams > before.1;
        self.next = sends.then(|| now + interval(rtt));
        sends && acknowledged == before.0
    }
}

fn interval(rtt: Duration) -> Duration {
    (rtt * 2).clamp(LEAST, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(40);

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn a_small_packet_follows_datagrams_without_acknowledgement() {
        let mut probe = PathProbe::default();
        probe.note_sending(at(0), RTT);
        probe.note_sending(at(70), RTT);
        assert!(!probe.is_due(at(79)) && probe.is_due(at(80)));
        assert!(!probe.check(at(80), 5, 40, RTT), "some were acknowledged");
        assert!(probe.check(at(160), 5, 80, RTT));
        assert!(probe.check(at(240), 5, 90, RTT), "still none");
        assert!(!probe.check(at(320), 6, 99, RTT));
    }

    #[test]
    fn a_connection_that_sends_nothing_is_not_checked() {
        let mut probe = PathProbe::default();
        probe.note_sending(at(0), RTT);
        probe.check(at(80), 5, 40, RTT);
        assert!(!probe.check(at(160), 5, 40, RTT));
        assert_eq!(probe.next(), None);
        probe.note_sending(at(900), RTT);
        assert_eq!(probe.next(), Some(at(980)));
    }
}
