//! Signs that slow start has filled the path: a rise of the round-trip time, or many losses.

use std::time::Duration;

use punctual_units::Instant;

use super::Cause;

/// Notices when the round-trip time has risen for good: seven times in a row the least of the
/// latest seven samples was more than a quarter above the floor. The floor is the least value that
/// the greatest of seven samples ever had, so jitter counts as no rise.
#[derive(Clone, Debug, Default)]
pub(crate) struct DelayRise {
    samples: [Duration; SAMPLES],
    /// Samples taken so far.
    count: usize,
    latest: Option<Instant>,
    floor: Option<Duration>,
    /// How often the least of the samples was above the limit since it was at the floor.
    excesses: usize,
}

impl DelayRise {
    /// Takes a sample. True if the round-trip time has risen.
    pub(crate) fn has_risen(&mut self, now: Instant, sample: Duration) -> bool {
        let since = now.saturating_since(self.latest.unwrap_or_default());
        if since <= SPACING {
            return false;
        }
        self.latest = Some(now);
        self.samples[self.count % SAMPLES] = sample;
        self.count += 1;
        if self.count < SAMPLES {
            return false;
        }
        let least = self.samples.iter().min().copied().unwrap_or_default();
        let greatest = self.samples.iter().max().copied().unwrap_or_default();
        let floor = self.floor.map_or(greatest, |floor| floor.min(greatest));
        self.floor = Some(floor);
        if least <= floor {
            self.excesses = 0;
        } else if least > floor + floor / 4 {
            self.excesses += 1;
        }
        self.excesses >= SAMPLES
    }

    /// The least value that the greatest of the samples had.
    pub(crate) fn floor(&self) -> Option<Duration> {
        self.floor
    }
}

const SAMPLES: usize = 7;
/// The least time between two samples that count.
const SPACING: Duration = Duration::from_millis(1);

/// Notices when more than a fifth of the packets is lost: an exponentially weighted share with a
/// gain of 1/16 for each packet number.
#[derive(Clone, Debug, Default)]
pub(crate) struct LossShare {
    share: f64,
    latest: u64,
}

impl LossShare {
    /// Counts the packet `number` as lost. True if too many are lost, or if a timeout found it.
    pub(crate) fn is_high(&mut self, number: u64, cause: Cause) -> bool {
        if number <= self.latest {
            return false;
        }
        let passed = (number - self.latest).min(SCOPE);
        for _ in 0..passed {
            self.share *= 1.0 - GAIN;
        }
        self.share += (1.0 - self.share) * GAIN;
        self.latest = number;
        cause == Cause::Timeout || self.share > HIGH
    }
}

const GAIN: f64 = 1.0 / 16.0;
const HIGH: f64 = 0.2;
/// Packet numbers without a loss that count at most.
const SCOPE: u64 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fourth_loss_in_a_row_makes_the_share_high() {
        let mut losses = LossShare::default();
        let high: Vec<bool> =
            (22..26).map(|number| losses.is_high(number, Cause::Acknowledgement)).collect();
        assert_eq!(high, [false, false, false, true]);
        assert!(!losses.is_high(25, Cause::Acknowledgement), "a number counts once");
        // Thirty-two packets without a loss leave an eighth of the share.
        assert!(!losses.is_high(60, Cause::Acknowledgement));
        assert!(losses.is_high(61, Cause::Timeout), "a timeout is always bad news");
    }

    #[test]
    fn a_rise_counts_after_seven_excesses_in_a_row_and_jitter_does_not() {
        let mut rise = DelayRise::default();
        let mut at = 0;
        let mut feed = |rise: &mut DelayRise, ms: u64| {
            at += 2;
            rise.has_risen(Instant::from_millis(at), Duration::from_millis(ms))
        };
        for sample in [100, 120, 100, 120, 100, 120, 100, 120, 100, 120] {
            assert!(!feed(&mut rise, sample));
        }
        assert_eq!(rise.floor(), Some(Duration::from_millis(120)));
        // The seventh sample of 160 is the first excess; the thirteenth is the seventh.
        let risen: Vec<bool> = (0..13).map(|_| feed(&mut rise, 160)).collect();
        assert_eq!(risen.iter().position(|it| *it), Some(12));
    }

    #[test]
    fn samples_within_a_millisecond_count_once() {
        let mut rise = DelayRise::default();
        let now = Instant::from_millis(10);
        (0..20).for_each(|_| assert!(!rise.has_risen(now, Duration::from_millis(5))));
        assert_eq!(rise.floor(), None);
    }
}
