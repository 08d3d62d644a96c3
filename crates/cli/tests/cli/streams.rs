//! Streams from one program to another over loopback.

use crate::program::{Folder, Program, free_port, rows, run};

const CLIP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/clip.ts");

fn sum(rows: &[std::collections::BTreeMap<String, String>], column: &str) -> u64 {
    rows.iter().map(|row| row[column].parse::<u64>().expect(column)).sum()
}

#[test]
fn a_generated_stream_is_measured_and_counted() {
    let folder = Folder::new("generate");
    let port = free_port();
    let (metrics, received) = (folder.file("metrics.csv"), folder.file("receive.csv"));
    let mut receiver = Program::start(&[
        "receive",
        &format!("srt://:{port}?latency=200ms"),
        "--enable-metrics",
        "--metricsfile",
        &metrics,
        "--metricsfreq",
        "100ms",
        "--statsfile",
        &received,
        "--statsfreq",
        "100ms",
    ]);
    receiver.wait_for("listening");
    let uri = format!("srt://127.0.0.1:{port}?streamid=live/one");
    let sent = folder.file("generate.json");
    let generator = run(
        &[
            "generate",
            &uri,
            "--sendrate",
            "5Mbps",
            "--num",
            "300",
            "--enable-metrics",
            "--statsfile",
            &sent,
            "--statsformat",
            "json",
            "--statsfreq",
            "200ms",
        ],
        b"",
    );
    assert_eq!(generator.code, Some(0), "{}", generator.stderr);
    receiver.wait_for("stream ID `live/one`");
    receiver.end().text();

    let metrics = rows(&std::fs::read_to_string(metrics).unwrap());
    let last = metrics.last().unwrap();
    assert_eq!(last["pktReceived"], "300");
    for column in ["pktLost", "pktReordered", "pktChecksumError", "pktLengthError"] {
        assert_eq!(last[column], "0", "{column}");
    }
    // Delivered at its time, which is never earlier than the latency.
    assert!(last["usLatencyAvg"].parse::<u64>().unwrap() >= 200_000, "{last:?}");

    let received = rows(&std::fs::read_to_string(received).unwrap());
    assert_eq!(sum(&received, "pktRecvUnique"), 300);
    assert_eq!(received[0]["msRcvTsbPdDelay"], "200");
    assert_eq!(last["iConn"], received[0]["SocketID"]);
    let sent: u64 = std::fs::read_to_string(sent)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|row| row["send"]["packetsUnique"].as_u64().unwrap())
        .sum();
    assert_eq!(sent, 300);
}

#[test]
fn several_callers_are_received_at_once_and_told_apart() {
    let port = free_port();
    let uri = format!("srt://127.0.0.1:{port}");
    let mut receiver = Program::start(&[
        "receive",
        &format!("srt://:{port}"),
        "--concurrent-streams",
        "3",
        "--enable-metrics",
    ]);
    receiver.wait_for("listening");
    let generator = run(
        &[
            "generate",
            &uri,
            "--concurrent-streams",
            "3",
            "--num",
            "50",
            "--sendrate",
            "1Mbps",
            "--enable-metrics",
        ],
        b"",
    );
    assert_eq!(generator.code, Some(0), "{}", generator.stderr);
    let mut received = std::collections::BTreeMap::new();
    for row in rows(&receiver.end().text()) {
        received.insert(row["iConn"].clone(), row["pktReceived"].clone());
    }
    assert_eq!(received.into_values().collect::<Vec<_>>(), ["50", "50", "50"]);
}

#[test]
fn a_file_arrives_as_it_was_sent() {
    let folder = Folder::new("file");
    let (port, out) = (free_port(), folder.file("out.ts"));
    let mut receiver = Program::start(&["route", &format!("srt://:{port}"), &out]);
    receiver.wait_for("listening");
    let uri = format!("srt://127.0.0.1:{port}?latency=500ms");
    let sender = run(&["route", CLIP, &uri, "--pace", "12Mbps"], b"");
    assert_eq!(sender.code, Some(0), "{}", sender.stderr);
    receiver.end().text();
    assert!(std::fs::read(out).unwrap() == std::fs::read(CLIP).unwrap(), "the files differ");
}

