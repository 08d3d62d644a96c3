//! Estimates with 95 % confidence intervals.

use statrs::distribution::{Beta, ContinuousCDF as _, StudentsT};
use statrs::function::gamma::gamma_lr;

use crate::numbers::number_of;

/// An estimate and the interval that holds the true value in 95 of 100 cases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// The interval; `None` if there is too little to tell one, such as a single run.
    pub interval: Option<(f64, f64)>,
    /// The number of runs.
    pub runs: usize,
}

impl Estimate {
    /// A value without an interval, of one run.
    pub fn single(value: f64) -> Self {
        Self { value, interval: None, runs: 1 }
    }

    /// The mean of what several runs gave, with Student's t interval; `None` for no run. Where no
    /// run gave less than zero, as counts and times never do, the interval does not go below it.
    pub fn mean(values: &[f64]) -> Option<Self> {
        let runs = values.len();
        let count = number_of(runs);
        if runs == 0 {
            return None;
        }
        // Equal values have an exact mean, and no deviation by rounding.
        let (first, are_equal) = (values[0], values.iter().all(|value| *value == values[0]));
        let mean = if are_equal { first } else { values.iter().sum::<f64>() / count };
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let interval = StudentsT::new(0.0, 1.0, count - 1.0).ok().map(|t| {
            let error = (squares / (count - 1.0) / count).sqrt();
            let half = t.inverse_cdf(UPPER) * error;
            let least = if values.iter().all(|value| *value >= 0.0) { 0.0 } else { f64::MIN };
            ((mean - half).max(least), mean + half)
        });
        Some(Self { value: mean, interval, runs })
    }

    /// The share `part` of `whole`, with Wilson's score interval; `None` of nothing.
    ///
    /// Zero of many gives an interval that ends above zero.
    pub fn share(part: f64, whole: f64, runs: usize) -> Option<Self> {
        if whole <= 0.0 {
            return None;
        }
        let share = part / whole;
        // A count may exceed the whole, as retransmissions do; then it is not a share.
        if !(0.0..=1.0).contains(&share) {
            return Some(Self { value: share, interval: None, runs });
        }
        let z2 = Z * Z;
        let middle = (share + z2 / (2.0 * whole)) / (1.0 + z2 / whole);
        let spread = (share * (1.0 - share) / whole + z2 / (4.0 * whole * whole)).sqrt();
        let half = Z * spread / (1.0 + z2 / whole);
        let low = if part == 0.0 { 0.0 } else { (middle - half).max(0.0) };
        let high = if part == whole { 1.0 } else { (middle + half).min(1.0) };
        Some(Self { value: share, interval: Some((low, high)), runs })
    }

    /// The share `part` of `whole`, with the exact interval after Clopper and Pearson; `None` of
    /// nothing.
    pub fn exact_share(part: f64, whole: f64, runs: usize) -> Option<Self> {
        let share = Self::share(part, whole, runs)?;
        if share.interval.is_none() {
            return Some(share);
        }
        let rest = whole - part;
        // Where both counts are large the two intervals differ by less than a percent of their
        // width.
        if part.min(rest) > MANY {
            return Some(share);
        }
        let low = quantile(part, rest + 1.0, 1.0 - UPPER).unwrap_or(0.0);
        let high = quantile(part + 1.0, rest, UPPER).unwrap_or(1.0);
        Some(Self { interval: Some((low, high)), ..share })
    }

    /// A number of events that happen independently of each other, with the exact interval of its
    /// mean after Garwood (1936). None at all gives an interval that ends above zero.
    pub fn count(events: f64, runs: usize) -> Self {
        let low = if events > 0.0 { poisson_mean(events, 1.0 - UPPER) } else { 0.0 };
        let high = poisson_mean(events + 1.0, UPPER);
        Self { value: events, interval: Some((low, high)), runs }
    }

    /// The same interval in another unit; `factor` is more than zero.
    pub(crate) fn times(self, factor: f64) -> Self {
        let interval = self.interval.map(|(low, high)| (low * factor, high * factor));
        Self { value: self.value * factor, interval, ..self }
    }

