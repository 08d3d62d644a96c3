//! The program punctual-relay: what its commands print, and with which code they end.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::{Command, Output};

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_punctual-relay")).args(args).output().expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A file of a test in a folder of its own.
fn file(test: &str, contents: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let file = folder.join("file");
    std::fs::write(&file, contents).expect("a file can be written");
    file.display().to_string()
}

#[test]
fn all_problems_of_a_file_are_told_with_their_places() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contrib/relay.toml");
    let valid = run(&["check", example]);
    assert_eq!(valid.status.code(), Some(0), "{}", text(&valid.stderr));
    let wrong = file("problems", "[http]\nlisten = 7\n[stream.\"live/*\"]\nkep-viewers = \"1s\"\n");
    let told = run(&["check", &wrong]);
    let problems = text(&told.stderr);
    assert_eq!(told.status.code(), Some(2), "{problems}");
    assert!(problems.contains("file:2:") && problems.contains("file:4:"), "{problems}");
    assert!(problems.contains("keep-viewers"), "the nearest key is named: {problems}");
}

#[test]
fn each_value_is_printed_with_its_origin() {
    let own = file("origins", "[[listen]]\nsrt = \"127.0.0.1:8899\"\n");
    let printed = text(&run(&["print-config", &own]).stdout);
    assert!(
        printed.contains("srt = \"127.0.0.1:8899\"  # ") && printed.contains(":2"),
        "{printed}"
    );
    assert!(printed.contains("latency = \"120ms\"  # default"), "{printed}");
}

#[test]
fn a_token_is_one_short_line_and_a_missing_key_is_told() {
    let key = file("token", "a key that nobody guesses, at least 32 bytes\n");
    let asked = ["token", "--key-file", &key, "--stream", "live/a", "--read", "--for", "2h"];
    let made = run(&asked);
    let token = text(&made.stdout);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    assert!(token.lines().count() == 1 && token.len() <= 100, "{token}");
    let missing = run(&["token", "--key-file", "/nowhere", "--stream", "live/a", "--read"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("/nowhere"));
}

#[test]
fn keys_of_mediamtx_without_a_counterpart_are_told() {
    let theirs =
        file("import", "srtAddress: :9000\nrtsp: yes\npaths:\n  cam:\n    maxReaders: 5\n");
    let imported = run(&["import", &theirs]);
    let (toml, left) = (text(&imported.stdout), text(&imported.stderr));
    assert_eq!(imported.status.code(), Some(0), "{left}");
    assert!(toml.contains("9000") && toml.contains("max-viewers = 5"), "{toml}");
    assert!(left.contains("rtsp"), "{left}");
    let made = file("imported", &toml);
    assert_eq!(run(&["check", &made]).status.code(), Some(0));
}

#[test]
fn the_health_of_a_relay_that_does_not_answer_is_a_failure() {
    let asked = run(&["health", "http://127.0.0.1:9"]);
    assert_eq!(asked.status.code(), Some(1));
    assert!(text(&asked.stderr).contains("127.0.0.1:9 does not answer"));
}
