//! The peer's clock on this end's clock: the due times of messages, and plausible timestamps.

use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::Timestamp;

use super::drift::DriftTracer;
use super::earliness::Earliness;
use super::tsbpd::{PeerTime, Tsbpd};
use crate::agreed_time::AgreedTime;
use crate::config::Config;
use crate::handshake::Negotiated;
use crate::handshake::membership::GroupTimebase;
use crate::statistics::Statistics;

/// The time base of received packets, the drift of the peer's clock, and the checks of its
/// timestamps.
///
/// A connection without timestamp-based delivery has no time base: its messages are due when they
/// arrive.
#[derive(Debug)]
pub(super) struct Timing {
    tsbpd: Option<Tsbpd>,
    /// The time from the origin of a message to its due time.
    latency: AgreedTime,
    delivery: DeliveryTime,
    drift: Option<DriftTracer>,
    /// Whether the tracer gets samples. It keeps its state while the application has turned it off.
    drift_is_followed: bool,
    /// Whether a group sets the correction for the drift, from the samples of all its links.
    drift_is_shared: bool,
    data_earliness: Earliness,
    control_earliness: Earliness,
    /// The newest timestamp that was implausible, though a path that became shorter can explain it.
    /// The packets of such timestamps are due earlier than their sender wanted.
    newest_implausible: Option<PeerTime>,
    /// The transit time of the newest original less that of the handshake, microseconds.
    transit_micros: i64,
}

/// The meaning of a message's due time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum DeliveryTime {
    /// The message is delivered then. Packets that are missing before it are dropped then (too-late
    /// packet drop), unless the application has turned that off.
    WhenDue { too_late_drop: bool },
    /// The application uses it then, but gets it on arrival; nothing is dropped: a stream of bytes
    /// with a playout point.
    Playout,
}

impl Timing {
    pub(super) fn new(config: &Config, negotiated: &Negotiated) -> Self {
        let base = negotiated.fixed.base;
        let has_playout = negotiated.playout.is_some();
        let is_timed = negotiated.tsbpd_receive || has_playout;
        Self {
            tsbpd: is_timed.then(|| Tsbpd::new(base.arrival, base.timestamp)),
            latency: negotiated.playout.as_ref().unwrap_or(&negotiated.latency.receive).clone(),
            delivery: match has_playout {
                true => DeliveryTime::Playout,
                false => DeliveryTime::WhenDue { too_late_drop: config.too_late_drop() },
            },
            drift: (config.drift_tracer() && is_timed).then(DriftTracer::new),
            drift_is_followed: true,
            drift_is_shared: false,
            data_earliness: Earliness::new(),
            control_earliness: Earliness::new(),
            newest_implausible: None,
            transit_micros: 0,
        }
    }

    #[cfg(test)]
    pub(super) fn of(tsbpd: Tsbpd, latency: Duration) -> Self {
        Self {
            tsbpd: Some(tsbpd),
            latency: AgreedTime::new(latency),
            delivery: DeliveryTime::WhenDue { too_late_drop: true },
            drift: Some(DriftTracer::new()),
            drift_is_followed: true,
            drift_is_shared: false,
            data_earliness: Earliness::new(),
            control_earliness: Earliness::new(),
            newest_implausible: None,
            transit_micros: 0,
        }
    }

    #[cfg(test)]
    pub(super) fn of_playout(tsbpd: Tsbpd, playout: Duration) -> Self {
        Self { delivery: DeliveryTime::Playout, ..Self::of(tsbpd, playout) }
    }

    pub(super) const fn tsbpd(&self) -> Option<&Tsbpd> {
        self.tsbpd.as_ref()
    }

    /// The latency; `None` if messages have no timestamps.
    pub(super) fn latency(&self) -> Option<Duration> {
        self.tsbpd.as_ref().map(|_| self.latency.get())
    }

    /// Whether missing packets are dropped when the packet after them is due (TLPKTDROP).
    pub(super) const fn drops_too_late(&self) -> bool {
        matches!(self.delivery, DeliveryTime::WhenDue { too_late_drop: true })
            && self.tsbpd.is_some()
    }

    /// The due time of a message of `time`; `None` if it is delivered on arrival.
    #[inline(always)]
    pub(super) fn due(&self, time: PeerTime) -> Option<Instant> {
        let is_live = self.delivery != DeliveryTime::Playout;
        self.tsbpd.as_ref().filter(|_| is_live).map(|tsbpd| tsbpd.due(time, &self.latency))
    }

    /// Whether it shows a forgery that a packet of `time` was passed: it is not due yet, and so no
    /// genuine packet behind it can be due. Only one with an implausible timestamp can.
    pub(super) fn shows_forgery(&self, now: Instant, time: PeerTime) -> bool {
        self.due(time).is_some_and(|due| due > now)
            && self.newest_implausible.is_none_or(|newest| newest < time)
    }

