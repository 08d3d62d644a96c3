//! Stream IDs arrive as they were sent, in the form that access control uses, and latencies.

#![forbid(unsafe_code)]

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use interop::{
    End, LibsrtPeer, Process, Program, Role, SrtLibrary, Tool, free_port, on_each_library,
};
use punctual::{Config, Listener, Socket};
use tokio::time::timeout;

on_each_library! { from_ffmpeg from_gstreamer to_libsrt }

#[tokio::test(flavor = "multi_thread")]
async fn from_srt_live_transmit() {
    // It has libsrt inside.
    from("from_srt_live_transmit", Program::SrtLiveTransmit, SrtLibrary::Libsrt).await;
}

async fn from_ffmpeg(library: SrtLibrary) {
    from("from_ffmpeg", Program::Ffmpeg, library).await;
}

async fn from_gstreamer(library: SrtLibrary) {
    from("from_gstreamer", Program::GStreamer, library).await;
}

async fn to_libsrt(library: SrtLibrary) {
    if !library.is_there_with(&[Tool::CompilerAndLibsrt]) {
        return;
    }
    let folder = library.folder_of("to_libsrt");
    let port = free_port();
    let mut peer = LibsrtPeer::listen(library, port, None, &folder);
    let config = Config::default().with_stream_id(STREAM_ID).expect("the ID is short");
    let socket = Socket::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), config).await;
    socket.expect("the peer accepts");
    assert_eq!(peer.wait_for_line("stream id"), format!("stream id: {STREAM_ID}"));
}

/// Lets a peer call our listener.
async fn from(test: &str, program: Program, library: SrtLibrary) {
    if !library.is_there_with(program.tools()) {
        return;
    }
    let folder = library.folder_of(test);
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = Listener::bind(local, Config::default()).await.expect("a port is free");
    let end = End::new(Role::Caller, listener.local_addr().port()).with_stream_id(STREAM_ID);
    let (mut command, _) = program.receiver(&end, &folder.file("received"));
    library.put_under(&mut command);
    let peer = Process::start("peer", command, &folder);
    if program != Program::SrtLiveTransmit {
        library.wait_until_loaded(&peer);
    }

    let call = timeout(Duration::from_secs(10), listener.incoming()).await;
    let call = call.expect("the peer calls").expect("the listener is open");
    assert_eq!(call.stream_id(), STREAM_ID);
    assert!(call.peer_version() >= 0x01_05_00, "{:#x}", call.peer_version());
    let socket = call.accept().await.expect("the peer still waits");
    assert_eq!(socket.stream_id(), STREAM_ID);
    assert_eq!(socket.info().receive_latency, Duration::from_millis(450), "as it was told");
}

const STREAM_ID: &str = "#!::r=live/camera 1,m=publish,u=äö";
