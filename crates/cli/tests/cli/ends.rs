//! The end of the program: exit codes and messages.

use crate::program::{Folder, Program, free_port, run};
use punctual::{Config, Listener, RejectReason};

#[test]
fn a_wrong_command_line_is_explained_with_code_2() {
    for (args, expected) in [
        (&["generate", "srt://h:1?latncy=3"][..], "did you mean `latency`"),
        (&["receive", "srt://h:1?latency=120000"], "did you mean `latency=120ms`"),
        (&["receive", "srt://h:1?passphrase=hush"], "10 to 80 bytes"),
        (&["receive", "srt://h:1?passphrase=hush,hush,hush&latncy=3"], "did you mean `latency`"),
        (&["plot", "a.csv", "--hush=srt://h:1?passphrase=hush"], "unexpected argument"),
        (&["receive", "srt://:1?mode=rendezvous"], "needs the other end's"),
        (&["generate", "srt://h:1", "--sendrate", "5MBps"], "unknown unit"),
        (&["generate", "srt://h:1", "--msgsize", "1457"], "1 to 1456"),
        (&["generate", "udp://:1234"], "host to send to is missing"),
        (&["generate", "udp://127.0.0.1:9", "--enable-metrics", "--msgsize", "55"], "at least 56"),
        (&["route", "a.ts", "strt://h:1"], "did you mean `srt`"),
        (&["route", "-", "udp://h:1", "udp://h:2", "--bidir"], "exactly one destination"),
        (&["emulate", ":5000", "127.0.0.1"], "the port is missing"),
        (&["emulate", ":5000", "127.0.0.1:1", "--loss", "101%"], "at most 100%"),
        (&["emulate", ":5000", "127.0.0.1:1", "--burst-loss", "2%:0.5"], "from 1 up"),
        (&["receive", "srt://:1", "--loglevel", "a=loud"], "log level"),
        (&["recieve", "srt://:1"], "receive"),
    ] {
        let ended = run(args, b"");
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{args:?}: {}", ended.stderr);
        assert!(ended.stdout.is_empty());
        let shown = ended.stderr.contains("hush,") || ended.stderr.contains("passphrase=hush");
        assert!(!shown, "a passphrase is shown: {}", ended.stderr);
    }
}

#[test]
fn a_file_that_cannot_be_read_or_written_is_named_with_code_1() {
    for args in [
        &["route", "/nowhere/clip.ts", "udp://127.0.0.1:9"][..],
        &["generate", "udp://127.0.0.1:9", "--statsfile", "/nowhere/stats.csv"],
        &["generate", "udp://127.0.0.1:9", "--playback-csv", "/nowhere/times.csv"],
    ] {
        let ended = run(args, b"");
        assert_eq!(ended.code, Some(1), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("/nowhere/"), "{}", ended.stderr);
    }
}

#[test]
fn nobody_there_is_code_4() {
    let uri = format!("srt://127.0.0.1:{}?conntimeo=300ms", free_port());
    let ended = run(&["generate", &uri, "--num", "1"], b"");
    assert_eq!(ended.code, Some(4), "{}", ended.stderr);
    assert!(ended.stderr.contains("no answer within 300 ms"), "{}", ended.stderr);
}

#[test]
fn no_caller_within_ffmpegs_limit_is_code_4() {
    let uri = format!("srt://127.0.0.1:{}?mode=listener&listen_timeout=300000", free_port());
    let ended = run(&["receive", &uri], b"");
    assert_eq!(ended.code, Some(4), "{}", ended.stderr);
    assert!(ended.stderr.contains("nobody called within 300 ms"), "{}", ended.stderr);
}

#[test]
fn the_options_are_printed_for_people_and_for_programs() {
    let table = run(&["options", "latency"], b"").text();
    assert!(table.lines().any(|line| line.starts_with("latency ") && line.contains("120")));
    let json = run(&["options", "--json"], b"").text();
    let options: serde_json::Value = serde_json::from_str(&json).unwrap();
    let names: Vec<_> = options.as_array().unwrap().iter().map(|it| it["name"].as_str()).collect();
    assert!(names.contains(&Some("maxrexmitbw")) && names.len() > 40, "{names:?}");
    let ended = run(&["options", "nonsense"], b"");
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
}

