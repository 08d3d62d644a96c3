use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::SeqNo;

use crate::probe_pairs::PROBE_INTERVAL;

/// The number of probe pairs from which the capacity is computed.
const PAIRS: usize = 64;
/// The least number of pairs for a capacity.
const LEAST: usize = 2;
/// A pair whose gap is above this multiple of the median, or of the time between two reads of the
/// network, is left out: the sender's window closed between its packets.
const OUTLIER: u64 = 8;

/// The capacity of the link by the gaps between the packets of probe pairs (draft section 5.2.3),
/// for a receiver that reads the network from time to time.
///
/// Packets that arrive between two reads get the same instant. So the gap of a pair is zero or one
/// interval between reads, and the smaller the real gap, the more rarely a read falls into it. The
/// mean over all pairs, including those with a gap of zero, is the real gap. Without those pairs,
/// or by the median, the result would be the rate of reads.
#[derive(Debug)]
pub(super) struct ProbePairs {
    /// Gaps of the pairs in nanoseconds, scaled to a full payload. Allocated for the first pair.
    gaps: Vec<u64>,
    next: usize,
    /// The first packet of a pair whose second packet has not arrived.
    first: Option<(SeqNo, Instant)>,
}

impl ProbePairs {
    pub(super) const fn new() -> Self {
        Self { gaps: Vec::new(), next: 0, first: None }
    }

    /// A data packet arrived with `payload` bytes; a full one has `full`.
    pub(super) fn arrived(
        &mut self,
        now: Instant,
        seq: SeqNo,
        retransmitted: bool,
        payload: usize,
        full: usize,
    ) {
        let first = self.first.take();
        if retransmitted || payload == 0 {
            return;
        }
        if seq.value().is_multiple_of(PROBE_INTERVAL) {
            self.first = Some((seq, now));
        }
        let Some((_, at)) = first.filter(|&(first, _)| first.next() == seq) else { return };
        let scaled = (now - at).as_nanos() * full as u128 / payload as u128;
        let gap = u64::try_from(scaled).unwrap_or(u64::MAX).min(LONGEST);
        if self.gaps.len() < PAIRS {
            self.gaps.push(gap);
        } else {
            self.gaps[self.next] = gap;
            self.next = (self.next + 1) % PAIRS;
        }
    }

    /// The estimated capacity in packets of full size per second; 0 if unknown. `grain` is the
    /// usual time between two reads of the network.
    pub(super) fn capacity(&self, grain: Option<Duration>) -> u32 {
        let Some(grain) = grain else { return 0 };
        let grain = u64::try_from(grain.as_nanos()).unwrap_or(LONGEST).clamp(1, LONGEST);
        if self.gaps.len() < LEAST {
            return 0;
        }
        let mut gaps = self.gaps.clone();
        gaps.sort_unstable();
        let usual = gaps[(gaps.len() - 1) / 2].max(grain);
        gaps.retain(|&gap| gap <= usual * OUTLIER);
        let pairs = gaps.len() as u64;
        // If no read fell into any of the gaps, their sum is at most about one interval.
        let time = match gaps.iter().sum() {
            0 => grain,
            time => time,
        };
        let rate = u128::from(pairs) * 1_000_000_000 / u128::from(time.max(1));
        u32::try_from(rate).unwrap_or(u32::MAX)
    }
}

/// The longest gap that counts: a minute, in nanoseconds.
const LONGEST: u64 = 60_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// The capacity that a receiver computes which reads once in `grain`, of pairs that are `gap`
    /// apart; microseconds. `odd` is how often a pair is torn apart.
    fn seen(gap: u64, grain: u64, odd: u64) -> u32 {
        let mut pairs = ProbePairs::new();
        let look = |at: u64| Instant::from_nanos(at.div_ceil(grain * 1_000) * grain * 1_000);
        for i in 0..200u64 {
            // Places within a grain, one as often as another.
            let at = 1_000_000_000 + i * 20_000_000 + i * 61_803 % (grain * 1_000);
            let torn = if i % odd == odd - 1 { 15_000_000 } else { 0 };
            let seq = SeqNo::new(u32::try_from(i).expect("small") * 16);
            pairs.arrived(look(at), seq, false, 1_456, 1_456);
            pairs.arrived(look(at + gap * 1_000 + torn), seq.next(), false, 1_456, 1_456);
        }
        pairs.capacity(Some(Duration::from_micros(grain)))
    }

    #[test]
    fn the_capacity_does_not_depend_on_how_often_this_end_looks() {
        for (grain, tolerance) in [(1, 50), (50, 400), (100, 500), (300, 1_200), (1_000, 2_500)] {
            for odd in [1_000, 20] {
                let capacity = seen(120, grain, odd);
                assert!(capacity.abs_diff(8_333) < tolerance, "{capacity}, {grain} µs, {odd}");
            }
        }
    }

    #[test]
    fn pairs_that_always_come_together_tell_that_the_link_carries_much() {
        let capacity = seen(0, 100, 1_000);
        assert_eq!(capacity, 640_000, "64 of them within 100 µs at most");
    }

    #[test]
    fn a_pair_that_is_disturbed_does_not_count() {
        let (now, mut pairs) = (Instant::from_millis(1), ProbePairs::new());
        let grain = Some(Duration::from_micros(10));
        let mut came = |us: u64, seq: u32, retransmitted, payload| {
            let at = now + Duration::from_micros(us);
            pairs.arrived(at, SeqNo::new(seq), retransmitted, payload, 1_400);
            pairs.capacity(grain)
        };
        assert_eq!(came(0, 32, false, 1_400), 0);
        assert_eq!(came(50, 20, true, 1_400), 0, "something between them");
        assert_eq!(came(100, 33, false, 1_400), 0);
        assert_eq!(came(200, 48, true, 1_400), 0);
        assert_eq!(came(300, 49, false, 1_400), 0, "sent again");
        assert_eq!(came(400, 64, false, 1_400), 0);
        assert_eq!(came(500, 66, false, 1_400), 0, "the second was lost");
        assert_eq!(came(600, 80, false, 1_400), 0);
        assert_eq!(came(700, 81, false, 700), 0, "one pair is not enough");
        assert_eq!(came(800, 96, false, 700), 0);
        assert_eq!(came(900, 97, false, 700), 5_000, "half a packet takes half the time");
        assert_eq!(came(1_000, 112, false, 1_400), 5_000);
        assert_eq!(came(9_000, 113, false, 1_400), 5_000, "the window closed between them");
    }
}
