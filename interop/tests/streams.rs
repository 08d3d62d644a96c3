//! A real transport stream over a bad link, with Punctual at one end and a peer program at the
//! other: with each peer, in each role and each direction, it arrives whole. So it does over QUIC,
//! which a bridge by another QUIC implementation ends before the peer.

#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "real programs run in real time")]

use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use std::{fs, thread};

use interop::{
    Clip, Direction, End, Folder, Process, Program, Role, Tool, Turns, bridge_certificate,
    emulator, free_port, have_all, quic_bridge, retry_if_stalled, wait_until_bound,
};
use punctual_metrics::mpegts::{Checker, PACKET_LEN};

/// One test for each peer, role, direction and carriage.
macro_rules! streams {
    ($($name:ident: $peer:ident $role:ident $direction:ident $carriage:ident;)*) => {
        $(#[test]
        fn $name() {
            retry_if_stalled(|| {
                stream(stringify!($name), &Stream {
                    peer: Program::$peer,
                    peer_role: Role::$role,
                    direction: Direction::$direction,
                    carriage: Carriage::$carriage,
                });
            });
        })*
    };
}

streams! {
    srt_live_transmit_calls_and_sends: SrtLiveTransmit Caller ToUs Udp;
    srt_live_transmit_calls_and_receives: SrtLiveTransmit Caller FromUs Udp;
    srt_live_transmit_listens_and_sends: SrtLiveTransmit Listener ToUs Udp;
    srt_live_transmit_listens_and_receives: SrtLiveTransmit Listener FromUs Udp;
    ffmpeg_calls_and_sends: Ffmpeg Caller ToUs Udp;
    ffmpeg_calls_and_receives: Ffmpeg Caller FromUs Udp;
    ffmpeg_listens_and_sends: Ffmpeg Listener ToUs Udp;
    ffmpeg_listens_and_receives: Ffmpeg Listener FromUs Udp;
    gstreamer_calls_and_sends: GStreamer Caller ToUs Udp;
    gstreamer_calls_and_receives: GStreamer Caller FromUs Udp;
    gstreamer_listens_and_sends: GStreamer Listener ToUs Udp;
    gstreamer_listens_and_receives: GStreamer Listener FromUs Udp;
    srt_live_transmit_calls_and_sends_over_quic: SrtLiveTransmit Caller ToUs Quic;
    srt_live_transmit_calls_and_receives_over_quic: SrtLiveTransmit Caller FromUs EncryptedQuic;
    srt_live_transmit_listens_and_sends_over_quic: SrtLiveTransmit Listener ToUs EncryptedQuic;
    srt_live_transmit_listens_and_receives_over_quic: SrtLiveTransmit Listener FromUs Quic;
    ffmpeg_calls_and_sends_over_quic: Ffmpeg Caller ToUs EncryptedQuic;
    ffmpeg_calls_and_receives_over_quic: Ffmpeg Caller FromUs Quic;
    ffmpeg_listens_and_sends_over_quic: Ffmpeg Listener ToUs Quic;
    ffmpeg_listens_and_receives_over_quic: Ffmpeg Listener FromUs EncryptedQuic;
    srt_live_transmit_sends_over_a_small_path: SrtLiveTransmit Listener ToUs SmallQuic;
    srt_live_transmit_receives_over_a_small_path: SrtLiveTransmit Listener FromUs SmallQuic;
    ffmpeg_calls_and_sends_over_a_small_path: Ffmpeg Caller ToUs SmallQuic;
    ffmpeg_calls_and_receives_over_a_small_path: Ffmpeg Caller FromUs SmallQuic;
}

/// A stream between Punctual and a peer.
struct Stream {
    peer: Program,
    peer_role: Role,
    direction: Direction,
    carriage: Carriage,
}

/// The carriage of Punctual's SRT packets.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Carriage {
    Udp,
    /// A bridge by other people's QUIC ends QUIC before the peer.
    Quic,
    /// The same with a passphrase.
    EncryptedQuic,
    /// The same over a path that carries IP packets of 1280 bytes, which have no room for a payload
    /// of 1316.
    SmallQuic,
}

