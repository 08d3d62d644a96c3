//! A viewer whose link carries a tenth of the stream, beside one whose link carries all.

use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use interop::{
    Folder, Process, Relay, Tool, emulator, free_port, have_all, retry_if_stalled, wait_until_bound,
};
use punctual::{Config, Socket};
use punctual_mpegts::Checker;

use crate::common::{TURNS, assert_decoded, ffmpeg, publish};

#[test]
fn a_throttled_viewer_decodes_without_error_and_delays_nobody() {
    retry_if_stalled(throttle);
}

fn throttle() {
    if !have_all(&[Tool::Ffmpeg]) {
        return;
    }
    let _turn = TURNS.take(2);
    let folder = Folder::of("a_throttled_viewer");
    let mut relay = Relay::start(&folder, "");
    let _publisher = publish(&relay, "publisher", &relay.uri("publish:live", ""), &folder);
    relay.wait_online("live");
    let other_port = relay.port;
    let other = thread::spawn(move || view(other_port));
    // The clip has 2 Mb/s.
    let port = free_port();
    let link = emulator(port, relay.port, &["--rtt", "20ms", "--at-down", "6s: rate=200kbps"]);
    let _link = Process::start("link", link, &folder);
    wait_until_bound(port);
    let begin = Instant::now();
    let uri = format!("srt://127.0.0.1:{port}?streamid=read:live");
    // At a tenth of the rate the link carries one picture of each group, and no sound.
    let mut decoder = ffmpeg();
    decoder.args(["-loglevel", "level+warning", "-i", &uri, "-map", "0:v", "-t", "20"]);
    decoder.args(["-f", "null", "-"]);
    let mut slow = Process::start("slow", decoder, &folder);
    thread::sleep(Duration::from_secs(12));
    let connections = relay.wait_for("/v1/connections", |all| slowest(all).is_some());
    let connection = slowest(&connections).expect("it was there");
    let rate = connection["statistics"]["mbpsSendRate"].as_f64().expect("a rate");
    let round_trip = connection["statistics"]["msRTT"].as_f64().expect("a round trip");
    assert!(rate < 0.4 && round_trip >= 20.0, "{connection}");
    let line = relay.process().wait_for_line("goes on at a later random access point");
    assert!(line.contains(" Mb/s at a round trip of "), "{line}");
    assert!(slow.wait(Duration::from_secs(40)).success());
    assert_decoded(&slow.log());
    drop(relay);
    let other = other.join().expect("the other viewer ends with the relay");
    other.assert_undelayed(begin + Duration::from_secs(6));
}

/// A viewer that has skipped three times.
fn slowest(connections: &serde_json::Value) -> Option<&serde_json::Value> {
    let mut all = connections.as_array()?.iter();
    all.find(|it| it["role"] == "viewer" && it["skips"].as_u64() >= Some(3))
}

/// The packets that a viewer got.
#[derive(Default)]
struct Received {
    checker: Checker,
    /// When each message came, and how long after it was due by its publisher's time.
    delays: Vec<(Instant, Duration)>,
}

/// Views the stream until the relay ends.
#[tokio::main(flavor = "current_thread")]
async fn view(port: u16) -> Received {
    let remote = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let config = Config::default().with_stream_id("read:live").expect("a short stream ID");
    let socket = Socket::connect(remote, config).await.expect("the relay takes a viewer");
    let mut received = Received::default();
    while let Ok(message) = socket.recv().await {
        let late = punctual::now().saturating_since(message.due);
        received.delays.push((Instant::now(), late));
        received.checker.push(&message.payload);
    }
    received
}

impl Received {
    /// Asserts that nothing is missing, and that messages from this time on came as much at their
    /// due time as those before.
    fn assert_undelayed(mut self, time: Instant) {
        self.checker.finish();
        let total = self.checker.report().total();
        assert_eq!((total.continuity_errors, total.pcr_discontinuities), (0, 0));
        let (after, before): (Vec<_>, Vec<_>) =
            self.delays.into_iter().partition(|(at, _)| *at >= time);
        assert!(before.len() > 500 && after.len() > 1_000, "{} and {}", before.len(), after.len());
        let [before, after] = [before, after].map(|all| {
            let mut all: Vec<_> = all.into_iter().map(|(_, late)| late).collect();
            all.sort_unstable();
            all[all.len() / 2]
        });
        println!("the median delay behind the due time: {before:?}, then {after:?}");
        assert!(after < before + Duration::from_millis(5), "{before:?} and {after:?}");
    }
}
