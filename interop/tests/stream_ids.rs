//! Stream IDs arrive as they were sent, in the form that access control uses.

#![forbid(unsafe_code)]

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use interop::{End, Folder, LibsrtPeer, Process, Program, Role, Tool, free_port, have_all};
use punctual::{Config, Listener, Socket};
use tokio::time::timeout;

#[tokio::test(flavor = "multi_thread")]
async fn from_srt_live_transmit() {
    from("from_srt_live_transmit", Program::SrtLiveTransmit).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn from_ffmpeg() {
    from("from_ffmpeg", Program::Ffmpeg).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn from_gstreamer() {
    from("from_gstreamer", Program::GStreamer).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn to_libsrt() {
    if !have_all(&[Tool::CompilerAndLibsrt]) {
        return;
    }
    let folder = Folder::of("to_libsrt");
    let port = free_port();
    let mut peer = LibsrtPeer::listen(port, None, &folder);
    let config = Config::default().with_stream_id(STREAM_ID).expect("the ID is short");
    let socket = Socket::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), config).await;
    socket.expect("the peer accepts");
    assert_eq!(peer.wait_for_line("stream id"), format!("stream id: {STREAM_ID}"));
}

/// Lets a peer call our listener.
async fn from(test: &str, program: Program) {
    if !have_all(program.tools()) {
        return;
    }
    let folder = Folder::of(test);
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = Listener::bind(local, Config::default()).await.expect("a port is free");
    let end = End::new(Role::Caller, listener.local_addr().port()).with_stream_id(STREAM_ID);
    let (command, _) = program.receiver(&end, &folder.file("received"));
    let _peer = Process::start("peer", command, &folder);

    let call = timeout(Duration::from_secs(10), listener.incoming()).await;
    let call = call.expect("the peer calls").expect("the listener is open");
    assert_eq!(call.stream_id(), STREAM_ID);
    assert!(call.peer_version() >= 0x01_05_00, "{:#x}", call.peer_version());
    let socket = call.accept().await.expect("the peer still waits");
    assert_eq!(socket.stream_id(), STREAM_ID);
}

const STREAM_ID: &str = "#!::r=live/camera 1,m=publish,u=äö";
