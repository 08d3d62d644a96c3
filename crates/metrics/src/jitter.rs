/// Interarrival jitter of RFC 3550 section 6.4.1, µs, on the monotonic clocks of both ends.
///
/// D = (Rj − Sj) − (Ri − Si) for payloads i and j that arrive one after the other, and
/// J = J + (|D| − J) / 16. Only differences enter, so the clocks need no synchronisation. The value
/// is smoothed over the whole run and never reset.
///
/// The arithmetic is the integer one of RFC 3550 appendix A.8, with four bits below the
/// microsecond; the value given is rounded to the nearest, as the sum itself is, so that it reaches
/// a constant |D|. srt-xtransmit rounds J down to a microsecond at each sample, and takes a payload
/// whose transit time is exactly zero for the first of the run.
#[derive(Clone, Debug, Default)]
pub struct InterarrivalJitter {
    previous_transit_us: Option<i64>,
    /// Sixteen times J.
    jitter_16_us: u64,
}

impl InterarrivalJitter {
    /// Takes in the next payload in order of arrival, sent at `sent_us` by the sender's monotonic
    /// clock and received at `received_us` by the receiver's.
    pub fn submit(&mut self, sent_us: i64, received_us: i64) {
        let transit = received_us.saturating_sub(sent_us);
        if let Some(previous) = self.previous_transit_us.replace(transit) {
            let difference = transit.abs_diff(previous);
            self.jitter_16_us = (self.jitter_16_us - self.jitter_us()).saturating_add(difference);
        }
    }

    /// The jitter now, µs; zero before the second payload.
    pub fn jitter_us(&self) -> u64 {
        self.jitter_16_us.saturating_add(8) >> 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_example() {
        let mut jitter = InterarrivalJitter::default();
        // Transit times 5000, 5160, 5000, 5000 µs: |D| = 160, 160, 0.
        jitter.submit(0, 5_000);
        assert_eq!(jitter.jitter_us(), 0);
        jitter.submit(1_000, 6_160);
        // J = 160 / 16 = 10
        assert_eq!(jitter.jitter_us(), 10);
        jitter.submit(2_000, 7_000);
        // J = 10 + 150 / 16 = 19.375
        assert_eq!(jitter.jitter_us(), 19);
        jitter.submit(3_000, 8_000);
        // J = 19.375 - 19.375 / 16 = 18.16
        assert_eq!(jitter.jitter_us(), 18);
    }

    #[test]
    fn tends_to_a_constant_difference() {
        let mut jitter = InterarrivalJitter::default();
        for n in 0..400 {
            jitter.submit(n * 1_000, n * 1_000 + if n % 2 == 0 { 0 } else { 640 });
        }
        assert_eq!(jitter.jitter_us(), 640);
    }

    #[test]
    fn a_transit_time_of_zero_is_a_sample_like_any_other() {
        let mut jitter = InterarrivalJitter::default();
        jitter.submit(0, 0);
        jitter.submit(1_000, 1_032);
        assert_eq!(jitter.jitter_us(), 2);
    }

    #[test]
    fn absurd_stamps_saturate() {
        let mut jitter = InterarrivalJitter::default();
        for n in 0..100 {
            let (sent, received) =
                if n % 2 == 0 { (i64::MIN, i64::MAX) } else { (i64::MAX, i64::MIN) };
            jitter.submit(sent, received);
        }
        assert!(jitter.jitter_us() > 1 << 59);
    }
}
