//! The facts that both halves of a connection know of its path. The sender knows round trips and
//! the queueing delay, arrivals at the peer, reported or inferred, its rates, and the capacity that
//! it reports; the receiver measures the arriving packets.

mod inferred_arrivals;
mod least_round_trip;
mod received;
mod round_trips;
mod sent_times;
mod unloaded;

use std::time::Duration;

use punctual_rtt::Rtt;
use punctual_units::Instant;
use punctual_wire::{Ack, AckArrivals, AckRates, NewestArrival, SeqNo};

use self::inferred_arrivals::InferredArrivals;
pub(crate) use self::least_round_trip::LeastRoundTrip;
pub(crate) use self::received::ReceivedPath;
pub(crate) use self::round_trips::{LatestRoundTrips, RoundTrips};
use self::sent_times::SentTimes;
pub(crate) use self::unloaded::Packets;
use crate::statistics::Statistics;

/// Packets that the peer must have acknowledged before its delivery rate counts. libsrt takes the
/// median of the last 16 intervals between packets and begins with 16 intervals of a second each,
/// so that its first ACKs report a few packets a second. 17 packets replace them all.
const LEAST_ACKNOWLEDGED: u32 = 17;
/// A report above this multiple of the mean counts as this multiple, so that one wrong or forged
/// ACK does not distort the mean.
const MOST_OF_MEAN: u32 = 8;

/// The path of a sender, by the ACKs and NAKs of its peer.
///
/// The rates are moving averages (7 parts of the old value, 1 of the new one, as in libsrt), in
/// packets a second; 0 while unknown.
#[derive(Debug, Default)]
pub(crate) struct MeasuredPath {
    delivery: u32,
    capacity: u32,
    acknowledged: u32,
    is_live: bool,
    /// Whether the peer counts its arrivals.
    is_counted: bool,
    arrived: Option<u32>,
    /// The rate of these arrivals, for live streams.
    arriving: PeerArrivalRate,
    /// The newest round trip that the peer reported with them.
    newest_rtt: Option<Duration>,
    given_up: GivenUp,
    round_trips: RoundTrips,
    /// When originals were sent to a peer that reports the newest one that has arrived.
    timed: Option<Box<TimedOriginals>>,
    /// The arrivals at a peer that does not count them.
    inferred: Option<Box<InferredArrivals>>,
}

/// How this end learns what has arrived at the peer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ArrivalSource {
    /// The peer counts and reports its arrivals.
    Reports,
    /// The peer of a live stream, which may report the newest one as well.
    ReportsOfLive,
    /// They are inferred, and the peer reports round trips.
    Inference,
    /// They are inferred, and so are round trips: ACKs of live streams come at steady intervals.
    InferenceOfLive,
}

impl MeasuredPath {
    /// The path of a connection that sends its first packet with the number `isn`.
    pub(crate) fn new(isn: SeqNo, source: ArrivalSource) -> Self {
        let (is_live, is_counted) = match source {
            ArrivalSource::Reports => (false, true),
            ArrivalSource::ReportsOfLive => (true, true),
            ArrivalSource::Inference => (false, false),
            ArrivalSource::InferenceOfLive => (true, false),
        };
        Self {
            is_live,
            is_counted,
            timed: (is_counted && is_live).then(Box::default),
            inferred: (!is_counted).then(|| Box::new(InferredArrivals::new(isn, is_live))),
            ..Self::default()
        }
    }

    /// Takes in an ACK that acknowledges `packets` more; `rtt` is the smoothed round trip, and
    /// `totals` counts since the connection began. Returns whether a round trip was measured.
    pub(crate) fn acknowledged(
        &mut self,
        now: Instant,
        ack: &Ack,
        packets: u32,
        rtt: Rtt,
        totals: Packets,
    ) -> bool {
        let arrivals = ack.arrivals().filter(|_| self.is_counted);
        if let (Some(arrivals), None) = (arrivals, ack.number()) {
            // A report while no ACK is due. Rates, by which retransmissions are limited, are those
            // of ACKs.
            self.arrived = Some(arrivals.packets);
        } else {
            self.take_rates(packets, ack.rates());
            self.count_arrivals(now, arrivals);
        }
        let reported = match arrivals {
            Some(arrivals) => Some(arrivals.latest_rtt_us).filter(|&rtt| rtt > 0),
            None => ack.link().map(|link| link.rtt_us),
        };
        let reported = reported.map(|rtt| Duration::from_micros(rtt.into()));
        // A peer without a measurement reports the initial estimate.
        let reported = reported.filter(|&rtt| rtt != Rtt::INITIAL.smoothed);
        let newest = arrivals.and_then(|arrivals| arrivals.newest);
        let measured = match (&mut self.inferred, &mut self.timed, newest) {
            (Some(inferred), _, _) => {
                let reported = reported.filter(|_| inferred.needs_report(now));
                inferred.acknowledged(now, ack.next(), rtt.smoothed).or(reported)
            }
            (None, Some(timed), Some(newest)) => timed.arrived(now, newest),
            (None, _, _) => reported,
        };
        if let Some(measured) = measured {
            self.round_trips.sample(now, measured, totals);
        }
        measured.is_some()
    }

