//! Callers of all kinds: without a stream ID, over a long path, and gone without a word.

use std::time::{Duration, Instant};

use interop::{
    Folder, Process, Relay, Signal, Tool, emulator, free_port, have_all, send, wait_until_bound,
};

use crate::common::{TURNS, assert_decoded, decode, listener, publish};

/// Over 300 ms a caller repeats its handshakes before the first answer can be there.
#[test]
fn a_caller_whose_handshakes_repeat_over_a_long_path_is_one_call() {
    if !have_all(&[Tool::Ffmpeg]) {
        return;
    }
    let _turn = TURNS.take(1);
    let folder = Folder::of("a_caller_whose_handshakes_repeat");
    let relay = Relay::start(&folder, "");
    let paths = [free_port(), free_port()].map(|from| {
        let command = emulator(from, relay.port, &["--rtt", "300ms", "--loss", "2%"]);
        let path = Process::start(&format!("path-{from}"), command, &folder);
        wait_until_bound(from);
        (from, path)
    });
    let uri = |place: usize, id: &str| {
        format!("srt://127.0.0.1:{}?streamid={id}&latency=1500000", paths[place].0)
    };
    let _publisher = publish(&relay, "publisher", &uri(0, "publish:live"), &folder);
    relay.wait_online("live");
    let mut viewer = decode("viewer", &uri(1, "read:live"), 2, &folder);
    assert!(viewer.wait(Duration::from_secs(20)).success(), "{}", viewer.log());
    assert_decoded(&viewer.log());
    assert_eq!(relay.json("/v1/server")["calls_admitted"], 2);
    assert_eq!(relay.json("/v1/streams/live")["source_switches"][0]["count"], 0);
}

#[test]
fn callers_without_a_stream_id_get_the_stream_of_their_listener() {
    if !have_all(&[Tool::Ffmpeg]) {
        return;
    }
    let _turn = TURNS.take(1);
    let folder = Folder::of("callers_without_a_stream_id");
    let relay = Relay::start(&folder, FOR_ONE_STREAM);
    let [to_publish, to_view] = [1, 2].map(|number| listener(&relay, number).0);
    let uri = format!("srt://127.0.0.1:{to_publish}?latency=500000");
    let _publisher = publish(&relay, "publisher", &uri, &folder);
    relay.wait_online("live%2Ftruck");
    // The listener at all addresses of IPv6 has those of IPv4 as well. The test ends the viewers.
    let viewers = [("ipv6", "[::1]"), ("ipv4", "127.0.0.1")].map(|(name, host)| {
        decode(name, &format!("srt://{host}:{to_view}?latency=200000"), 60, &folder)
    });
    let all = relay.wait_for("/v1/connections", |it| {
        let all = it.as_array().filter(|all| all.len() == 3);
        all.is_some_and(|all| all.iter().all(|it| it["bytes"].as_u64() > Some(500_000)))
    });
    for it in all.as_array().expect("a list") {
        let latency = it["latency"].to_string();
        let wanted = match it["role"] == "publisher" {
            true => r#"{"agreed_ms":500,"peer_ms":500,"relay_ms":120}"#,
            false => r#"{"agreed_ms":300,"peer_ms":200,"relay_ms":300}"#,
        };
        assert_eq!(latency, wanted, "{it}");
    }
    for mut viewer in viewers {
        assert!(!viewer.ended(), "{}", viewer.log());
    }
}

const FOR_ONE_STREAM: &str = r#"
[[listen]]
srt = "127.0.0.1:0"
stream = "live/truck"
mode = "publish"
[[listen]]
srt = "[::]:0"
stream = "live/truck"
latency = "300ms"
"#;

#[test]
fn a_killed_publisher_is_gone_after_the_idle_time_of_its_listener() {
    if !have_all(&[Tool::Ffmpeg]) {
        return;
    }
    let _turn = TURNS.take(1);
    let folder = Folder::of("a_killed_publisher_is_gone");
    let lines = "[[listen]]\nsrt = \"127.0.0.1:0\"\npeer-idle-timeout = \"1s\"\n";
    let relay = Relay::start(&folder, lines);
    let uri = format!("srt://127.0.0.1:{}?streamid=publish:live", listener(&relay, 1).0);
    let publisher = publish(&relay, "publisher", &uri, &folder);
    relay.wait_online("live");
    send(publisher.id(), Signal::KILL);
    let killed = Instant::now();
    relay.wait_for("/v1/streams/live", |it| it["source"].is_null());
    assert!(killed.elapsed() < Duration::from_millis(4_500), "the usual time is 5 s");
}
