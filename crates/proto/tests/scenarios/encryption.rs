//! Encryption from the handshake on: which callers are accepted, the key states of both ends, and
//! the packets on the wire.

use std::cell::RefCell;
use std::rc::Rc;

use punctual_netem::Loss;
use punctual_proto::{
    AcceptError, BufferSize, CipherMode, CloseReason, Config, CryptoMode, KeyLength, KeyState,
    RejectReason,
};
use punctual_wire::{Extension, HandshakeRequest, HsFlags, KeyFlag};

use crate::datagram::{data_header, edit_handshake, handshake, is_data};
use crate::node::numbered;
use crate::pair::{Pair, Side};
use crate::{MS, SECS, latency, link, lossy};

const SECRET: &str = "correct horse";
const OTHER: &str = "battery staple";

/// The options of an end with this passphrase, if any, and with or without enforced encryption.
pub fn secured(passphrase: Option<&str>, enforced: bool) -> Config {
    let config = latency(120).with_enforced_encryption(enforced);
    config.with_passphrase(passphrase.unwrap_or_default()).expect("a legal length")
}

fn strict(passphrase: &str) -> Config {
    secured(Some(passphrase), true)
}

fn states(pair: &mut Pair, side: Side) -> (KeyState, KeyState) {
    let info = pair.info(side);
    (info.send_key_state, info.receive_key_state)
}

/// Calls and runs for a second.
fn call(caller: Config, listener: Config) -> Pair {
    let mut pair = Pair::symmetric(1, link());
    pair.call(caller, listener);
    pair.run_for(SECS(1));
    pair
}

#[test]
fn encrypted_streams_are_complete_with_every_key_length_and_cipher() {
    for length in [KeyLength::Aes128, KeyLength::Aes192, KeyLength::Aes256] {
        for (mode, cipher) in
            [(CryptoMode::Ctr, CipherMode::Ctr), (CryptoMode::Gcm, CipherMode::Gcm)]
        {
            let mut pair = Pair::symmetric(7, lossy(0.05));
            let config = strict(SECRET).with_latency(MS(300)).expect("in range");
            let caller = config.clone().with_key_length(Some(length)).with_crypto_mode(mode);
            pair.connect(caller, config);
            for _ in 0..500 {
                assert!(pair.send_next(Side::Caller) && pair.send_next(Side::Listener));
                pair.run_for(MS(2));
            }
            pair.run_for(SECS(1));
            for side in [Side::Caller, Side::Listener] {
                pair.assert_complete(side);
                assert_eq!(states(&mut pair, side), (KeyState::Secured, KeyState::Secured));
                assert_eq!(pair.info(side).cipher, Some((cipher, length)), "adopted");
                let statistics = pair.statistics(side);
                assert_eq!((statistics.packets_undecrypted, statistics.packets_ignored), (0, 0));
                assert!(statistics.packets_received_retransmitted > 0);
            }
        }
    }
}

#[test]
fn no_payload_is_readable_on_the_wire() {
    for mode in [CryptoMode::Ctr, CryptoMode::Gcm] {
        let mut pair = Pair::symmetric(1, link());
        pair.connect(strict(SECRET).with_crypto_mode(mode), strict(SECRET));
        let record = pair.record();
        pair.stream(Side::Caller, 20, MS(2));
        pair.run_for(MS(300));
        pair.assert_complete(Side::Caller);
        let sent = record.from(Side::Caller);
        let sent: Vec<_> = sent.iter().filter(|(_, datagram)| is_data(datagram)).collect();
        assert_eq!(sent.len(), 20);
        let tag = if mode == CryptoMode::Gcm { 16 } else { 0 };
        for (i, (_, datagram)) in (0..).zip(&sent) {
            assert_eq!(data_header(datagram).expect("data").key, KeyFlag::Even);
            assert_eq!(datagram.len(), 16 + 1_316 + tag);
            let clear = numbered(i);
            let same = datagram[16..].iter().zip(&clear).filter(|(a, b)| a == b).count();
            assert!(same < 40, "{same} bytes of 1316 alike");
        }
    }
}

