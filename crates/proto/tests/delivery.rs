//! What live mode promises: each message once, in order, as it was sent, at origin time + latency.

mod pair;

use std::time::Duration;

use pair::{Pair, Side, number_of};
use punctual_netem::{LinkConfig, Loss};
use punctual_proto::Config;

const MS: fn(u64) -> Duration = Duration::from_millis;

fn link() -> LinkConfig {
    LinkConfig::default().with_delay(MS(10))
}

#[test]
fn a_perfect_link_delivers_each_message_at_its_tick() {
    let mut pair = Pair::symmetric(1, link());
    pair.connect(Config::default(), Config::default());
    let sent_from = pair.now;
    pair.stream(Side::Caller, 1_000, MS(2), MS(500));
    assert_eq!(pair.listener.received.len(), 1_000);
    for (i, (at, message)) in pair.listener.received.iter().enumerate() {
        assert_eq!(number_of(&message.payload), i as u32);
        let origin = sent_from + MS(2) * i as u32;
        assert_eq!(*at, origin + MS(10) + MS(120), "message {i}");
        assert_eq!(message.due, *at);
    }
}

#[test]
fn losses_are_recovered_in_time() {
    for seed in 0..10 {
        let lossy = link().with_loss(Loss::Random(0.05)).expect("a share");
        let mut pair = Pair::symmetric(seed, lossy);
        // Six round trips and more: enough attempts that all of them fail once in a million losses.
        let config = Config::default().with_latency(MS(250)).expect("in range");
        pair.connect(config.clone(), config);
        pair.stream(Side::Caller, 2_000, MS(2), MS(500));
        let numbers: Vec<u32> =
            pair.listener.received.iter().map(|(_, message)| number_of(&message.payload)).collect();
        assert_eq!(numbers, (0..2_000).collect::<Vec<_>>(), "seed {seed}");
        assert!(
            pair.listener.received.iter().all(|(at, message)| *at == message.due),
            "seed {seed}"
        );
    }
}
