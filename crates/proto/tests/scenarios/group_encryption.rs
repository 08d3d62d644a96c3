//! Groups together with other features: encryption, path updates and the packet filter.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use punctual_proto::{CloseReason, Config, CryptoMode, GroupKind, KeyState, RejectReason};
use punctual_wire::KeyFlag;

use crate::bond::TestBond;
use crate::datagram::{data_header, is_data};
use crate::node::numbered;
use crate::pair::Side;
use crate::random::Random;
use crate::{MS, SECS, latency, link, lossy};

/// One message every 2 ms: 5.3 Mb/s.
const INTERVAL: Duration = Duration::from_millis(2);
/// The number of bytes that identify a keystream.
const COMPARED: usize = 32;

fn secured(mode: CryptoMode) -> Config {
    let config = latency(300).with_passphrase("correct horse").expect("a legal length");
    config.with_crypto_mode(mode)
}

/// The header of a data packet without the flag R, and the beginning of the keystream that it was
/// encrypted with. The message follows from its number.
fn unsealed(datagram: &[u8]) -> ([u8; 16], [u8; COMPARED]) {
    let header = data_header(datagram).expect("data");
    assert_ne!(header.key, KeyFlag::Clear);
    let clear = numbered(header.msgno.value() - 1);
    let mut covered: [u8; 16] = datagram[..16].try_into().expect("a header");
    covered[4] &= !4;
    let stream = std::array::from_fn(|at| datagram[16 + at] ^ clear[at]);
    (covered, stream)
}

/// Checks that no keystream was used for two different packets, on any link and in any direction. A
/// retransmission may reuse one only if header and payload are the same: the tag of AES-GCM covers
/// the header, and two tags for one nonce reveal the authentication key. Returns the number of
/// keystreams.
fn assert_no_keystream_is_used_twice(bond: &TestBond) -> usize {
    let mut uses = HashMap::new();
    for record in &bond.records {
        for side in [Side::Caller, Side::Listener] {
            for (_, datagram) in record.from(side).iter().filter(|(_, it)| is_data(it)) {
                let (header, stream) = unsealed(datagram);
                let first = uses.entry(stream).or_insert(header);
                assert_eq!(*first, header, "one keystream for two packets");
            }
        }
    }
    uses.len()
}

#[test]
fn encrypted_groups_lose_nothing_and_use_no_keystream_twice() {
    for (seed, kind) in [(1, GroupKind::Broadcast), (2, GroupKind::Backup), (3, GroupKind::Balance)]
    {
        for mode in [CryptoMode::Ctr, CryptoMode::Gcm] {
            let paths = [lossy(0.05), lossy(0.02).with_delay(MS(20))];
            let mut bond = TestBond::new(seed, kind, &secured(mode), &paths);
            bond.connect(&[10, 5]);
            for turn in 0..4 {
                bond.cut(turn % 2);
                bond.stream(Side::Caller, 200, INTERVAL);
                bond.stream(Side::Listener, 200, INTERVAL);
                bond.set_path(turn % 2, &lossy(0.05));
                bond.stream(Side::Caller, 700, INTERVAL);
            }
            bond.run_for(SECS(1));
            bond.assert_complete(Side::Caller);
            bond.assert_complete(Side::Listener);
            assert_no_keystream_is_used_twice(&bond);
            for (endpoint, id) in bond.caller.members.clone().into_values() {
                let info = bond.caller.endpoints()[endpoint]
                    .connections()
                    .get(id)
                    .expect("a connection")
                    .info();
                assert_eq!(info.send_key_state, KeyState::Secured);
            }
        }
    }
}

