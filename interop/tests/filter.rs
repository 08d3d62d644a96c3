//! Forward error correction with srt-live-transmit, in both roles, both directions and every
//! layout: what only the packet filter can repair arrives, without one retransmission.

#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "real programs run in real time")]

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use std::{fs, thread};

use bytes::Bytes;
use interop::{
    Folder, Process, Tap, Tool, free_port, have_all, retry_if_stalled_async, wait_until_bound,
};
use punctual::{Config, Error, Listener, RejectReason, Socket, Statistics};
use tokio::time::{sleep, timeout};

/// The calling end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Caller {
    Us,
    Peer,
}

/// Whether a packet is lost, by its place in the stream.
type Loss = fn(u32) -> bool;

/// One packet of each row of ten.
const ONE_A_ROW: Loss = |place| place % 10 == place / 10 % 10;
/// Ten packets in a row, in every tenth row.
const BURSTS: Loss = |place| (40..50).contains(&(place % 100));

#[test]
fn rows_that_we_send_repair_what_srt_live_transmit_misses() {
    retry_if_stalled_async(async || {
        send("rows_that_we_send", Caller::Us, "fec,cols:10,arq:never", "", ONE_A_ROW).await;
    });
}

#[test]
fn staircase_columns_that_we_send_repair_bursts() {
    retry_if_stalled_async(async || {
        let filter = "fec,cols:10,rows:5,layout:staircase,arq:never";
        send("staircase_columns_that_we_send", Caller::Us, filter, "", BURSTS).await;
    });
}

#[test]
fn even_columns_that_we_send_repair_bursts() {
    retry_if_stalled_async(async || {
        let filter = "fec,cols:10,rows:5,layout:even,arq:never";
        send("even_columns_that_we_send", Caller::Us, filter, "fec", BURSTS).await;
    });
}

#[test]
fn columns_alone_that_we_send_to_a_caller_repair_bursts() {
    retry_if_stalled_async(async || {
        let filter = "fec,cols:10,rows:-5,arq:never";
        send("columns_alone_that_we_send", Caller::Peer, "", filter, BURSTS).await;
    });
}

#[test]
fn rows_of_srt_live_transmit_repair_what_we_miss() {
    retry_if_stalled_async(async || {
        receive("rows_of_srt", Caller::Peer, "", "fec,cols:10,arq:never", ONE_A_ROW).await;
    });
}

#[test]
fn staircase_columns_of_srt_live_transmit_repair_bursts() {
    retry_if_stalled_async(async || {
        let filter = "fec,cols:10,rows:5,layout:staircase,arq:never";
        receive("staircase_columns_of_srt", Caller::Peer, "fec", filter, BURSTS).await;
    });
}

#[test]
fn even_columns_of_srt_live_transmit_repair_bursts() {
    retry_if_stalled_async(async || {
        let filter = "fec,cols:10,rows:5,layout:even,arq:never";
        receive("even_columns_of_srt", Caller::Us, filter, "fec,cols:10", BURSTS).await;
    });
}

#[test]
fn columns_alone_of_srt_live_transmit_repair_bursts() {
    retry_if_stalled_async(async || {
        let filter = "fec,cols:10,rows:-5,layout:even,arq:never";
        receive("columns_alone_of_srt", Caller::Us, "fec,cols:10,rows:-5", filter, BURSTS).await;
    });
}

/// For a burst beyond the code's power either end sends a NAK when its groups are over.
#[test]
fn on_request_both_ends_ask_for_what_they_cannot_rebuild() {
    retry_if_stalled_async(async || {
        const LONG: Loss = |place| (40..65).contains(&(place % 300));
        let filter = "fec,cols:10,rows:3,arq:onreq";
        if let Some(sender) = send("on_request_we_send", Caller::Us, filter, "", LONG).await {
            assert!(sender.naks_received > 0 && sender.packets_retransmitted >= 20, "{sender:?}");
        }
        if let Some(receiver) = receive("on_request_they_send", Caller::Us, filter, "", LONG).await
        {
            assert!(receiver.naks_sent > 0 && receiver.packets_filter_lost >= 20, "{receiver:?}");
        }
    });
}

