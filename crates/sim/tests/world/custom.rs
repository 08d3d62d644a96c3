//! Custom policies, estimators and congestion controls in the simulator, each with a parameter.

use std::time::Duration;

use punctual_proto::{
    Config, CongestionAlgorithm, CongestionControl, Decision, MissingPackets, NakAlgorithm,
    NakPolicy, PathState, ReceiverView, ReportedPacket, RetransmitAlgorithm, RetransmitPolicy, Rtt,
    RttAlgorithm, RttEstimator, RttSample, SenderView, SentNak, SeqNo,
};
use punctual_units::{Bitrate, Instant};

use crate::common::{MS, Pair, SECS, delay, latency, lossy, srt};

/// Retransmits each packet `limit` times at most.
#[derive(Debug)]
struct AtMost {
    limit: u32,
}

impl RetransmitPolicy for AtMost {
    fn decide(&mut self, _now: Instant, packet: &ReportedPacket, _view: &SenderView) -> Decision {
        if packet.retransmissions < self.limit { Decision::ONCE } else { Decision::TooLate }
    }
}

/// Sends a NAK each `interval`, without copies.
#[derive(Debug)]
struct Each {
    interval: Duration,
}

impl NakPolicy for Each {
    fn nak_at(&self, missing: &MissingPackets, _view: &ReceiverView) -> Instant {
        missing.last_nak.map_or(missing.detected, |last| last + self.interval)
    }

    fn copy_after(&self, _n: u32, _nak: &SentNak, _view: &ReceiverView) -> Option<Duration> {
        None
    }
}

/// Estimates `rtt` whatever is measured.
#[derive(Debug)]
struct Fixed {
    rtt: Duration,
}

impl RttEstimator for Fixed {
    fn acknowledged(&mut self, _sample: &RttSample) {}

    fn estimate(&self) -> Option<Rtt> {
        Some(Rtt { smoothed: self.rtt, variance: MS(1) })
    }
}

#[test]
fn a_custom_retransmission_policy_and_its_limit_count() {
    for limit in [0, 1] {
        let policy = RetransmitAlgorithm::custom(move || AtMost { limit });
        let mut pair = Pair::new(1, lossy(20, 0.05));
        let config = latency(300).with_retransmit_algorithm(policy);
        let stream = pair.add(pair.stream(srt(&config), 5, 5));
        pair.world.run_for(SECS(7));
        let outcome = pair.world.outcome(stream);
        let lost = outcome.receiver.packets_receive_lost;
        assert!(lost > 50, "{lost}");
        let again = outcome.sender.packets_retransmitted;
        assert!(again <= lost * u64::from(limit), "{again} for {lost}");
        assert_eq!(again > 0, limit > 0);
    }
}

#[test]
fn a_custom_nak_policy_and_its_interval_count() {
    let naks = [5, 30].map(|interval| {
        let policy = NakAlgorithm::custom(move || Each { interval: MS(interval) });
        let mut pair = Pair::new(1, lossy(20, 0.05));
        let stream = pair.add(pair.stream(srt(&latency(300).with_nak_algorithm(policy)), 5, 5));
        pair.world.run_for(SECS(7));
        pair.world.outcome(stream).receiver.naks_sent
    });
    assert!(naks[0] > 2 * naks[1], "{naks:?}");
}

#[test]
fn a_custom_rtt_estimator_and_its_parameter_count() {
    let estimator = RttAlgorithm::custom(|| Fixed { rtt: MS(77) });
    let mut pair = Pair::new(1, delay(20));
    let stream = pair.add(pair.stream(srt(&latency(120).with_rtt_algorithm(estimator)), 5, 2));
    pair.world.run_for(SECS(3));
    assert_eq!(pair.world.outcome(stream).receiver.rtt, MS(77));
}

/// Keeps `queue` bytes in the bottleneck's queue, at a rate from `least` to `target`, bits a
/// second.
#[derive(Debug)]
struct ByDelay {
    least: f64,
    target: f64,
    queue: f64,
    rate: f64,
    updated: Instant,
}

impl CongestionControl for ByDelay {
    fn period(&self) -> Duration {
        Duration::from_secs_f64(12_000.0 / self.rate)
    }

    fn rate(&self) -> Option<Bitrate> {
        #[expect(clippy::cast_sign_loss, reason = "a rate is positive")]
        Some(Bitrate::from_bits_per_sec(self.rate as u64))
    }

    fn window(&self) -> u32 {
        u32::MAX
    }

    fn max_bandwidth(&self) -> Bitrate {
        Bitrate::from_mbps(1_000)
    }

    fn round_trip(&mut self, now: Instant, path: &PathState) {
        if now >= self.updated + path.latest_rtt {
            self.updated = now;
            let rtt = path.latest_rtt.as_secs_f64();
            let wanted = (self.rate * path.base_rtt.as_secs_f64() + self.queue * 8.0) / rtt;
            // The peer smooths its reports over eight samples or so: small steps are stable.
            let rate = self.rate + (wanted - self.rate) / 8.0;
            self.rate = rate.clamp(self.least, self.target);
        }
    }

    fn acknowledged(&mut self, _now: Instant, _packets: u32, _path: &PathState) {}

    fn lost(&mut self, _now: Instant, _first: SeqNo, _path: &PathState) {}

    fn timed_out(&mut self, _now: Instant, _path: &PathState) {}
}

/// Sends a file for 20 s over a link of 10 Mb/s and 40 ms that loses 1 %. Returns the rate that
/// arrived, Mb/s, and the queueing delay in the end.
fn over_ten_megabits(target_mbps: f64) -> (f64, Duration) {
    let control = CongestionAlgorithm::custom(move || ByDelay {
        least: 1e6,
        target: target_mbps * 1e6,
        queue: 12_500.0,
        rate: 1e6,
        updated: Instant::ORIGIN,
    });
    let config = Config::file().with_congestion_algorithm(control);
    let link = lossy(20, 0.01).with_rate(Some(Bitrate::from_mbps(10)));
    let mut pair = Pair::new(1, link);
    let stream = pair.add(pair.stream(srt(&config), 40, 20));
    pair.world.run_for(SECS(10));
    let before = pair.world.outcome(stream).bytes_received;
    pair.world.run_for(SECS(10));
    let outcome = pair.world.outcome(stream);
    let rate = (outcome.bytes_received - before) as f64 * 8.0 / 10e6;
    (rate, outcome.sender.rtt.saturating_sub(MS(40)))
}

#[test]
fn a_control_by_delay_fills_a_link_that_loses_and_keeps_its_queue_short() {
    let (rate, queueing) = over_ten_megabits(20.0);
    assert!((8.5..10.0).contains(&rate), "{rate} Mb/s");
    // 12,500 bytes take 10 ms at 10 Mb/s.
    assert!(queueing < MS(20), "{queueing:?}");
}

#[test]
fn a_control_by_delay_keeps_to_its_target_rate() {
    let (rate, queueing) = over_ten_megabits(4.0);
    assert!((3.5..4.0).contains(&rate), "{rate} Mb/s");
    assert!(queueing < MS(5), "{queueing:?}");
}
