//! A plan and a seed give the same bytes each time, on any machine.

use std::fmt::Write as _;
use std::thread;

use punctual_netem::{Jitter, QueueLimit, Reorder};
use punctual_sim::{
    HostConfig, Lateness, StreamConfig, TcpConfig, TcpControl, Traffic, TrafficConfig, Transport,
};
use punctual_units::Bitrate;

use crate::common::{MS, Pair, SECS, US, latency, lossy, srt};

/// Everything that a world with everything in it has to say after some seconds.
fn run(seed: u64) -> (String, Vec<u8>) {
    let link = lossy(20, 0.03)
        .with_jitter(Jitter::Normal { std_dev: MS(2) })
        .with_rate(Some(Bitrate::from_mbps(20)))
        .with_queue(QueueLimit::Time(MS(80)))
        .with_reorder(Reorder::Late { share: 0.01, by: MS(4) })
        .and_then(|link| link.with_duplicate(0.01))
        .and_then(|link| link.with_corrupt(0.01))
        .expect("shares");
    let late = Lateness { least: US(20), mean: US(30), most: MS(1) };
    let sender = HostConfig::default().with_lateness(late);
    let receiver = HostConfig::default().with_drift_ppm(-80).expect("in range");
    let mut pair = Pair::of(seed, link, sender, receiver);
    let streams = [srt(&latency(150)), Transport::Udp].map(|transport| {
        let stream = pair.stream(transport, 5, 5);
        pair.add(StreamConfig { series: Some(MS(100)), ..stream })
    });
    let bursts = Traffic::OnOff { rate: Bitrate::from_mbps(8), on: MS(30), off: MS(60) };
    let tcp =
        [TcpControl::Cubic, TcpControl::Bbr].map(|control| Traffic::Tcp(TcpConfig::new(control)));
    let flows = [bursts, Traffic::TcpLike { max_window: 100_000 }, tcp[0], tcp[1]].map(|traffic| {
        let (links, back) = (vec![pair.there], vec![pair.back]);
        let traffic = TrafficConfig {
            traffic,
            packet: 1_500,
            links,
            back,
            start: MS(500),
            duration: SECS(4),
        };
        pair.world.add_traffic(traffic).expect("traffic")
    });
    for link in [pair.there, pair.back] {
        pair.world.capture(link);
        pair.world.record_link(link, MS(100)).expect("a period");
    }
    pair.world.run_for(SECS(6));
    let mut text = String::new();
    for stream in streams {
        write!(text, "{:?}", pair.world.outcome(stream)).expect("a string takes it");
    }
    for flow in flows {
        write!(text, "{:?}", pair.world.traffic_statistics(flow)).expect("a string takes it");
    }
    for link in [pair.there, pair.back] {
        write!(text, "{:?}", pair.world.link_series(link)).expect("a string takes it");
    }
    (text, pair.world.capture_of_all())
}

/// FNV-1a: good enough to see that two texts differ.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    })
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let (text, capture) = run(7);
    assert!(text.len() > 100_000 && capture.len() > 1_000_000);
    let again = run(7);
    assert!(again.0 == text, "statistics, series and metrics");
    assert!(again.1 == capture, "captures");
    assert_ne!(hash(&run(8).1), hash(&capture));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a world has no thread, but may be in one")]
fn worlds_on_several_threads_are_the_same_as_one_after_the_other() {
    let alone: Vec<(String, Vec<u8>)> = (1..5).map(run).collect();
    let threads: Vec<_> = (1..5).map(|seed| thread::spawn(move || run(seed))).collect();
    for (alone, thread) in alone.into_iter().zip(threads) {
        let threaded = thread.join().expect("no world panics");
        assert!(threaded == alone);
    }
}

#[test]
fn running_in_steps_is_running_at_once() {
    let outcome = |steps: u32| {
        let mut pair = Pair::new(3, lossy(20, 0.05));
        let stream = pair.add(pair.stream(srt(&latency(120)), 10, 5));
        for _ in 0..steps {
            pair.world.run_for(SECS(6) / steps);
        }
        format!("{:?}", pair.world.outcome(stream))
    };
    assert_eq!(outcome(1), outcome(1_000));
}

#[test]
fn additions_to_a_world_change_no_links_random_numbers() {
    let lost = |others: usize| {
        let mut pair = Pair::new(3, lossy(20, 0.05));
        let stream = pair.add(pair.stream(Transport::Udp, 10, 5));
        for _ in 0..others {
            let from = pair.world.add_host(HostConfig::default());
            let link = pair.world.add_link(lossy(1, 0.5));
            pair.world.set_route(from, pair.to, &[link]).expect("a route");
            let other = StreamConfig { from, ..pair.stream(Transport::Udp, 3, 5) };
            pair.add(other);
        }
        pair.world.run_for(SECS(6));
        format!("{:?}", pair.world.outcome(stream))
    };
    assert_eq!(lost(0), lost(3));
}
