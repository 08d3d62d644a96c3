//! Rendezvous with srt-live-transmit: whoever wins the contest of cookies, whoever comes first, and
//! over a link that loses handshakes too, both ends meet and the stream arrives.

#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "real programs run in real time")]

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, thread};

use bytes::Bytes;
use interop::{
    Direction, Folder, Middle, Place, Process, Side, Tool, have_all, punctual, retry_if_stalled,
    retry_if_stalled_async, wait_until_bound,
};
use punctual::{Config, KeyState, Socket};
use tokio::time::timeout;

#[test]
fn srt_live_transmit_sends_to_us_in_both_roles() {
    retry_if_stalled_async(async || {
        meet("sends_to_us_in_both_roles", Direction::ToUs, false, "").await;
    });
}

#[test]
fn srt_live_transmit_sends_to_us_in_both_roles_under_loss() {
    retry_if_stalled_async(async || {
        meet("sends_to_us_in_both_roles_under_loss", Direction::ToUs, true, "").await;
    });
}

#[test]
fn srt_live_transmit_receives_from_us_in_both_roles() {
    retry_if_stalled_async(async || {
        meet("receives_from_us_in_both_roles", Direction::FromUs, false, "").await;
    });
}

#[test]
fn srt_live_transmit_receives_from_us_in_both_roles_under_loss() {
    retry_if_stalled_async(async || {
        meet("receives_from_us_in_both_roles_under_loss", Direction::FromUs, true, "").await;
    });
}

#[test]
fn srt_live_transmit_sends_encrypted_to_us_in_both_roles() {
    retry_if_stalled_async(async || {
        let options = "&passphrase=correct-horse&pbkeylen=32";
        meet("sends_encrypted_to_us", Direction::ToUs, false, options).await;
    });
}

#[test]
fn srt_live_transmit_receives_encrypted_from_us_in_both_roles_under_loss() {
    retry_if_stalled_async(async || {
        let options = "&passphrase=correct-horse";
        meet("receives_encrypted_from_us", Direction::FromUs, true, options).await;
    });
}

#[test]
fn srt_live_transmit_sends_with_a_packet_filter_in_both_roles_under_loss() {
    retry_if_stalled_async(async || {
        meet("sends_with_a_packet_filter", Direction::ToUs, true, FILTER).await;
    });
}

#[test]
fn srt_live_transmit_receives_encrypted_and_filtered_in_both_roles() {
    retry_if_stalled_async(async || {
        let options = &format!("{FILTER}&passphrase=correct-horse");
        meet("receives_with_a_packet_filter", Direction::FromUs, false, options).await;
    });
}

/// The program, by a URI that srt-live-transmit understands as well.
#[test]
fn our_program_meets_srt_live_transmit() {
    retry_if_stalled(|| {
        if !have_all(&[Tool::SrtLiveTransmit]) {
            return;
        }
        let folder = Folder::of("our_program_meets_srt_live_transmit");
        let middle = Middle::start(false, 0);
        let received = folder.file("received");
        let mut ours = Command::new(punctual());
        ours.args(["route", &uri(middle.here)]).arg(format!("file://{}", received.display()));
        let mut ours = Process::start("punctual", ours, &folder);
        let mut peer = sender(middle.there, "", &folder);
        ours.wait_for_line("connected with");
        peer.wait_for_line("SRT target connected");
        let mut input = peer.stdin();
        for number in 0..MESSAGES {
            input.write_all(&message(number)).expect("the peer reads");
            thread::sleep(INTERVAL);
        }
        wait_for_size(&received);
        assert!(fs::read(&received).expect("it was written").starts_with(&all_messages()));
    });
}

/// Meets a new peer again and again until each end has won the contest, with a stream each time.
/// The peer's cookie follows from its address and the minute, ours is drawn anew. Both have the
/// same `options`.
async fn meet(test: &str, direction: Direction, lossy: bool, options: &str) {
    if !have_all(&[Tool::SrtLiveTransmit]) {
        return;
    }
    let mut winners = Vec::new();
    for attempt in 0..40 {
        let folder = Folder::of(&format!("{test}_{attempt}"));
        let middle = Middle::start(lossy, attempt);
        let received = folder.file("received");
        let start = || match direction {
            Direction::ToUs => sender(middle.there, options, &folder),
            Direction::FromUs => receiver(middle.there, options, &folder, &received),
        };
        // Now the one end comes first and now the other.
        let (socket, peer) = if attempt % 2 == 0 {
            let peer = start();
            wait_until_bound(middle.there.local);
            (rendezvous(middle.here, config(options)).await, peer)
        } else {
            let ours = tokio::spawn(rendezvous(middle.here, config(options)));
            wait_until_bound(middle.here.local);
            let peer = start();
            (ours.await.expect("it does not panic"), peer)
        };
        assert_eq!(socket.info().receive_latency, LATENCY);
        match direction {
            Direction::ToUs => take(&socket, peer).await,
            Direction::FromUs => give(&socket, &received).await,
        }
        let (info, statistics) = (socket.info(), socket.statistics());
        let encrypted = options.contains("passphrase");
        let state = if encrypted { KeyState::Secured } else { KeyState::Unsecured };
        assert_eq!((info.send_key_state, info.receive_key_state), (state, state));
        assert_eq!(statistics.packets_undecrypted, 0, "{statistics:?}");
        let extra = statistics.packets_send_filter_extra + statistics.packets_receive_filter_extra;
        assert_eq!(extra > 10, options.contains("packetfilter"), "{statistics:?}");
        winners.push(middle.initiator());
        if winners.contains(&Side::Here) && winners.contains(&Side::There) {
            return;
        }
    }
    panic!("one end won each time: {winners:?}");
}

