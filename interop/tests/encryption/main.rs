//! Encryption with srt-live-transmit, FFmpeg and GStreamer: every key length, both directions and
//! both roles; keys that change during the stream; passphrases that differ or are missing, where
//! the ends insist on them and where they do not.

#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "real programs run in real time, with threads"
)]

mod session;

use interop::{
    Direction, Folder, LibsrtPeer, Process, Program, Role, SrtLibrary, Tool, have_all,
    retry_if_stalled_async,
};
use punctual::{AcceptError, CipherMode, CloseReason, Error, KeyLength, KeyState, RejectReason};

use self::session::{Peer, call_for, config, secret};

/// One test for each peer and direction: a stream in both roles with each key length.
macro_rules! streams {
    ($($name:ident: $peer:ident $direction:ident;)*) => {
        $(#[test]
        fn $name() {
            retry_if_stalled_async(async || {
                all_key_lengths(stringify!($name), Program::$peer, Direction::$direction).await;
            });
        })*
    };
}

streams! {
    srt_live_transmit_sends_encrypted: SrtLiveTransmit ToUs;
    srt_live_transmit_reads_what_we_encrypt: SrtLiveTransmit FromUs;
    ffmpeg_sends_encrypted: Ffmpeg ToUs;
    ffmpeg_reads_what_we_encrypt: Ffmpeg FromUs;
    gstreamer_sends_encrypted: GStreamer ToUs;
    gstreamer_reads_what_we_encrypt: GStreamer FromUs;
}

/// The caller names the length, and the listener takes it.
async fn all_key_lengths(test: &str, program: Program, direction: Direction) {
    if !have_all(program.tools()) {
        return;
    }
    for role in [Role::Caller, Role::Listener] {
        for length in [KeyLength::Aes128, KeyLength::Aes192, KeyLength::Aes256] {
            let folder = Folder::of(&format!("{test}_{role:?}_{length:?}"));
            let options = format!("pbkeylen={}", length.bytes());
            let (ours, theirs) = match role {
                Role::Caller => (secret(SECRET), &options[..]),
                Role::Listener => (secret(SECRET).with_key_length(Some(length)), ""),
            };
            let peer = Peer { program, role, direction, passphrase: Some(SECRET), options: theirs };
            let mut session = peer.meet(ours, &folder).await.expect("one passphrase");
            session.stream(direction, 300).await;
            let info = session.socket.info();
            assert_eq!(info.cipher, Some((CipherMode::Ctr, length)), "{role:?}");
            let states = (info.send_key_state, info.receive_key_state);
            assert_eq!(states, (KeyState::Secured, KeyState::Secured), "{role:?}");
            let statistics = session.socket.statistics();
            let odd = (statistics.packets_undecrypted, statistics.packets_ignored);
            assert_eq!(odd, (0, 0), "{statistics:?}");
            assert_eq!(session.keys_seen(), ["even"], "on the wire");
        }
    }
}

#[test]
fn the_listeners_wish_for_a_key_length_comes_first() {
    retry_if_stalled_async(async || {
        if !have_all(&[Tool::SrtLiveTransmit]) {
            return;
        }
        for (role, options) in [(Role::Caller, "pbkeylen=16"), (Role::Listener, "pbkeylen=32")] {
            let folder = Folder::of(&format!("the_listeners_wish_{role:?}"));
            let wish = if role == Role::Caller { KeyLength::Aes256 } else { KeyLength::Aes128 };
            let (program, direction) = (Program::SrtLiveTransmit, Direction::FromUs);
            let peer = Peer { program, role, direction, passphrase: Some(SECRET), options };
            let ours = secret(SECRET).with_key_length(Some(wish));
            let mut session = peer.meet(ours, &folder).await.expect("one passphrase");
            session.stream(direction, 100).await;
            assert_eq!(session.socket.info().cipher, Some((CipherMode::Ctr, KeyLength::Aes256)));
        }
    });
}

/// One test for each peer and direction: a new key each 200 packets, over a link that loses.
macro_rules! refreshes {
    ($($name:ident: $peer:ident $direction:ident;)*) => {
        $(#[test]
        fn $name() {
            retry_if_stalled_async(async || {
                refresh(stringify!($name), Program::$peer, Direction::$direction).await;
            });
        })*
    };
}

refreshes! {
    srt_live_transmit_changes_keys_while_it_sends: SrtLiveTransmit ToUs;
    srt_live_transmit_follows_our_changes_of_keys: SrtLiveTransmit FromUs;
    ffmpeg_changes_keys_while_it_sends: Ffmpeg ToUs;
    ffmpeg_follows_our_changes_of_keys: Ffmpeg FromUs;
    gstreamer_changes_keys_while_it_sends: GStreamer ToUs;
    gstreamer_follows_our_changes_of_keys: GStreamer FromUs;
}

