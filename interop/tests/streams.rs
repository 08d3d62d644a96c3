//! A real transport stream over a bad link, with Punctual at one end and a peer program at the
//! other: with each peer, in each role and each direction, it arrives whole. So it does over QUIC,
//! which a bridge by another QUIC implementation ends before the peer.

#![forbid(unsafe_code)]

use std::sync::LazyLock;

use interop::{
    Direction, End, Folder, Passage, Process, Program, Role, Tool, Turns, bridge_certificate,
    free_port, have_all, quic_bridge, retry_if_stalled, start_link, wait_until_bound,
};

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
        let mtu = if self == Self::SmallQuic { 1_280 } else { 1_500 };
        let link = |from, to| start_link(from, to, mtu, folder);
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
    let _turn = TURNS.take(if carriage == Carriage::Udp { 1 } else { 3 });
    let (sender, sender_role, receiver) = match direction {
        Direction::ToUs => (peer, peer_role, Program::Punctual),
        Direction::FromUs => (Program::Punctual, peer_role.other(), peer),
    };
    let passage = Passage::new(test, sender, sender_role, receiver);
    let listening = free_port();
    let calling = free_port();
    let end = |program: Program, role| {
        let port = if role == Role::Listener { listening } else { calling };
        let end = End { passphrase: carriage.passphrase(), ..End::new(role, port) };
        if program == Program::Punctual { carriage.ours(end) } else { end }
    };
    let sending = passage.sender(&end(sender, sender_role));
    let receiving = passage.receiver(&end(receiver, sender_role.other()));
    let start_path = || carriage.start_path(calling, listening, peer_role, passage.folder());
    passage.run(sending, receiving, start_path, |_, _| {});
}

/// With more streams at a time on two processors, packets are late: the programs are debug builds,
/// and the QUIC bridge, which is written in Python, counts three times.
static TURNS: Turns = Turns::new(4);
