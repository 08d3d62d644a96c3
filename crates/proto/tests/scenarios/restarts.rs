//! Programs that are killed and started again at once: the newest caller of a stream gets in.

use std::net::SocketAddr;
use std::time::Duration;

use punctual_netem::LinkConfig;
use punctual_proto::{Attempt, CloseReason, Config, ConnectionId, Endpoint, Group, GroupKind};

use crate::bond::TestBond;
use crate::node::endpoint_config;
use crate::pair::{Pair, Side};
use crate::random::Random;
use crate::{MS, SECS, latency, link, lossy};

/// The time within which it gets in.
const LIMIT: Duration = Duration::from_secs(2);

fn paths(seed: u64) -> [LinkConfig; 2] {
    // Every second world has losses.
    if seed.is_multiple_of(2) { [link(), link()] } else { [lossy(0.05), lossy(0.05)] }
}

fn config() -> Config {
    latency(400).with_stream_id("news").expect("short")
}

/// A group connects, streams, is killed at any moment, and calls again from the same hosts.
fn restart_group(seed: u64, kind: GroupKind) {
    let mut chance = Random(seed);
    let mut bond = TestBond::new(seed, kind, &config(), &[link(), link()]);
    bond.connect(&[2, 1]);
    for (path, link) in paths(seed).iter().enumerate() {
        bond.set_path(path, link);
    }
    for restart in 0..3 {
        bond.stream(Side::Caller, chance.below(100), MS(3));
        bond.run_for(MS(chance.below(1_200).into()));
        bond.restart_caller();
        let start = bond.now;
        let links = [bond.call(0, 2), bond.call(1, 1)];
        while !bond.caller.group().is_up() {
            bond.run_for(MS(10));
            let waited = bond.now - start;
            assert!(waited <= LIMIT, "{kind:?}, restart {restart}: {:?}", bond.caller.closed);
        }
        bond.run_for(SECS(1));
        assert!(links.iter().all(|&link| bond.state(link).is_up()), "{kind:?}");
        bond.stream(Side::Caller, 50, MS(3));
        bond.run_for(SECS(1));
        bond.assert_complete(Side::Caller);
        assert_eq!(bond.caller.sent.len(), 50);
    }
}

#[test]
fn a_restarted_group_of_each_kind_gets_in_within_two_seconds() {
    for kind in [GroupKind::Broadcast, GroupKind::Backup, GroupKind::Balance] {
        for seed in 0..100 {
            restart_group(seed, kind);
        }
    }
}

#[test]
fn a_second_group_of_the_same_stream_does_not_end_one_that_is_idle() {
    let mut bond = TestBond::new(7, GroupKind::Backup, &config(), &[link(), link()]);
    bond.connect(&[2, 1]);
    let lives = bond.listener.group().peer_group();
    // It calls from a host of the first group.
    let endpoint = &mut bond.caller.endpoints()[0];
    let mut other = Group::new(GroupKind::Backup, MS(60), 99, bond.now);
    let link = other.add_link(0);
    let remote = SocketAddr::from(([192, 0, 2, 1], 9_000));
    let membership = other.membership(link);
    let call = endpoint.connect(bond.now, remote, Attempt::link(config(), &membership));
    call.expect("callable");
    bond.run_for(SECS(2));
    assert_eq!(bond.listener.group().peer_group(), lives);
    assert!(bond.listener.closed.is_empty(), "{:?}", bond.listener.closed);
}

#[test]
fn a_restarted_end_of_a_rendezvous_gets_in_within_two_seconds() {
    for seed in 0..100 {
        let mut chance = Random(seed);
        let mut pair = Pair::symmetric(seed, paths(seed)[0].clone());
        pair.meet(Side::Caller, MS(0), [latency(120), latency(120)]);
        for restart in 1..=3 {
            pair.stream(Side::Caller, chance.below(50), MS(5));
            pair.run_for(MS(chance.below(1_200).into()));
            let old = pair.listener.connection.expect("they have met");
            let fresh = endpoint_config(seed + 1_000 * restart, 1);
            pair.caller.endpoint = Endpoint::new(fresh, pair.now);
            (pair.caller.connected, pair.listener.connected) = (false, false);
            let start = pair.elapsed();
            pair.wave(Side::Caller, latency(120));
            let ended = |pair: &Pair, id: ConnectionId| pair.listener.closed.contains_key(&id);
            pair.run_while(LIMIT, |pair| !ended(pair, old));
            assert_eq!(pair.listener.closed.get(&old), Some(&CloseReason::Replaced), "{seed}");
            // The application meets its peer again.
            pair.wave(Side::Listener, latency(120));
            pair.run_while(LIMIT, |pair| !pair.have_met());
            assert!(pair.elapsed() - start <= LIMIT, "seed {seed}: {:?}", pair.elapsed() - start);
        }
    }
}