    /// The peer reported the packets from `first` to `last` lost; otherwise as
    /// [`acknowledged`](Self::acknowledged).
    pub(crate) fn lost(
        &mut self,
        now: Instant,
        (first, last): (SeqNo, SeqNo),
        rtt: Rtt,
        totals: Packets,
    ) -> bool {
        let Some(inferred) = &mut self.inferred else { return false };
        let measured = inferred.lost(now, first, last, rtt.smoothed);
        if let Some(measured) = measured {
            self.round_trips.sample(now, measured, totals);
        }
        measured.is_some()
    }

    /// Takes over the rates of an ACK that acknowledges `packets` more.
    fn take_rates(&mut self, packets: u32, rates: Option<AckRates>) {
        self.acknowledged = self.acknowledged.saturating_add(packets);
        if let Some(rates) = rates {
            self.capacity = smoothed(self.capacity, rates.capacity_pps);
            if self.acknowledged >= LEAST_ACKNOWLEDGED {
                self.delivery = smoothed(self.delivery, rates.packets_per_sec);
            }
        }
    }

    /// Takes over the numbers of packets that have arrived and were given up, if the ACK has them.
    fn count_arrivals(&mut self, now: Instant, arrivals: Option<AckArrivals>) {
        let Some(arrivals) = arrivals else { return };
        self.arrived = Some(arrivals.packets);
        self.arriving.count(now, arrivals.packets);
        let newest = Duration::from_micros(arrivals.latest_rtt_us.into());
        self.newest_rtt = Some(newest).filter(|rtt| !rtt.is_zero());
        if let Some(given_up) = arrivals.given_up {
            self.given_up.report(given_up);
        }
    }

    /// The original `seq` is sent.
    #[inline]
    pub(crate) fn sent_original(&mut self, now: Instant, seq: SeqNo) {
        if let Some(timed) = &mut self.timed {
            timed.sent.sent(now, seq);
        } else if let Some(inferred) = &mut self.inferred {
            inferred.sent_original(now, seq);
        }
    }

    /// A retransmission is sent.
    pub(crate) fn sent_retransmission(&mut self, now: Instant) {
        if let Some(inferred) = &mut self.inferred {
            inferred.sent_retransmission(now);
        }
    }

    /// The packets a second that arrive at the peer; `None` if it does not report its arrivals.
    pub(crate) const fn arriving(&self) -> Option<u32> {
        self.arriving.per_second()
    }

    /// The newest round trip, not smoothed; `None` if the peer does not report it.
    pub(crate) const fn newest_rtt(&self) -> Option<Duration> {
        self.newest_rtt
    }

    /// The total of packets that have arrived at the peer, modulo 2^32; `None` before the first
    /// report.
    pub(crate) fn arrived(&self) -> Option<u32> {
        self.inferred.as_ref().map_or(self.arrived, |inferred| Some(inferred.total()))
    }

    /// The round trips of the path, and its queueing delay.
    pub(crate) const fn round_trips(&self) -> &RoundTrips {
        &self.round_trips
    }

    /// Packets a second that reach the peer; 0 if unknown.
    pub(crate) const fn delivery(&self) -> u32 {
        self.delivery
    }

    /// The link's capacity in packets a second; 0 if unknown.
    pub(crate) const fn capacity(&self) -> u32 {
        self.capacity
    }

    pub(crate) fn fill_statistics(&self, statistics: &mut Statistics) {
        let trips = &self.round_trips;
        statistics.queueing_delay = if self.is_live {
            trips.queueing_delay()
        } else {
            // As control by delay gets it.
            trips.latest().saturating_sub(trips.least())
        };
        statistics.packets_peer_dropped = self.given_up.total;
        statistics.peer_drop_reports = self.given_up.reports;
    }
}

/// The times of originals, and the newest one that the peer has reported.
#[derive(Debug, Default)]
struct TimedOriginals {
    sent: SentTimes,
    newest: Option<SeqNo>,
}

impl TimedOriginals {
    /// The peer reported the newest original that has arrived. Returns its round trip, without the
    /// time for which the report waited, if it was not reported before.
    fn arrived(&mut self, now: Instant, newest: NewestArrival) -> Option<Duration> {
        let NewestArrival { seq, delay_us } = newest;
        if self.newest.is_some_and(|before| !seq.is_after(before)) {
            return None;
        }
        let sent = self.sent.closely(seq)?;
        self.newest = Some(seq);
        self.sent.forget_before(seq);
        Some((now - sent).saturating_sub(Duration::from_micros(delay_us.into())))
    }
}

