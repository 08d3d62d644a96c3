//! Groups publish and view over several links, at one listener or at several, and a link may die.

use std::process::Command;
use std::time::Duration;

use interop::{
    Clip, Folder, Process, Relay, Tool, emulator, free_port, have_all, punctual, retry_if_stalled,
    wait_for_size, wait_until_bound,
};
use serde_json::Value;

use crate::common::{TURNS, WANTED, assert_got_its_part, listener};

macro_rules! groups {
    ($($name:ident: $kind:literal;)*) => {
        $(#[test]
        fn $name() {
            retry_if_stalled(|| lose_a_link(stringify!($name), $kind));
        })*
    };
}

groups! {
    a_broadcast_group_that_loses_a_link_loses_no_packet: "broadcast";
    a_backup_group_that_loses_a_link_loses_no_packet: "backup";
    a_balancing_group_that_loses_a_link_loses_no_packet: "balance";
}

/// A group publishes and another views, each over one link that dies in the middle. Their links
/// call two listeners, which have room for one publisher and one viewer.
fn lose_a_link(test: &str, kind: &str) {
    if !have_all(&[Tool::Ffmpeg]) {
        return;
    }
    let _turn = TURNS.take(1);
    let folder = Folder::of(test);
    let relay = Relay::start(&folder, TWO_LISTENERS);
    let ports = [relay.port, listener(&relay, 1).0];
    assert_ne!(ports[0], ports[1]);

    let (first, dying) = dying_link("publishers-link", ports[1], &folder);
    let mut publisher = Command::new(punctual());
    publisher.args(["route", "-"]);
    publisher.args(links(kind, "publish:live", first, ports[0]));
    let mut publisher = Process::start("publisher", publisher, &folder);
    let _feed = Clip::get().feed(publisher.stdin());
    relay.wait_online("live");
    let (first, also_dying) = dying_link("viewers-link", ports[0], &folder);
    let output = folder.file("received.ts");
    let mut viewer = Command::new(punctual());
    viewer.arg("route");
    links(kind, "read:live", first, ports[1]).iter().for_each(|uri| {
        viewer.args(["--input", uri]);
    });
    viewer.args(["--output", &format!("file://{}", output.display())]);
    let _viewer = Process::start("viewer", viewer, &folder);

    wait_for_size(&output, WANTED / 3, Duration::from_secs(10));
    let all = relay.wait_for("/v1/connections", |all| {
        let all = all.as_array().filter(|all| all.len() >= 2);
        all.is_some_and(|all| all.iter().all(|it| links_up(it, kind) == 2))
    });
    assert_eq!(all.as_array().map(Vec::len), Some(2), "a group is one connection: {all}");
    drop((dying, also_dying));
    wait_for_size(&output, WANTED, Duration::from_secs(15));
    assert_got_its_part(&output, Clip::get().bytes());
    relay.wait_for("/v1/connections", |all| {
        all.as_array().is_some_and(|all| all.iter().all(|it| links_up(it, kind) == 1))
    });
    let stream = relay.json("/v1/streams/live");
    assert_eq!(stream["viewers"][0]["viewers"], 1, "{stream}");
    assert_eq!(stream["source_switches"][0]["count"], 0, "{stream}");
    assert_eq!(stream["inbound"]["packets_unrecovered"], 0, "{stream}");
    assert_eq!(stream["viewer_skips"][0]["count"], 0, "{stream}");
}

/// The link to this port that ends when the process does, and the port that leads to it.
fn dying_link(name: &str, to: u16, folder: &Folder) -> (u16, Process) {
    let from = free_port();
    let link = Process::start(name, emulator(from, to, &["--rtt", "20ms"]), folder);
    wait_until_bound(from);
    (from, link)
}

/// The URIs of a group's links to two ports. A backup group prefers the first.
fn links(kind: &str, stream_id: &str, first: u16, second: u16) -> [String; 2] {
    [
        format!(
            "srt://127.0.0.1:{first}?grouptype={kind}&weight=2&streamid={stream_id}&latency=1500ms"
        ),
        format!("srt://127.0.0.1:{second}?weight=1"),
    ]
}

/// The connected links of a group of this kind.
fn links_up(connection: &Value, kind: &str) -> usize {
    let group = &connection["group"];
    assert_eq!(group["kind"], kind, "{connection}");
    let is_up = |it: &&Value| it["state"] != "connecting" && it["state"] != "lost";
    group["links"].as_array().map_or(0, |links| links.iter().filter(is_up).count())
}

/// The buffer outlasts the stalls of a busy machine.
const TWO_LISTENERS: &str = r#"
[[listen]]
srt = "127.0.0.1:0"
[defaults]
start = "live"
max-viewers = 1
on-second-publisher = "refuse"
viewer-buffer = "5s"
"#;
