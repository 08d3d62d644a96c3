//! Keys that are replaced while a stream runs.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use punctual_netem::{LinkConfig, Loss};
use punctual_proto::{Config, CryptoMode, KeyState, SeqNo};
use punctual_wire::{Control, KeyFlag, Timestamp};

use crate::datagram::{control, data_header, forged};
use crate::encryption::secured;
use crate::pair::{Pair, Side};
use crate::{MS, SECS, link, lossy};

pub const KMREQ: u16 = 3;
pub const KMRSP: u16 = 4;

/// A new key every `rate` packets, announced `ahead` packets before.
pub fn refreshing(rate: u32, ahead: u32) -> Config {
    secured(Some("correct horse"), true)
        .with_key_refresh_rate(rate)
        .and_then(|config| config.with_key_pre_announce(ahead))
        .and_then(|config| config.with_latency(MS(300)))
        .expect("in range")
}

/// The body of a key message, or of its answer.
pub fn key_message(datagram: &[u8], wanted: u16) -> Option<Vec<u8>> {
    match control(datagram) {
        Some(Control::Extension { command, body }) if command == wanted => Some(body.to_vec()),
        _ => None,
    }
}

#[track_caller]
fn assert_whole(pair: &mut Pair, sides: &[Side]) {
    pair.run_for(SECS(1));
    for &side in sides {
        pair.assert_complete(side);
        let statistics = pair.statistics(side.other());
        assert_eq!((statistics.packets_undecrypted, statistics.packets_ignored), (0, 0));
        let info = pair.info(side);
        assert_eq!(info.send_key_state, KeyState::Secured);
        assert_eq!(info.receive_key_state, KeyState::Secured);
    }
}

#[test]
fn a_key_is_announced_and_replaced_after_the_configured_packets() {
    let mut pair = Pair::symmetric(1, link());
    pair.connect(refreshing(100, 20), refreshing(100, 20));
    let record = pair.record();
    pair.stream(Side::Caller, 450, MS(2));
    assert_whole(&mut pair, &[Side::Caller]);
    let sent = record.from(Side::Caller);
    let mut data = 0;
    let mut announced = Vec::new();
    for (_, datagram) in &sent {
        if let Some(header) = data_header(datagram) {
            let key = if data / 100 % 2 == 0 { KeyFlag::Even } else { KeyFlag::Odd };
            assert_eq!(header.key, key, "packet {data}");
            data += 1;
        } else if let Some(message) = key_message(datagram, KMREQ) {
            assert_eq!(message.len(), 72, "the old key and the new one");
            announced.push(data);
        }
    }
    assert_eq!(announced, [80, 180, 280, 380], "once each if nothing is lost");
    assert_eq!(pair.statistics(Side::Caller).key_refreshes, 4);
    let returned = record.from(Side::Listener);
    let requests = sent.iter().filter_map(|(_, datagram)| key_message(datagram, KMREQ));
    let answers = returned.iter().filter_map(|(_, datagram)| key_message(datagram, KMRSP));
    assert!(requests.eq(answers), "returned as they came");
}

#[test]
fn streams_survive_key_refreshes_under_loss() {
    for mode in [CryptoMode::Ctr, CryptoMode::Gcm] {
        for seed in 0..6 {
            let mut pair = Pair::symmetric(seed, lossy(0.1));
            let config = refreshing(64, 16).with_latency(MS(600)).expect("in range");
            pair.connect(config.clone().with_crypto_mode(mode), config);
            for _ in 0..1_500 {
                assert!(pair.send_next(Side::Caller) && pair.send_next(Side::Listener));
                pair.run_for(MS(2));
            }
            assert_whole(&mut pair, &[Side::Caller, Side::Listener]);
            for side in [Side::Caller, Side::Listener] {
                assert!(pair.statistics(side).key_refreshes > 15);
                assert!(pair.statistics(side).packets_retransmitted > 50);
            }
        }
    }
}

