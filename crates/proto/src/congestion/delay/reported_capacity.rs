//! The capacity that the receiver reports while the slow start looks for the link's rate.

use std::time::Duration;

use punctual_units::Instant;

use super::start::round_time;

/// The capacity from the packet pairs of the receiver (draft section 5.2.1.1), packets per second.
#[derive(Debug, Default)]
pub(super) struct ReportedCapacity {
    /// The capacity, and since when it has been about that.
    value: Option<(f64, Instant)>,
    /// When the window first waited for a steady capacity.
    waits_since: Option<Instant>,
}

/// The reported capacity, packets per second, and whether the window may rely on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Capacity {
    /// There is no report yet, or packets arrive faster: libsrt reports no capacity while its ACK
    /// waits for a lost packet.
    Unknown,
    /// The report still moves, as that of libsrt does, which approaches the capacity from below.
    Moving(f64),
    /// It has been steady for a round trip.
    Steady(f64),
}

/// The number of arrivals after which the capacity counts. It is the median over packet pairs, one
/// of 16 packets each; libsrt's covers 64 pairs and begins with 64 of a thousand packets a second.
const CAPACITY_SAMPLE: u64 = 1_024;
/// A capacity that moves by less than this share in a round trip is steady.
const STEADY: f64 = 0.125;
/// Packets that arrive faster than the reported capacity by more than this share contradict it.
/// libsrt's report is some 10 % too low in its first second.
const TOLERANCE: f64 = 0.25;
/// The most rounds for which the window waits for a steady capacity.
const MOST_WAIT: u32 = 5;

impl ReportedCapacity {
    /// Takes in a report of `reported` packets per second, after `arrived` arrivals, which come at
    /// `rate` now, over a path with the round trip `base`.
    pub(super) fn follow(
        &mut self,
        now: Instant,
        base: Duration,
        reported: u32,
        arrived: u64,
        rate: f64,
    ) -> Capacity {
        let reported = f64::from(reported);
        let before = self.value.filter(|(value, _)| (reported - value).abs() < STEADY * value);
        let (_, since) = *self.value.insert(before.unwrap_or((reported, now)));
        let is_known = reported > 0.0 && arrived >= CAPACITY_SAMPLE;
        if !is_known || rate > reported * (1.0 + TOLERANCE) {
            Capacity::Unknown
        } else if now >= since + round_time(base) {
            Capacity::Steady(reported)
        } else {
            Capacity::Moving(reported)
        }
    }

    /// Whether the window, which has reached that of a capacity that still moves, waits for it.
    pub(super) fn waits(&mut self, now: Instant, base: Duration) -> bool {
        let since = *self.waits_since.get_or_insert(now);
        now < since + round_time(base) * MOST_WAIT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Duration = Duration::from_millis(100);

    #[test]
    fn a_capacity_counts_when_it_was_steady_for_a_round_trip() {
        let mut capacity = ReportedCapacity::default();
        let mut known = |ms, reported, arrived, rate| {
            capacity.follow(Instant::from_millis(ms), BASE, reported, arrived, rate)
        };
        assert_eq!(known(1_000, 1_000, 500, 500.0), Capacity::Unknown);
        assert_eq!(known(1_100, 1_000, 1_000, 900.0), Capacity::Unknown, "too few pairs");
        assert_eq!(known(1_200, 1_000, 2_000, 2_000.0), Capacity::Unknown, "too low");
        assert_eq!(known(1_300, 5_000, 3_000, 2_000.0), Capacity::Moving(5_000.0));
        assert_eq!(known(1_399, 5_100, 3_500, 2_000.0), Capacity::Moving(5_100.0));
        assert_eq!(known(1_400, 4_900, 4_000, 6_000.0), Capacity::Steady(4_900.0), "a bit too low");
        assert_eq!(known(1_500, 8_000, 4_500, 2_000.0), Capacity::Moving(8_000.0));
    }

    #[test]
    fn the_window_waits_five_round_trips_for_a_steady_capacity() {
        let mut capacity = ReportedCapacity::default();
        let waits = [1_000, 1_400, 1_499, 1_500, 1_600]
            .map(|ms| capacity.waits(Instant::from_millis(ms), BASE));
        assert_eq!(waits, [true, true, true, false, false]);
    }
}
