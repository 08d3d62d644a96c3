//! Floods, forgeries, replays and garbage from others: none of it changes a session, ends it, or
//! makes memory grow.

use std::collections::VecDeque;
use std::net::SocketAddr;

use punctual_proto::{Config, SeqNo, SocketId, Statistics, WakeUp};
use punctual_testbed::datagrams;
use punctual_units::Instant;
use punctual_wire::{
    Ack, AckLink, AckNo, AckRates, Control, DropRequest, Handshake, HandshakeRequest,
    LossListBuilder, MsgNo, PeerIp, Timestamp,
};

use crate::datagram::{Kind, control, forged, forged_data, kind, noise};
use crate::pair::{Pair, Side};
use crate::random::Random;
use crate::{MS, SECS, latency, link};

const BOTH: [Side; 2] = [Side::Caller, Side::Listener];

/// Without the drift tracer, which the timestamps of forged packets would influence.
pub fn untraced() -> Config {
    latency(120).with_drift_tracer(false)
}

/// A pair that has streamed for half a second.
pub fn streaming(seed: u64) -> Pair {
    let mut pair = Pair::symmetric(seed, link());
    pair.connect(untraced(), untraced());
    pair.stream(Side::Caller, 250, MS(2));
    pair
}

/// Checks that the stream continues, and that everything was delivered on time.
#[track_caller]
pub fn expect_no_harm(pair: &mut Pair) {
    pair.stream(Side::Caller, 250, MS(2));
    pair.run_for(SECS(1));
    pair.assert_complete(Side::Caller);
    assert!(pair.delays(Side::Caller).iter().all(|&delay| delay == MS(130)));
    assert_eq!((pair.caller.closed(), pair.listener.closed()), (None, None));
    let receiver = pair.statistics(Side::Listener);
    // Garbage may look encrypted, which counts as dropped too.
    assert_eq!(receiver.packets_receive_dropped, receiver.packets_undecrypted);
}

/// The sequence number that the caller will send next, its socket ID, and the listener's.
pub fn state(pair: &mut Pair) -> (SeqNo, SocketId, SocketId) {
    let sent = pair.statistics(Side::Caller).packets_sent_unique as u32;
    let first = pair.listener.received[0].message.seq;
    (first.plus(sent), pair.info(Side::Caller).socket_id, pair.info(Side::Listener).socket_id)
}

fn induction(chance: &mut Random) -> Vec<u8> {
    let handshake = Handshake {
        version: 4,
        encryption: 0,
        extension_field: 2,
        isn: SeqNo::new(chance.next_u32() >> 2),
        mss: 1_500,
        flow_window: 8_192,
        request: HandshakeRequest::Induction,
        socket_id: SocketId::new(chance.next_u32() >> 2),
        cookie: 0,
        peer_ip: PeerIp::from(std::net::IpAddr::from([192, 0, 2, 2])),
        extensions: Vec::new(),
    };
    forged(SocketId::LISTENER, Timestamp::default(), Control::Handshake(Box::new(handshake)))
}

fn anywhere(chance: &mut Random) -> SocketAddr {
    SocketAddr::from((chance.next_u32().to_be_bytes(), chance.next_u32() as u16))
}

#[test]
fn a_flood_of_inductions_leaves_no_state_and_callers_still_connect() {
    let mut chance = Random(1);
    let mut pair = Pair::symmetric(1, link());
    pair.call(latency(120), latency(120));
    for i in 0..100_000u32 {
        let (remote, datagram) = (anywhere(&mut chance), induction(&mut chance));
        pair.inject(Side::Listener, remote, datagram);
        if i.is_multiple_of(1_000) {
            assert_eq!(pair.strays.len(), if i == 0 { 1 } else { 1_000 });
            pair.strays.clear();
            pair.run_for(MS(1));
        }
    }
    assert!(pair.caller.connected, "a real caller connected");
    assert_eq!(pair.listener.endpoint.connections().count(), 1);
    assert!(pair.listener.incoming.is_empty() && pair.listener.gone.is_empty());
    pair.stream(Side::Caller, 250, MS(2));
    pair.run_for(MS(500));
    pair.assert_complete(Side::Caller);
}

