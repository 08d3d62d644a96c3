//! A rejected caller learns the reason: codes arrive in both directions.

#![forbid(unsafe_code)]

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::time::Duration;

use interop::{
    End, Folder, LibsrtPeer, Process, Program, Role, SrtLibrary, Tool, free_port, have_all,
    on_each_library, wait_until_bound,
};
use punctual::{CloseReason, Config, Error, Listener, RejectReason, Socket};
use tokio::time::timeout;

on_each_library! {
    libsrt_learns_the_code
    ffmpeg_learns_that_the_application_refused
    gstreamer_learns_that_the_application_refused
    a_caller_that_wants_encryption_is_told_where_there_is_none
    we_learn_the_code_of_a_libsrt_application
    ffmpeg_refuses_us_for_want_of_a_passphrase
    gstreamer_refuses_us_without_a_passphrase
}

async fn libsrt_learns_the_code(library: SrtLibrary) {
    if !library.is_there_with(&[Tool::CompilerAndLibsrt]) {
        return;
    }
    let folder = library.folder_of("libsrt_learns_the_code");
    let listener = listener().await;
    let mut peer = LibsrtPeer::call(library, listener.local_addr().port(), "x", None, &folder);
    reject_next(&listener, RejectReason::NOT_FOUND).await;
    // libsrt's API counts an application's codes 1000 lower than the wire does.
    assert!(peer.wait_for_line("rejected").starts_with("rejected: 1404 "));
}

#[tokio::test(flavor = "multi_thread")]
async fn srt_live_transmit_learns_that_the_application_refused() {
    refuse("srt_live_transmit_learns", Program::SrtLiveTransmit, SrtLibrary::Libsrt).await;
}

async fn ffmpeg_learns_that_the_application_refused(library: SrtLibrary) {
    refuse("ffmpeg_learns", Program::Ffmpeg, library).await;
}

async fn gstreamer_learns_that_the_application_refused(library: SrtLibrary) {
    refuse("gstreamer_learns", Program::GStreamer, library).await;
}

async fn a_caller_that_wants_encryption_is_told_where_there_is_none(library: SrtLibrary) {
    if !library.is_there_with(&[Tool::CompilerAndLibsrt]) {
        return;
    }
    let folder = library.folder_of("a_caller_that_wants_encryption");
    let listener = listener().await;
    let port = listener.local_addr().port();
    let mut peer = LibsrtPeer::call(library, port, "x", Some("a long passphrase"), &folder);
    // The application is asked, for it might give this caller a passphrase. It does not.
    let caller = timeout(Duration::from_secs(10), listener.incoming()).await;
    let caller = caller.expect("a caller").expect("the listener is open");
    let refused = caller.accept().await.expect_err("it has no passphrase");
    assert_eq!(refused.reject_reason(), None, "{refused}");
    peer.wait_for_line("rejected: 11 (");
}

#[tokio::test(flavor = "multi_thread")]
async fn srt_live_transmit_learns_that_it_is_too_old() {
    if !have_all(&[Tool::SrtLiveTransmit]) {
        return;
    }
    let folder = Folder::of("srt_live_transmit_learns_that_it_is_too_old");
    let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), wants_newer()).await;
    let listener = listener.expect("a port is free");
    let end = End::new(Role::Caller, listener.local_addr().port());
    let (command, _) = Program::SrtLiveTransmit.receiver(&end, &folder.file("received"));
    let mut peer = Process::start("peer", command, &folder);
    peer.wait_for_line("Peer version too old");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_least_version_counts_with_srt_live_transmit_whichever_end_has_it() {
    if !have_all(&[Tool::SrtLiveTransmit]) {
        return;
    }
    let folder = Folder::of("a_least_version_counts_with_srt_live_transmit");
    let version = RejectReason::VERSION;
    let older = Config::default().with_min_version(0x01_05_00);
    for (theirs, ours, refused) in [
        ("&minversion=0x010600", Config::default(), Some(CloseReason::Rejected(version))),
        ("", wants_newer(), Some(CloseReason::Incompatible(version))),
        ("&minversion=0x010505", older, None),
    ] {
        let port = free_port();
        let mut command = Command::new("srt-live-transmit");
        let uri = format!("srt://127.0.0.1:{port}?mode=listener{theirs}");
        command.args(["-a:no", &uri, "file://con"]);
        let _peer = Process::start("peer", command, &folder);
        wait_until_bound(port);
        let called = Socket::connect((Ipv4Addr::LOCALHOST, port).into(), ours).await;
        let why = called.as_ref().err().and_then(Error::close_reason);
        assert_eq!(why, refused.as_ref(), "{called:?}");
    }
}

