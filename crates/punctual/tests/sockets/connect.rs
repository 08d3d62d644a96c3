//! Callers and listeners.

use std::net::SocketAddr;
use std::time::Duration;

use crate::common::{config, local, message, within};
use punctual::{
    CloseReason, Config, ConnectError, Error, Listener, Port, PortConfig, RejectReason, Socket,
    UnconnectedSocket,
};

#[tokio::test]
async fn both_ends_report_the_negotiated_options() {
    let listener = Listener::bind(local(), config()).await.unwrap();
    let call = Config::default()
        .with_latency(Duration::from_millis(250))
        .unwrap()
        .with_stream_id("#!::r=live/news,m=publish")
        .unwrap();
    let (caller, accepted) = within(async {
        tokio::try_join!(Socket::connect(listener.local_addr(), call), listener.accept())
    })
    .await
    .unwrap();

    assert_eq!(caller.peer_addr(), listener.local_addr());
    assert_eq!(accepted.peer_addr().port(), caller.local_addr().port());
    assert_eq!(accepted.stream_id(), "#!::r=live/news,m=publish");
    for socket in [&caller, &accepted] {
        let info = socket.info();
        assert!(info.connected);
        assert_eq!(info.receive_latency, Duration::from_millis(250), "the larger wish counts");
        assert_eq!(info.peer_latency, Duration::from_millis(250));
        assert_eq!(info.path, socket.peer_addr());
    }
    assert_eq!(caller.info().peer_socket_id, accepted.info().socket_id);
    assert_eq!(accepted.info().peer_socket_id, caller.info().socket_id);
}

#[tokio::test]
async fn a_rejection_carries_its_code() {
    let listener = Listener::bind(local(), config()).await.unwrap();
    let address = listener.local_addr();
    let own = RejectReason::from_api(2_042).unwrap();
    let answer = async {
        let call = listener.incoming().await.unwrap();
        assert_eq!(call.stream_id(), "nobody knows this");
        assert_eq!(call.peer_version() >> 16, 1);
        call.reject(own);
        // A caller without an answer is rejected as well.
        drop(listener.incoming().await.unwrap());
    };
    let call = config().with_stream_id("nobody knows this").unwrap();
    let calls = async {
        let error = Socket::connect(address, call.clone()).await.unwrap_err();
        assert_eq!(error.reject_reason(), Some(own), "{error}");
        let error = Socket::connect(address, call).await.unwrap_err();
        assert_eq!(error.reject_reason(), Some(RejectReason::FALLBACK), "{error}");
    };
    within(async { tokio::join!(answer, calls) }).await;
}

#[tokio::test]
async fn a_hook_accepts_or_rejects_with_options_for_each() {
    let listener = Listener::bind(local(), config()).await.unwrap();
    let address = listener.local_addr();
    let serve = listener.accept_with(|call| match call.stream_id() {
        "slow" => Ok(Config::default().with_latency(Duration::from_millis(777)).unwrap()),
        _ => Err(RejectReason::FORBIDDEN),
    });
    let call = async {
        for wrong in ["fast", ""] {
            let call = config().with_stream_id(wrong).unwrap();
            let error = Socket::connect(address, call).await.unwrap_err();
            assert_eq!(error.reject_reason(), Some(RejectReason::FORBIDDEN));
        }
        Socket::connect(address, config().with_stream_id("slow").unwrap()).await
    };
    let (accepted, caller) = within(async { tokio::try_join!(serve, call) }).await.unwrap();
    assert_eq!(accepted.info().receive_latency, Duration::from_millis(777));
    assert_eq!(caller.info().peer_latency, Duration::from_millis(777));
}

#[tokio::test]
async fn a_caller_waits_for_a_slow_decision() {
    let listener = Listener::bind(local(), config()).await.unwrap();
    let address = listener.local_addr();
    let answer = async {
        let call = listener.incoming().await.unwrap();
        let (yes, asked) = tokio::sync::oneshot::channel();
        tokio::spawn(async move { yes.send(true) });
        assert!(asked.await.unwrap());
        call.accept().await
    };
    let call = Socket::connect(address, config());
    within(async { tokio::try_join!(answer, call) }).await.unwrap();
}

#[tokio::test]
async fn a_call_without_an_answer_times_out() {
    // Bound, so that no other test gets the port, and never read.
    let nobody = tokio::net::UdpSocket::bind(local()).await.unwrap();
    let limit = Duration::from_millis(300);
    let config = config().with_connect_timeout(limit).unwrap();
    let error = within(Socket::connect(nobody.local_addr().unwrap(), config)).await.unwrap_err();
    assert_eq!(error.close_reason(), Some(&CloseReason::ConnectTimeout(limit)));
}

