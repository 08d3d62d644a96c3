//! A peer whose address changes: between two ends of this implementation the stream continues, and
//! no attacker can move it.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use bytes::Bytes;
use punctual_proto::{CloseReason, SendOptions};
use punctual_wire::{Control, Packet, SocketId, Timestamp};

use crate::datagram::{Kind, control, forged, forged_data, kind};
use crate::hostile::{expect_no_harm, state, untraced};
use crate::pair::{Pair, Side};
use crate::random::Random;
use crate::{MS, SECS, latency, link, lossy};

/// Commands of the extension packets of path updates.
const CHALLENGE: u16 = 0x5001;
const ANSWER: u16 = 0x5002;
/// Bytes of a challenge or an answer.
const PACKET: usize = 32;

/// A new address of the caller, as after a NAT rebinding.
fn rebound(n: u16) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, 7], 20_000 + n))
}

fn path_packet(datagram: &[u8]) -> Option<(u16, Vec<u8>)> {
    match control(datagram) {
        Some(Control::Extension { command, body }) => Some((command, body.to_vec())),
        _ => None,
    }
}

/// The challenges that were sent to addresses of neither end.
fn challenges(pair: &Pair) -> Vec<(SocketAddr, Vec<u8>)> {
    let strays = pair.strays.iter();
    strays
        .filter(|(_, datagram)| path_packet(datagram).is_some_and(|it| it.0 == CHALLENGE))
        .cloned()
        .collect()
}

/// The round-trip time is 20 ms. Packets from the new address are ignored until the third trip
/// after the change. The gap is reported with the first packet that is accepted, and filled one
/// round trip later: two round trips after the packet would have come, plus the interval to the
/// next packet.
#[test]
fn a_sender_that_moves_loses_nothing_within_two_round_trips() {
    for seed in 0..20 {
        let mut pair = Pair::symmetric(seed, link());
        pair.connect(latency(45), latency(45));
        pair.stream(Side::Caller, 200 + seed as u32, MS(2));
        pair.caller.address = rebound(1);
        pair.stream(Side::Caller, 300, MS(2));
        pair.run_for(SECS(1));
        pair.assert_complete(Side::Caller);
        assert_eq!(pair.info(Side::Listener).path, rebound(1));
        assert_eq!(pair.listener.moved, [rebound(1)]);
        assert_eq!(pair.statistics(Side::Listener).path_changes, 1);
        assert_eq!(pair.statistics(Side::Caller).path_changes, 0, "the listener did not move");
        assert!(pair.listener.connection.is_some() && pair.listener.closed().is_none());
    }
}

/// A receiver does not notice its own move: it sends ACKs only for received packets, and nothing
/// reaches it any more. After 50 ms without a packet it sends one, which shows its new address.
#[test]
fn a_receiver_that_moves_loses_nothing_if_the_latency_covers_it() {
    for seed in 0..20 {
        let mut pair = Pair::symmetric(seed, link());
        pair.connect(latency(125), latency(125));
        pair.stream(Side::Listener, 200 + seed as u32, MS(2));
        pair.caller.address = rebound(1);
        pair.stream(Side::Listener, 300, MS(2));
        pair.run_for(SECS(1));
        pair.assert_complete(Side::Listener);
        assert_eq!(pair.info(Side::Listener).path, rebound(1));
    }
}

#[test]
fn a_listener_that_moves_is_followed_too() {
    let mut pair = Pair::symmetric(1, link());
    pair.connect(latency(120), latency(120));
    pair.stream(Side::Listener, 200, MS(2));
    pair.listener.address = rebound(2);
    pair.stream(Side::Listener, 200, MS(2));
    pair.run_for(SECS(1));
    pair.assert_complete(Side::Listener);
    assert_eq!(pair.info(Side::Caller).path, rebound(2));
    assert_eq!(pair.caller.moved, [rebound(2)]);
}

#[test]
fn either_end_of_a_rendezvous_is_followed_to_a_new_address() {
    for side in [Side::Caller, Side::Listener] {
        let mut pair = Pair::symmetric(1, link());
        pair.meet(Side::Caller, MS(5), [latency(120), latency(120)]);
        pair.stream(side, 100, MS(2));
        pair.node(side).address = rebound(1);
        pair.stream(side, 300, MS(2));
        pair.run_for(SECS(1));
        pair.assert_complete(side);
        assert_eq!(pair.info(side.other()).path, rebound(1));
    }
}

#[test]
fn moves_on_a_bad_link_lose_nothing_within_the_latency() {
    for seed in 0..20 {
        let mut pair = Pair::symmetric(seed, lossy(0.1));
        pair.connect(latency(800), latency(800));
        for n in 0..10 {
            pair.caller.address = rebound(n);
            pair.stream(Side::Caller, 250, MS(4));
        }
        pair.run_for(SECS(2));
        pair.assert_complete(Side::Caller);
        let changes = pair.statistics(Side::Listener).path_changes;
        assert!((9..=10).contains(&changes), "{changes} changes");
    }
}

