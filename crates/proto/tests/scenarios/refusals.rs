//! Calls that fail: no answer, rejections and their codes, incompatible peers, wrong cookies.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;

use punctual_proto::{
    AcceptError, CloseReason, Config, ConnectError, RejectReason, SendError, SendOptions, WakeUp,
};
use punctual_wire::{Extension, GroupExtension, Handshake, HandshakeRequest, HsExtension, HsFlags};

use crate::datagram::{Kind, edit_handshake, handshake, kind};
use crate::node::numbered;
use crate::pair::{Pair, Side};
use crate::{MS, SECS, latency, link, lossy};

/// A change to a handshake in flight.
type Edit = Box<dyn Fn(&mut Handshake)>;

/// Calls through a tap that changes every conclusion from `side`, and runs for ten seconds.
fn call_with(side: Side, edit: impl Fn(&mut Handshake) + 'static) -> Pair {
    let mut pair = Pair::symmetric(1, link());
    pair.tap(move |_, from, datagram| {
        vec![edit_handshake(datagram, |handshake| {
            if from == side && handshake.request == HandshakeRequest::Conclusion {
                edit(handshake);
            }
        })]
    });
    pair.call(latency(120), latency(120));
    pair.run_for(SECS(10));
    pair
}

/// Changes the HSREQ or HSRSP of a conclusion.
fn with_extension(edit: impl Fn(&mut HsExtension)) -> impl Fn(&mut Handshake) {
    move |handshake| {
        for extension in &mut handshake.extensions {
            if let Extension::HsReq(hs) | Extension::HsRsp(hs) = extension {
                edit(hs);
            }
        }
    }
}

fn with_added(added: Extension) -> impl Fn(&mut Handshake) {
    move |handshake| handshake.extensions.push(added.clone())
}

#[test]
fn a_call_without_an_answer_times_out() {
    for seconds in [1, 3, 10] {
        let mut pair = Pair::symmetric(1, lossy(1.0));
        let config = Config::default().with_connect_timeout(SECS(seconds)).expect("in range");
        let record = pair.record();
        pair.call(config, Config::default());
        let id = pair.caller.connection.expect("a call");
        let refused = pair.send(Side::Caller, numbered(0), SendOptions::default());
        assert_eq!(refused, Err(SendError::NotConnected));
        assert!(pair.run_while(SECS(60), |pair| pair.caller.closed().is_none()));
        assert_eq!(pair.elapsed(), SECS(seconds));
        let reason = CloseReason::ConnectTimeout(SECS(seconds));
        assert_eq!(pair.caller.closed(), Some(&reason));
        // At 0, 50, 150 and 350 ms, and then every 250 ms.
        let requests = seconds * 4 + 2;
        assert_eq!(record.len() as u64, requests);
        let refused = pair.send(Side::Caller, numbered(0), SendOptions::default());
        assert_eq!(refused, Err(SendError::Closed(reason)));
        let now = pair.now;
        pair.caller.endpoint.connection(now, id).expect("not released").release();
        assert_eq!(pair.caller.endpoint.connections().count(), 0);
        pair.run_for(SECS(5));
        assert_eq!(record.len() as u64, requests, "no packets afterwards");
    }
}

#[test]
fn invalid_addresses_cannot_be_called() {
    let mut pair = Pair::symmetric(1, link());
    for address in ["192.0.2.1:0", "0.0.0.0:9000", "239.1.2.3:9000", "[::]:9000", "[ff02::1]:1"] {
        let remote: SocketAddr = address.parse().expect("an address");
        let refused = pair.caller.endpoint.connect(pair.now, remote, Config::default());
        assert_eq!(refused, Err(ConnectError::InvalidAddress(remote.into())));
    }
}

#[test]
fn the_application_can_reject_a_caller_with_its_code() {
    for reason in [
        RejectReason::NOT_FOUND,
        RejectReason::UNAUTHORIZED,
        RejectReason::FALLBACK,
        RejectReason::RESOURCE,
        RejectReason::from_api(2_345).expect("in range"),
    ] {
        let mut pair = Pair::symmetric(1, link());
        pair.accepts = false;
        let record = pair.record();
        pair.call(latency(120), latency(120));
        pair.run_for(MS(100));
        let incoming = pair.listener.incoming.pop_front().expect("a caller");
        pair.listener.endpoint.reject(incoming.id, reason);
        pair.run_for(SECS(1));
        assert_eq!(pair.caller.closed(), Some(&CloseReason::Rejected(reason)));
        assert_eq!(pair.listener.endpoint.connections().count(), 0);
        let (_, rejection, datagram) = record.handshakes(Side::Listener).pop().expect("an answer");
        assert_eq!(rejection.request, HandshakeRequest::Rejection(reason));
        assert_eq!(datagram.len(), 64, "no extensions");
        assert_eq!(datagram[12..16], incoming.peer_socket_id.value().to_be_bytes());
        let gone = pair.listener.endpoint.accept(pair.now, incoming.id, None);
        assert_eq!(gone, Err(AcceptError::Gone));
    }
}

