//! A stream that is set up as a probe of its link recommends does as well as promised.

use std::time::Duration;

use punctual_netem::{Loss, PathProfile, presets};
use punctual_probe::{Measurement, Peer, ProbeConfig, Recommendation, Wishes, recommend};
use punctual_proto::{Config, MaxBandwidth};
use punctual_sim::{End, HostConfig, RateSchedule, StreamConfig, StreamOutcome, Transport, World};
use punctual_units::Bitrate;

use crate::probing::probe;

const MS: fn(u64) -> Duration = Duration::from_millis;

/// The options of both ends that a recommendation means.
fn options(recommendation: &Recommendation) -> Config {
    Config::default()
        .with_latency(recommendation.latency)
        .and_then(|config| config.with_reorder_tolerance(recommendation.reorder_tolerance))
        .and_then(|config| config.with_payload_size(recommendation.payload))
        .expect("a recommendation is legal")
        .with_max_bandwidth(MaxBandwidth::Absolute(recommendation.max_bandwidth))
        .with_retransmit_algorithm(recommendation.algorithm.into())
}

/// Three minutes of the recommended stream over the path, with this seed.
fn stream(path: &PathProfile, seed: u64, recommendation: &Recommendation) -> StreamOutcome {
    let mut world = World::new(seed);
    let (from, to) = (world.add_host(HostConfig::default()), world.add_host(HostConfig::default()));
    let there = world.add_link(path.up.clone());
    let back = world.add_link(path.down.clone());
    world.set_route(from, to, &[there]).expect("a route");
    world.set_route(to, from, &[back]).expect("a route");
    let stream = StreamConfig {
        transport: Transport::Srt {
            sender: options(recommendation),
            receiver: options(recommendation),
            caller: End::Sender,
        },
        rate: RateSchedule::constant(recommendation.stream_rate),
        payload: recommendation.payload,
        start: Duration::ZERO,
        duration: Duration::from_secs(180),
        from,
        to,
        series: None,
    };
    let stream = world.add_stream(stream).expect("a stream");
    world.run_for(Duration::from_secs(180) + recommendation.latency * 3);
    world.outcome(stream)
}

/// Probes, streams as recommended, and tells both in a line.
#[track_caller]
fn promise(
    name: &str,
    path: &PathProfile,
    stream_path: &PathProfile,
) -> (Measurement, Recommendation) {
    let measurement = probe(path, 1, &ProbeConfig::default(), Peer::Punctual);
    for step in &measurement.steps {
        println!("  {step:?}");
    }
    let recommendation = recommend(&measurement, &Wishes::default()).expect("enough was measured");
    let outcome = stream(stream_path, 2, &recommendation);
    let sent = outcome.messages_sent;
    let lost = sent - outcome.messages_received;
    let share = lost as f64 / sent as f64;
    println!(
        "{name}: {:#} at {} ms, expected {:.7} at most {:.7}, got {share:.7} ({lost} of {sent}), \
         refused {}",
        recommendation.stream_rate,
        recommendation.latency.as_millis(),
        recommendation.expected.share,
        recommendation.expected.at_most,
        outcome.messages_refused,
    );
    assert!(share <= recommendation.expected.at_most, "{name}: {share}");
    assert_eq!(outcome.messages_refused, 0, "{name}: the rate is not sustained");
    (measurement, recommendation)
}

#[track_caller]
fn promise_on(name: &str) -> (Measurement, Recommendation) {
    let preset = presets::find(name).expect("a preset");
    promise(name, &preset.path(11), &preset.path(11))
}

#[test]
fn on_the_laboratory_link_with_5_percent_of_loss() {
    let mut path = presets::find("lab").expect("a preset").path(1);
    for link in [&mut path.up, &mut path.down] {
        link.config = link.config.clone().with_loss(Loss::Random(0.05)).expect("a share");
    }
    promise("lab", &path, &path);
}

#[test]
fn on_a_stationary_4g_link_as_the_article_found_it() {
    let (measurement, recommendation) = promise_on("4g-stationary");
    assert_eq!(measurement.usable, Some(Bitrate::from_mbps(10)));
    assert_eq!(recommendation.stream_rate, Bitrate::from_mbps(8));
    assert_eq!(recommendation.max_bandwidth, Bitrate::from_mbps(10));
    assert!(recommendation.latency >= MS(1_200), "the event's RTT: {recommendation:?}");
}

#[test]
fn between_continents() {
    promise_on("intercontinental");
}

#[test]
fn over_wifi() {
    promise_on("wifi");
}

#[test]
fn on_a_mobile_link() {
    promise_on("mobile");
}

#[test]
fn on_foot() {
    promise_on("walking");
}

#[test]
fn in_a_car() {
    promise_on("driving");
}

#[test]
fn on_a_train() {
    promise_on("handover");
}

#[test]
fn in_a_stadium() {
    promise_on("stadium");
}
