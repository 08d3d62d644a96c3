//! Messages over QUIC without SRT, with other people's QUIC at the other end: it sends each message
//! back, as client and as server, in each way that QUIC can carry them.

#![forbid(unsafe_code)]

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use interop::{Folder, Process, Tool, bridge_certificate, free_port, have_all, wait_until_bound};
use punctual::quic::{
    ClientTls, Identity, MESSAGE_PROTOCOLS, Protocol, QuicCloseReason, QuicConfig, QuicConnection,
    QuicListener, ServerTls, TlsFailure, Trust, certificates_from_pem,
};
use punctual::{Carriage, Error, PortConfig};

const MESSAGES: usize = 600;
/// Messages after which the peer moves, as client.
const MOVE_AFTER: usize = 100;
const LOCAL: &str = "127.0.0.1";
const CARRIES: [(&str, Protocol); 3] = [
    ("datagrams", Protocol::Datagrams),
    ("streams", Protocol::Streams),
    ("stream", Protocol::Stream),
];

fn echo(role: &str, port: u16, carry: &str, first: &PathBuf, second: &str) -> Command {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/quic_echo.py");
    let mut command = Command::new("python3");
    command.args([program, role, &port.to_string(), carry]).arg(first).arg(second);
    command
}

fn port(local: u16, config: QuicConfig) -> PortConfig {
    let local = Some((LOCAL.parse::<std::net::IpAddr>().expect("an address"), local).into());
    PortConfig { local, carriage: Carriage::Quic(Arc::new(config)), ..PortConfig::default() }
}

fn trust() -> Trust {
    let certificate = fs::read(bridge_certificate().0).expect("a certificate");
    Trust::Authorities(certificates_from_pem(&certificate).expect("it is PEM"))
}

async fn call(remote: u16, trust: Trust, protocol: Protocol) -> Result<QuicConnection, Error> {
    let config = QuicConfig {
        client: Some(ClientTls::new(trust, &[protocol])),
        server_name: Some("studio.example".to_owned()),
        ..QuicConfig::default()
    };
    let remote = format!("{LOCAL}:{remote}").parse().expect("an address");
    QuicConnection::connect(port(0, config), remote).await
}

async fn listen(local: u16, protocols: &[Protocol]) -> QuicListener {
    let (certificate, key) = bridge_certificate();
    let [certificate, key] = [certificate, key].map(|path| fs::read(path).expect("a file"));
    let identity = Identity::from_pem(&certificate, &key).expect("a certificate and its key");
    let server = Some(ServerTls::new(identity, protocols));
    let config = QuicConfig { server, ..QuicConfig::default() };
    QuicListener::bind(port(local, config)).await.expect("a free port")
}

fn message(number: usize) -> Bytes {
    let length = 8 + number * 7 % 1_200;
    let mut message = vec![u8::try_from(number % 251).expect("below 251"); length];
    message[..8].copy_from_slice(&number.to_be_bytes());
    message.into()
}

/// Sends messages, a few at a time, and gets all of them back.
async fn exchange(connection: &QuicConnection, protocol: Protocol, messages: usize) {
    let mut back = Vec::new();
    for number in 0..messages {
        connection.send(message(number)).await.expect("the peer is there");
        // A few are under way, so that no queue of the peer overflows.
        if number >= 8 {
            back.push(receive(connection).await);
        }
    }
    while back.len() < messages {
        back.push(receive(connection).await);
    }
    if protocol != Protocol::Stream {
        back.sort();
    }
    assert!(back.into_iter().eq((0..messages).map(message)));
}

async fn receive(connection: &QuicConnection) -> Bytes {
    let next = tokio::time::timeout(Duration::from_secs(10), connection.recv());
    next.await.expect("it comes back").expect("the peer is there")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn aioquic_as_server_sends_every_message_back() {
    if !have_all(&[Tool::Aioquic]) {
        return;
    }
    for (carry, protocol) in CARRIES {
        let folder = Folder::of(&format!("quic-echo-server-{carry}"));
        let (certificate, key) = bridge_certificate();
        let at = free_port();
        let key = key.display().to_string();
        let mut peer =
            Process::start("echo", echo("server", at, carry, &certificate, &key), &folder);
        wait_until_bound(at);
        let connection = call(at, trust(), protocol).await.expect("it is trusted");
        exchange(&connection, protocol, MESSAGES).await;
        connection.close().await;
        peer.wait_for_line("terminated: 0 the end");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn aioquic_as_client_sends_every_message_back_while_it_moves() {
    if !have_all(&[Tool::Aioquic]) {
        return;
    }
    for (carry, protocol) in CARRIES {
        let folder = Folder::of(&format!("quic-echo-client-{carry}"));
        let at = free_port();
        let listener = listen(at, MESSAGE_PROTOCOLS).await;
        let authority = bridge_certificate().0;
        let command = echo("client", at, carry, &authority, "studio.example");
        let mut peer = Process::start("echo", command, &folder);
        let connection = listener.accept().await.expect("it calls");
        assert_eq!(connection.protocol(), Some(protocol));
        let before = connection.info().expect("it is there").remote;
        // Datagrams that are under way during the move may be lost.
        let before_the_move = if protocol == Protocol::Datagrams { MOVE_AFTER } else { MESSAGES };
        exchange(&connection, protocol, before_the_move).await;
        peer.wait_for_line("moved");
        exchange(&connection, protocol, MESSAGES).await;
        let after = connection.info().expect("it is there").remote;
        assert_ne!(before, after, "{carry}: the peer has moved");
        connection.close().await;
        peer.wait_for_line("terminated: 0 the end");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_certificate_or_protocol_of_aioquic_is_named() {
    if !have_all(&[Tool::Aioquic]) {
        return;
    }
    let folder = Folder::of("quic-echo-refused");
    let (certificate, key) = bridge_certificate();
    let at = free_port();
    let key = key.display().to_string();
    let _peer = Process::start("echo", echo("server", at, "stream", &certificate, &key), &folder);
    wait_until_bound(at);
    let other = Identity::self_signed(&["studio.example"]).expect("a name");
    let pinned = Trust::Pinned(other.hash().expect("it has a certificate"));
    let refused = call(at, pinned, Protocol::Stream).await.unwrap_err();
    let is_named = |error: &Error, failure: TlsFailure| matches!(error, Error::QuicClosed(QuicCloseReason::Tls(it)) if *it == failure);
    assert!(is_named(&refused, TlsFailure::NotPinned), "{refused:?}");
    let refused = call(at, trust(), Protocol::Datagrams).await.unwrap_err();
    assert!(is_named(&refused, TlsFailure::NoCommonProtocol), "{refused:?}");

    // The other way round, aioquic says it.
    let at = free_port();
    let _listener = listen(at, &[Protocol::Datagrams]).await;
    let command = echo("client", at, "stream", &certificate, "studio.example");
    let mut peer = Process::start("refused", command, &folder);
    peer.wait_for_line("not connected");
    assert!(peer.log().contains("terminated: 376"), "no_application_protocol: {}", peer.log());
}
