//! Cross traffic.

use punctual_netem::QueueLimit;
use punctual_sim::{TcpControl, Traffic, TrafficConfig, Transport};
use punctual_units::Bitrate;

use crate::common::{MS, Pair, SECS, delay, latency, srt, tcp};

fn over(pair: &Pair, traffic: Traffic) -> TrafficConfig {
    TrafficConfig {
        traffic,
        packet: 1_500,
        links: vec![pair.there],
        back: vec![pair.back],
        start: MS(0),
        duration: SECS(60),
    }
}

#[test]
fn constant_traffic_has_its_rate() {
    let mut pair = Pair::new(1, delay(10));
    let rate = Bitrate::from_mbps(6);
    let traffic = over(&pair, Traffic::Constant { rate });
    let traffic = pair.world.add_traffic(traffic).expect("traffic");
    pair.world.run_for(SECS(10));
    let statistics = pair.world.traffic_statistics(traffic);
    // 500 packets a second.
    assert_eq!(statistics.sent, 5_001);
    assert_eq!(pair.world.link_statistics(pair.there).sent_bytes, 5_001 * 1_500);
    assert_eq!(statistics.delivered, 4_996, "five are still under way");
}

#[test]
fn bursts_and_pauses_have_their_means() {
    let mut pair = Pair::new(1, delay(1));
    let rate = Bitrate::from_mbps(12);
    let traffic = over(&pair, Traffic::OnOff { rate, on: MS(50), off: MS(150) });
    let traffic = pair.world.add_traffic(traffic).expect("traffic");
    pair.world.run_for(SECS(60));
    // 1000 packets a second for a quarter of the time; 300 bursts.
    let sent = pair.world.traffic_statistics(traffic).sent;
    assert!((13_000..17_000).contains(&sent), "{sent}");
}

#[test]
fn a_tcp_like_flow_fills_the_link_and_its_queue() {
    let link =
        delay(20).with_rate(Some(Bitrate::from_mbps(20))).with_queue(QueueLimit::Bytes(150_000));
    let mut pair = Pair::new(1, link);
    let traffic = over(&pair, Traffic::TcpLike { max_window: 1 << 20 });
    let traffic = pair.world.add_traffic(traffic).expect("traffic");
    pair.world.run_for(SECS(60));
    let statistics = pair.world.traffic_statistics(traffic);
    let link = pair.world.link_statistics(pair.there);
    let rate = Bitrate::of(statistics.delivered_bytes, SECS(60));
    assert!(rate > Bitrate::from_mbps(19), "{rate} of 20 Mb/s");
    // Every arrival counts once, except the ones that the sender does not know of yet.
    let unknown = statistics.delivered_bytes - statistics.goodput_bytes;
    assert!(unknown <= statistics.window, "{statistics:?}");
    assert!(link.dropped_by_queue > 20, "{link:?}");
    assert_eq!(statistics.lost, link.dropped_by_queue);
    assert!(statistics.reductions >= 8 && statistics.timeouts == 0, "{statistics:?}");
    assert!(link.queue_delay_max > MS(55), "{link:?}");
    assert!(statistics.rtt > MS(60), "{statistics:?}");
}

#[test]
fn a_tcp_like_flow_comes_back_after_an_outage() {
    let link = delay(20).with_rate(Some(Bitrate::from_mbps(20)));
    let mut pair = Pair::new(1, link.clone());
    let traffic = over(&pair, Traffic::TcpLike { max_window: 1 << 20 });
    let traffic = pair.world.add_traffic(traffic).expect("traffic");
    pair.world.run_for(SECS(5));
    let outage = link.clone().with_loss(punctual_netem::Loss::All).expect("no share in it");
    pair.world.set_link(pair.there, outage);
    pair.world.run_for(SECS(3));
    let before = pair.world.traffic_statistics(traffic);
    assert!(before.timeouts >= 2, "{before:?}");
    pair.world.set_link(pair.there, link);
    pair.world.run_for(SECS(10));
    let after = pair.world.traffic_statistics(traffic);
    let rate = Bitrate::of(after.delivered_bytes - before.delivered_bytes, SECS(10));
    assert!(rate > Bitrate::from_mbps(15), "{rate}");
}

