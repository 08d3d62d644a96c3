//! The counts of a connection about its link: gaps, reordered packets, round-trip times, one-way
//! delays.

use punctual_netem::{Jitter, LinkConfig, Reorder};
use punctual_proto::{GroupKind, Statistics};

use crate::bond::TestBond;
use crate::datagram::data_header;
use crate::pair::{Pair, Side};
use crate::{MS, SECS, latency, link, lossy};

#[test]
fn gaps_are_counted_by_run_and_not_by_packet() {
    let mut pair = Pair::symmetric(1, link());
    pair.connect(latency(300), latency(300));
    // Of 300 packets: a single one, then five in a row, then a single one.
    let mut originals = 0;
    pair.drop_where(move |side, datagram| {
        let original = data_header(datagram).is_some_and(|header| !header.retransmitted);
        originals += u32::from(side == Side::Caller && original);
        side == Side::Caller && original && [50, 100, 101, 102, 103, 104, 200].contains(&originals)
    });
    pair.stream(Side::Caller, 300, MS(2));
    pair.run_for(MS(500));
    pair.assert_complete(Side::Caller);
    let receiver = pair.statistics(Side::Listener);
    assert_eq!(receiver.packets_receive_lost, 7);
    assert_eq!((receiver.receive_gaps, receiver.receive_gaps_single), (3, 2));
    assert_eq!(receiver.packets_reordered, 0);
}

#[test]
fn reordered_packets_are_distinguished_from_lost_ones() {
    for seed in 0..4 {
        let reorder = Reorder::Late { share: 0.05, by: MS(5) };
        let mut pair = Pair::symmetric(seed, link().with_reorder(reorder).expect("a share"));
        pair.connect(latency(300), latency(300));
        pair.stream(Side::Caller, 1_000, MS(2));
        pair.run_for(MS(500));
        let receiver = pair.statistics(Side::Listener);
        assert!(receiver.packets_reordered > 20, "seed {seed}: {receiver:?}");
        assert_eq!(receiver.packets_reordered, receiver.packets_receive_lost, "seed {seed}");
    }
}

#[test]
fn round_trip_times_and_delays_are_those_of_the_link() {
    let jitter = Jitter::Uniform { spread: MS(4) };
    let link = LinkConfig::default().with_delay(MS(30)).with_jitter(jitter);
    let mut pair = Pair::symmetric(3, link);
    pair.connect(latency(200), latency(200));
    for _ in 0..100 {
        pair.stream(Side::Caller, 10, MS(2));
        let receiver = pair.statistics(Side::Listener);
        if receiver.rtt_samples > 0 {
            assert!((MS(52)..=MS(68)).contains(&receiver.rtt_latest), "{receiver:?}");
        }
        assert!(receiver.transit_micros.abs() <= 8_000, "{receiver:?}");
    }
    let receiver = pair.statistics(Side::Listener);
    assert!(receiver.rtt_samples > 100 && receiver.rtt_samples <= receiver.acks_sent);
}

#[test]
fn the_numbers_of_acks_show_the_loss_of_the_way_back() {
    let mut pair = Pair::new(4, link(), lossy(0.1));
    pair.connect(latency(300), latency(300));
    pair.stream(Side::Caller, 10_000, MS(2));
    let sender = pair.statistics(Side::Caller);
    let sent = pair.statistics(Side::Listener).acks_sent;
    assert!((sent - 10..=sent).contains(&sender.acks_expected), "{sender:?}");
    let lost = sender.acks_missed * 100 / sender.acks_expected;
    assert!((8..=12).contains(&lost), "{lost} % of the ACKs were lost");
    // With random losses, nine in ten are single.
    let mean = sender.acks_missed as f64 / sender.ack_gaps as f64;
    assert!((1.05..1.2).contains(&mean), "{mean} of them in a run");
}

/// The statistics of all connections at the listener of a group.
fn of_links(bond: &mut TestBond) -> Vec<Statistics> {
    let now = bond.now;
    let links: Vec<_> = bond.listener.members.values().copied().collect();
    let endpoints = bond.listener.endpoints();
    let connections = links.into_iter().map(|(place, id)| endpoints[place].connections().get(id));
    connections.flatten().map(|connection| connection.statistics(now)).collect()
}

#[test]
fn a_standby_link_that_takes_over_has_lost_nothing() {
    for seed in 0..20 {
        let mut bond = TestBond::new(seed, GroupKind::Backup, &latency(300), &[link(), link()]);
        bond.connect(&[2, 1]);
        for _ in 0..3 {
            bond.stream(Side::Caller, 400 + seed as u32, MS(2));
            bond.cut(0);
            bond.stream(Side::Caller, 400, MS(2));
            bond.set_path(0, &link());
            bond.stream(Side::Caller, 1_500, MS(2));
        }
        bond.run_for(SECS(1));
        bond.assert_complete(Side::Caller);
        assert!(bond.caller.group().switches() >= 3, "the standby link has taken over");
        for link in of_links(&mut bond) {
            assert_eq!(link.packets_receive_dropped, 0, "seed {seed}: {link:?}");
        }
        let standby = &of_links(&mut bond)[1];
        assert!(standby.packets_received > 300, "{standby:?}");
        assert_eq!(standby.packets_receive_lost, 0, "seed {seed}: {standby:?}");
    }
}

#[test]
fn a_link_that_joins_late_has_lost_nothing() {
    for kind in [GroupKind::Broadcast, GroupKind::Balance] {
        let mut bond = TestBond::new(9, kind, &latency(300), &[link(), link()]);
        bond.call(0, 0);
        bond.run_for(SECS(1));
        bond.stream(Side::Caller, 500, MS(2));
        bond.call(1, 0);
        bond.stream(Side::Caller, 500, MS(2));
        bond.run_for(SECS(1));
        bond.assert_complete(Side::Caller);
        for link in of_links(&mut bond) {
            assert!(link.packets_received > 100);
            assert_eq!((link.packets_receive_lost, link.packets_receive_dropped), (0, 0));
        }
    }
}

/// The group sends what one link lost by the other: the link has lost it, and the stream lacks
/// nothing.
#[test]
fn a_balancing_link_counts_its_losses_and_no_drops() {
    let mut bond = TestBond::new(9, GroupKind::Balance, &latency(300), &[lossy(0.05), link()]);
    bond.connect(&[0, 0]);
    bond.stream(Side::Caller, 3_000, MS(2));
    bond.run_for(SECS(1));
    bond.assert_complete(Side::Caller);
    let links = of_links(&mut bond);
    assert!(links[0].packets_receive_lost > 30, "{:?}", links[0]);
    assert!(links.iter().all(|link| link.packets_receive_dropped == 0));
}
