//! A real transport stream over a bad link, with Punctual at one end and a peer program at the
//! other: with each peer, in each role and each direction, it arrives whole.

#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "real programs run in real time")]

use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, thread};

use interop::{
    Clip, Direction, End, Folder, Process, Program, Role, Tool, emulator, free_port, have_all,
    retry_if_stalled, wait_until_bound,
};
use punctual_metrics::mpegts::{Checker, PACKET_LEN};

/// One test for each peer, role and direction.
macro_rules! streams {
    ($($name:ident: $peer:ident $role:ident $direction:ident;)*) => {
        $(#[test]
        fn $name() {
            retry_if_stalled(|| {
                stream(stringify!($name), Program::$peer, Role::$role, Direction::$direction);
            });
        })*
    };
}

streams! {
    srt_live_transmit_calls_and_sends: SrtLiveTransmit Caller ToUs;
    srt_live_transmit_calls_and_receives: SrtLiveTransmit Caller FromUs;
    srt_live_transmit_listens_and_sends: SrtLiveTransmit Listener ToUs;
    srt_live_transmit_listens_and_receives: SrtLiveTransmit Listener FromUs;
    ffmpeg_calls_and_sends: Ffmpeg Caller ToUs;
    ffmpeg_calls_and_receives: Ffmpeg Caller FromUs;
    ffmpeg_listens_and_sends: Ffmpeg Listener ToUs;
    ffmpeg_listens_and_receives: Ffmpeg Listener FromUs;
    gstreamer_calls_and_sends: GStreamer Caller ToUs;
    gstreamer_calls_and_receives: GStreamer Caller FromUs;
    gstreamer_listens_and_sends: GStreamer Listener ToUs;
    gstreamer_listens_and_receives: GStreamer Listener FromUs;
}

/// Sends the clip over an emulated link of 40 ms RTT and 2 % loss both ways at a latency of 250 ms,
/// and checks what arrives.
fn stream(test: &str, peer: Program, peer_role: Role, direction: Direction) {
    if !have_all(&[Tool::Ffmpeg]) || !have_all(peer.tools()) {
        return;
    }
    let clip = Clip::get();
    let folder = Folder::of(test);
    let received = folder.file("received.ts");
    let reference = folder.file("reference.ts");
    let (sender, sender_role, receiver) = match direction {
        Direction::ToUs => (peer, peer_role, Program::Punctual),
        Direction::FromUs => (Program::Punctual, peer_role.other(), peer),
    };

    // The listener first, then the link to it, then the caller.
    let listening = free_port();
    let calling = free_port();
    let port = |role| if role == Role::Listener { listening } else { calling };
    let start_sender = || {
        let end = End::new(sender_role, port(sender_role));
        Process::start("sender", sender.sender(&end, &reference), &folder)
    };
    let start_receiver = || {
        let role = sender_role.other();
        let (command, to_stdout) = receiver.receiver(&End::new(role, port(role)), &received);
        let output = to_stdout.then_some(received.as_path());
        Process::start_with_output("receiver", command, &folder, output)
    };
    let start_link = || {
        wait_until_bound(listening);
        let command = emulator(calling, listening, &["--rtt", "40ms", "--loss", "2%"]);
        let link = Process::start("link", command, &folder);
        wait_until_bound(calling);
        link
    };
    let (mut sending, mut receiving, _link) = if sender_role == Role::Listener {
        let sending = start_sender();
        let link = start_link();
        (sending, start_receiver(), link)
    } else {
        let receiving = start_receiver();
        let link = start_link();
        (start_sender(), receiving, link)
    };

    if let Some(line) = sender.says_when_connected(sender_role, true) {
        sending.wait_for_line(line);
    }
    if let Some(line) = receiver.says_when_connected(sender_role.other(), false) {
        receiving.wait_for_line(line);
    }
    if sender.reads_standard_input() {
        let _feed = clip.feed(sending.stdin());
        wait_for_size(&received, clip.bytes().len(), clip.duration() + MARGIN);
        assert_arrived_whole(&received, clip.bytes());
    } else {
        sending.wait(clip.duration() + MARGIN);
        wait_for_silence(&received);
        let sent = fs::read(&reference).expect("FFmpeg wrote its stream");
        assert_arrived_up_to_the_end(&received, &sent);
    }
}

/// The stream arrived, and padding after it.
fn assert_arrived_whole(received: &Path, sent: &[u8]) {
    let bytes = fs::read(received).expect("something was received");
    let same = common_start(&bytes, sent);
    let (got, all) = (bytes.len(), sent.len());
    assert!(same == all, "{same} bytes as sent, then not; {got} received, {all} sent");
    assert_continuous(&bytes[..all]);
}

/// A peer that ends at the end of its stream loses the data that is still under way: the peers stop
/// sending and retransmitting at once. All data before that must be there.
fn assert_arrived_up_to_the_end(received: &Path, sent: &[u8]) {
    let bytes = fs::read(received).expect("something was received");
    let same = common_start(&bytes, sent);
    let (got, all) = (bytes.len(), sent.len());
    assert!(same + TAIL >= all, "{same} bytes as sent, then not; {got} received, {all} sent");
    assert_continuous(&bytes[..same / PACKET_LEN * PACKET_LEN]);
}

/// The length of the common beginning.
fn common_start(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn assert_continuous(stream: &[u8]) {
    let mut checker = Checker::default();
    checker.push(stream);
    checker.finish();
    let report = checker.report();
    let total = report.total();
    assert!(total.packets > 10_000, "this is not the stream: {report:?}");
    assert_eq!((report.sync_losses, report.skipped_bytes), (0, 0), "{report:?}");
    assert_eq!((total.continuity_errors, total.pcr_discontinuities), (0, 0), "{report:?}");
}

/// Waits until the file has `size` bytes.
fn wait_for_size(path: &Path, size: usize, limit: Duration) {
    let deadline = Instant::now() + limit;
    while size_of(path) < size {
        if Instant::now() >= deadline {
            return; // What is missing is for the comparison to say.
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Waits until the file has stopped growing for a second.
fn wait_for_silence(path: &Path) {
    let mut last = (size_of(path), Instant::now());
    while last.1.elapsed() < Duration::from_secs(1) {
        thread::sleep(Duration::from_millis(50));
        let size = size_of(path);
        if size != last.0 {
            last = (size, Instant::now());
        }
    }
}

fn size_of(path: &Path) -> usize {
    fs::metadata(path).map_or(0, |file| usize::try_from(file.len()).unwrap_or(usize::MAX))
}

/// The time by which a busy machine may take longer than the clip lasts.
const MARGIN: Duration = Duration::from_secs(15);

/// Bytes of the stream in half a second: latency, round trip, and the peer's own buffers.
const TAIL: usize = 5_000_000 / 8 / 2;