/// A peer older than SRT 1.6 does not do, and none is newer.
fn wants_newer() -> Config {
    Config::default().with_min_version(0x01_06_00)
}

async fn we_learn_the_code_of_a_libsrt_application(library: SrtLibrary) {
    if !library.is_there_with(&[Tool::CompilerAndLibsrt]) {
        return;
    }
    let folder = library.folder_of("we_learn_the_code_of_a_libsrt_application");
    let port = free_port();
    let _peer = LibsrtPeer::listen(library, port, Some(1403), &folder);
    assert_eq!(rejection(port).await, RejectReason::FORBIDDEN);
    assert_eq!(rejection(port).await, RejectReason::FORBIDDEN, "the listener stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn srt_live_transmit_refuses_us_without_a_passphrase() {
    want_of_passphrase(
        "srt_live_transmit_refuses_us",
        Program::SrtLiveTransmit,
        SrtLibrary::Libsrt,
    )
    .await;
}

async fn ffmpeg_refuses_us_for_want_of_a_passphrase(library: SrtLibrary) {
    want_of_passphrase("ffmpeg_refuses_us", Program::Ffmpeg, library).await;
}

async fn gstreamer_refuses_us_without_a_passphrase(library: SrtLibrary) {
    want_of_passphrase("gstreamer_refuses_us", Program::GStreamer, library).await;
}

#[test]
fn our_program_says_why_it_was_refused() {
    if !have_all(&[Tool::CompilerAndLibsrt]) {
        return;
    }
    let folder = Folder::of("our_program_says_why_it_was_refused");
    let port = free_port();
    let _peer = LibsrtPeer::listen(SrtLibrary::Libsrt, port, Some(1404), &folder);
    let end = End::new(Role::Caller, port);
    let (command, _) = Program::Punctual.receiver(&end, &folder.file("received"));
    let mut ours = Process::start("punctual", command, &folder);
    assert_eq!(ours.wait(Duration::from_secs(10)).code(), Some(3));
    let log = ours.log();
    assert!(log.contains("no such stream") && log.contains("1404"), "{log}");
}

/// Lets a peer call our listener, refuses it, and looks for the reason in its output.
async fn refuse(test: &str, program: Program, library: SrtLibrary) {
    if !library.is_there_with(program.tools()) {
        return;
    }
    let folder = library.folder_of(test);
    let listener = listener().await;
    let end = End::new(Role::Caller, listener.local_addr().port());
    let (mut command, _) = program.receiver(&end, &folder.file("received"));
    library.put_under(&mut command);
    let mut peer = Process::start("peer", command, &folder);
    reject_next(&listener, RejectReason::UNAUTHORIZED).await;
    peer.wait_for_line(match (library, program) {
        // The text for every code of an application.
        (SrtLibrary::Libsrt, _) => "Application-defined rejection reason",
        (SrtLibrary::Punctual, Program::GStreamer) => "the application refused",
        // FFmpeg prints no text, and leaves the log of the library on.
        (SrtLibrary::Punctual, _) => "unauthorized (rejection code 2401)",
    });
}

/// Calls a peer that wants a passphrase, which we have not.
async fn want_of_passphrase(test: &str, program: Program, library: SrtLibrary) {
    if !library.is_there_with(program.tools()) {
        return;
    }
    let folder = library.folder_of(test);
    let port = free_port();
    let end = End::new(Role::Listener, port).with_passphrase("a long passphrase");
    let (mut command, _) = program.receiver(&end, &folder.file("received"));
    library.put_under(&mut command);
    let _peer = Process::start("peer", command, &folder);
    wait_until_bound(port);
    assert_eq!(rejection(port).await, RejectReason::UNSECURE);
}

async fn listener() -> Listener {
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Listener::bind(local, Config::default()).await.expect("a port is free")
}

async fn reject_next(listener: &Listener, reason: RejectReason) {
    let call = timeout(Duration::from_secs(10), listener.incoming()).await;
    call.expect("the peer calls").expect("the listener is open").reject(reason);
}

/// The reason with which a listener on this machine rejects a call.
async fn rejection(port: u16) -> RejectReason {
    let remote = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let error = Socket::connect(remote, Config::default()).await.expect_err("we are rejected");
    let Some(reason) = Error::reject_reason(&error) else { panic!("not rejected: {error}") };
    reason
}