#[test]
fn an_idle_connection_survives_a_change_of_address() {
    let mut pair = Pair::symmetric(1, link());
    pair.connect(latency(120), latency(120));
    pair.run_for(SECS(3));
    pair.caller.address = rebound(1);
    pair.run_for(SECS(20));
    assert_eq!((pair.caller.closed(), pair.listener.closed()), (None, None));
    assert_eq!(pair.info(Side::Listener).path, rebound(1));
    pair.stream(Side::Listener, 100, MS(2));
    pair.run_for(SECS(1));
    pair.assert_complete(Side::Listener);
}

/// A challenge is never longer than the packets that cause it, and a keepalive is shorter. So an
/// idle end sends a probe in its place.
#[test]
fn an_idle_connection_is_followed_with_its_next_packet() {
    let mut pair = Pair::symmetric(1, link());
    pair.connect(latency(120), latency(120));
    pair.run_for(MS(3_500));
    pair.caller.address = rebound(1);
    pair.run_for(SECS(1));
    assert_eq!(pair.info(Side::Listener).path, rebound(1));
}

#[test]
fn the_address_is_fixed_unless_both_ends_offer_path_updates() {
    for (ours, theirs) in [(true, false), (false, true)] {
        let mut pair = Pair::symmetric(1, link());
        pair.connect(latency(120).with_path_update(ours), latency(120).with_path_update(theirs));
        pair.stream(Side::Caller, 100, MS(2));
        pair.caller.address = rebound(1);
        for _ in 0..3_000 {
            let _ = pair.send(Side::Caller, Bytes::from_static(&[7; 188]), SendOptions::default());
            pair.run_for(MS(2));
        }
        assert!(challenges(&pair).is_empty());
        assert!(matches!(pair.listener.closed(), Some(CloseReason::Idle(_))));
    }
}

/// Packets that were in flight when the peer moved come from its old address.
#[test]
fn packets_in_flight_from_the_old_address_are_delivered() {
    let mut pair = Pair::symmetric(1, link());
    pair.connect(untraced(), untraced());
    pair.stream(Side::Caller, 100, MS(2));
    let old = pair.caller.address;
    pair.caller.address = rebound(1);
    pair.stream(Side::Caller, 100, MS(2));
    assert_eq!(pair.info(Side::Listener).path, rebound(1));
    let before = pair.statistics(Side::Listener).packets_received;
    let (next, _, dest) = state(&mut pair);
    let late = forged_data(next.minus(50), Timestamp::default(), dest, &[1; 188]);
    pair.inject(Side::Listener, old, late.clone());
    assert_eq!(pair.statistics(Side::Listener).packets_received, before + 1);
    assert!(challenges(&pair).iter().all(|(remote, _)| *remote == rebound(1)));
    pair.run_for(SECS(2));
    let before = pair.statistics(Side::Listener).packets_received;
    pair.inject(Side::Listener, old, late);
    assert_eq!(pair.statistics(Side::Listener).packets_received, before, "a second later");
}

/// An attacker who knows only a socket ID gets a challenge, and cannot answer it.
#[test]
fn guessed_answers_to_a_challenge_move_nothing() {
    let mut chance = Random(1);
    let mut pair = crate::hostile::streaming(1);
    let (next, _, dest) = state(&mut pair);
    let attacker = rebound(9);
    pair.inject(Side::Listener, attacker, forged_data(next, Timestamp::default(), dest, &[0; 64]));
    let (_, challenge) = challenges(&pair).pop().expect("a challenge");
    let (_, challenge) = path_packet(&challenge).expect("a path packet");
    for round in 0..10_000u32 {
        // The nonce is right; the tag is that of the challenge, or a guess.
        let mut answer = challenge.clone();
        if round > 0 {
            answer[8..12].copy_from_slice(&chance.next_u32().to_be_bytes());
            answer[12..].copy_from_slice(&chance.next_u32().to_be_bytes());
        }
        let answer = Control::Extension { command: ANSWER, body: &answer };
        pair.inject(Side::Listener, attacker, forged(dest, Timestamp::default(), answer));
    }
    assert_eq!(pair.statistics(Side::Listener).path_changes, 0);
    expect_no_harm(&mut pair);
}