#[tokio::test]
async fn a_call_to_a_closed_port_times_out() {
    // ICMP errors come back from here; they must not disturb the driver.
    let closed = {
        let socket = tokio::net::UdpSocket::bind(local()).await.unwrap();
        socket.local_addr().unwrap()
    };
    let port = Port::bind(PortConfig::default()).await.unwrap();
    let short = config().with_connect_timeout(Duration::from_millis(300)).unwrap();
    let error = within(port.connect(closed, short)).await.unwrap_err();
    assert!(matches!(error.close_reason(), Some(CloseReason::ConnectTimeout(_))), "{error}");

    let listener = Listener::bind(local(), config()).await.unwrap();
    let call = port.connect(listener.local_addr(), config());
    within(async { tokio::try_join!(call, listener.accept()) }).await.unwrap();
}

#[tokio::test]
async fn an_address_that_cannot_be_called_is_named() {
    let port = Port::bind(PortConfig { local: Some(local()), ..PortConfig::default() });
    let port = port.await.unwrap();
    let error = port.connect("127.0.0.1:0".parse().unwrap(), config()).await.unwrap_err();
    assert!(matches!(error, Error::Connect(ConnectError::InvalidAddress(_))), "{error}");
    let error = port.connect("[::1]:9000".parse().unwrap(), config()).await.unwrap_err();
    let expected =
        format!("[::1]:9000 cannot be reached from a port bound to {}", port.local_addr());
    assert_eq!(error.to_string(), expected);
}

#[test]
fn binding_outside_a_runtime_is_an_error() {
    let mut bind = std::pin::pin!(Port::bind(PortConfig::default()));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(Err(error)) = bind.as_mut().poll(&mut cx) else {
        panic!("there is no runtime to wait in")
    };
    assert!(matches!(error, Error::Io(_)), "{error}");
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let listener = Listener::bind(local(), config()).await.unwrap();
    let error = Listener::bind(listener.local_addr(), config()).await.unwrap_err();
    let expected = format!("cannot bind UDP port {}", listener.local_addr());
    assert!(error.to_string().starts_with(&expected), "{error}");
}

#[tokio::test]
async fn options_out_of_range_are_named() {
    let config = PortConfig { ttl: Some(256), ..PortConfig::default() };
    let error = Port::bind(config).await.unwrap_err();
    assert_eq!(error.to_string(), "ipttl is 256; it must be 1 to 255 hops");
    let config = PortConfig { tos: Some(400), ..PortConfig::default() };
    let error = Port::bind(config).await.unwrap_err();
    assert_eq!(error.to_string(), "iptos is 400; it must be 0 to 255");
}

#[tokio::test]
async fn a_hundred_calls_from_one_port() {
    let listener = Listener::bind(local(), config()).await.unwrap();
    let port = Port::bind(PortConfig { local: Some(local()), ..PortConfig::default() });
    let port = port.await.unwrap();
    let serve = async {
        let mut accepted = Vec::new();
        while accepted.len() < 100 {
            accepted.push(listener.accept().await.unwrap());
        }
        accepted
    };
    let calls: Vec<_> = (0..100)
        .map(|n| {
            let (port, to) = (port.clone(), listener.local_addr());
            let config = config().with_stream_id(n.to_string()).unwrap();
            tokio::spawn(async move { port.connect(to, config).await.unwrap() })
        })
        .collect();
    let accepted = within(serve).await;
    let mut callers = Vec::new();
    for call in calls {
        callers.push(within(call).await.unwrap());
    }
    for (n, caller) in (0..).zip(&callers) {
        assert_eq!(caller.local_addr(), port.local_addr());
        caller.send(message(n)).await.unwrap();
    }
    for socket in &accepted {
        assert_eq!(socket.peer_addr(), port.local_addr());
        let n = socket.stream_id().parse().unwrap();
        assert_eq!(within(socket.recv()).await.unwrap().payload, message(n));
    }
}

#[tokio::test]
async fn ipv6() {
    let Some(listener) = listen_ipv6("[::1]:0").await else { return };
    let call = Socket::connect(listener.local_addr(), config());
    let (caller, accepted) =
        within(async { tokio::try_join!(call, listener.accept()) }).await.unwrap();
    assert!(caller.peer_addr().is_ipv6());
    assert!(accepted.peer_addr().ip().is_loopback());
    exchange(&caller, &accepted).await;
}

