//! Listeners: their end, their backlog, their shards.

use std::time::Duration;

use crate::common::{config, local, message, until, within};
use punctual::{
    AcceptError, Error, Listener, ListenerConfig, Port, PortConfig, RejectReason, Socket,
};

#[tokio::test]
async fn accepted_connections_outlive_the_listener() {
    let listener = Listener::bind(local(), config()).await.unwrap();
    let address = listener.local_addr();
    let call = Socket::connect(address, config());
    let (caller, accepted) =
        within(async { tokio::try_join!(call, listener.accept()) }).await.unwrap();
    drop(listener);
    for (n, from, to) in [(1, &caller, &accepted), (2, &accepted, &caller)] {
        from.send(message(n)).await.unwrap();
        assert_eq!(within(to.recv()).await.unwrap().payload, message(n));
    }
    let short = config().with_connect_timeout(Duration::from_millis(300)).unwrap();
    within(Socket::connect(address, short)).await.expect_err("nobody listens any more");
}

#[tokio::test]
async fn callers_that_wait_are_rejected_when_the_listener_goes() {
    let listener = Listener::bind(local(), config()).await.unwrap();
    let address = listener.local_addr();
    let call = tokio::spawn(Socket::connect(address, config()));
    // The first is taken out and answered after the listener is gone, the second waits in the
    // queue.
    let first = within(listener.incoming()).await.unwrap();
    assert!(!listener.has_caller());
    let second = tokio::spawn(Socket::connect(address, config()));
    until(|| listener.has_caller()).await;
    drop(listener);
    let error = within(second).await.unwrap().unwrap_err();
    assert_eq!(error.reject_reason(), Some(RejectReason::CLOSE));
    let accepted = within(first.accept()).await.unwrap();
    let caller = within(call).await.unwrap().unwrap();
    caller.send(message(7)).await.unwrap();
    assert_eq!(within(accepted.recv()).await.unwrap().payload, message(7));
}

#[tokio::test]
async fn a_full_backlog_rejects() {
    let listener = Listener::bind_with(ListenerConfig {
        port: PortConfig { local: Some(local()), ..PortConfig::default() },
        connection: config(),
        backlog: Some(1),
        ..ListenerConfig::default()
    });
    let listener = listener.await.unwrap();
    let waiting = tokio::spawn(Socket::connect(listener.local_addr(), config()));
    let call = within(listener.incoming()).await.unwrap();
    let error = within(Socket::connect(listener.local_addr(), config())).await.unwrap_err();
    assert_eq!(error.reject_reason(), Some(RejectReason::BACKLOG), "{error}");
    within(call.accept()).await.unwrap();
    within(waiting).await.unwrap().unwrap();
}

#[tokio::test]
async fn callers_that_gave_up_are_forgotten() {
    let listener = Listener::bind(local(), config()).await.unwrap();
    let address = listener.local_addr();
    let call = |name: &str| {
        let config = config().with_stream_id(name).unwrap();
        tokio::spawn(Socket::connect(address, config))
    };
    let taken_call = call("taken");
    let taken = within(listener.incoming()).await.unwrap();
    let queued_call = call("queued");
    until(|| listener.has_caller()).await;
    // Each of them rejects its own call, one after the other.
    taken_call.abort();
    taken_call.await.unwrap_err();
    queued_call.abort();
    until(|| !listener.has_caller()).await;
    let gone = Error::Accept(AcceptError::Gone).to_string();
    assert_eq!(within(taken.accept()).await.unwrap_err().to_string(), gone);
    let late_call = call("late");
    let late = within(listener.accept()).await.unwrap();
    assert_eq!(late.stream_id(), "late");
    within(late_call).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_share_the_port_and_the_callers() {
    if cfg!(not(target_os = "linux")) {
        return;
    }
    let listener = Listener::bind_with(ListenerConfig {
        port: PortConfig { local: Some(local()), ..PortConfig::default() },
        connection: config(),
        shards: 4,
        ..ListenerConfig::default()
    });
    let listener = listener.await.unwrap();
    let address = listener.local_addr();
    let calls: Vec<_> = (0..64)
        .map(|n| {
            let config = config().with_stream_id(n.to_string()).unwrap();
            tokio::spawn(async move { Socket::connect(address, config).await.unwrap() })
        })
        .collect();
    let mut accepted = Vec::new();
    while accepted.len() < 64 {
        accepted.push(within(listener.accept()).await.unwrap());
    }
    let mut callers = Vec::new();
    for call in calls {
        callers.push(within(call).await.unwrap());
    }
    for (n, caller) in (0..).zip(&callers) {
        caller.send(message(n)).await.unwrap();
    }
    for socket in &accepted {
        let n = socket.stream_id().parse().unwrap();
        assert_eq!(within(socket.recv()).await.unwrap().payload, message(n));
        // A shard that had all callers would have received two datagrams of each handshake, and the
        // message. A quarter of the callers cannot make up for that.
        let port = socket.port_statistics();
        assert!(port.datagrams_received < 3 * 64, "{port:?}");
    }

    drop(listener);
    for (n, socket) in (100..).zip(&accepted) {
        socket.send(message(n)).await.unwrap();
    }
    for caller in &callers {
        within(caller.recv()).await.unwrap();
    }
}

#[tokio::test]
async fn shards_without_connections_take_none_from_the_others() {
    if cfg!(not(target_os = "linux")) {
        return;
    }
    let listener = Listener::bind_with(ListenerConfig {
        port: PortConfig { local: Some(local()), ..PortConfig::default() },
        connection: config(),
        shards: 8,
        ..ListenerConfig::default()
    });
    let listener = listener.await.unwrap();
    let mut pairs = Vec::new();
    for _ in 0..3 {
        let call = Socket::connect(listener.local_addr(), config());
        pairs.push(within(async { tokio::try_join!(call, listener.accept()) }).await.unwrap());
    }
    // At least five drivers end now. If their sockets were closed, the kernel would give the
    // datagrams of most callers to other shards than before.
    drop(listener);
    // All drivers have their turns between these messages.
    for n in 0..20 {
        for (caller, accepted) in &pairs {
            caller.send(message(n)).await.unwrap();
            assert_eq!(within(accepted.recv()).await.unwrap().payload, message(n));
        }
    }
}

#[tokio::test]
async fn a_runtime_may_have_many_listeners() {
    let mut listeners = Vec::new();
    for _ in 0..20 {
        listeners.push(Listener::bind(local(), config()).await.unwrap());
    }
    let port = Port::bind(PortConfig { local: Some(local()), ..PortConfig::default() });
    let port = port.await.unwrap();
    for listener in &listeners {
        let call = port.connect(listener.local_addr(), config());
        within(async { tokio::try_join!(call, listener.accept()) }).await.unwrap();
    }
}

#[tokio::test]
async fn an_answer_after_the_runtime_of_the_caller_is_gone_is_no_error() {
    let listener = Listener::bind(local(), config()).await.unwrap();
    let call = tokio::spawn(Socket::connect(listener.local_addr(), config()));
    let incoming = within(listener.incoming()).await.unwrap();
    call.abort();
    match within(incoming.accept()).await {
        Ok(socket) => drop(socket),
        Err(error) => assert!(matches!(error, Error::Accept(_)), "{error}"),
    }
}
