//! Message numbers that wrap to 1 in the middle of a stream: nothing is lost, joined wrongly or
//! undecryptable, in any mode.

use bytes::Bytes;
use punctual_proto::{Config, CryptoMode, GroupKind, MsgNo, SendOptions, Transmission};

use crate::bond::TestBond;
use crate::datagram::{data_header, noise};
use crate::pair::{Pair, Side};
use crate::random::Random;
use crate::{MS, SECS, latency, link, lossy};

/// Messages of a stream before the wrap.
const BEFORE: u32 = 150;

/// The number of the first message, [`BEFORE`] messages before the wrap.
fn first() -> MsgNo {
    MsgNo::new(MsgNo::MAX.value() - BEFORE + 1)
}

/// The number of the message at this place in the stream.
fn number_at(place: u32) -> MsgNo {
    if place < BEFORE {
        MsgNo::new(first().value() + place)
    } else {
        MsgNo::new(place - BEFORE + 1)
    }
}

/// The configuration without encryption, and with each cipher.
fn ciphers(config: &Config) -> [Config; 3] {
    let secured = |mode| {
        let secured = config.clone().with_passphrase("correct horse").expect("a legal length");
        secured.with_crypto_mode(mode)
    };
    [config.clone(), secured(CryptoMode::Ctr), secured(CryptoMode::Gcm)]
}

/// Streams numbered messages both ways across the wrap, with a loss of one in twenty packets.
fn stream_across(seed: u64, config: &Config) -> Pair {
    let mut pair = Pair::symmetric(seed, lossy(0.05)).count_from(first());
    pair.connect(config.clone(), config.clone());
    let record = pair.record();
    for _ in 0..2 * BEFORE {
        assert!(pair.send_next(Side::Caller) && pair.send_next(Side::Listener));
        pair.run_for(MS(2));
    }
    pair.run_for(SECS(2));
    for side in [Side::Caller, Side::Listener] {
        pair.assert_complete(side);
        for (place, delivery) in (0..).zip(&pair.node(side.other()).received) {
            assert_eq!(delivery.message.msgno, number_at(place), "message {place}");
        }
        let statistics = pair.statistics(side);
        assert!(statistics.packets_receive_lost > 0);
        assert_eq!(statistics.packets_undecrypted + statistics.packets_ignored, 0);
        let headers = record.from(side).into_iter().filter_map(|(_, it)| data_header(&it));
        let controls = headers.filter(|header| header.msgno == MsgNo::CONTROL).count() as u64;
        let filter = statistics.packets_send_filter_extra;
        assert_eq!(controls, filter, "only parity packets have the number 0");
    }
    pair
}

#[test]
fn live_streams_continue_after_the_wrap_with_every_cipher() {
    for (seed, config) in (1..).zip(ciphers(&latency(600))) {
        stream_across(seed, &config);
    }
}

/// The number of a rebuilt packet follows from its neighbours; AES-GCM verifies it.
#[test]
fn rebuilt_packets_have_the_right_numbers_with_every_cipher() {
    let filtered = latency(600).with_packet_filter("fec,cols:5,rows:5,arq:onreq");
    for (seed, config) in (1..).zip(ciphers(&filtered.expect("a legal filter"))) {
        let mut pair = stream_across(seed, &config);
        assert!(pair.statistics(Side::Listener).packets_filter_supplied > 3);
    }
}

/// Sends messages of one to nine packets, and returns them.
fn send_messages(pair: &mut Pair, in_order: bool) -> Vec<Bytes> {
    let mut chance = Random(5);
    let mut sent = Vec::new();
    for _ in 0..2 * BEFORE {
        let size = 1 + chance.below(12_000) as usize;
        let message = Bytes::from(noise(&mut chance, size));
        let options = SendOptions { in_order, ..SendOptions::default() };
        pair.send(Side::Caller, message.clone(), options).expect("room");
        sent.push(message);
        pair.run_for(MS(5));
    }
    pair.close(Side::Caller);
    assert!(pair.run_while(SECS(300), |pair| pair.listener.closed().is_none()));
    sent
}

#[test]
fn messages_of_several_packets_are_complete_across_the_wrap() {
    let config = Config::file().with_transmission(Transmission::Messages);
    let [clear, ctr, _] = ciphers(&config);
    for (seed, config) in (1..).zip([clear, ctr]) {
        for in_order in [true, false] {
            let mut pair = Pair::symmetric(seed, lossy(0.02)).count_from(first());
            pair.connect(config.clone(), config.clone());
            let mut sent = send_messages(&mut pair, in_order);
            let received = pair.listener.received.iter();
            let mut received: Vec<Bytes> = received.map(|it| it.message.payload.clone()).collect();
            if !in_order {
                sent.sort();
                received.sort();
            }
            assert!(sent == received, "{} of {} messages", received.len(), sent.len());
            let last = pair.listener.received.iter().map(|it| it.message.msgno.value());
            assert!(last.min() == Some(1) && !sent.is_empty());
        }
    }
}

/// Dropped messages are announced by their message numbers.
#[test]
fn messages_that_expire_around_the_wrap_drop_no_others() {
    let config = Config::file().with_transmission(Transmission::Messages);
    let mut pair = Pair::symmetric(3, link()).count_from(first());
    pair.connect(config.clone(), config);
    let mut kept = Vec::new();
    for place in 0..2 * BEFORE {
        let message = Bytes::from(noise(&mut Random(u64::from(place)), 4_000));
        let expires = place % 3 == 1;
        if place == BEFORE - 20 {
            pair.black_out(&[Side::Caller], MS(1));
            pair.set_link(Side::Caller, lossy(0.9));
        }
        if place == BEFORE + 20 {
            pair.run_for(MS(200));
            pair.set_link(Side::Caller, link());
        }
        let ttl = expires.then_some(MS(100));
        let options = SendOptions { ttl, in_order: true, ..SendOptions::default() };
        pair.send(Side::Caller, message.clone(), options).expect("room");
        if !expires {
            kept.push(message);
        }
        pair.run_for(MS(2));
    }
    pair.close(Side::Caller);
    assert!(pair.run_while(SECS(300), |pair| pair.listener.closed().is_none()));
    let received: Vec<&Bytes> =
        pair.listener.received.iter().map(|it| &it.message.payload).collect();
    let missing = kept.iter().filter(|message| !received.contains(message)).count();
    assert_eq!(missing, 0, "messages without a time to live");
    assert!(pair.statistics(Side::Caller).packets_send_dropped > 0, "some expire");
}

#[test]
fn groups_of_every_kind_continue_after_the_wrap() {
    for kind in [GroupKind::Broadcast, GroupKind::Backup, GroupKind::Balance] {
        for (seed, config) in (1..).zip(ciphers(&latency(400))) {
            let paths = [lossy(0.03), lossy(0.03).with_delay(MS(20))];
            let mut bond = TestBond::new(seed, kind, &config, &paths).count_from(first());
            bond.connect(&[10, 5]);
            bond.stream(Side::Caller, BEFORE - 40, MS(2));
            // The best link fails shortly before the wrap, and recovers after it.
            bond.cut(0);
            bond.stream(Side::Caller, 200, MS(2));
            bond.set_path(0, &lossy(0.03));
            bond.stream(Side::Caller, 300, MS(2));
            bond.run_for(SECS(1));
            bond.assert_complete(Side::Caller);
            let numbers = bond.listener.received.iter().map(|(_, message)| message.msgno);
            for (place, number) in (0..).zip(numbers) {
                assert_eq!(number, number_at(place), "{kind:?}, message {place}");
            }
        }
    }
}