/// A link that goes on standby and takes over again may send the same numbers again, now with a new
/// key.
#[test]
fn key_refreshes_during_takeovers_use_no_keystream_twice() {
    for seed in 0..10 {
        let mut chance = Random(seed);
        let config = secured(CryptoMode::Gcm).with_key_refresh_rate(150).expect("in range");
        let config = config.with_key_pre_announce(60).expect("in range");
        let paths = [link(), link().with_delay(MS(20))];
        let mut bond = TestBond::new(seed, GroupKind::Backup, &config, &paths);
        bond.connect(&[10, 5]);
        for _ in 0..8 {
            bond.cut(0);
            bond.stream(Side::Caller, 20 + chance.below(300), INTERVAL);
            bond.set_path(0, &link());
            bond.stream(Side::Caller, 20 + chance.below(900), INTERVAL);
        }
        bond.run_for(SECS(1));
        bond.assert_complete(Side::Caller);
        assert!(assert_no_keystream_is_used_twice(&bond) > 1_000);
    }
}

/// Every link has its own key: the same packet looks different on each.
#[test]
fn links_share_no_key() {
    let mut bond =
        TestBond::new(3, GroupKind::Broadcast, &secured(CryptoMode::Ctr), &[link(), link()]);
    bond.connect(&[0, 0]);
    bond.stream(Side::Caller, 50, INTERVAL);
    let streams = |path: usize| {
        let sent = bond.records[path].from(Side::Caller);
        let data = sent.iter().filter(|(_, datagram)| is_data(datagram));
        data.map(|(_, datagram)| unsealed(datagram).1).collect::<Vec<_>>()
    };
    assert_eq!(streams(0).len(), streams(1).len());
    assert!(streams(0).iter().zip(streams(1)).all(|(a, b)| *a != b));
}

#[test]
fn a_wrong_passphrase_keeps_a_link_out_of_its_group() {
    let mut bond =
        TestBond::new(4, GroupKind::Broadcast, &secured(CryptoMode::Ctr), &[link(), link()]);
    bond.call(0, 0);
    bond.run_for(SECS(1));
    bond.refuses = true;
    bond.config = bond.config.clone().with_passphrase("battery staple").expect("a legal length");
    bond.call(1, 0);
    bond.run_for(SECS(1));
    let reasons: Vec<_> = bond.caller.closed.iter().map(|(_, reason)| reason.clone()).collect();
    assert_eq!(reasons, [CloseReason::Rejected(RejectReason::BAD_SECRET)]);
    bond.stream(Side::Caller, 100, INTERVAL);
    bond.run_for(SECS(1));
    bond.assert_complete(Side::Caller);
}

/// A link is followed to a new address like any connection, even a link that joined late, whose
/// sequence numbers differ from those of its handshake.
#[test]
fn every_link_is_followed_to_a_new_address() {
    for moving in [0, 1] {
        let paths = [link(), link().with_delay(MS(20))];
        let mut bond = TestBond::new(5, GroupKind::Broadcast, &latency(200), &paths);
        bond.call(0, 0);
        bond.run_for(SECS(1));
        bond.stream(Side::Caller, 100, INTERVAL);
        bond.call(1, 0);
        bond.stream(Side::Caller, 100, INTERVAL);
        bond.addresses[moving] = SocketAddr::from(([203, 0, 113, 5], 20_000));
        bond.stream(Side::Caller, 200, INTERVAL);
        // The other link cannot help any more.
        bond.cut(1 - moving);
        bond.stream(Side::Caller, 500, INTERVAL);
        bond.run_for(SECS(1));
        bond.assert_complete(Side::Caller);
    }
}

#[test]
fn a_group_with_a_packet_filter_is_refused() {
    let config = latency(120).with_packet_filter("fec,cols:5").expect("a filter");
    let mut bond = TestBond::new(6, GroupKind::Broadcast, &config, &[link()]);
    bond.call(0, 0);
    bond.run_for(SECS(1));
    let reasons: Vec<_> = bond.caller.closed.iter().map(|(_, reason)| reason.clone()).collect();
    assert_eq!(reasons, [CloseReason::Rejected(RejectReason::FILTER)]);
}
