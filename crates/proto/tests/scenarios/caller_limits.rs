//! Listeners with a limited number of callers: which callers are refused, which replace others, and
//! which have given up.

use std::cell::RefCell;
use std::rc::Rc;

use punctual_proto::{AcceptError, CloseReason, Config, ConnectionId, RejectReason};
use punctual_wire::{HandshakeRequest, Packet, SocketId};

use crate::datagram::{Kind, handshake, kind};
use crate::pair::{Pair, Side};
use crate::{MS, SECS, latency, link, lossy};

/// A pair whose listener accepts one caller, which is connected.
fn full_listener(stream_id: &str) -> Pair {
    let mut pair = Pair::symmetric(1, link()).with_listener(|config| config.max_callers = Some(1));
    pair.connect(called(stream_id), latency(120));
    pair
}

fn called(stream_id: &str) -> Config {
    latency(120).with_stream_id(stream_id).expect("short")
}

/// Another call from the same host.
fn call_again(pair: &mut Pair, stream_id: &str) -> ConnectionId {
    pair.caller.connected = false;
    let (now, remote) = (pair.now, pair.listener.address);
    pair.caller.endpoint.connect(now, remote, called(stream_id)).expect("callable")
}

/// From now on, all packets of the caller's first connection are lost.
fn kill_first(pair: &mut Pair) {
    let id = pair.listener.connection.expect("accepted");
    let killed =
        pair.listener.endpoint.connections().get(id).expect("not released").info().socket_id;
    pair.drop_where(move |side, datagram| {
        side == Side::Caller && destination(datagram) == Some(killed)
    });
}

fn destination(datagram: &[u8]) -> Option<SocketId> {
    match Packet::parse(datagram).ok()? {
        Packet::Data(data) => Some(data.header.dest),
        Packet::Control(control) => Some(control.dest),
    }
}

/// The milliseconds until a call has ended, and the reason.
fn refusal(pair: &mut Pair, call: ConnectionId) -> (u128, CloseReason) {
    let start = pair.elapsed();
    pair.run_while(SECS(4), |pair| !pair.caller.closed.contains_key(&call));
    let reason = pair.caller.closed.get(&call).expect("it ended").clone();
    ((pair.elapsed() - start).as_millis(), reason)
}

const FULL: CloseReason = CloseReason::Rejected(RejectReason::BACKLOG);

#[test]
fn a_full_listener_refuses_a_caller_of_another_stream_at_once() {
    let mut pair = full_listener("news");
    let call = call_again(&mut pair, "sports");
    assert_eq!(refusal(&mut pair, call), (40, FULL), "two round trips");
    assert_eq!(pair.listener.refused, [(pair.caller.address, RejectReason::BACKLOG)]);
    assert!(pair.listener.closed.is_empty());
}

#[test]
fn a_caller_of_the_same_stream_is_refused_while_the_first_one_is_alive() {
    let mut pair = full_listener("news");
    pair.stream(Side::Caller, 10, MS(5));
    let call = call_again(&mut pair, "news");
    for _ in 0..20 {
        pair.stream(Side::Caller, 1, MS(5));
    }
    let reason = pair.caller.closed.get(&call);
    assert_eq!(reason, Some(&FULL), "within 100 ms");
    assert!(pair.listener.closed.is_empty());
    pair.run_for(SECS(1));
    pair.assert_complete(Side::Caller);
}

#[test]
fn a_full_listener_refuses_the_same_stream_within_a_keepalive_period() {
    for age in [0, 300, 700, 950] {
        let mut pair = full_listener("");
        pair.run_for(SECS(3) + MS(age));
        let call = call_again(&mut pair, "");
        let (took, reason) = refusal(&mut pair, call);
        assert_eq!(reason, FULL);
        assert!(took <= 1_250, "{took} ms");
        assert!(pair.listener.closed.is_empty());
    }
}

/// The program was killed and restarted, at any moment of its first connection.
#[test]
fn a_restarted_caller_replaces_its_old_connection() {
    for (seed, share) in (0..50).flat_map(|seed| [(seed, 0.0), (seed, 0.05)]) {
        let mut pair = Pair::symmetric(seed, lossy(share))
            .with_listener(|config| config.max_callers = Some(1));
        pair.connect(called("news"), latency(120));
        let first = pair.listener.connection.expect("accepted");
        pair.stream(Side::Caller, seed as u32, MS(5));
        pair.run_for(MS(37 * (seed % 7)));
        kill_first(&mut pair);
        call_again(&mut pair, "news");
        let start = pair.elapsed();
        assert!(pair.run_while(SECS(2), |pair| !pair.caller.connected), "seed {seed}, {share}");
        assert!(pair.elapsed() - start <= SECS(2));
        assert_eq!(pair.listener.closed.get(&first), Some(&CloseReason::Replaced));
        assert_ne!(pair.listener.connection, Some(first));
    }
}

#[test]
fn the_newer_of_two_callers_replaces_a_dead_one() {
    let mut pair = full_listener("news");
    kill_first(&mut pair);
    let older = call_again(&mut pair, "news");
    pair.run_for(MS(300));
    let newer = call_again(&mut pair, "news");
    assert_eq!(refusal(&mut pair, older), (40, FULL));
    assert!(pair.run_while(SECS(2), |pair| !pair.caller.connected));
    assert!(!pair.caller.closed.contains_key(&newer));
}