#[tokio::test]
async fn a_rejection_is_code_3_and_tells_the_peers_code() {
    let local = "127.0.0.1:0".parse().unwrap();
    let listener = Listener::bind(local, Config::default()).await.unwrap();
    let uri = format!("srt://{}?streamid=nothing", listener.local_addr());
    tokio::spawn(async move {
        while let Ok(call) = listener.incoming().await {
            call.reject(RejectReason::NOT_FOUND);
        }
    });
    let ended = tokio::task::spawn_blocking(move || run(&["receive", &uri], b"")).await.unwrap();
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert!(ended.stderr.contains("no such stream"), "{}", ended.stderr);
    assert!(ended.stderr.contains("1404"), "{}", ended.stderr);
}

#[test]
fn a_lost_connection_is_code_1() {
    let port = free_port();
    let receiver = {
        let mut receiver = Program::start(&["receive", &format!("srt://:{port}")]);
        receiver.wait_for("listening");
        receiver
    };
    let uri = format!("srt://127.0.0.1:{port}?peeridletimeo=1s&linger=0");
    let mut generator = Program::start(&["generate", &uri, "--sendrate", "1Mbps"]);
    generator.wait_for("connected");
    // Killed, it says no goodbye.
    drop(receiver);
    let ended = generator.end();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("silent"), "{}", ended.stderr);
}

#[test]
fn a_latency_that_looks_like_microseconds_is_warned_about() {
    let uri = format!("srt://127.0.0.1:{}?latency=20000&conntimeo=50ms", free_port());
    let ended = run(&["receive", &uri], b"");
    assert!(ended.stderr.contains("WARN"), "{}", ended.stderr);
    assert!(ended.stderr.contains("write `latency=20ms`"), "{}", ended.stderr);
}

#[test]
fn every_command_has_examples_and_every_shell_its_completions() {
    for command in ["demo", "generate", "receive", "route", "emulate"] {
        let help = run(&["help", command], b"").text();
        assert!(help.contains("Examples:"), "{command}");
        assert!(help.contains(&format!("punctual {command}")), "{command}");
    }
    assert!(run(&["--help"], b"").text().contains("Exit codes:"));
    let topic = run(&["help", "uri"], b"").text();
    assert!(topic.contains("retransmitalgo"));
    assert!(run(&["uri"], b"").text().contains("retransmitalgo"));
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(run(&["completions", shell], b"").text().contains("emulate"), "{shell}");
    }
}

#[test]
fn a_playback_file_sets_the_times() {
    let folder = Folder::new("playback");
    let times = folder.file("times.csv");
    std::fs::write(&times, "0.0\n0.01\n0.05\n").unwrap();
    let uri = format!("udp://127.0.0.1:{}", free_port());
    let ended = run(&["generate", &uri, "--playback-csv", &times, "--num", "6"], b"");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("sent 6 messages"), "{}", ended.stderr);
}

#[test]
fn a_file_without_a_clock_is_sent_with_a_warning_that_asks_for_a_pace() {
    let folder = Folder::new("no-clock");
    let (file, copy) = (folder.file("in.mp4"), folder.file("copy.mp4"));
    std::fs::write(&file, vec![7; 5_000]).unwrap();
    let udp = format!("udp://127.0.0.1:{}", free_port());
    let warns = |args: &[&str]| {
        let ended = run(args, b"");
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended.stderr.contains("--pace")
    };
    assert!(warns(&["route", &file, &udp]));
    assert!(!warns(&["route", &file, &udp, "--pace", "none"]));
    assert!(!warns(&["route", &file, &udp, "--pace", "5Mbps"]));
    assert!(!warns(&["route", &file, &copy]));
}
