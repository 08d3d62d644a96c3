//! Two ends that call each other: the choice of the initiator, bad links, different starts, equal
//! cookies, strangers.

use punctual_netem::Reorder;
use punctual_proto::{Attempt, CloseReason, Config, ConnectError, RejectReason, SocketId};
use punctual_wire::{Control, Extension, Handshake, HandshakeRequest, Timestamp};

use crate::datagram::{Kind, edit_handshake, forged, handshake, kind, noise};
use crate::pair::{Pair, Side};
use crate::random::Random;
use crate::record::Record;
use crate::{MS, SECS, latency, link, lossy};

const SIDES: [Side; 2] = [Side::Caller, Side::Listener];

fn both(config: &Config) -> [Config; 2] {
    [config.clone(), config.clone()]
}

fn wave_both(pair: &mut Pair) {
    for side in SIDES {
        pair.wave(side, latency(120));
    }
}

/// The end that made the offer; panics unless exactly one did.
#[track_caller]
fn initiator(record: &Record) -> Side {
    let offers = |side: Side| {
        record.handshakes(side).iter().any(|(_, handshake, _)| {
            handshake.extensions.iter().any(|it| matches!(it, Extension::HsReq(_)))
        })
    };
    match SIDES.map(offers) {
        [true, false] => Side::Caller,
        [false, true] => Side::Listener,
        offers => panic!("who made the offer? {offers:?}"),
    }
}

fn request_of(datagram: &[u8]) -> Option<HandshakeRequest> {
    handshake(datagram).map(|handshake| handshake.request)
}

/// Messages both ways over perfect links, and one connection at each end.
#[track_caller]
fn assert_streams(pair: &mut Pair) {
    for side in SIDES {
        pair.set_link(side, link());
    }
    pair.run_for(SECS(2));
    for side in SIDES {
        pair.stream(side, 100, MS(2));
        pair.run_for(SECS(1));
        pair.assert_complete(side);
        assert_eq!(pair.node(side).endpoint.connections().count(), 1);
        assert_eq!(pair.node(side).closed(), None);
    }
}

#[test]
fn two_ends_connect_and_one_is_the_initiator() {
    let mut initiators = Vec::new();
    for seed in 0..20 {
        let mut pair = Pair::symmetric(seed, link());
        let record = pair.record();
        pair.meet(Side::Caller, MS(0), both(&latency(120)));
        assert!(pair.elapsed() <= MS(50), "two and a half round trips: {:?}", pair.elapsed());
        let initiating = initiator(&record);
        initiators.push(initiating);
        let wave = |side: Side| record.handshakes(side).remove(0).1;
        for side in SIDES {
            let (wave, info) = (wave(side), pair.info(side));
            assert_eq!((wave.version, wave.extension_field), (5, 0));
            assert_eq!(wave.request, HandshakeRequest::WaveAHand);
            assert_ne!(wave.cookie, 0);
            assert_eq!(info.peer_socket_id, pair.info(side.other()).socket_id);
            assert_eq!((info.receive_latency, info.peer_latency), (MS(120), MS(120)));
        }
        // The wrapping difference of the cookies decides.
        let [a, b] = SIDES.map(|side| wave(side).cookie);
        assert_eq!(initiating == Side::Caller, a.wrapping_sub(b).cast_signed() > 0);
        assert_streams(&mut pair);
        // Each end keeps its own first sequence number.
        for side in SIDES {
            let first = &pair.node(side.other()).received[0].message;
            assert_eq!(first.seq, wave(side).isn);
        }
    }
    assert!(initiators.contains(&Side::Caller) && initiators.contains(&Side::Listener));
}

#[test]
fn bad_links_and_different_starts_do_not_make_a_rendezvous_fail() {
    for seed in 0..150 {
        let mut chance = Random(seed);
        let bad = lossy(0.4)
            .with_reorder(Reorder::Late { share: 0.3, by: MS(300) })
            .and_then(|link| link.with_duplicate(0.5))
            .expect("shares");
        let mut pair = Pair::symmetric(seed, bad);
        let record = pair.record();
        let first = if chance.below(2) == 0 { Side::Caller } else { Side::Listener };
        let gap = if chance.below(3) == 0 { 0 } else { chance.below(4_000) };
        pair.meet(first, MS(gap.into()), both(&latency(120)));
        initiator(&record);
        assert_streams(&mut pair);
    }
}

