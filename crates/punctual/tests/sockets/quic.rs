//! SRT over QUIC over real sockets.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use punctual::quic::{
    CertificateHash, ClientTls, Identity, QuicConfig, SRT_PROTOCOLS, ServerTls, TlsFailure,
    TransportConfig, Trust,
};
use punctual::{
    Accepted, Carriage, CloseReason, Config, Error, Group, GroupKind, GroupLink, Instant, Listener,
    ListenerConfig, Port, PortConfig, Socket,
};
use tokio::net::UdpSocket;
use tokio::time::timeout;

use crate::common::{config, local, message, prompt, until, until_free, within};

/// An identity and the options of a caller that pins it.
fn tls() -> (ServerTls, ClientTls) {
    let identity = Identity::self_signed(&["localhost"]).unwrap();
    let trust = Trust::Pinned(identity.hash().unwrap());
    (ServerTls::new(identity, SRT_PROTOCOLS), ClientTls::new(trust, SRT_PROTOCOLS))
}

fn server(tls: ServerTls) -> Carriage {
    Carriage::Quic(Arc::new(QuicConfig { server: Some(tls), ..QuicConfig::default() }))
}

fn client(tls: ClientTls) -> Carriage {
    Carriage::Quic(Arc::new(QuicConfig { client: Some(tls), ..QuicConfig::default() }))
}

async fn listener(carriage: Carriage, connection: Config) -> Listener {
    let port = PortConfig { local: Some(local()), carriage, ..PortConfig::default() };
    let config = ListenerConfig { port, connection, ..ListenerConfig::default() };
    Listener::bind_with(config).await.unwrap()
}

async fn port(carriage: Carriage) -> Port {
    let local = Some(local());
    Port::bind(PortConfig { local, carriage, ..PortConfig::default() }).await.unwrap()
}

/// A caller and the accepted connection over QUIC.
async fn pair(config: Config) -> (Socket, Socket) {
    let (ours, theirs) = tls();
    let listener = listener(server(ours), config.clone()).await;
    let port = port(client(theirs)).await;
    let call = port.connect(listener.local_addr(), config);
    within(async { tokio::try_join!(call, listener.accept()) }).await.unwrap()
}

async fn exchange(from: &Socket, to: &Socket, count: u32) {
    let send = async {
        for n in 0..count {
            from.send(message(n)).await.unwrap();
        }
    };
    let receive = async {
        for n in 0..count {
            assert_eq!(to.recv().await.unwrap().payload, message(n));
        }
    };
    within(async { tokio::join!(send, receive) }).await;
}

#[tokio::test]
async fn messages_arrive_in_order_both_ways_over_quic() {
    let (a, b) = pair(prompt()).await;
    exchange(&a, &b, 2_000).await;
    exchange(&b, &a, 2_000).await;
    let quic = a.quic_info().unwrap();
    assert!(quic.packets_sent > 1_000 && quic.datagrams_dropped == 0, "{quic:?}");
}

#[tokio::test]
async fn encryption_by_passphrase_works_inside_quic() {
    let secret = prompt().with_passphrase("a long passphrase").unwrap();
    let (a, b) = pair(secret).await;
    exchange(&a, &b, 200).await;
}

#[tokio::test]
async fn a_close_reaches_the_peer_and_frees_the_port() {
    let (a, b) = pair(prompt()).await;
    let address = a.local_addr();
    a.close().await;
    let end = within(b.recv()).await;
    assert!(matches!(end, Err(Error::Closed(CloseReason::Peer))), "{end:?}");
    drop((a, b));
    until_free(address).await;
}

#[tokio::test]
async fn calls_of_one_port_share_a_quic_connection() {
    let (ours, theirs) = tls();
    let listener = listener(server(ours), prompt()).await;
    let port = port(client(theirs)).await;
    let mut pairs = Vec::new();
    for _ in 0..3 {
        let call = port.connect(listener.local_addr(), prompt());
        let pair = within(async { tokio::try_join!(call, listener.accept()) }).await.unwrap();
        pairs.push(pair);
    }
    for (caller, accepted) in &pairs {
        exchange(caller, accepted, 50).await;
    }
    let sent = pairs.iter().map(|(caller, _)| caller.quic_info().unwrap().datagrams_sent);
    let sent: Vec<u64> = sent.collect();
    assert!(sent.iter().all(|&it| it >= 150), "each counts the datagrams of all: {sent:?}");
}

