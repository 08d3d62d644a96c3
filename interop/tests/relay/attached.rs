//! The work of a relay beside its callers: pulls, forwards, recordings, and streams by HTTP.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::Duration;

use interop::{Folder, Process, Relay, Tool, free_port, have_all, wait_until_bound};

use crate::common::{TURNS, assert_continuous, assert_decoded, decode, publish};

#[test]
fn a_stream_is_pulled_from_one_relay_and_forwarded_to_another() {
    if !have_all(&[Tool::Ffmpeg]) {
        return;
    }
    let _turn = TURNS.take(2);
    let [one, two, three] = ["pulled_from", "pulls_and_forwards", "forwarded_to"]
        .map(|name| Folder::of(&format!("relay_{name}")));
    let origin = Relay::start(&one, "");
    let end = Relay::start(&three, "");
    let lines = format!(
        "[stream.edge]\nsource = \"{}\"\nforward = [{{ to = \"{}\" }}]\n",
        origin.uri("read:live", ""),
        end.uri("publish:copy", "")
    );
    let middle = Relay::start(&two, &lines);
    let _publisher = publish(&origin, "publisher", &origin.uri("publish:live", ""), &one);
    end.wait_online("copy");
    let mut viewer = decode("viewer", &end.uri("read:copy", ""), 3, &three);
    assert!(viewer.wait(Duration::from_secs(15)).success());
    assert_decoded(&viewer.log());
    let forward = middle.json("/v1/streams/edge")["forwards"][0].clone();
    assert_eq!(forward["up"], true, "{forward}");
    let stop = middle.request("POST", "/v1/streams/edge/forward/1/stop").0;
    assert!((200..300).contains(&stop), "{stop}");
    end.wait_for("/v1/streams/copy", |it| it["source"].is_null());
    let start = middle.request("POST", "/v1/streams/edge/forward/1/start").0;
    assert!((200..300).contains(&start), "{start}");
    end.wait_online("copy");
}

/// The origin keeps its viewers connected for a time without media, and the relay that pulls from
/// it is one of them.
#[test]
fn the_state_of_a_pulled_stream_follows_its_packets() {
    if !have_all(&[Tool::Ffmpeg]) {
        return;
    }
    let _turn = TURNS.take(1);
    let [one, two] = ["state_from", "state_follows"].map(|it| Folder::of(&format!("relay_{it}")));
    let origin = Relay::start(&one, "");
    let uri = origin.uri("publish:live", "");
    let publisher = publish(&origin, "publisher", &uri, &one);
    origin.wait_online("live");
    let lines = format!("[stream.edge]\nsource = \"{}\"\n", origin.uri("read:live", ""));
    let edge = Relay::start(&two, &lines);
    edge.wait_online("edge");
    drop(publisher);
    edge.wait_for("/v1/streams/edge", |it| it["state"] == "waiting");
    let pulled = edge.json("/v1/connections")[0].clone();
    assert_eq!(pulled["role"], "pull", "it is still connected");
    assert!(pulled["statistics"]["pktRecv"].as_u64() > Some(0), "{pulled}");
    let _again = publish(&origin, "again", &uri, &one);
    edge.wait_online("edge");
}

#[test]
fn a_source_is_pulled_while_somebody_views() {
    if !have_all(&[Tool::Ffmpeg]) {
        return;
    }
    let _turn = TURNS.take(1);
    let [one, two] =
        ["on_demand_from", "on_demand"].map(|name| Folder::of(&format!("relay_{name}")));
    let origin = Relay::start(&one, "");
    let _publisher = publish(&origin, "publisher", &origin.uri("publish:live", ""), &one);
    origin.wait_online("live");
    let lines = format!(
        "[stream.edge]\nsource = \"{}\"\nsource-on-demand = true\nsource-on-demand-close-after = \"1s\"\n",
        origin.uri("read:live", "")
    );
    let edge = Relay::start(&two, &lines);
    thread::sleep(Duration::from_millis(500));
    assert_eq!(origin.json("/v1/connections").as_array().map(Vec::len), Some(1));
    let mut viewer = decode("viewer", &edge.uri("read:edge", ""), 2, &two);
    assert!(viewer.wait(Duration::from_secs(15)).success());
    assert_decoded(&viewer.log());
    origin.wait_for("/v1/connections", |it| it.as_array().is_some_and(|it| it.len() == 1));
}

#[test]
fn a_stream_is_recorded_on_request_and_served_by_http() {
    if !have_all(&[Tool::Ffmpeg]) {
        return;
    }
    let _turn = TURNS.take(1);
    let folder = Folder::of("relay_recorded_on_request");
    let relay = Relay::start(&folder, "");
    let _publisher = publish(&relay, "publisher", &relay.uri("publish:live", ""), &folder);
    relay.wait_online("live");
    let done = |path: &str| (200..300).contains(&relay.request("POST", path).0);
    assert!(done("/v1/streams/live/record/start"));
    thread::sleep(Duration::from_secs(3));
    assert!(done("/v1/streams/live/record/stop"));
    let all = relay.wait_for("/v1/recordings", |it| it[0]["state"] == "ended");
    let file = folder.file(all[0]["file"].as_str().expect("a recording has a file"));
    assert_continuous(&fs::read(file).expect("the recording is there"), 1_000);

    let mut viewer = decode("by-http", &relay.url("/live/live.ts"), 3, &folder);
    assert!(viewer.wait(Duration::from_secs(15)).success());
    assert_decoded(&viewer.log());
    let mut probe = Command::new("ffprobe");
    probe.args(["-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0"]);
    probe.arg(relay.url("/hls/live/index.m3u8"));
    let mut probe = Process::start("ffprobe", probe, &folder);
    assert!(probe.wait(Duration::from_secs(20)).success());
    let log = probe.log();
    assert!(log.contains("h264") && log.contains("aac"), "{log}");
}

#[test]
fn a_destination_by_udp_gets_the_stream() {
    if !have_all(&[Tool::Ffmpeg]) {
        return;
    }
    let _turn = TURNS.take(1);
    let folder = Folder::of("relay_destination_by_udp");
    let port = free_port();
    let lines = format!("[stream.live]\nforward = [{{ to = \"udp://127.0.0.1:{port}\" }}]\n");
    let uri = format!("udp://127.0.0.1:{port}?fifo_size=100000&timeout=10000000");
    let mut viewer = decode("viewer", &uri, 3, &folder);
    wait_until_bound(port);
    let relay = Relay::start(&folder, &lines);
    let _publisher = publish(&relay, "publisher", &relay.uri("publish:live", ""), &folder);
    assert!(viewer.wait(Duration::from_secs(20)).success());
    assert_decoded(&viewer.log());
}
