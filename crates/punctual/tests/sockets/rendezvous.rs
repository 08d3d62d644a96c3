//! Ends that call each other.

use std::net::SocketAddr;
use std::time::Duration;

use crate::common::{config, local, message, within};
use punctual::{CloseReason, ConnectError, Error, Port, PortConfig, Socket};

/// A port that was free just now.
#[expect(clippy::disallowed_types, reason = "the system is asked for a port")]
fn free() -> SocketAddr {
    std::net::UdpSocket::bind(local()).and_then(|socket| socket.local_addr()).unwrap()
}

#[tokio::test]
async fn two_sockets_meet_and_send_both_ways() {
    let (here, there) = (free(), free());
    let meet = async {
        tokio::try_join!(
            Socket::rendezvous(here, there, config()),
            Socket::rendezvous(there, here, config()),
        )
    };
    let (a, b) = within(meet).await.unwrap();
    assert_eq!((a.peer_addr(), b.peer_addr()), (there, here));
    for (n, from, to) in [(1, &a, &b), (2, &b, &a)] {
        from.send(message(n)).await.unwrap();
        assert_eq!(within(to.recv()).await.unwrap().payload, message(n));
    }
}

#[tokio::test]
async fn an_attempt_without_a_peer_can_be_dropped_and_repeated() {
    let port = PortConfig { local: Some(local()), ..PortConfig::default() };
    let port = Port::bind(port).await.unwrap();
    let there = free();
    let short = config().with_connect_timeout(Duration::from_millis(10)).unwrap();
    let error = within(port.rendezvous(there, short)).await.unwrap_err();
    let waited = CloseReason::ConnectTimeout(Duration::from_millis(100));
    assert_eq!(error.close_reason(), Some(&waited));
    let mut first = Box::pin(port.rendezvous(there, config()));
    let begun = tokio::time::timeout(Duration::from_millis(5), &mut first).await;
    assert!(begun.is_err(), "nobody is there");
    let error = within(port.rendezvous(there, config())).await.unwrap_err();
    assert!(
        matches!(error, Error::Connect(ConnectError::RendezvousUnderWay(with)) if with == there)
    );
    drop(first);
    let other = Socket::rendezvous(there, port.local_addr(), config());
    within(async { tokio::try_join!(port.rendezvous(there, config()), other) }).await.unwrap();
}