/// The total of packets that the peer gave up.
#[derive(Debug, Default)]
struct GivenUp {
    total: u64,
    /// The number of reports that said so.
    reports: u64,
}

impl GivenUp {
    /// The peer reported its total, modulo 2^32. A report that is lower by less than 2^31 is older
    /// than another one.
    const fn report(&mut self, total: u32) {
        #[expect(clippy::cast_possible_truncation, reason = "modulo 2^32")]
        let ahead = total.wrapping_sub(self.total as u32);
        if ahead < 1 << 31 {
            self.total += ahead as u64;
        }
        self.reports += 1;
    }
}

/// The rate of the arrivals that the peer reports.
#[derive(Debug, Default)]
struct PeerArrivalRate {
    /// The last report at which the rate was computed.
    last: Option<(Instant, u32)>,
    per_second: Option<u32>,
}

impl PeerArrivalRate {
    /// The least time over which the rate is measured.
    const WINDOW: Duration = Duration::from_millis(50);

    fn count(&mut self, now: Instant, total: u32) {
        let Some((at, before)) = self.last else {
            self.last = Some((now, total));
            return;
        };
        let time = now.saturating_since(at);
        if time >= Self::WINDOW {
            let packets = u128::from(total.wrapping_sub(before)) * 1_000_000_000 / time.as_nanos();
            self.per_second = Some(u32::try_from(packets).unwrap_or(u32::MAX));
            self.last = Some((now, total));
        }
    }

    const fn per_second(&self) -> Option<u32> {
        self.per_second
    }
}

/// The mean after one more report; a report of 0 means that the peer does not know.
const fn smoothed(mean: u32, reported: u32) -> u32 {
    match (mean, reported) {
        (mean, 0) => mean,
        (0, reported) => reported,
        (mean, reported) => {
            let most = mean.saturating_mul(MOST_OF_MEAN);
            let reported = if reported > most { most } else { reported };
            #[expect(clippy::cast_possible_truncation, reason = "a mean of two u32")]
            {
                ((mean as u64 * 7 + reported as u64) / 8) as u32
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn rates(delivery: u32, capacity: u32) -> Option<AckRates> {
        Some(AckRates { packets_per_sec: delivery, capacity_pps: capacity, bytes_per_sec: None })
    }

    #[test]
    fn the_first_delivery_rates_of_libsrt_do_not_count() {
        let mut peer = MeasuredPath::default();
        peer.take_rates(6, rates(2, 1_000));
        peer.take_rates(10, rates(5, 1_000));
        assert_eq!((peer.delivery(), peer.capacity()), (0, 1_000));
        peer.take_rates(1, None);
        assert_eq!(peer.delivery(), 0, "a light ACK reports no rate");
        peer.take_rates(64, rates(5_000, 1_000));
        assert_eq!(peer.delivery(), 5_000);
    }

    #[test]
    fn packets_given_up_are_counted_beyond_32_bits_and_never_taken_back() {
        let mut given_up = GivenUp::default();
        for total in [7, 1 << 30, 2 << 30, 3 << 30, u32::MAX, 2, 1] {
            given_up.report(total);
        }
        assert_eq!((given_up.total, given_up.reports), ((1 << 32) + 2, 7));
    }

    #[test]
    fn the_rate_of_arrivals_is_measured_over_50_ms_at_least() {
        let mut rate = PeerArrivalRate::default();
        rate.count(Instant::from_millis(1_000), u32::MAX - 9);
        rate.count(Instant::from_millis(1_025), 20);
        assert_eq!(rate.per_second(), None);
        rate.count(Instant::from_millis(1_050), 40);
        assert_eq!(rate.per_second(), Some(1_000));
        rate.count(Instant::from_millis(2_050), 140);
        assert_eq!(rate.per_second(), Some(100));
    }

    #[test]
    fn rates_are_averaged_and_one_odd_report_moves_them_little() {
        let mut peer = MeasuredPath::default();
        peer.take_rates(LEAST_ACKNOWLEDGED, None);
        peer.take_rates(1, rates(1_000, 0));
        peer.take_rates(1, rates(1_800, 0));
        assert_eq!((peer.delivery(), peer.capacity()), (1_100, 0));
        peer.take_rates(1, rates(0, 0));
        assert_eq!(peer.delivery(), 1_100, "0 means that the peer does not know");
        peer.take_rates(1, rates(u32::MAX, 0));
        assert_eq!(peer.delivery(), (1_100 * 7 + 8_800) / 8);
    }
}
