//! The filter of the peer's NAKs: duplicates, and ranges that cannot be true.

use punctual_units::Instant;
use punctual_wire::{LossList, SeqNo, Timestamp};

use super::buffer::SendBuffer;
use super::nak_budget::NakBudget;
use super::sent_numbers::Reportable;

/// The number of sets of NAKs that are remembered, a power of two, and of NAKs in each. Copies of a
/// NAK follow for up to a round trip, and over 300 ms, at 50 Mb/s and 10 % of loss, 130 other NAKs
/// arrive meanwhile.
const SETS: usize = 1 << 8;
const NAKS: usize = 4;

/// The filter between the peer's NAKs and the loss list: it removes duplicates of NAKs, and ranges
/// that an honest peer does not report.
#[derive(Debug)]
pub(super) struct NakFilter {
    recent: RecentNaks,
    budget: NakBudget,
    received: u64,
}

impl NakFilter {
    pub(super) fn new(now: Instant) -> Self {
        Self { recent: RecentNaks::default(), budget: NakBudget::new(now), received: 0 }
    }

    /// Whether this NAK is the copy of another. A NAK that names packets which were never sent is
    /// not remembered.
    pub(super) fn is_duplicate(
        &mut self,
        timestamp: Timestamp,
        list: &LossList<'_>,
        buffer: &SendBuffer,
    ) -> bool {
        self.received += 1;
        let reportable = reportable(buffer);
        list.ranges().all(|range| reportable.contains_both(range))
            && self.recent.is_duplicate(timestamp, list)
    }

    /// Begins a NAK that is no duplicate, at `flight` packets in flight.
    pub(super) fn begin(&mut self, now: Instant, flight: u32) {
        self.budget.refill(now, flight);
    }

    /// The part of a range that the send buffer still covers and that the budget allows to process.
    pub(super) fn limit(
        &mut self,
        buffer: &SendBuffer,
        (first, last): (SeqNo, SeqNo),
    ) -> Option<(SeqNo, SeqNo)> {
        let reach = u32::try_from(buffer.limit()).unwrap_or(u32::MAX);
        let least = buffer.first().minus(reach);
        let first = if first.is_before(least) { least } else { first };
        if last.is_before(first) {
            return None;
        }
        // Any number of dropped packets costs one DROPREQ.
        let kept = if first.is_before(buffer.first()) { buffer.first() } else { first };
        let packets = last.distance_from(kept).max(-1) + 1;
        let taken = self.budget.take(packets.unsigned_abs().max(1));
        let lookable = kept.plus(taken).minus(1);
        (taken > 0).then(|| (first, if lookable.is_before(last) { lookable } else { last }))
    }

    /// The number of received NAKs.
    pub(super) const fn received(&self) -> u64 {
        self.received
    }
}

/// The packets that an honest peer may report lost.
pub(super) const fn reportable(buffer: &SendBuffer) -> Reportable {
    buffer.sent().before(buffer.next_new())
}