#[test]
fn a_retransmission_equals_the_original_but_for_its_flag() {
    for mode in [CryptoMode::Ctr, CryptoMode::Gcm] {
        let mut pair = Pair::symmetric(1, link());
        pair.connect(strict(SECRET).with_crypto_mode(mode), strict(SECRET));
        let seen = Rc::new(RefCell::new(Vec::<Vec<u8>>::new()));
        let keep = Rc::clone(&seen);
        // Every fifth original is lost.
        pair.drop_where(move |side, datagram| {
            let Some(header) = data_header(datagram).filter(|_| side == Side::Caller) else {
                return false;
            };
            keep.borrow_mut().push(datagram.to_vec());
            !header.retransmitted && header.seq.value() % 5 == 0
        });
        pair.stream(Side::Caller, 100, MS(2));
        pair.run_for(MS(500));
        pair.assert_complete(Side::Caller);
        let seen = seen.borrow();
        let (again, first): (Vec<_>, Vec<_>) =
            seen.iter().partition(|datagram| data_header(datagram).expect("data").retransmitted);
        assert!(again.len() >= 20);
        for datagram in again {
            let original = first.iter().find(|first| first[..4] == datagram[..4]).expect("sent");
            assert_eq!(original[16..], datagram[16..]);
            let mut header = datagram[..16].to_vec();
            header[4] &= !4;
            assert_eq!(original[..16], header, "except for the flag");
        }
    }
}

/// A table of passphrases, enforcement and results.
#[test]
fn passphrases_and_enforcement_decide_which_callers_are_accepted() {
    use KeyState::{BadSecret, NoSecret, Secured, Unsecured};
    let (secret, other) = (Some(SECRET), Some(OTHER));
    let rejected = |reason| Some(CloseReason::Rejected(reason));
    let refused = |reason| Some(CloseReason::Incompatible(reason));
    let (unsecure, bad) = (RejectReason::UNSECURE, RejectReason::BAD_SECRET);
    // The passphrases of caller and listener, their enforcement, the reason why the call ends, and,
    // if it succeeds, the key states: the caller's for sending and receiving, then the listener's.
    let rows = [
        ((None, None), (true, true), None, [Unsecured; 4]),
        ((secret, secret), (true, true), None, [Secured; 4]),
        ((secret, secret), (false, false), None, [Secured; 4]),
        ((secret, None), (true, true), rejected(unsecure), [Unsecured; 4]),
        ((secret, None), (false, true), rejected(unsecure), [Unsecured; 4]),
        ((secret, None), (true, false), refused(unsecure), [Unsecured; 4]),
        ((secret, None), (false, false), None, [NoSecret, Unsecured, Unsecured, NoSecret]),
        ((None, secret), (true, true), rejected(unsecure), [Unsecured; 4]),
        ((None, secret), (false, true), rejected(unsecure), [Unsecured; 4]),
        ((None, secret), (true, false), refused(unsecure), [Unsecured; 4]),
        ((None, secret), (false, false), None, [Unsecured, NoSecret, NoSecret, Unsecured]),
        ((secret, other), (true, true), rejected(bad), [Unsecured; 4]),
        ((secret, other), (false, true), rejected(bad), [Unsecured; 4]),
        ((secret, other), (true, false), refused(bad), [Unsecured; 4]),
        ((secret, other), (false, false), None, [BadSecret; 4]),
    ];
    for (row, (secrets, enforced, closed, expected)) in rows.into_iter().enumerate() {
        let caller = secured(secrets.0, enforced.0);
        let listener = secured(secrets.1, enforced.1);
        let mut pair = call(caller, listener);
        assert_eq!(pair.caller.closed(), closed.as_ref(), "row {row}");
        if closed.is_none() {
            assert!(pair.caller.connected, "row {row}");
            let (caller, listener) =
                (states(&mut pair, Side::Caller), states(&mut pair, Side::Listener));
            let found = [caller.0, caller.1, listener.0, listener.1];
            assert_eq!(found, expected, "row {row}");
        }
    }
}