#[tokio::test]
async fn another_certificate_than_the_pinned_one_ends_the_call_with_the_reason() {
    let (ours, _) = tls();
    let listener = listener(server(ours), config()).await;
    let wrong = ClientTls::new(Trust::Pinned(CertificateHash([1; 32])), SRT_PROTOCOLS);
    let port = port(client(wrong)).await;
    let error = within(port.connect(listener.local_addr(), config())).await.unwrap_err();
    let Error::Closed(CloseReason::PathLost(reason)) = &error else { panic!("{error:?}") };
    assert_eq!(**reason, *TlsFailure::NotPinned.to_string());
}

#[tokio::test]
async fn a_port_without_certificates_says_what_is_missing() {
    let (ours, theirs) = tls();
    let only_listens = port(server(ours)).await;
    let error = within(only_listens.connect(local_target(), config())).await.unwrap_err();
    assert!(matches!(error, Error::NoTrust), "{error:?}");

    let only_calls = PortConfig { local: Some(local()), ..PortConfig::default() };
    let only_calls = PortConfig { carriage: client(theirs.clone()), ..only_calls };
    let config_of = ListenerConfig { port: only_calls, ..ListenerConfig::default() };
    let error = Listener::bind_with(config_of).await.unwrap_err();
    assert!(matches!(error, Error::NoIdentity), "{error:?}");

    let port = port(client(theirs)).await;
    let error = within(port.rendezvous(local_target(), config())).await.unwrap_err();
    assert!(matches!(error, Error::NoRendezvous), "{error:?}");
}

/// An address that is not called in the end.
fn local_target() -> SocketAddr {
    "127.0.0.1:9".parse().unwrap()
}

#[tokio::test]
async fn a_stream_survives_a_nat_that_rebinds() {
    let (ours, theirs) = tls();
    let listener = listener(server(ours), prompt()).await;
    let (address, rebind) = nat(listener.local_addr()).await;
    let port = port(client(theirs)).await;
    let call = port.connect(address, prompt());
    let (a, b) = within(async { tokio::try_join!(call, listener.accept()) }).await.unwrap();
    exchange(&a, &b, 100).await;
    let before = b.peer_addr();
    rebind.notify_one();
    exchange(&a, &b, 300).await;
    until(|| b.peer_addr() != before).await;
    exchange(&b, &a, 100).await;
}

/// A relay in front of `target` that takes another port towards it on each notification.
async fn nat(target: SocketAddr) -> (SocketAddr, Arc<tokio::sync::Notify>) {
    let inside = UdpSocket::bind(local()).await.unwrap();
    let (address, rebind) = (inside.local_addr().unwrap(), Arc::new(tokio::sync::Notify::new()));
    let rebinds = Arc::clone(&rebind);
    tokio::spawn(async move {
        let mut outside = UdpSocket::bind(local()).await.unwrap();
        let (mut there, mut here) = (vec![0; 2_048], vec![0; 2_048]);
        let mut caller = None;
        loop {
            tokio::select! {
                () = rebinds.notified() => outside = UdpSocket::bind(local()).await.unwrap(),
                Ok((size, from)) = inside.recv_from(&mut there) => {
                    caller = Some(from);
                    let _ = outside.send_to(&there[..size], target).await;
                }
                Ok((size, _)) = outside.recv_from(&mut here) => {
                    if let Some(caller) = caller {
                        let _ = inside.send_to(&here[..size], caller).await;
                    }
                }
            }
        }
    });
    (address, rebind)
}