/// The latest NAKs, each known by its timestamp, its first packet and its number of ranges.
///
/// The timestamp and the first packet of a NAK decide its set, so that a look takes the same time
/// however many are remembered. There are no sets before the first NAK.
#[derive(Debug, Default)]
struct RecentNaks {
    /// The NAKs of each set, the latest one first.
    sets: Vec<[Option<Nak>; NAKS]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Nak {
    timestamp: Timestamp,
    first: SeqNo,
    ranges: u32,
}

impl RecentNaks {
    /// Whether the same NAK has arrived before: the peer sent a copy, or the network duplicated it.
    fn is_duplicate(&mut self, timestamp: Timestamp, list: &LossList<'_>) -> bool {
        let mut ranges = list.ranges();
        let Some((first, _)) = ranges.next() else { return false };
        let ranges = u32::try_from(ranges.count()).unwrap_or(u32::MAX);
        let nak = Some(Nak { timestamp, first, ranges });
        self.sets.resize(SETS, [None; NAKS]);
        let set = &mut self.sets[set_of(timestamp, first)];
        let is_known = set.contains(&nak);
        if !is_known {
            set.rotate_right(1);
            set[0] = nak;
        }
        is_known
    }
}

/// The set of a NAK, by a multiplicative hash of both numbers.
const fn set_of(timestamp: Timestamp, first: SeqNo) -> usize {
    let [timestamp, first] = [timestamp.as_micros(), first.value()];
    let mixed = timestamp.wrapping_mul(0x9E37_79B1) ^ first.wrapping_mul(0x85EB_CA77);
    (mixed >> (u32::BITS - SETS.trailing_zeros())) as usize
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use punctual_wire::LossListBuilder;

    use super::*;

    /// The buffer of a sender of the packets 0 to `packets` - 1.
    fn sent(packets: usize) -> SendBuffer {
        let mut buffer = SendBuffer::new(SeqNo::new(0), packets);
        for _ in 0..packets {
            buffer.push(Bytes::from_static(b"payload"), Instant::ORIGIN, None, true);
            buffer.take_new();
        }
        buffer
    }

    fn nak(ranges: &[(u32, u32)]) -> LossListBuilder {
        let mut list = LossListBuilder::new(100);
        for &(first, last) in ranges {
            assert!(list.push(SeqNo::new(first), SeqNo::new(last)));
        }
        list
    }

    #[test]
    fn the_copy_of_a_nak_is_a_duplicate_and_another_nak_is_not() {
        let mut filter = NakFilter::new(Instant::ORIGIN);
        let buffer = sent(100);
        let (list, other) = (nak(&[(5, 7), (9, 9)]), nak(&[(5, 7)]));
        let [at, later] = [7, 8].map(Timestamp::from_micros);
        assert!(!filter.is_duplicate(at, &list.as_list(), &buffer));
        assert!(filter.is_duplicate(at, &list.as_list(), &buffer));
        assert!(!filter.is_duplicate(later, &list.as_list(), &buffer));
        assert!(!filter.is_duplicate(at, &other.as_list(), &buffer));
        assert_eq!(filter.received(), 4);
    }

    #[test]
    fn a_copy_is_recognised_although_a_hundred_naks_came_in_between() {
        let mut filter = NakFilter::new(Instant::ORIGIN);
        let buffer = sent(100_000);
        let mut is_duplicate = |n: u32| {
            let list = nak(&[(10 * n, 10 * n)]);
            filter.is_duplicate(Timestamp::from_micros(2_400 * n), &list.as_list(), &buffer)
        };
        // The copies of each NAK follow 66 and 130 NAKs later.
        let mut copies = 0;
        for n in 0..2_000 {
            assert!(!is_duplicate(n), "a new NAK");
            copies += usize::from(n >= 66 && is_duplicate(n - 66));
            copies += usize::from(n >= 130 && is_duplicate(n - 130));
        }
        assert!(copies > 3_750, "{copies} of 3804 copies");
    }

    #[test]
    fn a_nak_for_packets_that_were_never_sent_is_not_remembered() {
        let mut filter = NakFilter::new(Instant::ORIGIN);
        let buffer = sent(100);
        for range in [
            (5, 200),
            (5, 5 + (1 << 30)),
            (SeqNo::new(50).minus(1 << 29).value(), 50),
            (1 << 30, 1 << 30),
        ] {
            let list = nak(&[range]);
            let reported = list.as_list().ranges().next().unwrap();
            assert!(!reportable(&buffer).contains_both(reported), "{range:?}");
            for _ in 0..2 {
                let at = Timestamp::from_micros(7);
                assert!(!filter.is_duplicate(at, &list.as_list(), &buffer), "{range:?}");
            }
        }
    }

    #[test]
    fn ranges_reach_no_farther_back_than_the_send_buffer() {
        let mut buffer = SendBuffer::new(SeqNo::new(1_000), 50);
        for _ in 0..10 {
            buffer.push(Bytes::from_static(b"payload"), Instant::ORIGIN, None, true);
            buffer.take_new();
        }
        let mut filter = NakFilter::new(Instant::ORIGIN);
        filter.begin(Instant::ORIGIN, 10);
        let limited = filter.limit(&buffer, (SeqNo::new(10), SeqNo::new(1_004)));
        assert_eq!(limited, Some((SeqNo::new(950), SeqNo::new(1_004))));
        assert_eq!(filter.limit(&buffer, (SeqNo::new(10), SeqNo::new(20))), None);
    }
}