#[test]
fn answers_that_cannot_be_sent_do_not_accumulate() {
    let mut chance = Random(2);
    let mut pair = Pair::symmetric(1, link());
    pair.listener.endpoint.listen(Some(latency(120)));
    for _ in 0..100_000 {
        let (remote, datagram) = (anywhere(&mut chance), induction(&mut chance));
        pair.listener.endpoint.handle_datagram(pair.now, remote, datagram.into());
    }
    let answers = datagrams(&mut pair.listener.endpoint, pair.now);
    assert!(answers.len() <= 1_024);
    assert!(answers.iter().all(|(_, answer)| answer.len() <= 64));
    assert_eq!(pair.listener.endpoint.poll_timeout(), WakeUp::Never);
}

#[test]
fn no_answer_is_longer_than_its_request() {
    let mut chance = Random(3);
    let mut pair = Pair::symmetric(1, link());
    let record = pair.record();
    pair.connect(latency(120), latency(120));
    let conclusion = record.handshakes(Side::Caller).pop().expect("a conclusion").2;
    for length in (0..=conclusion.len()).chain([1_472]) {
        for mut datagram in [induction(&mut chance), conclusion.clone(), noise(&mut chance, 1_472)]
        {
            datagram.resize(length, 0);
            pair.strays.clear();
            let remote = anywhere(&mut chance);
            pair.inject(Side::Listener, remote, datagram);
            let answered: usize = pair.strays.iter().map(|(_, answer)| answer.len()).sum();
            assert!(answered <= length, "{answered} bytes for {length}");
        }
    }
}

/// Packets of every kind that would have an effect if the peer had sent them.
fn attacks(next: SeqNo, dest: SocketId) -> Vec<Vec<u8>> {
    let mut everything = LossListBuilder::new(364);
    assert!(everything.push(next.minus(200), next.minus(1)));
    let link = AckLink { rtt_us: 9_000_000, rtt_var_us: 1, free_buffer: 0 };
    let rates = AckRates { packets_per_sec: 1, capacity_pps: 1, bytes_per_sec: Some(1) };
    let stamp = Timestamp::from_micros(600_000);
    let request = DropRequest { msgno: MsgNo::CONTROL, first: next, last: next.plus(50) };
    let number = AckNo::new(1_000_000);
    vec![
        forged_data(next, stamp, dest, &[0; 1_316]),
        forged_data(next.plus(1), stamp, dest, &[0; 1_316]),
        forged(dest, stamp, Control::KeepAlive),
        forged(dest, stamp, Control::Ack(Ack::Light { next })),
        forged(dest, stamp, Control::Ack(Ack::Small { number, next, link })),
        forged(dest, stamp, Control::Ack(Ack::Full { number, next, link, rates, arrivals: None })),
        forged(dest, stamp, Control::Nak(everything.as_list())),
        forged(dest, stamp, Control::AckAck(AckNo::new(20))),
        forged(dest, stamp, Control::DropRequest(request)),
        forged(dest, stamp, Control::PeerError(4_000)),
        forged(dest, stamp, Control::CongestionWarning),
        forged(dest, stamp, Control::Extension { command: 3, body: &[0; 56] }),
        forged(dest, stamp, Control::Shutdown),
    ]
}

fn snapshots(pair: &mut Pair) -> [Statistics; 2] {
    BOTH.map(|side| pair.statistics(side))
}

#[test]
fn a_spoofed_source_changes_nothing() {
    let mut pair = streaming(1);
    let (next, at_caller, at_listener) = state(&mut pair);
    let before = snapshots(&mut pair);
    for (side, dest) in [(Side::Caller, at_caller), (Side::Listener, at_listener)] {
        let peer = pair.node(side.other()).address;
        let mut other_port = peer;
        other_port.set_port(peer.port() + 1);
        let other_host = SocketAddr::from(([203, 0, 113, 9], peer.port()));
        for remote in [other_port, other_host] {
            for attack in attacks(next, dest) {
                pair.inject(side, remote, attack);
            }
        }
    }
    assert_eq!(snapshots(&mut pair), before);
    // At most one challenge to each of the four addresses, and nothing else.
    assert!(pair.strays.len() <= 4, "{} answers", pair.strays.len());
    let is_challenge = |datagram: &[u8]| matches!(control(datagram), Some(Control::Extension { body, .. }) if body.len() == 16);
    assert!(pair.strays.iter().all(|(_, datagram)| is_challenge(datagram)));
    expect_no_harm(&mut pair);
}