#[test]
fn a_rejection_that_was_lost_is_repeated_without_another_decision() {
    let mut pair = Pair::symmetric(1, link());
    pair.accepts = false;
    pair.call(latency(120), latency(120));
    pair.run_for(MS(100));
    let incoming = pair.listener.incoming.pop_front().expect("a caller");
    let lost = Cell::new(0);
    pair.drop_where(move |from, _| from == Side::Listener && lost.replace(lost.get() + 1) < 2);
    pair.listener.endpoint.reject(incoming.id, RejectReason::NOT_FOUND);
    pair.run_for(SECS(2));
    assert_eq!(pair.caller.closed(), Some(&CloseReason::Rejected(RejectReason::NOT_FOUND)));
    assert!(pair.listener.incoming.is_empty(), "the application has decided already");
}

#[test]
fn a_listener_rejects_incompatible_callers_with_the_reason() {
    let group = GroupExtension { group_id: 0x4000_0001, kind: 1, flags: 0, weight: 0 };
    let cases: Vec<(RejectReason, Edit)> = vec![
        (RejectReason::ROGUE, Box::new(with_extension(|hs| hs.version = 0x01_02_00))),
        (
            RejectReason::MESSAGE_API,
            Box::new(with_extension(|hs| hs.flags = hs.flags | HsFlags::STREAM)),
        ),
        (RejectReason::CONGESTION, Box::new(with_added(Extension::Congestion("file".to_owned())))),
        (RejectReason::UNSECURE, Box::new(with_added(Extension::KmReq(vec![0; 56])))),
        (RejectReason::FILTER, Box::new(with_added(Extension::Filter("xor,cols:10".to_owned())))),
        (RejectReason::GROUP, Box::new(with_added(Extension::Group(group)))),
        (RejectReason::ROGUE, Box::new(|handshake| handshake.extensions.clear())),
        (RejectReason::ROGUE, Box::new(|handshake| handshake.extension_field = 0)),
        (RejectReason::ROGUE, Box::new(|handshake| handshake.mss = 1_501)),
        (RejectReason::VERSION, Box::new(|handshake| handshake.version = 6)),
    ];
    for (i, (reason, edit)) in cases.into_iter().enumerate() {
        let pair = call_with(Side::Caller, edit);
        assert_eq!(pair.caller.closed(), Some(&CloseReason::Rejected(reason)), "case {i}");
        assert_eq!(pair.listener.endpoint.connections().count(), 0, "case {i}");
        assert!(pair.listener.gone.is_empty(), "case {i}: no event for the application");
        // Keys are checked when the application accepts the caller, since it may give other
        // options; the refusal is the result of that call.
        let refused = pair.listener.refused.first();
        let expected = (pair.caller.address, reason);
        assert_eq!(
            refused,
            Some(&expected).filter(|_| reason != RejectReason::UNSECURE),
            "case {i}"
        );
    }
}