#[test]
fn an_unanswered_key_message_is_repeated_and_the_old_key_stays_in_use() {
    for wanted in [KMREQ, KMRSP] {
        let mut pair = Pair::symmetric(1, link());
        pair.connect(refreshing(100, 20), refreshing(100, 20));
        let (lost, keys) = (Rc::new(Cell::new(0)), Rc::new(RefCell::new(Vec::new())));
        let (count, seen) = (Rc::clone(&lost), Rc::clone(&keys));
        // More than libsrt's eleven.
        pair.drop_where(move |_, datagram| {
            seen.borrow_mut().extend(data_header(datagram).map(|header| header.key));
            let hit = key_message(datagram, wanted).is_some() && count.get() < 25;
            count.set(count.get() + u32::from(hit));
            hit
        });
        pair.stream(Side::Caller, 3_000, MS(5));
        assert_eq!(lost.get(), 25);
        assert_whole(&mut pair, &[Side::Caller]);
        let keys = keys.borrow();
        let even = keys.iter().take_while(|&&key| key == KeyFlag::Even).count();
        assert!(even > 200, "the old key until the new one is known: {even}");
        assert!(pair.statistics(Side::Caller).key_refreshes > 2, "and then as before");
    }
}

#[test]
fn an_outage_during_a_refresh_costs_no_more_than_any_outage() {
    let mut pair = Pair::symmetric(1, link());
    pair.connect(refreshing(100, 20), refreshing(100, 20));
    pair.stream(Side::Caller, 70, MS(5));
    let all = LinkConfig::default().with_loss(Loss::All).expect("no share in it");
    pair.set_link(Side::Caller, all.clone());
    pair.set_link(Side::Listener, all);
    pair.stream(Side::Caller, 400, MS(5));
    pair.set_link(Side::Caller, link());
    pair.set_link(Side::Listener, link());
    let before = pair.delivered(Side::Caller).len();
    pair.stream(Side::Caller, 400, MS(5));
    pair.run_for(SECS(1));
    assert_eq!(pair.statistics(Side::Listener).packets_undecrypted, 0);
    assert!(pair.delivered(Side::Caller).len() >= before + 400);
    assert!(pair.statistics(Side::Caller).key_refreshes >= 4);
}

/// Keys are refreshed while packets of older keys are still retransmitted.
#[test]
fn packets_of_old_keys_are_retransmitted_unchanged() {
    let mut pair = Pair::symmetric(1, link());
    let config = refreshing(20, 9).with_latency(SECS(2)).expect("in range");
    pair.connect(config.clone(), config);
    let seen = Rc::new(RefCell::new(Vec::<Vec<u8>>::new()));
    let keep = Rc::clone(&seen);
    let times = RefCell::new(std::collections::BTreeMap::<u32, u32>::new());
    // Every eleventh packet is lost six times.
    pair.drop_where(move |side, datagram| {
        let Some(header) = data_header(datagram).filter(|_| side == Side::Caller) else {
            return false;
        };
        keep.borrow_mut().push(datagram.to_vec());
        let mut times = times.borrow_mut();
        let time = times.entry(header.seq.value()).or_default();
        *time += 1;
        header.seq.value() % 11 == 0 && *time <= 6
    });
    pair.stream(Side::Caller, 600, MS(2));
    pair.run_for(SECS(3));
    let seen = seen.borrow();
    let mut again = 0;
    for datagram in seen.iter().filter(|one| data_header(one).expect("data").retransmitted) {
        let original = seen.iter().find(|first| first[..4] == datagram[..4]).expect("sent");
        assert_eq!(original[16..], datagram[16..]);
        assert_eq!(
            data_header(original).map(|one| one.key),
            data_header(datagram).map(|one| one.key)
        );
        again += 1;
    }
    assert!(again > 200);
}

