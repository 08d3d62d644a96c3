//! Callers at listeners that take one: a second one is refused at once, and one that was killed and
//! started again is back soon, as is one whose listener was.

use std::fs::File;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::program::{Folder, Program, free_port, run};

#[test]
fn a_second_caller_is_refused_at_once_with_a_code_and_words() {
    let folder = Folder::new("second-caller");
    let out = folder.file("out.ts");
    let commands: [&[&str]; 3] = [&["receive"], &["route"], &["route", "--reconnect"]];
    for command in commands {
        let uri = format!("srt://127.0.0.1:{}", free_port());
        let listener = format!("{uri}?mode=listener");
        let output: &[&str] = if command[0] == "route" { &[&out, "--overwrite"] } else { &[] };
        let mut taker = Program::start(&[command, &[&listener], output].concat());
        taker.wait_for("listening");
        let mut first = Program::start(&["generate", &uri, "--sendrate", "1Mbps"]);
        first.wait_for("connected");
        taker.wait_for("connected");
        let start = Instant::now();
        let second = run(&["generate", &uri, "--sendrate", "1Mbps"], b"");
        assert!(start.elapsed() < Duration::from_millis(1_500), "{:?}", start.elapsed());
        assert_eq!(second.code, Some(3), "{}", second.stderr);
        assert!(second.stderr.contains("1005"), "{}", second.stderr);
        assert!(second.stderr.contains("all the callers that it takes"), "{}", second.stderr);
        taker.wait_for("a caller was refused remote=127.0.0.1:");
        first.interrupt();
        assert_eq!(first.end().code, Some(0));
    }
}

/// Which end of a pair is killed.
#[derive(Clone, Copy, Debug)]
enum Killed {
    Caller,
    Listener,
}

/// A pair with --reconnect at both ends, perhaps over a line that loses.
struct Reconnecting {
    listener: Vec<String>,
    caller: Vec<String>,
    _line: Option<Program>,
    _folder: Folder,
}

impl Reconnecting {
    /// A live stream.
    fn live(name: &str, loss: &str) -> Self {
        Self::new(name, loss, |_, called, listener| {
            let sink = format!("udp://127.0.0.1:{}", free_port());
            let listener = format!("{listener}?mode=listener");
            let listener = ["route", &listener, &sink, "--reconnect"].map(str::to_owned).to_vec();
            let caller = ["generate", called, "--sendrate", "1Mbps", "--reconnect"];
            (listener, caller.map(str::to_owned).to_vec())
        })
    }

    /// A file that takes longer than the test.
    fn file(name: &str, loss: &str) -> Self {
        Self::new(name, loss, |folder, called, listener| {
            let (source, target) = (folder.file("large"), folder.file("in"));
            File::create(&source).and_then(|file| file.set_len(1 << 30)).expect("room");
            let listener = format!("{listener}?mode=listener");
            let called = format!("{called}?maxbw=250000");
            let receive = ["file", "receive", &listener, &target, "--reconnect"];
            let send = ["file", "send", &source, &called, "--reconnect"];
            (receive.map(str::to_owned).to_vec(), send.map(str::to_owned).to_vec())
        })
    }

    fn new(
        name: &str,
        loss: &str,
        commands: impl FnOnce(&Folder, &str, &str) -> (Vec<String>, Vec<String>),
    ) -> Self {
        let folder = Folder::new(name);
        let (port, entrance) = (free_port(), free_port());
        let address = format!("127.0.0.1:{port}");
        let entrance = format!("127.0.0.1:{entrance}");
        let line = (loss != "0%").then(|| {
            let link = ["--loss", loss, "--delay", "5ms"];
            let mut line = Program::start(&[&["emulate", &entrance, &address], &link[..]].concat());
            line.wait_for(&entrance);
            line
        });
        let called = if line.is_some() { &entrance } else { &address };
        let (called, listened) = (format!("srt://{called}"), format!("srt://{address}"));
        let (listener, caller) = commands(&folder, &called, &listened);
        Self { listener, caller, _line: line, _folder: folder }
    }

