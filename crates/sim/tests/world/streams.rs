//! Streams over two links.

use std::time::Duration;

use punctual_netem::LinkConfig;
use punctual_proto::{CloseReason, Config};
use punctual_sim::{End, RateSchedule, StreamConfig, Transport, WorldError};
use punctual_units::Bitrate;

use crate::common::{MS, Pair, SECS, delay, latency, lossy, srt};

#[test]
fn on_a_perfect_link_every_message_takes_exactly_delay_and_latency() {
    for (config, caller) in [(latency(120), End::Sender), (latency(500), End::Receiver)] {
        let mut pair = Pair::new(1, delay(20));
        let expected = 20_000 + config.receive_latency().as_micros() as u64;
        let transport = Transport::Srt { sender: config.clone(), receiver: config, caller };
        let stream = pair.add(pair.stream(transport, 10, 5));
        pair.world.run_for(SECS(6));
        let outcome = pair.world.outcome(stream);
        assert_eq!(outcome.messages_sent, 5_000);
        assert_eq!(outcome.bytes_sent, 6_250_000);
        assert_eq!((outcome.messages_received, outcome.bytes_received), (5_000, 6_250_000));
        let latency = &outcome.latency_us;
        assert_eq!((latency.min(), latency.max()), (Some(expected), Some(expected)));
        assert_eq!((outcome.metrics.jitter_us, outcome.metrics.delay_factor_us), (0, Some(0)));
        assert_eq!(outcome.integrity, Default::default());
        assert_eq!(outcome.sender.packets_sent_unique, 5_000);
        assert_eq!(outcome.receiver.packets_received_unique, 5_000);
        assert_eq!(outcome.closed, None);
    }
}

#[test]
fn a_caller_connects_after_two_round_trips() {
    let mut pair = Pair::new(1, delay(20));
    let start = MS(300);
    let stream = StreamConfig { start, ..pair.stream(srt(&latency(120)), 1, 1) };
    let stream = pair.add(stream);
    pair.world.run_for(SECS(1));
    assert_eq!(pair.world.outcome(stream).connected_at, Some(start + MS(80)));
}

#[test]
fn bare_udp_has_the_delay_and_the_losses_of_the_link() {
    let mut pair = Pair::new(1, lossy(20, 0.1));
    let stream = pair.add(pair.stream(Transport::Udp, 10, 10));
    pair.world.run_for(SECS(11));
    let outcome = pair.world.outcome(stream);
    let lost = pair.world.link_statistics(pair.there).lost;
    assert_eq!(outcome.messages_sent, 10_000);
    assert_eq!(outcome.messages_received + lost, 10_000);
    assert_eq!(outcome.metrics.lost, lost);
    assert_eq!((outcome.latency_us.min(), outcome.latency_us.max()), (Some(20_000), Some(20_000)));
}

#[test]
fn a_packet_takes_28_bytes_more_on_the_link_than_its_datagram() {
    // 1250 bytes and 28 take 10.224 ms at 1 Mb/s.
    let mut pair = Pair::new(1, delay(20).with_rate(Some(Bitrate::from_mbps(1))));
    let stream = pair.add(StreamConfig {
        duration: Duration::from_nanos(1),
        ..pair.stream(Transport::Udp, 1, 1)
    });
    pair.world.run_for(SECS(1));
    assert_eq!(pair.world.outcome(stream).latency_us.min(), Some(30_224));
    assert_eq!(pair.world.link_statistics(pair.there).sent_bytes, 1_278);
}

#[test]
fn loss_is_repaired_within_the_latency() {
    let mut pair = Pair::new(1, lossy(20, 0.05));
    let stream = pair.add(pair.stream(srt(&latency(400)), 10, 20));
    pair.world.run_for(SECS(22));
    let outcome = pair.world.outcome(stream);
    assert!(outcome.sender.packets_retransmitted > 900);
    assert_eq!(outcome.messages_received, 20_000);
    assert_eq!(outcome.metrics.lost, 0);
    assert_eq!(outcome.latency_us.max(), Some(420_000));
}

#[test]
fn a_series_has_a_sample_each_period_whose_totals_rise() {
    let mut pair = Pair::new(1, lossy(20, 0.02));
    let series = Some(MS(100));
    let stream = StreamConfig { series, start: MS(50), ..pair.stream(srt(&latency(200)), 10, 5) };
    let stream = pair.add(stream);
    pair.world.run_for(MS(5_050));
    let outcome = pair.world.outcome(stream);
    let times: Vec<Duration> = outcome.series.iter().map(|sample| sample.at).collect();
    assert_eq!(times, (1..=50).map(|n| MS(100 * n)).collect::<Vec<_>>());
    for pair in outcome.series.windows(2) {
        assert!(pair[0].messages_sent < pair[1].messages_sent);
        assert!(pair[0].sender.packets_sent < pair[1].sender.packets_sent);
        assert!(pair[0].metrics.received <= pair[1].metrics.received);
    }
    // A sample's period has a hundred packets; the last sample has the totals of the outcome.
    let last = outcome.series.last().expect("fifty samples");
    assert_eq!(last.metrics.received, outcome.metrics.received);
    assert_eq!(last.metrics.latency_us_max, Some(220_000));
}

