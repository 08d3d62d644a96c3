//! The round-trip time of one connection: an estimator with the samples and reports of SRT.

use std::time::Duration;

use punctual_rtt::{PacketNumber, Rtt, RttEstimator, RttSample};
use punctual_units::Instant;
use punctual_wire::AckNo;

use crate::config::RttAlgorithm;

/// The round-trip time of one connection.
///
/// The end that receives data measures it from a full or small ACK to its ACKACK. The ACK numbers
/// are the packet numbers of the estimator: an epoch begins with the next ACK and ends with the
/// ACKACK for that ACK or a later one. An end that only sends data has no samples; it gets its
/// peer's estimate by ACKs. Where an end has both, the newer one counts by default. Otherwise an
/// end that received a little once, and then only sends, would keep the estimate of a path of long
/// ago.
#[derive(Debug)]
pub(crate) struct RttTracker {
    estimator: Box<dyn RttEstimator>,
    /// The newest ACK of this end.
    newest_ack: PacketNumber,
    /// The present estimate, kept because each packet needs it.
    estimate: Rtt,
    /// How long to wait for an acknowledgement, by that estimate.
    timeout: Duration,
    /// The report that the estimator took over since the last sample.
    report: Option<Rtt>,
    last_sample: Option<Duration>,
    samples: u64,
}

impl RttTracker {
    pub(crate) fn new(algorithm: &RttAlgorithm) -> Self {
        let estimator = algorithm.build();
        Self {
            timeout: estimator.timeout(Rtt::INITIAL),
            estimator,
            newest_ack: PacketNumber::default(),
            estimate: Rtt::INITIAL,
            report: None,
            last_sample: None,
            samples: 0,
        }
    }

    /// This end sends the ACK `number`, which the peer answers by ACKACK.
    pub(crate) fn ack_sent(&mut self, now: Instant, number: AckNo) {
        self.newest_ack = self.expand(number);
        self.estimator.sent(now, self.newest_ack);
    }

    /// The ACKACK for the ACK `number` arrived `rtt` after that ACK was sent.
    pub(crate) fn ack_answered(&mut self, now: Instant, number: AckNo, rtt: Duration) {
        self.last_sample = Some(rtt);
        self.samples += 1;
        self.report = None;
        let number = self.expand(number);
        self.estimator.acknowledged(&RttSample { now, number, rtt, ack_delay: Duration::ZERO });
        self.set_estimate(self.estimator.estimate().unwrap_or(Rtt::INITIAL));
    }

    /// The peer reported its estimate in an ACK. The initial estimate is ignored: the peer has not
    /// measured yet.
    pub(crate) fn peer_reported(&mut self, now: Instant, reported: Rtt) {
        if reported != Rtt::INITIAL
            && let Some(estimate) = self.estimator.peer_reported(now, reported)
        {
            self.report = Some(reported);
            self.set_estimate(estimate);
        }
    }

    pub(crate) const fn estimate(&self) -> Rtt {
        self.estimate
    }

    /// How long to wait for the peer's answer to a packet.
    pub(crate) const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The number of samples, and the latest one.
    pub(crate) fn measured(&self) -> (u64, Duration) {
        (self.samples, self.last_sample.unwrap_or_default())
    }

    /// The peer's report if it is newer than the latest sample, or else that sample. The drift
    /// tracer corrects by it.
    pub(crate) fn latest(&self) -> Option<Duration> {
        self.report.map(|rtt| rtt.smoothed).or(self.last_sample)
    }

    fn set_estimate(&mut self, estimate: Rtt) {
        self.estimate = estimate;
        self.timeout = self.estimator.timeout(estimate);
    }

    /// ACK numbers have 31 bits on the wire.
    const fn expand(&self, number: AckNo) -> PacketNumber {
        self.newest_ack.expand(number.value(), 31)
    }
}

#[cfg(test)]
mod tests {
    use punctual_rtt::ClassicRtt;

    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const NOW: Instant = Instant::from_millis(5_000);