/// An attacker who could relay the challenge to the peer would replace the peer by its own answer.
#[test]
fn a_relayed_challenge_is_not_answered() {
    let mut pair = crate::hostile::streaming(1);
    let (next, caller, listener) = state(&mut pair);
    let attacker = rebound(9);
    let data = forged_data(next, Timestamp::default(), listener, &[0; 64]);
    pair.inject(Side::Listener, attacker, data);
    let (_, challenge) = challenges(&pair).pop().expect("a challenge");
    pair.strays.clear();
    // From the attacker's own address it is ignored.
    pair.inject(Side::Caller, attacker, challenge.clone());
    let to_attacker = |pair: &Pair| {
        let answers = pair.strays.iter().filter_map(|(_, datagram)| path_packet(datagram));
        answers.filter(|(command, _)| *command == ANSWER).count()
    };
    assert_eq!(to_attacker(&pair), 0);
    // With the listener's address it is answered, but to the listener, which this does not move.
    let there = pair.listener.address;
    pair.inject(Side::Caller, there, challenge.clone());
    pair.run_for(SECS(1));
    assert_eq!(to_attacker(&pair), 0);
    // Returned to its sender, it is not taken for the peer's.
    let (_, body) = path_packet(&challenge).expect("a path packet");
    let back = Control::Extension { command: CHALLENGE, body: &body };
    let here = pair.caller.address;
    let before = pair.statistics(Side::Listener).packets_ignored;
    pair.inject(Side::Listener, here, forged(listener, Timestamp::default(), back));
    assert_eq!(pair.statistics(Side::Listener).packets_ignored, before + 1);
    assert_ne!(caller, listener);
    assert_eq!(pair.statistics(Side::Listener).path_changes, 0);
}

/// An answer is valid once: if it is recorded on the path and sent later, it moves nothing.
#[test]
fn an_answer_is_invalid_after_the_move_and_from_other_addresses() {
    let answers = Rc::new(RefCell::new(Vec::new()));
    let mut pair = Pair::symmetric(1, link());
    pair.connect(latency(120), latency(120));
    let seen = Rc::clone(&answers);
    pair.tap(move |_, _, datagram| {
        if path_packet(&datagram).is_some_and(|(command, _)| command == ANSWER) {
            seen.borrow_mut().push(datagram.clone());
        }
        vec![datagram]
    });
    for n in 1..=2 {
        pair.stream(Side::Caller, 100, MS(2));
        pair.caller.address = rebound(n);
        pair.stream(Side::Caller, 100, MS(2));
    }
    assert_eq!(pair.info(Side::Listener).path, rebound(2));
    let recorded = answers.borrow().clone();
    assert!(recorded.len() >= 2);
    pair.run_for(SECS(2));
    for answer in recorded {
        for n in [1, 3] {
            pair.inject(Side::Listener, rebound(n), answer.clone());
        }
    }
    assert_eq!(pair.info(Side::Listener).path, rebound(2));
    assert_eq!(pair.statistics(Side::Listener).path_changes, 2);
}

/// The number of addresses that are challenged in a round trip is limited, and a challenge is never
/// longer than what came from the address.
#[test]
fn a_flood_from_spoofed_addresses_is_bounded_and_harmless() {
    let mut chance = Random(1);
    let mut pair = crate::hostile::streaming(1);
    let (next, _, dest) = state(&mut pair);
    let mut injected = 0;
    for _ in 0..100 {
        for _ in 0..1_000 {
            let remote = SocketAddr::from((chance.next_u32().to_be_bytes(), 4_000));
            let data = forged_data(next, Timestamp::default(), dest, &[0; 16]);
            injected += data.len();
            pair.inject(Side::Listener, remote, data);
        }
        pair.run_for(MS(1));
    }
    let sent: usize = pair.strays.iter().map(|(_, datagram)| datagram.len()).sum();
    assert!(pair.strays.iter().all(|(_, datagram)| datagram.len() == PACKET));
    // At most four in each of five intervals of 20 ms.
    assert!((PACKET..=24 * PACKET).contains(&sent), "{sent} bytes for {injected}");
    expect_no_harm(&mut pair);
}

/// A packet shorter than a challenge is not answered before enough bytes came.
#[test]
fn a_challenge_is_never_longer_than_the_received_packets() {
    let mut pair = crate::hostile::streaming(1);
    let (_, _, dest) = state(&mut pair);
    let keep_alive = forged(dest, Timestamp::default(), Control::KeepAlive);
    assert_eq!((kind(&keep_alive), keep_alive.len()), (Kind::KeepAlive, 20));
    pair.inject(Side::Listener, rebound(9), keep_alive.clone());
    assert!(pair.strays.is_empty());
    pair.inject(Side::Listener, rebound(9), keep_alive);
    assert_eq!(pair.strays.len(), 1);
    assert_eq!(pair.strays[0].1.len(), PACKET);
    let dest = |datagram: &[u8]| match Packet::parse(datagram) {
        Ok(Packet::Control(packet)) => packet.dest,
        _ => SocketId::LISTENER,
    };
    assert_eq!(dest(&pair.strays[0].1), pair.info(Side::Caller).socket_id);
}

/// While the peer still sends from its old address, forged packets change nothing.
#[test]
fn an_address_of_the_other_family_is_not_followed() {
    let mut pair = crate::hostile::streaming(1);
    let (next, _, dest) = state(&mut pair);
    let remote: SocketAddr = "[2001:db8::9]:9".parse().expect("an address");
    pair.inject(Side::Listener, remote, forged_data(next, Timestamp::default(), dest, &[0; 64]));
    assert!(pair.strays.is_empty());
    expect_no_harm(&mut pair);
}
