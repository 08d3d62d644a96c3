//! The times of bytes in a segment by its index, for streams that have no clock of their own.

use std::time::Duration;

use punctual_units::UtcTime;

use crate::index::{Discontinuity, Index};

/// The times of a segment's bytes since its start. Between two entries of the index the bytes are
/// evenly spaced; gaps are left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByteClock {
    /// Places with their times, ascending.
    places: Vec<(u64, Duration)>,
}

impl ByteClock {
    /// The clock of a segment with this index.
    pub(crate) fn new(index: &Index) -> Self {
        let mut places = vec![(index.head.tables, Duration::ZERO)];
        let mut latest = index.head.time;
        let mut add = |time: UtcTime, byte: u64, most: Duration| {
            let (last_byte, last) = places[places.len() - 1];
            if byte > last_byte {
                places.push((byte, last + time.since(latest).min(most)));
            }
            latest = latest.max(time);
        };
        for entry in &index.entries {
            let is_gap =
                matches!(entry.discontinuity, Some(Discontinuity::Gap | Discontinuity::Source));
            add(entry.time, entry.byte, if is_gap { GAP } else { Duration::MAX });
        }
        if let Some(tail) = &index.tail {
            add(tail.end, tail.bytes, Duration::MAX);
        }
        Self { places }
    }

    /// The time of a byte. After the last place the rate before it holds.
    pub(crate) fn at(&self, byte: u64) -> Duration {
        let after = self.places.partition_point(|(place, _)| *place <= byte);
        let from = after.saturating_sub(1).min(self.places.len().saturating_sub(2));
        let [(first, start), (second, end)] = match self.places.get(from..from + 2) {
            Some(&[first, second]) => [first, second],
            _ => return Duration::ZERO,
        };
        let bytes = byte.saturating_sub(first);
        let nanos = (end.saturating_sub(start)).as_nanos() * u128::from(bytes);
        let nanos = nanos / u128::from(second - first);
        start + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// The most time that a gap takes.
const GAP: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{IndexEntry, IndexHead, Tail};

    fn time(ms: u64) -> UtcTime {
        UtcTime::from_micros(ms * 1_000)
    }

    fn entry(ms: u64, byte: u64, discontinuity: Option<Discontinuity>) -> IndexEntry {
        IndexEntry { time: time(ms), byte, pts: None, random_access: false, discontinuity }
    }

    #[test]
    fn bytes_are_evenly_spaced_between_entries_and_gaps_are_short() {
        let entries = vec![
            entry(10_000, 100, None),
            entry(11_000, 1_100, None),
            entry(31_000, 1_200, Some(Discontinuity::Gap)),
            entry(32_000, 1_300, None),
        ];
        let head = IndexHead::first("a", time(10_000), 100);
        let tail = Some(Tail { end: time(33_000), bytes: 2_300, recovered: false });
        let mut index = Index { head, entries, tail, len: 0 };
        let ms = |clock: &ByteClock, byte| clock.at(byte).as_millis();
        let clock = ByteClock::new(&index);
        let at = [0, 100, 600, 1_100, 1_200, 1_250, 2_300].map(|byte| ms(&clock, byte));
        assert_eq!(at, [0, 0, 500, 1_000, 2_000, 2_500, 4_000]);
        index.tail = None;
        assert_eq!(ms(&ByteClock::new(&index), 1_400), 4_000);
        index.entries.clear();
        assert_eq!(ms(&ByteClock::new(&index), 1_400), 0);
    }
}