#[test]
fn any_handshake_packet_may_be_lost() {
    for gap in [0, 5, 15, 400] {
        for lost in 0..9 {
            let mut pair = Pair::symmetric(lost, link());
            let mut seen = 0;
            pair.drop_where(move |_, datagram| {
                seen += u64::from(kind(datagram) == Kind::Handshake);
                kind(datagram) == Kind::Handshake && seen == lost + 1
            });
            pair.meet(Side::Caller, MS(gap), both(&latency(120)));
            assert!(pair.elapsed() <= MS(gap + 50 + 500), "packet {lost}: {:?}", pair.elapsed());
            assert_streams(&mut pair);
        }
    }
}

#[test]
fn data_or_a_keepalive_replaces_a_lost_agreement() {
    for seed in 0..10 {
        for sends in [true, false] {
            let mut pair = Pair::symmetric(seed, link());
            pair.drop_where(|_, datagram| {
                request_of(datagram) == Some(HandshakeRequest::Agreement)
            });
            wave_both(&mut pair);
            pair.run_while(SECS(1), |pair| !pair.caller.connected && !pair.listener.connected);
            let initiating = if pair.caller.connected { Side::Caller } else { Side::Listener };
            if sends {
                pair.stream(initiating, 10, MS(2));
                assert!(pair.have_met());
            } else {
                pair.run_for(MS(900));
                assert!(!pair.have_met());
                let remote = pair.node(initiating).address;
                let dest = pair.info(initiating.other()).socket_id;
                let keepalive = forged(dest, Timestamp::default(), Control::KeepAlive);
                pair.inject(initiating.other(), remote, keepalive);
                assert!(pair.have_met());
            }
            pair.untap();
            assert_streams(&mut pair);
        }
    }
}

#[test]
fn a_rendezvous_without_a_peer_times_out() {
    let mut pair = Pair::symmetric(1, link());
    let record = pair.record();
    pair.wave(Side::Caller, Config::default());
    let again = Attempt::rendezvous(latency(120));
    let busy = pair.caller.endpoint.connect(pair.now, pair.listener.address, again);
    assert_eq!(busy, Err(ConnectError::RendezvousUnderWay(pair.listener.address.into())));
    assert!(pair.run_while(SECS(60), |pair| pair.caller.closed().is_none()));
    assert_eq!(pair.elapsed(), SECS(30));
    assert_eq!(pair.caller.closed(), Some(&CloseReason::ConnectTimeout(SECS(30))));
    assert_eq!(record.len(), 120, "one wave-a-hand every 250 ms");
    pair.release(Side::Caller);
    // The second attempt succeeds.
    pair.meet(Side::Caller, SECS(1), both(&latency(120)));
    assert_streams(&mut pair);
}

#[test]
fn equal_cookies_end_the_attempt_at_both_ends() {
    for sees_it in SIDES {
        let mut pair = Pair::symmetric(1, link());
        let mut cookie = None;
        pair.tap(move |_, side, datagram| {
            vec![edit_handshake(datagram, |handshake| {
                if side == sees_it {
                    cookie = Some(handshake.cookie);
                } else {
                    handshake.cookie = cookie.expect("both wave at once");
                }
            })]
        });
        pair.wave(sees_it, latency(120));
        pair.run_for(MS(1));
        pair.wave(sees_it.other(), latency(120));
        pair.run_for(SECS(1));
        let draw = RejectReason::RENDEZVOUS_COOKIE;
        let closed = SIDES.map(|side| pair.node(side).closed().cloned());
        let [here, there] = if sees_it == Side::Caller { [0, 1] } else { [1, 0] };
        assert_eq!(closed[here], Some(CloseReason::Incompatible(draw)));
        assert_eq!(closed[there], Some(CloseReason::Rejected(draw)));
        // The next attempt draws other cookies.
        pair.untap();
        for side in SIDES {
            pair.release(side);
            pair.node(side).connected = false;
        }
        pair.meet(Side::Caller, MS(0), both(&latency(120)));
        assert_streams(&mut pair);
    }
}

#[test]
fn an_incompatible_peer_is_refused_and_both_ends_get_the_reason() {
    let strict = Config::default().with_min_version(0x01_06_00);
    for seed in 0..10 {
        for strict_side in SIDES {
            let mut pair = Pair::symmetric(seed, lossy(0.1));
            for side in SIDES {
                pair.wave(side, if side == strict_side { strict.clone() } else { latency(120) });
            }
            pair.run_for(SECS(5));
            let too_old = RejectReason::VERSION;
            let closed = pair.node(strict_side).closed().cloned();
            assert_eq!(closed, Some(CloseReason::Incompatible(too_old)));
            let closed = pair.node(strict_side.other()).closed().cloned();
            assert_eq!(closed, Some(CloseReason::Rejected(too_old)), "seed {seed}");
        }
    }
}