#[test]
fn a_pipe_goes_in_at_one_end_and_comes_out_at_the_other() {
    let port = free_port();
    let mut receiver = Program::start(&["route", &format!("srt://:{port}?latency=500ms"), "-"]);
    receiver.wait_for("listening");
    // Half a message more than some messages, and no transport stream.
    let input: Vec<u8> = (0..=255).cycle().take(20 * 1_316 + 700).collect();
    let sender = run(&["route", "-", &format!("srt://127.0.0.1:{port}")], &input);
    assert_eq!(sender.code, Some(0), "{}", sender.stderr);
    let received = receiver.end();
    assert_eq!(received.code, Some(0), "{}", received.stderr);
    assert!(received.stdout == input, "the bytes differ");
}

#[test]
fn a_stream_goes_over_tcp_to_several_destinations() {
    let folder = Folder::new("tcp");
    let (port, one, two) = (free_port(), folder.file("one"), folder.file("two"));
    let mut receiver =
        Program::start(&["route", &format!("tcp://127.0.0.1:{port}?listen"), &one, &two]);
    receiver.wait_for("listening");
    let input = vec![7; 100_000];
    let sender = run(&["route", "-", &format!("tcp://127.0.0.1:{port}")], &input);
    assert_eq!(sender.code, Some(0), "{}", sender.stderr);
    receiver.end().text();
    assert_eq!(std::fs::read(one).unwrap(), input);
    assert_eq!(std::fs::read(two).unwrap(), input);
}

#[test]
fn each_message_is_answered_on_request() {
    let port = free_port();
    let mut receiver =
        Program::start(&["receive", &format!("srt://:{port}"), "--twoway", "--printmsg"]);
    receiver.wait_for("listening");
    let uri = format!("srt://127.0.0.1:{port}?latency=20ms");
    let mut generator = Program::start(&[
        "generate",
        &uri,
        "--twoway",
        "--sendrate",
        "100kbps",
        "--msgsize",
        "100",
    ]);
    generator.wait_for("connected");
    receiver.wait_for("connected");
    // The answers to the first ones have come by then: there is a message each 8 ms.
    let printed = receiver.read_lines(100);
    generator.interrupt();
    let ended = generator.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let answers = ended.stderr.lines().find(|line| line.contains("messages came back"));
    let answers = answers.unwrap_or_else(|| panic!("{}", ended.stderr));
    assert!(!answers.contains(" 0 messages"), "{answers}");
    assert!(printed.starts_with("RECEIVED MESSAGE length 100 on conn ID "), "{printed}");
    receiver.end().text();
}

#[test]
fn ctrl_c_ends_both_ends_in_good_order() {
    let port = free_port();
    let mut receiver = Program::start(&["receive", &format!("srt://:{port}")]);
    receiver.wait_for("listening");
    let uri = format!("srt://127.0.0.1:{port}");
    let mut generator = Program::start(&["generate", &uri, "--sendrate", "1Mbps"]);
    generator.wait_for("connected");
    receiver.wait_for("connected");
    generator.interrupt();
    assert_eq!(generator.end().code, Some(0));
    assert_eq!(receiver.end().code, Some(0));
}

#[test]
fn repetitions_of_a_file_are_complete_at_any_pace() {
    let folder = Folder::new("copies");
    let (source, one, two) = (folder.file("source"), folder.file("one"), folder.file("two"));
    let bytes: Vec<u8> = (0..12_000_000_u32).map(|i| i.to_le_bytes()[1]).collect();
    std::fs::write(&source, &bytes).unwrap();
    let copy = run(&["route", &source, &one, &two], b"");
    assert_eq!(copy.code, Some(0), "{}", copy.stderr);
    assert!(std::fs::read(one).unwrap() == bytes, "the first copy differs");
    assert!(std::fs::read(two).unwrap() == bytes, "the second copy differs");
}

#[test]
fn a_route_ends_with_its_destination_although_nothing_is_sent() {
    let port = free_port();
    let mut receiver = Program::start(&["receive", &format!("srt://:{port}")]);
    receiver.wait_for("listening");
    let source = format!("udp://127.0.0.1:{}", free_port());
    let uri = format!("srt://127.0.0.1:{port}");
    let mut route = Program::start(&["route", &source, &uri]);
    route.wait_for("connected");
    receiver.interrupt();
    let ended = route.end();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("the peer ended the connection"), "{}", ended.stderr);
}