    fn start(command: &[String]) -> Program {
        Program::start(&command.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Kills an end `count` times, at moments from `seed`. Returns the time of each return to a
    /// connection, from the start of the caller or of its call.
    fn kill(&self, victim: Killed, count: usize, seed: u64) -> Vec<Duration> {
        let mut listener = Self::start(&self.listener);
        listener.wait_for("listening");
        let mut caller = Self::start(&self.caller);
        let (mut state, mut times) = (seed, Vec::new());
        for round in 1..=count {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            sleep(Duration::from_millis((state >> 33) % 3_000));
            match victim {
                Killed::Caller => {
                    caller.kill();
                    let start = Instant::now();
                    caller = Self::start(&self.caller);
                    caller.wait_for("connected");
                    times.push(start.elapsed());
                    if start.elapsed() > Duration::from_secs(2) {
                        println!("late: {}", caller.heard());
                    }
                }
                Killed::Listener => {
                    caller.wait_for_times(round, "connected");
                    listener.kill();
                    listener = Self::start(&self.listener);
                    caller.wait_for_times(round, "silent");
                    let start = Instant::now();
                    caller.wait_for_times(round + 1, "connected");
                    times.push(start.elapsed());
                }
            }
        }
        times
    }
}

/// Kills an end and says how long it took until both were together again.
fn kill_again_and_again(pair: &Reconnecting, victim: Killed, what: &str, count: usize) {
    let seed = u64::from(std::process::id());
    let mut times = pair.kill(victim, count, seed);
    times.sort_unstable();
    let [median, longest] = [times[times.len() / 2], times[times.len() - 1]];
    println!("{what}, {victim:?} killed {count} times: median {median:?}, longest {longest:?}");
    assert!(longest <= Duration::from_secs(2), "{what}, {victim:?}, seed {seed}: {times:?}");
}

#[test]
fn a_live_caller_that_was_killed_is_back_within_two_seconds() {
    let pair = Reconnecting::live("live-caller", "5%");
    kill_again_and_again(&pair, Killed::Caller, "live, 5 %", 4);
}

#[test]
fn a_sender_of_files_that_was_killed_is_back_within_two_seconds() {
    let pair = Reconnecting::file("file-caller", "0%");
    kill_again_and_again(&pair, Killed::Caller, "file, 0 %", 4);
}

#[test]
fn a_caller_is_back_soon_after_its_listener_was_killed() {
    let pair = Reconnecting::file("file-listener", "5%");
    kill_again_and_again(&pair, Killed::Listener, "file, 5 %", 1);
}

/// While the receiver still delivers the old stream, for most of a latency of 3 s, the new one is
/// taken, and follows it.
#[test]
fn a_killed_caller_with_a_long_latency_is_back_within_two_seconds() {
    std::thread::scope(|scope| {
        for is_group in [false, true] {
            scope.spawn(move || {
                let folder = Folder::new(&format!("long-latency-route-{is_group}"));
                let record = folder.file("record.bin");
                kill_with_a_long_latency(&["route", "", &record, "--reconnect"], is_group);
                let record = std::fs::read(&record).unwrap();
                let numbers: Vec<u8> = record.chunks_exact(1_316).map(|it| it[0]).collect();
                let (old, new) = numbers.split_at(numbers.len() - 100);
                assert!(old.len() > 50 && old.is_sorted() && old[0] == 0, "the old one: {old:?}");
                assert!(new.iter().copied().eq(0..100), "the new one: {new:?}");
            });
            scope.spawn(move || {
                let folder = Folder::new(&format!("long-latency-receive-{is_group}"));
                let metrics = folder.file("metrics.csv");
                let metered = ["--enable-metrics", "--metricsfile", &metrics];
                let command = [&["receive", "", "--reconnect"], &metered[..]].concat();
                kill_with_a_long_latency(&command, is_group);
                let metrics = std::fs::read_to_string(metrics).unwrap();
                let last = metrics.lines().last();
                assert!(last.is_some_and(|row| row.contains(",100,0,")), "{metrics}");
            });
        }
    });
}

/// Runs `command` with a listener as its second argument, calls it, kills the caller, and calls
/// again to send 100 messages.
fn kill_with_a_long_latency(command: &[&str], is_group: bool) {
    let uri = format!("srt://127.0.0.1:{}", free_port());
    let groups = if is_group { "&groupconnect=1" } else { "" };
    let listener = format!("{uri}?mode=listener&latency=3s{groups}");
    let called = if is_group { format!("{uri}?grouptype=broadcast") } else { uri };
    let connected = if is_group { "is established" } else { "connected" };
    let mut taker = Program::start(&[&[command[0], &listener], &command[2..]].concat());
    taker.wait_for("listening");
    let mut first = Program::start(&["generate", &called, "--sendrate", "1Mbps"]);
    first.wait_for(connected);
    sleep(Duration::from_secs(1));
    first.kill();
    let start = Instant::now();
    let again = ["generate", &called, "--sendrate", "1Mbps", "--num", "100"];
    let mut second = Program::start(&again);
    second.wait_for(connected);
    assert!(start.elapsed() < Duration::from_secs(2), "{command:?}: {:?}", start.elapsed());
    assert_eq!(second.end().code, Some(0));
    sleep(Duration::from_secs(3));
    taker.interrupt();
    taker.end();
}

/// `cargo test -p punctual-cli --test cli reconnecting_pairs -- --ignored --nocapture`
#[test]
#[ignore = "takes 20 minutes"]
fn reconnecting_pairs_connect_again_in_100_of_100_tries() {
    std::thread::scope(|scope| {
        for loss in ["0%", "5%"] {
            for victim in [Killed::Caller, Killed::Listener] {
                scope.spawn(move || {
                    let name = format!("live-{loss}-{victim:?}");
                    let pair = Reconnecting::live(&name, loss);
                    kill_again_and_again(&pair, victim, &format!("live, {loss}"), 100);
                });
                scope.spawn(move || {
                    let name = format!("file-{loss}-{victim:?}");
                    let pair = Reconnecting::file(&name, loss);
                    kill_again_and_again(&pair, victim, &format!("file, {loss}"), 100);
                });
            }
        }
    });
}
