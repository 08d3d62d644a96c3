//! Several destinations of one route: each lives for itself.

use std::fs;
use std::time::Duration;

use crate::program::{Folder, Program, free_port, run};

/// A source of 1 Mb/s that never ends, a route from it to an SRT listener and a recording, and the
/// listener, if it is there at the start.
struct Bench {
    folder: Folder,
    port: u16,
    route: Program,
    listener: Option<Program>,
    _source: Program,
}

impl Bench {
    fn new(name: &str, is_there: bool, flags: &[&str]) -> Self {
        let (folder, port, input) = (Folder::new(name), free_port(), free_port());
        let listener = is_there.then(|| listen(port));
        let input = format!("udp://127.0.0.1:{input}");
        let source = Program::start(&["generate", &input, "--sendrate", "1Mbps"]);
        let call = format!("srt://127.0.0.1:{port}?peeridletimeo=1s&conntimeo=500ms&linger=1s");
        let recording = folder.file("rec.ts");
        let args = [&["route", &input, &call, &recording], flags].concat();
        let route = Program::start(&args);
        Self { folder, port, route, listener, _source: source }
    }

    fn recorded(&self) -> u64 {
        fs::metadata(self.folder.file("rec.ts")).map_or(0, |file| file.len())
    }

    /// Waits until the recording has grown.
    fn wait_for_growth(&self) {
        let before = self.recorded();
        for _ in 0..3_000 {
            if self.recorded() > before {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the recording does not grow");
    }
}

fn listen(port: u16) -> Program {
    let mut listener = Program::start(&["receive", &format!("srt://:{port}")]);
    listener.wait_for("listening");
    listener
}

#[test]
fn a_lost_destination_is_logged_at_once_and_the_others_go_on() {
    let mut bench = Bench::new("destination-lost", true, &[]);
    bench.route.wait_for("connected");
    bench.wait_for_growth();
    bench.listener.take().unwrap().kill();
    bench.route.wait_for("silent");
    bench.route.wait_for("the others go on");
    bench.wait_for_growth();
    bench.route.interrupt();
    let ended = bench.route.end();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let named = format!("127.0.0.1:{}", bench.port);
    let told = ended.stderr.lines().find(|line| line.contains("the others go on")).unwrap();
    assert!(told.contains("WARN") && told.contains(&named), "{told}");
}

#[test]
fn with_end_any_the_first_lost_destination_ends_the_route() {
    let mut bench = Bench::new("destination-any", true, &["--end", "any"]);
    bench.route.wait_for("connected");
    bench.wait_for_growth();
    bench.listener.take().unwrap().kill();
    let ended = bench.route.end();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("as --end any says"), "{}", ended.stderr);
}

#[test]
fn an_absent_destination_delays_no_other_and_is_retried() {
    let mut bench = Bench::new("destination-absent", false, &["--reconnect"]);
    bench.route.wait_for("no answer");
    bench.wait_for_growth();
    let mut listener = listen(bench.port);
    listener.wait_for("connected");
    bench.route.wait_for("connected");
    bench.wait_for_growth();
    listener.kill();
    bench.route.wait_for("waiting for it to come back");
    bench.wait_for_growth();
    listen(bench.port).wait_for("connected");
    bench.route.interrupt();
    let ended = bench.route.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn without_reconnect_an_absent_destination_is_lost_alone() {
    let mut bench = Bench::new("destination-never", false, &[]);
    bench.route.wait_for("the others go on");
    bench.wait_for_growth();
    bench.route.interrupt();
    let ended = bench.route.end();
    assert_eq!(ended.code, Some(4), "{}", ended.stderr);
}

#[test]
fn a_destination_that_takes_nothing_stalls_nobody_but_itself() {
    let folder = Folder::new("destinations-stuck");
    let [file, copy] = ["in.bin", "out.bin"].map(|name| folder.file(name));
    let contents: Vec<u8> = (0..4_000_000_u32).flat_map(u32::to_be_bytes).collect();
    fs::write(&file, &contents).unwrap();
    // It accepts the connection and never reads.
    let stuck = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let to = format!("tcp://{}?sndbuf=64KiB", stuck.local_addr().unwrap());
    let args = ["route", &file, &to, &copy, "--pace", "100Mbps"];
    let ended = run(&[&args[..], &["--sink-buffer", "4MiB", "--slow", "end"]].concat(), b"");
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("it is too slow"), "{}", ended.stderr);
    assert!(fs::read(copy).unwrap() == contents);
}