    /// The instant at which packets that are missing before a message of `time` are dropped; `None`
    /// for never.
    pub(super) fn give_up_at(&self, time: PeerTime) -> Option<Instant> {
        self.tsbpd
            .as_ref()
            .filter(|_| self.drops_too_late())
            .map(|tsbpd| tsbpd.due(time, &self.latency))
    }

    /// The playout point of a packet of `time`, in a stream that has one.
    pub(super) fn playout_point(&self, time: PeerTime) -> Option<Instant> {
        let has_playout = self.delivery == DeliveryTime::Playout;
        self.tsbpd.as_ref().filter(|_| has_playout).map(|tsbpd| tsbpd.due(time, &self.latency))
    }

    /// The instant by which packets that are missing before a message of `time` are needed: they
    /// are dropped then, or cause a glitch. `None` for never.
    pub(super) fn needed_by(&self, time: PeerTime) -> Option<Instant> {
        self.give_up_at(time).or_else(|| self.playout_point(time))
    }

    /// The origin of a message of `time` on this end's clock, and its due time.
    pub(super) fn origin_and_due(&self, now: Instant, time: PeerTime) -> (Instant, Instant) {
        self.tsbpd
            .as_ref()
            .map_or((now, now), |tsbpd| (tsbpd.origin(time), tsbpd.due(time, &self.latency)))
    }

    /// The time since a message of `time` was due.
    pub(super) fn lateness(&self, now: Instant, time: PeerTime) -> Duration {
        self.due(time).map_or(Duration::ZERO, |due| now.saturating_since(due))
    }

    /// The time of a data packet; the present time if its timestamp lies implausibly far in the
    /// future.
    #[inline(always)]
    pub(super) fn plausible_time(&mut self, now: Instant, timestamp: Timestamp) -> PeerTime {
        let Some(tsbpd) = &self.tsbpd else { return PeerTime::default() };
        let time = tsbpd.peer_time(now, timestamp);
        if tsbpd.origin(time) > now + self.data_earliness.limit() {
            return self.judge_early(now, time);
        }
        time
    }

    /// Counts an original of `time` that arrived as the newest packet.
    #[inline(always)]
    pub(super) fn note_arrival(&mut self, now: Instant, time: PeerTime) {
        if let Some(tsbpd) = &self.tsbpd {
            let transit = tsbpd.transit(now, time);
            self.transit_micros = transit / 1_000;
            self.data_earliness.note(transit, || self.latency.get());
        }
    }

    /// The time by which a packet of `time` was sent after the newest original, which arrived at
    /// `heard`; `None` if packets have no timestamps.
    pub(super) fn sent_after(&self, heard: Instant, time: PeerTime) -> Option<Duration> {
        let tsbpd = self.tsbpd.as_ref()?;
        let transit = Duration::from_micros(self.transit_micros.unsigned_abs());
        let newest = if self.transit_micros < 0 { heard + transit } else { heard - transit };
        Some(tsbpd.origin(time).saturating_since(newest))
    }

    /// Counts a control packet that was sent at `timestamp`; `rtt` is the latest sample.
    pub(super) fn trace_drift(
        &mut self,
        now: Instant,
        timestamp: Timestamp,
        rtt: Option<Duration>,
    ) {
        let Some(tsbpd) = &mut self.tsbpd else { return };
        let lateness = tsbpd.lateness(now, timestamp);
        let early = tsbpd.drift().saturating_sub(lateness);
        if early > nanos(self.control_earliness.limit()) {
            if !self.control_earliness.believes(early.unsigned_abs(), self.latency.get()) {
                return;
            }
        } else {
            self.control_earliness.note(-early, || self.latency.get());
        }
        if let Some(tracer) = self.drift.as_mut().filter(|_| self.drift_is_followed)
            && let Some(drift) = tracer.sample(now, lateness, rtt)
            && !self.drift_is_shared
        {
            tsbpd.set_drift(drift);
        }
    }

    /// Sets whether the drift of the peer's clock is followed. If not, the present correction
    /// remains.
    pub(super) fn trace_clock(&mut self, follows: bool) {
        self.drift_is_followed = follows;
        if follows && self.tsbpd.is_some() && self.drift.is_none() {
            self.drift = Some(DriftTracer::new());
        }
    }

    /// The drift of the peer's clock that this connection traced, nanoseconds.
    pub(super) fn traced_drift(&self) -> i64 {
        self.drift.as_ref().map_or(0, DriftTracer::drift)
    }

    /// From now on a group sets the correction for the drift; now it is `nanos`.
    pub(super) const fn share_drift(&mut self, nanos: i64) {
        self.drift_is_shared = true;
        self.set_drift(nanos);
    }

    pub(super) const fn set_drift(&mut self, nanos: i64) {
        if let Some(tsbpd) = &mut self.tsbpd {
            tsbpd.set_drift(nanos);
        }
    }

