//! A receiver of files reports its errors to the sender (PEERERROR).

use std::cell::RefCell;
use std::rc::Rc;

use bytes::Bytes;
use punctual_proto::{CloseReason, Config, PeerError, SendError, SendOptions, Transmission};
use punctual_wire::{Control, Timestamp};

use crate::datagram::{control, forged};
use crate::pair::{Pair, Side};
use crate::{MS, SECS, latency, link};

fn connected(config: &Config) -> Pair {
    let mut pair = Pair::symmetric(1, link());
    pair.connect(config.clone(), config.clone());
    pair
}

/// The listener's application reports an error.
fn report(pair: &mut Pair, error: PeerError) {
    let now = pair.now;
    let id = pair.listener.connection.expect("a connection");
    pair.listener.endpoint.connection(now, id).expect("not released").tell_error(error);
    pair.run_for(MS(50));
}

/// Writes until the buffers are full, with a reader that does not read.
fn fill(pair: &mut Pair) {
    pair.listener.reads = false;
    let data = Bytes::from(vec![7; 1 << 20]);
    for _ in 0..100 {
        let mut rest = data.clone();
        if pair.write(Side::Caller, &mut rest) == Err(SendError::Full) {
            pair.run_for(SECS(5));
            if pair.write(Side::Caller, &mut rest) == Err(SendError::Full) {
                return;
            }
        }
    }
    panic!("there is room without end");
}

#[test]
fn a_sender_that_waits_for_room_is_woken_up_and_gets_the_error_once() {
    let mut pair = connected(&Config::file());
    fill(&mut pair);
    let writable = pair.caller.writable;
    report(&mut pair, PeerError::FILE);
    assert_eq!(pair.caller.writable, writable + 1);
    let mut more = Bytes::from_static(b"more");
    assert_eq!(pair.write(Side::Caller, &mut more), Err(SendError::PeerError(PeerError::FILE)));
    assert_eq!(more, "more", "nothing was taken");
    assert_eq!(pair.info(Side::Caller).peer_error, Some(PeerError::FILE));
    // The connection continues: the receiver decides whether to close it.
    assert_eq!(pair.write(Side::Caller, &mut more), Err(SendError::Full));
    pair.read(Side::Listener);
    assert!(pair.run_while(SECS(60), |pair| pair.caller.writable == writable + 1));
    assert_eq!(pair.write(Side::Caller, &mut more), Ok(4));
    assert_eq!(pair.caller.closed(), None);
}

#[test]
fn a_sender_of_messages_gets_the_error_although_there_is_room() {
    let mut pair = connected(&Config::file().with_transmission(Transmission::Messages));
    report(&mut pair, PeerError::FILE);
    let message = Bytes::from_static(b"a message");
    let error = Err(SendError::PeerError(PeerError::FILE));
    let options = SendOptions::default();
    assert_eq!(pair.send(Side::Caller, message.clone(), options), error);
    assert_eq!(pair.send(Side::Caller, message, options), Ok(()));
}

#[test]
fn a_receiver_that_closes_after_an_error_does_not_hide_the_error() {
    let mut pair = connected(&Config::file());
    let now = pair.now;
    let id = pair.listener.connection.expect("a connection");
    pair.listener.endpoint.connection(now, id).expect("not released").tell_error(PeerError::FILE);
    pair.close(Side::Listener);
    assert!(pair.run_while(SECS(5), |pair| pair.caller.closed().is_none()));
    let mut data = Bytes::from_static(b"data");
    let mut write = || pair.write(Side::Caller, &mut data);
    assert_eq!(write(), Err(SendError::PeerError(PeerError::FILE)));
    assert_eq!(write(), Err(SendError::Closed(CloseReason::Peer)));
}

#[test]
fn the_error_is_sent_once_with_libsrts_number() {
    let mut pair = connected(&Config::file());
    let codes = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&codes);
    pair.drop_where(move |side, datagram| {
        if let Some(Control::PeerError(code)) = control(datagram) {
            seen.borrow_mut().push((side, code, datagram.len()));
        }
        false
    });
    report(&mut pair, PeerError::FILE);
    pair.run_for(SECS(3));
    assert_eq!(*codes.borrow(), [(Side::Listener, 4_000, 20)]);
}

#[test]
fn live_streams_neither_send_nor_accept_peer_errors() {
    let mut pair = connected(&latency(120));
    let now = pair.now;
    let id = pair.listener.connection.expect("a connection");
    pair.listener.endpoint.connection(now, id).expect("not released").tell_error(PeerError::FILE);
    pair.run_for(MS(50));
    assert_eq!(pair.statistics(Side::Caller).packets_ignored, 0, "nothing was sent");
    let (remote, dest) = (pair.listener.address, pair.info(Side::Caller).socket_id);
    let packet = forged(dest, Timestamp::from_micros(50_000), Control::PeerError(4_000));
    pair.inject(Side::Caller, remote, packet);
    assert_eq!(pair.statistics(Side::Caller).packets_ignored, 1);
    pair.stream(Side::Caller, 50, MS(5));
    pair.run_for(SECS(1));
    pair.assert_complete(Side::Caller);
    assert_eq!(pair.info(Side::Caller).peer_error, None);
}
