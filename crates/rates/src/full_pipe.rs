//! Whether a start has found the whole rate of the path.

/// Finds out whether the rate still grows: the pipe is full when three round trips in a row added
/// less than a quarter (draft-cardwell-iccrg-bbr-congestion-control-00 section 4.3.2.2).
#[derive(Clone, Copy, Debug, Default)]
pub struct FullPipe {
    is_full: bool,
    greatest: u64,
    rounds_without_growth: u32,
}

impl FullPipe {
    /// A pipe that is known to be full.
    pub fn full() -> Self {
        Self { is_full: true, ..Self::default() }
    }

    /// A round trip passed, and `rate` is the greatest so far, in any unit. Rounds in which the
    /// application limited the rate do not count.
    pub fn round_passed(&mut self, rate: u64) {
        if self.is_full {
            return;
        }
        if to_f64(rate) >= to_f64(self.greatest) * GROWTH {
            (self.greatest, self.rounds_without_growth) = (rate, 0);
            return;
        }
        self.rounds_without_growth += 1;
        self.is_full = self.rounds_without_growth >= ROUNDS;
    }

    /// The next rate counts as growth.
    pub fn forget_rate(&mut self) {
        self.greatest = 0;
    }

    /// Whether it is full.
    pub fn is_full(&self) -> bool {
        self.is_full
    }
}

#[expect(clippy::cast_precision_loss, reason = "53 bits are plenty")]
fn to_f64(rate: u64) -> f64 {
    rate as f64
}

/// The least growth in a round trip.
const GROWTH: f64 = 1.25;
/// Round trips without growth after which the pipe is full.
const ROUNDS: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_is_full_after_three_rounds_without_growth() {
        let mut pipe = FullPipe::default();
        let is_full = [100, 125, 156, 157, 200, 201, 202, 203].map(|rate| {
            pipe.round_passed(rate);
            pipe.is_full()
        });
        // 156 is a little less than a quarter more than 125, and 157 is more.
        assert_eq!(is_full, [false, false, false, false, false, false, false, true]);
    }

    #[test]
    fn a_rate_that_was_forgotten_grows_again() {
        let mut pipe = FullPipe::default();
        for _ in 0..3 {
            pipe.round_passed(100);
        }
        pipe.forget_rate();
        for _ in 0..3 {
            pipe.round_passed(50);
        }
        assert!(!pipe.is_full());
        pipe.round_passed(50);
        assert!(pipe.is_full() && FullPipe::full().is_full());
    }
}
