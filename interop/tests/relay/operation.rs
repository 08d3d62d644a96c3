//! The operator reloads, drains and ends the relay.

use std::thread;
use std::time::Duration;

use interop::{Folder, Relay, Signal, Tool, have_all, send};

use crate::common::{TURNS, decode, publish, record};

#[test]
fn a_reload_changes_what_changed_and_touches_no_connection() {
    if !have_all(&[Tool::Ffmpeg, Tool::SrtLiveTransmit]) {
        return;
    }
    let _turn = TURNS.take(1);
    let folder = Folder::of("a_reload_changes");
    let mut relay = Relay::start(&folder, "");
    let _publisher = publish(&relay, "publisher", &relay.uri("publish:live", ""), &folder);
    relay.wait_online("live");
    let output = folder.file("received.ts");
    let _viewer = record("viewer", &relay.uri("read:live", ""), &output, &folder);
    relay.wait_for("/v1/connections", |it| it.as_array().is_some_and(|it| it.len() == 2));
    let before = relay.json("/v1/connections");
    let ids = |all: &serde_json::Value| {
        let all = all.as_array().expect("a list").iter();
        all.map(|it| it["id"].clone()).collect::<Vec<_>>()
    };
    relay.rewrite("[stream.live]\nmax-viewers = 1\n");
    send(relay.process().id(), Signal::HUP);
    relay.process().wait_for_line("the configuration was read again: stream `live`");
    let mut refused = decode("refused", &relay.uri("read:live", ""), 1, &folder);
    assert!(!refused.wait(Duration::from_secs(15)).success());
    relay.wait_refused("too-many");
    relay.rewrite("[stream.live]\nmax-viewer = 2\n");
    send(relay.process().id(), Signal::HUP);
    relay.process().wait_for_line("did you mean `max-viewers`?");
    thread::sleep(Duration::from_millis(300));
    assert_eq!(ids(&relay.json("/v1/connections")), ids(&before));
    assert_eq!(relay.json("/v1/streams/live")["state"], "online");
}

#[test]
fn a_relay_that_is_told_to_end_takes_no_calls_and_ends_publishers_last() {
    if !have_all(&[Tool::Ffmpeg, Tool::SrtLiveTransmit]) {
        return;
    }
    let _turn = TURNS.take(1);
    let folder = Folder::of("a_relay_that_is_told_to_end");
    let mut relay = Relay::start(&folder, "[drain]\nspread = \"2s\"\n");
    let mut publisher = publish(&relay, "publisher", &relay.uri("publish:live", ""), &folder);
    relay.wait_online("live");
    let mut viewers: Vec<_> = (0..3)
        .map(|number| {
            let output = folder.file(&format!("received-{number}.ts"));
            record(&format!("viewer-{number}"), &relay.uri("read:live", ""), &output, &folder)
        })
        .collect();
    relay.wait_for("/v1/streams/live", |it| it["viewers"][0]["viewers"] == 3);
    send(relay.process().id(), Signal::TERM);
    assert_eq!(relay.wait_for("/v1/server", |it| it["draining"] == true)["draining"], true);
    assert_eq!(relay.request("GET", "/readyz").0, 503);
    let mut refused = decode("refused", &relay.uri("read:live", ""), 1, &folder);
    assert!(!refused.wait(Duration::from_secs(5)).success());
    for viewer in &mut viewers {
        assert!(!publisher.ended(), "publishers end last");
        viewer.wait(Duration::from_secs(5));
    }
    publisher.wait(Duration::from_secs(5));
    assert!(relay.process().wait(Duration::from_secs(5)).success());
}