/// The options of a URI for our end.
fn config(options: &str) -> Config {
    let value = |key: &str| {
        let mut all = options.split('&').filter_map(|option| option.split_once('='));
        all.find(|(name, _)| *name == key).map_or("", |(_, value)| value)
    };
    let config = Config::default().with_latency(LATENCY).expect("in range");
    let config = config.with_passphrase(value("passphrase")).expect("a legal length");
    config.with_packet_filter(value("packetfilter")).expect("a legal filter")
}

async fn rendezvous(place: Place, config: Config) -> Socket {
    let [local, remote] =
        [place.local, place.remote].map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    timeout(TIMEOUT, Socket::rendezvous(local, remote, config))
        .await
        .expect("they meet in time")
        .expect("they meet")
}

/// Receives the peer's messages.
async fn take(socket: &Socket, mut peer: Process) {
    peer.wait_for_line("SRT target connected");
    let mut input = peer.stdin();
    let feed = thread::spawn(move || {
        for number in 0..MESSAGES {
            if input.write_all(&message(number)).is_err() {
                return None;
            }
            thread::sleep(INTERVAL);
        }
        // Closed only when all has arrived: a program that ends takes its last messages with it.
        Some(input)
    });
    let mut received = Vec::new();
    while received.len() < all_messages().len() {
        let message = timeout(TIMEOUT, socket.recv()).await.expect("the stream goes on");
        received.extend(message.expect("the connection is established").payload);
    }
    assert!(received == all_messages(), "the stream arrived changed");
    assert!(feed.join().expect("it does not panic").is_some(), "the peer reads");
}

/// Sends, with padding behind it that the peer may hold back.
async fn give(socket: &Socket, received: &Path) {
    for number in 0..MESSAGES + PADDING {
        socket.send(Bytes::from(message(number))).await.expect("the connection is established");
        tokio::time::sleep(INTERVAL).await;
    }
    wait_for_size(received);
    assert!(fs::read(received).expect("it was written").starts_with(&all_messages()));
}

fn sender(place: Place, options: &str, folder: &Folder) -> Process {
    let mut command = Command::new("srt-live-transmit");
    command.args(["-a:no", "-v", "-chunk:1316", "file://con"]).arg(uri(place) + options);
    Process::start("peer", command, folder)
}

fn receiver(place: Place, options: &str, folder: &Folder, output: &Path) -> Process {
    let mut command = Command::new("srt-live-transmit");
    command.args(["-a:no", "-v", "-chunk:1316"]).arg(uri(place) + options).arg("file://con");
    Process::start_with_output("peer", command, folder, Some(output))
}

fn uri(place: Place) -> String {
    let Place { local, remote } = place;
    let latency = LATENCY.as_millis();
    format!(
        "srt://127.0.0.1:{remote}?mode=rendezvous&adapter=127.0.0.1&port={local}&latency={latency}"
    )
}

fn message(number: u32) -> Vec<u8> {
    (0..1_316_u32).map(|at| (at.wrapping_mul(31) ^ number).to_be_bytes()[3]).collect()
}

fn all_messages() -> Vec<u8> {
    (0..MESSAGES).flat_map(message).collect()
}

fn wait_for_size(path: &Path) {
    let deadline = Instant::now() + TIMEOUT;
    let size = || fs::metadata(path).map_or(0, |file| file.len());
    while size() < u64::try_from(all_messages().len()).expect("it is short") {
        assert!(Instant::now() < deadline, "only {} bytes arrived", size());
        thread::sleep(Duration::from_millis(10));
    }
}

/// The same filter for both ends, with every key in alphabetical order: libsrt writes it in that
/// order when it has read the peer's, and refuses a repeated handshake with another order.
const FILTER: &str = "&packetfilter=fec,arq:onreq,cols:5,layout:staircase,rows:4";
const LATENCY: Duration = Duration::from_millis(250);
const MESSAGES: u32 = 200;
const PADDING: u32 = 20;
const INTERVAL: Duration = Duration::from_millis(2);
const TIMEOUT: Duration = Duration::from_secs(30);
