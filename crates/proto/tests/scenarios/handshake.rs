//! The handshake of caller and listener: loss, repetition, long round trips, negotiation.

use punctual_netem::{LinkConfig, Reorder};
use punctual_proto::{Config, RawStreamId, SocketId};
use punctual_wire::HandshakeRequest;

use crate::datagram::{Kind, handshake, kind};
use crate::pair::{Pair, Side};
use crate::record::Record;
use crate::{MS, SECS, latency, link, lossy};

#[test]
fn a_call_takes_two_round_trips() {
    let mut pair = Pair::symmetric(1, link());
    let record = pair.record();
    pair.connect(latency(120), latency(120));
    assert_eq!(pair.elapsed(), MS(40));
    pair.run_for(SECS(3));
    let [there, back] = [Side::Caller, Side::Listener].map(|side| record.handshakes(side));
    let requests: Vec<_> = there.iter().map(|(at, hs, _)| (*at, hs.request)).collect();
    let (induction, conclusion) = (HandshakeRequest::Induction, HandshakeRequest::Conclusion);
    assert_eq!(requests, [(MS(0), induction), (MS(20), conclusion)]);
    let responses: Vec<_> = back.iter().map(|(at, hs, _)| (*at, hs.request)).collect();
    assert_eq!(responses, [(MS(10), induction), (MS(30), conclusion)]);
    assert_eq!(back[0].2.len(), there[0].2.len(), "nothing is amplified");
    for (caller, listener) in [(&there[0].1, &back[0].1), (&there[1].1, &back[1].1)] {
        assert_eq!(caller.isn, listener.isn, "both directions begin with the caller's number");
    }
}

/// An application that accepts a single caller stops listening afterwards.
#[test]
fn a_lost_answer_is_repeated_although_the_listener_has_closed() {
    let mut pair = Pair::symmetric(1, link());
    let mut answers = 0;
    pair.drop_where(move |side, datagram| {
        let answer = side == Side::Listener
            && handshake(datagram).is_some_and(|h| h.request == HandshakeRequest::Conclusion);
        answers += u32::from(answer);
        answer && answers == 1
    });
    pair.call(latency(120), latency(120));
    pair.run_while(SECS(1), |pair| pair.listener.connection.is_none());
    pair.listener.endpoint.listen(None);
    assert!(!pair.caller.connected);
    pair.run_while(SECS(1), |pair| !pair.caller.connected);
    assert!(pair.caller.connected, "{:?}", pair.caller.closed());
    pair.stream(Side::Caller, 100, MS(2));
    pair.run_for(SECS(1));
    pair.assert_complete(Side::Caller);
}

/// The bytes that gosrt, libsrt and others require.
#[test]
fn the_extensions_satisfy_strict_peers() {
    let mut pair = Pair::symmetric(1, link());
    let record = pair.record();
    let plain = latency(120).with_path_update(false).with_timed_requests(false);
    pair.connect(plain, latency(120));
    for (side, command) in [(Side::Caller, 1), (Side::Listener, 2)] {
        let (_, conclusion, datagram) = record.handshakes(side).pop().expect("a conclusion");
        assert_eq!(conclusion.version, 5);
        assert_eq!(conclusion.extension_field, 1, "HSREQ or HSRSP and nothing else");
        // 16 bytes of header, 48 of handshake, then: command, 3 words, version, flags, latencies.
        assert_eq!(datagram[64..72], [0, command, 0, 3, 0, 1, 5, 5]);
        assert_eq!(datagram[72..76], [0, 0, 0, 0xBF]);
        assert_eq!(datagram[76..], [0, 120, 0, 120]);
        assert_eq!(conclusion.socket_id.value() & 0xC000_0000, 0, "neither a group's nor negative");
    }
    let (_, induction, datagram) = record.handshakes(Side::Caller).remove(0);
    assert_eq!((induction.version, induction.extension_field, induction.cookie), (4, 2, 0));
    assert_eq!(datagram.len(), 64);
    // The peer's address, its bytes reversed within the word.
    assert_eq!(datagram[48..52], [2, 2, 0, 192]);
}

/// Each end sends the other the address at which it sees it, IPv6 in full.
#[test]
fn handshakes_carry_the_peers_address_of_either_family() {
    for ipv6 in [false, true] {
        let mut pair = Pair::symmetric(1, link());
        if ipv6 {
            pair = pair.over_ipv6();
        }
        let record = pair.record();
        pair.connect(latency(120), latency(120));
        for side in [Side::Caller, Side::Listener] {
            let there = pair.node(side.other()).address.ip();
            let handshakes = record.handshakes(side);
            assert_eq!(handshakes.len(), 2);
            assert!(handshakes.iter().all(|(_, handshake, _)| handshake.peer_ip.to_ip() == there));
        }
    }
}