/// Parity is computed over the encrypted packets, so it can repair packets that it cannot read.
#[test]
fn encrypted_streams_are_repaired_in_both_directions() {
    retry_if_stalled_async(async || {
        let filter = "fec,cols:10,rows:5,arq:never";
        let secret = format!("{filter}&passphrase=correct-horse");
        let plain = "&passphrase=correct-horse";
        for (test, who) in [("encrypted_we_call", Caller::Us), ("encrypted_it_calls", Caller::Peer)]
        {
            if let Some(sender) = send(test, who, &secret, &secret, BURSTS).await {
                assert_eq!(sender.packets_undecrypted, 0);
            }
            if let Some(receiver) = receive(test, who, &secret, &secret, ONE_A_ROW).await {
                assert_eq!(receiver.packets_undecrypted, 0, "{receiver:?}");
            }
        }
        send("encrypted_adopted", Caller::Us, &secret, plain, BURSTS).await;
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_that_contradict_each_other_are_refused_by_either_listener() {
    if !have_all(&[Tool::SrtLiveTransmit]) {
        return;
    }
    let folder = Folder::of("filters_that_contradict");
    let port = free_port();
    let _peer = receiver(Caller::Us, port, "fec,cols:5", &folder);
    wait_until_bound(port);
    let error = Socket::connect(local(port), config("fec,cols:6")).await.expect_err("refused");
    assert_eq!(Error::reject_reason(&error), Some(RejectReason::FILTER), "{error}");

    let listener = Listener::bind(local(0), config("fec,cols:5")).await.expect("a free port");
    let mut peer = receiver(Caller::Peer, listener.local_addr().port(), "fec,cols:6", &folder);
    peer.wait_for_line("Packet Filter settings error");
}

/// We send `MESSAGES` through a relay that loses some; all must arrive. Returns our statistics.
async fn send(test: &str, who: Caller, ours: &str, theirs: &str, loss: Loss) -> Option<Statistics> {
    if !have_all(&[Tool::SrtLiveTransmit]) {
        return None;
    }
    let folder = Folder::of(test);
    let (socket, _peer, tap) =
        connect(who, ours, &folder, loss, |caller, port| receiver(caller, port, theirs, &folder))
            .await;
    for i in 0..MESSAGES {
        socket.send(message(i)).await.expect("we are connected");
        sleep(INTERVAL).await;
    }
    // Programs hold back the last data that they get.
    let received = folder.file("received");
    let size = usize::try_from(MESSAGES).expect("it is small") * SIZE;
    let deadline = Instant::now() + Duration::from_secs(10);
    let mut filler = MESSAGES;
    while size_of(&received) < size && Instant::now() < deadline {
        socket.send(message(filler)).await.expect("we are connected");
        filler += 1;
        sleep(INTERVAL).await;
    }
    let bytes = fs::read(&received).expect("something was received");
    for (i, chunk) in (0..MESSAGES).zip(bytes.chunks(SIZE)) {
        assert!(chunk == message(i), "message {i} is missing or changed");
    }
    assert!(bytes.len() >= size, "{} of {size} bytes", bytes.len());
    let statistics = socket.statistics();
    tap.stop();
    assert!(statistics.packets_send_filter_extra > 100, "{statistics:?}");
    if ours.contains("never") || theirs.contains("never") {
        let asked = (statistics.naks_received, statistics.packets_retransmitted);
        assert_eq!(asked, (0, 0), "{statistics:?}");
    }
    Some(statistics)
}

/// srt-live-transmit sends as much to us. Returns our statistics.
async fn receive(
    test: &str,
    who: Caller,
    ours: &str,
    theirs: &str,
    loss: Loss,
) -> Option<Statistics> {
    if !have_all(&[Tool::SrtLiveTransmit]) {
        return None;
    }
    let folder = Folder::of(test);
    let (socket, mut peer, tap) = connect(who, ours, &folder, loss, |caller, port| {
        let mut command = Command::new("srt-live-transmit");
        command.args(["-a:no", "-v", "-chunk:1316", "file://con", &uri(caller, port, theirs)]);
        Process::start("sender", command, &folder)
    })
    .await;
    peer.wait_for_line(if who == Caller::Us { "Accepted SRT" } else { "SRT target connected" });
    let mut pipe = peer.stdin();
    let feeder = thread::spawn(move || {
        // Somewhat more than is looked at, so that the last groups are whole.
        for i in 0..MESSAGES + 200 {
            pipe.write_all(&message(i)).expect("srt-live-transmit reads");
            pipe.flush().expect("srt-live-transmit reads");
            thread::sleep(INTERVAL);
        }
        pipe
    });
    for i in 0..MESSAGES {
        let next = timeout(Duration::from_secs(10), socket.recv()).await;
        let next = next.expect("the stream goes on").expect("the connection is established");
        assert!(next.payload == message(i), "message {i} is missing or changed");
    }
    let statistics = socket.statistics();
    feeder.join().expect("the feeder does not panic");
    tap.stop();
    assert!(statistics.packets_receive_filter_extra > 100, "{statistics:?}");
    assert!(statistics.packets_filter_supplied > 50, "{statistics:?}");
    assert_eq!(statistics.packets_ignored, 0, "{statistics:?}");
    if ours.contains("never") || theirs.contains("never") {
        let asked = (statistics.naks_sent, statistics.packets_received_retransmitted);
        assert_eq!(asked, (0, 0), "{statistics:?}");
        assert_eq!(statistics.packets_filter_lost, 0, "{statistics:?}");
    }
    Some(statistics)
}

/// Brings us and a peer together through a relay that loses packets.
async fn connect(
    who: Caller,
    ours: &str,
    folder: &Folder,
    loss: Loss,
    peer: impl FnOnce(Caller, u16) -> Process,
) -> (Socket, Process, Tap) {
    let capture = folder.file("session.pcap");
    let first = OnceLock::new();
    let lose = move |_: u32, datagram: &[u8]| {
        let word = |at| u32::from_be_bytes(datagram[at..at + 4].try_into().expect("four bytes"));
        let (seq, flags) = (word(0), word(4));
        let place = seq.wrapping_sub(*first.get_or_init(|| seq)) & 0x7FFF_FFFF;
        let original = flags & 0x03FF_FFFF != 0 && flags & 0x0400_0000 == 0;
        original && (100..MESSAGES - 100).contains(&place) && loss(place)
    };
    match who {
        Caller::Us => {
            let port = free_port();
            let peer = peer(who, port);
            wait_until_bound(port);
            let tap = Tap::start_losing(port, &capture, lose);
            let socket = Socket::connect(local(tap.port()), config(ours)).await;
            (socket.expect("srt-live-transmit listens"), peer, tap)
        }
        Caller::Peer => {
            let listener = Listener::bind(local(0), config(ours)).await.expect("a free port");
            let tap = Tap::start_losing(listener.local_addr().port(), &capture, lose);
            let peer = peer(who, tap.port());
            let call = timeout(Duration::from_secs(10), listener.accept()).await;
            let socket = call.expect("srt-live-transmit calls").expect("it fits");
            (socket, peer, tap)
        }
    }
}

fn receiver(caller: Caller, port: u16, filter: &str, folder: &Folder) -> Process {
    let mut command = Command::new("srt-live-transmit");
    command.args(["-a:no", "-v", "-chunk:1316", &uri(caller, port, filter), "file://con"]);
    Process::start_with_output("receiver", command, folder, Some(&folder.file("received")))
}

/// The peer's URI.
fn uri(caller: Caller, port: u16, filter: &str) -> String {
    let end = match caller {
        Caller::Us => format!("srt://:{port}?mode=listener"),
        Caller::Peer => format!("srt://127.0.0.1:{port}?mode=caller"),
    };
    let (filter, secret) = split(filter);
    let filter = if filter.is_empty() { String::new() } else { format!("&packetfilter={filter}") };
    let secret = if secret.is_empty() { String::new() } else { format!("&passphrase={secret}") };
    format!("{end}&latency=1000{filter}{secret}")
}

fn config(filter: &str) -> Config {
    let config = Config::default().with_latency(Duration::from_millis(1_000)).expect("in range");
    let (filter, secret) = split(filter);
    let config = config.with_packet_filter(filter).expect("a legal filter");
    config.with_passphrase(secret).expect("a legal length")
}

/// A filter, and the passphrase that may follow it.
fn split(options: &str) -> (&str, &str) {
    options.split_once("&passphrase=").unwrap_or((options, ""))
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// A message that says which one it is, and is like no other.
fn message(i: u32) -> Bytes {
    let number = i.to_be_bytes();
    (0..SIZE)
        .map(|at| number[at % 4].wrapping_add(u8::try_from(at / 4 % 251).expect("small")))
        .collect()
}

fn size_of(path: &Path) -> usize {
    fs::metadata(path).map_or(0, |file| usize::try_from(file.len()).unwrap_or(usize::MAX))
}

const MESSAGES: u32 = 1_500;
const SIZE: usize = 1_316;
const INTERVAL: Duration = Duration::from_millis(1);
