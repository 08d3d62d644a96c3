//! Publishers that are killed, come back, and replace each other.

use std::fs;
use std::thread;
use std::time::Duration;

use interop::{Folder, Relay, Signal, Tool, have_all, send, wait_for_silence};

use crate::common::{TURNS, assert_continuous, assert_decoded, decode, publish, record};

#[test]
fn viewers_of_a_publisher_that_is_killed_and_comes_back_see_no_error() {
    if !have_all(&[Tool::Ffmpeg, Tool::SrtLiveTransmit]) {
        return;
    }
    let _turn = TURNS.take(1);
    let folder = Folder::of("a_publisher_that_is_killed");
    let relay = Relay::start(&folder, "");
    let first = publish(&relay, "first", &relay.uri("publish:live", ""), &folder);
    relay.wait_online("live");
    let mut viewer = decode("viewer", &relay.uri("read:live", ""), 14, &folder);
    let output = folder.file("received.ts");
    let mut recorder = record("recorder", &relay.uri("read:live", ""), &output, &folder);
    relay.wait_for("/v1/streams/live", |it| it["viewers"][0]["viewers"] == 2);
    thread::sleep(Duration::from_secs(3));
    send(first.id(), Signal::KILL);
    drop(first);
    relay.wait_for("/v1/streams/live", |it| it["source"].is_null());
    let second = publish(&relay, "second", &relay.uri("publish:live", ""), &folder);
    relay.wait_online("live");
    thread::sleep(Duration::from_secs(4));
    assert!(!recorder.ended(), "the viewer stays");
    let stream = relay.json("/v1/streams/live");
    assert_eq!(stream["viewers"][0]["viewers"], 2, "{stream}");
    drop(second);
    recorder.stop();
    viewer.wait(Duration::from_secs(30));
    assert_decoded(&viewer.log());
    assert_continuous(&fs::read(&output).expect("it was written"), 5_000);
}

#[test]
fn viewers_of_a_publisher_that_is_replaced_go_on_without_an_error() {
    if !have_all(&[Tool::Ffmpeg, Tool::SrtLiveTransmit]) {
        return;
    }
    let _turn = TURNS.take(1);
    let folder = Folder::of("a_newer_publisher_replaces");
    let relay = Relay::start(&folder, "");
    let mut first = publish(&relay, "first", &relay.uri("publish:live", ""), &folder);
    relay.wait_online("live");
    let output = folder.file("received.ts");
    let mut recorder = record("recorder", &relay.uri("read:live", ""), &output, &folder);
    relay.wait_for("/v1/streams/live", |it| it["viewers"][0]["viewers"] == 1);
    thread::sleep(Duration::from_secs(2));
    let old = relay.json("/v1/streams/live")["source"]["connection"].clone();
    let _second = publish(&relay, "second", &relay.uri("publish:live", ""), &folder);
    let source = "/v1/streams/live";
    relay.wait_for(source, |it| {
        it["source"]["connection"].is_string() && it["source"]["connection"] != old
    });
    assert!(!first.wait(Duration::from_secs(10)).success(), "the older one is disconnected");
    thread::sleep(Duration::from_secs(3));
    recorder.stop();
    wait_for_silence(&output);
    assert_continuous(&fs::read(&output).expect("it was written"), 4_000);
    assert_eq!(relay.json("/v1/streams/live")["source_switches"][0]["count"], 1);
}

#[test]
fn viewers_are_disconnected_when_the_grace_time_is_over_and_not_before() {
    if !have_all(&[Tool::Ffmpeg, Tool::SrtLiveTransmit]) {
        return;
    }
    let _turn = TURNS.take(1);
    let folder = Folder::of("viewers_are_disconnected");
    let relay = Relay::start(&folder, "[defaults]\nkeep-viewers = \"2s\"\n");
    let mut publisher = publish(&relay, "publisher", &relay.uri("publish:live", ""), &folder);
    relay.wait_online("live");
    let output = folder.file("received.ts");
    let mut viewer = record("viewer", &relay.uri("read:live", ""), &output, &folder);
    relay.wait_for("/v1/streams/live", |it| it["viewers"][0]["viewers"] == 1);
    publisher.stop();
    relay.wait_for("/v1/streams/live", |it| it["source"].is_null());
    thread::sleep(Duration::from_millis(1_500));
    assert!(!viewer.ended(), "the grace time is not over");
    viewer.wait(Duration::from_secs(5));
    let list = relay.json("/v1/streams");
    assert_eq!(list.as_array().map(Vec::len), Some(0), "{list}");
}

#[test]
fn a_recording_goes_on_over_a_gap_of_its_publisher() {
    if !have_all(&[Tool::Ffmpeg]) {
        return;
    }
    let _turn = TURNS.take(1);
    let folder = Folder::of("a_recording_goes_on");
    let lines = "[stream.live]\nrecord = true\nkeep-viewers = \"30s\"\n";
    let relay = Relay::start(&folder, lines);
    let uri = relay.uri("publish:live", "");
    let bytes = |all: &serde_json::Value| all[0]["bytes"].as_u64().unwrap_or_default();
    let mut before = 0;
    for name in ["first", "second"] {
        let mut publisher = publish(&relay, name, &uri, &folder);
        let all = relay.wait_for("/v1/recordings", |all| bytes(all) > before + 500_000);
        before = bytes(&all);
        publisher.stop();
        relay.wait_for("/v1/streams/live", |it| it["source"].is_null());
    }
    let stopped = relay.request("POST", "/v1/streams/live/record/stop").0;
    assert!((200..300).contains(&stopped), "{stopped}");
    let all = relay.wait_for("/v1/recordings", |all| all[0]["state"] == "ended");
    assert_eq!(all.as_array().map(Vec::len), Some(1), "one file over the gap: {all}");
    let file = folder.file(all[0]["file"].as_str().expect("a recording has a file"));
    let index = fs::read_to_string(file.with_extension("jsonl")).expect("it has an index");
    assert_eq!(index.matches(r#""discontinuity":"source""#).count(), 1, "{index}");
    let bytes = fs::metadata(&file).expect("the recording is there").len();
    assert!(bytes > 1_000_000 && bytes.is_multiple_of(188), "{bytes} bytes");
}
