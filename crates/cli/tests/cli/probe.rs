//! `punctual probe`, from end to end.

use interop::retry_if_stalled;

use crate::program::{Program, free_port, run};

/// A quick probe: two steps of a second and no more.
pub(crate) const QUICK: &[&str] =
    &["--start", "2Mbps", "--step", "2Mbps", "--max-rate", "4Mbps", "--step-time", "1s"];

#[test]
fn a_link_is_measured_from_both_ends_and_a_setup_recommended() {
    let (port, relayed) = (free_port(), free_port());
    let listen = format!("127.0.0.1:{port}");
    let mut listener = Program::start(&["probe", "--listen", &listen, "--once"]);
    listener.wait_for("listening");
    let relay = format!("127.0.0.1:{relayed}");
    let link = ["emulate", &relay, &listen, "--rtt", "40ms", "--loss", "3%", "--seed", "5"];
    let mut link = Program::start(&link);
    link.wait_for("relaying");

    let uri = format!("srt://{relay}?streamid=probe");
    let mut args = vec!["probe", &uri, "--soak", "2s", "--json"];
    args.extend(QUICK);
    let probe = run(&args, b"");
    assert_eq!(probe.code, Some(0), "{}", probe.stderr);
    let report: serde_json::Value = serde_json::from_slice(&probe.stdout).expect("it is JSON");
    assert_eq!(report["schema"], "punctual-probe/1");
    assert_eq!(report["peer"], "punctual");
    let number = |value: &serde_json::Value| value.as_f64().expect("a number");
    let rtt = number(&report["rtt_ms"]["median"]);
    assert!((39.0..60.0).contains(&rtt), "{rtt} ms");
    let lost = number(&report["loss"]["share"]);
    assert!((0.01..0.06).contains(&lost), "{lost}");
    assert_eq!(report["largest_payload_bytes"], 1_456);
    let advice = &report["recommendation"];
    assert!(number(&advice["latency_ms"]) >= 3.0 * rtt, "{advice}");
    let ffmpeg = advice["uris"]["ffmpeg"].as_str().expect("a text");
    assert!(ffmpeg.contains("streamid=probe") && ffmpeg.contains("0000&"), "{ffmpeg}");
    assert!(!ffmpeg.contains("deadline"), "{ffmpeg}");
    // How much is gained depends on what the machine does meanwhile; that it is told does not.
    let punctual = advice["uris"]["punctual"].as_str().expect("a text");
    let both_ends = &advice["both_ends"];
    if both_ends.is_null() {
        assert_eq!(advice["uris"]["punctual"], advice["uris"]["srt_live_transmit"]);
    } else {
        let latency = number(&both_ends["latency_ms"]);
        assert!(latency <= number(&advice["latency_ms"]), "{advice}");
        assert!(
            punctual.contains(&format!("latency={latency}&retransmitalgo=deadline")),
            "{advice}"
        );
    }
    assert!(listener.end().text().is_empty());
}

#[test]
fn a_listener_of_another_kind_is_measured_from_this_end() {
    retry_if_stalled(|| {
        let port = free_port();
        let mut receiver = Program::start(&["receive", &format!("srt://:{port}")]);
        receiver.wait_for("listening");
        let uri = format!("srt://127.0.0.1:{port}");
        let mut args = vec!["probe", &uri, "--soak", "0"];
        args.extend(QUICK);
        let probe = run(&args, b"");
        let text = String::from_utf8(probe.stdout).expect("text");
        assert_eq!(probe.code, Some(0), "{}", probe.stderr);
        assert!(text.contains("seen from this end only"), "{text}");
        assert!(text.contains("not measured"), "{text}");
        assert!(text.contains("Recommended for"), "{text}");
        assert!(probe.stderr.contains("measuring by this end alone"), "{}", probe.stderr);
    });
}

#[test]
fn a_probe_meets_its_other_end_in_a_rendezvous() {
    let (here, there) = (free_port(), free_port());
    let meet = |own, other| {
        format!(
            "srt://127.0.0.1:{other}?mode=rendezvous&adapter=127.0.0.1&port={own}\
             &passphrase=correct-horse"
        )
    };
    let other = meet(there, here);
    let mut other = Program::start(&["probe", "--listen", &other]);
    other.wait_for("rendezvous with");
    let uri = meet(here, there);
    let mut args = vec!["probe", &uri, "--soak", "0"];
    args.extend(QUICK);
    let probe = run(&args, b"");
    assert_eq!(probe.code, Some(0), "{}", probe.stderr);
    assert!(probe.stderr.contains("the other end is Punctual"), "{}", probe.stderr);
    let text = String::from_utf8(probe.stdout).expect("text");
    let other_end = format!("srt://HERE:{here}?latency=");
    assert!(text.contains(&other_end) && text.contains(&format!("port={there}")), "{text}");
    assert!(text.contains(&format!("&mode=rendezvous&adapter=127.0.0.1&port={here}")), "{text}");
    assert!(!text.contains("correct-horse"), "{text}");
    assert!(other.end().text().is_empty(), "it is over with the probe");
}

#[test]
fn errors_in_options_come_before_the_call() {
    for (args, said) in [
        (["probe", "udp://127.0.0.1:9"].as_slice(), "no SRT peer"),
        (&["probe", "srt://:4200"], "no host to call"),
        (&["probe", "srt://127.0.0.1:9", "--max-rate", "1Mbps"], "the highest rate is 1 Mb/s"),
        (&["probe"], "URI"),
    ] {
        let ended = run(args, b"");
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(said), "{args:?}: {}", ended.stderr);
    }
}
