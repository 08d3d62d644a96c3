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
    for weight in ["7", "0"] {
        assert!(sent.iter().any(|row| !of_group(&row) && row["weight"] == weight), "{weight}");
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
fn what_is_no_link_of_the_group_is_refused() {
    let refused = run(&["generate", "srt://h:1?grouptype=backup", "udp://h:1"], b"");
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("no link of the group"), "{}", refused.stderr);
}