#[tokio::test]
async fn one_listener_for_both_families() {
    let Some(listener) = listen_ipv6("[::]:0").await else { return };
    let port = listener.local_addr().port();
    for to in ["127.0.0.1", "::1"] {
        let to = SocketAddr::new(to.parse().unwrap(), port);
        let call = Socket::connect(to, config());
        let (caller, accepted) =
            within(async { tokio::try_join!(call, listener.accept()) }).await.unwrap();
        assert_eq!(accepted.peer_addr().ip(), to.ip(), "an IPv4 caller shows as IPv4");
        assert_eq!(caller.peer_addr(), to);
        exchange(&caller, &accepted).await;
    }
}

#[tokio::test]
async fn one_port_calls_both_families() {
    let Some(ipv6) = listen_ipv6("[::1]:0").await else { return };
    let ipv4 = Listener::bind(local(), config()).await.unwrap();
    let port = Port::bind(PortConfig::default()).await.unwrap();
    for listener in [ipv4, ipv6] {
        let call = port.connect(listener.local_addr(), config());
        let (caller, accepted) =
            within(async { tokio::try_join!(call, listener.accept()) }).await.unwrap();
        exchange(&caller, &accepted).await;
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_answer_comes_from_the_address_that_was_called() {
    let any = "0.0.0.0:0".parse().unwrap();
    let listener = Listener::bind(any, config()).await.unwrap();
    // All of 127.0.0.0/8 is local, and the system would answer from 127.0.0.1.
    let to = SocketAddr::from(([127, 4, 3, 2], listener.local_addr().port()));
    let call = Socket::connect(to, config());
    let (caller, accepted) =
        within(async { tokio::try_join!(call, listener.accept()) }).await.unwrap();
    exchange(&caller, &accepted).await;
}

#[tokio::test]
async fn socket_options_do_no_harm() {
    let port = PortConfig {
        local: Some(local()),
        send_buffer: Some(100_000),
        receive_buffer: Some(200_000),
        ttl: Some(3),
        tos: Some(0xB8),
        ..PortConfig::default()
    };
    let listener = Listener::bind(local(), config()).await.unwrap();
    let port = Port::bind(port).await.unwrap();
    let call = port.connect(listener.local_addr(), config());
    let (caller, accepted) =
        within(async { tokio::try_join!(call, listener.accept()) }).await.unwrap();
    exchange(&caller, &accepted).await;
}

async fn exchange(a: &Socket, b: &Socket) {
    for (n, from, to) in [(1, a, b), (2, b, a)] {
        from.send(message(n)).await.unwrap();
        assert_eq!(within(to.recv()).await.unwrap().payload, message(n));
    }
}

/// `None` on a system without IPv6.
async fn listen_ipv6(local: &str) -> Option<Listener> {
    tokio::net::UdpSocket::bind("[::1]:0").await.ok()?;
    Some(Listener::bind(local.parse().unwrap(), config()).await.unwrap())
}

#[tokio::test]
async fn a_socket_takes_options_and_is_bound_before_it_connects_or_listens() {
    let mut there = UnconnectedSocket::default();
    assert_eq!(there.local_addr(), None);
    there.set_option("rcvlatency", 333).unwrap();
    let address = there.bind(local()).await.unwrap();
    assert_eq!(there.local_addr(), Some(address));
    let error = there.set_option("sndbuf", 1_000_000).unwrap_err();
    assert_eq!(error.to_string(), "sndbuf is 1000000; it must be set before the socket is bound");
    let listener = there.listen().await.unwrap();
    assert_eq!(listener.local_addr(), address);

    let mut here = UnconnectedSocket::default();
    let error = here.set_option("latency", 70_000).unwrap_err();
    assert_eq!(error.to_string(), "rcvlatency is 70s; it must be 0 to 65535 ms");
    assert_eq!(here.option("latency"), Some(Duration::from_millis(120).into()));
    here.set_option("streamid", "late").unwrap();
    let call = here.connect(address);
    let (caller, accepted) =
        within(async { tokio::try_join!(call, listener.accept()) }).await.unwrap();
    assert_eq!(accepted.stream_id(), "late");
    assert_eq!(caller.info().peer_latency, Duration::from_millis(333));
    drop(listener);
    caller.send("still here".into()).await.unwrap();
    assert_eq!(within(accepted.recv()).await.unwrap().payload, "still here");
}
