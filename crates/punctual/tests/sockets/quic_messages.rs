//! Messages over QUIC without SRT.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use punctual::quic::{
    ClientTls, Identity, MESSAGE_PROTOCOLS, Protocol, QuicCloseReason, QuicConfig, QuicConnection,
    QuicListener, ServerTls, TlsFailure, Trust,
};
use punctual::{Carriage, Error, PortConfig};
use tokio::time::timeout;

fn identity() -> (Identity, Trust) {
    let identity = Identity::self_signed(&["localhost"]).unwrap();
    let trust = Trust::Pinned(identity.hash().unwrap());
    (identity, trust)
}

fn port(config: QuicConfig) -> PortConfig {
    let local = Some("127.0.0.1:0".parse().unwrap());
    PortConfig { local, carriage: Carriage::Quic(Arc::new(config)), ..PortConfig::default() }
}

async fn listener(identity: Identity) -> QuicListener {
    let server = Some(ServerTls::new(identity, MESSAGE_PROTOCOLS));
    QuicListener::bind(port(QuicConfig { server, ..QuicConfig::default() })).await.unwrap()
}

async fn call(
    listener: &QuicListener,
    trust: Trust,
    protocol: Protocol,
) -> Result<QuicConnection, Error> {
    let client = Some(ClientTls::new(trust, &[protocol]));
    let config = QuicConfig { client, ..QuicConfig::default() };
    QuicConnection::connect(port(config), listener.local_addr()).await
}

async fn pair(protocol: Protocol) -> [QuicConnection; 2] {
    let (identity, trust) = identity();
    let listener = listener(identity).await;
    let (caller, accepted) =
        tokio::try_join!(call(&listener, trust, protocol), listener.accept()).unwrap();
    assert_eq!([caller.protocol(), accepted.protocol()], [Some(protocol); 2]);
    [caller, accepted]
}

fn message(number: usize) -> Bytes {
    vec![u8::try_from(number % 251).unwrap(); 10 + number % 1_000].into()
}

#[tokio::test]
async fn messages_on_one_stream_arrive_in_order_and_close_waits_for_them() {
    let [caller, accepted] = pair(Protocol::Stream).await;
    for (from, to) in [(&caller, &accepted), (&accepted, &caller)] {
        for number in 0..1_000 {
            from.send(message(number)).await.unwrap();
        }
        for number in 0..1_000 {
            assert_eq!(to.recv().await.unwrap(), message(number));
        }
    }
    let send = async {
        for number in 0..5_000 {
            caller.send(message(number)).await.unwrap();
        }
        caller.close().await;
    };
    let receive = async {
        for number in 0..5_000 {
            assert_eq!(accepted.recv().await.unwrap(), message(number));
        }
    };
    tokio::join!(send, receive);
    let ended = accepted.recv().await.unwrap_err();
    let reason = QuicCloseReason::Peer { code: 0, reason: "the end".to_owned() };
    assert!(matches!(ended, Error::QuicClosed(it) if it == reason));
    assert!(matches!(caller.send(message(0)).await, Err(Error::QuicClosed(_))));
}

#[tokio::test]
async fn a_receiver_that_does_not_read_holds_the_sender_back() {
    for protocol in [Protocol::Stream, Protocol::Streams] {
        let [caller, accepted] = pair(protocol).await;
        let mut sent = 0;
        let large = Bytes::from(vec![7; 100_000]);
        while timeout(Duration::from_millis(500), caller.send(large.clone())).await.is_ok() {
            sent += 1;
            assert!(sent < 1_000, "the sender is never held back");
        }
        // The buffers of both ends hold that much, and no more.
        assert!((10..400).contains(&sent), "{sent}");
        let read = async {
            for _ in 0..sent {
                assert_eq!(accepted.recv().await.unwrap(), large);
            }
        };
        timeout(Duration::from_secs(20), read).await.expect("it goes on");
        timeout(Duration::from_secs(5), caller.send(large)).await.expect("there is room").unwrap();
    }
}

#[tokio::test]
async fn messages_on_streams_of_their_own_all_arrive() {
    let [caller, accepted] = pair(Protocol::Streams).await;
    let send = async {
        for number in 0..3_000 {
            caller.send(message(number)).await.unwrap();
        }
        caller.close().await;
    };
    let receive = async {
        let mut received = Vec::new();
        while let Ok(message) = accepted.recv().await {
            received.push(message);
        }
        received
    };
    let ((), mut received) = tokio::join!(send, receive);
    let mut sent: Vec<_> = (0..3_000).map(message).collect();
    received.sort();
    sent.sort();
    assert!(received == sent, "{} of {}", received.len(), sent.len());
}

#[tokio::test]
async fn datagrams_arrive_and_long_ones_are_refused() {
    let [caller, accepted] = pair(Protocol::Datagrams).await;
    for number in 0..500 {
        caller.send(message(number)).await.unwrap();
        assert_eq!(accepted.recv().await.unwrap(), message(number));
    }
    let largest = caller.info().unwrap().largest_datagram.unwrap();
    assert!(largest >= 1_316);
    let refused = caller.send(vec![0; largest + 1].into()).await.unwrap_err();
    assert!(matches!(refused, Error::Size { max, .. } if max == largest), "{refused}");
    assert_eq!(caller.info().unwrap().datagrams_dropped, 0);
}

#[tokio::test]
async fn a_program_may_end_right_after_close_and_its_peer_is_told() {
    for protocol in [Protocol::Stream, Protocol::Datagrams] {
        let (identity, trust) = identity();
        let listener = listener(identity).await;
        let address = listener.local_addr();
        let program = tokio::task::spawn_blocking(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let client = Some(ClientTls::new(trust, &[protocol]));
                let config = QuicConfig { client, ..QuicConfig::default() };
                let caller = QuicConnection::connect(port(config), address).await.unwrap();
                caller.send(message(1)).await.unwrap();
                caller.close().await;
            });
        });
        let accepted = listener.accept().await.unwrap();
        assert_eq!(accepted.recv().await.unwrap(), message(1));
        let ended = accepted.recv().await.unwrap_err();
        let reason = QuicCloseReason::Peer { code: 0, reason: "the end".to_owned() };
        assert!(matches!(&ended, Error::QuicClosed(it) if *it == reason), "{ended}");
        program.await.unwrap();
    }
}

#[tokio::test]
async fn a_connection_that_is_dropped_ends_at_the_other_end() {
    let [caller, accepted] = pair(Protocol::Datagrams).await;
    drop(caller);
    let ended = timeout(Duration::from_secs(5), accepted.recv()).await.unwrap();
    assert!(matches!(ended, Err(Error::QuicClosed(QuicCloseReason::Peer { code: 0, .. }))));
}

#[tokio::test]
async fn errors_say_what_is_wrong() {
    let (own, _) = identity();
    let (_, other) = identity();
    let listener = listener(own).await;
    let refused = call(&listener, other, Protocol::Stream).await.unwrap_err();
    assert!(
        matches!(refused, Error::QuicClosed(QuicCloseReason::Tls(TlsFailure::NotPinned))),
        "{refused:?}"
    );
    let without = QuicListener::bind(PortConfig::default()).await.unwrap_err();
    assert!(matches!(without, Error::NotQuic));
    let without = QuicListener::bind(port(QuicConfig::default())).await.unwrap_err();
    assert!(matches!(without, Error::NoIdentity));
    let remote = listener.local_addr();
    let without = QuicConnection::connect(port(QuicConfig::default()), remote).await.unwrap_err();
    assert!(matches!(without, Error::NoTrust));
}
