//! Attacks: floods of handshakes beside a stream, attempts at amplification, endless NAKs and drop
//! requests, and replays.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use punctual_proto::{Config, CryptoMode, RejectReason, SeqNo, SocketId};
use punctual_units::Instant;
use punctual_wire::{
    AckNo, Control, DropRequest, Handshake, HandshakeRequest, LossListBuilder, MsgNo, PeerIp,
    Timestamp,
};

use crate::datagram::{forged, handshake};
use crate::encryption::secured;
use crate::hostile::{expect_no_harm, state, streaming, untraced};
use crate::pair::{Pair, Side};
use crate::random::Random;
use crate::record::Record;
use crate::{MS, SECS, latency, link};

const BOTH: [Side; 2] = [Side::Caller, Side::Listener];

/// A handshake with this request, from an unknown socket.
fn handshake_from_stranger(
    chance: &mut Random,
    request: HandshakeRequest,
    version: u32,
) -> Vec<u8> {
    let handshake = Handshake {
        version,
        encryption: 0,
        extension_field: 5,
        isn: SeqNo::new(chance.next_u32() >> 2),
        mss: 1_500,
        flow_window: 8_192,
        request,
        socket_id: SocketId::new(1 + (chance.next_u32() >> 3)),
        cookie: chance.next_u32(),
        peer_ip: PeerIp::from(IpAddr::from([192, 0, 2, 2])),
        extensions: Vec::new(),
    };
    forged(SocketId::LISTENER, Timestamp::default(), Control::Handshake(Box::new(handshake)))
}

fn anywhere(chance: &mut Random) -> SocketAddr {
    SocketAddr::from((chance.next_u32().to_be_bytes(), 1 + (chance.next_u32() >> 17) as u16))
}

/// Bytes that were sent to strangers since the last call.
fn take_bytes_to_strangers(pair: &mut Pair) -> usize {
    pair.strays.drain(..).map(|(_, datagram)| datagram.len()).sum()
}

/// Bytes that one side sent.
fn bytes_from(record: &Record, side: Side) -> usize {
    record.from(side).iter().map(|(_, datagram)| datagram.len()).sum()
}

/// 25,000 handshakes per second beside a stream: from strangers, with wrong cookies, and from an
/// address with a valid cookie.
#[test]
fn a_flood_of_handshakes_does_not_disturb_a_stream() {
    let mut chance = Random(1);
    let mut pair = Pair::symmetric(1, link()).with_listener(|config| config.backlog = 4);
    let record = pair.record();
    pair.connect(untraced(), untraced());
    pair.untap();
    let (_, _, good) = record.handshakes(Side::Caller).pop().expect("a conclusion");
    pair.accepts = false;
    let caller = pair.caller.address;
    for _ in 0..500 {
        assert!(pair.send_next(Side::Caller) && pair.send_next(Side::Listener));
        let mut received = 0;
        for i in 0..50 {
            let remote = anywhere(&mut chance);
            let (remote, datagram) = match i % 4 {
                0 => (remote, handshake_from_stranger(&mut chance, HandshakeRequest::Induction, 4)),
                1 => {
                    (remote, handshake_from_stranger(&mut chance, HandshakeRequest::Conclusion, 5))
                }
                2 => (remote, good.clone()),
                _ => {
                    let mut another = good.clone();
                    another[40..44].copy_from_slice(&chance.next_u32().to_be_bytes());
                    (caller, another)
                }
            };
            received += datagram.len();
            pair.inject(Side::Listener, remote, datagram);
        }
        assert!(take_bytes_to_strangers(&mut pair) <= received / 2);
        pair.run_for(MS(2));
        assert_eq!(pair.listener.endpoint.connections().count(), 1);
        assert!(pair.listener.incoming.len() - pair.listener.gone.len() <= 4);
    }
    pair.run_for(SECS(1));
    for side in BOTH {
        pair.assert_complete(side);
        assert!(pair.delays(side).iter().all(|&delay| delay == MS(130)));
        assert_eq!(pair.statistics(side).packets_retransmitted, 0);
    }
}

/// For every kind of handshake, every kind of end, and every length.
#[test]
fn no_end_sends_a_stranger_more_than_it_receives() {
    let prepare: [fn(&mut Pair); 4] = [
        |_| {},
        |pair| pair.listener.endpoint.listen(Some(secured(Some("correct horse"), true))),
        |pair| pair.wave(Side::Listener, latency(120)),
        |pair| pair.connect(latency(120), latency(120)),
    ];
    for (prepare, number) in prepare.into_iter().zip(0..) {
        let mut chance = Random(number);
        let mut pair = Pair::symmetric(1, link());
        prepare(&mut pair);
        let connections = pair.listener.endpoint.connections().count();
        let requests = [
            HandshakeRequest::Induction,
            HandshakeRequest::Conclusion,
            HandshakeRequest::WaveAHand,
            HandshakeRequest::Agreement,
            HandshakeRequest::Rejection(RejectReason::ROGUE),
            HandshakeRequest::Unknown(7),
        ];
        for request in requests {
            for version in [4, 5, 6] {
                let datagram = handshake_from_stranger(&mut chance, request, version);
                for length in (0..=datagram.len()).chain([100, 1_472]) {
                    let mut datagram = datagram.clone();
                    datagram.resize(length, 0);
                    let remote = anywhere(&mut chance);
                    pair.inject(Side::Listener, remote, datagram);
                    let answered = take_bytes_to_strangers(&mut pair);
                    assert!(answered <= length, "{answered} bytes for {length} of {request:?}");
                }
            }
        }
        assert_eq!(pair.listener.endpoint.connections().count(), connections);
        assert!(pair.listener.incoming.is_empty());
    }
}