#[test]
fn with_reconnect_a_route_outlives_its_destination() {
    let port = free_port();
    let listen = format!("srt://:{port}");
    let source = format!("udp://127.0.0.1:{}", free_port());
    let mut route = Program::start(&[
        "route",
        &source,
        &format!("srt://127.0.0.1:{port}?conntimeo=2s"),
        "--reconnect",
    ]);
    route.wait_for("trying again");
    let mut receiver = Program::start(&["receive", &listen]);
    receiver.wait_for("connected");
    // The listener knows it first: an end that goes now would only end a call.
    route.wait_for("connected with");
    receiver.interrupt();
    assert_eq!(receiver.end().code, Some(0));
    route.wait_for("waiting for it to come back");
    let mut receiver = Program::start(&["receive", &listen]);
    receiver.wait_for("connected");
    route.wait_for_times(2, "connected with");
    route.interrupt();
    assert_eq!(route.end().code, Some(0));
    assert_eq!(receiver.end().code, Some(0));
}

#[test]
fn two_programs_meet_in_a_rendezvous_in_the_clear_and_encrypted() {
    for (name, secrets) in [
        ("rendezvous", ["", ""]),
        ("rendezvous-encrypted", ["&passphrase=correct-horse&pbkeylen=32"; 2]),
    ] {
        let folder = Folder::new(name);
        let (here, there) = (free_port(), free_port());
        let meet = |own, other, secret| {
            format!(
                "srt://127.0.0.1:{other}?mode=rendezvous&adapter=127.0.0.1&port={own}\
                 &latency=200ms{secret}"
            )
        };
        let received = folder.file("received.ts");
        let mut receiver = Program::start(&["route", &meet(here, there, secrets[0]), &received]);
        receiver.wait_for("rendezvous with");
        let sender = run(&["route", CLIP, &meet(there, here, secrets[1])], b"");
        assert_eq!(sender.code, Some(0), "{}", sender.stderr);
        let receiver = receiver.end();
        assert_eq!(receiver.code, Some(0), "{}", receiver.stderr);
        assert!(std::fs::read(&received).unwrap() == std::fs::read(CLIP).unwrap());
        assert!(sender.stderr.contains("connected with"), "{}", sender.stderr);
        for said in [sender.stderr, receiver.stderr] {
            assert!(!said.contains("correct-horse"), "{said}");
        }
    }
}

#[test]
fn two_programs_with_different_passphrases_do_not_connect() {
    let (here, there) = (free_port(), free_port());
    let meet = |own, other, secret| {
        format!(
            "srt://127.0.0.1:{other}?mode=rendezvous&adapter=127.0.0.1&port={own}\
             &passphrase={secret}&conntimeo=500"
        )
    };
    let mut one = Program::start(&["-v", "receive", &meet(here, there, "correct-horse")]);
    one.wait_for("rendezvous with");
    let other = run(&["-v", "receive", &meet(there, here, "battery-staple")], b"");
    let one = one.end();
    let said = [one.stderr, other.stderr];
    assert!(one.code != Some(0) && other.code != Some(0), "{said:?}");
    assert!(
        said.iter().any(|said| said.contains("passphrase") && said.contains("1010")),
        "{said:?}"
    );
    assert!(said.iter().all(|said| !said.contains("horse") && !said.contains("staple")));
}

#[test]
fn a_listener_warns_of_a_caller_that_asks_for_no_latency() {
    let port = free_port();
    for (latency, warns) in [("0", true), ("120", false)] {
        let mut receiver = Program::start(&["route", &format!("srt://:{port}"), "-"]);
        receiver.wait_for("listening");
        let uri = format!("srt://127.0.0.1:{port}?latency={latency}");
        let sent = run(&["generate", &uri, "--num", "1"], b"");
        assert_eq!(sent.code, Some(0), "{}", sent.stderr);
        let told = receiver.end().stderr;
        assert!(told.contains("connected with"), "{told}");
        assert_eq!(told.contains("`latency=200` is 0.2 ms"), warns, "{told}");
    }
}
