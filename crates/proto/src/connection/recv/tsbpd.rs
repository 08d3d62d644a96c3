use punctual_units::Instant;
use punctual_wire::Timestamp;

use crate::agreed_time::AgreedTime;

/// The time base of timestamp-based packet delivery (draft section 4.5): the peer's clock on this
/// end's clock.
///
/// A message is due at base + timestamp + latency + drift. The base is the instant here that
/// corresponds to timestamp 0 there, less the network's delay: the arrival time of the handshake
/// extension less its timestamp.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tsbpd {
    /// Nanoseconds on this end's clock; negative if the peer started before the clock's origin.
    base: i64,
    drift: i64,
}

/// Timestamps wrap after this time, nanoseconds.
const WRAP: i64 = (1 << 32) * 1_000;

/// A timestamp without wraps: whole microseconds since the peer's start, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct PeerTime(i64);

impl Tsbpd {
    /// The time base that a packet with this timestamp sets, which arrived at `arrival`.
    pub(crate) fn new(arrival: Instant, timestamp: Timestamp) -> Self {
        let base = signed(arrival.as_nanos()) - i64::from(timestamp.as_micros()) * 1_000;
        Self { base, drift: 0 }
    }

    /// Counts the wraps of the peer's clock as `other` does, a time base of the same clock, so that
    /// the peer's times by the other are valid by this one, too.
    pub(crate) fn count_as(&mut self, other: &Self) {
        let apart = self.base.saturating_sub(other.base);
        self.base -= (apart + WRAP / 2).div_euclid(WRAP) * WRAP;
    }

    /// The correction for the peer's clock, nanoseconds.
    pub(crate) const fn drift(&self) -> i64 {
        self.drift
    }

    pub(crate) const fn set_drift(&mut self, nanos: i64) {
        self.drift = nanos;
    }

    /// The time of `timestamp`: of all times with this timestamp, the one nearest to the peer's
    /// clock at `now`.
    ///
    /// libsrt counts wraps from packet to packet. Here one wrong timestamp has no effect on the
    /// next ones, and no "wrap period" is needed: any gap below 35 minutes is unambiguous.
    pub(crate) fn peer_time(&self, now: Instant, timestamp: Timestamp) -> PeerTime {
        let expected = self.peer_micros_at(now);
        #[expect(clippy::cast_possible_truncation, reason = "the difference is taken modulo 2^32")]
        #[expect(clippy::cast_sign_loss, reason = "the difference is taken modulo 2^32")]
        let offset = timestamp.as_micros().wrapping_sub(expected as u32).cast_signed();
        PeerTime((expected + i64::from(offset)).saturating_mul(1_000))
    }

    /// The peer's clock at `now`, less the network's delay.
    pub(crate) fn peer_time_at(&self, now: Instant) -> PeerTime {
        PeerTime(self.peer_micros_at(now).saturating_mul(1_000))
    }

    fn peer_micros_at(&self, now: Instant) -> i64 {
        (signed(now.as_nanos()) - self.base - self.drift) / 1_000
    }

    /// The instant at which a message of `time` is due, with this latency.
    #[inline(always)]
    pub(crate) fn due(&self, time: PeerTime, latency: &AgreedTime) -> Instant {
        instant(self.origin_nanos(time).saturating_add(latency.nanos()))
    }

    /// The origin of a message of `time` on this end's clock, plus the network delay of the packet
    /// that set the time base.
    pub(crate) fn origin(&self, time: PeerTime) -> Instant {
        instant(self.origin_nanos(time))
    }

    fn origin_nanos(&self, time: PeerTime) -> i64 {
        time.0.saturating_add(self.base).saturating_add(self.drift)
    }

    /// The transit time of a message of `time` that arrived at `now`, less that of the handshake,
    /// in nanoseconds; negative if it was faster.
    pub(crate) fn transit(&self, now: Instant, time: PeerTime) -> i64 {
        signed(now.as_nanos()).saturating_sub(signed(self.origin(time).as_nanos()))
    }

    /// The lateness against the time base of a packet with `timestamp` that arrived at `now`, in
    /// nanoseconds: the network delay beyond the handshake's, and the drift, which is not corrected
    /// here.
    pub(crate) fn lateness(&self, now: Instant, timestamp: Timestamp) -> i64 {
        signed(now.as_nanos()) - self.base - self.peer_time(now, timestamp).0
    }
}

/// A time before the clock's origin counts as the origin.
fn instant(nanos: i64) -> Instant {
    Instant::from_nanos(u64::try_from(nanos).unwrap_or(0))
}

fn signed(nanos: u64) -> i64 {
    i64::try_from(nanos).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const LATENCY: Duration = Duration::from_millis(120);

    fn due(tsbpd: &Tsbpd, time: PeerTime) -> Instant {
        tsbpd.due(time, &AgreedTime::new(LATENCY))
    }

    #[test]
    fn due_is_origin_plus_latency_across_the_wrap() {
        let start = Instant::from_micros(1_000);
        // The peer's clock wraps 500 µs after the base was taken.
        let tsbpd = Tsbpd::new(start, Timestamp::from_micros(u32::MAX - 499));
        let before = tsbpd.peer_time(start, Timestamp::from_micros(u32::MAX - 399));
        assert_eq!(due(&tsbpd, before), start + Duration::from_micros(100) + LATENCY);
        let after = tsbpd.peer_time(start, Timestamp::from_micros(100));
        assert_eq!(due(&tsbpd, after), start + Duration::from_micros(600) + LATENCY);
        assert!(before < after);
    }

    #[test]
    fn hours_later_the_wraps_are_known_from_the_clock() {
        let tsbpd = Tsbpd::new(Instant::ORIGIN, Timestamp::from_micros(0));
        let now = Instant::ORIGIN + Duration::from_secs(5 * 3_600);
        #[expect(clippy::cast_possible_truncation, reason = "as on the wire")]
        let stamp = Timestamp::from_micros((now.as_micros() - 30_000) as u32);
        assert_eq!(
            due(&tsbpd, tsbpd.peer_time(now, stamp)),
            now - Duration::from_millis(30) + LATENCY
        );
        assert_eq!(tsbpd.lateness(now, stamp), 30_000_000);
    }

    #[test]
    fn drift_moves_what_is_due() {
        let mut tsbpd = Tsbpd::new(Instant::from_millis(9), Timestamp::from_micros(0));
        let time = tsbpd.peer_time(Instant::from_millis(10), Timestamp::from_micros(1_000));
        let before = due(&tsbpd, time);
        tsbpd.set_drift(-250_000);
        assert_eq!(due(&tsbpd, time), before - Duration::from_micros(250));
    }
}
