//! SRT over QUIC, from one program to another over loopback.

use std::thread::sleep;
use std::time::Duration;

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
fn messages_without_srt_arrive_in_each_way_that_quic_can_carry_them() {
    for (carry, counted) in [("datagrams", "dgramSent"), ("streams", "msgSent"), ("stream", "")] {
        let folder = Folder::new(&format!("quic-{carry}"));
        let [sent, arrived] = ["sent.csv", "arrived.csv"].map(|name| folder.file(name));
        let port = free_port();
        let uri = format!("quic://127.0.0.1:{port}?listen=1");
        let mut receiver = Program::start(&["receive", &uri, "--quicstats", &arrived]);
        receiver.wait_for("certhash=");
        let hash = hash(receiver.heard());
        let uri = format!("quic://127.0.0.1:{port}?carry={carry}&certhash={hash}");
        let options = ["--sendrate", "5Mbps", "--num", "300", "--quicstats", &sent];
        let generator = run(&[&["generate", &uri][..], &options].concat(), b"");
        assert_eq!(generator.code, Some(0), "{}", generator.stderr);
        let said = format!("(QUIC, punctual-{carry})");
        assert!(generator.stderr.contains(&said), "{}", generator.stderr);
        let received = receiver.end();
        assert!(received.stderr.contains("received 300 messages"), "{}", received.stderr);
        for file in [sent, arrived] {
            let rows = rows(&std::fs::read_to_string(&file).unwrap());
            let last = rows.last().expect("a row at the end");
            assert_eq!(last["protocol"], format!("punctual-{carry}"));
            if file.ends_with("sent.csv") && !counted.is_empty() {
                assert_eq!(last[counted], "300", "{last:?}");
            }
        }
    }
}

#[test]
fn messages_too_long_for_quic_are_counted_and_told_with_the_remedy() {
    let port = free_port();
    let mut receiver = Program::start(&["receive", &format!("quic://127.0.0.1:{port}?listen=1")]);
    receiver.wait_for("certhash=");
    let uri = format!("quic://127.0.0.1:{port}?certhash={}", hash(receiver.heard()));
    let options = ["--sendrate", "10Mbps", "--num", "300", "--msgsize", "1456"];
    let generator = run(&[&["generate", &uri][..], &options].concat(), b"");
    let messages = generator.stderr;
    // The first, the 16th and the 256th.
    assert_eq!(messages.matches("messages so far were not sent").count(), 3, "{messages}");
    assert!(messages.contains("`carry=streams`"), "{messages}");
    assert!(messages.contains("not sent 300 messages"), "{messages}");

    let (udp, folder) = (free_port(), Folder::new("quic-long"));
    let copy = folder.file("out.ts");
    let port = free_port();
    let listener = format!("quic://127.0.0.1:{port}?listen=1");
    let mut receiver = Program::start(&["route", &listener, &copy]);
    receiver.wait_for("certhash=");
    let uri = format!("quic://127.0.0.1:{port}?certhash={}", hash(receiver.heard()));
    let mut route = Program::start(&["route", &format!("udp://127.0.0.1:{udp}"), &uri]);
    route.wait_for("connected");
    let clip = &crate::datagrams::clip()[..188 * 400];
    crate::datagrams::send_datagrams(clip, 9_000, udp);
    sleep(Duration::from_millis(500));
    route.interrupt();
    let ended = route.end();
    assert_eq!(receiver.end().code, Some(0));
    let copy = std::fs::read(copy).expect("it is there");
    assert!(copy == clip, "{} of {} bytes: {}", copy.len(), clip.len(), ended.stderr);
}

#[test]
fn a_file_on_one_quic_stream_arrives_whole_and_nobody_there_is_told() {
    let folder = Folder::new("quic-file");
    let (source, copy) = (folder.file("source.bin"), folder.file("copy.bin"));
    let bytes: Vec<u8> = (0..250_000_u64).flat_map(|n| (n * n * n).to_le_bytes()).collect();
    std::fs::write(&source, &bytes).unwrap();
    let port = free_port();
    let listener = format!("quic://127.0.0.1:{port}?listen=1&carry=stream");
    let mut receiver = Program::start(&["route", &listener, &copy]);
    receiver.wait_for("certhash=");
    let hash = hash(receiver.heard());
    let uri = format!("quic://127.0.0.1:{port}?carry=stream&certhash={hash}");
    let sent = run(&["route", &source, &uri], b"");
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    let received = receiver.end();
    assert_eq!(received.code, Some(0), "{}", received.stderr);
    assert!(std::fs::read(&copy).expect("a copy") == bytes, "{}", received.stderr);
    let nobody = run(&["generate", &uri, "--num", "1"], b"");
    assert_eq!(nobody.code, Some(4), "{}", nobody.stderr);
    assert!(nobody.stderr.contains("is somebody listening there?"), "{}", nobody.stderr);
}