/// Path updates are announced by a flag, because gosrt refuses handshakes with an unknown
/// extension, while all implementations ignore unknown flags. A listener sets it only if the caller
/// did.
#[test]
fn path_updates_are_offered_by_a_flag_and_granted_if_offered() {
    for (ours, theirs) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut pair = Pair::symmetric(1, link());
        let record = pair.record();
        pair.connect(latency(120).with_path_update(ours), latency(120).with_path_update(theirs));
        let flags = |side| record.handshakes(side).pop().expect("a conclusion").2[72..76].to_vec();
        let expected = |set: bool| [if set { 0x5C } else { 0x1C }, 0, 0, 0xBF];
        assert_eq!(flags(Side::Caller), expected(ours));
        assert_eq!(flags(Side::Listener), expected(ours && theirs));
    }
}

#[test]
fn any_handshake_packet_may_be_lost() {
    for lost in 0..4 {
        let mut pair = Pair::symmetric(1, link());
        let mut seen = 0;
        pair.drop_where(move |_, datagram| {
            seen += usize::from(kind(datagram) == Kind::Handshake);
            kind(datagram) == Kind::Handshake && seen == lost + 1
        });
        pair.connect(latency(120), latency(120));
        // The first interval of an induction; for a conclusion, one and a half round trips.
        let interval = if lost < 2 { MS(50) } else { MS(30) };
        assert_eq!(pair.elapsed(), MS(40) + interval, "packet {lost}");
        pair.untap();
        pair.stream(Side::Caller, 100, MS(2));
        pair.run_for(MS(500));
        pair.assert_complete(Side::Caller);
        assert_eq!(pair.listener.endpoint.connections().count(), 1);
    }
}

/// The answer to the second induction gives the time since that one.
#[test]
fn a_round_trip_is_measured_although_the_induction_was_repeated() {
    let mut pair = Pair::symmetric(1, LinkConfig::default().with_delay(MS(30)));
    let (mut requests, record) = (0, Record::default());
    let writer = record.clone();
    pair.tap(move |at, side, datagram| {
        writer.push(at, side, &datagram);
        requests += usize::from(side == Side::Caller);
        // The first induction and the first conclusion.
        if side == Side::Caller && [1, 3].contains(&requests) { Vec::new() } else { vec![datagram] }
    });
    pair.connect(latency(120), latency(120));
    let times: Vec<_> = record.handshakes(Side::Caller).iter().map(|(at, ..)| *at).collect();
    // The round-trip time is 60 ms: its answer comes at 110 ms, and the repetition 90 ms later.
    assert_eq!(times, [MS(0), MS(50), MS(110), MS(200)]);
}

/// Repetitions cost a listener little, but their number is limited.
#[test]
fn a_long_round_trip_makes_few_repetitions() {
    let mut pair = Pair::symmetric(1, LinkConfig::default().with_delay(MS(150)));
    let record = pair.record();
    pair.connect(latency(120), latency(120));
    let requests: Vec<_> =
        record.handshakes(Side::Caller).iter().map(|(at, hs, _)| (*at, hs.request)).collect();
    let (induction, conclusion) = (HandshakeRequest::Induction, HandshakeRequest::Conclusion);
    let inductions = [0, 50, 150].map(|at| (MS(at), induction));
    let conclusions = [300, 550].map(|at| (MS(at), conclusion));
    assert_eq!(requests, [&inductions[..], &conclusions[..]].concat());
}

#[test]
fn bad_links_delay_a_call_but_do_not_make_it_fail() {
    let late = Reorder::Late { share: 0.3, by: MS(300) };
    for seed in 0..20 {
        let bad = lossy(0.4)
            .with_reorder(late)
            .and_then(|link| link.with_duplicate(0.5))
            .expect("shares");
        let mut pair = Pair::symmetric(seed, bad);
        let config = latency(120).with_connect_timeout(SECS(20)).expect("in range");
        pair.connect(config.clone(), config);
        pair.set_link(Side::Caller, link());
        pair.set_link(Side::Listener, link());
        pair.run_for(SECS(2));
        for side in [Side::Caller, Side::Listener] {
            pair.stream(side, 100, MS(2));
            pair.run_for(SECS(1));
            assert_eq!(pair.delivered(side).len(), 100);
            assert_eq!(pair.node(side).endpoint.connections().count(), 1);
        }
        assert!(pair.listener.incoming.is_empty() && pair.listener.gone.is_empty());
    }
}

