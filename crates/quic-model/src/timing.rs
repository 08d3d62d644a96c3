//! The round-trip time of the path and its retransmission timer.

use std::time::Duration;

use punctual_rtt::{
    BuiltInRtt, PacketNumber, RetransmissionTimer, Rtt, RttEstimator, RttSample, TimerRule,
};
use punctual_units::Instant;

/// The estimate of a path, and its timer.
#[derive(Debug)]
pub(crate) struct PathTiming {
    estimator: Box<dyn RttEstimator>,
    timer: RetransmissionTimer,
    /// The estimate before the first sample.
    initial: Duration,
    max_ack_delay: Duration,
    latest: Duration,
    least: Option<Duration>,
    samples: u64,
}

impl PathTiming {
    /// `initial` is the smoothed round-trip time before the first sample.
    pub(crate) fn new(
        estimator: BuiltInRtt,
        rule: TimerRule,
        max_ack_delay: Duration,
        initial: Duration,
    ) -> Self {
        Self {
            estimator: estimator.build(Some(max_ack_delay)),
            timer: RetransmissionTimer::new(rule, max_ack_delay, initial),
            initial,
            max_ack_delay,
            latest: initial,
            least: None,
            samples: 0,
        }
    }

    /// A packet that asks for an acknowledgement is sent.
    pub(crate) fn sent(&mut self, now: Instant, number: u64) {
        self.estimator.sent(now, PacketNumber::new(number));
    }

    /// The packet `number`, which was sent at `sent`, is acknowledged.
    pub(crate) fn acknowledged(
        &mut self,
        now: Instant,
        number: u64,
        sent: Instant,
        ack_delay: Duration,
    ) {
        let rtt = now.saturating_since(sent);
        let number = PacketNumber::new(number);
        let sample = RttSample { now, number, rtt, ack_delay };
        self.estimator.acknowledged(&sample);
        self.timer.acknowledged(&sample, self.estimator.as_ref());
        let delay = ack_delay.min(self.max_ack_delay);
        let exceeds = self.least.is_some_and(|least| least + delay < rtt);
        self.latest = if exceeds { rtt - delay } else { rtt };
        self.least = Some(self.least.map_or(self.latest, |least| least.min(self.latest)));
        self.samples += 1;
    }

    /// The estimate, or the initial one.
    pub(crate) fn estimate(&self) -> Rtt {
        let initial = Rtt { smoothed: self.initial, variance: self.initial / 2 };
        self.estimator.estimate().unwrap_or(initial)
    }

    /// The latest sample and the least, without the peer's delay.
    pub(crate) fn latest(&self) -> Duration {
        self.latest
    }

    /// The least sample; the initial estimate before the first.
    pub(crate) fn least(&self) -> Duration {
        self.least.unwrap_or(self.initial)
    }

    /// The time after which an acknowledgement is overdue.
    pub(crate) fn timeout(&self) -> Duration {
        self.timer.timeout()
    }

    pub(crate) fn max_ack_delay(&self) -> Duration {
        self.max_ack_delay
    }

    /// Samples, and updates of the estimate.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.samples, self.estimator.updates().unwrap_or(self.samples))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_estimator_gives_a_timer_after_a_sample() {
        let ms = Duration::from_millis;
        for estimator in BuiltInRtt::ALL {
            let rule = TimerRule::FourVariances;
            let mut timing = PathTiming::new(estimator, rule, ms(10), ms(333));
            assert_eq!((timing.estimate().smoothed, timing.timeout()), (ms(333), ms(333)));
            for number in 1..=2 {
                let sent = Instant::from_millis(number * 500);
                timing.sent(sent, number);
                timing.acknowledged(sent + ms(100), number, sent, ms(0));
            }
            assert_eq!(timing.estimate().smoothed, ms(100), "{}", estimator.name());
            assert_eq!((timing.latest(), timing.least()), (ms(100), ms(100)));
            assert!(timing.timeout() > ms(200), "{}", estimator.name());
        }
    }
}