/// A caller of SRT 1.2 or before sends the same induction, and a conclusion of version 4 without
/// extensions. It does not understand a rejection, but it understands a shutdown.
#[test]
fn a_caller_with_handshake_version_4_is_refused_by_a_shutdown() {
    let mut pair = Pair::symmetric(1, link());
    let record = pair.record();
    pair.listener.endpoint.listen(Some(latency(120)));
    let remote = pair.caller.address;
    let mut datagram = vec![0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0];
    let words: [u32; 8] = [4, 2, 0x1234_5678, 1_500, 8_192, 1, 0x2A00_0001, 0];
    datagram.extend(words.iter().flat_map(|word| word.to_be_bytes()));
    datagram.extend([1, 2, 0, 192].iter().chain(&[0; 12]));
    assert_eq!(datagram.len(), 64);
    pair.inject(Side::Listener, remote, datagram.clone());
    let (_, induction, _) = record.handshakes(Side::Listener).remove(0);
    datagram[36..40].fill(0xFF);
    datagram[44..48].copy_from_slice(&induction.cookie.to_be_bytes());
    for repetition in 1..4 {
        pair.inject(Side::Listener, remote, datagram.clone());
        let sent = record.from(Side::Listener);
        assert_eq!(sent.len(), 1 + repetition, "each conclusion is answered");
        let (_, answer) = sent.last().expect("an answer");
        assert_eq!(kind(answer), Kind::Shutdown);
        assert_eq!(answer[12..16], 0x2A00_0001_u32.to_be_bytes());
    }
    assert_eq!(pair.listener.refused[0], (remote, RejectReason::VERSION));
    assert_eq!(pair.listener.endpoint.connections().count(), 0);
    assert!(pair.listener.endpoint.poll_timeout() == WakeUp::Never, "nothing is remembered");
    // Without the cookie there is no answer at all.
    datagram[47] ^= 1;
    let before = record.len();
    pair.inject(Side::Listener, remote, datagram);
    assert_eq!(record.len(), before);
}

#[test]
fn harmless_differences_in_a_handshake_are_accepted() {
    let unknown = Extension::Unknown { command: 99, body: vec![1, 2, 3, 4] };
    let plain = HsFlags::TSBPD_SEND | HsFlags::TSBPD_RECEIVE;
    let edits: Vec<Edit> = vec![
        Box::new(with_added(Extension::Congestion("live".to_owned()))),
        Box::new(with_added(unknown)),
        Box::new(with_extension(|hs| hs.version = 0x01_03_00)),
        Box::new(with_extension(move |hs| hs.flags = plain)),
        Box::new(|handshake| handshake.extensions.reverse()),
        Box::new(|handshake| handshake.mss = 1_360),
        Box::new(|handshake| handshake.flow_window = 8_192),
        Box::new(|handshake| handshake.encryption = 2),
    ];
    for (i, edit) in edits.into_iter().enumerate() {
        let edit = Rc::new(edit);
        for side in [Side::Caller, Side::Listener] {
            let edit = Rc::clone(&edit);
            let mut pair = call_with(side, move |handshake| edit(handshake));
            assert_eq!(pair.caller.closed(), None, "case {i}");
            pair.stream(Side::Caller, 100, MS(2));
            pair.run_for(MS(500));
            pair.assert_complete(Side::Caller);
        }
    }
}

#[test]
fn a_caller_refuses_an_incompatible_response_and_closes() {
    let cases: Vec<(RejectReason, Edit)> = vec![
        (RejectReason::ROGUE, Box::new(with_extension(|hs| hs.version = 0x01_02_00))),
        (
            RejectReason::MESSAGE_API,
            Box::new(with_extension(|hs| hs.flags = hs.flags | HsFlags::STREAM)),
        ),
        (RejectReason::CONGESTION, Box::new(with_added(Extension::Congestion("file".to_owned())))),
        (RejectReason::ROGUE, Box::new(|handshake| handshake.extensions.clear())),
        (RejectReason::ROGUE, Box::new(|handshake| handshake.mss = 9_000)),
        (RejectReason::ROGUE, Box::new(|handshake| handshake.version = 4)),
    ];
    for (i, (reason, edit)) in cases.into_iter().enumerate() {
        let mut pair = call_with(Side::Listener, edit);
        assert_eq!(pair.caller.closed(), Some(&CloseReason::Incompatible(reason)), "case {i}");
        pair.release(Side::Caller);
        assert_eq!(pair.caller.endpoint.connections().count(), 0);
    }

    // The listener's connection, which is established by then, gets a shutdown.
    let mut pair = Pair::symmetric(1, link());
    pair.tap(|_, side, datagram| {
        vec![edit_handshake(datagram, |handshake| {
            if side == Side::Listener && handshake.request == HandshakeRequest::Conclusion {
                handshake.extensions.clear();
            }
        })]
    });
    pair.call(latency(120), latency(120));
    assert!(pair.run_while(SECS(1), |pair| pair.caller.closed().is_none()));
    pair.release(Side::Caller);
    pair.run_for(MS(20));
    assert_eq!(pair.listener.closed(), Some(&CloseReason::Peer));
}