#[test]
fn a_wrong_socket_id_changes_nothing() {
    let mut pair = streaming(1);
    let (next, at_caller, at_listener) = state(&mut pair);
    let before = snapshots(&mut pair);
    for (side, dest) in [(Side::Caller, at_caller), (Side::Listener, at_listener)] {
        let peer = pair.node(side.other()).address;
        let wrong = [dest.value() ^ 1, dest.value() | 0x4000_0000, dest.value() | 0x8000_0000, 0];
        for dest in wrong {
            for attack in attacks(next, SocketId::new(dest)) {
                pair.inject(side, peer, attack);
            }
        }
    }
    assert_eq!(snapshots(&mut pair), before);
    expect_no_harm(&mut pair);
}

#[test]
fn replayed_packets_change_nothing() {
    for delay in [5, 30, 500, 3_000] {
        for seed in 0..3 {
            let mut pair = Pair::symmetric(seed, link());
            let mut kept: [VecDeque<(Instant, Vec<u8>)>; 2] = Default::default();
            pair.tap(move |now, side, datagram| {
                let queue = &mut kept[usize::from(side == Side::Listener)];
                queue.push_back((now + MS(delay), datagram.clone()));
                let mut sent = vec![datagram];
                while queue.front().is_some_and(|(at, _)| *at <= now) {
                    sent.extend(queue.pop_front().map(|(_, again)| again));
                }
                sent
            });
            pair.connect(untraced(), untraced());
            for _ in 0..1_000 {
                assert!(pair.send_next(Side::Caller) && pair.send_next(Side::Listener));
                pair.run_for(MS(4));
            }
            pair.run_for(SECS(1));
            for side in BOTH {
                pair.assert_complete(side);
                assert!(pair.delays(side).iter().all(|&delay| delay == MS(130)));
                let statistics = pair.statistics(side);
                assert!(statistics.packets_belated > 200, "{}", statistics.packets_belated);
                assert_eq!(statistics.packets_received_unique, 1_000);
                assert_eq!(pair.node(side).endpoint.connections().count(), 1);
            }
        }
    }
}

#[test]
fn a_truncated_replay_of_the_session_changes_nothing() {
    let mut pair = Pair::symmetric(1, link());
    let record = pair.record();
    pair.connect(untraced(), untraced());
    let mut losses = 0;
    let tapped = record.clone();
    pair.tap(move |now, side, datagram| {
        tapped.push(now, side, &datagram);
        losses += u32::from(kind(&datagram) == Kind::Data);
        if kind(&datagram) == Kind::Data && losses.is_multiple_of(50) {
            Vec::new()
        } else {
            vec![datagram]
        }
    });
    pair.stream(Side::Caller, 500, MS(2));
    pair.run_for(SECS(2));
    for side in BOTH {
        let remote = pair.node(side).address;
        for wanted in [
            Kind::Handshake,
            Kind::Data,
            Kind::Retransmission,
            Kind::Ack,
            Kind::LightAck,
            Kind::Nak,
            Kind::AckAck,
            Kind::KeepAlive,
        ] {
            for (_, datagram) in record.of_kind(side, wanted).into_iter().take(20) {
                for length in 0..datagram.len().min(120) {
                    pair.inject(side.other(), remote, datagram[..length].to_vec());
                }
            }
        }
    }
    assert_eq!(pair.listener.endpoint.connections().count(), 1);
    expect_no_harm(&mut pair);
}

#[test]
fn garbage_changes_nothing() {
    for seed in 1..5 {
        let mut chance = Random(seed);
        let mut pair = streaming(seed);
        let (_, at_caller, at_listener) = state(&mut pair);
        for i in 0..20_000u32 {
            let length = chance.next_u32() as usize % 200;
            let mut datagram = noise(&mut chance, length);
            let (side, dest) =
                if i % 2 == 0 { (Side::Caller, at_caller) } else { (Side::Listener, at_listener) };
            if length >= 16 {
                // Half of these are addressed to the connection, and half of those have a valid
                // control type.
                if chance.next_u32().is_multiple_of(2) {
                    datagram[12..16].copy_from_slice(&dest.value().to_be_bytes());
                    if chance.next_u32().is_multiple_of(2) {
                        datagram[..4].copy_from_slice(&[0x80, chance.next_u32() as u8 % 9, 0, 0]);
                    }
                }
            }
            if kind(&datagram) == Kind::Shutdown {
                continue;
            }
            let remote = pair.node(side.other()).address;
            pair.inject(side, remote, datagram);
            if i.is_multiple_of(100) {
                assert!(pair.send_next(Side::Caller));
                pair.run_for(MS(2));
            }
        }
        expect_no_harm(&mut pair);
    }
}