#[test]
fn a_ramp_sends_what_its_steps_say() {
    let mut pair = Pair::new(1, delay(1));
    let mbps = Bitrate::from_mbps;
    let rate = RateSchedule::ramp(mbps(1), mbps(2), SECS(2), SECS(6));
    let config = StreamConfig { rate, ..pair.stream(srt(&latency(120)), 1, 6) };
    let stream = pair.add(config);
    pair.world.run_for(SECS(8));
    // 100, 300 and 500 messages a second, two seconds each.
    assert_eq!(pair.world.outcome(stream).messages_received, 1_800);
}

#[test]
fn two_streams_share_a_bottleneck_and_a_queue() {
    // Each alone would fit; together they are 1.2 times the rate of the link.
    let link = delay(10).with_rate(Some(Bitrate::from_mbps(10)));
    let mut pair = Pair::new(1, link);
    let streams = [pair.add(pair.stream(Transport::Udp, 6, 20)), {
        let start = MS(1);
        pair.add(StreamConfig { start, ..pair.stream(Transport::Udp, 6, 20) })
    }];
    pair.world.run_for(SECS(25));
    let link = pair.world.link_statistics(pair.there).clone();
    let outcomes = streams.map(|stream| pair.world.outcome(stream));
    let received: u64 = outcomes.iter().map(|outcome| outcome.messages_received).sum();
    let sent: u64 = outcomes.iter().map(|outcome| outcome.messages_sent).sum();
    assert_eq!(received + link.dropped_by_queue, sent);
    assert!(link.dropped_by_queue > 2_000, "{link:?}");
    for outcome in outcomes {
        let latency = outcome.latency_us.max().expect("messages");
        assert!(latency > 900_000, "a thousand packets wait at 10 Mb/s: {latency}");
    }
}

#[test]
fn streams_between_two_hosts_are_told_apart() {
    let mut pair = Pair::new(1, lossy(10, 0.05));
    let rates = [1, 3, 5];
    let streams = rates.map(|mbps| {
        let caller = if mbps == 3 { End::Receiver } else { End::Sender };
        let (sender, receiver) = (latency(300), latency(300));
        pair.add(pair.stream(Transport::Srt { sender, receiver, caller }, mbps, 5))
    });
    pair.world.run_for(SECS(7));
    for (stream, mbps) in streams.into_iter().zip(rates) {
        let outcome = pair.world.outcome(stream);
        assert_eq!(outcome.messages_received, mbps * 500);
        assert_eq!(outcome.integrity, Default::default());
    }
}

#[test]
fn damage_that_the_checksum_misses_is_found_in_the_message() {
    let link = delay(10).with_corrupt(0.05).expect("a share");
    let checked = punctual_sim::HostConfig::default();
    let mut pair = Pair::of(3, link.clone(), checked, checked);
    let stream = pair.add(pair.stream(Transport::Udp, 10, 5));
    pair.world.run_for(SECS(6));
    let corrupted = pair.world.link_statistics(pair.there).corrupted;
    assert!(corrupted > 100);
    assert_eq!(pair.world.damaged_datagrams(pair.to), corrupted);
    assert_eq!(pair.world.outcome(stream).integrity.damaged, 0);
    assert_eq!(pair.world.outcome(stream).metrics.lost, corrupted);

    let mut pair = Pair::of(3, link, checked, checked.with_checksums(false));
    let stream = pair.add(pair.stream(Transport::Udp, 10, 5));
    pair.world.run_for(SECS(6));
    assert_eq!(pair.world.outcome(stream).integrity.damaged, corrupted);
    assert_eq!(pair.world.outcome(stream).metrics.checksum_errors, corrupted);
}

#[test]
fn a_call_that_nobody_hears_ends_with_its_reason() {
    let mut pair =
        Pair::new(1, LinkConfig::default().with_loss(punctual_netem::Loss::All).unwrap());
    let stream = pair.add(pair.stream(srt(&Config::default()), 1, 1));
    pair.world.run_for(SECS(5));
    let outcome = pair.world.outcome(stream);
    assert!(matches!(outcome.closed, Some(CloseReason::ConnectTimeout(_))), "{outcome:?}");
    assert_eq!((outcome.messages_sent, outcome.connected_at), (0, None));
}

#[test]
fn an_impossible_stream_is_refused_with_the_reason() {
    let mut pair = Pair::new(1, delay(1));
    let stream = pair.stream(srt(&Config::default()), 1, 1);
    let refused = |pair: &mut Pair, stream| pair.world.add_stream(stream).unwrap_err().to_string();
    let error = refused(&mut pair, StreamConfig { payload: 2_000, ..stream.clone() });
    assert_eq!(error, "a message of 2000 bytes cannot be sent; it must have 24 to 1316 bytes");
    let to = stream.from;
    let error = refused(&mut pair, StreamConfig { to, ..stream.clone() });
    assert!(error.starts_with("a stream leads from one host to another"), "{error}");
    let error = refused(&mut pair, StreamConfig { series: Some(SECS(0)), ..stream.clone() });
    assert_eq!(error, "the period of a series must be longer than zero");
    let stranger = pair.world.add_host(punctual_sim::HostConfig::default());
    let error = refused(&mut pair, StreamConfig { to: stranger, ..stream.clone() });
    assert!(error.starts_with("there is no route"), "{error}");
    let fast = RateSchedule::constant(Bitrate::from_mbps(1_000_000));
    let error = refused(&mut pair, StreamConfig { rate: fast, ..stream });
    assert!(error.contains("too fast"), "{error}");
    assert_eq!(pair.world.set_route(pair.from, pair.to, &[]), Err(WorldError::EmptyRoute));
}
