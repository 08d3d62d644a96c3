//! TCP flows that carry a transfer or a live stream: every byte in order, and when.

use std::time::Duration;

use proptest::prelude::*;
use punctual_netem::{LinkConfig, Loss, PacketList, Reorder};
use punctual_sim::{
    FlowProgress, TcpConfig, TcpControl, TcpSource, Traffic, TrafficConfig, TrafficStatistics,
};
use punctual_units::Bitrate;

use crate::common::{MS, Pair, SECS, bottleneck, delay, tcp};

const ALL: [TcpControl; 3] = [TcpControl::NewReno, TcpControl::Cubic, TcpControl::Bbr];

/// The course of a flow over a link, with answers over a perfect one.
fn run(
    seed: u64,
    link: &LinkConfig,
    (control, source): (TcpControl, TcpSource),
    time: Duration,
) -> (FlowProgress, TrafficStatistics) {
    let mut pair = Pair::new(seed, link.clone());
    pair.world.set_link(pair.back, LinkConfig::default().with_delay(link.delay));
    let tcp_config = TcpConfig::new(control).with_source(source);
    let traffic = TrafficConfig { traffic: Traffic::Tcp(tcp_config), ..tcp(&pair, control) };
    let flow = pair.world.add_traffic(traffic).expect("traffic");
    pair.world.run_for(time);
    let progress = pair.world.traffic_progress(flow).expect("TCP").clone();
    (progress, pair.world.traffic_statistics(flow))
}

#[test]
fn a_transfer_ends_with_its_last_byte() {
    for control in ALL {
        let source = TcpSource::Bytes(5_000_001);
        let link = bottleneck(20, MS(40), 2.0);
        let (progress, statistics) = run(1, &link, (control, source), SECS(10));
        let finished = progress.finished().expect("an end");
        // 2.07 s at the link's rate with headers, and slow start.
        assert!((MS(2_070)..MS(2_700)).contains(&finished), "{control:?} {finished:?}");
        assert_eq!(progress.bytes(), 5_000_001);
        assert_eq!(progress.bytes_at(SECS(9)), 5_000_001);
        assert_eq!(statistics.goodput_bytes, 3_454 * 1_500);
        assert_eq!(statistics.sent, 3_454 + statistics.retransmitted);
    }
}

