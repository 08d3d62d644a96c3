//! TCP flows with NewReno, CUBIC, BBR and BBR 3: rates, shares, and the reactions to losses.

use std::time::Duration;

use punctual_netem::{LinkConfig, Loss};
use punctual_sim::{TcpConfig, TcpControl, Traffic, TrafficConfig, TrafficId};

use crate::common::{MS, Pair, SECS, bottleneck, tcp};

const ALL: [TcpControl; 4] =
    [TcpControl::NewReno, TcpControl::Cubic, TcpControl::Bbr, TcpControl::Bbr3];

/// A world with one bottleneck, and flows that start some time after each other, which the seed
/// decides: 1.0 to 1.9 s.
fn flows<const N: usize>(
    seed: u64,
    link: LinkConfig,
    controls: [TcpControl; N],
) -> (Pair, [TrafficId; N]) {
    let mut pair = Pair::new(seed, link);
    let mut start = Duration::ZERO;
    let flows = controls.map(|control| {
        let traffic = TrafficConfig { start, ..tcp(&pair, control) };
        start += SECS(1) + MS(seed % 10 * 100);
        pair.world.add_traffic(traffic).expect("traffic")
    });
    (pair, flows)
}

/// The rate of the packets that carried a flow's bytes in order between two times, Mb/s.
fn mbps(pair: &Pair, flow: TrafficId, from: Duration, to: Duration) -> f64 {
    let progress = pair.world.traffic_progress(flow).expect("TCP");
    progress.rate(from, to).as_mbps() * 1_500.0 / 1_448.0
}

#[test]
fn each_control_fills_a_link_whose_queue_holds_a_round_trip() {
    for (seed, control) in (1..).zip(ALL) {
        for rtt in [MS(20), MS(40), MS(100)] {
            let (mut pair, [flow]) = flows(seed, bottleneck(50, rtt, 1.0), [control]);
            pair.world.run_for(SECS(60));
            let rate = mbps(&pair, flow, SECS(5), SECS(60));
            assert!(rate >= 45.0, "seed {seed}: {control:?} at {rtt:?} has {rate} of 50 Mb/s");
        }
    }
}

#[test]
fn the_rate_of_loss_based_controls_under_random_loss_is_that_of_mathis() {
    // Mathis, Semke, Mahdavi and Ott, The macroscopic behavior of the TCP congestion avoidance
    // algorithm (1997), equation 3: packets a second are sqrt(3 / 2) / (RTT sqrt(p)). It is for
    // selective acknowledgements without timeouts, as here; the window counts packets, not answers,
    // so that delayed answers do not change it. CUBIC has the window of Reno there (RFC 9438
    // section 4.3). The formula of Padhye et al. (PFTK) has timeouts of a Reno flow without them.
    let expected = (1.5_f64 / 0.02).sqrt() / 0.2 * 1_500.0 * 8.0 / 1e6;
    for control in [TcpControl::NewReno, TcpControl::Cubic] {
        let mut rates = Vec::new();
        for seed in 1..=5 {
            let link = bottleneck(50, MS(200), 1.0).with_loss(Loss::Random(0.02)).expect("a share");
            let (mut pair, [flow]) = flows(seed, link, [control]);
            pair.world.run_for(SECS(330));
            rates.push(mbps(&pair, flow, SECS(30), SECS(330)));
            let statistics = pair.world.traffic_statistics(flow);
            assert!(
                statistics.timeouts * 20 < statistics.reductions,
                "seed {seed}: {statistics:?}"
            );
        }
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        assert!(mean > expected / 2.0 && mean < expected * 2.0, "{control:?} {mean} {expected}");
    }
}

#[test]
fn bbr_does_not_slow_down_for_random_loss() {
    for seed in 1..=3 {
        let link = bottleneck(50, MS(200), 1.0).with_loss(Loss::Random(0.02)).expect("a share");
        let (mut pair, [flow]) = flows(seed, link, [TcpControl::Bbr]);
        pair.world.run_for(SECS(60));
        let rate = mbps(&pair, flow, SECS(5), SECS(60));
        assert!(rate >= 0.8 * 50.0 * 0.98, "seed {seed}: {rate} Mb/s");
    }
}

/// Losses below 2 % of the flight do not show its upper bound.
#[test]
fn version_3_of_bbr_has_three_fourths_of_a_link_with_one_percent_of_loss() {
    for rtt in [20, 60, 200] {
        let link = bottleneck(50, MS(rtt), 1.0).with_loss(Loss::Random(0.01)).expect("a share");
        let (mut pair, [flow]) = flows(1, link, [TcpControl::Bbr3]);
        pair.world.run_for(SECS(60));
        let rate = mbps(&pair, flow, SECS(5), SECS(60));
        assert!(rate >= 37.0, "RTT {rtt} ms: {rate} Mb/s");
    }
}

