//! Random decisions that the explorers of connections and of worlds have in common. The decisions
//! come from the caller's draws, always in the same order, so that a seed keeps its plan.

use std::time::Duration;

use punctual_netem::{Change, Jitter, Loss, Reorder};
use punctual_proto::{Config, RetransmitAlgorithm};

use crate::random::Random;

/// Impairments of a link that a network has without being full: jitter, loss, reordering and
/// duplicates. Each is there in one of `n` cases, so that they meet in all combinations.
pub fn draw_impairments(chance: &mut Random, n: u32) -> Vec<Change> {
    let mut changes = Vec::new();
    if chance.one_in(n) {
        changes.push(Change::Jitter(Jitter::Uniform { spread: chance.millis(15) }));
        changes.push(Change::KeepOrder(chance.one_in(2)));
    }
    if chance.one_in(n) {
        let length = 1.0 + chance.share(20.0);
        let share = chance.share(0.2);
        let bursts = chance.one_in(2);
        let loss = if bursts { Loss::bursts(share, length) } else { Loss::Random(share) };
        changes.push(Change::Loss(loss));
    }
    if chance.one_in(n) {
        let (share, by) = (chance.share(0.2), chance.millis(30));
        let late = chance.one_in(2);
        let reorder = if late { Reorder::Late { share, by } } else { Reorder::Ahead { share, by } };
        changes.push(Change::Reorder(reorder));
    }
    if chance.one_in(n) {
        changes.push(Change::Duplicate(chance.share(0.3)));
    }
    changes
}

/// Options of a live connection with one of these latencies and algorithms, which stays idle for a
/// minute without ending. Its buffers and limits are the defaults.
pub fn draw_live(
    chance: &mut Random,
    latencies: &[Duration],
    algorithms: &[RetransmitAlgorithm],
) -> Config {
    let mut config = Config::default()
        .with_receive_latency(chance.pick(latencies))
        .and_then(|config| config.with_peer_idle_timeout(Duration::from_secs(60)))
        .expect("in range")
        .with_tsbpd(!chance.one_in(8))
        .with_too_late_drop(!chance.one_in(4))
        .with_periodic_nak(!chance.one_in(6))
        .with_drift_tracer(!chance.one_in(3))
        .with_retransmit_algorithm(chance.pick(algorithms));
    if chance.one_in(4) {
        let delays = [None, Some(Duration::from_millis(500))];
        config = config.with_send_drop_delay(chance.pick(&delays));
    }
    if chance.one_in(3) {
        config = config.with_reorder_tolerance(chance.below(30)).expect("in range");
    }
    config
}
