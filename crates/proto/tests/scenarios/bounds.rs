//! Buffers and datagrams stay within the configured limits, for any behaviour of the peer.

use std::cell::Cell;
use std::rc::Rc;

use punctual_netem::Loss;
use punctual_proto::{BufferSize, RetransmitAlgorithm, WakeUp};
use punctual_wire::{HandshakeRequest, Timestamp};

use crate::datagram::{Kind, forged_data, handshake, kind};
use crate::hostile::{state, untraced};
use crate::node::EPOCH;
use crate::pair::{Pair, Side};
use crate::{MS, SECS, latency, link};

const BOTH: [Side; 2] = [Side::Caller, Side::Listener];

#[test]
fn a_peer_that_ignores_the_flow_window_does_not_fill_the_memory() {
    for (step, too_late_drop) in [(1, true), (1, false), (2, false), (63, false)] {
        let window = 256;
        let config = untraced()
            .with_receive_buffer(BufferSize::Packets(window))
            .with_too_late_drop(too_late_drop);
        let mut pair = Pair::symmetric(1, link());
        pair.connect(config.clone(), config);
        pair.stream(Side::Caller, 1, MS(200));
        pair.listener.reads = false;
        let (next, _, at_listener) = state(&mut pair);
        let remote = pair.caller.address;
        for i in 0..10 * window as u32 {
            let stamp = Timestamp::from_micros((pair.now - EPOCH).as_micros() as u32);
            let seq = next.plus(i * step);
            pair.inject(Side::Listener, remote, forged_data(seq, stamp, at_listener, &[0; 1_456]));
            let statistics = pair.statistics(Side::Listener);
            assert!(statistics.receive_buffer_packets as usize <= window);
            assert!(statistics.receive_buffer_bytes <= (window * 1_456) as u64);
            pair.run_for(MS(1));
        }
        assert_eq!(pair.listener.closed(), None);
    }
}

#[test]
fn data_before_the_response_does_not_fill_the_memory() {
    let mut pair = Pair::symmetric(1, link());
    let isn = Rc::new(Cell::new(None));
    let seen = Rc::clone(&isn);
    pair.drop_where(move |side, datagram| {
        let conclusion =
            handshake(datagram).filter(|hs| hs.request == HandshakeRequest::Conclusion);
        seen.set(conclusion.map(|hs| hs.isn).or(seen.get()));
        side == Side::Listener && kind(datagram) == Kind::Handshake && seen.get().is_some()
    });
    pair.call(latency(2_000), latency(2_000));
    pair.run_for(MS(100));
    assert!(!pair.caller.connected && pair.listener.connection.is_some());
    let isn = isn.get().expect("a conclusion");
    let dest = pair.info(Side::Caller).socket_id;
    let remote = pair.listener.address;
    for i in 0..100_000 {
        let data = forged_data(isn.plus(i), Timestamp::default(), dest, &[0; 100]);
        pair.inject(Side::Caller, remote, data);
    }
    pair.untap();
    pair.run_for(MS(500));
    assert!(pair.caller.connected);
    let kept = pair.statistics(Side::Caller).packets_received;
    assert!((1..=64).contains(&kept), "{kept}");
}

/// If every second packet is lost, loss lists have their greatest length.
#[test]
fn no_datagram_exceeds_the_mss() {
    for (mss, ipv6) in [(1_500, false), (1_500, true), (576, false), (576, true)] {
        let periodic = RetransmitAlgorithm::Efficient;
        let config = latency(2_000).with_mss(mss).expect("in range");
        let config = config.with_retransmit_algorithm(periodic);
        let headers = if ipv6 { 48 } else { 28 };
        let mut pair = Pair::symmetric(1, link());
        if ipv6 {
            pair = pair.over_ipv6();
        }
        pair.connect(config.clone(), config);
        let record = pair.record();
        let size = pair.info(Side::Caller).max_payload;
        let mut count = 0;
        let tapped = record.clone();
        pair.tap(move |now, side, datagram| {
            tapped.push(now, side, &datagram);
            count += u32::from(kind(&datagram) == Kind::Data);
            let lost = kind(&datagram) == Kind::Data && count.is_multiple_of(2);
            if lost { Vec::new() } else { vec![datagram] }
        });
        for side in BOTH {
            pair.set_link(side, link().with_loss(Loss::Random(0.3)).expect("a share"));
        }
        for _ in 0..3_000 {
            pair.send(Side::Caller, vec![0; size], Default::default()).expect("room");
        }
        pair.run_for(SECS(3));
        for side in BOTH {
            let longest = record.from(side).iter().map(|(_, datagram)| datagram.len()).max();
            let longest = longest.expect("some") + headers;
            assert!(longest <= mss, "{side:?} sends {longest} bytes, more than {mss}");
        }
        let naks = record.of_kind(Side::Listener, Kind::Nak);
        let longest = naks.iter().map(|(_, datagram)| datagram.len()).max().expect("reports");
        assert!(longest + headers > mss - 8, "the room is used: {longest}");
    }
}

/// One address with a valid cookie calls with 100,000 socket IDs.
#[test]
fn callers_beyond_the_backlog_are_not_kept() {
    let mut pair = Pair::symmetric(1, link()).with_listener(|config| config.backlog = 100);
    pair.accepts = false;
    let record = pair.record();
    pair.call(latency(120), latency(120));
    pair.run_for(MS(30));
    let (_, _, conclusion) = record.handshakes(Side::Caller).pop().expect("a conclusion");
    let remote = pair.caller.address;
    for name in 1..=100_000u32 {
        let mut forged = conclusion.clone();
        forged[40..44].copy_from_slice(&name.to_be_bytes());
        pair.inject(Side::Listener, remote, forged);
    }
    assert_eq!(pair.listener.incoming.len(), 100);
    assert_eq!(pair.listener.endpoint.connections().count(), 0);
    pair.run_for(SECS(7));
    assert_eq!(pair.listener.gone.len(), 100, "callers that do not repeat their call are removed");
    assert_eq!(pair.listener.endpoint.poll_timeout(), WakeUp::Never);
}

/// A caller with a latency of a minute fills the memory of the endpoint, and is not served beyond.
#[test]
fn a_caller_with_a_long_latency_does_not_fill_the_memory() {
    const LIMIT: u64 = 1_000_000;
    let mut pair = Pair::symmetric(1, link()).with_listener(|config| config.receive_memory = LIMIT);
    pair.connect(latency(60_000), latency(120));
    for _ in 0..30 {
        pair.stream(Side::Caller, 100, MS(1));
        let statistics = pair.statistics(Side::Listener);
        let packets = u64::from(statistics.receive_buffer_packets);
        let held = statistics.receive_buffer_bytes + 128 * packets;
        assert!(held <= LIMIT + LIMIT / 64, "{held} bytes");
    }
    let statistics = pair.statistics(Side::Listener);
    assert!(statistics.receive_buffer_packets > 400 && statistics.packets_ignored > 1_000);
    assert!(pair.listener.closed.is_empty());
    let received = statistics.receive_buffer_packets as usize;
    pair.run_for(SECS(61));
    assert!(pair.delivered(Side::Caller).len() >= received, "what was stored is delivered");
    assert_eq!(pair.statistics(Side::Listener).receive_buffer_bytes, 0);
}
