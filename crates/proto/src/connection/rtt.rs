//! Round-trip time: what is measured, how it is smoothed, and which figure counts.

use std::fmt;
use std::time::Duration;

use crate::factory::Factory;

/// A smoothed round-trip time and its mean deviation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rtt {
    /// Smoothed round-trip time (draft section 4.10: RTT).
    pub smoothed: Duration,
    /// Mean deviation (draft section 4.10: RTTVar).
    pub variance: Duration,
}

impl Rtt {
    /// What holds before the first sample: 100 ms and 50 ms (draft section 4.10).
    pub const INITIAL: Self =
        Self { smoothed: Duration::from_millis(100), variance: Duration::from_millis(50) };

    /// RTT + 4 RTTVar, the bound on an answer's time that timers use.
    pub fn bound(self) -> Duration {
        self.smoothed + self.variance * 4
    }
}

/// Turns round-trip samples into the estimate that timers and policies use.
pub trait RttEstimator: fmt::Debug + Send {
    /// Takes in one sample.
    fn update(&mut self, sample: Duration);

    /// The estimate, or `None` before the first sample.
    fn estimate(&self) -> Option<Rtt>;
}

/// The draft's estimator: gains of 1/8 and 1/4, the first sample taken whole (draft section 4.10).
#[derive(Debug, Default)]
pub struct ClassicRtt {
    estimate: Option<Rtt>,
}

impl RttEstimator for ClassicRtt {
    fn update(&mut self, sample: Duration) {
        self.estimate = Some(match self.estimate {
            None => Rtt { smoothed: sample, variance: sample / 2 },
            Some(Rtt { smoothed, variance }) => Rtt {
                // RTTVar first: it measures the deviation from the estimate as it was.
                variance: (variance * 3 + smoothed.abs_diff(sample)) / 4,
                smoothed: (smoothed * 7 + sample) / 8,
            },
        });
    }

    fn estimate(&self) -> Option<Rtt> {
        self.estimate
    }
}

/// Which estimator a connection uses.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum RttAlgorithm {
    /// The draft's, [`ClassicRtt`].
    #[default]
    Classic,
    /// The one that the factory makes for each connection.
    Custom(Factory<dyn RttEstimator>),
}

impl RttAlgorithm {
    /// The estimator that `make` gives for each connection; the closure holds its parameters.
    pub fn custom<E: RttEstimator + 'static>(make: impl Fn() -> E + Send + Sync + 'static) -> Self {
        Self::Custom(Factory::<dyn RttEstimator>::new(move || Box::new(make())))
    }

    fn build(&self) -> Box<dyn RttEstimator> {
        match self {
            Self::Classic => Box::<ClassicRtt>::default(),
            Self::Custom(factory) => factory.make(),
        }
    }
}

/// The round-trip time of one connection.
///
/// A receiver measures it from ACK to ACKACK. A side that sends has no samples of its own and uses
/// what the peer reports in its ACKs. Where there are both, the latest counts: who received a
/// little once and then only sends would go by a path of long ago.
#[derive(Debug)]
pub(crate) struct RttTracker {
    estimator: Box<dyn RttEstimator>,
    /// What the peer reported since the last sample.
    reported: Option<Rtt>,
    /// What follows from both: asked for with each packet.
    estimate: Rtt,
    last_sample: Option<Duration>,
    samples: u64,
}

impl RttTracker {
    pub(crate) fn new(algorithm: &RttAlgorithm) -> Self {
        Self {
            estimator: algorithm.build(),
            reported: None,
            estimate: Rtt::INITIAL,
            last_sample: None,
            samples: 0,
        }
    }

    /// A measurement of this side.
    pub(crate) fn sample(&mut self, sample: Duration) {
        self.last_sample = Some(sample);
        self.samples += 1;
        self.reported = None;
        self.estimator.update(sample);
        self.estimate = self.estimator.estimate().unwrap_or(Rtt::INITIAL);
    }

    /// What the peer reported in an ACK. Its initial values tell nothing.
    pub(crate) fn report(&mut self, reported: Rtt) {
        if reported != Rtt::INITIAL {
            self.reported = Some(reported);
            self.estimate = reported;
        }
    }

    pub(crate) const fn estimate(&self) -> Rtt {
        self.estimate
    }

    /// How many round trips this side measured, and the latest of them.
    pub(crate) fn measured(&self) -> (u64, Duration) {
        (self.samples, self.last_sample.unwrap_or_default())
    }

    /// The latest raw sample, or the peer's estimate: what the drift tracer corrects by.
    pub(crate) fn latest(&self) -> Option<Duration> {
        self.reported.map(|rtt| rtt.smoothed).or(self.last_sample)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn the_first_sample_replaces_the_initial_values_and_later_ones_are_smoothed() {
        let mut tracker = RttTracker::new(&RttAlgorithm::Classic);
        assert_eq!(tracker.estimate(), Rtt::INITIAL);
        tracker.sample(MS(20));
        assert_eq!(tracker.estimate(), Rtt { smoothed: MS(20), variance: MS(10) });
        tracker.sample(MS(28));
        assert_eq!(
            tracker.estimate(),
            Rtt { smoothed: MS(21), variance: Duration::from_micros(9_500) }
        );
    }

    #[test]
    fn a_side_without_samples_takes_the_reports_but_not_the_initial_ones() {
        let mut tracker = RttTracker::new(&RttAlgorithm::Classic);
        let report = Rtt { smoothed: MS(33), variance: MS(2) };
        tracker.report(report);
        tracker.report(Rtt::INITIAL);
        assert_eq!(tracker.estimate(), report);
        tracker.sample(MS(40));
        assert_eq!(tracker.estimate().smoothed, MS(40));
        tracker.report(report);
        assert_eq!(tracker.estimate(), report, "the latest counts");
    }
}
