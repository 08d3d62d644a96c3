use std::time::Duration;

use crate::adjust::DelayFilter;
use crate::estimator::{RttEstimator, RttSample};

/// The formula of a retransmission timer. Each begins with the smoothed round-trip time or the
/// greatest, and the peer's greatest delay of acknowledgements is added.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum TimerRule {
    /// Smoothed + 4 × variance (RFC 9002 section 6.2.1; RFC 6298 section 2).
    FourVariances,
    /// Smoothed + 3 × variance (C. Huitema, "Update QUIC timers once per RTT", 2023).
    ThreeVariances,
    /// The greatest sample since the connection began + variance. The same text calls it MaxRTT
    /// and does not say over which time; its published results come from this one.
    GreatestOfLifetime,
    /// The greatest sample of the latest epoch, or of those since the update before, + variance.
    GreatestOfEpoch,
}

/// The retransmission timer of a path: the time after which an acknowledgement is overdue, without
/// backoff (RFC 9002 section 6.2: probe timeout; RFC 6298: RTO).
///
/// It follows the updates of an estimator. Between two updates it is raised to any sample that is
/// greater: that acknowledgement came later than the timer says, and so may the next.
///
/// ```
/// use std::time::Duration;
/// use punctual_rtt::{PacketNumber, RetransmissionTimer, Rfc9002Rtt, RttEstimator, RttSample};
/// use punctual_rtt::TimerRule;
/// use punctual_units::Instant;
///
/// let ms = Duration::from_millis;
/// let mut estimator = Rfc9002Rtt::new(Some(ms(25)));
/// let mut timer = RetransmissionTimer::new(TimerRule::FourVariances, ms(25), ms(999));
/// assert_eq!(timer.timeout(), ms(999));
/// let sample = RttSample {
///     now: Instant::from_millis(100),
///     number: PacketNumber::new(1),
///     rtt: ms(100),
///     ack_delay: Duration::ZERO,
/// };
/// estimator.acknowledged(&sample);
/// timer.acknowledged(&sample, &estimator);
/// assert_eq!(timer.timeout(), ms(100 + 4 * 50 + 25));
/// ```
#[derive(Clone, Debug)]
pub struct RetransmissionTimer {
    rule: TimerRule,
    max_ack_delay: Duration,
    filter: DelayFilter,
    timeout: Duration,
    /// The greatest sample since the connection began.
    greatest: Duration,
    /// The greatest sample since the latest update.
    greatest_since_update: Duration,
    updates: u64,
}

impl RetransmissionTimer {
    /// The least time that is added to the smoothed round-trip time (RFC 9002 section 6.1.2:
    /// kGranularity).
    pub const GRANULARITY: Duration = Duration::from_millis(1);

    /// A timer that is `initial` until the estimator's first update. `max_ack_delay` is the
    /// greatest delay that the peer announced.
    pub fn new(rule: TimerRule, max_ack_delay: Duration, initial: Duration) -> Self {
        Self {
            rule,
            max_ack_delay,
            filter: DelayFilter::new(Some(max_ack_delay)),
            timeout: initial,
            greatest: Duration::ZERO,
            greatest_since_update: Duration::ZERO,
            updates: 0,
        }
    }

    /// Follows a sample, which `estimator` has counted before.
    pub fn acknowledged(&mut self, sample: &RttSample, estimator: &dyn RttEstimator) {
        let sample = self.filter.adjust(sample);
        self.greatest = self.greatest.max(sample);
        self.greatest_since_update = self.greatest_since_update.max(sample);
        let updates = estimator.updates();
        if updates == Some(self.updates) {
            self.timeout = self.timeout.max(sample);
            return;
        }
        self.updates = updates.unwrap_or_default();
        let Some(rtt) = estimator.estimate() else { return };
        let variance = |times: u32| (rtt.variance * times).max(Self::GRANULARITY);
        self.timeout = self.max_ack_delay
            + match self.rule {
                TimerRule::FourVariances => rtt.smoothed + variance(4),
                TimerRule::ThreeVariances => rtt.smoothed + variance(3),
                TimerRule::GreatestOfLifetime => self.greatest + variance(1),
                TimerRule::GreatestOfEpoch => self.greatest_since_update + variance(1),
            };
        self.greatest_since_update = Duration::ZERO;
    }

    /// The time after which an acknowledgement is overdue.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{MS, US, history, sample, send_to};
    use crate::{ClassicRtt, OncePublishedRtt, OnceStrictRtt};

