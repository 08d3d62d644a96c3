//! Backup groups: one link carries the stream, another one takes over.

use std::time::Duration;

use punctual_proto::{GroupKind, LinkId, LinkState};
use punctual_wire::{Control, Packet};

use crate::bond::TestBond;
use crate::datagram::{Kind, data_header};
use crate::node::EPOCH;
use crate::pair::Side;
use crate::random::Random;
use crate::{MS, SECS, latency, link, lossy};

/// One message every 2 ms: 5.3 Mb/s.
const INTERVAL: Duration = Duration::from_millis(2);
/// The time to an ACK beyond the round trip: the ACK timer, and the wait for a first packet.
const ACK: Duration = Duration::from_millis(10);

fn main_and_backup(seed: u64) -> (TestBond, LinkId, LinkId) {
    let paths = [link(), link().with_delay(MS(20))];
    let mut bond = TestBond::new(seed, GroupKind::Backup, &latency(300), &paths);
    let links = bond.connect(&[10, 5]);
    (bond, links[0], links[1])
}

/// When the first data packet was sent over a path at or after `from`.
fn first_data(bond: &TestBond, path: usize, from: Duration) -> Option<Duration> {
    let sent = bond.records[path].of_kind(Side::Caller, Kind::Data);
    sent.iter().map(|(at, _)| *at).find(|at| *at >= from)
}

#[test]
fn the_link_of_the_highest_weight_carries_the_stream_alone() {
    let (mut bond, main, backup) = main_and_backup(1);
    bond.stream(Side::Caller, 1_000, INTERVAL);
    bond.run_for(SECS(1));
    bond.assert_complete(Side::Caller);
    assert_eq!(bond.state(main), LinkState::Stable);
    assert_eq!(bond.state(backup), LinkState::Idle);
    assert_eq!(first_data(&bond, 1, Duration::ZERO), None);
    assert_eq!(bond.caller.group().switches(), 0);
}

#[test]
fn a_backup_takes_over_within_the_stability_timeout_and_nothing_is_lost() {
    for seed in 0..20 {
        let (mut bond, main, backup) = main_and_backup(seed);
        bond.stream(Side::Caller, 500, INTERVAL);
        let rtt = bond.link_statistics(main);
        let timeout = (rtt.rtt * 2 + rtt.rtt_variance * 4).clamp(MS(60), MS(300));
        bond.cut(0);
        let cut = bond.now - EPOCH;
        bond.stream(Side::Caller, 500, INTERVAL);
        let over = first_data(&bond, 1, cut).expect("the backup carries the stream");
        assert!(over - cut <= timeout + ACK, "{:?} with {timeout:?}", over - cut);
        assert_eq!(bond.state(backup), LinkState::Stable);
        bond.run_for(SECS(1));
        bond.assert_complete(Side::Caller);
        assert_eq!(bond.caller.group().switches(), 1);
    }
}

#[test]
fn unacknowledged_messages_are_repeated_with_their_numbers_and_paced() {
    let (mut bond, ..) = main_and_backup(2);
    bond.stream(Side::Caller, 500, INTERVAL);
    bond.cut(0);
    let cut = bond.now - EPOCH;
    bond.stream(Side::Caller, 500, INTERVAL);
    let numbers = |path: usize| {
        let sent = bond.records[path].of_kind(Side::Caller, Kind::Data);
        let headers = sent.into_iter().filter_map(|(at, it)| Some((at, data_header(&it)?)));
        headers.map(|(at, header)| (at, header.seq, header.msgno)).collect::<Vec<_>>()
    };
    let (old, new) = (numbers(0), numbers(1));
    let (_, first, msgno) = new[0];
    assert!(old.iter().any(|&(at, seq, no)| (seq, no) == (first, msgno) && at <= cut));
    // Twice the stream's rate, and 10 ms by which a late driver may catch up.
    for window in new.windows(30) {
        assert!(window[29].0 - window[0].0 >= MS(29 - 10), "a burst at {:?}", window[0].0);
    }
}