#[test]
fn every_byte_arrives_over_a_link_that_loses_delays_damages_and_doubles() {
    for (seed, control) in (1..).zip(ALL) {
        let link = bottleneck(20, MS(40), 1.0)
            .with_loss(Loss::Random(0.03))
            .and_then(|link| link.with_duplicate(0.02))
            .and_then(|link| link.with_corrupt(0.02))
            .and_then(|link| link.with_reorder(Reorder::Late { share: 0.02, by: MS(30) }))
            .expect("shares");
        let mut pair = Pair::new(seed, link);
        let source = TcpSource::Bytes(3_000_000);
        let config = TcpConfig::new(control).with_source(source);
        let traffic = TrafficConfig { traffic: Traffic::Tcp(config), ..tcp(&pair, control) };
        let flow = pair.world.add_traffic(traffic).expect("traffic");
        pair.world.run_for(SECS(60));
        let progress = pair.world.traffic_progress(flow).expect("TCP");
        assert!(progress.finished().is_some(), "seed {seed}: {control:?} {}", progress.bytes());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_transfer_ends_over_any_link_that_lets_some_packets_through(
        seed in 0_u64..1 << 32,
        control in prop::sample::select(ALL.to_vec()),
        bytes in 1_u64..400_000,
        mbps in 1_u64..60,
        ms in 1_u64..120,
        queue in 0.1_f64..3.0,
        shares in prop::array::uniform4(0.0_f64..0.15),
    ) {
        let [loss, doubled, damaged, late] = shares;
        let link = bottleneck(mbps, MS(ms), queue)
            .with_loss(Loss::Random(loss))
            .and_then(|link| link.with_duplicate(doubled))
            .and_then(|link| link.with_corrupt(damaged))
            .and_then(|link| link.with_reorder(Reorder::Late { share: late, by: MS(ms) }))
            .expect("shares");
        // The same both ways: answers get lost too.
        let mut pair = Pair::new(seed, link);
        let config = TcpConfig::new(control).with_source(TcpSource::Bytes(bytes));
        let traffic = TrafficConfig { traffic: Traffic::Tcp(config), ..tcp(&pair, control) };
        let flow = pair.world.add_traffic(traffic).expect("traffic");
        pair.world.run_for(SECS(600));
        let progress = pair.world.traffic_progress(flow).expect("TCP");
        prop_assert_eq!(progress.bytes(), bytes);
        prop_assert!(progress.finished().is_some());
        let statistics = pair.world.traffic_statistics(flow);
        prop_assert_eq!(statistics.goodput_bytes, bytes.div_ceil(1_448) * 1_500, "{:?}", statistics);
        prop_assert!(statistics.retransmitted >= statistics.sent - bytes.div_ceil(1_448));
    }
}

#[test]
fn a_slow_live_stream_sends_each_segment_when_it_is_there() {
    // A segment each 116 ms, over a round trip of 40 ms.
    let rate = Bitrate::from_bits_per_sec(100_000);
    for control in ALL {
        let source = (control, TcpSource::Rate(rate));
        let (progress, statistics) = run(1, &bottleneck(20, MS(40), 1.0), source, SECS(60));
        let sent = [1, 100, 400].map(|segments| rate.time_for(segments * 1_448));
        let arrived = [1, 100, 400].map(|segments| progress.time_of(segments * 1_448));
        for (sent, arrived) in sent.into_iter().zip(arrived) {
            let delay = arrived.expect("it arrived") - sent;
            assert!(delay < MS(27), "{control:?} {delay:?}");
        }
        assert_eq!((statistics.lost, statistics.timeouts), (0, 0), "{control:?} {statistics:?}");
        assert_eq!(
            (statistics.probes, statistics.retransmitted),
            (0, 0),
            "{control:?} {statistics:?}"
        );
    }
}

#[test]
fn a_lost_tail_is_found_by_a_probe_in_place_of_a_timeout() {
    // Twenty packets: ten at first, and ten when they are answered. The last one is lost, then the
    // last three.
    for lost in [(19, 19), (17, 19)] {
        let list = PacketList::new([lost]);
        let link = delay(50).with_rate(Some(Bitrate::from_mbps(10)));
        let link = link.with_loss(Loss::List(list)).expect("no share in it");
        let source = (TcpControl::Cubic, TcpSource::Bytes(20 * 1_448));
        let (progress, statistics) = run(1, &link, source, SECS(5));
        assert_eq!((statistics.probes, statistics.timeouts), (1, 0), "{statistics:?}");
        assert_eq!(statistics.reductions, 1, "{statistics:?}");
        // The last answer comes after some 210 ms, the probe two round trips later.
        assert!(progress.finished().is_some_and(|at| at < MS(700)), "{:?}", progress.finished());
    }
}

#[test]
fn a_lost_packet_costs_a_round_trip_and_not_a_timeout() {
    let list = PacketList::new([(100, 100)]);
    let link = bottleneck(10, MS(100), 2.0).with_loss(Loss::List(list)).expect("no share in it");
    for control in ALL {
        let source = (control, TcpSource::Bytes(300 * 1_448));
        let (_, statistics) = run(1, &link, source, SECS(5));
        let counts = [statistics.lost, statistics.retransmitted, statistics.reductions];
        assert_eq!(counts, [1, 1, 1], "{control:?} {statistics:?}");
        assert_eq!((statistics.timeouts, statistics.probes), (0, 0), "{control:?} {statistics:?}");
    }
}

#[test]
fn a_live_stream_keeps_its_rate_where_there_is_room() {
    let rate = Bitrate::from_mbps(6);
    for control in ALL {
        let source = (control, TcpSource::Rate(rate));
        let (progress, statistics) = run(1, &bottleneck(20, MS(40), 1.0), source, SECS(20));
        let first_second = progress.time_of(rate.as_bytes_per_sec()).expect("a second of it");
        // A second until it is there, and 20 ms on the way.
        assert!((MS(1_020)..MS(1_050)).contains(&first_second), "{control:?} {first_second:?}");
        let received = progress.rate(SECS(2), SECS(20)).as_mbps();
        assert!((5.99..6.01).contains(&received), "{control:?} {received} Mb/s");
        assert_eq!(statistics.lost, 0, "{control:?} {statistics:?}");
        // 6 Mb/s for 40 ms are 20 packets, and the first window brought ten. BBR does not leave its
        // startup while the application is the limit, and counts bursts.
        assert!(statistics.window < 120 * 1_500, "{control:?} {statistics:?}");
    }
}

#[test]
fn the_first_second_of_video_is_late_with_cubic_and_early_with_bbr() {
    // 40 Mb/s over 50 Mb/s, 200 ms and 2 % of loss: CUBIC has half a megabit a second after slow
    // start, with which five megabytes would take 80 s.
    let rate = Bitrate::from_mbps(40);
    for seed in 1..=3 {
        let delays = [TcpControl::Cubic, TcpControl::Bbr].map(|control| {
            let link = bottleneck(50, MS(200), 1.0).with_loss(Loss::Random(0.02)).expect("a share");
            let (progress, _) = run(seed, &link, (control, TcpSource::Rate(rate)), SECS(120));
            progress.time_of(rate.as_bytes_per_sec()).unwrap_or(SECS(120))
        });
        assert!(delays[0] > SECS(40) && delays[1] < SECS(5), "seed {seed}: {delays:?}");
    }
}