#[test]
fn without_enforcement_undecryptable_packets_are_counted() {
    // The passphrases, and whether the packets of the caller and those of the listener can be
    // decrypted.
    let rows = [
        ((Some(SECRET), None), (false, true)),
        ((None, Some(SECRET)), (true, false)),
        ((Some(SECRET), Some(OTHER)), (false, false)),
    ];
    for (secrets, readable) in rows {
        let mut pair = Pair::symmetric(1, link());
        pair.connect(secured(secrets.0, false), secured(secrets.1, false));
        for _ in 0..200 {
            assert!(pair.send_next(Side::Caller) && pair.send_next(Side::Listener));
            pair.run_for(MS(5));
        }
        pair.run_for(MS(500));
        for (side, readable) in [(Side::Caller, readable.0), (Side::Listener, readable.1)] {
            let sender = pair.statistics(side);
            let receiver = pair.statistics(side.other());
            if readable {
                pair.assert_complete(side);
                assert_eq!(receiver.packets_undecrypted, 0);
            } else {
                assert!(pair.delivered(side).is_empty());
                assert_eq!(receiver.packets_undecrypted, 200);
                assert_eq!(receiver.bytes_undecrypted, 200 * 1_316);
                assert_eq!(receiver.packets_receive_dropped, 200);
            }
            assert_eq!(sender.flight_size, 0, "acknowledged, decrypted or not");
            assert_eq!((sender.packets_retransmitted, sender.packets_send_dropped), (0, 0));
        }
    }
}

/// A receiver that cannot decrypt follows the sender after an outage like any other. It once
/// stopped acknowledging after a gap of 64 packets, and the sender kept all later packets.
#[test]
fn an_outage_does_not_stop_an_undecryptable_stream() {
    for too_late_drop in [true, false] {
        for outage in [70, 600] {
            let config = |secret| {
                let config = secured(Some(secret), false).with_too_late_drop(too_late_drop);
                config.with_receive_buffer(BufferSize::Packets(512))
            };
            let mut pair = Pair::symmetric(1, link());
            pair.connect(config(SECRET), config(OTHER));
            pair.stream(Side::Caller, 100, MS(5));
            let all = link().with_loss(Loss::All).expect("no share in it");
            pair.set_link(Side::Caller, all);
            pair.stream(Side::Caller, outage, MS(5));
            pair.set_link(Side::Caller, link());
            pair.stream(Side::Caller, 400, MS(5));
            pair.run_for(SECS(2));
            let sender = pair.statistics(Side::Caller);
            assert_eq!((sender.flight_size, sender.send_buffer_packets), (0, 0), "{outage}");
            assert!(pair.delivered(Side::Caller).is_empty());
        }
    }
}

#[test]
fn a_rebuilt_packet_that_cannot_be_decrypted_does_not_count_as_received() {
    let config = |secret| {
        let config = secured(Some(secret), false).with_packet_filter("fec,cols:5,arq:never");
        config.expect("a filter")
    };
    let mut pair = Pair::symmetric(1, lossy(0.1));
    pair.connect(config(SECRET), config(OTHER));
    pair.stream(Side::Caller, 1_000, MS(5));
    pair.run_for(SECS(1));
    let (sender, receiver) = (pair.statistics(Side::Caller), pair.statistics(Side::Listener));
    assert!(receiver.packets_filter_supplied > 40, "{}", receiver.packets_filter_supplied);
    assert!(receiver.packets_received <= sender.packets_sent - 90);
}

#[test]
fn incompatible_ciphers_are_refused_with_1017() {
    for enforced in [true, false] {
        let config = |mode| secured(Some(SECRET), enforced).with_crypto_mode(mode);
        for (caller, listener, fits) in [
            (CryptoMode::Auto, CryptoMode::Gcm, false),
            (CryptoMode::Ctr, CryptoMode::Gcm, false),
            (CryptoMode::Gcm, CryptoMode::Ctr, false),
            (CryptoMode::Gcm, CryptoMode::Auto, true),
            (CryptoMode::Auto, CryptoMode::Ctr, true),
        ] {
            let pair = call(config(caller), config(listener));
            let refused = CloseReason::Rejected(RejectReason::CRYPTO);
            assert_eq!(pair.caller.closed(), (!fits).then_some(&refused));
        }
    }
}

#[test]
fn the_key_length_of_the_listener_takes_precedence() {
    use KeyLength::{Aes128, Aes192, Aes256};
    for (caller, listener, agreed) in [
        (None, None, Aes128),
        (Some(Aes256), None, Aes256),
        (None, Some(Aes192), Aes192),
        (Some(Aes128), Some(Aes256), Aes256),
    ] {
        let mut pair = Pair::symmetric(1, link());
        let record = pair.record();
        pair.connect(
            strict(SECRET).with_key_length(caller),
            strict(SECRET).with_key_length(listener),
        );
        for side in [Side::Caller, Side::Listener] {
            assert_eq!(pair.info(side).cipher, Some((CipherMode::Ctr, agreed)));
            let (_, conclusion, _) = record.handshakes(side).pop().expect("a conclusion");
            assert_eq!(conclusion.encryption, agreed.field(), "some peers require that it agrees");
        }
        let (_, induction, _) = record.handshakes(Side::Listener).remove(0);
        assert_eq!(induction.encryption, listener.map_or(0, KeyLength::field));
    }
}

