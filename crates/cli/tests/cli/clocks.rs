//! The system's clock is set an hour ahead or back while the program runs: streams, files, probes
//! and emulated links do not notice.

use std::process::Command;
use std::thread;
use std::time::UNIX_EPOCH;

use crate::files::contents;
use crate::program::{Ended, Folder, Program, free_port, rows};

const JUMPS: [i32; 2] = [3_600, -3_600];

/// Starts programs whose clock of the day jumps by this number of seconds, a second after they have
/// read it first.
#[derive(Clone, Debug)]
struct Jumping {
    library: String,
    seconds: i32,
}

impl Jumping {
    fn new(folder: &Folder, seconds: i32) -> Self {
        let library = folder.file("jumping_clock.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/jumping_clock.c");
        let mut compiler = Command::new("cc");
        let compiled = compiler.args(["-shared", "-fPIC", "-o", &library, source]).status();
        assert!(compiled.expect("there is a C compiler").success());
        Self { library, seconds }
    }

    fn start(&self, args: &[&str]) -> Program {
        let Self { library, seconds } = self;
        Program::start_after(
            &format!("export LD_PRELOAD='{library}' CLOCK_JUMPS_BY={seconds}"),
            args,
        )
    }

    /// Runs a program to its end.
    fn run(&self, args: &[&str]) -> Ended {
        self.start(args).end()
    }
}

/// The hour of the day in a row.
fn hour(row: &std::collections::BTreeMap<String, String>) -> i32 {
    let timepoint = &row["Timepoint"];
    timepoint[11..13].parse().unwrap_or_else(|_| panic!("no hour in {timepoint}"))
}

#[test]
fn a_stream_over_an_emulated_link_passes_a_jump_of_the_clock() {
    for seconds in JUMPS {
        let folder = Folder::new(&format!("clock-stream{seconds}"));
        let (jumping, stats) = (Jumping::new(&folder, seconds), folder.file("stats.csv"));
        let (port, relayed) = (free_port(), free_port());
        let mut receiver = jumping.start(&[
            "receive",
            &format!("srt://:{port}?latency=300ms"),
            "--enable-metrics",
            "--statsfile",
            &stats,
            "--statsfreq",
            "500ms",
        ]);
        receiver.wait_for("listening");
        let (listen, target) = (format!("127.0.0.1:{relayed}"), format!("127.0.0.1:{port}"));
        let mut link = jumping.start(&["emulate", &listen, &target, "--rtt", "20ms"]);
        link.wait_for("relaying");
        let uri = format!("srt://{listen}?latency=300ms");
        let sender = jumping.run(&["generate", &uri, "--sendrate", "2Mbps", "--num", "800"]);
        assert_eq!(sender.code, Some(0), "{}", sender.stderr);
        let received = receiver.end();
        assert_eq!(received.code, Some(0), "{}", received.stderr);
        assert!(received.stderr.contains("unrecovered 0"), "{}", received.stderr);
        let metrics = rows(&received.text());
        let last = metrics.last().expect("there are metrics");
        assert_eq!((last["pktReceived"].as_str(), last["pktLost"].as_str()), ("800", "0"));
        // The clock did jump, and the rows show it: the file has the time of the true one.
        let rows = rows(&std::fs::read_to_string(&stats).expect("statistics"));
        let written = std::fs::metadata(&stats).and_then(|found| found.modified());
        let since = written.expect("a time").duration_since(UNIX_EPOCH).expect("after 1970");
        let shown = hour(rows.last().expect("some rows"));
        let jumped = i64::from(shown) - (since.as_secs() / 3_600 % 24).cast_signed();
        let expected = i64::from(seconds / 3_600).rem_euclid(24);
        // The row may be older than the end of an hour.
        assert!((expected - jumped.rem_euclid(24)).rem_euclid(24) <= 1, "{jumped} hours");
        for row in &rows[1..] {
            let rtt: f64 = row["msRTT"].parse().expect("a number");
            assert!((15.0..150.0).contains(&rtt), "{rtt} ms");
        }
    }
}

#[test]
fn a_file_and_a_probe_pass_a_jump_of_the_clock() {
    for seconds in JUMPS {
        let folder = Folder::new(&format!("clock-file{seconds}"));
        let jumping = Jumping::new(&folder, seconds);
        let probe = thread::spawn({
            let jumping = jumping.clone();
            move || probe(&jumping)
        });
        let (source, target) = (folder.file("source"), folder.file("target"));
        let sent = contents(3_000_000, 1);
        std::fs::write(&source, &sent).expect("a file");
        let port = free_port();
        let listen = format!("srt://:{port}");
        let mut receiver = jumping.start(&["file", "receive", &listen, &target]);
        receiver.wait_for("listening");
        // Three seconds of the file.
        let uri = format!("srt://127.0.0.1:{port}?maxbw=1000000");
        let ended = jumping.run(&["file", "send", &source, &uri]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let ended = receiver.end();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let received = std::fs::read(format!("{target}/source")).expect("it arrived");
        assert!(received == sent, "the files differ");
        probe.join().expect("the probe passes");
    }
}

/// Two steps of a second and a soak of two.
fn probe(jumping: &Jumping) {
    let listen = format!("127.0.0.1:{}", free_port());
    let mut listener = jumping.start(&["probe", "--listen", &listen, "--once"]);
    listener.wait_for("listening");
    let uri = format!("srt://{listen}");
    let steps = ["--start", "1Mbps", "--step", "1Mbps", "--max-rate", "2Mbps"];
    let times = ["--step-time", "1s", "--soak", "2s", "--json"];
    let ended = jumping.run(&[&["probe", &uri][..], &steps, &times].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let report: serde_json::Value = serde_json::from_slice(&ended.stdout).expect("it is JSON");
    let rtt = report["rtt_ms"]["median"].as_f64().expect("a number");
    assert!((0.0..100.0).contains(&rtt), "{rtt} ms");
    assert_eq!(listener.end().code, Some(0));
}
