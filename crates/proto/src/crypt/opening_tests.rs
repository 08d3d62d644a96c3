use punctual_crypto::{CipherMode, GcmLayout, Kek, KeyLength, Passphrase, StreamKey};
use punctual_wire::{MsgNo, Position, SeqNo, SocketId, Timestamp};

use super::*;

fn suite() -> Suite {
    let salt = [7; 16];
    let passphrase = Passphrase::new("correct horse").expect("a legal length");
    let kek = Kek::derive(&passphrase, &salt, KeyLength::Aes128);
    Suite { mode: CipherMode::Ctr, layout: GcmLayout::Current, salt, kek }
}

fn keys(parity: Parity, byte: u8) -> KeySet {
    KeySet::one(parity, StreamKey::generate(KeyLength::Aes128, |bytes| bytes.fill(byte)))
}

fn message(keys: &KeySet) -> KeyMessage {
    let suite = suite();
    KeyMessage::wrap(suite.mode, suite.salt, keys, &suite.kek).expect("one length")
}

fn opening() -> Opening {
    let keys = keys(Parity::Even, 1);
    Opening::new(suite(), &keys, message(&keys))
}

const HEADER: DataHeader = DataHeader {
    seq: SeqNo::new(5),
    position: Position::Solo,
    in_order: false,
    key: KeyFlag::Even,
    retransmitted: false,
    msgno: MsgNo::FIRST,
    timestamp: Timestamp::from_micros(0),
    dest: SocketId::new(1),
};

/// The body of a packet with `HEADER` under the even key.
fn sealed(payload: &[u8]) -> Bytes {
    let mut packet = [&HEADER.to_bytes()[..], payload].concat();
    let keys = keys(Parity::Even, 1);
    let key = keys.get(Parity::Even).expect("the even one");
    suite().cipher(key).seal(&mut packet, 0);
    Bytes::from(packet).slice(DataHeader::LEN..)
}

#[test]
fn a_payload_is_decrypted_where_it_lies_unless_somebody_else_holds_it() {
    let alone = sealed(b"payload");
    let place = alone.as_ptr();
    let opened = opening().open(&HEADER, alone).expect("the right key");
    assert_eq!((&opened[..], opened.as_ptr()), (&b"payload"[..], place));
    let shared = sealed(b"payload");
    let before = shared.clone();
    assert_eq!(opening().open(&HEADER, shared).expect("the right key"), "payload");
    assert_eq!(before, sealed(b"payload"), "what another holds is not touched");
}

#[test]
fn an_unreadable_packet_is_refused_with_the_reason() {
    let open = |key, opening: &Opening| {
        opening.open(&DataHeader { key, ..HEADER }, sealed(b"payload")).err()
    };
    let secured = opening();
    assert_eq!(open(KeyFlag::Odd, &secured), Some(Refusal::NotReadable));
    assert_eq!(open(KeyFlag::Clear, &secured), Some(Refusal::NotReadable));
    let clear = Opening::clear(KeyState::NoSecret);
    assert_eq!(open(KeyFlag::Even, &clear), Some(Refusal::NoKeys));
    assert_eq!(open(KeyFlag::Clear, &clear), None);
}

#[test]
fn a_key_message_is_obeyed_once_and_only_if_all_of_it_is_right() {
    let mut opening = opening();
    let new = message(&keys(Parity::Odd, 2)).to_bytes();
    assert_eq!(opening.handle_request(&new), Some(new.clone()));
    assert_eq!(opening.handle_request(&new), Some(new.clone()), "a repetition");
    // Another parity or another salt with the same keys: nothing authenticates them.
    for (at, to) in [(3, 1), (16, 0), (31, 0)] {
        let mut changed = new.clone();
        changed[at] = to;
        assert_eq!(opening.handle_request(&changed), None, "byte {at}");
    }
    let mut broken = new.clone();
    broken[40] ^= 1;
    assert_eq!(opening.handle_request(&broken), Some(vec![4, 0, 0, 0]));
    let mut gcm = new;
    (gcm[8], gcm[9]) = (4, 1);
    assert_eq!(opening.handle_request(&gcm), Some(vec![5, 0, 0, 0]));
    assert_eq!(opening.state, KeyState::Secured);
    assert_eq!(opening.open(&HEADER, sealed(b"payload")).expect("as before"), "payload");
}

#[test]
fn an_end_without_keys_says_why_and_takes_none() {
    for (state, said) in [(KeyState::NoSecret, 3), (KeyState::BadSecret, 4)] {
        let mut opening = Opening::clear(state);
        let message = message(&keys(Parity::Odd, 2)).to_bytes();
        assert_eq!(opening.handle_request(&message), Some(vec![said, 0, 0, 0]));
        assert_eq!(opening.handle_request(&message[..50]), None);
        assert_eq!(opening.state, state);
    }
}
