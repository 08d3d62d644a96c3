//! Signals: one ends a command in good order, a further one says goodbye to the peers, and SIGHUP
//! has its meanings.

use std::process::Command;
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
    let script = Command::new("script").args(["-qec", &command, "/dev/null"]).spawn();
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
