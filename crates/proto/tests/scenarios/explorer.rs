//! Random links, options, loads and faults from a seed. In every case, no message is corrupt,
//! duplicate, out of order or early; once the link has healed, every message was delivered or is
//! counted as dropped, and the stream is on time.

use std::time::Duration;

use punctual_netem::{LinkConfig, QueueLimit};
use punctual_proto::{
    BufferSize, Config, MaxBandwidth, RetransmitAlgorithm, RetransmitBandwidth, SendOptions,
};
use punctual_units::Bitrate;

use punctual_testbed::ShownOnPanic;
use punctual_testbed::plan::{draw_impairments, draw_live};

use crate::pair::{Pair, Side};
use crate::random::Random;
use crate::{MS, SECS};

/// The number of seeds; `EXPLORER_SEEDS` sets another one for a long run.
const SEEDS: u64 = 400;
const BOTH: [Side; 2] = [Side::Caller, Side::Listener];

/// The choices of a seed, which are printed if it fails.
#[derive(Debug)]
struct Plan {
    links: [LinkConfig; 2],
    configs: [Config; 2],
    drift_ppm: i64,
    ipv6: bool,
    /// Whether each end sends, and whether its application reads at once.
    sends: [bool; 2],
    reads: [bool; 2],
    interval: Duration,
    burst: u32,
    ttl: Option<Duration>,
    rounds: u32,
}

impl Plan {
    fn draw(chance: &mut Random) -> Self {
        let sends = chance.pick(&[[true, false], [false, true], [true, true]]);
        Self {
            links: [draw_link(chance), draw_link(chance)],
            configs: [draw_config(chance), draw_config(chance)],
            drift_ppm: chance.pick(&[0, 0, -200, 200]),
            ipv6: chance.one_in(4),
            sends,
            reads: [!chance.one_in(6), !chance.one_in(6)],
            interval: chance.pick(&[MS(1), MS(3), MS(10), MS(40)]),
            burst: chance.pick(&[1, 1, 1, 2, 8]),
            ttl: chance.one_in(5).then(|| MS(5) + chance.millis(300)),
            rounds: 2 + chance.below(5),
        }
    }
}

/// Each impairment occurs in one of three links, so that they meet in all combinations.
fn draw_link(chance: &mut Random) -> LinkConfig {
    let mut link = LinkConfig::default().with_delay(chance.millis(60));
    for change in draw_impairments(chance, 3) {
        change.apply(&mut link);
    }
    if chance.one_in(3) {
        let rate = Bitrate::from_mbps(2 + u64::from(chance.below(30)));
        let packets = 5 + chance.below(200) as usize;
        link = link.with_rate(Some(rate)).with_queue(QueueLimit::Packets(packets));
    }
    link
}

fn draw_config(chance: &mut Random) -> Config {
    let algorithms = [
        RetransmitAlgorithm::Aggressive,
        RetransmitAlgorithm::Efficient,
        RetransmitAlgorithm::Deadline,
    ];
    let mut config = draw_live(chance, &[MS(0), MS(20), MS(120), MS(400)], &algorithms)
        .with_connect_timeout(SECS(20))
        .expect("in range");
    if chance.one_in(4) {
        // No less than the healthy stream needs at the largest latency.
        let packets = 64 + chance.below(300) as usize;
        config = config.with_receive_buffer(BufferSize::Packets(packets));
    }
    if chance.one_in(4) {
        let packets = 32 + chance.below(300) as usize;
        config = config.with_send_buffer(BufferSize::Packets(packets));
    }
    if chance.one_in(6) {
        config = config.with_max_bandwidth(MaxBandwidth::Absolute(Bitrate::from_mbps(20)));
    }
    if chance.one_in(6) {
        config = config
            .with_max_retransmit_bandwidth(RetransmitBandwidth::Absolute(Bitrate::from_mbps(1)));
    }
    config
}