#[test]
fn goodput_counts_no_byte_twice() {
    let link = delay(20)
        .with_rate(Some(Bitrate::from_mbps(20)))
        .with_queue(QueueLimit::Bytes(150_000))
        .with_duplicate(0.1)
        .expect("a share");
    let mut pair = Pair::new(1, link);
    let constant = Traffic::Constant { rate: Bitrate::from_mbps(6) };
    let flows = [constant, Traffic::TcpLike { max_window: 1 << 20 }]
        .map(|traffic| pair.world.add_traffic(over(&pair, traffic)).expect("traffic"));
    pair.world.run_for(SECS(30));
    let [constant, tcp] = flows.map(|flow| pair.world.traffic_statistics(flow));
    for statistics in [&constant, &tcp] {
        let doubled = statistics.delivered_bytes as f64 / statistics.goodput_bytes as f64;
        assert!((1.08..1.12).contains(&doubled), "{statistics:?}");
    }
    assert!(constant.goodput_bytes <= constant.sent * 1_500, "{constant:?}");
    assert!(tcp.goodput_bytes <= (tcp.sent - tcp.lost) * 1_500, "{tcp:?}");
}

#[test]
fn a_packet_that_came_after_it_was_taken_for_lost_is_no_goodput() {
    // Packets that come 60 ms late are taken for lost long before.
    let link = delay(20).with_rate(Some(Bitrate::from_mbps(20)));
    let reorder = punctual_netem::Reorder::Late { share: 0.05, by: MS(60) };
    let mut pair = Pair::new(1, link.with_reorder(reorder).expect("a share"));
    let traffic = over(&pair, Traffic::TcpLike { max_window: 1 << 20 });
    let traffic = pair.world.add_traffic(traffic).expect("traffic");
    pair.world.run_for(SECS(30));
    let statistics = pair.world.traffic_statistics(traffic);
    assert!(statistics.lost > 100, "{statistics:?}");
    let all = statistics.goodput_bytes + statistics.lost * 1_500;
    assert!(all <= statistics.sent * 1_500, "{statistics:?}");
    assert!(statistics.delivered_bytes > statistics.goodput_bytes * 102 / 100, "{statistics:?}");
}

#[test]
fn two_tcp_like_flows_share_a_link_about_evenly() {
    let link =
        delay(20).with_rate(Some(Bitrate::from_mbps(20))).with_queue(QueueLimit::Bytes(100_000));
    let mut pair = Pair::new(1, link);
    let flows = [0, 1].map(|late| {
        let traffic = over(&pair, Traffic::TcpLike { max_window: 1 << 20 });
        let start = MS(700 * late);
        pair.world.add_traffic(TrafficConfig { start, ..traffic }).expect("traffic")
    });
    pair.world.run_for(SECS(60));
    let rates = flows.map(|flow| {
        let bytes = pair.world.traffic_statistics(flow).delivered_bytes;
        Bitrate::of(bytes, SECS(60))
    });
    for rate in rates {
        assert!(rate > Bitrate::from_mbps(6), "{rates:?}");
    }
}

#[test]
fn a_stream_that_competes_with_tcp_shares_its_queue() {
    let link =
        delay(20).with_rate(Some(Bitrate::from_mbps(20))).with_queue(QueueLimit::Time(MS(100)));
    let mut pair = Pair::new(1, link);
    let traffic = over(&pair, Traffic::TcpLike { max_window: 1 << 20 });
    pair.world.add_traffic(traffic).expect("traffic");
    let streams = [Transport::Udp, srt(&latency(600))]
        .map(|transport| pair.add(pair.stream(transport, 5, 55)));
    pair.world.run_for(SECS(58));
    let [bare, repaired] = streams.map(|stream| pair.world.outcome(stream));
    assert!(bare.metrics.lost > 0 && bare.metrics.jitter_us > 100, "{:?}", bare.metrics);
    assert_eq!(repaired.messages_received, repaired.messages_sent);
    // A packet that is recovered in the last moment is delivered before the next message is due.
    assert!(repaired.integrity.late_max < MS(2), "{:?}", repaired.integrity);
}

#[test]
fn impossible_traffic_is_refused() {
    let mut pair = Pair::new(1, delay(1));
    let traffic =
        over(&pair, Traffic::OnOff { rate: Bitrate::from_mbps(1), on: MS(0), off: MS(1) });
    assert!(pair.world.add_traffic(traffic.clone()).is_err());
    let rate = Bitrate::from_mbps(1);
    let constant = TrafficConfig { traffic: Traffic::Constant { rate }, ..traffic };
    assert!(pair.world.add_traffic(TrafficConfig { packet: 39, ..constant.clone() }).is_err());
    assert!(pair.world.add_traffic(TrafficConfig { links: vec![], ..constant.clone() }).is_err());
    assert!(pair.world.add_traffic(constant).is_ok());
    let small = TrafficConfig { packet: 52, ..tcp(&pair, TcpControl::Bbr) };
    let refused = pair.world.add_traffic(small.clone()).expect_err("no room for data").to_string();
    assert!(refused.contains("53 to 65535"), "{refused}");
    assert!(pair.world.add_traffic(TrafficConfig { packet: 53, ..small.clone() }).is_ok());
    assert!(pair.world.add_traffic(TrafficConfig { back: vec![], packet: 53, ..small }).is_err());
}