async fn refresh(test: &str, program: Program, direction: Direction) {
    if !have_all(program.tools()) {
        return;
    }
    for role in [Role::Caller, Role::Listener] {
        let folder = Folder::of(&format!("{test}_{role:?}"));
        let (ours, options) = match direction {
            Direction::ToUs => (secret(SECRET), "kmrefreshrate=200&kmpreannounce=60"),
            Direction::FromUs => {
                let ours = secret(SECRET).with_key_refresh_rate(200);
                let ours = ours.and_then(|ours| ours.with_key_pre_announce(60));
                (ours.expect("in range"), "")
            }
        };
        let peer = Peer { program, role, direction, passphrase: Some(SECRET), options };
        let mut session = peer.meet_losing(ours, 40, &folder).await.expect("one passphrase");
        match direction {
            Direction::ToUs => session.take_keys(1_200, 5).await,
            Direction::FromUs => session.stream(direction, 1_200).await,
        }
        let statistics = session.socket.statistics();
        match direction {
            Direction::ToUs => assert!(statistics.packets_received_retransmitted > 10),
            Direction::FromUs => {
                assert!(statistics.key_refreshes >= 5, "{statistics:?}");
                assert!(statistics.packets_retransmitted > 10);
            }
        }
        let odd = (statistics.packets_undecrypted, statistics.packets_ignored);
        assert_eq!(odd, (0, 0), "{statistics:?}");
        let keys = session.keys_seen();
        assert!(keys.len() >= 5, "{role:?}: {keys:?}");
        assert!(!keys.contains(&"clear"), "{role:?}: {keys:?}");
    }
}

/// The rows of the table where one end insists: nobody is let in, and each end learns why.
#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_insists_on_encryption_refuses_and_both_learn_why() {
    if !have_all(&[Tool::SrtLiveTransmit, Tool::CompilerAndLibsrt]) {
        return;
    }
    let direction = Direction::FromUs;
    for (row, (ours, theirs, reason)) in [
        (Some(SECRET), None, RejectReason::UNSECURE),
        (None, Some(SECRET), RejectReason::UNSECURE),
        (Some(SECRET), Some(OTHER), RejectReason::BAD_SECRET),
    ]
    .into_iter()
    .enumerate()
    {
        let (enforced, lax) = ("", "enforcedencryption=0");
        for (we_insist, options) in [(true, enforced), (true, lax), (false, enforced)] {
            // It listens. It and we refuse for a reason of the same name.
            let folder = Folder::of(&format!("who_insists_{row}_{we_insist}_{}", options.len()));
            let ours = config(ours).with_enforced_encryption(we_insist);
            let (program, role) = (Program::SrtLiveTransmit, Role::Listener);
            let peer = Peer { program, role, direction, passphrase: theirs, options };
            let Err(error) = peer.meet(ours.clone(), &folder).await else {
                panic!("row {row}, we insist: {we_insist}, {options}: let in");
            };
            let found = reason_of(&error);
            assert_eq!(found, Some(reason), "row {row}, {we_insist}, {options}: {error}");
        }
        // It calls. A listener that insists refuses it, and it is told why.
        let folder = Folder::of(&format!("who_insists_{row}"));
        let listener = session::listener(config(ours)).await;
        let port = listener.local_addr().port();
        let mut peer = LibsrtPeer::call(SrtLibrary::Libsrt, port, "x", theirs, &folder);
        let refused = call_for(&listener).await.expect_err("they do not fit");
        assert_eq!(reason_of(&refused), Some(reason), "{refused}");
        let code = reason.code() - 1_000;
        assert!(peer.wait_for_line("rejected").starts_with(&format!("rejected: {code} ")));
    }
}

/// The output of the programs when their passphrase is not ours.
#[tokio::test(flavor = "multi_thread")]
async fn programs_say_that_the_passphrase_is_wrong() {
    for program in [Program::SrtLiveTransmit, Program::Ffmpeg, Program::GStreamer] {
        if !have_all(program.tools()) {
            continue;
        }
        for (theirs, words) in
            [(Some(OTHER), "Incorrect passphrase"), (None, "Password required or unexpected")]
        {
            let folder = Folder::of(&format!("programs_say_{program:?}_{}", theirs.is_some()));
            let listener = session::listener(secret(SECRET)).await;
            let (role, direction) = (Role::Caller, Direction::FromUs);
            let peer = Peer { program, role, direction, passphrase: theirs, options: "" };
            let mut peer = peer.start(listener.local_addr().port(), &folder);
            assert!(call_for(&listener).await.is_err(), "{program:?}");
            peer.wait_for_line(words);
        }
        let folder = Folder::of(&format!("programs_say_{program:?}_listening"));
        let (role, direction) = (Role::Listener, Direction::FromUs);
        let peer = Peer { program, role, direction, passphrase: Some(OTHER), options: "" };
        let error = peer.meet(secret(SECRET), &folder).await.err().expect("they differ");
        assert_eq!(reason_of(&error), Some(RejectReason::BAD_SECRET), "{program:?}");
    }
}