#[test]
fn random_sessions_keep_their_promises() {
    let seeds = std::env::var("EXPLORER_SEEDS").ok().and_then(|count| count.parse().ok());
    for seed in 0..seeds.unwrap_or(SEEDS) {
        explore(seed);
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in [3, 77, 204] {
        let [first, second] = [(), ()].map(|()| {
            let mut pair = explore(seed);
            let digest = |pair: &mut Pair, side| {
                let received = &pair.node(side).received;
                received.iter().map(|d| (d.at, d.message.seq, d.message.due)).collect::<Vec<_>>()
            };
            let received = BOTH.map(|side| digest(&mut pair, side));
            (received, BOTH.map(|side| pair.statistics(side)))
        });
        assert!(first == second, "seed {seed}");
    }
}

fn explore(seed: u64) -> Pair {
    let mut chance = Random(seed);
    let plan = Plan::draw(&mut chance);
    let shown = ShownOnPanic(format!("{plan:?}"));
    let [there, back] = plan.links.clone();
    let mut pair = Pair::new(seed, there, back).with_drift(Side::Caller, plan.drift_ppm);
    if plan.ipv6 {
        pair = pair.over_ipv6();
    }
    let [caller, listener] = plan.configs.clone();
    pair.connect(caller, listener);
    misbehave(&mut pair, &plan, &mut chance);
    heal(&mut pair, &plan);
    for side in BOTH {
        check_direction(&mut pair, side);
    }
    drop(shown);
    pair
}

/// Load and faults.
fn misbehave(pair: &mut Pair, plan: &Plan, chance: &mut Random) {
    let sides: Vec<Side> = BOTH
        .into_iter()
        .zip(plan.sends)
        .filter(|(_, sends)| *sends)
        .map(|(side, _)| side)
        .collect();
    for (side, reads) in BOTH.into_iter().zip(plan.reads) {
        pair.node(side).reads = reads;
    }
    for _ in 0..plan.rounds {
        for _ in 0..60 {
            for &side in &sides {
                for _ in 0..plan.burst {
                    let ttl = plan.ttl.filter(|_| chance.one_in(3));
                    let options = SendOptions { ttl, ..SendOptions::default() };
                    // A full buffer refuses; then the message was never sent.
                    drop(pair.send_next_with(side, options));
                }
            }
            pair.run_for(plan.interval);
        }
        match chance.below(6) {
            0 => pair.black_out(&BOTH, chance.millis(2_500)),
            1 => pair.black_out(&[chance.pick(&BOTH)], chance.millis(2_500)),
            2 => pair.set_link(chance.pick(&BOTH), draw_link(chance)),
            3 => {
                let side = chance.pick(&BOTH);
                pair.read(side);
                pair.node(side).reads = chance.one_in(2);
            }
            _ => pair.run_for(chance.millis(300)),
        }
    }
}

/// Makes the links perfect, no slower than in the handshake, and lets both ends read; then sends 50
/// more messages each way.
fn heal(pair: &mut Pair, plan: &Plan) {
    for side in BOTH {
        pair.set_link(side, LinkConfig::default());
        pair.read(side);
    }
    // A narrow bandwidth limit may take long for the buffered messages, but not endlessly.
    let is_settled =
        |pair: &mut Pair| BOTH.iter().all(|&side| pair.statistics(side).send_buffer_packets == 0);
    pair.run_for(SECS(3));
    for _ in 0..60 {
        if !is_settled(pair) {
            pair.run_for(SECS(1));
        }
    }
    for _ in 0..50 {
        for side in BOTH {
            assert!(pair.send_next(side), "the send buffer is still full: {plan:?}");
        }
        pair.run_for(MS(10));
    }
    pair.run_for(SECS(3));
}

fn check_direction(pair: &mut Pair, from: Side) {
    let to = from.other();
    assert_eq!(pair.node(from).closed(), None);
    let sent = pair.node(from).sent.len() as u32;
    let delivered = pair.delivered(from);
    let sender = pair.statistics(from);
    let receiver = pair.statistics(to);

    assert_eq!(
        delivered.len() as u64 + receiver.packets_receive_dropped,
        u64::from(sent),
        "delivered and dropped from {from:?}"
    );
    assert!(delivered.ends_with(&(sent - 50..sent).collect::<Vec<_>>()), "the last 50 messages");
    let lost_before = pair.node(to).received.iter().map(|d| u64::from(d.message.lost_before));
    assert_eq!(lost_before.sum::<u64>(), receiver.packets_receive_dropped);
    for delivery in &pair.node(to).received {
        assert!(delivery.local >= delivery.message.due, "early");
    }
    // A correction of the drift may change the due time by a millisecond or two at once, and be
    // wrong by half of a delay change in one direction. The first message after a large gap waits
    // until the second confirms it.
    if pair.info(to).receive_latency >= MS(100) {
        for delivery in pair.node(to).received.iter().rev().take(49) {
            let late = delivery.local - delivery.message.due;
            assert!(late < MS(2), "{late:?} late on a healthy link");
        }
    }

    assert_eq!((sender.flight_size, sender.send_buffer_packets), (0, 0), "from {from:?}");
    assert_eq!((receiver.receive_buffer_packets, receiver.receive_buffer_bytes), (0, 0));
    assert_eq!(sender.packets_sent, sender.packets_sent_unique + sender.packets_retransmitted);
    assert_eq!(receiver.packets_received_unique, delivered.len() as u64);
    let known = receiver.packets_received_unique + receiver.packets_belated;
    assert!(receiver.packets_received >= known);
    assert!(receiver.packets_duplicate <= receiver.packets_belated);
    if sender.packets_send_dropped == 0 {
        assert_eq!(sender.packets_sent_unique, u64::from(sent));
    }
}
