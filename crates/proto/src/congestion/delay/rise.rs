/// The first round trips of a sender that follows BBR: like BBR at its start
/// (draft-cardwell-iccrg-bbr-congestion-control-00 section 4.3.1), it takes its share at once,
/// since single tries of a higher rate need half a minute for that.
///
/// BBR goes on until it has the whole link. This sender knows the highest rate that the link has
/// carried, and goes on to half of it: the share of one beside one other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rise {
    enough: f64,
    /// The rate at the end of the last round in which it grew, packets per second.
    rate_before: f64,
    /// The number of rounds in a row in which the rate hardly grew.
    flat_rounds: u32,
}

/// The pace and the window as multiples of the usual ones (sections 4.2.3.2 and 4.3.1.1: 2 / ln 2).
pub(super) const GAIN: f64 = 2.89;
/// The share of the link's highest rate that is enough.
const ENOUGH: f64 = 0.5;
/// The growth of the rate in a round below which it hardly grows, and the number of such rounds
/// that end the rise (section 4.3.1.2).
const GROWTH: f64 = 1.25;
const FLAT_ROUNDS: u32 = 3;

impl Rise {
    /// From an arrival rate of `rate` packets per second over a link that has carried `highest`;
    /// `None` if that is enough.
    pub(super) fn begin(rate: f64, highest: f64) -> Option<Self> {
        let enough = ENOUGH * highest;
        (rate < enough).then_some(Self { enough, rate_before: rate, flat_rounds: 0 })
    }

    /// The highest rate that is believed after `rate`.
    pub(super) fn most(&self, rate: f64) -> f64 {
        (GAIN * rate).min(self.enough)
    }

    /// A round ended with this highest rate. Returns whether the rise ends.
    pub(super) fn ends(&mut self, rate: f64) -> bool {
        if rate < GROWTH * self.rate_before {
            self.flat_rounds += 1;
        } else {
            (self.flat_rounds, self.rate_before) = (0, rate);
        }
        rate >= self.enough || self.flat_rounds >= FLAT_ROUNDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_highest_rate_is_enough() {
        let mut rise = Rise::begin(100.0, 1_000.0).expect("a rise");
        assert_eq!(rise.most(100.0), 289.0);
        assert_eq!(rise.most(289.0), 500.0);
        assert!(!rise.ends(289.0));
        assert!(rise.ends(500.0));
        assert!(Rise::begin(500.0, 1_000.0).is_none());
    }

    #[test]
    fn three_rounds_without_growth_end_the_rise() {
        let mut rise = Rise::begin(100.0, 1_000.0).expect("a rise");
        let rounds = [150.0, 160.0, 190.0, 200.0, 220.0, 230.0].map(|rate| rise.ends(rate));
        assert_eq!(rounds, [false, false, false, false, false, true]);
    }
}