#[test]
fn two_flows_of_one_control_share_a_link_within_a_quarter() {
    for control in [TcpControl::Cubic, TcpControl::Bbr] {
        for seed in 1..=3 {
            let (mut pair, both) = flows(seed, bottleneck(50, MS(40), 1.0), [control; 2]);
            pair.world.run_for(SECS(122));
            let rates = both.map(|flow| mbps(&pair, flow, SECS(2), SECS(122)));
            let ratio = rates[0] / rates[1];
            assert!(
                (0.75..=1.0 / 0.75).contains(&ratio),
                "seed {seed}: {control:?} {rates:?} Mb/s"
            );
            assert!(rates[0] + rates[1] > 45.0, "seed {seed}: {control:?} {rates:?} Mb/s");
        }
    }
}

#[test]
fn cubic_and_newreno_share_a_short_path_as_equals() {
    // The windows are small enough for CUBIC to grow as Reno does.
    for seed in 1..=3 {
        let controls = [TcpControl::Cubic, TcpControl::NewReno];
        let (mut pair, both) = flows(seed, bottleneck(20, MS(20), 1.0), controls);
        pair.world.run_for(SECS(122));
        let rates = both.map(|flow| mbps(&pair, flow, SECS(2), SECS(122)));
        let share = rates[0] / (rates[0] + rates[1]);
        assert!((0.4..0.7).contains(&share), "seed {seed}: {rates:?} Mb/s");
    }
}

#[test]
fn bbr_lets_the_queue_run_empty_each_ten_seconds() {
    let (mut pair, [flow]) = flows(1, bottleneck(50, MS(40), 1.0), [TcpControl::Bbr]);
    let mut small = Vec::new();
    for step in 0..3_200 {
        pair.world.run_for(MS(10));
        if pair.world.traffic_statistics(flow).window == 4 * 1_500 {
            small.push(10 * (step + 1));
        }
    }
    let begins: Vec<u64> = small.iter().copied().filter(|at| !small.contains(&(at - 10))).collect();
    assert!((2..=3).contains(&begins.len()), "{begins:?}");
    assert!(begins.windows(2).all(|pair| (10_000..11_000).contains(&(pair[1] - pair[0]))));
    // 200 ms, and a round trip until the packets in flight are few.
    let length = small.len() / begins.len();
    assert!((20..32).contains(&length), "{length} steps of 10 ms");
}

#[test]
fn cubic_leaves_slow_start_before_the_queue_overflows() {
    for rtt in [MS(20), MS(40), MS(100), MS(200)] {
        let dropped = [TcpControl::Cubic, TcpControl::NewReno].map(|control| {
            let (mut pair, [flow]) = flows(1, bottleneck(50, rtt, 1.0), [control]);
            pair.world.run_for(rtt * 16);
            let rate = mbps(&pair, flow, rtt * 12, rtt * 16);
            assert!(control == TcpControl::NewReno || rate > 40.0, "{rtt:?}: {rate} Mb/s");
            pair.world.link_statistics(pair.there).dropped_by_queue
        });
        assert!(dropped[0] == 0 && dropped[1] > 100, "{rtt:?}: {dropped:?}");
    }
}

#[test]
fn flows_come_back_after_an_outage() {
    for (seed, control) in (1..).zip(ALL) {
        let link = bottleneck(20, MS(40), 1.0);
        let (mut pair, [flow]) = flows(seed, link.clone(), [control]);
        pair.world.run_for(SECS(5));
        let outage = link.clone().with_loss(Loss::All).expect("no share in it");
        pair.world.set_link(pair.there, outage);
        pair.world.run_for(SECS(3));
        let timeouts = pair.world.traffic_statistics(flow).timeouts;
        assert!((2..=5).contains(&timeouts), "seed {seed}: {control:?} {timeouts}");
        pair.world.set_link(pair.there, link);
        pair.world.run_for(SECS(12));
        let rate = mbps(&pair, flow, SECS(12), SECS(20));
        assert!(rate > 17.0, "seed {seed}: {control:?} {rate} Mb/s");
    }
}

#[test]
fn a_largest_window_limits_the_rate() {
    for control in ALL {
        let mut pair = Pair::new(1, bottleneck(50, MS(100), 1.0));
        let limited = TcpConfig::new(control).with_max_window(125_000);
        let traffic = TrafficConfig { traffic: Traffic::Tcp(limited), ..tcp(&pair, control) };
        let flow = pair.world.add_traffic(traffic).expect("traffic");
        pair.world.run_for(SECS(20));
        // 125 kB each 100 ms.
        let rate = mbps(&pair, flow, SECS(2), SECS(20));
        assert!((9.3..10.1).contains(&rate), "{control:?} {rate} Mb/s");
    }
}