    /// This less `other`, both independent. The interval is put together from both by the method
    /// of Newcombe (1998), which for means is the usual one.
    pub(crate) fn minus(&self, other: &Self) -> Self {
        let value = self.value - other.value;
        let interval = self.interval.zip(other.interval).map(|((l1, h1), (l2, h2))| {
            let below = libm::hypot(self.value - l1, h2 - other.value);
            let above = libm::hypot(h1 - self.value, other.value - l2);
            (value - below, value + above)
        });
        Self { value, interval, runs: self.runs + other.runs }
    }

    /// This divided by `other`, both independent: as the difference of the logarithms. `None` for
    /// a division by zero.
    pub(crate) fn over(&self, other: &Self) -> Option<Self> {
        let value = self.value / other.value;
        if !value.is_finite() {
            return None;
        }
        let logarithm = |estimate: &Self| {
            let interval = estimate.interval.map(|(low, high)| (libm::log(low), libm::log(high)));
            Self { value: libm::log(estimate.value), interval, ..*estimate }
        };
        let difference = logarithm(self).minus(&logarithm(other));
        let interval = difference.interval.map(|(low, high)| (libm::exp(low), libm::exp(high)));
        let interval = interval.filter(|(low, high)| low.is_finite() && high.is_finite());
        Some(Self { value, interval, runs: difference.runs })
    }

    /// Whether a value lies within the interval; `false` without one.
    pub fn covers(&self, value: f64) -> bool {
        self.interval.is_some_and(|(low, high)| (low..=high).contains(&value))
    }

    /// Whether both intervals have something in common; `false` without them.
    pub fn overlaps(&self, other: &Self) -> bool {
        match (self.interval, other.interval) {
            (Some((low, high)), Some((other_low, other_high))) => {
                low <= other_high && other_low <= high
            }
            _ => false,
        }
    }
}