#[test]
fn a_listener_with_an_old_or_invalid_induction_is_refused() {
    let cases: [(RejectReason, Edit); 3] = [
        // UDT, and SRT before 1.3.0.
        (RejectReason::VERSION, Box::new(|handshake| handshake.version = 4)),
        (RejectReason::ROGUE, Box::new(|handshake| handshake.extension_field = 2)),
        (RejectReason::ROGUE, Box::new(|handshake| handshake.mss = 1_501)),
    ];
    for (reason, edit) in cases {
        let mut pair = Pair::symmetric(1, link());
        pair.tap(move |_, side, datagram| {
            vec![edit_handshake(datagram, |handshake| {
                if side == Side::Listener {
                    edit(handshake);
                }
            })]
        });
        pair.call(latency(120), latency(120));
        pair.run_for(MS(20));
        assert_eq!(pair.caller.closed(), Some(&CloseReason::Incompatible(reason)));
    }
}

#[test]
fn the_minimum_version_is_checked_at_both_ends() {
    let newer = Config::default().with_min_version(0x01_06_00);
    let mut pair = Pair::symmetric(1, link());
    pair.call(Config::default(), newer.clone());
    pair.run_for(SECS(1));
    assert_eq!(pair.caller.closed(), Some(&CloseReason::Rejected(RejectReason::VERSION)));

    let mut pair = Pair::symmetric(1, link());
    pair.call(newer, Config::default());
    pair.run_for(SECS(1));
    assert_eq!(pair.caller.closed(), Some(&CloseReason::Incompatible(RejectReason::VERSION)));

    let mut pair = Pair::symmetric(1, link());
    let same = Config::default().with_min_version(0x01_05_05);
    pair.connect(same.clone(), same);
    assert_eq!(pair.info(Side::Caller).peer_version, 0x01_05_05);
    assert_eq!(pair.info(Side::Listener).peer_version, 0x01_05_05);
}

#[test]
fn a_caller_beyond_the_backlog_is_rejected() {
    let mut pair = Pair::symmetric(1, link()).with_listener(|config| config.backlog = 2);
    pair.accepts = false;
    let remote = pair.listener.address;
    pair.call(latency(120), latency(120));
    let now = pair.now;
    let more: Vec<_> = (0..2)
        .map(|_| pair.caller.endpoint.connect(now, remote, latency(120)).expect("room"))
        .collect();
    pair.run_for(MS(100));
    assert_eq!(pair.listener.incoming.len(), 2);
    let refused = CloseReason::Rejected(RejectReason::BACKLOG);
    assert_eq!(pair.caller.closed.get(&more[1]), Some(&refused));
    assert_eq!(pair.caller.closed.len(), 1);
    let incoming = pair.listener.incoming.pop_front().expect("a caller");
    pair.listener.endpoint.accept(pair.now, incoming.id, None).expect("waits");
    pair.run_for(MS(100));
    assert!(pair.caller.connected);
}

#[test]
fn a_caller_beyond_the_connection_limit_is_rejected() {
    let mut pair = Pair::symmetric(1, link()).with_listener(|config| config.max_connections = 1);
    pair.connect(latency(120), latency(120));
    let remote = pair.listener.address;
    let second = pair.caller.endpoint.connect(pair.now, remote, latency(120)).expect("room");
    pair.run_for(MS(100));
    let refused = CloseReason::Rejected(RejectReason::RESOURCE);
    assert_eq!(pair.caller.closed.get(&second), Some(&refused));
    let caller = pair.caller.address;
    let full = pair.listener.endpoint.connect(pair.now, caller, latency(120));
    assert_eq!(full, Err(ConnectError::TooManyConnections(1)));
}

#[test]
fn a_wrong_cookie_is_ignored_without_an_answer() {
    let mut pair = Pair::symmetric(1, link());
    let record = pair.record();
    pair.connect(latency(120), latency(120));
    let (_, _, conclusion) = record.handshakes(Side::Caller).pop().expect("a conclusion");
    let before = record.len();
    let other_host: SocketAddr = "203.0.113.7:9000".parse().expect("an address");
    let other_port: SocketAddr = "192.0.2.1:9001".parse().expect("an address");
    for remote in [other_host, other_port] {
        pair.inject(Side::Listener, remote, conclusion.clone());
    }
    for bit in 0..32 {
        let mut forged = conclusion.clone();
        // Another caller's socket ID, and one bit of the cookie.
        forged[40] ^= 1;
        forged[44 + bit / 8] ^= 1 << (bit % 8);
        let remote = pair.caller.address;
        pair.inject(Side::Listener, remote, forged);
    }
    assert!(pair.strays.is_empty());
    assert_eq!(record.len(), before);
    assert_eq!(pair.listener.endpoint.connections().count(), 1);
    let mut with_the_right_cookie = conclusion;
    with_the_right_cookie[40] ^= 1;
    let remote = pair.caller.address;
    pair.inject(Side::Listener, remote, with_the_right_cookie);
    assert_eq!(
        pair.listener.endpoint.connections().count(),
        2,
        "the cookie was all that was wrong"
    );
    let pair = call_with(Side::Caller, |handshake| handshake.cookie ^= 1);
    assert_eq!(pair.caller.closed(), Some(&CloseReason::ConclusionTimeout(SECS(3))));
}

