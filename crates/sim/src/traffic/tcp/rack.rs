//! Losses by time, and the tail loss probe (RFC 8985).

use std::time::Duration;

use punctual_units::Instant;

/// The timers and the memory of RFC 8985.
#[derive(Debug, Default)]
pub(super) struct Rack {
    /// When the newest packet that arrived was sent, and its round trip.
    newest: Option<(Instant, Duration)>,
    /// When the oldest packet in flight is lost, if it does not arrive.
    reordering_until: Option<Instant>,
    probe: TailLossProbe,
}

/// The tail loss probe.
#[derive(Clone, Copy, Debug, Default)]
enum TailLossProbe {
    #[default]
    None,
    /// It is sent then.
    At(Instant),
    /// It is sent now.
    Due,
    /// It was sent with this number, and nothing was heard of it.
    Sent(u32),
}

impl Rack {
    /// A packet arrived that was sent at `sent`.
    pub(super) fn on_arrival(&mut self, now: Instant, number: u32, sent: Instant) {
        if self.newest.is_none_or(|(newest, _)| sent >= newest) {
            self.newest = Some((sent, now - sent));
        }
        if matches!(self.probe, TailLossProbe::Sent(probe) if number >= probe) {
            self.probe = TailLossProbe::None;
        }
    }

    /// The time after its sending at which a packet is lost if a later one has arrived: the newest
    /// round trip, and a quarter of the least one for reordering.
    pub(super) fn tolerance(&self, least_rtt: Duration) -> Option<Duration> {
        self.newest.map(|(_, rtt)| rtt + least_rtt / 4)
    }

    /// The oldest packet in flight is lost at `at`; `None` if no later one has arrived.
    pub(super) fn wait_until(&mut self, at: Option<Instant>) {
        self.reordering_until = at;
    }

    /// Whether a packet may be lost now because it took too long.
    pub(super) fn is_late(&self, now: Instant) -> bool {
        self.reordering_until.is_some_and(|at| at <= now)
    }

    /// Sets the time of the next probe, if there is to be one. A probe that was sent lets no other
    /// follow until it is answered.
    pub(super) fn schedule_probe(&mut self, at: Option<Instant>) {
        if !matches!(self.probe, TailLossProbe::Sent(_)) {
            self.probe = at.map_or(TailLossProbe::None, TailLossProbe::At);
        }
    }

    /// Whether the time of a probe has come; it is due from now on.
    pub(super) fn take_probe(&mut self, now: Instant) -> bool {
        let has_come = matches!(self.probe, TailLossProbe::At(at) if at <= now);
        if has_come {
            self.probe = TailLossProbe::Due;
        }
        has_come
    }

    /// Whether a probe is to be sent now.
    pub(super) fn is_probe_due(&self) -> bool {
        matches!(self.probe, TailLossProbe::Due)
    }

    /// A probe was sent as transmission `number`; `None` if there was nothing to send.
    pub(super) fn probe_sent(&mut self, number: Option<u32>) {
        self.probe = number.map_or(TailLossProbe::None, TailLossProbe::Sent);
    }

    /// The retransmission timeout passed, which ends all waiting.
    pub(super) fn on_timeout(&mut self) {
        self.reordering_until = None;
        self.probe = TailLossProbe::None;
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let probe = match self.probe {
            TailLossProbe::At(at) => Some(at),
            TailLossProbe::None | TailLossProbe::Due | TailLossProbe::Sent(_) => None,
        };
        [self.reordering_until, probe].into_iter().flatten().min()
    }
}

/// The time after which a probe is sent with this smoothed round trip (RFC 8985 section 7.2). The
/// answer to a lone packet may be delayed.
pub(super) fn probe_timeout(smoothed_rtt: Duration, in_flight: u64) -> Duration {
    smoothed_rtt * 2 + if in_flight == 1 { LONGEST_ANSWER_DELAY } else { Duration::ZERO }
}

/// `TLP.max_ack_delay` while the peer's is unknown: the least retransmission timeout.
const LONGEST_ANSWER_DELAY: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> Instant = Instant::from_millis;
    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn one_probe_waits_for_its_answer() {
        let mut rack = Rack::default();
        rack.schedule_probe(Some(AT(80)));
        assert!(!rack.take_probe(AT(79)) && rack.take_probe(AT(80)) && rack.is_probe_due());
        rack.probe_sent(Some(7));
        rack.schedule_probe(Some(AT(90)));
        assert_eq!(rack.poll_timeout(), None);
        rack.on_arrival(AT(120), 6, AT(70));
        rack.schedule_probe(Some(AT(200)));
        assert_eq!(rack.poll_timeout(), None, "an older packet");
        rack.on_arrival(AT(121), 7, AT(80));
        rack.schedule_probe(Some(AT(200)));
        assert_eq!(rack.poll_timeout(), Some(AT(200)));
    }

    #[test]
    fn a_packet_may_be_a_quarter_of_the_least_round_trip_late() {
        let mut rack = Rack::default();
        assert_eq!(rack.tolerance(MS(40)), None);
        rack.on_arrival(AT(50), 1, AT(0));
        rack.on_arrival(AT(51), 0, AT(0).saturating_sub(MS(1)));
        assert_eq!(rack.tolerance(MS(40)), Some(MS(61)), "the last of those sent together");
    }

    #[test]
    fn a_lone_packet_is_probed_200_ms_later() {
        assert_eq!([1, 2].map(|flight| probe_timeout(MS(30), flight)), [MS(260), MS(60)]);
    }
}
