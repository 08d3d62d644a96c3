//! Datagrams and messages without SRT.

use bytes::Bytes;
use punctual_quic::{
    ClientTls, CongestionControl, Event, Identity, Protocol, QuicCloseReason, QuicSendError,
    ServerTls, TransportConfig, Trust,
};

use crate::bed::{MS, address};
use crate::duo::{CLIENT, Duo, SERVER};

const DATAGRAMS: &[Protocol] = &[Protocol::Datagrams];

fn tls() -> (ClientTls, ServerTls) {
    let identity = Identity::self_signed(&["localhost"]).expect("a name");
    let hash = identity.hash().expect("there is a certificate");
    (ClientTls::new(Trust::Pinned(hash), DATAGRAMS), ServerTls::new(identity, DATAGRAMS))
}

fn connected() -> Duo {
    let (client, server) = tls();
    let duo = Duo::called(&client, &server, "localhost");
    duo.id(CLIENT);
    duo
}

fn datagram(number: u32) -> Bytes {
    number.to_be_bytes().to_vec().into()
}

#[test]
fn datagrams_go_both_ways() {
    let mut duo = connected();
    for side in [CLIENT, SERVER] {
        let (id, other) = (duo.id(side), duo.id(1 - side));
        for number in 0..50 {
            duo.ends[side].send_datagram(id, datagram(number)).expect("it fits");
        }
        duo.run_for(MS(100));
        let received = std::iter::from_fn(|| duo.ends[1 - side].recv_datagram(other));
        assert!(received.eq((0..50).map(datagram)));
    }
}

#[test]
fn a_datagram_that_is_too_long_is_refused_with_the_limit() {
    let mut duo = connected();
    let id = duo.id(CLIENT);
    let largest = duo.ends[CLIENT].largest_datagram(id).expect("it is established");
    let fits = duo.ends[CLIENT].send_datagram(id, vec![0; largest].into());
    assert_eq!(fits, Ok(()));
    let refused = duo.ends[CLIENT].send_datagram(id, vec![0; largest + 1].into());
    assert_eq!(refused, Err(QuicSendError::TooLong { size: largest + 1, largest }));
}

#[test]
fn datagrams_before_the_end_of_the_handshake_are_sent_after_it() {
    let (client, server) = tls();
    let mut duo = Duo::new(&TransportConfig::default());
    duo.ends[SERVER].listen(Some(&server)).expect("the identity can be used");
    let id = duo.connect(&client, "localhost");
    duo.ends[CLIENT].send_datagram(id, datagram(7)).expect("it waits");
    duo.run_for(MS(500));
    let other = duo.id(SERVER);
    assert_eq!(duo.ends[SERVER].recv_datagram(other), Some(datagram(7)));
}

#[test]
fn datagrams_that_congestion_control_holds_back_are_bounded_and_counted() {
    let (client, server) = tls();
    let mut duo = Duo::new(&TransportConfig::default());
    duo.ends[SERVER].listen(Some(&server)).expect("the identity can be used");
    let transport = TransportConfig {
        congestion: CongestionControl::Cubic,
        send_queue: 100_000,
        ..TransportConfig::default()
    };
    let (now, remote) = (duo.now, duo.addresses[SERVER]);
    let call = duo.ends[CLIENT].connect(now, remote, "localhost", &client, &transport);
    let id = call.expect("it can be called");
    duo.run_for(MS(1_000));
    for _ in 0..1_000 {
        duo.ends[CLIENT].send_datagram(id, vec![0; 1_000].into()).expect("it fits");
    }
    duo.run_for(MS(5_000));
    let info = duo.ends[CLIENT].info(id).expect("it is there");
    assert_eq!(info.datagrams_sent + info.datagrams_dropped, 1_000, "{info:?}");
    assert!((800..=950).contains(&info.datagrams_dropped), "{info:?}");
}