/// The rows of the table without enforcement: the connection is established, and each end encrypts
/// if it has a passphrase.
#[test]
fn without_enforcement_an_end_with_a_passphrase_encrypts() {
    if !have_all(&[Tool::SrtLiveTransmit]) {
        return;
    }
    for (ours, theirs) in [(Some(SECRET), None), (None, Some(SECRET)), (Some(SECRET), Some(OTHER))]
    {
        for role in [Role::Caller, Role::Listener] {
            for direction in [Direction::ToUs, Direction::FromUs] {
                // A suspended peer is probed by retransmissions.
                retry_if_stalled_async(async || lax(ours, theirs, role, direction).await);
            }
        }
    }
}

async fn lax(ours: Option<&str>, theirs: Option<&str>, role: Role, direction: Direction) {
    let row = format!("ours {ours:?}, theirs {theirs:?}, it is {role:?}, {direction:?}");
    let name = [ours.is_some(), theirs.is_some()].map(u8::from);
    let folder = Folder::of(&format!("without_{name:?}_{role:?}_{direction:?}"));
    let ours_lax = config(ours).with_enforced_encryption(false);
    let (program, options) = (Program::SrtLiveTransmit, "enforcedencryption=0");
    let peer = Peer { program, role, direction, passphrase: theirs, options };
    let mut session = peer.meet(ours_lax, &folder).await.expect("nobody insists");
    let sender = if direction == Direction::ToUs { theirs } else { ours };
    let other = if direction == Direction::ToUs { ours } else { theirs };
    if sender.is_none() {
        // In the clear, and read by the end that has a passphrase.
        session.stream(direction, 200).await;
        assert_eq!(session.keys_seen(), ["clear"], "{row}");
        return;
    }
    session.offer(direction, 200).await;
    session.wait_for_packets(direction, 200).await;
    let statistics = session.socket.statistics();
    assert_eq!(session.keys_seen(), ["even"], "{row}");
    let info = session.socket.info();
    let reason = if other.is_some() { KeyState::BadSecret } else { KeyState::NoSecret };
    match direction {
        Direction::ToUs => {
            assert!(statistics.packets_undecrypted >= 200, "{row}: {statistics:?}");
            assert_eq!(statistics.packets_received_unique, 0, "{row}: {statistics:?}");
            assert_eq!(statistics.packets_receive_lost, 0, "{row}: acknowledged all the same");
            assert_eq!(info.receive_key_state, reason, "{row}");
        }
        Direction::FromUs => {
            assert_eq!(statistics.packets_retransmitted, 0, "{row}: {statistics:?}");
            assert_eq!(info.send_key_state, reason, "{row}");
            session.wait_for_line("can't decrypt");
        }
    }
}

/// Our program, by URIs that srt-live-transmit understands as well.
#[test]
fn our_program_takes_passphrase_and_key_length_from_its_uri() {
    if !have_all(&[Tool::SrtLiveTransmit]) {
        return;
    }
    let folder = Folder::of("our_program_takes_passphrase");
    let options = "pbkeylen=24";
    let (program, direction) = (Program::SrtLiveTransmit, Direction::ToUs);
    let role = Role::Caller;
    let peer = Peer { program, role, direction, passphrase: Some(SECRET), options };
    let received = folder.file("received");
    let (mut ours, port) = session::our_program(SECRET, &received, &folder);
    let mut peer: Process = peer.start(port, &folder);
    ours.wait_for_line("connected with");
    session::feed_until_received(&mut peer, &received, 200);
    ours.stop();
    assert!(!ours.log().contains(SECRET), "{}", ours.log());
}

/// Why two ends do not fit, whichever of them found it.
fn reason_of(error: &Error) -> Option<RejectReason> {
    match error {
        Error::Closed(CloseReason::Rejected(reason) | CloseReason::Incompatible(reason))
        | Error::Accept(AcceptError::Incompatible(reason)) => Some(*reason),
        _ => None,
    }
}

const SECRET: &str = "correct-horse-battery";
const OTHER: &str = "another-passphrase";
