use std::time::Duration;

use crate::classic::ClassicRtt;
use crate::estimator::RttEstimator;
use crate::once_published::OncePublishedRtt;
use crate::once_strict::OnceStrictRtt;
use crate::quantile::QuantileRtt;
use crate::rfc9002::Rfc9002Rtt;

/// The estimators of this crate, by name.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum BuiltInRtt {
    /// The SRT draft's, [`ClassicRtt`]. A reported delay counts as part of the round trip.
    #[default]
    Draft,
    /// QUIC's, [`Rfc9002Rtt`]. Without reported delays it is the draft's.
    Rfc9002,
    /// Once in a round trip, [`OnceStrictRtt`].
    OnceStrict,
    /// As the published code did it, [`OncePublishedRtt`].
    OncePublished,
    /// The median and a quantile, [`QuantileRtt`].
    Quantile,
}

impl BuiltInRtt {
    /// Every one.
    pub const ALL: [Self; 5] =
        [Self::Draft, Self::Rfc9002, Self::OnceStrict, Self::OncePublished, Self::Quantile];

    /// The name in plans and URIs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Rfc9002 => "rfc9002",
            Self::OnceStrict => "once-strict",
            Self::OncePublished => "once-published",
            Self::Quantile => "quantile",
        }
    }

    /// The estimator of this name; `None` if there is none.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// Makes the estimator. It believes reported delays up to the peer's `max_ack_delay`; `None`
    /// believes any.
    pub fn build(self, max_ack_delay: Option<Duration>) -> Box<dyn RttEstimator> {
        match self {
            Self::Draft => Box::new(ClassicRtt::default()),
            Self::Rfc9002 => Box::new(Rfc9002Rtt::new(max_ack_delay)),
            Self::OnceStrict => Box::new(OnceStrictRtt::new(max_ack_delay)),
            Self::OncePublished => Box::new(OncePublishedRtt::new(max_ack_delay)),
            Self::Quantile => Box::new(QuantileRtt::new(max_ack_delay)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{MS, sample, send_to};

    #[test]
    fn each_name_makes_its_own_estimator() {
        let mut estimates = Vec::new();
        for it in BuiltInRtt::ALL {
            assert_eq!(BuiltInRtt::from_name(it.name()), Some(it));
            let mut estimator = it.build(None);
            // Four in a round trip: the published code needs a pause, or it does as the draft.
            for number in (0..6_000).step_by(30) {
                send_to(&mut *estimator, number + 99);
                estimator.acknowledged(&sample(number, 100 + number % 13));
            }
            estimates.push(estimator.estimate().expect("there were samples"));
        }
        let [draft, rfc9002, rest @ ..] = estimates.as_slice() else { panic!("five estimators") };
        assert_eq!(draft, rfc9002, "there is no delay to take out");
        for (place, estimate) in rest.iter().enumerate() {
            assert!(!rest[..place].contains(estimate) && estimate != draft, "{estimates:?}");
            assert!(estimate.smoothed.abs_diff(MS(106)) < MS(6), "{estimate:?}");
        }
        assert_eq!(BuiltInRtt::from_name("Draft"), None);
    }

    proptest! {
        #[test]
        fn without_reported_delays_rfc_9002_is_the_draft(
            samples in proptest::collection::vec(1..5_000_u64, 1..200),
        ) {
            let (mut draft, mut rfc9002) =
                (BuiltInRtt::Draft.build(None), BuiltInRtt::Rfc9002.build(None));
            for (number, rtt) in (1..).zip(samples) {
                draft.acknowledged(&sample(number, rtt));
                rfc9002.acknowledged(&sample(number, rtt));
                prop_assert_eq!(draft.estimate(), rfc9002.estimate());
            }
        }
    }
}