#[test]
fn the_rejection_is_sent_although_the_attempt_is_released_at_once() {
    let mut pair = Pair::symmetric(1, link());
    pair.wave(Side::Caller, Config::default().with_min_version(0x01_06_00));
    pair.wave(Side::Listener, latency(120));
    pair.run_while(SECS(5), |pair| pair.caller.closed().is_none());
    pair.release(Side::Caller);
    assert_eq!(pair.caller.endpoint.connections().count(), 0);
    pair.run_for(SECS(1));
    let reason = CloseReason::Rejected(RejectReason::VERSION);
    assert_eq!(pair.listener.closed(), Some(&reason));
}

#[test]
fn a_rendezvous_with_another_version_or_role_is_refused() {
    for (reason, edit) in [
        // SRT before 1.3.0.
        (RejectReason::VERSION, (|handshake| handshake.version = 4) as fn(&mut Handshake)),
        (RejectReason::ROGUE, |handshake| handshake.mss = 9_000),
        (RejectReason::ROGUE, |handshake| handshake.cookie = 0),
    ] {
        let mut pair = Pair::symmetric(1, link());
        pair.tap(move |_, side, datagram| {
            vec![edit_handshake(datagram, |handshake| {
                if side == Side::Listener {
                    edit(handshake);
                }
            })]
        });
        wave_both(&mut pair);
        pair.run_for(SECS(1));
        assert_eq!(pair.caller.closed(), Some(&CloseReason::Incompatible(reason)));
    }
    // Both take themselves for the initiator, as with a comparison of 64 bits.
    for seed in 0..10 {
        let mut pair = Pair::symmetric(seed, link());
        pair.tap(|_, _, datagram| {
            vec![edit_handshake(datagram, |handshake| {
                for extension in &mut handshake.extensions {
                    if let Extension::HsRsp(hs) = extension {
                        *extension = Extension::HsReq(*hs);
                    }
                }
            })]
        });
        wave_both(&mut pair);
        pair.run_for(SECS(1));
        let closed = SIDES.map(|side| pair.node(side).closed().cloned());
        assert!(closed.contains(&Some(CloseReason::Incompatible(RejectReason::ROGUE))));
        assert!(closed.contains(&Some(CloseReason::Rejected(RejectReason::ROGUE))));
    }
}

#[test]
fn a_rendezvous_with_a_restarted_peer_succeeds() {
    for seed in 0..10 {
        for after in [5, 15, 25] {
            let mut pair = Pair::symmetric(seed, link());
            wave_both(&mut pair);
            pair.run_for(MS(after));
            // It was killed without a shutdown, its last packet is lost, and its socket ID is a new
            // one.
            let mut again = Pair::symmetric(seed + 1_000, link());
            std::mem::swap(&mut pair.listener, &mut again.listener);
            pair.wave(Side::Listener, latency(120));
            pair.run_for(SECS(2));
            assert!(pair.have_met(), "seed {seed}, {after} ms");
            assert_streams(&mut pair);
        }
    }
}

#[test]
fn late_and_duplicate_handshakes_change_nothing() {
    for seed in 0..10 {
        let mut pair = Pair::symmetric(seed, link());
        let record = pair.record();
        pair.meet(Side::Caller, MS(0), both(&latency(120)));
        pair.run_for(SECS(1));
        for side in SIDES {
            let remote = pair.node(side).address;
            for (_, _, datagram) in record.handshakes(side) {
                pair.inject(side.other(), remote, datagram);
                pair.run_for(MS(10));
            }
        }
        // A stranger with the right address and another socket ID gets no answer.
        let mut strange = record.handshakes(Side::Caller).remove(0).1;
        strange.socket_id = SocketId::new(77);
        let before = record.from(Side::Listener).len();
        let control = Control::Handshake(Box::new(strange));
        let remote = pair.caller.address;
        let datagram = forged(SocketId::LISTENER, Timestamp::default(), control);
        pair.inject(Side::Listener, remote, datagram);
        assert_eq!(record.from(Side::Listener).len(), before);
        assert_streams(&mut pair);
    }
}

#[test]
fn one_port_can_listen_call_and_rendezvous_at_the_same_time() {
    let mut pair = Pair::symmetric(1, link());
    pair.accepts = true;
    pair.listener.endpoint.listen(Some(latency(120)));
    for side in SIDES {
        pair.wave(side, latency(120));
    }
    let [there, here] = [pair.caller.connection, pair.listener.connection];
    let remote = pair.listener.address;
    let call = pair.caller.endpoint.connect(pair.now, remote, latency(200)).expect("room");
    pair.run_for(SECS(1));
    let accepted = pair.listener.connection;
    assert_ne!(accepted, here, "the call was accepted");
    for (node, id) in [(&pair.caller, there), (&pair.listener, here), (&pair.caller, Some(call))] {
        let info = node.endpoint.connections().get(id.expect("begun")).expect("held").info();
        assert!(info.connected);
    }
    assert_eq!(pair.caller.endpoint.connections().count(), 2);
    assert_eq!(pair.listener.endpoint.connections().count(), 2);
}

