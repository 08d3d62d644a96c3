//! Which segments are removed: a decision without a disk or a clock.

use std::time::Duration;

use punctual_units::UtcTime;

/// How long, and how much, the recordings of a stream are kept. Without limits nothing is removed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Retention {
    /// Segments that ended longer ago are removed.
    pub delete_after: Option<Duration>,
    /// The oldest segments are removed until all of the stream's, the open one too, have at most
    /// this number of bytes.
    pub max_bytes: Option<u64>,
}

/// A segment, as far as retention is about it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct KeptSegment {
    pub(crate) bytes: u64,
    /// `None` while it is written: such a segment is never removed.
    pub(crate) end: Option<UtcTime>,
}

impl Retention {
    /// The places of the segments that are to be removed, of `segments` from the oldest to the
    /// latest.
    pub(crate) fn surplus(&self, segments: &[KeptSegment], now: UtcTime) -> Vec<usize> {
        let mut bytes: u64 = segments.iter().map(|segment| segment.bytes).sum();
        let mut surplus = Vec::new();
        for (place, segment) in segments.iter().enumerate() {
            let Some(end) = segment.end else { continue };
            let is_old = self.delete_after.is_some_and(|most| now.since(end) > most);
            let is_too_much = self.max_bytes.is_some_and(|most| bytes > most);
            if is_old || is_too_much {
                bytes -= segment.bytes;
                surplus.push(place);
            }
        }
        surplus
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn time(seconds: u64) -> UtcTime {
        UtcTime::from_micros(seconds * 1_000_000)
    }

    fn segment(bytes: u64, end: u64) -> KeptSegment {
        KeptSegment { bytes, end: Some(time(end)) }
    }

    #[test]
    fn old_segments_are_removed_by_their_end() {
        let by_age = Retention { delete_after: Some(Duration::from_secs(60)), max_bytes: None };
        let segments = [segment(1, 100), segment(1, 140), segment(1, 141)];
        assert_eq!(by_age.surplus(&segments, time(200)), [0]);
        assert_eq!(by_age.surplus(&segments, time(201)), [0, 1]);
        assert_eq!(by_age.surplus(&segments, time(50)), [0; 0], "a clock that was set back");
        assert_eq!(Retention::default().surplus(&segments, time(9_999)), [0; 0]);
    }

    #[test]
    fn the_oldest_segments_are_removed_until_the_bytes_fit() {
        let by_bytes = Retention { delete_after: None, max_bytes: Some(100) };
        let segments = [segment(50, 1), segment(50, 2), segment(50, 3)];
        assert_eq!(by_bytes.surplus(&segments, time(9)), [0]);
        assert_eq!(by_bytes.surplus(&segments[1..], time(9)), [0; 0]);
    }

    proptest! {
        #[test]
        fn the_open_segment_stays_and_no_more_is_removed_than_needed(
            sizes in proptest::collection::vec(0_u64..100, 0..20),
            open in proptest::option::of(0_usize..20),
            most in 0_u64..500,
        ) {
            let kept = |(place, &bytes): (usize, &u64)| KeptSegment {
                bytes,
                end: (Some(place) != open).then_some(time(place as u64)),
            };
            let segments: Vec<_> = sizes.iter().enumerate().map(kept).collect();
            let retention = Retention { delete_after: None, max_bytes: Some(most) };
            let surplus = retention.surplus(&segments, time(99));
            prop_assert!(surplus.iter().all(|place| Some(*place) != open));
            let all: u64 = sizes.iter().sum();
            let gone: u64 = surplus.iter().map(|place| sizes[*place]).sum();
            let open_bytes = open.and_then(|place| sizes.get(place)).copied().unwrap_or(0);
            prop_assert!(all - gone <= most.max(open_bytes));
            if let Some(last) = surplus.last() {
                prop_assert!(all - gone + sizes[*last] > most);
            }
        }
    }
}
