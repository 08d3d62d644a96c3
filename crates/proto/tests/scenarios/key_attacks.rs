//! Malicious key messages: of every wrong length, with every bit changed, at the wrong time, for
//! another cipher or key length. None of them removes or introduces a key, or makes an encrypting
//! end send an unencrypted packet.

use std::cell::RefCell;
use std::rc::Rc;

use punctual_crypto::{
    CipherMode, Kek, KeyLength, KeyMessage, KeySet, Parity, Passphrase, Salt, StreamKey,
};
use punctual_proto::KeyState;
use punctual_wire::{Control, Extension, Timestamp};

use crate::datagram::{control, data_header, edit_handshake, forged, is_data};
use crate::encryption::secured;
use crate::key_refresh::{KMREQ, KMRSP, key_message, refreshing};
use crate::pair::{Pair, Side};
use crate::{MS, SECS, latency, link};

const SECRET: &str = "correct horse";

/// A key message in the handshake: the caller's key, its return, or the listener's own key.
#[derive(Clone, Copy, Debug)]
enum Place {
    Offer,
    Return,
    Own,
}

/// Calls while an attacker changes one of the key messages. Returns the pair and the number of
/// changed messages.
fn call_with(place: Place, change: impl Fn(&mut Vec<u8>) + 'static) -> (Pair, usize) {
    let mut pair = Pair::symmetric(1, link());
    let changed = Rc::new(RefCell::new(0));
    let count = Rc::clone(&changed);
    pair.tap(move |_, side, datagram| {
        vec![edit_handshake(datagram, |handshake| {
            for extension in &mut handshake.extensions {
                let body = match (place, side, extension) {
                    (Place::Offer, Side::Caller, Extension::KmReq(body))
                    | (Place::Return, Side::Listener, Extension::KmRsp(body))
                    | (Place::Own, Side::Listener, Extension::KmReq(body)) => body,
                    _ => continue,
                };
                change(body);
                *count.borrow_mut() += 1;
            }
        })]
    });
    pair.call(secured(Some(SECRET), true), secured(Some(SECRET), true));
    pair.run_for(MS(600));
    let changed = *changed.borrow();
    (pair, changed)
}

#[test]
fn a_handshake_with_a_key_message_of_a_wrong_length_fails() {
    for place in [Place::Offer, Place::Return, Place::Own] {
        for words in (0..=40).filter(|words| *words != MESSAGE_LEN / 4) {
            let (pair, changed) = call_with(place, move |body| {
                assert_eq!(body.len(), MESSAGE_LEN);
                body.resize(4 * words, 0);
            });
            assert!(changed > 0, "{place:?}, {words} words");
            assert!(!pair.caller.connected, "{place:?}, {words} words");
            assert!(pair.caller.closed().is_some(), "{place:?}, {words} words");
        }
    }
}

#[test]
fn a_handshake_with_one_changed_bit_in_a_key_message_fails() {
    for place in [Place::Offer, Place::Return, Place::Own] {
        for bit in 0..8 * MESSAGE_LEN {
            let (pair, changed) = call_with(place, move |body| body[bit / 8] ^= 1 << (bit % 8));
            assert!(changed > 0, "{place:?}, bit {bit}");
            assert!(!pair.caller.connected, "{place:?}, bit {bit}");
            assert!(pair.caller.closed().is_some(), "{place:?}, bit {bit}");
        }
    }
}

/// An attacker withholds the message of a new key, and sends it with each of its bits changed and
/// in every length, to the receiver, and to the sender as an answer.
#[test]
fn a_changed_key_message_after_the_handshake_introduces_no_key() {
    let mut pair = Pair::symmetric(1, link());
    pair.connect(refreshing(100, 20), refreshing(100, 20));
    let held = Rc::new(RefCell::new(Vec::new()));
    let hold = Rc::clone(&held);
    pair.drop_where(move |side, datagram| {
        let message = key_message(datagram, KMREQ).filter(|_| side == Side::Caller);
        let hit = message.is_some();
        hold.borrow_mut().extend(message);
        hit
    });
    pair.stream(Side::Caller, 150, MS(2));
    let message = held.borrow()[0].clone();
    assert_eq!(message.len(), 72);
    let mut bodies: Vec<Vec<u8>> = Vec::new();
    for bit in 0..8 * message.len() {
        let mut changed = message.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        bodies.push(changed);
    }
    for len in (0..160).filter(|len| *len != message.len()) {
        let mut changed = message.clone();
        changed.resize(len, 0);
        bodies.push(changed);
    }
    let (caller, listener) = (pair.caller.address, pair.listener.address);
    let target = pair.info(Side::Listener).socket_id;
    let back = pair.info(Side::Caller).socket_id;
    for body in &bodies {
        let packet = |dest, command| {
            forged(dest, Timestamp::default(), Control::Extension { command, body })
        };
        pair.inject(Side::Listener, caller, packet(target, KMREQ));
        pair.inject(Side::Caller, listener, packet(back, KMRSP));
        for side in [Side::Caller, Side::Listener] {
            let info = pair.info(side);
            let states = (info.send_key_state, info.receive_key_state);
            assert_eq!(states, (KeyState::Secured, KeyState::Secured));
        }
    }
    // The old key stays in use until the message of the new one gets through.
    pair.stream(Side::Caller, 100, MS(2));
    assert_eq!(pair.statistics(Side::Caller).key_refreshes, 0);
    pair.untap();
    pair.stream(Side::Caller, 500, MS(5));
    pair.run_for(SECS(1));
    pair.assert_complete(Side::Caller);
    assert_eq!(pair.statistics(Side::Listener).packets_undecrypted, 0);
    assert!(pair.statistics(Side::Caller).key_refreshes > 1);
}

