//! The ends of connections.

use std::time::Duration;

use crate::common::{config, local, message, pair, prompt, until_free, within};
use punctual::{CloseReason, Error, Listener, Port, PortConfig, Socket};

#[tokio::test]
async fn messages_sent_before_a_close_are_received_after_it() {
    let (a, b) = pair(prompt()).await;
    for n in 0..500 {
        a.send(message(n)).await.unwrap();
    }
    within(a.close()).await;
    assert_eq!(within(a.closed()).await, CloseReason::Local);
    assert_eq!(within(b.closed()).await, CloseReason::Peer);
    for n in 0..500 {
        assert_eq!(within(b.recv()).await.unwrap().payload, message(n));
    }
    for _ in 0..2 {
        let error = within(b.recv()).await.unwrap_err();
        assert_eq!(error.close_reason(), Some(&CloseReason::Peer));
    }
}

#[tokio::test]
async fn a_closed_connection_takes_no_messages() {
    let (a, b) = pair(config()).await;
    within(a.close()).await;
    within(b.closed()).await;
    for (socket, reason) in [(&a, CloseReason::Local), (&b, CloseReason::Peer)] {
        let error = within(socket.send(message(1))).await.unwrap_err();
        assert_eq!(error.close_reason(), Some(&reason));
        let error = socket.try_send(&message(1)).unwrap_err();
        assert_eq!(error.close_reason(), Some(&reason));
    }
    // Closing again, from either end, changes nothing.
    within(a.close()).await;
    within(b.close()).await;
    assert_eq!(within(b.closed()).await, CloseReason::Peer);
}

#[tokio::test]
async fn dropping_the_last_clone_closes_in_the_background() {
    let (a, b) = pair(prompt()).await;
    let clone = a.clone();
    drop(a);
    for n in 0..200 {
        clone.send(message(n)).await.unwrap();
    }
    drop(clone);
    for n in 0..200 {
        assert_eq!(within(b.recv()).await.unwrap().payload, message(n));
    }
    let error = within(b.recv()).await.unwrap_err();
    assert_eq!(error.close_reason(), Some(&CloseReason::Peer));
}

#[tokio::test]
async fn a_close_ends_waiting_calls() {
    let (a, b) = pair(config()).await;
    let waiting = {
        let a = a.clone();
        tokio::spawn(async move { a.recv().await })
    };
    tokio::task::yield_now().await;
    within(b.close()).await;
    let error = within(waiting).await.unwrap().unwrap_err();
    assert_eq!(error.close_reason(), Some(&CloseReason::Peer));
}

#[tokio::test]
async fn a_silent_peer_times_out() {
    let limit = Duration::from_millis(400);
    let short = config().with_peer_idle_timeout(limit).unwrap();
    let listener = Listener::bind(local(), short.clone()).await.unwrap();
    // A peer that vanishes: its runtime, and with it its driver, is gone without a word.
    let address = listener.local_addr();
    let gone = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let socket = runtime.block_on(Socket::connect(address, short)).unwrap();
        drop(runtime);
        socket
    });
    let accepted = within(listener.accept()).await.unwrap();
    let reason = within(accepted.closed()).await;
    assert!(matches!(reason, CloseReason::Idle(silence) if silence >= limit), "{reason}");
    let error = within(accepted.recv()).await.unwrap_err();
    assert_eq!(error.close_reason(), Some(&reason));
    drop(within(gone).await.unwrap());
}

#[tokio::test]
async fn a_socket_without_its_runtime_returns_an_error() {
    let (socket, listener) = tokio::task::spawn_blocking(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = Listener::bind(local(), config()).await.unwrap();
            let call = Socket::connect(listener.local_addr(), config());
            let (socket, accepted) = tokio::try_join!(call, listener.accept()).unwrap();
            tokio::spawn(async move { accepted.closed().await });
            (socket, listener)
        })
    })
    .await
    .unwrap();
    assert!(matches!(within(socket.recv()).await.unwrap_err(), Error::Stopped));
    assert!(matches!(within(listener.incoming()).await.unwrap_err(), Error::Stopped));
    within(socket.closed()).await;
}

#[tokio::test]
async fn a_port_is_free_after_its_last_handle_and_connection() {
    let listener = Listener::bind(local(), config()).await.unwrap();
    let port = Port::bind(PortConfig { local: Some(local()), ..PortConfig::default() });
    let port = port.await.unwrap();
    let address = port.local_addr();
    let call = port.connect(listener.local_addr(), config());
    let (caller, accepted) =
        within(async { tokio::try_join!(call, listener.accept()) }).await.unwrap();

    drop(port);
    tokio::task::yield_now().await;
    let taken = tokio::net::UdpSocket::bind(address).await;
    assert!(taken.is_err(), "the connection still needs the port");
    caller.send(message(1)).await.unwrap();
    assert_eq!(within(accepted.recv()).await.unwrap().payload, message(1));

    drop(caller);
    until_free(address).await;
}
