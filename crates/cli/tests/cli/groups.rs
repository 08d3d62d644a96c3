//! One stream over several links.

use crate::program::{Folder, Program, free_port, rows, run};

#[test]
fn several_uris_of_a_group_are_one_stream_over_all_of_them() {
    let folder = Folder::new("group");
    let (first, second) = (free_port(), free_port());
    let (metrics, received) = (folder.file("metrics.csv"), folder.file("receive.csv"));
    let mut receiver = Program::start(&[
        "receive",
        &format!("srt://:{first}?groupconnect=1&latency=300ms"),
        &format!("srt://:{second}?latency=300ms"),
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
    let sent = folder.file("generate.csv");
    let generator = run(
        &[
            "generate",
            &format!("srt://127.0.0.1:{first}?grouptype=broadcast&weight=7&latency=300ms"),
            &format!("srt://127.0.0.1:{second}"),
            "--sendrate",
            "5Mbps",
            "--num",
            "500",
            "--enable-metrics",
            "--statsfile",
            &sent,
            "--statsfreq",
            "100ms",
        ],
        b"",
    );
    assert_eq!(generator.code, Some(0), "{}", generator.stderr);
    // The summary names each link by its address, and its state if it has one still.
    for port in [first, second] {
        let link = format!("; 127.0.0.1:{port}");
        let (_, rest) = generator.stderr.split_once(&link).expect(&generator.stderr);
        assert!(rest.starts_with(": ") || rest.starts_with(" active: "), "{}", generator.stderr);
    }
    receiver.end().text();

    let metrics = rows(&std::fs::read_to_string(metrics).unwrap());
    let last = metrics.last().unwrap();
    assert_eq!((last["pktReceived"].as_str(), last["pktLost"].as_str()), ("500", "0"));
    // A row for the group, whose ID has bit 30, and one for each link.
    let sent = rows(&std::fs::read_to_string(sent).unwrap());
    let of_group = |row: &&std::collections::BTreeMap<String, String>| {
        row["SocketID"].parse::<u32>().unwrap() >> 30 == 1
    };
    let unique: u64 =
        sent.iter().filter(of_group).map(|row| row["pktSentUnique"].parse::<u64>().unwrap()).sum();
    assert_eq!(unique, 500);
    for (weight, port) in [("7", first), ("0", second)] {
        let peer = format!("127.0.0.1:{port}");
        let is_link = |row: &std::collections::BTreeMap<String, String>| {
            !of_group(&row) && row["weight"] == weight && row["peer"] == peer
        };
        assert!(sent.iter().any(is_link), "{weight}");
    }
    let received = rows(&std::fs::read_to_string(received).unwrap());
    let unique: u64 = received
        .iter()
        .filter(of_group)
        .map(|row| row["pktRecvUnique"].parse::<u64>().unwrap())
        .sum();
    assert_eq!(unique, 500);
}

#[test]
fn a_uri_that_is_not_a_link_of_the_group_is_refused() {
    let refused = run(&["generate", "srt://h:1?grouptype=backup", "udp://h:1"], b"");
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("cannot be a link of the first"), "{}", refused.stderr);
}

#[test]
fn a_balance_is_one_stream_whose_links_share_it() {
    let folder = Folder::new("balance");
    let port = free_port();
    let metrics = folder.file("metrics.csv");
    let mut receiver = Program::start(&[
        "receive",
        &format!("srt://:{port}?groupconnect=1&latency=500ms"),
        "--enable-metrics",
        "--metricsfile",
        &metrics,
        "--metricsfreq",
        "100ms",
    ]);
    receiver.wait_for("listening");
    let sent = folder.file("generate.json");
    let link = format!("srt://127.0.0.1:{port}");
    let generator = run(
        &[
            "generate",
            &format!("{link}?grouptype=balance&latency=500ms"),
            &link,
            "--sendrate",
            "5Mbps",
            "--num",
            "1000",
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
    receiver.end().text();
    let metrics = rows(&std::fs::read_to_string(metrics).unwrap());
    let last = metrics.last().unwrap();
    assert_eq!((last["pktReceived"].as_str(), last["pktLost"].as_str()), ("1000", "0"));
    // In each row stands an object for the whole and one for each link. Both carried a part.
    let sent = std::fs::read_to_string(sent).unwrap();
    let mut carried = std::collections::BTreeMap::<u64, u64>::new();
    for line in sent.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        for link in row["LinksStats"].as_array().unwrap() {
            let count = carried.entry(link["SocketID"].as_u64().unwrap()).or_default();
            *count += link["pktSentUnique"].as_u64().unwrap();
        }
    }
    assert_eq!(carried.len(), 2, "{carried:?}");
    assert!(carried.values().all(|&count| count > 200), "{carried:?}");
}

#[test]
fn a_refused_group_is_explained_in_words() {
    let port = free_port();
    let mut listener = Program::start(&["receive", &format!("srt://:{port}")]);
    listener.wait_for("listening");
    for (kind, advice) in [("backup", "groupconnect=1"), ("balance", "must be Punctual")] {
        let link = format!("srt://127.0.0.1:{port}");
        let refused =
            run(&["generate", &format!("{link}?grouptype={kind}"), &link, "--num", "1"], b"");
        assert_eq!(refused.code, Some(3), "{}", refused.stderr);
        assert!(refused.stderr.contains(advice), "{}", refused.stderr);
    }
}