#[test]
fn messages_arrive_whole_over_a_lossy_path() {
    let mut duo = connected();
    let mut count = 0_u32;
    duo.drops = Box::new(move |_, _| {
        count += 1;
        count.is_multiple_of(13)
    });
    let (id, other) = (duo.id(CLIENT), duo.id(SERVER));
    let message = |number: u8| Bytes::from(vec![number; 10_000 + usize::from(number)]);
    for number in 0..100 {
        duo.ends[CLIENT].send_message(id, message(number)).expect("the connection is there");
    }
    duo.run_for(MS(10_000));
    let received = std::iter::from_fn(|| duo.ends[SERVER].recv_message(other));
    let mut received: Vec<_> = received.collect();
    received.sort_by_key(|message| message[0]);
    assert!(received.into_iter().eq((0..100).map(message)));
    assert_eq!(duo.ends[CLIENT].unsent_messages(id), 0);
}

#[test]
fn a_message_that_is_too_long_harms_no_other_one() {
    let mut duo = connected();
    let (id, other) = (duo.id(CLIENT), duo.id(SERVER));
    for length in [10, 2 << 20, 20] {
        let message = vec![1; length].into();
        let sent = duo.ends[CLIENT].send_message(id, message);
        let largest = 1 << 20;
        let expected = if length > largest {
            Err(QuicSendError::TooLong { size: length, largest })
        } else {
            Ok(())
        };
        assert_eq!(sent, expected);
    }
    duo.run_for(MS(20_000));
    let received = std::iter::from_fn(|| duo.ends[SERVER].recv_message(other));
    let mut lengths: Vec<_> = received.map(|message| message.len()).collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [10, 20]);
    assert_eq!(duo.ends[CLIENT].unsent_messages(id), 0);
}

#[test]
fn a_client_that_moves_stays_connected() {
    let mut duo = connected();
    let (id, other) = (duo.id(CLIENT), duo.id(SERVER));
    duo.addresses[CLIENT] = address(9, 6_000);
    duo.ends[CLIENT].send_datagram(id, datagram(1)).expect("it fits");
    duo.run_for(MS(500));
    assert_eq!(duo.ends[SERVER].recv_datagram(other), Some(datagram(1)));
    assert!(duo.events[SERVER].contains(&Event::Moved(other, address(9, 6_000))));
    duo.ends[SERVER].send_datagram(other, datagram(2)).expect("it fits");
    duo.run_for(MS(500));
    assert_eq!(duo.ends[CLIENT].recv_datagram(id), Some(datagram(2)));
}

#[test]
fn a_close_tells_the_peer_code_and_reason() {
    let mut duo = connected();
    let (now, id) = (duo.now, duo.id(CLIENT));
    duo.ends[CLIENT].close(now, id, 42, "enough");
    assert_eq!(duo.ends[CLIENT].send_datagram(id, datagram(1)), Err(QuicSendError::Closed));
    duo.run_for(MS(5_000));
    assert_eq!(duo.closed(CLIENT), Some(&QuicCloseReason::Local));
    let reason = QuicCloseReason::Peer { code: 42, reason: "enough".to_owned() };
    assert_eq!(duo.closed(SERVER), Some(&reason));
    assert_eq!(reason.to_string(), "closed by the peer with code 42: enough");
    assert_eq!([CLIENT, SERVER].map(|end| duo.ends[end].connection_count()), [0, 0]);
}

#[test]
fn a_server_that_is_not_there_ends_the_call() {
    let (client, _) = tls();
    let mut duo = Duo::new(&TransportConfig::default());
    duo.connect(&client, "localhost");
    duo.drops = Box::new(|_, _| true);
    duo.run_for(MS(30_000));
    assert_eq!(duo.closed(CLIENT), Some(&QuicCloseReason::TimedOut));
}

#[test]
fn above_a_limit_of_handshakes_callers_prove_their_address() {
    let (client, server) = tls();
    let mut duo = Duo::new(&TransportConfig::default());
    duo.ends[SERVER].listen(Some(&server)).expect("the identity can be used");
    // The server's answers are lost: all handshakes remain under way.
    duo.drops = Box::new(|side, _| side == SERVER);
    for _ in 0..100 {
        duo.connect(&client, "localhost");
    }
    duo.run_for(MS(50));
    let under_way = duo.ends[SERVER].connection_count();
    assert_eq!(under_way, 64, "the others got a Retry packet");
    duo.drops = Box::new(|_, _| false);
    duo.run_for(MS(8_000));
    assert_eq!(duo.ends[SERVER].connection_count(), 100);
}