#[test]
fn a_cookie_is_valid_for_two_periods_and_needs_no_state() {
    for start in [0, 17, 59] {
        // Periods last a minute each, from the start of the endpoint.
        for age in [0, 59 - start, 60 - start, 119 - start, 120 - start, 600] {
            let mut pair = Pair::symmetric(1, link());
            pair.accepts = false;
            let held = Rc::new(RefCell::new(None));
            let hold = Rc::clone(&held);
            pair.drop_where(move |_, datagram| {
                let conclusion = handshake(datagram)
                    .is_some_and(|handshake| handshake.request == HandshakeRequest::Conclusion);
                if conclusion {
                    *hold.borrow_mut() = Some(datagram.to_vec());
                }
                conclusion
            });
            pair.run_for(SECS(start));
            pair.call(latency(120), latency(120));
            pair.run_for(MS(100));
            assert_eq!(pair.listener.endpoint.connections().count(), 0);
            assert!(
                pair.listener.endpoint.poll_timeout() == WakeUp::Never,
                "nothing is remembered"
            );
            pair.run_for(SECS(age));
            let conclusion = held.borrow_mut().take().expect("a conclusion");
            let remote = pair.caller.address;
            pair.inject(Side::Listener, remote, conclusion);
            let is_valid = start + age < 120;
            assert_eq!(pair.listener.incoming.len(), usize::from(is_valid), "{start} + {age} s");
        }
    }
}

#[test]
fn a_caller_that_times_out_is_removed() {
    let mut pair = Pair::symmetric(1, link());
    pair.accepts = false;
    pair.call(latency(120), latency(120));
    pair.run_for(SECS(10));
    assert!(matches!(pair.caller.closed(), Some(CloseReason::ConclusionTimeout(_))));
    let incoming = pair.listener.incoming.pop_front().expect("a caller");
    assert_eq!(pair.listener.gone, [incoming.id]);
    let gone = pair.listener.endpoint.accept(pair.now, incoming.id, None);
    assert_eq!(gone, Err(AcceptError::Gone));
    pair.listener.endpoint.reject(incoming.id, RejectReason::FALLBACK);
    pair.run_for(SECS(5));
    assert_eq!(pair.listener.endpoint.connections().count(), 0);
    assert!(pair.listener.endpoint.poll_timeout() == WakeUp::Never, "nothing is left of it");
}

/// It is accepted before the listener notices its end; then the connection ends by itself.
#[test]
fn a_connection_with_a_caller_that_has_just_died_ends() {
    let mut pair = Pair::symmetric(1, link());
    pair.accepts = false;
    pair.call(latency(120), latency(120));
    pair.run_for(MS(500));
    pair.drop_where(|_, _| true);
    pair.run_for(MS(700));
    let incoming = pair.listener.incoming.pop_front().expect("a caller");
    let id = pair.listener.endpoint.accept(pair.now, incoming.id, None).expect("waits");
    pair.listener.connection = Some(id);
    pair.run_for(SECS(6));
    assert!(pair.listener.closed().is_some());
    assert!(!pair.caller.connected);
}

#[test]
fn callers_get_no_answer_if_no_listener_is_open() {
    let mut pair = Pair::symmetric(1, link());
    pair.call(latency(120), latency(120));
    pair.listener.endpoint.listen(None);
    let record = pair.record();
    pair.run_for(SECS(4));
    assert!(matches!(pair.caller.closed(), Some(CloseReason::ConnectTimeout(_))));
    assert!(record.from(Side::Listener).is_empty());

    // Established connections are not affected.
    let mut pair = Pair::symmetric(1, link());
    pair.connect(latency(120), latency(120));
    pair.listener.endpoint.listen(None);
    pair.stream(Side::Caller, 100, MS(2));
    pair.run_for(MS(500));
    pair.assert_complete(Side::Caller);
}
