//! SRT over QUIC, from one program to another over loopback.

use crate::program::{Folder, Program, free_port, rows, run};

/// The hash in the messages of a listener.
fn hash(messages: &str) -> String {
    let (_, hash) = messages.split_once("certhash=").expect("there is a hash");
    hash.chars().take_while(char::is_ascii_hexdigit).collect()
}

#[test]
fn a_caller_pins_the_logged_hash_and_both_ends_write_quics_statistics() {
    let folder = Folder::new("quic");
    let port = free_port();
    let (quic, json) = (folder.file("quic.csv"), folder.file("stats.json"));
    let uri = format!("srt+quic://127.0.0.1:{port}?mode=listener");
    let mut receiver = Program::start(&["receive", &uri, "--quicstats", &quic]);
    receiver.wait_for("certhash=");
    let uri = format!("srt+quic://127.0.0.1:{port}?certhash={}", hash(receiver.heard()));
    let generator = run(
        &["generate", &uri, "--sendrate", "5Mbps", "--num", "300"]
            .into_iter()
            .chain(["--statsfile", &json, "--statsformat", "json"])
            .collect::<Vec<_>>(),
        b"",
    );
    assert_eq!(generator.code, Some(0), "{}", generator.stderr);
    assert!(generator.stderr.contains("over QUIC"), "{}", generator.stderr);
    let received = receiver.end();
    assert!(received.stderr.contains("received 300 messages"), "{}", received.stderr);

    let rows = rows(&std::fs::read_to_string(quic).unwrap());
    let last = rows.last().unwrap();
    assert_eq!((last["protocol"].as_str(), last["mtuFalls"].as_str()), ("punctual-srt", "0"));
    assert!(last["byteMaxDatagram"].parse::<u32>().unwrap() >= 1_332, "{last:?}");
    let json = std::fs::read_to_string(json).unwrap();
    let last: serde_json::Value = serde_json::from_str(json.lines().last().unwrap()).unwrap();
    assert!(last["quic"]["dgramSent"].as_u64().unwrap() >= 300, "{last}");
    assert_eq!(last["quic"]["dgramSndDrop"], 0, "{last}");
}

#[test]
fn a_caller_refuses_an_unknown_certificate_and_names_the_remedy() {
    let port = free_port();
    let uri = format!("srt+quic://127.0.0.1:{port}?mode=listener");
    let mut receiver = Program::start(&["receive", &uri]);
    receiver.wait_for("certhash=");
    let pinned = format!("srt+quic://127.0.0.1:{port}?certhash={}", "0".repeat(64));
    let refused = run(&["generate", &pinned, "--num", "1"], b"");
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("is not the pinned one"), "{}", refused.stderr);
    let insecure = format!("srt+quic://127.0.0.1:{port}?insecure=1");
    let taken = run(&["generate", &insecure, "--num", "1"], b"");
    assert_eq!(taken.code, Some(0), "{}", taken.stderr);
    assert!(taken.stderr.contains("the listener's certificate is not verified"));
}

#[test]
fn nobody_there_is_told() {
    let uri = format!("srt+quic://127.0.0.1:{}?insecure=1&conntimeo=500ms", free_port());
    let nobody = run(&["generate", &uri, "--num", "1"], b"");
    assert_eq!(nobody.code, Some(4), "{}", nobody.stderr);
    assert!(nobody.stderr.contains("no answer"), "{}", nobody.stderr);
}
