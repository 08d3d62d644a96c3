//! Signals: one ends a command in good order, a further one says goodbye to the peers, and SIGHUP
//! has its meanings.

use std::thread::sleep;
use std::time::{Duration, Instant};

use interop::Signal;

use crate::program::{Ended, Folder, Program, free_port};

/// A sender, started by `start` with its arguments, and its receiver.
fn pair(start: impl FnOnce(&[&str]) -> Program, options: &[&str]) -> (Program, Program) {
    let uri = format!("srt://127.0.0.1:{}", free_port());
    let mut receiver = Program::start(&["receive", &format!("{uri}?mode=listener")]);
    receiver.wait_for("listening");
    let mut sender = start(&[&["generate", &uri, "--sendrate", "1Mbps"], options].concat());
    sender.wait_for("connected");
    receiver.wait_for("connected");
    (sender, receiver)
}

/// The end of a receiver whose sender has said goodbye: it does not wait until the sender is silent
/// for five seconds.
fn ends_at_once(receiver: Program) -> Ended {
    let start = Instant::now();
    let ended = receiver.end();
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}: {}", start.elapsed(), ended.stderr);
    assert!(!ended.stderr.contains("silent"), "{}", ended.stderr);
    ended
}

/// A command at its work, and the programs at its other ends.
struct Command {
    name: &'static str,
    program: Program,
    others: Vec<Program>,
    /// Its exit code after a signal: 1 if its work is not done then.
    code: i32,
}

/// Every command that works until a signal comes.
fn commands(folder: &Folder) -> Vec<Command> {
    let uris = || {
        let uri = format!("srt://127.0.0.1:{}", free_port());
        (format!("{uri}?mode=listener"), uri)
    };
    let start = |args: &[&str], text: &str| {
        let mut program = Program::start(args);
        program.wait_for(text);
        program
    };
    let command = |name, program, others, code| Command { name, program, others, code };
    let rate = ["--sendrate", "1Mbps"];
    let mut all = Vec::new();

    let (sender, receiver) = pair(Program::start, &[]);
    all.push(command("generate", sender, vec![receiver], 0));
    let (sender, receiver) = pair(Program::start, &[]);
    all.push(command("receive", receiver, vec![sender], 0));

    let ((from, called), (to, uri)) = (uris(), uris());
    let receiver = start(&["receive", &to], "listening");
    let route = start(&["route", &from, &uri], "listening");
    let sender = start(&[&["generate", &called], &rate[..]].concat(), "connected");
    all.push(command("route", route, vec![sender, receiver], 0));

    let [from, to] = [free_port(), free_port()].map(|port| format!("127.0.0.1:{port}"));
    all.push(command("emulate", start(&["emulate", &from, &to], "relaying"), Vec::new(), 0));

    // Files too large to be sent meanwhile.
    let file = folder.file("large.bin");
    let large = std::fs::File::create(&file).and_then(|file| file.set_len(100_000_000));
    large.expect("the folder can be written");
    let into = folder.file("in");
    for name in ["file send", "file receive"] {
        let (listener, called) = uris();
        let slow = format!("{called}?maxbw=100000");
        let mut receiver = start(&["file", "receive", &listener, &into], "listening");
        let sender = start(&["file", "send", &file, &slow], "connected");
        receiver.wait_for("connected");
        let (program, other) =
            if name == "file send" { (sender, receiver) } else { (receiver, sender) };
        all.push(command(name, program, vec![other], 1));
    }

    let (_, uri) = uris();
    let listen = uri.trim_start_matches("srt://");
    let listener = start(&["probe", "--listen", listen], "listening");
    let caller = start(&["probe", &uri], "connected");
    all.push(command("probe", caller, Vec::new(), 1));
    all.push(command("probe --listen", listener, Vec::new(), 0));

    let plan = folder.file("tiny.toml");
    std::fs::write(&plan, crate::lab::plan()).expect("the folder can be written");
    let results = folder.file("results");
    let sweep = ["lab", "run", &plan, "--output", &results, "--backend", "net", "--repeats", "50"];
    all.push(command("lab run", start(&sweep, "client"), Vec::new(), 1));
    let demo = Program::start(&["demo", "--output", &folder.file("demo")]);
    all.push(command("demo", demo, Vec::new(), 1));
    sleep(Duration::from_secs(1));
    all
}

#[test]
fn one_signal_ends_each_command_in_good_order_and_two_at_once_are_one() {
    for signals in [&[Signal::HUP][..], &[Signal::TERM], &[Signal::TERM, Signal::INT]] {
        let folder = Folder::new("signals");
        let all = commands(&folder);
        for Command { program, .. } in &all {
            signals.iter().for_each(|signal| interop::send(program.id(), *signal));
        }
        for Command { name, program, others, code } in all {
            let start = Instant::now();
            let ended = program.end();
            assert_eq!(ended.code, Some(code), "{name} on {signals:?}: {}", ended.stderr);
            // A run of a sweep is done, which takes a few seconds.
            assert!(start.elapsed() < Duration::from_secs(12), "{name}: {:?}", start.elapsed());
            // The demonstration has messages of its own.
            let told = if name == "demo" { 0 } else { 1 };
            assert_eq!(ended.stderr.matches("stopping").count(), told, "{name}: {}", ended.stderr);
            drop(others);
        }
    }
}

