//! The operator reloads, drains and ends the relay.

use std::thread;
use std::time::Duration;

use interop::{End, Folder, Process, Program, Relay, Role, Signal, Tool, have_all, send};

use crate::common::{TURNS, decode, listener, publish, record};

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

#[test]
fn a_passphrase_that_a_reload_changes_counts_for_the_next_call() {
    if !have_all(&[Tool::Ffmpeg, Tool::SrtLiveTransmit]) {
        return;
    }
    let _turn = TURNS.take(1);
    let folder = Folder::of("a_passphrase_that_a_reload_changes");
    let lines = |secret: &str| format!("[stream.live]\nread-passphrase = \"{secret}\"\n");
    let mut relay = Relay::start(&folder, &lines("the-old-secret"));
    let _publisher = publish(&relay, "publisher", &relay.uri("publish:live", ""), &folder);
    relay.wait_online("live");
    let [old, new] = ["the-old-secret", "the-new-secret"]
        .map(|secret| relay.uri("read:live", &format!("&passphrase={secret}")));
    let mut viewer = record("viewer", &old, &folder.file("received.ts"), &folder);
    relay.wait_for("/v1/connections", |it| it.as_array().is_some_and(|it| it.len() == 2));
    relay.rewrite(&lines("the-new-secret"));
    send(relay.process().id(), Signal::HUP);
    relay.process().wait_for_line("the configuration was read again: stream `live`");
    let mut refused = decode("refused", &old, 1, &folder);
    assert!(!refused.wait(Duration::from_secs(15)).success());
    relay.wait_refused("wrong-passphrase");
    let mut admitted = decode("admitted", &new, 1, &folder);
    assert!(admitted.wait(Duration::from_secs(15)).success(), "{}", admitted.log());
    assert!(!viewer.ended(), "a connection stays");
}

#[test]
fn a_viewer_that_is_kicked_with_a_ban_is_refused_when_it_calls_again() {
    if !have_all(&[Tool::Ffmpeg, Tool::SrtLiveTransmit]) {
        return;
    }
    let _turn = TURNS.take(1);
    let folder = Folder::of("a_viewer_that_is_kicked");
    let relay = Relay::start(&folder, "");
    let mut publisher = publish(&relay, "publisher", &relay.uri("publish:live", ""), &folder);
    relay.wait_online("live");
    let uri = relay.uri("read:live", "");
    let mut viewer = record("viewer", &uri, &folder.file("received.ts"), &folder);
    let is_viewer = |it: &&serde_json::Value| it["role"] == "viewer";
    let id = |all: &serde_json::Value| {
        let viewer = all.as_array().and_then(|all| all.iter().find(is_viewer).cloned());
        viewer.and_then(|it| it["id"].as_str().map(str::to_owned))
    };
    let id = id(&relay.wait_for("/v1/connections", |all| id(all).is_some())).expect("it is there");
    let kicked = relay.request("DELETE", &format!("/v1/connections/{id}?ban_s=60")).0;
    assert!((200..300).contains(&kicked), "{kicked}");
    viewer.wait(Duration::from_secs(5));
    let mut refused = decode("refused", &uri, 1, &folder);
    assert!(!refused.wait(Duration::from_secs(15)).success());
    relay.wait_refused("address");
    assert!(!publisher.ended(), "others from there stay connected");
}

#[test]
fn a_reload_changes_the_rules_of_a_listener_and_touches_no_connection() {
    if !have_all(&[Tool::Ffmpeg]) {
        return;
    }
    let _turn = TURNS.take(1);
    let folder = Folder::of("a_reload_changes_the_rules_of_a_listener");
    let lines = |latency: u32| {
        format!(
            "[[listen]]\nsrt = \"127.0.0.1:0\"\nlatency = \"{latency}ms\"\n\
             [[listen]]\nquic = \"127.0.0.1:0\"\nlatency = \"{latency}ms\"\n"
        )
    };
    let mut relay = Relay::start(&folder, &lines(150));
    let [(port, _), (quic, hash)] = [1, 2].map(|number| listener(&relay, number));
    let uri = format!("srt://127.0.0.1:{port}?streamid=publish:live");
    let _publisher = publish(&relay, "publisher", &uri, &folder);
    relay.wait_online("live");
    let view = |name: &str| {
        let hash = hash.as_deref().expect("a listener over QUIC tells its hash");
        let pin = format!("certhash={hash}");
        let end = End::new(Role::Caller, quic).with_scheme("srt+quic").with_options(&pin);
        let end = end.with_stream_id("read:live");
        let (command, _) = Program::Punctual.receiver(&end, &folder.file(name));
        Process::start(name, command, &folder)
    };
    let _first = view("first");
    let counts = |relay: &Relay, number: usize| {
        let all = relay
            .wait_for("/v1/connections", |it| it.as_array().is_some_and(|it| it.len() == number));
        let all = all.as_array().expect("a list").iter();
        all.map(|it| (it["id"].clone(), it["bytes"].as_u64())).collect::<Vec<_>>()
    };
    counts(&relay, 2);
    relay.rewrite(&lines(200));
    send(relay.process().id(), Signal::HUP);
    relay.process().wait_for_line("the configuration was read again: listen");
    let _second = view("second");
    let before = counts(&relay, 3);
    relay.wait_for("/v1/connections", |all| {
        let later = |(id, bytes): &(serde_json::Value, Option<u64>)| {
            let it = all.as_array()?.iter().find(|it| it["id"] == *id)?;
            Some(it["bytes"].as_u64()? > (*bytes)? + 1_000_000)
        };
        before.iter().all(|it| later(it) == Some(true))
    });
    let wishes = relay.json("/v1/connections");
    let wishes: Vec<_> = (0..3).map(|it| &wishes[it]["latency"]["relay_ms"]).collect();
    assert_eq!(wishes, [150, 150, 200]);
    assert_eq!(relay.json("/health")["warnings"].as_array().map(Vec::len), Some(0));
}