/// Valid key messages by an attacker who knows the passphrase, but not the terms of this
/// connection.
#[test]
fn after_the_handshake_neither_cipher_nor_key_length_nor_salt_changes() {
    let mut pair = Pair::symmetric(1, link());
    let record = pair.record();
    pair.connect(secured(Some(SECRET), true), secured(Some(SECRET), true));
    let agreed = KeyMessage::parse(&offered(&record)).expect("the caller's");
    let before = pair.info(Side::Listener).cipher;
    let target = pair.info(Side::Listener).socket_id;
    let remote = pair.caller.address;
    let mut other_salt = *agreed.salt();
    other_salt[0] ^= 1;
    for (mode, length, salt) in [
        (CipherMode::Gcm, KeyLength::Aes128, *agreed.salt()),
        (CipherMode::Ctr, KeyLength::Aes192, *agreed.salt()),
        (CipherMode::Ctr, KeyLength::Aes256, *agreed.salt()),
        (CipherMode::Ctr, KeyLength::Aes128, other_salt),
    ] {
        for parity in [Parity::Even, Parity::Odd] {
            let body = made(mode, length, salt, parity);
            let control = Control::Extension { command: KMREQ, body: &body };
            pair.inject(Side::Listener, remote, forged(target, Timestamp::default(), control));
        }
    }
    assert_eq!(pair.statistics(Side::Listener).packets_ignored, 8);
    pair.stream(Side::Caller, 200, MS(2));
    pair.run_for(MS(500));
    pair.assert_complete(Side::Caller);
    assert_eq!(pair.info(Side::Listener).cipher, before);
    assert_eq!(pair.statistics(Side::Listener).packets_undecrypted, 0);
}

/// An unencrypted connection ignores all key messages.
#[test]
fn an_unencrypted_connection_ignores_key_messages() {
    let mut pair = Pair::symmetric(1, link());
    pair.connect(latency(120), latency(120));
    let record = pair.record();
    let target = pair.info(Side::Listener).socket_id;
    let remote = pair.caller.address;
    let message = made(CipherMode::Ctr, KeyLength::Aes128, [7; 16], Parity::Even);
    for (command, body) in
        [(KMREQ, &message[..]), (KMRSP, &message), (KMRSP, &[3, 0, 0, 0]), (KMREQ, &[])]
    {
        let control = Control::Extension { command, body };
        pair.inject(Side::Listener, remote, forged(target, Timestamp::default(), control));
    }
    pair.stream(Side::Caller, 100, MS(2));
    pair.stream(Side::Listener, 100, MS(2));
    pair.run_for(MS(500));
    pair.assert_complete(Side::Caller);
    pair.assert_complete(Side::Listener);
    assert_eq!(pair.statistics(Side::Listener).packets_ignored, 4);
    assert_eq!(pair.info(Side::Listener).send_key_state, KeyState::Unsecured);
    let answered = record.from(Side::Listener);
    let has_answered =
        answered.iter().any(|(_, one)| matches!(control(one), Some(Control::Extension { .. })));
    assert!(!has_answered, "it does not answer");
}

/// libsrt sends its key message to an accepted peer without a passphrase. Our end answers with an
/// error state, which is shorter than the message, and continues unencrypted.
#[test]
fn an_end_without_a_passphrase_answers_a_key_message_with_its_state() {
    let mut pair = Pair::symmetric(1, link());
    pair.connect(secured(None, false), secured(Some(SECRET), false));
    let record = pair.record();
    let target = pair.info(Side::Caller).socket_id;
    let remote = pair.listener.address;
    let message = made(CipherMode::Ctr, KeyLength::Aes128, [7; 16], Parity::Even);
    let control = Control::Extension { command: KMREQ, body: &message };
    pair.inject(Side::Caller, remote, forged(target, Timestamp::default(), control));
    pair.stream(Side::Caller, 50, MS(2));
    pair.stream(Side::Listener, 50, MS(2));
    pair.run_for(MS(500));
    let sent = record.from(Side::Caller);
    let answers: Vec<_> = sent.iter().filter_map(|(_, one)| key_message(one, KMRSP)).collect();
    assert_eq!(answers, [[3, 0, 0, 0]]);
    pair.assert_complete(Side::Caller);
    let flags = |side| {
        let all = record.from(side).into_iter().filter(|(_, one)| is_data(one));
        all.map(|(_, one)| data_header(&one).expect("data").key).collect::<Vec<_>>()
    };
    use punctual_wire::KeyFlag::{Clear, Even};
    assert!(flags(Side::Caller).iter().all(|flag| *flag == Clear));
    assert!(flags(Side::Listener).iter().all(|flag| *flag == Even), "it has a passphrase");
    assert_eq!(pair.statistics(Side::Caller).packets_undecrypted, 50);
}

/// The key message in the caller's conclusion.
fn offered(record: &crate::record::Record) -> Vec<u8> {
    let conclusions = record.handshakes(Side::Caller).into_iter();
    let mut offers = conclusions.flat_map(|(_, handshake, _)| handshake.extensions);
    let offer =
        offers.find_map(|one| if let Extension::KmReq(body) = one { Some(body) } else { None });
    offer.expect("an encrypted call has one")
}

/// A key message by an attacker who knows the passphrase.
fn made(mode: CipherMode, length: KeyLength, salt: Salt, parity: Parity) -> Vec<u8> {
    let passphrase = Passphrase::new(SECRET).expect("a legal length");
    let kek = Kek::derive(&passphrase, &salt, length);
    let key = StreamKey::generate(length, |bytes| bytes.fill(9));
    let keys = KeySet::one(parity, key);
    KeyMessage::wrap(mode, salt, &keys, &kek).expect("one length").to_bytes()
}

/// Bytes of a key message with one key of 16 bytes.
const MESSAGE_LEN: usize = 56;
