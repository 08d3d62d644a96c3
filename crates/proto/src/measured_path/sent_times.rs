use std::collections::VecDeque;
use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::SeqNo;

/// When originals were sent, to a millisecond.
#[derive(Debug, Default)]
pub(super) struct SentTimes {
    /// Instants, and the next original then; at most one each millisecond, the earliest one first.
    originals: VecDeque<(Instant, SeqNo)>,
    /// The instant from which the next original gets an entry.
    next_entry: Instant,
}

/// The time between two entries of the histories.
pub(super) const GRAIN: Duration = Duration::from_millis(1);
/// The most entries of a history: eight seconds.
pub(super) const HISTORY: usize = 8_192;

impl SentTimes {
    /// The original `seq` is sent.
    #[inline]
    pub(super) fn sent(&mut self, now: Instant, seq: SeqNo) {
        if now >= self.next_entry {
            self.add(now, seq);
        }
    }

    #[inline(never)]
    fn add(&mut self, now: Instant, seq: SeqNo) {
        if self.originals.len() == HISTORY {
            self.originals.pop_front();
        }
        self.originals.push_back((now, seq));
        self.next_entry = now + GRAIN;
    }

    /// The instant, to a millisecond, at which an original was sent; `None` if it was not, or is
    /// forgotten.
    pub(super) fn of(&self, seq: SeqNo) -> Option<Instant> {
        let later = self.originals.partition_point(|(_, first)| !first.is_after(seq));
        Some(self.originals.get(later.checked_sub(1)?)?.0)
    }

    /// The instant at which an original was sent, as if all between two entries had been sent at
    /// equal distances within a millisecond; otherwise as [`of`](Self::of).
    pub(super) fn closely(&self, seq: SeqNo) -> Option<Instant> {
        let later = self.originals.partition_point(|(_, first)| !first.is_after(seq));
        let &(at, first) = self.originals.get(later.checked_sub(1)?)?;
        let Some(&(next_at, next)) = self.originals.get(later) else { return Some(at) };
        let packets = next.distance_from(first).unsigned_abs().max(1);
        Some(at + (next_at - at).min(GRAIN) * seq.distance_from(first).unsigned_abs() / packets)
    }

    /// The next original at the last entry that is not after this instant.
    pub(super) fn next_at(&self, at: Instant) -> Option<SeqNo> {
        let later = self.originals.partition_point(|&(sent, _)| sent <= at);
        Some(self.originals.get(later.checked_sub(1)?)?.1)
    }

    /// Forgets the originals before `seq`.
    pub(super) fn forget_before(&mut self, seq: SeqNo) {
        while self.originals.get(1).is_some_and(|(_, first)| !first.is_after(seq)) {
            self.originals.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> Instant = |us| Instant::from_nanos(1_000_000_000 + us * 1_000);

    #[test]
    fn an_original_was_sent_between_two_entries_and_within_a_millisecond() {
        let mut times = SentTimes::default();
        for packet in 0..20_u32 {
            times.sent(AT(u64::from(packet) * 250), SeqNo::new(1_000 + packet));
        }
        // A burst, and a pause.
        for packet in 20..30 {
            times.sent(AT(10_000), SeqNo::new(1_000 + packet));
        }
        times.sent(AT(50_000), SeqNo::new(1_030));
        let of = |seq| (times.of(SeqNo::new(seq)), times.closely(SeqNo::new(seq)));
        assert_eq!(of(1_006), (Some(AT(1_000)), Some(AT(1_500))));
        assert_eq!(of(1_025), (Some(AT(10_000)), Some(AT(10_500))));
        assert_eq!(of(1_030), (Some(AT(50_000)), Some(AT(50_000))));
        assert_eq!(of(999), (None, None));
        assert_eq!(times.next_at(AT(9_999)), Some(SeqNo::new(1_016)));
        times.forget_before(SeqNo::new(1_009));
        let of = |seq| times.of(SeqNo::new(seq));
        assert_eq!([of(1_007), of(1_009)], [None, Some(AT(2_000))]);
    }
}