#[test]
fn keys_are_refreshed_across_the_wrap_of_sequence_numbers() {
    for seed in crate::wraps::SEEDS {
        let mut pair = Pair::symmetric(seed, lossy(0.05));
        pair.connect(refreshing(60, 20), refreshing(60, 20));
        for _ in 0..1_000 {
            assert!(pair.send_next(Side::Caller) && pair.send_next(Side::Listener));
            pair.run_for(MS(2));
        }
        assert_whole(&mut pair, &[Side::Caller, Side::Listener]);
        for side in [Side::Caller, Side::Listener] {
            let received = &pair.node(side).received;
            let (first, last) = (received[0].message.seq, received[received.len() - 1].message.seq);
            assert!(last.value() < first.value() && last.distance_from(SeqNo::MAX) > 0);
            assert!(pair.statistics(side).key_refreshes >= 15);
        }
    }
}

#[test]
fn no_key_message_after_the_handshake_removes_a_key() {
    let mut pair = Pair::symmetric(1, link());
    let record = pair.record();
    pair.connect(refreshing(100, 20), refreshing(100, 20));
    pair.stream(Side::Caller, 350, MS(2));
    let old: Vec<Vec<u8>> = {
        let sent = record.from(Side::Caller).into_iter();
        sent.filter_map(|(_, datagram)| key_message(&datagram, KMREQ)).collect()
    };
    assert_eq!(old.len(), 3);
    let mut bodies = vec![Vec::new(), vec![0; 4], vec![3, 0, 0, 0], vec![0xFF; 1_400]];
    for message in &old {
        // Unchanged, in every length, and with each byte changed.
        bodies.push(message.clone());
        bodies.extend((0..message.len()).map(|len| message[..len].to_vec()));
        bodies.push([&message[..], &[0; 4]].concat());
        bodies.extend((0..message.len()).map(|at| {
            let mut changed = message.clone();
            changed[at] ^= 0x40;
            changed
        }));
    }
    let target = pair.info(Side::Listener).socket_id;
    let remote = pair.caller.address;
    for command in [KMREQ, KMRSP] {
        for body in &bodies {
            let packet = forged(target, Timestamp::default(), Control::Extension { command, body });
            pair.inject(Side::Listener, remote, packet);
        }
    }
    assert!(pair.statistics(Side::Listener).packets_ignored > 400);
    let info = pair.info(Side::Listener);
    assert_eq!(info.send_key_state, KeyState::Secured);
    assert_eq!(info.receive_key_state, KeyState::Secured);
    pair.stream(Side::Caller, 350, MS(2));
    pair.run_for(SECS(1));
    pair.assert_complete(Side::Caller);
    assert_eq!(pair.statistics(Side::Listener).packets_undecrypted, 0);
}

/// After invalid answers, the sender repeats its key message, and keeps using the peer's key.
#[test]
fn a_forged_answer_changes_nothing() {
    let mut pair = Pair::symmetric(1, link());
    pair.connect(refreshing(100, 20), refreshing(100, 20));
    pair.drop_where(|_, datagram| key_message(datagram, KMREQ).is_some());
    pair.stream(Side::Caller, 150, MS(2));
    let target = pair.info(Side::Caller).socket_id;
    let remote = pair.listener.address;
    for body in [&[4, 0, 0, 0][..], &[3, 0, 0, 0], &[0; 72], &[]] {
        let command = KMRSP;
        let packet = forged(target, Timestamp::default(), Control::Extension { command, body });
        pair.inject(Side::Caller, remote, packet);
    }
    assert_eq!(pair.statistics(Side::Caller).packets_ignored, 4);
    pair.stream(Side::Caller, 150, MS(2));
    assert_eq!(pair.statistics(Side::Caller).key_refreshes, 0);
    pair.untap();
    pair.stream(Side::Caller, 1_000, MS(2));
    assert_whole_but_for(&mut pair, 4);
    assert!(pair.statistics(Side::Caller).key_refreshes > 0);
}

#[track_caller]
fn assert_whole_but_for(pair: &mut Pair, ignored: u64) {
    pair.run_for(SECS(1));
    pair.assert_complete(Side::Caller);
    assert_eq!(pair.statistics(Side::Caller).packets_ignored, ignored);
    assert_eq!(pair.statistics(Side::Listener).packets_undecrypted, 0);
}
