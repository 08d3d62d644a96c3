//! Broadcast groups: every message is sent over every link, and delivered once.

use std::time::Duration;

use punctual_proto::{BufferSize, GroupKind, LinkState};
use punctual_units::Bitrate;
use punctual_wire::{Control, Packet};

use crate::bond::TestBond;
use crate::datagram::{Kind, data_header};
use crate::pair::Side;
use crate::{MS, SECS, latency, link, lossy};

/// One message every 2 ms: 5.3 Mb/s.
const INTERVAL: Duration = Duration::from_millis(2);

fn two(seed: u64) -> TestBond {
    TestBond::new(seed, GroupKind::Broadcast, &latency(120), &[link(), link().with_delay(MS(30))])
}

#[test]
fn all_links_carry_the_same_packets_and_each_message_is_delivered_once() {
    let mut bond = two(1);
    bond.connect(&[0, 0]);
    assert_eq!(bond.listener.accepted, 1, "one event for the whole group");
    bond.stream(Side::Caller, 500, INTERVAL);
    bond.run_for(SECS(1));
    bond.assert_complete(Side::Caller);
    let sent = |path: usize| {
        let record = bond.records[path].of_kind(Side::Caller, Kind::Data);
        let headers = record.iter().filter_map(|(_, datagram)| data_header(datagram));
        headers.map(|it| (it.seq, it.msgno, it.timestamp)).collect::<Vec<_>>()
    };
    assert_eq!(sent(0), sent(1));
    let statistics = bond.listener.group().statistics(bond.now);
    assert_eq!(statistics.packets_received_unique, 500);
    assert_eq!(statistics.packets_belated, 500, "the copies");
    assert_eq!(statistics.packets_receive_dropped, 0);
}

#[test]
fn nothing_is_lost_while_one_link_works() {
    for seed in 0..20 {
        let mut bond = two(seed);
        bond.connect(&[0, 0]);
        // The links fail alternately, each for too long for retransmissions.
        for turn in 0..8 {
            let dead = turn % 2;
            bond.cut(dead);
            bond.stream(Side::Caller, 300, INTERVAL);
            bond.set_path(dead, &link().with_delay(MS(10 + 20 * dead as u64)));
            // Until both links carry the stream again.
            bond.stream(Side::Caller, 100, INTERVAL);
        }
        bond.run_for(SECS(1));
        bond.assert_complete(Side::Caller);
    }
}

#[test]
fn each_link_makes_up_for_the_losses_of_the_others() {
    for seed in 0..10 {
        let paths = [lossy(0.1), lossy(0.3).with_delay(MS(25)), lossy(0.02).with_delay(MS(50))];
        let mut bond = TestBond::new(seed, GroupKind::Broadcast, &latency(160), &paths);
        bond.connect(&[0, 0, 0]);
        bond.stream(Side::Caller, 1_000, INTERVAL);
        bond.run_for(SECS(1));
        bond.assert_complete(Side::Caller);
    }
}

#[test]
fn a_loss_on_all_links_counts_once() {
    let mut bond = two(3);
    bond.connect(&[0, 0]);
    bond.stream(Side::Caller, 200, INTERVAL);
    bond.cut(0);
    bond.cut(1);
    // Longer than the senders keep messages.
    bond.stream(Side::Caller, 1_000, INTERVAL);
    bond.set_path(0, &link());
    bond.set_path(1, &link().with_delay(MS(30)));
    bond.stream(Side::Caller, 200, INTERVAL);
    bond.run_for(SECS(1));
    let delivered = bond.delivered(Side::Caller).len() as u64;
    let statistics = bond.listener.group().statistics(bond.now);
    assert_eq!(statistics.packets_received_unique, delivered);
    assert_eq!(statistics.packets_receive_dropped, 1_400 - delivered);
    let reported: u32 = bond.listener.received.iter().map(|(_, message)| message.lost_before).sum();
    assert_eq!(u64::from(reported), 1_400 - delivered);
    assert!((400..1_200).contains(&delivered), "{delivered}");
}

