//! Random groups, links, loads and faults from a seed. In every case, no message is corrupt,
//! duplicate, out of order or early; every message is delivered or counted as lost; and when the
//! links have healed, the stream is complete and on time.

use std::time::Duration;

use punctual_netem::{Jitter, LinkConfig, Loss, QueueLimit, Reorder};
use punctual_proto::{Config, CryptoMode, GroupKind, LinkId};
use punctual_testbed::ShownOnPanic;
use punctual_units::Bitrate;

use crate::bond::TestBond;
use crate::node::number_of;
use crate::pair::Side;
use crate::random::Random;
use crate::{MS, SECS};

/// The number of seeds; `EXPLORER_SEEDS` sets another one for a long run.
const SEEDS: u64 = 60;

/// The choices of a seed, which are printed if it fails.
#[derive(Debug)]
struct Plan {
    kind: GroupKind,
    links: Vec<LinkConfig>,
    config: Config,
    both_ways: bool,
    interval: Duration,
    random: u64,
    rounds: u32,
}

impl Plan {
    fn draw(chance: &mut Random) -> Self {
        let kinds = [GroupKind::Broadcast, GroupKind::Backup, GroupKind::Balance];
        let links = 1 + chance.below(4);
        let latency = MS(300) + chance.millis(700);
        let mut config = Config::default()
            .with_latency(latency)
            .and_then(|config| config.with_connect_timeout(SECS(20)))
            .and_then(|config| config.with_peer_idle_timeout(SECS(60)))
            .expect("in range")
            .with_periodic_nak(!chance.one_in(6))
            .with_drift_tracer(!chance.one_in(3));
        if chance.one_in(3) {
            let modes = [CryptoMode::Ctr, CryptoMode::Gcm];
            config = config
                .with_passphrase("correct horse")
                .and_then(|config| config.with_key_refresh_rate(300 + chance.below(3_000)))
                .and_then(|config| config.with_key_pre_announce(100))
                .expect("in range")
                .with_crypto_mode(chance.pick(&modes));
        }
        let wrapping = [u64::from(chance.below(1 << 20)), 0x7FFF_FFFF - 900];
        Self {
            kind: chance.pick(&kinds),
            links: (0..links).map(|_| draw_link(chance)).collect(),
            config,
            both_ways: chance.one_in(3),
            interval: chance.pick(&[MS(2), MS(5), MS(20)]),
            random: chance.pick(&wrapping),
            rounds: 2 + chance.below(4),
        }
    }
}

fn draw_link(chance: &mut Random) -> LinkConfig {
    let mut link = healthy(chance.millis(60));
    if chance.one_in(3) {
        link = link.with_jitter(Jitter::Uniform { spread: chance.millis(15) });
        link = link.with_keep_order(chance.one_in(2));
    }
    if chance.one_in(2) {
        let share = chance.share(0.3);
        let loss = if chance.one_in(2) { Loss::Random(share) } else { Loss::bursts(share, 5.0) };
        link = link.with_loss(loss).expect("shares");
    }
    if chance.one_in(4) {
        let reorder = Reorder::Late { share: chance.share(0.2), by: chance.millis(30) };
        link = link.with_reorder(reorder).expect("a share");
    }
    if chance.one_in(4) {
        link = link.with_duplicate(chance.share(0.3)).expect("a share");
    }
    if chance.one_in(3) {
        let rate = Bitrate::from_bits_per_sec(500_000 + u64::from(chance.below(8_000)) * 1_000);
        let packets = 20 + chance.below(300) as usize;
        link = link.with_rate(Some(rate)).with_queue(QueueLimit::Packets(packets));
    }
    link
}

fn healthy(delay: Duration) -> LinkConfig {
    LinkConfig::default().with_delay(delay)
}