#[tokio::test]
async fn a_group_has_links_over_udp_and_over_quic() {
    let (ours, theirs) = tls();
    let accepts = config().with_latency(Duration::from_millis(500)).unwrap();
    let accepts = accepts.with_group_connect(true);
    let udp = PortConfig { local: Some(local()), ..PortConfig::default() };
    let quic = PortConfig { carriage: server(ours), ..udp.clone() };
    let on = |port: PortConfig| ListenerConfig {
        port,
        connection: accepts.clone(),
        ..ListenerConfig::default()
    };
    let (udp_address, quic_address) = (free_address().await, free_address().await);
    let udp_port = PortConfig { local: Some(udp_address), ..udp };
    let quic_port = PortConfig { local: Some(quic_address), ..quic };
    let listener = Listener::bind_all(vec![on(udp_port), on(quic_port)]).await.unwrap();

    let by_quic = PortConfig { carriage: client(theirs), ..PortConfig::default() };
    let links = vec![
        GroupLink::to(udp_address),
        GroupLink { port: by_quic, ..GroupLink::to(quic_address) },
    ];
    let call = Group::connect(GroupKind::Broadcast, links, accepts);
    let accept = async {
        match listener.accept_any().await.unwrap() {
            Accepted::Group(group) => group,
            Accepted::Socket(_) => panic!("a group called"),
        }
    };
    let (sender, receiver) = within(async { tokio::join!(call, accept) }).await;
    let sender = sender.unwrap();
    until(|| sender.links().iter().filter(|link| link.state.is_up()).count() == 2).await;
    for n in 0..100 {
        sender.send(message(n)).await.unwrap();
    }
    for n in 0..100 {
        assert_eq!(within(receiver.recv()).await.unwrap().payload, message(n));
    }
}

/// A loopback address whose port no socket has.
async fn free_address() -> SocketAddr {
    UdpSocket::bind(local()).await.unwrap().local_addr().unwrap()
}

/// The first packet of a caller that nobody has seen before.
fn initial_packet(number: u32, tls: &ClientTls, remote: SocketAddr) -> Vec<u8> {
    let mut seed = [7; 32];
    seed[..4].copy_from_slice(&number.to_be_bytes());
    let epoch = tokio::time::Instant::now().into_std();
    let mut caller =
        punctual_quic::QuicEndpoint::new(punctual_quic::QuicEndpointConfig::new(seed, epoch));
    let (now, transport) = (Instant::ORIGIN, TransportConfig::default());
    caller.connect(now, remote, "localhost", tls, &transport).unwrap();
    let mut packet = Vec::new();
    caller.poll_transmit(now, 1, &mut packet).unwrap();
    packet
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_first_packets_harms_no_stream_and_gets_retry_packets() {
    const FLOOD: u32 = 3_000;
    let (ours, theirs) = tls();
    // A busy machine may take its time.
    let config = || config().with_latency(Duration::from_millis(250)).unwrap();
    let listener = listener(server(ours), config()).await;
    let remote = listener.local_addr();
    let port = port(client(theirs.clone())).await;
    let call = port.connect(remote, config());
    let (caller, accepted) =
        within(async { tokio::try_join!(call, listener.accept()) }).await.unwrap();

    let stranger = Arc::new(UdpSocket::bind(local()).await.unwrap());
    let flooding = tokio::spawn({
        let (stranger, tls) = (Arc::clone(&stranger), theirs.clone());
        async move {
            for number in 0..FLOOD {
                stranger.send_to(&initial_packet(number, &tls, remote), remote).await.unwrap();
            }
        }
    });
    // Answers of the type Retry, and the others. A busy machine drops many of both.
    let answers = tokio::spawn(async move {
        let (mut buffer, mut answers) = ([0; 2_048], [0; 2]);
        while let Ok(Ok(length)) = timeout(Duration::from_secs(1), stranger.recv(&mut buffer)).await
        {
            let is_retry = length > 0 && buffer[0] & 0xF0 == 0xF0;
            answers[usize::from(!is_retry)] += 1;
        }
        answers
    });
    // The stream goes on for as long as the flood does.
    let mut sent = 0;
    while !flooding.is_finished() || sent < 500 {
        caller.send(message(sent)).await.unwrap();
        sent += 1;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for n in 0..sent {
        assert_eq!(within(accepted.recv()).await.unwrap().payload, message(n));
    }
    assert_eq!(accepted.statistics().packets_receive_dropped, 0);
    let [retries, others] = answers.await.unwrap();
    assert!(retries > 2 * others, "{retries} have to prove their address, {others} need not");
    // An honest caller gets in, by a Retry packet.
    let second = self::port(client(theirs)).await;
    let call = second.connect(remote, config());
    within(async { tokio::try_join!(call, listener.accept()) }).await.unwrap();
}