#[test]
fn each_caller_can_be_accepted_with_its_own_passphrase() {
    let mut pair = Pair::symmetric(1, link());
    pair.accepts = false;
    // The listener's own options have no passphrase.
    pair.call(strict(SECRET), latency(120));
    pair.run_for(MS(100));
    let incoming = pair.listener.incoming.pop_front().expect("waits");
    assert!(incoming.encrypted);
    let id = pair.listener.endpoint.accept(pair.now, incoming.id, Some(strict(SECRET)));
    pair.listener.connection = Some(id.expect("the right one"));
    pair.run_for(MS(100));
    pair.stream(Side::Caller, 50, MS(2));
    pair.run_for(MS(300));
    pair.assert_complete(Side::Caller);

    for (passphrase, reason) in
        [(Some(OTHER), RejectReason::BAD_SECRET), (None, RejectReason::UNSECURE)]
    {
        let mut pair = Pair::symmetric(1, link());
        pair.accepts = false;
        pair.call(strict(SECRET), latency(120));
        pair.run_for(MS(100));
        let incoming = pair.listener.incoming.pop_front().expect("waits");
        let config = secured(passphrase, true);
        let refused = pair.listener.endpoint.accept(pair.now, incoming.id, Some(config));
        assert_eq!(refused, Err(AcceptError::Incompatible(reason)));
        pair.run_for(MS(100));
        assert_eq!(pair.caller.closed(), Some(&CloseReason::Rejected(reason)));
    }
}

#[test]
fn each_direction_has_its_own_key_if_both_ends_support_it() {
    // Both ends send the same payloads with the same numbers. The result is the largest number of
    // equal bytes in two packets.
    let same_bytes = |edit: fn(&mut HsFlags)| {
        let mut pair = Pair::symmetric(1, link());
        pair.tap(move |_, _, datagram| {
            vec![edit_handshake(datagram, |handshake| {
                for extension in &mut handshake.extensions {
                    if let Extension::HsReq(hs) | Extension::HsRsp(hs) = extension {
                        edit(&mut hs.flags);
                    }
                }
            })]
        });
        pair.connect(strict(SECRET), strict(SECRET));
        let record = pair.record();
        for _ in 0..20 {
            assert!(pair.send_next(Side::Caller) && pair.send_next(Side::Listener));
            pair.run_for(MS(5));
        }
        pair.run_for(MS(300));
        pair.assert_complete(Side::Caller);
        pair.assert_complete(Side::Listener);
        let data = |side| {
            let all = record.from(side);
            all.into_iter().filter(|(_, datagram)| is_data(datagram)).map(|(_, datagram)| datagram)
        };
        data(Side::Caller)
            .zip(data(Side::Listener))
            .map(|(one, two)| {
                assert_eq!(one[..4], two[..4], "both count from the same number");
                one[16..].iter().zip(&two[16..]).filter(|(one, two)| one == two).count()
            })
            .max()
            .expect("packets")
    };
    assert!(same_bytes(|_| {}) < 40);
    // A peer like libsrt: one key, one keystream.
    let without = |flags: &mut HsFlags| {
        *flags = HsFlags::from_bits(flags.bits() & !HsFlags::OWN_KEYS.bits());
    };
    assert_eq!(same_bytes(without), 1_316);
}

#[test]
fn own_keys_are_not_announced_without_a_passphrase() {
    let mut pair = Pair::symmetric(1, link());
    let record = pair.record();
    pair.connect(latency(120), latency(120));
    for side in [Side::Caller, Side::Listener] {
        for (_, handshake, _) in record.handshakes(side) {
            for extension in &handshake.extensions {
                let (Extension::HsReq(hs) | Extension::HsRsp(hs)) = extension else {
                    panic!("{extension:?}")
                };
                assert!(!hs.flags.contains(HsFlags::OWN_KEYS));
            }
        }
    }
}