/// Streams for a while by the plan. Messages that the group refuses do not count as sent.
fn stream(bond: &mut TestBond, plan: &Plan, time: Duration) {
    let end = bond.now + time;
    while bond.now < end {
        let now = bond.now;
        bond.caller.send_next(now);
        if plan.both_ways && bond.listener.group().is_up() {
            bond.listener.send_next(now);
        }
        bond.run_for(plan.interval);
    }
}

/// Links fail, recover, change, end and are called again; the first one never ends.
fn trouble(bond: &mut TestBond, plan: &Plan, links: &mut [LinkId], chance: &mut Random) {
    for _ in 0..plan.rounds {
        let path = chance.below(links.len() as u32) as usize;
        match chance.below(4) {
            0 => bond.cut(path),
            1 if path > 0 => {
                let (endpoint, id) = bond.caller.members[&links[path]];
                bond.caller.endpoints()[endpoint]
                    .connection(bond.now, id)
                    .expect("not released")
                    .close();
                stream(bond, plan, chance.millis(1_500));
                links[path] = bond.call(path, chance.below(10) as u16);
            }
            _ => {
                let link = draw_link(chance);
                bond.set_path(path, &link);
            }
        }
        stream(bond, plan, MS(100) + chance.millis(2_000));
        let link = draw_link(chance);
        bond.set_path(path, &link);
        stream(bond, plan, chance.millis(1_500));
    }
}

fn judge(bond: &TestBond, side: Side, whole_from: usize) {
    let (from, to) = match side {
        Side::Caller => (&bond.caller, &bond.listener),
        Side::Listener => (&bond.listener, &bond.caller),
    };
    let mut next = 0;
    for (at, message) in &to.received {
        let number = number_of(&message.payload);
        assert!(number >= next, "{number} is duplicate or out of order");
        assert_eq!(message.lost_before, number - next, "before {number}");
        assert!(*at >= message.due, "{number} is early");
        if number as usize > whole_from {
            assert_eq!(number, next, "the links have healed");
            // The correction of the drift may have changed meanwhile.
            assert!(*at <= message.due + MS(1), "{number} is late");
        }
        next = number + 1;
    }
    assert_eq!(next as usize, from.sent.len(), "the end is missing");
    let lost: u64 = to.received.iter().map(|(_, it)| u64::from(it.lost_before)).sum();
    let statistics = to.group().statistics(bond.now);
    assert_eq!(statistics.packets_receive_dropped, lost);
    assert_eq!(statistics.packets_received_unique, to.received.len() as u64);
}

fn explore(seed: u64) {
    let mut chance = Random(seed);
    let plan = Plan::draw(&mut chance);
    let shown = ShownOnPanic(format!("{plan:?}"));
    let mut bond =
        TestBond::new(seed, plan.kind, &plan.config, &plan.links).with_random(plan.random);
    let count = plan.links.len();
    let mut links: Vec<LinkId> =
        (0..count).map(|path| bond.call(path, chance.below(10) as u16)).collect();
    while !bond.caller.group().is_up() || !bond.listener.group().is_up() {
        assert!(bond.now < crate::node::EPOCH + SECS(20), "{plan:?}");
        bond.run_for(MS(10));
    }
    trouble(&mut bond, &plan, &mut links, &mut chance);
    for path in 0..count {
        bond.set_path(path, &healthy(MS(5) + chance.millis(30)));
    }
    stream(&mut bond, &plan, SECS(6));
    let whole_from = [bond.caller.sent.len(), bond.listener.sent.len()];
    stream(&mut bond, &plan, SECS(2));
    bond.run_for(SECS(3));
    judge(&bond, Side::Caller, whole_from[0]);
    if plan.both_ways {
        judge(&bond, Side::Listener, whole_from[1]);
    }
    drop(shown);
}

#[test]
fn random_groups_keep_their_promises() {
    let seeds = std::env::var("EXPLORER_SEEDS").ok();
    let seeds = seeds.map_or(SEEDS, |count| count.parse().expect("a number of seeds"));
    for seed in 0..seeds {
        explore(seed);
    }
}
