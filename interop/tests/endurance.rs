//! Faults between real ends do not end a stream that could go on, and end one that cannot.

#![forbid(unsafe_code)]
#![expect(clippy::disallowed_types, reason = "a stranger's datagrams come from a socket")]

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use bytes::Bytes;
use interop::{
    Clip, End, Feed, Folder, Process, Program, Role, Tap, Tool, free_port, have_all,
    retry_if_stalled_async, wait_until_bound,
};
use punctual::{CloseReason, Config, Listener, Socket};
use tokio::time::{sleep, timeout};

#[test]
fn a_stream_from_libsrt_goes_on_after_an_outage() {
    retry_if_stalled_async(async || {
        let Some(folder) = folder("a_stream_from_libsrt_goes_on_after_an_outage") else { return };
        let listener = listener().await;
        let tap = Tap::start(listener.local_addr().port(), NEVER, &folder.file("session.pcap"));
        let (_peer, _feed, socket) = calling_sender(&listener, tap.port(), &folder).await;
        receive_for(&socket, Duration::from_secs(1)).await;

        tap.cut(true);
        sleep(Duration::from_secs(2)).await;
        tap.cut(false);

        let lost = receive_for(&socket, Duration::from_secs(2)).await;
        assert!(lost > 100, "an outage of 2 s at 475 messages a second, and {lost} lost");
        assert!(receive_for(&socket, Duration::from_secs(1)).await < 10, "it is over");
    });
}

#[test]
fn a_stream_to_libsrt_goes_on_after_an_outage() {
    retry_if_stalled_async(async || {
        let Some(folder) = folder("a_stream_to_libsrt_goes_on_after_an_outage") else { return };
        let port = free_port();
        let received = folder.file("received");
        let (command, _) =
            Program::SrtLiveTransmit.receiver(&End::new(Role::Listener, port), &received);
        let _peer = Process::start_with_output("peer", command, &folder, Some(&received));
        wait_until_bound(port);
        let tap = Tap::start(port, NEVER, &folder.file("session.pcap"));
        let remote = SocketAddr::from((Ipv4Addr::LOCALHOST, tap.port()));
        let socket = Socket::connect(remote, Config::default()).await.expect("the peer accepts");
        send_for(&socket, Duration::from_secs(1)).await;

        tap.cut(true);
        send_for(&socket, Duration::from_secs(2)).await;
        tap.cut(false);
        send_for(&socket, Duration::from_millis(500)).await;

        let size = || std::fs::metadata(&received).expect("the peer made its file").len();
        let before = size();
        send_for(&socket, Duration::from_secs(1)).await;
        let bytes = size() - before;
        assert!(bytes > 400_000, "{bytes} bytes arrived in a second after the outage, not 625,000");
    });
}

#[test]
fn a_peer_that_vanishes_is_noticed() {
    retry_if_stalled_async(async || {
        let Some(folder) = folder("a_peer_that_vanishes_is_noticed") else { return };
        let listener = listener().await;
        let port = listener.local_addr().port();
        let (peer, _feed, socket) = calling_sender(&listener, port, &folder).await;
        receive_for(&socket, Duration::from_millis(500)).await;
        drop(peer); // Killed: it says nothing any more.
        let reason =
            timeout(Duration::from_secs(10), socket.closed()).await.expect("noticed in time");
        assert!(matches!(reason, CloseReason::Idle(_)), "{reason}");
    });
}

#[test]
fn a_stranger_changes_nothing() {
    retry_if_stalled_async(async || {
        let Some(folder) = folder("a_stranger_changes_nothing") else { return };
        let listener = listener().await;
        let (_peer, _feed, socket) =
            calling_sender(&listener, listener.local_addr().port(), &folder).await;
        receive_for(&socket, Duration::from_millis(500)).await;

        let stranger = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        stranger.connect(listener.local_addr()).expect("a UDP socket can be connected");
        let id = socket.info().socket_id.value();
        for kind in 0..=8_u32 {
            // Each control type, SHUTDOWN and a wild NAK among them, with the right socket ID.
            let words = [0x8000_0000 | kind << 16, 0, 0, id, 0x8000_0000, 0x7FFF_FFFF];
            let datagram: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
            for length in 0..=datagram.len() {
                stranger.send(&datagram[..length]).expect("loopback takes datagrams");
            }
        }
        assert_eq!(receive_for(&socket, Duration::from_secs(1)).await, 0, "messages lost");
    });
}

/// The folder of a test that needs srt-live-transmit, unless that is missing.
fn folder(test: &str) -> Option<Folder> {
    have_all(&[Tool::Ffmpeg, Tool::SrtLiveTransmit]).then(|| Folder::of(test))
}

async fn listener() -> Listener {
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Listener::bind(local, Config::default()).await.expect("a port is free")
}

/// srt-live-transmit sends the clip to `listener`, calling `port`.
async fn calling_sender(
    listener: &Listener,
    port: u16,
    folder: &Folder,
) -> (Process, Feed, Socket) {
    let end = End::new(Role::Caller, port);
    let command = Program::SrtLiveTransmit.sender(&end, &folder.file("reference.ts"));
    let mut peer = Process::start("peer", command, folder);
    let socket = timeout(Duration::from_secs(10), listener.accept()).await;
    let socket = socket.expect("the peer calls").expect("the listener is open");
    if let Some(line) = Program::SrtLiveTransmit.says_when_connected(Role::Caller, true) {
        peer.wait_for_line(line);
    }
    let feed = Clip::get().feed(peer.stdin());
    (peer, feed, socket)
}

/// Receives for this time and returns how many messages were lost meanwhile. Fails if none arrive.
async fn receive_for(socket: &Socket, time: Duration) -> u32 {
    let (mut received, mut lost) = (0, 0);
    let receiving = async {
        loop {
            let message = socket.recv().await.expect("the connection is established");
            received += 1;
            lost += message.lost_before;
        }
    };
    let _ = timeout(time, receiving).await;
    assert!(received > 0, "nothing arrived within {time:?}");
    lost
}

/// Sends 475 messages a second for this time.
async fn send_for(socket: &Socket, time: Duration) {
    let message = Bytes::from_static(&[0x47; 1_316]);
    let mut pace = tokio::time::interval(Duration::from_micros(2_105));
    let sending = async {
        loop {
            pace.tick().await;
            socket.send(message.clone()).await.expect("the connection is established");
        }
    };
    let _ = timeout(time, sending).await;
}

/// A tap that loses nothing by itself.
const NEVER: u32 = u32::MAX;