#[test]
fn a_call_to_an_end_in_a_rendezvous_is_refused_without_harm() {
    let mut pair = Pair::symmetric(1, link());
    pair.wave(Side::Listener, latency(120));
    let remote = pair.listener.address;
    let call = pair.caller.endpoint.connect(pair.now, remote, latency(120)).expect("room");
    pair.run_for(SECS(1));
    let refused = CloseReason::Rejected(RejectReason::ROGUE);
    assert_eq!(pair.caller.closed.get(&call), Some(&refused));
    pair.caller.endpoint.connection(pair.now, call).expect("not released").release();
    pair.wave(Side::Caller, latency(120));
    pair.run_for(SECS(1));
    assert!(pair.have_met());
    assert_streams(&mut pair);
}

#[test]
fn invalid_packets_do_not_end_a_rendezvous() {
    let mut chance = Random(9);
    for seed in 0..30 {
        let mut pair = Pair::symmetric(seed, link());
        let record = pair.record();
        pair.wave(Side::Caller, latency(120));
        let remote = pair.listener.address;
        for _ in 0..50 {
            let length = chance.below(80) as usize;
            pair.inject(Side::Caller, remote, noise(&mut chance, length));
            let (_, mut odd, _) = record.handshakes(Side::Caller).remove(0);
            odd.request = chance.pick(&[HandshakeRequest::Agreement, HandshakeRequest::Unknown(9)]);
            odd.socket_id = SocketId::new(chance.next_u32() >> 2);
            let control = Control::Handshake(Box::new(odd));
            let dest = SocketId::LISTENER;
            pair.inject(Side::Caller, remote, forged(dest, Timestamp::default(), control));
            let dest = pair.info(Side::Caller).socket_id;
            for control in [Control::KeepAlive, Control::Shutdown] {
                let datagram = forged(dest, Timestamp::default(), control);
                pair.inject(Side::Caller, remote, datagram);
            }
        }
        pair.wave(Side::Listener, latency(120));
        pair.run_for(SECS(1));
        assert!(pair.have_met(), "seed {seed}");
        assert_streams(&mut pair);
    }
}

#[test]
fn the_larger_latency_counts_for_either_initiator() {
    let config = |receive, peer| {
        Config::default()
            .with_receive_latency(MS(receive))
            .and_then(|config| config.with_peer_latency(MS(peer)))
            .expect("in range")
    };
    for seed in 0..6 {
        let mut pair = Pair::symmetric(seed, link());
        pair.wave(Side::Caller, config(50, 60));
        pair.wave(Side::Listener, config(70, 40));
        pair.run_for(SECS(1));
        let [here, there] = SIDES.map(|side| pair.info(side));
        assert_eq!((here.receive_latency, here.peer_latency), (MS(50), MS(70)));
        assert_eq!((there.receive_latency, there.peer_latency), (MS(70), MS(50)));
        for (side, ms) in [(Side::Caller, 70), (Side::Listener, 50)] {
            assert!(pair.send_next(side));
            pair.run_for(MS(ms + 50));
            assert_eq!(pair.delays(side), [MS(10 + ms)], "{side:?}");
        }
    }
}

/// libsrt's responder closes the connection if data arrive before the agreement.
#[test]
fn agreements_precede_data_until_the_peer_answers() {
    for seed in 0..6 {
        let mut pair = Pair::symmetric(seed, link());
        let record = pair.record();
        wave_both(&mut pair);
        pair.run_while(SECS(1), |pair| !pair.caller.connected && !pair.listener.connected);
        let initiating = if pair.caller.connected { Side::Caller } else { Side::Listener };
        pair.stream(initiating, 100, MS(2));
        pair.run_for(SECS(1));
        pair.assert_complete(initiating);
        let sent = record.from(initiating);
        let data = |datagram: &[u8]| kind(datagram) == Kind::Data;
        let agreement = |datagram: &[u8]| request_of(datagram) == Some(HandshakeRequest::Agreement);
        let first = sent.iter().position(|(_, it)| data(it)).expect("data");
        assert!(sent[first - 3..first].iter().all(|(_, it)| agreement(it)), "{initiating:?}");
        // The first ACK comes after a round trip plus 10 ms at most.
        let (since, _) = sent[first];
        let late = sent.iter().filter(|(at, it)| *at > since + MS(31) && agreement(it));
        assert_eq!(late.count(), 0);
    }
}