#[test]
fn the_better_link_is_used_again_when_it_is_stable() {
    let (mut bond, main, backup) = main_and_backup(3);
    bond.stream(Side::Caller, 300, INTERVAL);
    bond.cut(0);
    bond.stream(Side::Caller, 500, INTERVAL);
    assert_eq!((bond.state(main), bond.state(backup)), (LinkState::Unstable, LinkState::Stable));
    bond.set_path(0, &link());
    bond.stream(Side::Caller, 200, INTERVAL);
    assert_eq!((bond.state(main), bond.state(backup)), (LinkState::Wary, LinkState::Stable));
    // It becomes stable after four latencies.
    bond.stream(Side::Caller, 500, INTERVAL);
    assert_eq!((bond.state(main), bond.state(backup)), (LinkState::Stable, LinkState::Idle));
    bond.run_for(SECS(1));
    bond.assert_complete(Side::Caller);
    let idle = bond.records[1].of_kind(Side::Caller, Kind::Other);
    let says_idle = |datagram: &[u8]| match Packet::parse(datagram) {
        Ok(Packet::Control(packet)) => packet.control == Control::KeepAliveIdle,
        _ => false,
    };
    assert_eq!(idle.iter().filter(|(_, datagram)| says_idle(datagram)).count(), 1);
}

#[test]
fn a_link_that_ends_is_replaced_at_once() {
    let (mut bond, main, backup) = main_and_backup(4);
    bond.stream(Side::Caller, 300, INTERVAL);
    let (endpoint, id) = bond.caller.members[&main];
    bond.caller.endpoints()[endpoint].connection(bond.now, id).expect("not released").close();
    bond.stream(Side::Caller, 300, INTERVAL);
    assert_eq!(bond.state(backup), LinkState::Stable);
    let again = bond.call(0, 10);
    bond.stream(Side::Caller, 600, INTERVAL);
    assert_eq!((bond.state(again), bond.state(backup)), (LinkState::Stable, LinkState::Idle));
    bond.run_for(SECS(1));
    bond.assert_complete(Side::Caller);
}

#[test]
fn a_flapping_main_link_loses_nothing() {
    for seed in 0..20 {
        let mut chance = Random(seed);
        let (mut bond, ..) = main_and_backup(seed);
        for _ in 0..8 {
            bond.cut(0);
            bond.stream(Side::Caller, 20 + chance.below(300), INTERVAL);
            bond.set_path(0, &link());
            bond.stream(Side::Caller, 20 + chance.below(900), INTERVAL);
        }
        bond.run_for(SECS(1));
        bond.assert_complete(Side::Caller);
    }
}

#[test]
fn losses_alone_are_no_reason_to_switch() {
    let paths = [lossy(0.1), link()];
    let mut bond = TestBond::new(5, GroupKind::Backup, &latency(300), &paths);
    bond.connect(&[10, 5]);
    bond.stream(Side::Caller, 3_000, INTERVAL);
    bond.run_for(SECS(1));
    bond.assert_complete(Side::Caller);
    assert_eq!(bond.caller.group().switches(), 0);
}

#[test]
fn a_dead_backup_is_skipped() {
    let paths = [link(), link(), link()];
    let mut bond = TestBond::new(6, GroupKind::Backup, &latency(600), &paths);
    let links = bond.connect(&[10, 5, 1]);
    bond.stream(Side::Caller, 300, INTERVAL);
    bond.cut(0);
    bond.cut(1);
    bond.stream(Side::Caller, 700, INTERVAL);
    assert_eq!(bond.state(links[2]), LinkState::Stable);
    bond.run_for(SECS(1));
    bond.assert_complete(Side::Caller);
}

#[test]
fn a_pause_of_the_stream_does_not_make_a_link_unstable() {
    let (mut bond, main, _) = main_and_backup(7);
    for _ in 0..5 {
        bond.stream(Side::Caller, 50, INTERVAL);
        bond.run_for(SECS(2));
    }
    bond.assert_complete(Side::Caller);
    assert_eq!(bond.state(main), LinkState::Stable);
    assert_eq!(bond.caller.group().switches(), 0);
}

/// A link that has carried nothing yet has acknowledged nothing that others carried before.
#[test]
fn a_link_that_joins_in_an_outage_gets_the_unacknowledged_messages() {
    for before in [0, 5, 10, 50, 100] {
        let paths = [link(), link()];
        let mut bond = TestBond::new(8, GroupKind::Backup, &latency(600), &paths);
        bond.connect(&[10]);
        bond.stream(Side::Caller, 300, INTERVAL);
        bond.cut(0);
        bond.stream(Side::Caller, before, INTERVAL);
        bond.call(1, 5);
        bond.stream(Side::Caller, 300, INTERVAL);
        bond.run_for(SECS(1));
        bond.assert_complete(Side::Caller);
    }
}
