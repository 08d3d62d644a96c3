//! Recordings: as a file by HTTP, and played by SRT.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::Duration;

use interop::{Folder, Process, Relay, Tool, have_all, punctual};

use crate::common::{TURNS, publish};

/// Records the stream `live` for some seconds, and returns the report on it.
fn record(relay: &Relay, seconds: u64) -> serde_json::Value {
    relay.wait_online("live");
    let done = |path: &str| (200..300).contains(&relay.request("POST", path).0);
    assert!(done("/v1/streams/live/record/start"));
    thread::sleep(Duration::from_secs(seconds));
    assert!(done("/v1/streams/live/record/stop"));
    relay.wait_for("/v1/recordings?stream=live", |it| it[0]["state"] == "ended")[0].clone()
}

#[test]
fn a_recording_is_one_file_by_http() {
    if !have_all(&[Tool::Ffmpeg]) {
        return;
    }
    let _turn = TURNS.take(1);
    let folder = Folder::of("relay_recording_by_http");
    let relay = Relay::start(&folder, "[defaults]\nrecord-segment = \"2s\"\n");
    let _publisher = publish(&relay, "publisher", &relay.uri("publish:live", ""), &folder);
    let recording = record(&relay, 8);
    assert!(recording["segments"].as_u64().is_some_and(|it| it > 1), "{recording}");
    let text = |key: &str| recording[key].as_str().expect("a time").to_owned();
    let (from, until) = (text("started_at"), text("ended_at"));
    let path = format!("/v1/recordings/live?from={from}&until={until}");
    let (status, bytes) = relay.request("GET", &path);
    assert_eq!(status, 200);
    assert_eq!(bytes.len() % 188, 0);
    crate::common::assert_continuous(&bytes, 1_000);
    let all = recording["bytes"].as_u64().expect("a size");
    assert!(bytes.len() as u64 > all * 9 / 10 && bytes.len() as u64 <= all, "{}", bytes.len());

    let mut probe = Command::new("ffprobe");
    probe.args(["-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0"]);
    probe.arg(relay.url(&path));
    let mut probe = Process::start("ffprobe", probe, &folder);
    assert!(probe.wait(Duration::from_secs(20)).success());
    assert!(probe.log().contains("h264") && probe.log().contains("aac"), "{}", probe.log());

    for wrong in ["from=yesterday", "from=2026-11-27T20:15:00&until=2026-11-27T20:14:00"] {
        assert_eq!(relay.request("GET", &format!("/v1/recordings/live?{wrong}")).0, 422);
    }
    let nothing = "/v1/recordings/live?from=2001-01-01T00:00:00&until=2001-01-02T00:00:00";
    assert_eq!(relay.request("GET", nothing).0, 404);
}

#[test]
fn views_and_playbacks_end_after_the_lifetime_that_another_server_sets() {
    if !have_all(&[Tool::Ffmpeg]) {
        return;
    }
    let _turn = TURNS.take(1);
    let folder = Folder::of("relay_lifetime_of_a_playback");
    let callout = TcpListener::bind("127.0.0.1:0").expect("a port");
    let lines = format!("[auth]\nhttp = \"http://{}/\"\n", callout.local_addr().expect("a port"));
    thread::spawn(move || callout.incoming().flatten().for_each(answer));
    let mut relay = Relay::start(&folder, &lines);
    let _publisher = publish(&relay, "publisher", &relay.uri("publish:live", ""), &folder);
    let recording = record(&relay, 12);

    let from = recording["started_at"].as_str().expect("a time");
    let uri = relay.uri(&format!("#!::r=live,at={from}"), "");
    let file = folder.file("played.ts");
    let mut viewer = Command::new(punctual());
    viewer.args(["route", &uri]).arg(&file);
    let mut viewer = Process::start("viewer", viewer, &folder);
    viewer.wait(Duration::from_secs(20));
    let played = fs::metadata(&file).expect("a file").len();
    let all = recording["bytes"].as_u64().expect("a size");
    assert!(played > 0 && played < all / 2, "{played} of {all} bytes were played in a second");

    let (status, bytes) = relay.request("GET", "/live/live.ts");
    assert!(status == 200 && !bytes.is_empty());
    let log = relay.process().log();
    let ended = log.matches("the time that it was admitted for is over").count();
    assert_eq!(ended, 2, "{log}");
}

/// Lets everybody do everything, and take a stream for a second.
fn answer(mut caller: TcpStream) {
    let mut question = Vec::new();
    let mut some = [0; 4_096];
    while let Ok(length @ 1..) = caller.read(&mut some) {
        question.extend_from_slice(&some[..length]);
        let text = String::from_utf8_lossy(&question);
        let Some((_, body)) = text.split_once("\r\n\r\n") else { continue };
        if !body.ends_with('}') {
            continue;
        }
        let takes = ["\"read\"", "\"playback\""].iter().any(|action| body.contains(action));
        let body = if takes { r#"{"lifetime":1}"# } else { "{}" };
        let length = body.len();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close";
        let _ = write!(caller, "{head}\r\nContent-Length: {length}\r\n\r\n{body}");
        return;
    }
}