/// An attacker sends wave-a-hand requests with the address of an absent peer, each with another
/// socket ID. This end's offer is ten times as long as such a request.
#[test]
fn forged_wave_a_hand_requests_are_not_amplified() {
    let config = secured(Some("correct horse"), true).with_stream_id("x".repeat(500));
    let config = config.expect("short enough");
    for pause in [MS(1), MS(20), MS(100)] {
        let mut chance = Random(1);
        let mut pair = Pair::symmetric(1, link());
        let record = pair.record();
        pair.wave(Side::Listener, config.clone());
        pair.run_for(SECS(2));
        let alone = bytes_from(&record, Side::Listener);
        let (mut received, remote) = (0, pair.caller.address);
        let start = pair.now;
        while pair.now < start + SECS(2) {
            let wave = handshake_from_stranger(&mut chance, HandshakeRequest::WaveAHand, 5);
            received += wave.len();
            pair.inject(Side::Listener, remote, wave);
            pair.run_for(pause);
        }
        let answered = bytes_from(&record, Side::Listener) - alone;
        // Its own repetitions come every 250 ms in any case; the answers must not exceed the
        // received bytes.
        let repetitions = 9 * 720;
        assert!(answered <= repetitions + received, "{answered} bytes for {received}");
    }
}

/// An attacker sends many answers with the listener's address.
#[test]
fn forged_answers_do_not_multiply_a_call() {
    let mut pair = Pair::symmetric(1, link());
    let record = pair.record();
    pair.call(latency(120), latency(120));
    pair.run_for(MS(15));
    let response = loop {
        pair.run_for(MS(1));
        if let Some((_, handshake, datagram)) = record.handshakes(Side::Listener).pop() {
            assert_eq!(handshake.request, HandshakeRequest::Induction);
            break datagram;
        }
    };
    pair.drop_where(|side, _| side == Side::Listener);
    let counted = pair.record();
    let remote = pair.listener.address;
    let mut chance = Random(1);
    for _ in 0..1_000 {
        let mut answer = response.clone();
        answer[44..48].copy_from_slice(&chance.next_u32().to_be_bytes());
        pair.inject(Side::Caller, remote, answer);
        pair.run_for(MS(1));
    }
    let calls = counted.handshakes(Side::Caller);
    assert!((1..=8).contains(&calls.len()), "{} calls in a second", calls.len());
}

/// Forged NAKs for packets that were acknowledged long ago or never existed.
#[test]
fn naks_for_packets_that_are_gone_cause_no_retransmission() {
    let mut pair = streaming(1);
    pair.run_for(MS(200));
    let (next, at_caller, _) = state(&mut pair);
    let remote = pair.listener.address;
    let record = pair.record();
    let before = pair.statistics(Side::Caller);
    let mut received = 0;
    for i in 0..2_000 {
        let mut list = LossListBuilder::new(364);
        let back = [1, 50, 250, 1_000, 100_000, 0x3000_0000][i % 6];
        assert!(list.push(next.minus(back), next.minus(back)));
        let stamp = Timestamp::from_micros(900_000);
        let nak = forged(at_caller, stamp, Control::Nak(list.as_list()));
        received += nak.len();
        pair.inject(Side::Caller, remote, nak);
        pair.run_for(MS(1));
    }
    let after = pair.statistics(Side::Caller);
    assert_eq!(after.packets_retransmitted, before.packets_retransmitted);
    let answered = bytes_from(&record, Side::Caller);
    assert!(answered <= received, "{answered} bytes for {received}");
    pair.untap();
    expect_no_harm(&mut pair);
}

