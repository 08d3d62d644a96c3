/// Transmission delay: the receiver's system clock at arrival less the sender's at sending, µs.
///
/// It is the one-way delay of RFC 7679. Two machines' clocks must be synchronised for it to be one;
/// otherwise it has a constant error, may be negative, and shows changes only. Of a duplicated
/// payload the first copy alone counts, as there; the caller leaves the others out.
///
/// Minimum and maximum are of one period. The average is smoothed over the whole run with a weight
/// of 1/16 a sample. srt-xtransmit rounds that average down to a microsecond at each sample, which
/// pulls it up to 15 µs below a constant latency; here it keeps four more bits.
#[derive(Clone, Debug, Default)]
pub struct TransmissionDelay {
    min_us: Option<i64>,
    max_us: Option<i64>,
    /// Sixteen times the average, so that the division at each sample loses nothing that matters.
    average_16_us: Option<i64>,
}

impl TransmissionDelay {
    /// Takes in a payload sent at `sent_us` and received at `received_us`, by system clocks.
    pub fn submit(&mut self, sent_us: i64, received_us: i64) {
        let latency = received_us.saturating_sub(sent_us);
        self.min_us = Some(self.min_us.map_or(latency, |min| min.min(latency)));
        self.max_us = Some(self.max_us.map_or(latency, |max| max.max(latency)));
        self.average_16_us = Some(match self.average_16_us {
            None => latency.saturating_mul(16),
            Some(sum) => sum.saturating_sub(sixteenth(sum)).saturating_add(latency),
        });
    }

    /// The shortest latency of this period, µs; `None` if nothing arrived.
    pub fn min_us(&self) -> Option<i64> {
        self.min_us
    }

    /// The longest latency of this period, µs; `None` if nothing arrived.
    pub fn max_us(&self) -> Option<i64> {
        self.max_us
    }

    /// The smoothed latency, µs; `None` before the first payload of the run.
    pub fn average_us(&self) -> Option<i64> {
        self.average_16_us.map(sixteenth)
    }

    /// Begins the next period: minimum and maximum are unknown again, the average goes on.
    pub fn begin_period(&mut self) {
        self.min_us = None;
        self.max_us = None;
    }
}

/// Rounded to the nearest.
fn sixteenth(sum: i64) -> i64 {
    sum.saturating_add(8) >> 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn min_and_max_are_of_the_period_and_the_average_of_the_run() {
        let mut latency = TransmissionDelay::default();
        assert_eq!((latency.min_us(), latency.max_us(), latency.average_us()), (None, None, None));

        latency.submit(1_000, 1_160);
        latency.submit(2_000, 2_320);
        assert_eq!((latency.min_us(), latency.max_us()), (Some(160), Some(320)));
        // 160 + (320 - 160) / 16
        assert_eq!(latency.average_us(), Some(170));

        latency.begin_period();
        assert_eq!((latency.min_us(), latency.max_us()), (None, None));
        assert_eq!(latency.average_us(), Some(170));
        latency.submit(3_000, 3_330);
        assert_eq!((latency.min_us(), latency.max_us()), (Some(330), Some(330)));
        // 170 + (330 - 170) / 16
        assert_eq!(latency.average_us(), Some(180));
    }

    #[test]
    fn the_average_reaches_a_constant_latency() {
        let mut latency = TransmissionDelay::default();
        latency.submit(0, 0);
        for _ in 0..200 {
            latency.submit(0, 120_007);
        }
        assert_eq!(latency.average_us(), Some(120_007));
    }

    #[test]
    fn clocks_that_disagree_give_negative_latencies() {
        let mut latency = TransmissionDelay::default();
        latency.submit(5_000, 3_000);
        assert_eq!(latency.min_us(), Some(-2_000));
        assert_eq!(latency.average_us(), Some(-2_000));
        latency.submit(i64::MIN, i64::MAX);
        latency.submit(i64::MAX, i64::MIN);
        assert_eq!((latency.min_us(), latency.max_us()), (Some(i64::MIN), Some(i64::MAX)));
    }
}