#[test]
fn lost_and_repeated_handshakes_result_in_the_same_keys() {
    for seed in 0..40 {
        let mut pair = Pair::symmetric(seed, lossy(0.4));
        pair.call(strict(SECRET), strict(SECRET));
        pair.run_while(SECS(3), |pair| !pair.caller.connected && pair.caller.closed().is_none());
        if !pair.caller.connected {
            continue;
        }
        pair.set_link(Side::Caller, link());
        pair.set_link(Side::Listener, link());
        pair.run_for(MS(50));
        for _ in 0..50 {
            assert!(pair.send_next(Side::Caller) && pair.send_next(Side::Listener));
            pair.run_for(MS(2));
        }
        pair.run_for(MS(500));
        pair.assert_complete(Side::Caller);
        pair.assert_complete(Side::Listener);
    }
}

#[test]
fn a_malformed_key_message_makes_the_handshake_malformed() {
    for cut in 1..14 {
        for enforced in [true, false] {
            let mut pair = Pair::symmetric(1, link());
            pair.tap(move |_, side, datagram| {
                vec![edit_handshake(datagram, |handshake| {
                    for extension in &mut handshake.extensions {
                        if let Extension::KmReq(message) = extension
                            && side == Side::Caller
                        {
                            message.truncate(message.len() - 4 * cut);
                        }
                    }
                })]
            });
            pair.call(secured(Some(SECRET), enforced), secured(Some(SECRET), enforced));
            pair.run_for(SECS(1));
            let refused = CloseReason::Rejected(RejectReason::ROGUE);
            assert_eq!(pair.caller.closed(), Some(&refused));
        }
    }
}

/// An attacker who changes the answer gets no unencrypted packet from a caller with enforced
/// encryption.
#[test]
fn an_answer_that_was_changed_is_refused() {
    type Edit = fn(&mut Vec<Extension>);
    let edits: [Edit; 4] = [
        |all| all.retain(|one| !matches!(one, Extension::KmRsp(_))),
        |all| {
            all.iter_mut().for_each(|one| {
                if let Extension::KmRsp(body) = one {
                    *body = vec![0; 4];
                }
            });
        },
        |all| {
            all.iter_mut().for_each(|one| {
                if let Extension::KmRsp(body) = one {
                    body[20] ^= 1;
                }
            });
        },
        |all| {
            all.iter_mut().for_each(|one| {
                if let Extension::KmReq(body) = one {
                    body[50] ^= 1;
                }
            });
        },
    ];
    for edit in edits {
        let mut pair = Pair::symmetric(1, link());
        pair.tap(move |_, side, datagram| {
            vec![edit_handshake(datagram, |handshake| {
                if side == Side::Listener {
                    edit(&mut handshake.extensions);
                }
            })]
        });
        pair.call(strict(SECRET), strict(SECRET));
        pair.run_for(SECS(1));
        assert!(!pair.caller.connected);
        assert!(matches!(pair.caller.closed(), Some(CloseReason::Incompatible(_))));
    }
}

#[test]
fn payloads_leave_room_for_the_tag() {
    let big = || strict(SECRET).with_payload_size(1_456).expect("in range");
    let mut pair = Pair::symmetric(1, link());
    pair.connect(big().with_crypto_mode(CryptoMode::Gcm), big());
    assert_eq!(pair.info(Side::Caller).max_payload, 1_440);
    assert_eq!(pair.info(Side::Listener).max_payload, 1_440);
    let mut pair = Pair::symmetric(1, link());
    pair.connect(big(), big());
    assert_eq!(pair.info(Side::Caller).max_payload, 1_456);
}

#[test]
fn unencrypted_or_changed_packets_are_refused() {
    for mode in [CryptoMode::Ctr, CryptoMode::Gcm] {
        let mut pair = Pair::symmetric(1, link());
        pair.connect(strict(SECRET).with_crypto_mode(mode), strict(SECRET));
        // Before each packet comes an unencrypted one with the same number, and a changed one.
        let gcm = mode == CryptoMode::Gcm;
        pair.tap(move |_, side, datagram| {
            if side == Side::Listener || !is_data(&datagram) {
                return vec![datagram];
            }
            let mut clear = datagram.clone();
            clear[4] &= !0x18;
            let mut noise = datagram.clone();
            noise[30] ^= 1;
            if gcm { vec![clear, noise, datagram] } else { vec![clear, datagram] }
        });
        pair.stream(Side::Caller, 100, MS(2));
        pair.run_for(MS(300));
        pair.assert_complete(Side::Caller);
        let statistics = pair.statistics(Side::Listener);
        assert_eq!(statistics.packets_undecrypted, if gcm { 200 } else { 100 });
        assert_eq!(statistics.packets_not_authentic, if gcm { 100 } else { 0 });
    }
}

