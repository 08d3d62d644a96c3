//! TCP flows beside those of a Linux kernel.
//!
//! The kernel's rates are from one run of each case with Linux 6.18, its own `reno`, `cubic` and
//! `bbr` with default settings, between the two sides of `punctual emulate --tun` over the same
//! link: `--rate 20Mbps`, `--rtt`, `--queue` with the time of the round trip, `--loss 2%`. The
//! sender wrote all the time; the receiver counted bytes in order from a sixth of the time on, at
//! most 10 s, until two seconds before the end. The second flow of a pair began a second later.

use std::time::Duration;

use punctual_netem::Loss;
use punctual_sim::{TcpControl, TrafficConfig};

use crate::common::{MS, Pair, SECS, bottleneck, tcp};

/// A case, and the rates of the kernel's flows in Mb/s of IP packets.
struct Case {
    flows: &'static [(TcpControl, f64)],
    rtt: u64,
    loss: f64,
    seconds: u64,
}

const CASES: &[Case] = {
    use TcpControl::{Bbr, Cubic, NewReno};
    &[
        Case { flows: &[(NewReno, 0.453)], rtt: 200, loss: 0.02, seconds: 100 },
        Case { flows: &[(Cubic, 0.470)], rtt: 200, loss: 0.02, seconds: 100 },
        Case { flows: &[(Bbr, 18.56)], rtt: 200, loss: 0.02, seconds: 40 },
        Case { flows: &[(Cubic, 19.99)], rtt: 40, loss: 0.0, seconds: 32 },
        Case { flows: &[(Bbr, 19.60)], rtt: 40, loss: 0.0, seconds: 32 },
        Case { flows: &[(Cubic, 9.83), (Cubic, 10.31)], rtt: 40, loss: 0.0, seconds: 62 },
        Case { flows: &[(Bbr, 10.15), (Bbr, 9.54)], rtt: 40, loss: 0.0, seconds: 62 },
        Case { flows: &[(Cubic, 10.81), (NewReno, 9.13)], rtt: 20, loss: 0.0, seconds: 62 },
        Case { flows: &[(Cubic, 2.00), (Bbr, 17.57)], rtt: 40, loss: 0.0, seconds: 62 },
        Case { flows: &[(Bbr, 17.59), (Cubic, 1.96)], rtt: 40, loss: 0.0, seconds: 62 },
    ]
};

/// The rates of the simulated flows, Mb/s of IP packets.
fn rates(seed: u64, case: &Case) -> Vec<f64> {
    let link =
        bottleneck(20, MS(case.rtt), 1.0).with_loss(Loss::Random(case.loss)).expect("a share");
    let mut pair = Pair::new(seed, link);
    let mut start = Duration::ZERO;
    let mut flows = Vec::new();
    for (control, _) in case.flows {
        let traffic = TrafficConfig { start, ..tcp(&pair, *control) };
        flows.push((start, pair.world.add_traffic(traffic).expect("traffic")));
        // Not the same phase each time.
        start += SECS(1) + MS(7 * seed);
    }
    pair.world.run_for(SECS(case.seconds));
    let from = (SECS(case.seconds) / 6).min(SECS(10));
    let rate = |(start, flow)| {
        let progress = pair.world.traffic_progress(flow).expect("TCP");
        let rate = progress.rate(start + from, SECS(case.seconds - 2));
        rate.as_mbps() * 1_500.0 / 1_448.0
    };
    flows.into_iter().map(rate).collect()
}

#[test]
fn rates_and_shares_are_those_of_linux_within_a_quarter() {
    for case in CASES {
        let runs: Vec<Vec<f64>> = (1..=4).map(|seed| rates(seed, case)).collect();
        for (flow, (control, linux)) in case.flows.iter().enumerate() {
            let mean = runs.iter().map(|rates| rates[flow]).sum::<f64>() / runs.len() as f64;
            println!(
                "{control:?} at {} ms, loss {}: {mean:.3}, Linux {linux}",
                case.rtt, case.loss
            );
            let ratio = mean / linux;
            assert!((0.75..1.25).contains(&ratio), "{control:?} has {mean} Mb/s, Linux {linux}");
        }
    }
}
