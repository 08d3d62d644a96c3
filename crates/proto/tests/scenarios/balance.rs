//! Balancing groups: one stream distributed over links by their capacity.

use std::time::Duration;

use punctual_netem::LinkConfig;
use punctual_proto::{Config, GroupKind, LinkState, RetransmitAlgorithm};
use punctual_units::Bitrate;

use crate::bond::TestBond;
use crate::datagram::Kind;
use crate::pair::Side;
use crate::random::Random;
use crate::{MS, SECS, latency, link, lossy};

/// Bytes of a message on the wire, with all headers.
const WIRE: u64 = 1_316 + 44;

/// A link of this rate and this one-way delay, ms.
fn narrow(kbps: u64, delay: u64) -> LinkConfig {
    let rate = Bitrate::from_bits_per_sec(kbps * 1_000);
    LinkConfig::default().with_delay(MS(delay)).with_rate(Some(rate))
}

/// The interval between the messages of a stream of this rate on the wire.
fn interval(kbps: u64) -> Duration {
    Duration::from_nanos(WIRE * 8 * 1_000_000 / kbps)
}

fn bond(seed: u64, latency_ms: u64, paths: &[LinkConfig]) -> TestBond {
    bond_with(seed, &latency(latency_ms), paths)
}

fn bond_with(seed: u64, config: &Config, paths: &[LinkConfig]) -> TestBond {
    let mut bond = TestBond::new(seed, GroupKind::Balance, config, paths);
    bond.connect(&vec![0; paths.len()]);
    bond
}

/// Sends a stream of this rate for some seconds.
fn stream(bond: &mut TestBond, kbps: u64, seconds: u64) {
    let count = kbps * seconds * 1_000 / (WIRE * 8);
    bond.stream(Side::Caller, count as u32, interval(kbps));
}

/// The number of messages that were sent over each path, copies included.
fn carried(bond: &TestBond) -> Vec<usize> {
    bond.records.iter().map(|record| record.of_kind(Side::Caller, Kind::Data).len()).collect()
}

/// The number of messages of a ten-second stream of this rate that do not arrive in time.
fn lost(kbps: u64, paths: &[LinkConfig]) -> usize {
    let mut bond = bond(1, 400, paths);
    stream(&mut bond, kbps, 10);
    bond.run_for(SECS(2));
    let in_time = bond.listener.received.iter().filter(|(at, message)| *at == message.due);
    bond.caller.sent.len() - in_time.count()
}

#[test]
fn two_equal_links_carry_1_8_times_as_much_as_one() {
    let equal = narrow(6_000, 20);
    // The highest rate that one link carries without a loss, in steps of a hundredth of its rate.
    let one = (1..=100).rev().map(|percent| 6_000 * percent / 100);
    let one = one
        .take(8)
        .find(|&kbps| lost(kbps, std::slice::from_ref(&equal)) == 0)
        .expect("92 % at least");
    assert!(lost(one * 11 / 10, std::slice::from_ref(&equal)) > 0, "one link cannot carry that");
    for seed in 0..5 {
        let mut bond = bond(seed, 400, &[equal.clone(), equal.clone()]);
        stream(&mut bond, one * 18 / 10, 20);
        bond.run_for(SECS(1));
        bond.assert_complete(Side::Caller);
        let carried = carried(&bond);
        let (sum, sent) = (carried.iter().sum::<usize>(), bond.caller.sent.len());
        assert!(sum < sent + sent / 20, "{carried:?} packets for {sent} messages");
    }
}

#[test]
fn unequal_links_carry_a_stream_by_their_capacity() {
    for seed in 0..5 {
        let mut bond = bond(seed, 500, &[narrow(10_000, 20), narrow(4_000, 20)]);
        stream(&mut bond, 12_000, 20);
        bond.run_for(SECS(1));
        bond.assert_complete(Side::Caller);
        let carried = carried(&bond);
        assert!(carried[0] > 2 * carried[1], "{carried:?}");
    }
}

#[test]
fn links_of_different_delay_carry_one_stream() {
    for seed in 0..5 {
        let mut bond = bond(seed, 500, &[narrow(6_000, 10), narrow(6_000, 40)]);
        stream(&mut bond, 10_000, 20);
        bond.run_for(SECS(1));
        bond.assert_complete(Side::Caller);
        assert!(carried(&bond).iter().all(|&it| it > bond.caller.sent.len() / 3));
    }
}