    const ALL: [TimerRule; 4] = [
        TimerRule::FourVariances,
        TimerRule::ThreeVariances,
        TimerRule::GreatestOfLifetime,
        TimerRule::GreatestOfEpoch,
    ];

    /// The packet `number` was acknowledged after `rtt` milliseconds.
    fn acknowledge(
        estimator: &mut dyn RttEstimator,
        timer: &mut RetransmissionTimer,
        number: u64,
        rtt: u64,
    ) {
        estimator.acknowledged(&sample(number, rtt));
        timer.acknowledged(&sample(number, rtt), estimator);
    }

    /// The timeouts by each rule after these samples, of one flight each.
    fn timeouts(samples: &[u64]) -> [Duration; 4] {
        ALL.map(|rule| {
            let mut estimator = OnceStrictRtt::new(None);
            let mut timer = RetransmissionTimer::new(rule, MS(25), MS(250));
            for (number, &rtt) in (1..).zip(samples) {
                send_to(&mut estimator, number);
                acknowledge(&mut estimator, &mut timer, number, rtt);
            }
            timer.timeout()
        })
    }

    #[test]
    fn each_rule_is_its_formula() {
        // 100 and 50; then 101 and 39.5; then 100.875 and 29.875 (the deviation is 1).
        assert_eq!(timeouts(&[100]), [MS(325), MS(275), MS(175), MS(175)]);
        assert_eq!(timeouts(&[100, 108]), [MS(284), US(244_500), US(172_500), US(172_500)]);
        let third = [US(245_375), US(215_500), US(162_875), US(154_875)];
        assert_eq!(timeouts(&[100, 108, 100]), third);
    }

    #[test]
    fn a_greater_sample_raises_the_timer_before_its_epoch_ends() {
        let mut estimator = OnceStrictRtt::new(None);
        let mut timer = RetransmissionTimer::new(TimerRule::ThreeVariances, MS(0), MS(250));
        send_to(&mut estimator, 9);
        acknowledge(&mut estimator, &mut timer, 1, 100);
        assert_eq!(timer.timeout(), MS(250));
        acknowledge(&mut estimator, &mut timer, 2, 400);
        assert_eq!(timer.timeout(), MS(400));
        acknowledge(&mut estimator, &mut timer, 3, 120);
        assert_eq!(timer.timeout(), MS(400), "the epoch has not ended");
    }

    #[test]
    fn the_published_code_keeps_the_initial_timer_after_the_first_sample() {
        let mut estimator = OncePublishedRtt::new(None);
        let mut timer = RetransmissionTimer::new(TimerRule::FourVariances, MS(0), MS(250));
        send_to(&mut estimator, 9);
        acknowledge(&mut estimator, &mut timer, 1, 200);
        assert_eq!(timer.timeout(), MS(250));
        acknowledge(&mut estimator, &mut timer, 2, 200);
        assert_eq!(timer.timeout(), MS(200 + 4 * 75));
    }

    #[test]
    fn a_steady_path_keeps_the_timer_a_granularity_above_it() {
        let mut estimator = ClassicRtt::default();
        let mut timer = RetransmissionTimer::new(TimerRule::FourVariances, MS(0), MS(250));
        for number in 1..200 {
            acknowledge(&mut estimator, &mut timer, number, 80);
        }
        assert_eq!(timer.timeout(), MS(81));
    }

    proptest! {
        #[test]
        fn the_greatest_of_the_lifetime_is_above_every_sample(history in history()) {
            let mut estimator = OnceStrictRtt::new(None);
            let rule = TimerRule::GreatestOfLifetime;
            let mut timer = RetransmissionTimer::new(rule, MS(0), MS(0));
            let mut greatest = Duration::ZERO;
            for (number, &(packets, _, rtt, _)) in (1..).zip(&history) {
                send_to(&mut estimator, number * 5 + packets);
                acknowledge(&mut estimator, &mut timer, number, rtt / 1_000);
                greatest = greatest.max(MS(rtt / 1_000));
                prop_assert!(timer.timeout() >= greatest);
            }
        }

        #[test]
        fn no_timer_is_less_than_the_latest_sample_between_updates(history in history()) {
            for rule in ALL {
                let mut estimator = OnceStrictRtt::new(None);
                let mut timer = RetransmissionTimer::new(rule, MS(0), MS(0));
                for (number, &(_, _, rtt, _)) in (1..).zip(&history) {
                    let before = estimator.updates();
                    acknowledge(&mut estimator, &mut timer, number % 5, rtt / 1_000);
                    if estimator.updates() == before {
                        prop_assert!(timer.timeout() >= MS(rtt / 1_000));
                    }
                }
            }
        }
    }
}