#[test]
fn debug_output_shows_no_secret() {
    let config = strict(SECRET);
    let mut pair = Pair::symmetric(1, link());
    pair.connect(config.clone(), config.clone());
    let shown = format!("{config:?} {:?} {:?}", pair.caller.endpoint, pair.listener.endpoint);
    assert!(!shown.contains(SECRET) && !shown.contains("horse"));
    assert!(!shown.contains("[99, 111, 114, 114"), "not as numbers either");
    assert!(shown.contains("(secret)"), "a placeholder is shown instead");
}

#[test]
fn the_conclusion_comes_with_its_key_message_and_the_answer_returns_it() {
    let mut pair = Pair::symmetric(1, link());
    let record = pair.record();
    pair.connect(strict(SECRET), strict(SECRET));
    let block = |side: Side, wanted: fn(&Extension) -> Option<&Vec<u8>>| {
        let (_, _, datagram) = record.handshakes(side).pop().expect("a conclusion");
        let handshake = handshake(&datagram).expect("a handshake");
        assert_eq!(handshake.request, HandshakeRequest::Conclusion);
        assert_eq!(handshake.extension_field, 3);
        handshake.extensions.iter().find_map(wanted).cloned()
    };
    let km_req: fn(&Extension) -> Option<&Vec<u8>> =
        |one| if let Extension::KmReq(body) = one { Some(body) } else { None };
    let km_rsp: fn(&Extension) -> Option<&Vec<u8>> =
        |one| if let Extension::KmRsp(body) = one { Some(body) } else { None };
    let sent = block(Side::Caller, km_req).expect("a key message");
    assert_eq!(block(Side::Listener, km_rsp).expect("an answer"), sent);
    let own = block(Side::Listener, km_req).expect("the listener's own key");
    assert_eq!(own[..32], sent[..32], "the same salt");
    assert_ne!(own[32..], sent[32..]);
}

#[test]
fn a_rendezvous_is_encrypted_and_refused_like_a_call() {
    for seed in 0..12 {
        let mut pair = Pair::symmetric(seed, lossy(0.2));
        let one = strict(SECRET).with_key_length(Some(KeyLength::Aes256));
        pair.meet(Side::Caller, MS(100 * seed), [one, strict(SECRET)]);
        for side in [Side::Caller, Side::Listener] {
            pair.set_link(side, link());
        }
        pair.run_for(SECS(1));
        for side in [Side::Caller, Side::Listener] {
            pair.stream(side, 50, MS(2));
            pair.run_for(MS(500));
            pair.assert_complete(side);
            assert_eq!(states(&mut pair, side), (KeyState::Secured, KeyState::Secured));
            let cipher = Some((CipherMode::Ctr, KeyLength::Aes256));
            assert_eq!(pair.info(side).cipher, cipher, "for either initiator, seed {seed}");
        }
        let mut pair = Pair::symmetric(seed, link());
        pair.wave(Side::Caller, strict(SECRET));
        pair.wave(Side::Listener, strict(OTHER));
        pair.run_for(SECS(2));
        assert!(!pair.have_met());
        let closed = [pair.caller.closed().cloned(), pair.listener.closed().cloned()];
        let code = "(rejection code 1010)";
        assert!(closed.iter().flatten().any(|why| why.to_string().contains(code)), "{closed:?}");
    }
}

#[test]
fn the_packet_filter_rebuilds_encrypted_packets() {
    for mode in [CryptoMode::Ctr, CryptoMode::Gcm] {
        let mut pair = Pair::symmetric(3, lossy(0.02));
        let config = strict(SECRET)
            .with_packet_filter("fec,cols:5,rows:5,arq:never")
            .and_then(|config| config.with_latency(MS(500)))
            .expect("legal")
            .with_crypto_mode(mode);
        pair.connect(config.clone(), config);
        pair.stream(Side::Caller, 1_000, MS(2));
        pair.run_for(SECS(2));
        let statistics = pair.statistics(Side::Listener);
        assert!(statistics.packets_filter_supplied > 5, "{statistics:?}");
        assert_eq!(statistics.packets_undecrypted, 0);
        // Every byte of the delivered payloads is checked.
        let lost = 1_000 - pair.delivered(Side::Caller).len();
        assert!(lost < 5, "{lost}");
    }
}
