//! IPv6 with a peer program: over `::1`, in both roles, with the largest payload that fits.

#![forbid(unsafe_code)]

use std::fs;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use interop::{
    Folder, Process, Tool, free_port, have_all, retry_if_stalled_async, wait_until_bound,
};
use punctual::{Config, Listener, Socket};
use tokio::time::timeout;

/// Of an MTU of 1500 bytes, IPv6 and UDP take 48 and SRT 16.
const LARGEST: usize = 1_436;
const MESSAGES: u32 = 200;

#[test]
fn srt_live_transmit_listens() {
    retry_if_stalled_async(async || {
        let Some(folder) = prepare("srt_live_transmit_listens") else { return };
        let port = free_port();
        let received = folder.file("received");
        let uri = format!("srt://[::1]:{port}?mode=listener&latency=250&payloadsize={LARGEST}");
        let _peer = Process::start_with_output("peer", receiver(&uri), &folder, Some(&received));
        wait_until_bound(port);
        let remote = SocketAddr::from((Ipv6Addr::LOCALHOST, port));
        let socket = Socket::connect(remote, config()).await.expect("the peer accepts");
        assert_carries(&socket, &received).await;
    });
}

#[test]
fn srt_live_transmit_calls_a_listener_of_both_families() {
    retry_if_stalled_async(async || {
        let Some(folder) = prepare("srt_live_transmit_calls_a_listener_of_both_families") else {
            return;
        };
        let both = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
        let listener = Listener::bind(both, config()).await.expect("a port is free");
        let port = listener.local_addr().port();
        for (host, largest) in [("[::1]", LARGEST), ("127.0.0.1", LARGEST + 20)] {
            let received = folder.file(&format!("received-by-{largest}"));
            let uri = format!("srt://{host}:{port}?latency=250&payloadsize={largest}");
            let _peer =
                Process::start_with_output("peer", receiver(&uri), &folder, Some(&received));
            let accepted = timeout(TIMEOUT, listener.accept()).await.expect("the peer calls");
            let socket = accepted.expect("the peer still waits");
            let ip: IpAddr = host.trim_matches(['[', ']']).parse().expect("an address");
            assert_eq!(socket.peer_addr().ip(), ip, "IPv4 shows as IPv4");
            assert_eq!(socket.info().max_payload, largest);
            assert_carries(&socket, &received).await;
        }
    });
}

/// `None` where the peer is not installed or the system has no IPv6.
fn prepare(test: &str) -> Option<Folder> {
    let ipv6 = std::net::TcpListener::bind("[::1]:0").is_ok();
    (ipv6 && have_all(&[Tool::SrtLiveTransmit])).then(|| Folder::of(test))
}

fn config() -> Config {
    Config::default().with_payload_size(1_456).expect("in range").with_linger(TIMEOUT)
}

fn receiver(uri: &str) -> Command {
    let mut command = Command::new("srt-live-transmit");
    command.args(["-a:no", "-v", "-chunk:1456", uri, "file://con"]);
    command
}

/// Sends messages of the largest size, and finds them in the file `received`.
async fn assert_carries(socket: &Socket, received: &Path) {
    let largest = socket.info().max_payload;
    let too_large = socket.send(Bytes::from(vec![0; largest + 1])).await;
    assert!(too_large.is_err(), "{} bytes do not fit", largest + 1);
    let mut sent = Vec::new();
    let mut pace = tokio::time::interval(Duration::from_millis(2));
    for n in 0..MESSAGES {
        pace.tick().await;
        let mut message = n.to_be_bytes().repeat(largest / 4);
        message.resize(largest, 0);
        sent.extend_from_slice(&message);
        socket.send(message.into()).await.expect("the connection is established");
    }
    // The peer writes the data that it holds when the connection ends.
    socket.close().await;
    let arrived = async {
        while fs::metadata(received).map_or(0, |file| file.len()) < sent.len() as u64 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(TIMEOUT, arrived).await.expect("everything arrives");
    assert!(fs::read(received).expect("a file") == sent, "the file has the sent messages only");
}

/// Far more than it takes.
const TIMEOUT: Duration = Duration::from_secs(20);
