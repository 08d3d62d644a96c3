//! A stream with the latency that the model says a target needs loses no more than the target, and
//! sends no more again than it says.

use std::time::Duration;

use punctual_netem::{Loss, PathProfile, presets};
use punctual_probe::model::{Need, PathFigures, needs};
use punctual_proto::{Config, RetransmitAlgorithm};
use punctual_units::Bitrate;

use crate::promise::stream_with;

const RATE: Bitrate = Bitrate::from_mbps(10);
const PAYLOAD: usize = 1_316;
const LONGEST: Duration = Duration::from_secs(8);

/// The figures of a link, as a user would type them.
struct Known {
    rtt: u64,
    loss: f64,
    burst: f64,
    target: f64,
    ceiling: Option<f64>,
}

impl Known {
    fn path(&self) -> PathProfile {
        let mut path = presets::find("lab").expect("a preset").path(1);
        let loss = match self.burst {
            1.0 => Loss::Random(self.loss),
            mean => Loss::GilbertElliott {
                p: self.loss / (1.0 - self.loss) / mean,
                r: 1.0 / mean,
                good_loss: 0.0,
                bad_loss: 1.0,
            },
        };
        for link in [&mut path.up, &mut path.down] {
            let config = link.config.clone().with_loss(loss.clone()).expect("a share");
            link.config = config;
            link.config.delay = Duration::from_millis(self.rtt) / 2;
        }
        path
    }

    fn needs(&self) -> Vec<Need> {
        let rtt = Duration::from_millis(self.rtt);
        let path = PathFigures::new(rtt, Duration::ZERO, RATE, PAYLOAD).expect("a path");
        let path = path.with_loss(self.loss, self.loss, self.burst).expect("a loss");
        needs(&path, self.target, self.ceiling, LONGEST).deadline
    }

    /// Streams for three minutes with these settings.
    fn stream(&self, need: &Need) -> (f64, f64, f64) {
        let config = Config::default()
            .with_latency(need.latency)
            .and_then(|config| config.with_loss_target(need.sender_target))
            .and_then(|config| config.with_retransmit_ceiling(self.ceiling.unwrap_or(0.0)))
            .expect("legal")
            .with_retransmit_algorithm(RetransmitAlgorithm::Deadline);
        let outcome = stream_with(&self.path(), 3, &config, RATE, PAYLOAD);
        let sent = outcome.messages_sent as f64;
        let lost = sent - outcome.messages_received as f64;
        let again = outcome.sender.packets_retransmitted as f64 / sent;
        println!(
            "{} ms, {} % of loss by {}, target {}: {need:?}: lost {:.3e}, again {again:.4}",
            self.rtt,
            self.loss * 100.0,
            self.burst,
            self.target,
            lost / sent
        );
        (lost, sent, again)
    }

    /// The first and the last need keep their promise.
    #[track_caller]
    fn hold(&self) {
        let needs = self.needs();
        let both = [needs.first(), needs.last()].map(|need| need.expect("in reach"));
        for need in both {
            let (lost, sent, again) = self.stream(need);
            // The most that chance may add to the allowed number.
            let allowed = self.target * sent;
            assert!(lost <= allowed + 3.0 * allowed.sqrt() + 1.0, "lost {lost}, {allowed} allowed");
            let most = need.overhead.max(self.ceiling.unwrap_or(0.0)) * 1.1;
            // The algorithm's own limit where several rounds fit. The first packets of a long burst
            // are detected late and have one round.
            let allowed = (self.loss / (1.0 - self.loss) + self.loss / 10.0) * 1.1;
            assert!(again <= most.max(allowed), "{again} was retransmitted, {need:?}");
        }
    }
}

#[test]
fn at_5_and_10_percent_of_loss() {
    for (loss, target) in [(0.05, 1e-4), (0.05, 1e-5), (0.1, 1e-4), (0.1, 1e-5), (0.1, 1e-6)] {
        Known { rtt: 20, loss, burst: 1.0, target, ceiling: None }.hold();
    }
}

#[test]
fn over_longer_ways() {
    for (rtt, loss, target) in [(60, 0.05, 1e-4), (150, 0.02, 1e-5), (300, 0.1, 1e-4)] {
        Known { rtt, loss, burst: 1.0, target, ceiling: None }.hold();
    }
}

#[test]
fn a_ceiling_buys_a_latency_of_hardly_more_than_a_round_trip() {
    for (loss, target, ceiling) in [(0.01, 1e-5, 0.05), (0.02, 1e-4, 0.1)] {
        Known { rtt: 60, loss, burst: 1.0, target, ceiling: Some(ceiling) }.hold();
    }
}

#[test]
fn with_losses_in_bursts() {
    for (rtt, burst, target) in [(20, 3.0, 1e-4), (60, 10.0, 1e-4)] {
        Known { rtt, loss: 0.02, burst, target, ceiling: None }.hold();
    }
}
