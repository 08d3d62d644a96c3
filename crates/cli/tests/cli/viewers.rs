//! One listener and many viewers, and which callers a listener takes.

use std::fs;

use crate::program::{Folder, Program, free_port, run};

/// A stream of `rate` and a route that gives it to viewers at `port`.
struct Bench {
    port: u16,
    route: Program,
    source: Program,
}

impl Bench {
    fn new(rate: &str, flags: &[&str]) -> Self {
        let (port, input) = (free_port(), format!("udp://127.0.0.1:{}", free_port()));
        let listener = format!("srt://:{port}");
        let mut route = Program::start(&[&["route", &input, &listener], flags].concat());
        route.wait_for("listening");
        let source = Program::start(&["generate", &input, "--sendrate", rate]);
        Self { port, route, source }
    }

    fn view(&self, options: &str) -> Program {
        self.start_viewer(options, &[])
    }

    fn start_viewer(&self, options: &str, flags: &[&str]) -> Program {
        let uri = format!("srt://127.0.0.1:{}?{options}", self.port);
        let mut viewer = Program::start(&[&["receive", &uri], flags].concat());
        viewer.wait_for("connected");
        viewer
    }

    /// A call that is refused; what it says.
    fn refused(&self, options: &str) -> String {
        let uri = format!("srt://127.0.0.1:{}?{options}", self.port);
        let ended = run(&["receive", &uri], b"");
        assert_eq!(ended.code, Some(3), "{}", ended.stderr);
        ended.stderr
    }

    /// Ends the stream; all of it arrives.
    fn end(self) -> String {
        self.source.interrupt();
        self.source.end();
        self.route.interrupt();
        let ended = self.route.end();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended.stderr
    }
}

/// Messages that a viewer received, as it says at its end.
fn messages(viewer: Program) -> u64 {
    let said = viewer.end().stderr;
    let (_, received) = said.split_once("received ").unwrap_or_else(|| panic!("{said}"));
    received.split(' ').next().and_then(|count| count.parse().ok()).expect("a number follows")
}

#[test]
fn each_viewer_gets_the_stream_and_one_too_many_is_refused() {
    let mut bench = Bench::new("1Mbps", &["--viewers", "2"]);
    let first = bench.view("");
    let second = bench.view("");
    let refused = bench.refused("");
    assert!(refused.contains("overload"), "{refused}");
    bench.route.wait_for("was refused");
    second.kill();
    bench.route.wait_for("viewer 127.0.0.1");
    // The place of the viewer that left is for the next one.
    let mut third = bench.start_viewer("", &["--printmsg"]);
    let printed = third.read_lines(10);
    assert!(printed.starts_with("RECEIVED MESSAGE"), "{printed}");
    let (from_start, joined_late) = std::thread::scope(|scope| {
        let viewers = [first, third].map(|viewer| scope.spawn(move || messages(viewer)));
        let said = bench.end();
        assert!(!said.contains("too slow"), "{said}");
        let [from_start, joined_late] = viewers.map(|viewer| viewer.join().unwrap());
        (from_start, joined_late)
    });
    assert!(joined_late > 0 && from_start > joined_late, "{from_start} and {joined_late}");
}

#[test]
fn a_viewer_that_stops_reading_is_dropped_and_delays_no_other() {
    let mut bench = Bench::new("8Mbps", &["--viewers", "2"]);
    let good = bench.view("");
    // Nobody reads what it prints: when the pipe is full, it takes no more.
    let uri = format!("srt://127.0.0.1:{}?fc=64&rcvbuf=96000", bench.port);
    let mut stuck = Program::start(&["route", &uri, "-"]);
    stuck.wait_for("connected");
    bench.route.wait_for("takes the stream too slowly");
    let good = std::thread::spawn(move || good.end());
    let said = bench.end();
    let summaries: Vec<_> = said.lines().filter(|line| line.contains("unrecovered")).collect();
    assert_eq!(summaries.len(), 2, "{said}");
    assert!(summaries[1].ends_with("unrecovered 0"), "{said}");
    let good = good.join().unwrap();
    assert_eq!(good.code, Some(0), "{}", good.stderr);
    assert!(good.stderr.contains("unrecovered 0"), "{}", good.stderr);
}

#[test]
#[cfg(unix)]
fn only_listed_stream_ids_may_call_and_sighup_reads_the_list_again() {
    let folder = Folder::new("stream-ids");
    let list = folder.file("allowed.txt");
    fs::write(&list, "# viewers\nlive/*\n").unwrap();
    let mut bench = Bench::new("1Mbps", &["--viewers", "9", "--allow-streamids", &list]);
    drop(bench.view("streamid=live/one"));
    drop(bench.view("streamid=#!::r=live/two,m=request"));
    assert!(bench.refused("streamid=sports").contains("forbidden"));
    assert!(bench.refused("").contains("forbidden"));

    fs::write(&list, "sports\n").unwrap();
    interop::send(bench.route.id(), interop::Signal::HUP);
    bench.route.wait_for("was read again");
    drop(bench.view("streamid=sports"));
    assert!(bench.refused("streamid=live/one").contains("forbidden"));
}

#[test]
fn a_list_without_a_listener_and_viewers_without_one_are_refused() {
    for flags in [&["--viewers", "5"][..], &["--allow-streamids", "/dev/null"]] {
        let ended =
            run(&[&["route", "udp://127.0.0.1:9", "srt://127.0.0.1:9"], flags].concat(), b"");
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(ended.stderr.contains("listens"), "{}", ended.stderr);
    }
}
