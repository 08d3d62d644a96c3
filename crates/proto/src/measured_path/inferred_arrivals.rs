//! The arrivals at a peer that does not count them, as its ACKs and NAKs show them.

use std::collections::VecDeque;
use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::SeqNo;

use super::sent_times::{GRAIN, HISTORY, SentTimes};
use crate::report_times::ACK_PERIOD;

/// The packets that have arrived at a peer of another implementation, and the round trips that its
/// NAKs measure.
///
/// A peer sends a NAK when the packet behind a gap arrives. So the NAK says that this packet and
/// all before it have arrived, except the lost ones, while the ACK waits at the oldest gap; and it
/// measures a round trip without the delay of an ACK, which is sent each 10 ms. An ACK says the
/// same about the packets before it.
///
/// Between two NAKs, an original that was sent more than a round trip ago counts as arrived, since
/// its loss would have been reported. So does a retransmission: the ACK tells that too late, and
/// for many at once.
///
/// The receiver of a live stream sends an ACK each 10 ms, or at once. So an ACK that comes further
/// than the reports before measures a round trip, with the delay of the ACK. It confirms no
/// retransmission: its last packet is beyond all lost ones.
#[derive(Debug)]
pub(super) struct InferredArrivals {
    sent: SentTimes,
    /// The originals before it have arrived or were reported lost, by the peer's reports.
    confirmed: SeqNo,
    /// The originals before it count as arrived, unless they were reported lost.
    known: SeqNo,
    /// Packets that counted as arrived and were reported lost afterwards.
    overcounted: u32,
    /// Retransmissions that were sent less than a round trip ago.
    retransmissions: VecDeque<(Instant, u32)>,
    /// The packets that have arrived, modulo 2^32.
    total: u32,
    /// The last round trip that a NAK measured, and when.
    measured: Option<(Instant, Duration)>,
    /// Whether ACKs measure round trips.
    times_acks: bool,
}

/// The time after a measured round trip in which the peer's own report does not count: it is
/// smoothed over some 80 ms, and repeated while the ACK waits.
const FRESH: Duration = Duration::from_millis(250);

impl InferredArrivals {
    /// Of a connection that sends its first packet with the number `isn`.
    pub(super) fn new(isn: SeqNo, times_acks: bool) -> Self {
        Self {
            sent: SentTimes::default(),
            confirmed: isn,
            known: isn,
            overcounted: 0,
            retransmissions: VecDeque::new(),
            total: 0,
            measured: None,
            times_acks,
        }
    }

    /// The original `seq` is sent.
    pub(super) fn sent_original(&mut self, now: Instant, seq: SeqNo) {
        self.sent.sent(now, seq);
    }

    /// A retransmission is sent.
    pub(super) fn sent_retransmission(&mut self, now: Instant) {
        let is_full = self.retransmissions.len() == HISTORY;
        match self.retransmissions.back_mut() {
            Some((at, packets)) if is_full || now < *at + GRAIN => *packets += 1,
            _ => self.retransmissions.push_back((now, 1)),
        }
    }

    /// The peer acknowledged all packets before `next`; a round trip takes `rtt`, unless a NAK has
    /// measured it. Returns the round trip of the last one of these packets, if ACKs measure it.
    pub(super) fn acknowledged(
        &mut self,
        now: Instant,
        next: SeqNo,
        rtt: Duration,
    ) -> Option<Duration> {
        let measures = self.times_acks && next.is_after(self.confirmed);
        let sent = if measures { self.sent.closely(next.minus(1)) } else { None };
        self.confirm(next);
        self.pass_round_trip(now, rtt);
        sent.map(|sent| now - sent)
    }

    /// The peer reported the packets from `first` to `last` lost; a round trip takes `rtt`, unless
    /// a NAK has measured it. Returns the round trip of the packet behind them, if they were not
    /// reported before.
    pub(super) fn lost(
        &mut self,
        now: Instant,
        first: SeqNo,
        last: SeqNo,
        rtt: Duration,
    ) -> Option<Duration> {
        if last.is_before(self.confirmed) {
            self.pass_round_trip(now, rtt);
            return None;
        }
        self.confirm(first);
        let behind = last.next();
        let first_unknown = if first.is_before(self.known) { self.known } else { first };
        let counted = first_unknown.distance_from(first).min(behind.distance_from(first));
        self.overcounted += counted.unsigned_abs();
        self.confirmed = behind;
        self.known = if self.known.is_before(behind) { behind } else { self.known };
        let sent = self.sent.of(behind);
        if sent.is_some() {
            self.confirm(behind.next());
        }
        self.measured = sent.map(|sent| (now, now - sent)).or(self.measured);
        self.pass_round_trip(now, rtt);
        sent.map(|sent| now - sent)
    }

    /// Whether the peer's own report of the round trip says more than its ACKs and NAKs do.
    pub(super) fn needs_report(&self, now: Instant) -> bool {
        !self.times_acks && self.fresh_round_trip(now).is_none()
    }