/// A caller repeats its conclusion until it is answered, so that it arrives several times over a
/// long path.
#[test]
fn a_long_round_trip_makes_one_connection_and_an_exact_time_base() {
    let mut pair = Pair::symmetric(1, LinkConfig::default().with_delay(MS(400)));
    let record = pair.record();
    pair.connect(latency(1_500), latency(1_500));
    assert_eq!(pair.elapsed(), MS(1_600));
    assert!(record.handshakes(Side::Caller).len() > 4, "repeated every 250 ms");
    for side in [Side::Caller, Side::Listener] {
        pair.stream(side, 500, MS(2));
        pair.run_for(SECS(3));
        pair.assert_complete(side);
        assert!(pair.delays(side).iter().all(|&delay| delay == MS(1_900)));
        assert_eq!(pair.node(side).endpoint.connections().count(), 1);
    }
}

#[test]
fn a_repeated_conclusion_gets_the_same_answer() {
    let mut pair = Pair::symmetric(1, link());
    let record = pair.record();
    pair.connect(latency(120), latency(120));
    let (_, _, conclusion) = record.handshakes(Side::Caller).pop().expect("a conclusion");
    let remote = pair.caller.address;
    for _ in 0..5 {
        pair.run_for(MS(700));
        pair.inject(Side::Listener, remote, conclusion.clone());
        pair.run_for(MS(100));
    }
    let answers = record.handshakes(Side::Listener);
    assert_eq!(answers.len(), 2 + 5);
    for (_, answer, _) in &answers[2..] {
        assert_eq!(*answer, answers[1].1);
    }
    assert_eq!(pair.listener.endpoint.connections().count(), 1);
    assert_eq!((pair.caller.closed(), pair.listener.closed()), (None, None));
    pair.stream(Side::Caller, 100, MS(2));
    pair.run_for(MS(500));
    pair.assert_complete(Side::Caller);
}

#[test]
fn data_that_overtakes_the_response_is_kept() {
    let mut pair = Pair::symmetric(1, link());
    let mut responses = 0;
    pair.drop_where(move |side, datagram| {
        let response = side == Side::Listener && kind(datagram) == Kind::Handshake;
        responses += usize::from(response);
        response && (2..=4).contains(&responses)
    });
    pair.call(latency(400), latency(400));
    pair.run_while(SECS(1), |pair| pair.listener.connection.is_none());
    pair.stream(Side::Listener, 60, MS(2));
    assert!(!pair.caller.connected);
    pair.run_for(SECS(1));
    assert!(pair.caller.connected);
    pair.assert_complete(Side::Listener);
    let delays = pair.delays(Side::Listener);
    assert!(delays.iter().all(|&delay| delay == MS(410)), "{delays:?}");
}

#[test]
fn many_simultaneous_calls_make_as_many_connections() {
    let mut pair = Pair::symmetric(1, lossy(0.1));
    pair.connect(latency(120), latency(120));
    let remote = pair.listener.address;
    let now = pair.now;
    let calls: Vec<_> = (0..100)
        .map(|_| pair.caller.endpoint.connect(now, remote, latency(120)).expect("room"))
        .collect();
    pair.run_for(SECS(2));
    assert_eq!(pair.listener.endpoint.connections().count(), 101);
    let mut ids: Vec<SocketId> = calls
        .iter()
        .map(|&call| pair.caller.endpoint.connections().get(call).expect("held").info())
        .inspect(|info| assert!(info.connected))
        .flat_map(|info| [info.socket_id, info.peer_socket_id])
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 200, "all socket IDs differ");
}

