//! The retransmission timeout: what is sent again when the peer has not answered for too long.

use punctual_rtt::Rtt;
use punctual_units::Instant;
use punctual_wire::SeqNo;

use super::SendHalf;
use super::buffer::BufferedPacket;
use super::mode::LossRecovery;

/// The number of packets that are retransmitted to probe the end of a paused stream. For a receiver
/// a large gap counts when a second packet confirms it.
const TAIL_PROBES: usize = 2;

/// Queues what a retransmission timeout at `now` repeats.
#[derive(Debug)]
pub(super) struct Timeout<'a> {
    half: &'a mut SendHalf,
    now: Instant,
    rtt: Rtt,
}

impl<'a> Timeout<'a> {
    pub(super) const fn new(half: &'a mut SendHalf, now: Instant, rtt: Rtt) -> Self {
        Self { half, now, rtt }
    }

    /// If the peer does not repeat its NAKs, all packets in flight count as lost, and dropped
    /// packets are announced again. Otherwise the stream has paused, and the newest packets count
    /// as lost: no packet after them would show the peer that they are missing. libsrt loses the
    /// end of a stream in this way.
    ///
    /// Of a file, no packet is added while reported ones still wait for their retransmission
    /// (libsrt's LATEREXMIT). A timeout repeats only the packets that are probably missing if a
    /// peer that reports each loss once still answers, and the first timeout does if the oldest
    /// packet was retransmitted already: most packets in flight have arrived, and wait for the
    /// oldest one.
    pub(super) fn handle(mut self) {
        let answers = self.half.timer.has_response();
        let is_first = self.half.timer.expire(self.now);
        let reliable = self.half.mode.delivery.is_reliable();
        let has_lost = self.half.buffer.has_lost();
        let was_retransmitted = reliable && self.half.buffer.repairs_of_oldest() > 0;
        if self.half.finds_unreported_losses() && answers && !has_lost {
            self.repeat_oldest();
        } else if was_retransmitted && is_first && !has_lost {
            self.repeat_retransmissions();
        } else if !(reliable && has_lost) {
            self.repeat_flight(is_first);
        }
    }

    /// Queues all packets in flight, or the newest ones of them. `is_first` says whether it is the
    /// first timeout since more was acknowledged.
    fn repeat_flight(&mut self, is_first: bool) {
        let reliable = self.half.mode.delivery.is_reliable();
        let last = self.half.buffer.next_new().minus(1);
        if reliable {
            self.announce_dropped();
        }
        // A peer that has not reported its losses after the first timeout may never do so, for
        // example while it hopes for its packet filter. A file must not wait for ever.
        let all = self.half.mode.recovery == LossRecovery::Timeout || reliable && !is_first;
        let first = match all {
            true => self.half.flow.acknowledged(),
            false => self.half.buffer.tail_of_flight(TAIL_PROBES),
        };
        self.repeat(first, last);
        self.half.timer.probe(first, last);
    }

    /// Announces the dropped packets for which the peer waits: while its buffer is full, no packet
    /// behind them can make it report them.
    fn announce_dropped(&mut self) {
        let (first, end) = (self.half.flow.acknowledged(), self.half.buffer.first());
        if first.is_before(end) {
            let (now, round_trip) = (self.now, self.rtt.smoothed);
            self.half.drop_requests.asked(now, first, end.minus(1), round_trip);
        }
    }

    /// Queues the oldest packets, and the newest ones: perhaps no packet after those has arrived.
    /// Also queues the packets between them whose last retransmission was more than a round trip
    /// ago: if more retransmissions were lost, the ACK would show only one in each round trip.
    fn repeat_oldest(&mut self) {
        self.repeat_old_retransmissions();
        let SendHalf { buffer, timer, .. } = &mut *self.half;
        let newest = buffer.next_new().minus(1);
        let (first, last) = timer.unreported_run(buffer.first(), newest);
        self.repeat(first, last);
        self.repeat(self.half.buffer.tail_of_flight(TAIL_PROBES), newest);
    }

    /// Queues the packets whose last retransmission is not acknowledged for more than a round trip.
    fn repeat_old_retransmissions(&mut self) {
        let (now, round_trip) = (self.now, self.rtt.bound());
        self.repeat_each(|_, packet| {
            let last = packet.and_then(|packet| packet.last_retransmit);
            last.is_some_and(|at| at + round_trip <= now)
        });
    }

    /// Queues the packets that were retransmitted already, and the newest ones: a retransmission
    /// was lost, and perhaps no packet after the newest ones has arrived.
    fn repeat_retransmissions(&mut self) {
        self.announce_dropped();
        let tail = self.half.buffer.tail_of_flight(TAIL_PROBES);
        self.repeat_each(|seq, packet| {
            packet.is_none_or(|packet| packet.retransmissions > 0) || !seq.is_before(tail)
        });
    }

    /// Queues the packets in flight that are missing by their number and contents, which are `None`
    /// for a dropped packet between others. Those before the oldest packet of the buffer may be
    /// many: a peer need not acknowledge messages that have expired.
    fn repeat_each(&mut self, is_missing: impl Fn(SeqNo, Option<&BufferedPacket>) -> bool) {
        let mut seq = self.half.buffer.first();
        while seq.is_before(self.half.buffer.next_new()) {
            if is_missing(seq, self.half.buffer.get(seq)) {
                self.repeat(seq, seq);
            }
            seq = seq.next();
        }
    }

    fn repeat(&mut self, first: SeqNo, last: SeqNo) {
        self.half.report_lost(self.now, first, last, self.rtt);
    }
}