    /// The packets that have arrived, modulo 2^32.
    pub(super) const fn total(&self) -> u32 {
        self.total
    }

    fn fresh_round_trip(&self, now: Instant) -> Option<Duration> {
        self.measured.filter(|&(at, _)| now <= at + FRESH).map(|(_, rtt)| rtt)
    }

    /// By the peer's report, all originals before `next` have arrived that were not reported lost.
    fn confirm(&mut self, next: SeqNo) {
        if next.is_after(self.confirmed) {
            self.confirmed = next;
            self.know(next);
            self.sent.forget_before(next);
        }
    }

    /// All originals before `next` count as arrived that were not reported lost.
    fn know(&mut self, next: SeqNo) {
        if next.is_after(self.known) {
            self.arrive(next.distance_from(self.known).unsigned_abs());
            self.known = next;
        }
    }

    fn arrive(&mut self, packets: u32) {
        let counted = self.overcounted.min(packets);
        self.overcounted -= counted;
        self.total = self.total.wrapping_add(packets - counted);
    }

    /// Counts the packets whose loss would have been reported by now.
    fn pass_round_trip(&mut self, now: Instant, rtt: Duration) {
        let measured = self.fresh_round_trip(now);
        if let Some(rtt) = measured {
            let next = self.sent.next_at(now.saturating_sub(rtt + ACK_PERIOD));
            next.into_iter().for_each(|next| self.know(next));
        }
        let rtt = measured.unwrap_or(rtt);
        while let Some(&(at, packets)) = self.retransmissions.front()
            && at + rtt <= now
        {
            self.arrive(packets);
            self.retransmissions.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> Instant = Instant::from_millis;
    const MS: fn(u64) -> Duration = Duration::from_millis;
    const SEQ: fn(u32) -> SeqNo = SeqNo::new;
    /// The round trip of the peer's reports.
    const RTT: Duration = Duration::from_millis(100);

    /// Four packets in each millisecond, from number 1,000 in millisecond 1,000 on, for this time.
    fn sending(millis: u64) -> InferredArrivals {
        let mut arrivals = InferredArrivals::new(SEQ(1_000), false);
        for ms in 0..millis {
            for packet in 0..4 {
                let seq = 1_000 + 4 * u32::try_from(ms).unwrap() + packet;
                arrivals.sent_original(AT(1_000 + ms), SEQ(seq));
            }
        }
        arrivals
    }

    #[test]
    fn an_ack_and_a_nak_say_what_has_arrived() {
        let mut arrivals = sending(200);
        arrivals.acknowledged(AT(1_100), SEQ(1_040), RTT);
        assert_eq!(arrivals.total(), 40);
        // The packet behind the lost ones, 1,083, was sent 20 ms after the first one.
        let measured = arrivals.lost(AT(1_121), SEQ(1_080), SEQ(1_082), RTT);
        assert_eq!((measured, arrivals.total()), (Some(MS(101)), 40 + 40 + 1));
        assert_eq!(arrivals.lost(AT(1_131), SEQ(1_080), SEQ(1_082), RTT), None, "a repetition");
        arrivals.acknowledged(AT(1_131), SEQ(1_080), RTT);
        assert_eq!(arrivals.total(), 81, "the ACK waits");
    }

    #[test]
    fn after_a_round_trip_a_packet_counts_unless_it_is_reported_lost() {
        let mut arrivals = sending(200);
        arrivals.lost(AT(1_101), SEQ(1_004), SEQ(1_004), RTT);
        assert_eq!((arrivals.total(), arrivals.needs_report(AT(1_150))), (5, false));
        // Those of the first 40 ms but for one: a round trip and the period of ACKs ago.
        arrivals.acknowledged(AT(1_150), SEQ(1_004), RTT);
        assert_eq!(arrivals.total(), 4 * 40 - 1);
        // Two of these were lost, as a NAK says that took 25 ms longer.
        assert_eq!(arrivals.lost(AT(1_150), SEQ(1_100), SEQ(1_101), RTT), Some(MS(125)));
        arrivals.acknowledged(AT(1_180), SEQ(1_004), RTT);
        assert_eq!(arrivals.total(), 4 * 45 - 3);
        assert!(arrivals.needs_report(AT(1_500)));
    }

    #[test]
    fn a_retransmission_counts_after_a_round_trip() {
        let mut arrivals = sending(10);
        for _ in 0..3 {
            arrivals.sent_retransmission(AT(1_100));
        }
        arrivals.acknowledged(AT(1_199), SEQ(1_000), RTT);
        assert_eq!(arrivals.total(), 0);
        arrivals.acknowledged(AT(1_200), SEQ(1_000), RTT);
        assert_eq!(arrivals.total(), 3);
    }

    #[test]
    fn a_nak_for_packets_that_were_not_sent_measures_nothing() {
        let mut arrivals = InferredArrivals::new(SEQ(1_000), false);
        assert_eq!(arrivals.lost(AT(1_000), SEQ(1_000), SEQ(1_010), RTT), None);
        assert_eq!(arrivals.total(), 0);
    }
}