#[test]
fn the_larger_latency_counts_in_each_direction() {
    let config = |receive, peer| {
        Config::default()
            .with_receive_latency(MS(receive))
            .and_then(|config| config.with_peer_latency(MS(peer)))
            .expect("in range")
    };
    for (caller, listener, there, back) in [
        ((120, 0), (120, 0), 120, 120),
        ((120, 0), (200, 0), 200, 120),
        ((200, 0), (120, 0), 120, 200),
        ((120, 300), (120, 0), 300, 120),
        ((120, 0), (120, 300), 120, 300),
        ((50, 60), (70, 40), 70, 50),
        ((0, 0), (0, 0), 0, 0),
        ((65_535, 0), (0, 65_535), 0, 65_535),
    ] {
        let mut pair = Pair::symmetric(1, link());
        pair.connect(config(caller.0, caller.1), config(listener.0, listener.1));
        let [at_caller, at_listener] = [Side::Caller, Side::Listener].map(|side| pair.info(side));
        assert_eq!((at_caller.receive_latency, at_caller.peer_latency), (MS(back), MS(there)));
        assert_eq!((at_listener.receive_latency, at_listener.peer_latency), (MS(there), MS(back)));
        assert_eq!(at_listener.caller_latency, Some(MS(caller.0.max(caller.1))));
        assert_eq!(at_caller.caller_latency, None);
        for (side, ms) in [(Side::Caller, there), (Side::Listener, back)] {
            assert!(pair.send_next(side));
            pair.run_for(MS(ms + 50));
            assert_eq!(pair.delays(side), [MS(10 + ms)], "{side:?}");
        }
    }
}

#[test]
fn the_stream_id_arrives_as_it_was_sent() {
    let longest = "ä".repeat(256);
    assert_eq!(longest.len(), 512);
    let texts = ["", "a", "abcd", "#!::u=admin,r=live/été", "日本の放送 📡", &longest];
    let others = [b"caf\xE9\0\x80".to_vec(), vec![0xFF; 512]];
    for stream_id in texts.map(RawStreamId::from).into_iter().chain(others.map(RawStreamId::from)) {
        let mut pair = Pair::symmetric(1, link());
        pair.accepts = false;
        let config = Config::default().with_stream_id(stream_id.clone());
        pair.call(config.expect("short enough"), Config::default());
        pair.run_for(MS(100));
        let incoming = pair.listener.incoming.pop_front().expect("a caller");
        assert_eq!(incoming.stream_id, stream_id);
        assert_eq!(incoming.path, pair.caller.address);
        assert_eq!(incoming.peer_version, 0x01_05_05);
        pair.listener.connection =
            Some(pair.listener.endpoint.accept(pair.now, incoming.id, None).expect("waits"));
        pair.run_for(MS(100));
        assert_eq!(pair.info(Side::Listener).stream_id, stream_id);
        assert_eq!(pair.info(Side::Caller).stream_id, stream_id);
    }
}

#[test]
fn the_application_may_take_long_to_accept() {
    let mut pair = Pair::symmetric(1, link());
    pair.accepts = false;
    pair.call(latency(120), latency(120));
    pair.run_for(MS(2_500));
    assert_eq!(pair.listener.incoming.len(), 1, "one event for all repetitions");
    let incoming = pair.listener.incoming.pop_front().expect("a caller");
    // With a configuration for this stream ID.
    let accepted = pair.listener.endpoint.accept(pair.now, incoming.id, Some(latency(700)));
    pair.listener.connection = Some(accepted.expect("waits"));
    pair.run_for(MS(100));
    assert!(pair.caller.connected);
    pair.stream(Side::Caller, 100, MS(2));
    pair.run_for(SECS(1));
    pair.assert_complete(Side::Caller);
    assert!(pair.delays(Side::Caller).iter().all(|&delay| delay == MS(710)));
}

#[test]
fn a_restarted_caller_on_the_same_port_is_a_new_caller() {
    let mut pair = Pair::symmetric(1, link());
    pair.connect(latency(120), latency(120));
    // The program was killed and restarted: no shutdown, another socket ID.
    let first = pair.listener.connection;
    pair.caller.connected = false;
    pair.call(latency(120), latency(120));
    pair.run_for(MS(100));
    assert!(pair.caller.connected);
    assert_ne!(pair.listener.connection, first);
    pair.stream(Side::Caller, 100, MS(2));
    pair.run_for(MS(500));
    pair.assert_complete(Side::Caller);
}

#[test]
fn a_handshake_survives_a_blackout() {
    for dark_from in [5, 15, 25, 35] {
        let mut pair = Pair::symmetric(1, link());
        pair.call(latency(120), latency(120));
        pair.run_for(MS(dark_from));
        pair.black_out(&[Side::Caller, Side::Listener], MS(1_500));
        pair.run_for(MS(400));
        assert!(pair.caller.connected, "dark from {dark_from} ms on");
        pair.stream(Side::Caller, 100, MS(2));
        pair.run_for(MS(500));
        pair.assert_complete(Side::Caller);
        assert_eq!(pair.listener.endpoint.connections().count(), 1);
    }
}