#[test]
fn a_second_signal_ends_each_command_at_once() {
    let folder = Folder::new("second-signals");
    let all = commands(&folder);
    for Command { program, .. } in &all {
        interop::send(program.id(), Signal::INT);
    }
    sleep(Duration::from_millis(500));
    for Command { name, program, code, .. } in all {
        let start = Instant::now();
        interop::send(program.id(), Signal::INT);
        let ended = program.end();
        let codes = [Some(code), Some(130)];
        assert!(codes.contains(&ended.code), "{name}: {:?}: {}", ended.code, ended.stderr);
        assert!(start.elapsed() < Duration::from_secs(2), "{name}: {:?}", start.elapsed());
    }
}

#[test]
fn a_sweep_that_is_stopped_says_that_it_waits_for_its_runs() {
    let folder = Folder::new("stopped-sweep");
    let plan = folder.file("tiny.toml");
    std::fs::write(&plan, crate::lab::plan()).expect("the folder can be written");
    let results = folder.file("results");
    let mut sweep = Program::start(&[
        "lab",
        "run",
        &plan,
        "--output",
        &results,
        "--backend",
        "net",
        "--set",
        "duration=60s",
    ]);
    sweep.wait_for("client");
    sweep.interrupt();
    sweep.wait_for("waiting for the runs that are under way");
    sleep(Duration::from_millis(500));
    sweep.interrupt();
    let ended = sweep.end();
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert!(ended.stderr.contains("interrupted"), "{}", ended.stderr);
}

/// The only child of a process.
fn child_of(process: u32) -> u32 {
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    children.expect("Linux tells").trim().parse().expect("there is one")
}

#[test]
fn sighup_ends_a_sender_in_good_order() {
    let (sender, receiver) = pair(Program::start, &[]);
    interop::send(sender.id(), Signal::HUP);
    let ended = sender.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("stopping"), "{}", ended.stderr);
    assert_eq!(ends_at_once(receiver).code, Some(0));
}

#[test]
fn a_command_under_nohup_outlives_sighup() {
    let (sender, receiver) = pair(Program::start_without_hangups, &[]);
    interop::send(sender.id(), Signal::HUP);
    sleep(Duration::from_millis(800));
    interop::send(sender.id(), Signal::TERM);
    let ended = sender.end();
    assert_eq!((ended.code, ended.stderr.matches("stopping").count()), (Some(0), 1));
    assert_eq!(ends_at_once(receiver).code, Some(0));
}

#[test]
fn two_signals_at_once_are_one() {
    for pause in [0, 100] {
        let (sender, receiver) = pair(Program::start, &[]);
        interop::send(sender.id(), Signal::TERM);
        sleep(Duration::from_millis(pause));
        interop::send(sender.id(), Signal::INT);
        let ended = sender.end();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert_eq!(ends_at_once(receiver).code, Some(0));
    }
}

#[test]
fn a_second_signal_says_goodbye_to_the_peer_and_waits_for_nothing() {
    for options in [&[][..], &["--reconnect"]] {
        let (sender, receiver) = pair(Program::start, options);
        // A receiver that stands still acknowledges nothing, so that the sender waits for it.
        interop::send(receiver.id(), Signal::STOP);
        sleep(Duration::from_millis(500));
        interop::send(sender.id(), Signal::INT);
        sleep(Duration::from_millis(500));
        let start = Instant::now();
        interop::send(sender.id(), Signal::INT);
        let ended = sender.end();
        assert_eq!(ended.code, Some(130), "{}", ended.stderr);
        assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
        assert!(ended.stderr.contains("interrupted"), "{}", ended.stderr);
        interop::send(receiver.id(), Signal::CONT);
        ends_at_once(receiver);
    }
}

#[test]
fn a_closed_terminal_ends_a_command_for_which_sighup_means_something_else() {
    let folder = Folder::new("closed-terminal");
    let list = folder.file("list");
    std::fs::write(&list, "*\n").expect("the folder can be written");
    let port = free_port();
    let uri = format!("srt://127.0.0.1:{port}?mode=listener");
    // `script` gives it a terminal, which closes when `script` is killed.
    let log = folder.file("log");
    let binary = env!("CARGO_BIN_EXE_punctual");
    let command = format!("exec {binary} receive '{uri}' --allow-streamids {list} 2> {log}");
    let script = std::process::Command::new("script").args(["-qec", &command, "/dev/null"]).spawn();
    let Ok(mut script) = script else { return interop::skip("script is not installed") };
    interop::wait_until_bound(port);
    let mut sender = Program::start(&[
        "generate",
        &format!("srt://127.0.0.1:{port}?streamid=one"),
        "--sendrate",
        "1Mbps",
    ]);
    sender.wait_for("connected");
    let receiver = child_of(script.id());
    interop::send(receiver, Signal::HUP);
    sleep(Duration::from_secs(1));
    let text = std::fs::read_to_string(&log).expect("there is a log");
    assert!(text.contains("was read again"), "{text}");
    script.kill().expect("it runs");
    script.wait().expect("it ends");
    ends_at_once(sender);
    let text = std::fs::read_to_string(&log).expect("there is a log");
    assert!(text.contains("stopping"), "{text}");
}
