//! Streams of bytes with a playout point.

use punctual_netem::{LinkConfig, Loss};
use punctual_proto::{Aggressive, Config, RetransmitAlgorithm};
use punctual_sim::StreamConfig;
use punctual_units::Bitrate;

use crate::common::{MS, Pair, SECS, srt};

fn playout(ms: u64) -> Config {
    Config::file().with_playout(MS(ms)).expect("in range")
}

/// The glitches of two minutes at 40 Mb/s over 200 ms and a loss of 2 % each way, and the number of
/// copies per original. The first ten seconds do not count, in which the sender finds the rate.
fn glitches(seed: u64, config: &Config) -> (u64, f64) {
    let link = LinkConfig::default()
        .with_rate(Some(Bitrate::from_mbps(50)))
        .with_delay(MS(100))
        .with_loss(Loss::Random(0.02))
        .expect("a share");
    let mut pair = Pair::new(seed, link);
    let stream = pair.stream(srt(config), 40, 120);
    let stream = pair.add(StreamConfig { payload: 1_456, ..stream });
    pair.world.run_for(SECS(10));
    let start = pair.world.outcome(stream).receiver.glitches;
    pair.world.run_for(SECS(115));
    let outcome = pair.world.outcome(stream);
    assert_eq!(outcome.messages_sent, outcome.messages_received, "seed {seed}: nothing is dropped");
    let copies = outcome.sender.packets_copied as f64 / outcome.sender.packets_sent_unique as f64;
    (outcome.receiver.glitches - start, copies)
}

#[test]
fn copies_of_last_retransmissions_prevent_glitches() {
    // A round of NAK and retransmission fits into 400 ms, a second one into 500 ms.
    let without_copies = RetransmitAlgorithm::custom(|| Aggressive);
    let (without, _) = glitches(2, &playout(400).with_retransmit_algorithm(without_copies));
    assert!(without > 100, "one round, without copies: {without} glitches");
    let (one_round, copies) = glitches(2, &playout(400));
    assert_eq!(one_round, 0, "one round, with {copies} copies per original");
    assert!(copies < 0.09, "{copies} copies per original for a loss of 0.02");
    let (two_rounds, copies) = glitches(2, &playout(500));
    assert_eq!(two_rounds, 0, "two rounds, with {copies} copies per original");
    // Three for each packet that needs the second round would be 0.0012.
    assert!((0.001..0.002_5).contains(&copies), "two rounds, {copies} copies per original");
}
