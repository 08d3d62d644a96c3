//! The rates that the peer reports in its full ACKs, and the packets that have arrived at it.

use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::{AckArrivals, AckRates, SeqNo};

use super::inferred_arrivals::InferredArrivals;
use crate::config::{Config, Transmission};
use crate::handshake::Negotiated;

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

    /// Takes over the number of packets that have arrived, if the ACK has it.
    pub(super) fn count_arrivals(&mut self, arrivals: Option<AckArrivals>) {
        self.arrived = arrivals.map(|arrivals| arrivals.packets).or(self.arrived);
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
