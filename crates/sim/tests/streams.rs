//! One stream over two links: what a world promises of it.

use std::time::Duration;

use punctual_netem::{LinkConfig, Loss};
use punctual_proto::Config;
use punctual_sim::{End, HostConfig, RateSchedule, StreamConfig, StreamId, Transport, World};
use punctual_units::Bitrate;

const MS: fn(u64) -> Duration = Duration::from_millis;
const SECS: fn(u64) -> Duration = Duration::from_secs;

fn latency(ms: u64) -> Config {
    Config::default().with_latency(MS(ms)).expect("in range")
}

/// A stream of 10 Mb/s over these links, there and back.
fn pair(seed: u64, link: LinkConfig, config: &Config, seconds: u64) -> (World, StreamId) {
    let mut world = World::new(seed);
    let (from, to) = (world.add_host(HostConfig::default()), world.add_host(HostConfig::default()));
    let (there, back) = (world.add_link(link.clone()), world.add_link(link));
    world.set_route(from, to, &[there]).expect("a route");
    world.set_route(to, from, &[back]).expect("a route");
    let stream = world
        .add_stream(StreamConfig {
            transport: Transport::Srt {
                sender: config.clone(),
                receiver: config.clone(),
                caller: End::Sender,
            },
            rate: RateSchedule::constant(Bitrate::from_mbps(10)),
            payload: 1_316,
            start: Duration::ZERO,
            duration: SECS(seconds),
            from,
            to,
            series: None,
        })
        .expect("a stream");
    (world, stream)
}

#[test]
fn on_a_perfect_link_every_message_has_exactly_the_latency() {
    let link = LinkConfig::default().with_delay(MS(20));
    let (mut world, stream) = pair(1, link, &latency(120), 5);
    world.run_for(SECS(6));
    let outcome = world.outcome(stream);
    println!("{outcome:?}");
    assert_eq!(outcome.messages_sent, 4_750);
    assert_eq!(outcome.messages_received, 4_750);
    assert_eq!(
        (outcome.latency_us.min(), outcome.latency_us.max()),
        (Some(140_000), Some(140_000))
    );
}

#[test]
fn loss_is_repaired() {
    let link =
        LinkConfig::default().with_delay(MS(20)).with_loss(Loss::Random(0.05)).expect("a share");
    let (mut world, stream) = pair(1, link, &latency(240), 20);
    world.run_for(SECS(22));
    let outcome = world.outcome(stream);
    println!("{outcome:?}");
    assert_eq!(outcome.messages_sent, outcome.messages_received);
}