#[test]
fn the_newer_of_two_waiting_callers_is_kept() {
    let mut pair = Pair::symmetric(1, link()).with_listener(|config| config.max_callers = Some(1));
    pair.accepts = false;
    pair.call(called("news"), latency(120));
    let older = pair.caller.connection.expect("called");
    pair.run_for(MS(100));
    let newer = call_again(&mut pair, "news");
    assert_eq!(refusal(&mut pair, older), (40, FULL));
    let [first, second] = [0, 1].map(|at| pair.listener.incoming[at].id);
    assert_eq!(pair.listener.gone, [first]);
    assert_eq!(pair.listener.endpoint.accept(pair.now, first, None), Err(AcceptError::Gone));
    pair.listener.endpoint.accept(pair.now, second, None).expect("waits");
    pair.run_for(MS(100));
    assert!(pair.caller.connected && !pair.caller.closed.contains_key(&newer));
}

#[test]
fn a_caller_that_has_left_makes_room_at_once() {
    let mut pair = full_listener("news");
    let first = pair.listener.connection;
    pair.close(Side::Caller);
    pair.run_while(SECS(5), |pair| pair.listener.closed().is_none());
    call_again(&mut pair, "sports");
    assert!(pair.run_while(MS(100), |pair| !pair.caller.connected));
    assert_ne!(pair.listener.connection, first);
}

#[test]
fn a_limit_of_zero_refuses_new_callers_and_closes_no_connection() {
    let mut pair = full_listener("news");
    pair.listener.endpoint.limit_callers(Some(0));
    kill_first(&mut pair);
    pair.run_for(SECS(2));
    let call = call_again(&mut pair, "news");
    assert_eq!(refusal(&mut pair, call), (40, FULL));
    assert!(pair.listener.closed.is_empty());
    pair.listener.endpoint.limit_callers(None);
    call_again(&mut pair, "news");
    assert!(pair.run_while(MS(100), |pair| !pair.caller.connected));
}

/// Although all but the last of its withdrawals are lost.
#[test]
fn a_caller_that_gives_up_informs_the_listener() {
    for lost in 0..3 {
        let mut pair = Pair::symmetric(1, link());
        pair.accepts = false;
        let mut withdrawals = 0;
        pair.drop_where(move |_, datagram| {
            let is_withdrawal = handshake(datagram)
                .is_some_and(|it| matches!(it.request, HandshakeRequest::Rejection(_)));
            withdrawals += usize::from(is_withdrawal);
            is_withdrawal && withdrawals <= lost
        });
        pair.call(latency(120), latency(120));
        pair.run_for(MS(500));
        assert_eq!(pair.listener.incoming.len(), 1);
        pair.close(Side::Caller);
        pair.run_for(MS(10));
        assert_eq!(pair.listener.gone, [pair.listener.incoming[0].id], "{lost} lost");
        assert_eq!(pair.caller.closed(), Some(&CloseReason::Local));
    }
}

#[test]
fn a_connection_ends_if_its_caller_gave_up_before_the_answer() {
    let mut pair = Pair::symmetric(1, link());
    pair.drop_where(|side, datagram| {
        side == Side::Listener
            && (kind(datagram) != Kind::Handshake
                || handshake(datagram).is_some_and(|it| it.request == HandshakeRequest::Conclusion))
    });
    pair.call(latency(120), latency(120));
    pair.run_for(MS(2_990));
    assert_eq!(pair.listener.closed(), None);
    pair.run_for(MS(30));
    assert_eq!(pair.caller.closed(), Some(&CloseReason::ConclusionTimeout(SECS(3))));
    assert_eq!(pair.listener.closed(), Some(&CloseReason::Withdrawn));
}

/// The network delayed it, or the listener handled other packets first.
#[test]
fn a_conclusion_that_comes_after_the_shutdown_is_no_new_caller() {
    let mut pair = Pair::symmetric(1, link());
    let conclusion = Rc::new(RefCell::new(Vec::new()));
    let kept = Rc::clone(&conclusion);
    pair.tap(move |_, side, datagram| {
        let concludes = side == Side::Caller
            && handshake(&datagram).is_some_and(|it| it.request == HandshakeRequest::Conclusion);
        if concludes {
            kept.replace(datagram.clone());
        }
        vec![datagram]
    });
    pair.connect(latency(120), latency(120));
    pair.close(Side::Caller);
    pair.run_for(MS(100));
    assert_eq!(pair.listener.closed(), Some(&CloseReason::Peer));
    pair.release(Side::Listener);
    pair.accepts = false;
    let remote = pair.caller.address;
    pair.inject(Side::Listener, remote, conclusion.take());
    pair.run_for(MS(100));
    assert_eq!(pair.listener.incoming.len(), 0);
}

#[test]
fn a_caller_that_is_released_at_once_informs_the_listener_too() {
    let mut pair = Pair::symmetric(1, link());
    pair.accepts = false;
    pair.call(latency(120), latency(120));
    pair.run_for(MS(500));
    pair.release(Side::Caller);
    pair.run_for(MS(10));
    assert_eq!(pair.listener.gone.len(), 1);
}

/// A killed caller that has repeated its conclusion, or one that never repeats it, as some do.
#[test]
fn a_caller_that_has_stopped_repeating_is_removed() {
    for (repeats, gone_after) in [(true, 1_000), (false, 3_000)] {
        let mut pair = Pair::symmetric(1, link());
        pair.accepts = false;
        let mut conclusions = 0;
        pair.drop_where(move |side, datagram| {
            let conclusion = side == Side::Caller
                && handshake(datagram).is_some_and(|it| it.request != HandshakeRequest::Induction);
            conclusions += usize::from(conclusion);
            conclusion && conclusions > if repeats { 3 } else { 1 }
        });
        pair.call(latency(120), latency(120));
        // The first conclusion comes after 30 ms, the second one 30 ms and the third one 60 ms
        // later.
        let last = if repeats { 120 } else { 30 };
        pair.run_for(MS(last + gone_after - 1));
        assert!(pair.listener.gone.is_empty());
        pair.run_for(MS(2));
        assert_eq!(pair.listener.gone.len(), 1);
    }
}