#[test]
fn messages_that_a_link_loses_are_sent_over_the_best_link() {
    for seed in 0..5 {
        let mut bond = bond(seed, 300, &[lossy(0.04), link()]);
        stream(&mut bond, 8_000, 10);
        bond.run_for(SECS(1));
        bond.assert_complete(Side::Caller);
        let again: usize = bond
            .records
            .iter()
            .map(|record| record.of_kind(Side::Caller, Kind::Retransmission).len())
            .sum();
        assert!(again < 20, "{again} packets were retransmitted by the link");
        let statistics = bond.caller.group().statistics(bond.now);
        assert!(statistics.packets_retransmitted > 50, "{}", statistics.packets_retransmitted);
    }
}

/// Also with the least sufficient latency: 60 ms, plus one and a half round trips of the other
/// link, plus 20 ms.
#[test]
fn a_cut_link_loses_nothing() {
    for seed in 0..20 {
        let cut = seed as usize % 2;
        let least = 60 + [90, 30][cut] + 20;
        for latency in [least, 400] {
            let mut bond = bond(seed, latency, &[narrow(8_000, 10), narrow(8_000, 30)]);
            bond.stream(Side::Caller, 1_000 + seed as u32, interval(6_000));
            bond.cut(cut);
            stream(&mut bond, 6_000, 8);
            bond.run_for(SECS(1));
            bond.assert_complete(Side::Caller);
            let up = bond.caller.group().links().filter(|(_, _, state)| state.is_up()).count();
            assert_eq!(up, 1, "the link that was cut has ended");
        }
    }
}

#[test]
fn a_flapping_link_loses_nothing_and_is_used_again() {
    for seed in 0..10 {
        let mut chance = Random(seed);
        let flapping = narrow(8_000, 30);
        let algorithms = [RetransmitAlgorithm::Auto, RetransmitAlgorithm::Efficient];
        let config = latency(400).with_retransmit_algorithm(algorithms[seed as usize % 2].clone());
        let mut bond = bond_with(seed, &config, &[narrow(8_000, 10), flapping.clone()]);
        for _ in 0..8 {
            bond.cut(1);
            bond.stream(Side::Caller, 20 + chance.below(600), interval(6_000));
            bond.set_path(1, &flapping);
            bond.stream(Side::Caller, 20 + chance.below(1_500), interval(6_000));
        }
        let before = carried(&bond)[1];
        stream(&mut bond, 6_000, 10);
        bond.run_for(SECS(1));
        bond.assert_complete(Side::Caller);
        let after = carried(&bond)[1];
        assert!(after > before + 1_000, "{after} and {before} before");
        assert!(bond.caller.group().links().all(|(_, _, state)| state == LinkState::Stable));
    }
}

#[test]
fn a_link_that_becomes_slow_gets_fewer_messages() {
    for seed in 0..5 {
        let mut bond = bond(seed, 600, &[narrow(10_000, 20), narrow(10_000, 20)]);
        stream(&mut bond, 8_000, 5);
        bond.set_path(1, &narrow(800, 20));
        stream(&mut bond, 8_000, 10);
        let before = carried(&bond);
        stream(&mut bond, 8_000, 5);
        let after = carried(&bond);
        bond.run_for(SECS(1));
        bond.assert_complete(Side::Caller);
        let share = (after[1] - before[1]) as f64 / (after[0] - before[0]) as f64;
        assert!(share < 0.15, "{share}");
    }
}

#[test]
fn links_join_and_leave_a_balancing_group() {
    let config = latency(400);
    let paths = [narrow(8_000, 10), narrow(8_000, 20), narrow(8_000, 30)];
    let mut bond = TestBond::new(3, GroupKind::Balance, &config, &paths);
    let first = bond.call(0, 0);
    bond.run_for(SECS(1));
    stream(&mut bond, 6_000, 2);
    bond.call(1, 0);
    stream(&mut bond, 10_000, 4);
    bond.call(2, 0);
    stream(&mut bond, 12_000, 4);
    let (endpoint, id) = bond.caller.members[&first];
    bond.caller.endpoints()[endpoint].connection(bond.now, id).expect("not released").close();
    stream(&mut bond, 12_000, 4);
    bond.run_for(SECS(1));
    bond.assert_complete(Side::Caller);
    assert_eq!(bond.listener.accepted, 1);
}

#[test]
fn a_balancing_group_works_both_ways_and_across_the_wrap() {
    let paths = [narrow(8_000, 10), narrow(8_000, 20)];
    let mut bond = TestBond::new(4, GroupKind::Balance, &latency(400), &paths)
        .with_random(u64::from(0x7FFF_FFFFu32 - 50));
    bond.connect(&[0, 0]);
    for _ in 0..5 {
        bond.stream(Side::Caller, 300, interval(8_000));
        bond.stream(Side::Listener, 300, interval(8_000));
    }
    bond.run_for(SECS(1));
    bond.assert_complete(Side::Caller);
    bond.assert_complete(Side::Listener);
}