/// Forged drop requests for near and far ranges: only packets in these ranges may be given up, and
/// none that has arrived.
#[test]
fn drop_requests_drop_only_the_missing_packets_that_they_name() {
    let mut pair = streaming(1);
    let (_, _, at_listener) = state(&mut pair);
    let remote = pair.caller.address;
    let stamp = Timestamp::from_micros(900_000);
    let request = |pair: &mut Pair, first: SeqNo, last: SeqNo| {
        let drop = DropRequest { msgno: MsgNo::CONTROL, first, last };
        pair.inject(Side::Listener, remote, forged(at_listener, stamp, Control::DropRequest(drop)));
    };
    let mut chance = Random(1);
    for round in 0..200 {
        let (next, ..) = state(&mut pair);
        // Packets that wait for their delivery stay.
        request(&mut pair, next.minus(60), next.minus(6));
        for _ in 0..50 {
            let (at, length) = (chance.next_u32(), chance.below(0x2000_0000));
            if SeqNo::new(at).distance_from(next).abs() > 10_000 {
                let first = SeqNo::new(at);
                let reaches =
                    first.plus(length).is_after(next.minus(1_000)) && first.is_before(next);
                if !reaches {
                    request(&mut pair, first, first.plus(length));
                }
            }
        }
        if round % 20 == 10 {
            // The next three are named before they are sent.
            request(&mut pair, next, next.plus(2));
        }
        pair.stream(Side::Caller, 10, MS(2));
    }
    pair.run_for(SECS(1));
    let delivered = pair.delivered(Side::Caller).len() as u64;
    let receiver = pair.statistics(Side::Listener);
    assert_eq!(delivered + receiver.packets_receive_dropped, 2_250);
    assert!(receiver.packets_receive_dropped <= 30, "{}", receiver.packets_receive_dropped);
    assert!(receiver.receive_buffer_packets == 0);
    assert_eq!((pair.caller.closed(), pair.listener.closed()), (None, None));
}

/// Forged ACKACKs change neither the round-trip time nor the flight.
#[test]
fn forged_ackacks_do_not_change_the_round_trip_time() {
    let mut pair = streaming(1);
    let (_, _, at_listener) = state(&mut pair);
    let remote = pair.caller.address;
    let before = pair.statistics(Side::Listener).rtt;
    let mut chance = Random(1);
    for _ in 0..5_000 {
        let number =
            AckNo::new(if chance.one_in(2) { chance.below(200) } else { chance.next_u32() });
        let stamp = Timestamp::from_micros(chance.next_u32());
        let answer = forged(at_listener, stamp, Control::AckAck(number));
        pair.inject(Side::Listener, remote, answer);
    }
    let after = pair.statistics(Side::Listener).rtt;
    assert!(after <= before + MS(1) && before <= after + MS(15), "{before:?} {after:?}");
    expect_no_harm(&mut pair);
}

/// Every packet is replayed after a while, across key refreshes.
#[test]
fn replayed_packets_of_old_keys_change_nothing() {
    for mode in [CryptoMode::Ctr, CryptoMode::Gcm] {
        let mut pair = Pair::symmetric(1, link());
        let config = |config: Config| {
            let config = config.with_key_refresh_rate(100).expect("in range");
            config.with_key_pre_announce(20).expect("in range").with_drift_tracer(false)
        };
        let config = config(secured(Some("correct horse"), true).with_crypto_mode(mode));
        let mut kept: [VecDeque<(Instant, Vec<u8>)>; 2] = Default::default();
        pair.tap(move |now, side, datagram| {
            let queue = &mut kept[usize::from(side == Side::Listener)];
            // One to two key refreshes later.
            queue.push_back((now + MS(350), datagram.clone()));
            let mut sent = vec![datagram];
            while queue.front().is_some_and(|(at, _)| *at <= now) {
                sent.extend(queue.pop_front().map(|(_, again)| again));
            }
            sent
        });
        pair.connect(config.clone(), config);
        for _ in 0..1_000 {
            assert!(pair.send_next(Side::Caller) && pair.send_next(Side::Listener));
            pair.run_for(MS(2));
        }
        pair.run_for(SECS(1));
        for side in BOTH {
            pair.assert_complete(side);
            let statistics = pair.statistics(side);
            assert!(statistics.key_refreshes >= 8, "{}", statistics.key_refreshes);
            // With GCM, the wrong key is noticed before the lateness.
            let refused = statistics.packets_belated + statistics.packets_undecrypted;
            assert!(refused > 900, "{refused}");
            assert_eq!(statistics.packets_received_unique, 1_000);
        }
    }
}

/// A whole session is recorded, and replayed to the listener after its end.
#[test]
fn a_replayed_session_starts_no_connection() {
    let mut pair = Pair::symmetric(1, link());
    let record = pair.record();
    pair.connect(latency(120), latency(120));
    pair.stream(Side::Caller, 200, MS(2));
    pair.run_for(MS(300));
    pair.close(Side::Caller);
    pair.run_for(MS(100));
    pair.release(Side::Caller);
    pair.release(Side::Listener);
    let recorded = record.from(Side::Caller);
    pair.untap();
    let (received, caller) = (pair.listener.received.len(), pair.caller.address);
    pair.accepts = false;
    for (_, datagram) in recorded {
        // From the caller's address, and from another one.
        for remote in [SocketAddr::from(([203, 0, 113, 9], 9)), caller] {
            pair.inject(Side::Listener, remote, datagram.clone());
        }
    }
    assert_eq!(pair.listener.received.len(), received);
    assert_eq!(pair.listener.endpoint.connections().count(), 0);
    // The cookie is still valid, but its caller has closed that connection.
    assert_eq!(pair.listener.incoming.len(), 0);
    // An hour later the cookie is invalid.
    pair.run_for(SECS(3_600));
    let conclusion = record.handshakes(Side::Caller).pop().expect("a conclusion").2;
    assert!(handshake(&conclusion).is_some());
    pair.inject(Side::Listener, caller, conclusion);
    assert_eq!(pair.listener.incoming.len(), 0);
}