/// The quantile `at` of the beta distribution; `None` if there is none with these parameters. It is
/// found by halving, which ends: the library's own search does not for a few of many millions.
fn quantile(a: f64, b: f64, at: f64) -> Option<f64> {
    let beta = Beta::new(a, b).ok()?;
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if beta.cdf(middle) < at {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(f64::midpoint(low, high))
}

/// The mean with which `events` or more are as likely as `at`.
fn poisson_mean(events: f64, at: f64) -> f64 {
    let (mut low, mut high) = (0.0, events + 10.0 * events.sqrt() + 20.0);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if middle <= 0.0 || gamma_lr(events, middle) < at {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// As many as tell a share of 1e-12 to nine digits.
const HALVINGS: u32 = 70;

/// 2.5 % lie above it.
const UPPER: f64 = 0.975;

/// The standard normal distribution at [`UPPER`].
const Z: f64 = 1.959_963_984_540_054;

/// From how many on a share's intervals do not differ.
const MANY: f64 = 5_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: (f64, f64), expected: (f64, f64), within: f64) {
        let near = |a: f64, b: f64| (a - b).abs() < within;
        assert!(near(found.0, expected.0) && near(found.1, expected.1), "{found:?} {expected:?}");
    }

    #[test]
    fn means_have_students_interval() {
        // t(4; 0.975) = 2.776445, s = sqrt(2.5): 3 ± 1.963243.
        let estimate = Estimate::mean(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!((estimate.value, estimate.runs), (3.0, 5));
        close(estimate.interval.unwrap(), (1.036_757, 4.963_243), 1e-5);
        // t(1; 0.975) = 12.7062, s / sqrt(2) = 0.5.
        let two = Estimate::mean(&[-1.0, 0.0]).unwrap();
        close(two.interval.unwrap(), (-6.853_1, 5.853_1), 1e-4);
        let counts = Estimate::mean(&[1.0, 2.0]).unwrap();
        close(counts.interval.unwrap(), (0.0, 7.853_1), 1e-4);
        assert_eq!(Estimate::mean(&[7.0]).unwrap(), Estimate::single(7.0));
        assert_eq!(Estimate::mean(&[]), None);
        assert_eq!(Estimate::mean(&[2.0; 9]).unwrap().interval, Some((2.0, 2.0)));
        let constant = Estimate::mean(&[0.1; 100]).unwrap();
        assert_eq!((constant.value, constant.interval), (0.1, Some((0.1, 0.1))));
    }

    #[test]
    fn counts_have_garwoods_interval() {
        // Half the quantiles of chi-squared with 2 k and 2 k + 2 degrees of freedom.
        for (events, expected) in [
            (0.0, (0.0, 3.688_88)),
            (1.0, (0.025_32, 5.571_64)),
            (10.0, (4.795_39, 18.390_36)),
            (100.0, (81.363_99, 121.627_4)),
        ] {
            close(Estimate::count(events, 1).interval.unwrap(), expected, 1e-3);
        }
        // Of many the interval is that of the normal distribution.
        let (low, high) = Estimate::count(1e6, 1).interval.unwrap();
        close((low, high), (998_041.0, 1_001_962.0), 2.0);
    }

    #[test]
    fn shares_have_wilsons_interval() {
        // Newcombe 1998, table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
        for (part, whole, expected) in [
            (81.0, 263.0, (0.255_3, 0.366_2)),
            (15.0, 148.0, (0.062_4, 0.160_5)),
            (0.0, 20.0, (0.0, 0.161_1)),
            (1.0, 29.0, (0.006_1, 0.171_8)),
        ] {
            close(Estimate::share(part, whole, 1).unwrap().interval.unwrap(), expected, 5e-5);
        }
        assert_eq!(Estimate::share(0.0, 0.0, 1), None);
        assert_eq!(Estimate::share(3.0, 2.0, 1).unwrap().interval, None);
    }

    #[test]
    fn exact_intervals_are_smooth_from_small_to_large_counts() {
        let width = |part: f64| {
            let (low, high) = Estimate::exact_share(part, 1e6, 1).unwrap().interval.unwrap();
            high - low
        };
        let (below, above) = (width(5_000.0), width(5_001.0));
        assert!((below / above - 1.0).abs() < 0.01, "{below} {above}");
    }

    #[test]
    fn exact_intervals_are_those_of_clopper_and_pearson() {
        // Newcombe 1998, table I.
        for (part, whole, expected) in [
            (81.0, 263.0, (0.252_7, 0.367_6)),
            (15.0, 148.0, (0.057_8, 0.161_7)),
            (0.0, 20.0, (0.0, 0.168_4)),
            (1.0, 29.0, (0.000_9, 0.177_6)),
        ] {
            close(Estimate::exact_share(part, whole, 1).unwrap().interval.unwrap(), expected, 5e-5);
        }
        let all = Estimate::exact_share(20.0, 20.0, 1).unwrap().interval.unwrap();
        close(all, (1.0 - 0.168_4, 1.0), 5e-5);
    }

    #[test]
    fn exact_intervals_of_some_of_millions_are_found() {
        // SciPy 1: beta.ppf(0.025, k, n - k + 1) and beta.ppf(0.975, k + 1, n - k).
        for (part, low, high) in [
            (1.0, 2.220860347e-09, 4.887405503e-07),
            (19.0, 1.003442496e-06, 2.602705235e-06),
            (210.0, 1.601371215e-05, 2.108814064e-05),
            (1999.0, 1.677480538e-04, 1.832094141e-04),
            (4999.0, 4.264387880e-04, 4.508336322e-04),
        ] {
            let (found_low, found_high) =
                Estimate::exact_share(part, 11_400_000.0, 200).unwrap().interval.unwrap();
            close((found_low / low, found_high / high), (1.0, 1.0), 1e-6);
        }
    }

    #[test]
    fn differences_and_ratios_have_intervals_of_both() {
        // Newcombe 1998, part two, example (a): 56/70 less 48/80 is 0.2, 0.0524 to 0.3339.
        let a = Estimate::share(56.0, 70.0, 1).unwrap();
        let b = Estimate::share(48.0, 80.0, 1).unwrap();
        let difference = a.minus(&b);
        close(difference.interval.unwrap(), (0.052_4, 0.333_9), 5e-5);
        let ratio = a.over(&b).unwrap();
        assert!(ratio.covers(0.8 / 0.6) && ratio.interval.unwrap().0 > 1.0);
        assert_eq!(a.over(&Estimate::single(0.0)), None);
    }

    #[test]
    fn intervals_are_compared() {
        let (a, b) = (Estimate::mean(&[1.0, 2.0, 3.0]).unwrap(), Estimate::single(2.0));
        assert!(a.covers(2.5) && !a.covers(9.0) && !b.covers(2.0));
        assert!(a.overlaps(&a) && !a.overlaps(&b));
    }
}