    #[test]
    fn the_estimate_begins_with_the_drafts_and_follows_the_samples() {
        let mut tracker = RttTracker::new(&RttAlgorithm::default());
        assert_eq!(tracker.estimate(), Rtt::INITIAL);
        assert_eq!(tracker.measured(), (0, Duration::ZERO));
        tracker.ack_answered(NOW, AckNo::FIRST, MS(20));
        assert_eq!(tracker.estimate(), Rtt { smoothed: MS(20), variance: MS(10) });
        assert_eq!(tracker.timeout(), MS(20 + 4 * 10));
        assert_eq!(tracker.measured(), (1, MS(20)));
    }

    #[test]
    fn an_end_without_samples_takes_over_reports_but_no_initial_ones() {
        let mut tracker = RttTracker::new(&RttAlgorithm::default());
        let report = Rtt { smoothed: MS(33), variance: MS(2) };
        tracker.peer_reported(NOW, report);
        tracker.peer_reported(NOW, Rtt::INITIAL);
        assert_eq!(tracker.estimate(), report);
        assert_eq!(tracker.latest(), Some(MS(33)));
        tracker.ack_answered(NOW, AckNo::FIRST, MS(40));
        assert_eq!(tracker.estimate().smoothed, MS(40));
        assert_eq!(tracker.latest(), Some(MS(40)));
        tracker.peer_reported(NOW, report);
        assert_eq!(tracker.estimate(), report, "the newer one counts");
    }

    /// Estimates the number of the acknowledged packet, deviating by that of the newest one, in
    /// nanoseconds; takes over no report.
    #[derive(Debug, Default)]
    struct Numbers {
        sent: u64,
        acknowledged: Option<u64>,
    }

    impl RttEstimator for Numbers {
        fn sent(&mut self, _now: Instant, number: PacketNumber) {
            self.sent = number.value();
        }

        fn acknowledged(&mut self, sample: &RttSample) {
            self.acknowledged = Some(sample.number.value());
        }

        fn peer_reported(&mut self, _now: Instant, _reported: Rtt) -> Option<Rtt> {
            None
        }

        fn estimate(&self) -> Option<Rtt> {
            let smoothed = Duration::from_nanos(self.acknowledged?);
            Some(Rtt { smoothed, variance: Duration::from_nanos(self.sent) })
        }
    }

    #[test]
    fn an_estimator_hears_of_each_ack_by_a_number_that_never_wraps() {
        let mut tracker = RttTracker::new(&RttAlgorithm::custom(Numbers::default));
        tracker.newest_ack = PacketNumber::new(0x7FFF_FFFE);
        let last = AckNo::new(0x7FFF_FFFF);
        for number in [last, last.next()] {
            tracker.ack_sent(NOW, number);
        }
        for (number, expanded) in [(last, 0x7FFF_FFFF), (last.next(), 0x8000_0001)] {
            tracker.ack_answered(NOW, number, MS(10));
            let smoothed = Duration::from_nanos(expanded);
            let variance = Duration::from_nanos(0x8000_0001);
            assert_eq!(tracker.estimate(), Rtt { smoothed, variance });
        }
    }

    /// Waits for two round trips.
    #[derive(Debug, Default)]
    struct Patient(ClassicRtt);

    impl RttEstimator for Patient {
        fn acknowledged(&mut self, sample: &RttSample) {
            self.0.acknowledged(sample);
        }

        fn estimate(&self) -> Option<Rtt> {
            self.0.estimate()
        }

        fn timeout(&self, estimate: Rtt) -> Duration {
            estimate.smoothed * 2
        }
    }

    #[test]
    fn an_estimator_sets_the_timeout_of_each_estimate_and_report() {
        let mut tracker = RttTracker::new(&RttAlgorithm::custom(Patient::default));
        assert_eq!(tracker.timeout(), Rtt::INITIAL.smoothed * 2);
        tracker.ack_answered(NOW, AckNo::FIRST, MS(20));
        assert_eq!(tracker.timeout(), MS(40));
        tracker.peer_reported(NOW, Rtt { smoothed: MS(33), variance: MS(9) });
        assert_eq!(tracker.timeout(), MS(66));
    }

    #[test]
    fn an_estimator_that_refuses_reports_keeps_its_estimate() {
        let mut tracker = RttTracker::new(&RttAlgorithm::custom(Numbers::default));
        tracker.peer_reported(NOW, Rtt { smoothed: MS(33), variance: MS(2) });
        assert_eq!(tracker.estimate(), Rtt::INITIAL);
        assert_eq!(tracker.latest(), None);
    }
}
