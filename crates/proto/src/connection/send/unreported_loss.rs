//! Losses that the peer does not report, because it reports each loss once: its NAK was lost, or
//! the retransmission.

use std::collections::VecDeque;
use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::SeqNo;

/// Decides when the oldest packet in flight is lost although no NAK says so, and how many packets
/// are retransmitted then.
///
/// The peer's ACK says that the oldest packet is missing. It is lost if it was sent more than a
/// round trip before. The packets behind it have most probably arrived, and only wait for it. But
/// where the lost NAK was that of a run of packets, the next ACK ends right behind the
/// retransmission; then the next one is twice as long, so that a long run takes a few round trips.
#[derive(Debug, Default)]
pub(super) struct UnreportedLoss {
    /// The next original at some instants, the earliest one first: all packets before it were sent
    /// by then.
    sent: VecDeque<(Instant, SeqNo)>,
    /// The number of packets that the last retransmission took, and the number behind them.
    run: Option<(u32, SeqNo)>,
}

impl UnreportedLoss {
    /// At `now`, all originals before `next_new` were sent, and all before `oldest` acknowledged.
    pub(super) fn sent_originals(&mut self, now: Instant, next_new: SeqNo, oldest: SeqNo) {
        if self.sent.back().is_some_and(|(last, _)| now < *last + PERIOD) {
            return;
        }
        while self.sent.front().is_some_and(|(_, next_new)| !next_new.is_after(oldest))
            || self.sent.len() == MOST
        {
            self.sent.pop_front();
        }
        self.sent.push_back((now, next_new));
    }

    /// The instant by which an original was sent; `None` if it was sent since.
    pub(super) fn sent_by(&self, seq: SeqNo) -> Option<Instant> {
        let later = self.sent.partition_point(|(_, next_new)| !seq.is_before(*next_new));
        self.sent.get(later).map(|(at, _)| *at)
    }

    /// The first and the last of the packets to retransmit, of those in flight from `oldest` to
    /// `newest`.
    pub(super) fn run(&mut self, oldest: SeqNo, newest: SeqNo) -> (SeqNo, SeqNo) {
        let in_flight = newest.distance_from(oldest).unsigned_abs() + 1;
        let packets = match self.run {
            Some((packets, end)) if end == oldest => packets.saturating_mul(2),
            _ => 1,
        };
        let packets = packets.min(in_flight);
        let end = oldest.plus(packets);
        self.run = Some((packets, end));
        (oldest, end.minus(1))
    }
}

/// The time between two instants of which the next original is remembered: short beside the round
/// trips over which the search for such losses matters.
const PERIOD: Duration = Duration::from_millis(20);
/// The most of these instants. They reach back ten seconds; an older packet counts as sent at the
/// earliest of them.
const MOST: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Instant = Instant::from_millis;

    #[test]
    fn an_original_was_sent_before_a_later_one() {
        let mut losses = UnreportedLoss::default();
        // Four packets in each millisecond.
        for ms in 1..=1_000 {
            losses.sent_originals(
                MS(ms),
                SeqNo::new(100 + 4 * u32::try_from(ms).unwrap()),
                SeqNo::new(100),
            );
        }
        for (seq, sent) in [(3_000, 725), (3_700, 900), (4_000, 975)] {
            let by = losses.sent_by(SeqNo::new(seq)).unwrap();
            assert!((MS(sent)..=MS(sent) + PERIOD).contains(&by), "{seq}: {by}");
        }
        assert_eq!(losses.sent_by(SeqNo::new(4_101)), None, "sent now");
    }

    #[test]
    fn a_lost_run_of_packets_is_retransmitted_in_runs_of_twice_the_length() {
        let mut losses = UnreportedLoss::default();
        let (mut missing, mut runs) = (SeqNo::new(500), 0);
        while missing.is_before(SeqNo::new(1_000)) {
            let (first, last) = losses.run(missing, SeqNo::new(5_000));
            assert_eq!(first, missing);
            missing = last.next();
            runs += 1;
        }
        assert_eq!(runs, 9);
        let elsewhere = SeqNo::new(3_000);
        assert_eq!(losses.run(elsewhere, SeqNo::new(5_000)), (elsewhere, elsewhere));
    }

    #[test]
    fn no_packet_is_retransmitted_that_was_not_sent() {
        let mut losses = UnreportedLoss::default();
        let newest = SeqNo::new(12);
        assert_eq!(losses.run(SeqNo::new(10), newest), (SeqNo::new(10), SeqNo::new(10)));
        assert_eq!(losses.run(SeqNo::new(11), newest), (SeqNo::new(11), newest));
    }
}