#[test]
fn a_new_link_begins_where_the_stream_is() {
    let mut bond = two(4);
    let first = bond.call(0, 0);
    bond.run_for(SECS(1));
    bond.stream(Side::Caller, 2_000, INTERVAL);
    let second = bond.call(1, 0);
    bond.stream(Side::Caller, 500, INTERVAL);
    assert_eq!(bond.state(second), LinkState::Stable);
    // From now on the second one must carry it alone.
    bond.cut(0);
    bond.stream(Side::Caller, 500, INTERVAL);
    bond.run_for(SECS(1));
    bond.assert_complete(Side::Caller);
    assert_eq!(bond.listener.accepted, 1);
    assert_eq!(bond.state(first), LinkState::Stable, "the idle timeout of 5 s is not over");
    let packets = bond.records[1].of_kind(Side::Caller, Kind::DropRequest);
    assert!(!packets.is_empty(), "messages that it does not carry are announced");
    for (_, datagram) in packets {
        let Ok(Packet::Control(packet)) = Packet::parse(&datagram) else { panic!("a packet") };
        let Control::DropRequest(request) = packet.control else { panic!("a drop request") };
        assert!(!request.last.is_before(request.first));
    }
    let lost = bond.link_statistics(second).packets_send_lost;
    assert_eq!(lost, 0, "no NAK for messages that it never carried");
}

#[test]
fn links_join_and_leave_a_broadcast_group() {
    let mut bond = two(5);
    let first = bond.call(0, 0);
    bond.run_for(SECS(1));
    bond.stream(Side::Caller, 100, INTERVAL);
    bond.call(1, 0);
    bond.stream(Side::Caller, 300, INTERVAL);
    let (endpoint, id) = bond.caller.members[&first];
    bond.caller.endpoints()[endpoint].connection(bond.now, id).expect("not released").close();
    bond.stream(Side::Caller, 500, INTERVAL);
    assert_eq!(bond.state(first), LinkState::Gone);
    let again = bond.call(0, 0);
    bond.stream(Side::Caller, 500, INTERVAL);
    assert_eq!(bond.state(again), LinkState::Stable);
    bond.cut(1);
    bond.stream(Side::Caller, 3_000, INTERVAL);
    bond.run_for(SECS(1));
    bond.assert_complete(Side::Caller);
    assert_eq!(bond.listener.accepted, 1);
}

#[test]
fn sequence_numbers_wrap_in_a_broadcast_group() {
    let mut bond = two(6).with_random(u64::from(0x7FFF_FFFFu32 - 50));
    bond.call(0, 0);
    bond.run_for(SECS(1));
    bond.stream(Side::Caller, 20, INTERVAL);
    bond.call(1, 0);
    bond.stream(Side::Caller, 400, INTERVAL);
    bond.cut(0);
    bond.stream(Side::Caller, 100, INTERVAL);
    bond.run_for(SECS(1));
    bond.assert_complete(Side::Caller);
}

#[test]
fn a_broadcast_group_works_both_ways() {
    let mut bond = two(7);
    bond.call(0, 0);
    bond.run_for(SECS(1));
    bond.stream(Side::Caller, 300, INTERVAL);
    bond.stream(Side::Listener, 10, INTERVAL);
    bond.call(1, 0);
    bond.run_for(SECS(1));
    bond.cut(0);
    bond.stream(Side::Listener, 300, INTERVAL);
    bond.stream(Side::Caller, 300, INTERVAL);
    bond.run_for(SECS(1));
    bond.assert_complete(Side::Caller);
    bond.assert_complete(Side::Listener);
}

#[test]
fn a_slow_link_does_not_delay_the_stream() {
    let slow = link().with_rate(Some(Bitrate::from_bits_per_sec(800_000)));
    let mut bond = TestBond::new(8, GroupKind::Broadcast, &latency(120), &[link(), slow]);
    bond.connect(&[0, 0]);
    bond.stream(Side::Caller, 2_000, INTERVAL);
    bond.run_for(SECS(1));
    bond.assert_complete(Side::Caller);
}

/// A sender that has filled all links gets an event when one has room.
#[test]
fn a_full_group_reports_when_it_has_room() {
    for kind in [GroupKind::Broadcast, GroupKind::Backup] {
        let config = latency(2_000).with_send_buffer(BufferSize::Packets(32));
        let narrow = link().with_rate(Some(Bitrate::from_mbps(4)));
        let mut bond = TestBond::new(9, kind, &config, &[narrow.clone(), narrow]);
        bond.connect(&[2, 1]);
        let mut refused = 0;
        while bond.caller.sent.len() < 1_000 {
            let now = bond.now;
            if !bond.caller.send_next(now) {
                refused += 1;
                let before = bond.caller.writable;
                while bond.caller.writable == before {
                    assert!(bond.now < now + SECS(1), "no event reports room");
                    bond.run_for(MS(1));
                }
            }
        }
        assert!(refused > 10);
        bond.run_for(SECS(3));
        if kind == GroupKind::Backup {
            bond.assert_complete(Side::Caller);
        }
    }
}
