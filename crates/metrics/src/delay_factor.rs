/// Time-Stamped Delay Factor (TS-DF) of EBU TECH 3337, µs, on the monotonic clocks of both ends.
///
/// The first payload of a period is the reference. Each has a relative transit time
/// D(i) = (R(i) − R(0)) − (S(i) − S(0)), and TS-DF is the largest less the smallest: how long a
/// buffer must be to smooth the arrivals of the period. Unlike
/// [`InterarrivalJitter`](crate::InterarrivalJitter) it is not smoothed: one late payload shows.
/// The EBU recommends periods of one second.
///
/// The reference has a part in it, with D(0) = 0, as in the EBU's own analyser. srt-xtransmit
/// leaves it out: it misses a reference that came early or late, and prints an overflowed number
/// for a period with one payload, where this gives zero.
#[derive(Clone, Debug, Default)]
pub struct DelayFactor {
    /// Of the period so far: transit times, whose differences are those of relative ones.
    transit_us: Option<(i64, i64)>,
}

impl DelayFactor {
    /// Takes in a payload sent at `sent_us` by the sender's monotonic clock and received at
    /// `received_us` by the receiver's.
    pub fn submit(&mut self, sent_us: i64, received_us: i64) {
        let transit = received_us.saturating_sub(sent_us);
        let (min, max) = self.transit_us.unwrap_or((transit, transit));
        self.transit_us = Some((min.min(transit), max.max(transit)));
    }

    /// TS-DF of this period, µs; `None` if nothing arrived.
    pub fn delay_factor_us(&self) -> Option<u64> {
        self.transit_us.map(|(min, max)| max.abs_diff(min))
    }

    /// Begins the next period: its first payload is the new reference.
    pub fn begin_period(&mut self) {
        self.transit_us = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_example() {
        let mut factor = DelayFactor::default();
        // Sent every 1000 µs; D = 0, +300, -200, +100.
        factor.submit(10_000, 50_000);
        factor.submit(11_000, 51_300);
        factor.submit(12_000, 51_800);
        factor.submit(13_000, 53_100);
        assert_eq!(factor.delay_factor_us(), Some(500));
    }

    #[test]
    fn the_reference_has_a_part_in_it() {
        let mut factor = DelayFactor::default();
        // D = 0, +300, +250: the reference came early.
        factor.submit(0, 40_000);
        factor.submit(1_000, 41_300);
        factor.submit(2_000, 42_250);
        assert_eq!(factor.delay_factor_us(), Some(300));
    }

    #[test]
    fn periods_are_apart() {
        let mut factor = DelayFactor::default();
        assert_eq!(factor.delay_factor_us(), None);
        factor.submit(0, 40_000);
        assert_eq!(factor.delay_factor_us(), Some(0));
        factor.begin_period();
        assert_eq!(factor.delay_factor_us(), None);
        factor.submit(1_000, 61_000);
        assert_eq!(factor.delay_factor_us(), Some(0));
    }

    #[test]
    fn absurd_stamps_saturate() {
        let mut factor = DelayFactor::default();
        factor.submit(i64::MIN, i64::MAX);
        factor.submit(i64::MAX, i64::MIN);
        assert_eq!(factor.delay_factor_us(), Some(u64::MAX));
    }
}