impl Carriage {
    fn tools(self) -> &'static [Tool] {
        if self == Self::Udp { &[] } else { &[Tool::Aioquic] }
    }

    fn passphrase(self) -> Option<&'static str> {
        (self == Self::EncryptedQuic).then_some("correct horse battery")
    }

    /// Our end of a stream.
    fn ours(self, end: End<'_>) -> End<'_> {
        if self == Self::Udp {
            return end;
        }
        let options = match end.role {
            Role::Caller => trusting(),
            Role::Listener => identified(),
        };
        let options = &options[usize::from(self == Self::SmallQuic)];
        end.with_scheme("srt+quic").with_options(options)
    }

    /// Starts the path from the port `calling` to the port `listening`: an emulated link of 40 ms
    /// RTT and 2 % loss both ways, and over QUIC the bridge between the link and the peer.
    fn start_path(self, calling: u16, listening: u16, peer: Role, folder: &Folder) -> Vec<Process> {
        let link = |from, to| {
            wait_until_bound(to);
            let mtu = if self == Self::SmallQuic { "1280" } else { "1500" };
            let command = emulator(from, to, &["--rtt", "40ms", "--loss", "2%", "--mtu", mtu]);
            let link = Process::start("link", command, folder);
            wait_until_bound(from);
            link
        };
        let bridge = |role, from, to| {
            wait_until_bound(to);
            let largest = if self == Self::SmallQuic { 1_200 } else { 1_400 };
            let bridge = Process::start("bridge", quic_bridge(role, largest, from, to), folder);
            wait_until_bound(from);
            bridge
        };
        let between = free_port();
        match (self, peer) {
            (Self::Udp, _) => vec![link(calling, listening)],
            (_, Role::Caller) => {
                let link = link(between, listening);
                vec![link, bridge(Role::Caller, calling, between)]
            }
            (_, Role::Listener) => {
                let bridge = bridge(Role::Listener, between, listening);
                vec![bridge, link(calling, between)]
            }
        }
    }
}

/// The options of a caller that trusts the bridge's certificate, over a usual and a small path.
fn trusting() -> &'static [String; 2] {
    static OPTIONS: LazyLock<[String; 2]> = LazyLock::new(|| {
        with_mtu(format!("ca={}&servername=studio.example", bridge_certificate().0.display()))
    });
    &OPTIONS
}

/// The options of a listener with the certificate that the bridge trusts, over a usual and a small
/// path.
fn identified() -> &'static [String; 2] {
    static OPTIONS: LazyLock<[String; 2]> = LazyLock::new(|| {
        let (certificate, key) = bridge_certificate();
        with_mtu(format!("cert={}&key={}", certificate.display(), key.display()))
    });
    &OPTIONS
}

/// These options, and the same with a first MTU for small paths.
fn with_mtu(options: String) -> [String; 2] {
    let small = format!("{options}&quicmtu=1200");
    [options, small]
}

/// Sends the clip over the path, and checks the stream that arrives.
fn stream(test: &str, stream: &Stream) {
    let Stream { peer, peer_role, direction, carriage } = *stream;
    if !have_all(&[Tool::Ffmpeg]) || !have_all(peer.tools()) || !have_all(carriage.tools()) {
        return;
    }
    let clip = Clip::get();
    let _turn = TURNS.take();
    let folder = Folder::of(test);
    let received = folder.file("received.ts");
    let reference = folder.file("reference.ts");
    let (sender, sender_role, receiver) = match direction {
        Direction::ToUs => (peer, peer_role, Program::Punctual),
        Direction::FromUs => (Program::Punctual, peer_role.other(), peer),
    };

    // The listener first, then the path to it, then the caller.
    let listening = free_port();
    let calling = free_port();
    let end = |program: Program, role| {
        let port = if role == Role::Listener { listening } else { calling };
        let end = End { passphrase: carriage.passphrase(), ..End::new(role, port) };
        if program == Program::Punctual { carriage.ours(end) } else { end }
    };
    let start_sender = || {
        let end = end(sender, sender_role);
        Process::start("sender", sender.sender(&end, &reference), &folder)
    };
    let start_receiver = || {
        let end = end(receiver, sender_role.other());
        let (command, to_stdout) = receiver.receiver(&end, &received);
        let output = to_stdout.then_some(received.as_path());
        Process::start_with_output("receiver", command, &folder, output)
    };
    let start_path = || carriage.start_path(calling, listening, peer_role, &folder);
    let (mut sending, mut receiving, _path) = if sender_role == Role::Listener {
        let sending = start_sender();
        let path = start_path();
        (sending, start_receiver(), path)
    } else {
        let receiving = start_receiver();
        let path = start_path();
        (start_sender(), receiving, path)
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

/// With four streams at a time on two processors, packets are late: the programs are debug builds,
/// and the QUIC bridge is written in Python.
static TURNS: Turns = Turns::new(2);

/// The time by which a busy machine may take longer than the clip lasts.
const MARGIN: Duration = Duration::from_secs(15);

/// Bytes of the stream in 700 ms: latency, round trip, and the peer's own buffers.
const TAIL: usize = 5_000_000 / 8 * 7 / 10;
