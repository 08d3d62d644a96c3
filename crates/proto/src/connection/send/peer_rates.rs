//! The rates that the peer reports in its full ACKs, and the packets that have arrived at it.

use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::{AckArrivals, AckRates, SeqNo};

use super::inferred_arrivals::InferredArrivals;
use crate::config::Config;
use crate::handshake::Negotiated;
use crate::statistics::Statistics;
use crate::transmission::Transmission;

/// Packets that the peer must have acknowledged before its delivery rate counts. libsrt takes the
/// median of the last 16 intervals between packets and begins with 16 intervals of a second each,
/// so that its first ACKs report a few packets a second. 17 packets replace them all.
const LEAST_ACKNOWLEDGED: u32 = 17;
/// A report above this multiple of the mean counts as this multiple, so that one wrong or forged
/// ACK does not distort the mean.
const MOST_OF_MEAN: u32 = 8;

/// Moving averages (7 parts of the old value, 1 of the new one, as in libsrt) of the delivery rate
/// and of the link capacity, in packets a second; 0 while unknown.
#[derive(Debug, Default)]
pub(super) struct PeerRates {
    delivery: u32,
    capacity: u32,
    acknowledged: u32,
    arrived: Option<u32>,
    /// The rate of these arrivals, for live streams.
    arriving: PeerArrivalRate,
    /// The newest round trip that the peer reported with them.
    newest_rtt: Option<Duration>,
    given_up: GivenUp,
    /// The arrivals at a peer that receives files and does not count.
    inferred: Option<Box<InferredArrivals>>,
}

impl PeerRates {
    /// Of this peer. Its arrivals are inferred if it gets files and does not count them.
    pub(super) fn new(config: &Config, negotiated: &Negotiated) -> Self {
        let is_file = config.transmission() != Transmission::Live;
        let infers = is_file && !negotiated.peer.counted_arrivals;
        let inferred = || Box::new(InferredArrivals::new(negotiated.fixed.send_isn));
        Self { inferred: infers.then(inferred), ..Self::default() }
    }

    /// Takes over an ACK that acknowledges `packets` more and carries these rates, if it is full.
    pub(super) fn handle_ack(&mut self, packets: u32, rates: Option<AckRates>) {
        self.acknowledged = self.acknowledged.saturating_add(packets);
        if let Some(rates) = rates {
            self.capacity = smoothed(self.capacity, rates.capacity_pps);
            if self.acknowledged >= LEAST_ACKNOWLEDGED {
                self.delivery = smoothed(self.delivery, rates.packets_per_sec);
            }
        }
    }

    /// Takes over the numbers of packets that have arrived and were given up, if the ACK has them.
    pub(super) fn count_arrivals(&mut self, now: Instant, arrivals: Option<AckArrivals>) {
        let Some(arrivals) = arrivals else { return };
        self.arrived = Some(arrivals.packets);
        self.arriving.count(now, arrivals.packets);
        let newest = Duration::from_micros(arrivals.latest_rtt_us.into());
        self.newest_rtt = Some(newest).filter(|rtt| !rtt.is_zero());
        if let Some(given_up) = arrivals.given_up {
            self.given_up.report(given_up);
        }
    }

    /// The packets a second that arrive at the peer; `None` if it does not report its arrivals.
    pub(super) const fn arriving(&self) -> Option<u32> {
        self.arriving.per_second()
    }

    /// The newest round trip, not smoothed; `None` if the peer does not report it.
    pub(super) const fn newest_rtt(&self) -> Option<Duration> {
        self.newest_rtt
    }

    pub(super) const fn fill_statistics(&self, statistics: &mut Statistics) {
        statistics.packets_peer_dropped = self.given_up.total;
        statistics.peer_drop_reports = self.given_up.reports;
    }

    /// The total of packets that have arrived at the peer, modulo 2^32; `None` if it does not
    /// report it.
    pub(super) fn arrived(&self) -> Option<u32> {
        self.inferred.as_ref().map_or(self.arrived, |inferred| Some(inferred.total()))
    }

    /// The original `seq` is sent.
    pub(super) fn sent_original(&mut self, now: Instant, seq: SeqNo) {
        if let Some(inferred) = &mut self.inferred {
            inferred.sent_original(now, seq);
        }
    }

    /// A retransmission is sent.
    pub(super) fn sent_retransmission(&mut self, now: Instant) {
        if let Some(inferred) = &mut self.inferred {
            inferred.sent_retransmission(now);
        }
    }

    /// The peer acknowledged all packets before `next`.
    pub(super) fn acknowledged(&mut self, now: Instant, next: SeqNo, rtt: Duration) {
        if let Some(inferred) = &mut self.inferred {
            inferred.acknowledged(now, next, rtt);
        }
    }

    /// The peer reported the packets from `first` to `last` lost. Returns the round trip that this
    /// measures.
    pub(super) fn lost(
        &mut self,
        now: Instant,
        first: SeqNo,
        last: SeqNo,
        rtt: Duration,
    ) -> Option<Duration> {
        self.inferred.as_mut()?.lost(now, first, last, rtt)
    }

    /// Whether the round trip that the peer reports counts.
    pub(super) fn needs_round_trip(&self, now: Instant) -> bool {
        self.inferred.as_ref().is_none_or(|inferred| inferred.needs_report(now))
    }

    /// Packets a second that reach the peer; 0 if unknown.
    pub(super) const fn delivery(&self) -> u32 {
        self.delivery
    }

    /// The link's capacity in packets a second; 0 if unknown.
    pub(super) const fn capacity(&self) -> u32 {
        self.capacity
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
        let mut peer = PeerRates::default();
        peer.handle_ack(6, rates(2, 1_000));
        peer.handle_ack(10, rates(5, 1_000));
        assert_eq!((peer.delivery(), peer.capacity()), (0, 1_000));
        peer.handle_ack(1, None);
        assert_eq!(peer.delivery(), 0, "a light ACK reports no rate");
        peer.handle_ack(64, rates(5_000, 1_000));
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
        let mut peer = PeerRates::default();
        peer.handle_ack(LEAST_ACKNOWLEDGED, None);
        peer.handle_ack(1, rates(1_000, 0));
        peer.handle_ack(1, rates(1_800, 0));
        assert_eq!((peer.delivery(), peer.capacity()), (1_100, 0));
        peer.handle_ack(1, rates(0, 0));
        assert_eq!(peer.delivery(), 1_100, "0 means that the peer does not know");
        peer.handle_ack(1, rates(u32::MAX, 0));
        assert_eq!(peer.delivery(), (1_100 * 7 + 8_800) / 8);
    }
}