    /// Delivers by the time base of a group from now on, including the packets in the buffer.
    pub(super) fn align(&mut self, timebase: &GroupTimebase) {
        let Some(old) = self.tsbpd else { return };
        let base = timebase.base;
        let mut tsbpd = Tsbpd::new(base.arrival, base.timestamp);
        tsbpd.set_drift(timebase.drift);
        // Both bases count the same clock of the peer, but perhaps from different wraps of it.
        tsbpd.count_as(&old);
        self.tsbpd = Some(tsbpd);
        self.latency = timebase.receive_latency.clone();
    }

    pub(super) fn fill_statistics(&self, statistics: &mut Statistics) {
        if let Some(tsbpd) = &self.tsbpd {
            statistics.receive_latency = self.latency.get();
            statistics.drift_micros = tsbpd.drift() / 1_000;
        }
        statistics.transit_micros = self.transit_micros;
    }

    /// The time of a packet that seems to come from the future.
    #[cold]
    #[inline(never)]
    fn judge_early(&mut self, now: Instant, time: PeerTime) -> PeerTime {
        let Some(tsbpd) = &self.tsbpd else { return time };
        let early = tsbpd.transit(now, time).unsigned_abs();
        if self.data_earliness.believes(early, self.latency.get()) {
            return time;
        }
        if Earliness::is_possible(Duration::from_nanos(early)) {
            self.newest_implausible = self.newest_implausible.max(Some(time));
        }
        tsbpd.peer_time_at(now)
    }
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Instant = Instant::from_millis;
    const LATENCY: Duration = Duration::from_millis(120);

    /// The peer's clock shows 0 when this end's shows 1 s.
    fn timing() -> Timing {
        Timing::of(Tsbpd::new(MS(1_000), Timestamp::from_micros(0)), LATENCY)
    }

    const fn sent_at(millis: u32) -> Timestamp {
        Timestamp::from_micros(millis * 1_000)
    }

    #[test]
    fn a_message_is_due_a_latency_after_it_was_sent() {
        let mut timing = timing();
        let time = timing.plausible_time(MS(1_015), sent_at(10));
        assert_eq!(timing.due(time), Some(MS(1_130)));
        assert_eq!(timing.give_up_at(time), Some(MS(1_130)));
        assert_eq!(timing.origin_and_due(MS(1_015), time), (MS(1_010), MS(1_130)));
        assert_eq!(timing.lateness(MS(1_133), time), Duration::from_millis(3));
        timing.note_arrival(MS(1_015), time);
        let later = timing.plausible_time(MS(1_045), sent_at(40));
        assert_eq!(timing.sent_after(MS(1_015), later), Some(Duration::from_millis(30)));
    }

    #[test]
    fn a_timestamp_far_in_the_future_counts_as_the_present() {
        let mut timing = timing();
        for i in 0..100 {
            let now = 1_000 + u64::from(i);
            let time = timing.plausible_time(MS(now), sent_at(i));
            timing.note_arrival(MS(now), time);
        }
        let time = timing.plausible_time(MS(1_100), sent_at(1_100));
        assert_eq!(timing.due(time), Some(MS(1_220)));
    }

    #[test]
    fn a_packet_that_an_implausible_one_overtook_shows_no_forgery() {
        let mut timing = timing();
        for i in 0..100 {
            let now = MS(1_000 + u64::from(i));
            let time = timing.plausible_time(now, sent_at(i));
            timing.note_arrival(now, time);
        }
        let overtaken = timing.plausible_time(MS(1_100), sent_at(90));
        assert!(timing.shows_forgery(MS(1_100), overtaken));
        timing.plausible_time(MS(1_100), sent_at(9_000));
        assert!(timing.shows_forgery(MS(1_100), overtaken), "no path is shorter by seconds");
        timing.plausible_time(MS(1_100), sent_at(300));
        assert!(!timing.shows_forgery(MS(1_100), overtaken));
        let later = timing.plausible_time(MS(1_299), sent_at(301));
        assert!(timing.shows_forgery(MS(1_299), later));
        assert!(!timing.shows_forgery(MS(1_499), later), "it is due");
    }

    #[test]
    fn without_timestamps_messages_are_due_on_arrival() {
        let mut timing = Timing { tsbpd: None, ..timing() };
        let time = timing.plausible_time(MS(1_015), sent_at(10));
        assert_eq!((timing.due(time), timing.give_up_at(time)), (None, None));
        assert_eq!(timing.origin_and_due(MS(1_015), time), (MS(1_015), MS(1_015)));
        assert_eq!((timing.latency(), timing.sent_after(MS(1_015), time)), (None, None));
    }

    #[test]
    fn a_link_whose_group_sets_the_drift_keeps_its_own_out_of_the_time_base() {
        let mut timing = timing();
        timing.share_drift(3_000_000);
        let time = timing.plausible_time(MS(1_015), sent_at(10));
        assert_eq!(timing.due(time), Some(MS(1_133)));
        assert_eq!(timing.traced_drift(), 0);
    }
}
