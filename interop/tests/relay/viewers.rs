//! Slow viewers, and viewers of streams that are absent, beside a viewer that does well.

use std::time::Duration;

use interop::{
    Folder, Process, Relay, Tool, emulator, free_port, have_all, retry_if_stalled, wait_until_bound,
};
use punctual::{Config, RejectReason, Socket};

use crate::common::{TURNS, assert_decoded, decode, publish};

#[test]
fn a_slow_viewer_is_named_with_its_rate_and_delays_no_other() {
    retry_if_stalled(name_a_slow_viewer);
}

fn name_a_slow_viewer() {
    if !have_all(&[Tool::Ffmpeg]) {
        return;
    }
    let _turn = TURNS.take(1);
    let folder = Folder::of("a_slow_viewer_is_named");
    let mut relay = Relay::start(&folder, "");
    let _publisher = publish(&relay, "publisher", &relay.uri("publish:live", ""), &folder);
    relay.wait_online("live");
    let narrow = free_port();
    let link = emulator(narrow, relay.port, &["--rtt", "20ms", "--rate", "500kbps"]);
    let _link = Process::start("link", link, &folder);
    wait_until_bound(narrow);
    let uri = format!("srt://127.0.0.1:{narrow}?streamid=read:live");
    let _slow = decode("slow", &uri, 60, &folder);
    let mut other = decode("other", &relay.uri("read:live", ""), 3, &folder);
    relay.wait_for("/v1/connections", |it| it.as_array().is_some_and(|it| it.len() == 3));
    let line = relay.process().wait_for_line("behind and goes on at a later random access point");
    assert!(
        line.contains("viewer 127.0.0.1:") && line.contains("Mb/s at a round trip of"),
        "{line}"
    );
    assert!(other.wait(Duration::from_secs(15)).success(), "{}", other.log());
    assert_decoded(&other.log());
    let all = relay.json("/v1/connections");
    let skips = all.as_array().expect("a list").iter().filter(|it| it["skips"] != 0).count();
    assert_eq!(skips, 1, "{all}");
}

#[tokio::test]
async fn a_hundred_callers_of_absent_streams_disturb_no_viewer() {
    if !have_all(&[Tool::Ffmpeg]) {
        return;
    }
    let _turn = TURNS.take(1);
    let folder = Folder::of("a_hundred_callers_of_absent_streams");
    let relay = Relay::start(&folder, "");
    let _publisher = publish(&relay, "publisher", &relay.uri("publish:live", ""), &folder);
    relay.wait_online("live");
    let mut viewer = decode("viewer", &relay.uri("read:live", ""), 3, &folder);
    relay.wait_for("/v1/connections", |it| it.as_array().is_some_and(|it| it.len() == 2));
    let address = ([127, 0, 0, 1], relay.port).into();
    let call = |number: u32| {
        let id = format!("read:absent/{number}");
        let config = Config::default().with_stream_id(id).expect("a short stream ID");
        tokio::spawn(Socket::connect(address, config))
    };
    let calls: Vec<_> = (0..100).map(call).collect();
    for call in calls {
        let error = call.await.expect("a call does not panic").expect_err("nobody is there");
        assert_eq!(error.reject_reason(), Some(RejectReason::NOT_FOUND), "{error}");
    }
    assert!(viewer.wait(Duration::from_secs(15)).success(), "{}", viewer.log());
    assert_decoded(&viewer.log());
}
