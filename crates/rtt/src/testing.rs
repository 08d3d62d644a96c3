//! Samples for the tests of this crate.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use punctual_units::Instant;

use crate::estimator::{RttEstimator, RttSample};
use crate::number::PacketNumber;

pub(crate) const MS: fn(u64) -> Duration = Duration::from_millis;
pub(crate) const US: fn(u64) -> Duration = Duration::from_micros;

/// The packet `number` was acknowledged `rtt` milliseconds after it was sent, at the millisecond
/// `number`.
pub(crate) fn sample(number: u64, rtt: u64) -> RttSample {
    sample_with_delay(number, rtt, 0)
}

/// The same with a reported delay, in milliseconds.
pub(crate) fn sample_with_delay(number: u64, rtt: u64, ack_delay: u64) -> RttSample {
    RttSample {
        now: Instant::from_millis(number + rtt),
        number: PacketNumber::new(number),
        rtt: MS(rtt),
        ack_delay: MS(ack_delay),
    }
}

/// Tells the estimator that the packets up to `last` were sent.
pub(crate) fn send_to(estimator: &mut dyn RttEstimator, last: u64) {
    estimator.sent(Instant::from_millis(last), PacketNumber::new(last));
}

/// Any history of a path: how many packets are sent before each sample, which of those in flight
/// it acknowledges, the sample and the reported delay in microseconds.
pub(crate) fn history() -> impl Strategy<Value = Vec<(u64, u64, u64, u64)>> {
    vec((0..5_u64, 0..40_u64, 1..10_000_000_u64, 0..10_000_000_u64), 1..200)
}

/// Feeds a history to an estimator and checks after each sample that the smoothed value is within
/// the samples and that nothing overflows.
pub(crate) fn stays_within_its_samples(
    estimator: &mut dyn RttEstimator,
    history: &[(u64, u64, u64, u64)],
) -> Result<(), TestCaseError> {
    let (mut sent, mut now) = (0, 0);
    let (mut least, mut greatest) = (Duration::MAX, Duration::ZERO);
    prop_assert_eq!(estimator.estimate(), None);
    for &(packets, back, rtt, ack_delay) in history {
        for _ in 0..packets {
            sent += 1;
            estimator.sent(Instant::from_micros(now), PacketNumber::new(sent));
        }
        now += rtt / 8 + 1;
        let (rtt, ack_delay) = (US(rtt), US(ack_delay));
        let number = PacketNumber::new(u64::saturating_sub(sent, back));
        estimator.acknowledged(&RttSample {
            now: Instant::from_micros(now),
            number,
            rtt,
            ack_delay,
        });
        (least, greatest) = (least.min(rtt), greatest.max(rtt));
        let found = estimator.estimate().expect("there was a sample");
        // Divisions round down, at most a nanosecond in each update.
        let rounding = Duration::from_nanos(16);
        prop_assert!(found.smoothed + rounding >= least, "{:?} below {least:?}", found);
        prop_assert!(found.smoothed <= greatest, "{:?} above {greatest:?}", found);
        prop_assert!(found.variance <= greatest, "{:?} above {greatest:?}", found);
    }
    Ok(())
}
