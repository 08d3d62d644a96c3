//! The program punctual-relay: what its commands print, and with which code they end.

#![forbid(unsafe_code)]

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

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

/// A relay that is killed at the end of its test.
struct Relay(Child);

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The health of a relay that runs. On a busy machine it may answer later than the command waits.
fn health(args: &[&str]) -> Output {
    let ask = || run(&[&["health"], args].concat());
    let is_late = |asked: &Output| text(&asked.stderr).contains("no answer came");
    let mut asked = ask();
    for _ in 0..10 {
        if is_late(&asked) {
            asked = ask();
        }
    }
    asked
}

/// A certificate with its key, in two files.
fn certificate(test: &str) -> [String; 2] {
    let made = rcgen::generate_simple_self_signed(vec!["relay.example".to_owned()]);
    let made = made.expect("a certificate");
    let key = made.signing_key.serialize_pem();
    [file(&format!("{test}-certificate"), &made.cert.pem()), file(&format!("{test}-key"), &key)]
}

#[test]
fn the_health_of_a_relay_is_asked_by_its_own_certificate() {
    let [own, key] = certificate("own");
    let port =
        TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port").port();
    let lines = |certificate: &str| {
        format!(
            "[[listen]]\nsrt = \"127.0.0.1:0\"\n[http]\nlisten = \"0.0.0.0:{port}\"\n\
             tls-cert = \"{certificate}\"\ntls-key = \"{key}\"\n"
        )
    };
    let config = file("health", &lines(&own));
    let mut command = Command::new(env!("CARGO_BIN_EXE_punctual-relay"));
    let relay = command.args(["--config", &config]).stderr(Stdio::piped()).spawn();
    let mut relay = Relay(relay.expect("it starts"));
    let mut log = BufReader::new(relay.0.stderr.take().expect("a pipe")).lines();
    assert!(log.any(|line| line.expect("text").starts_with("page ")), "it serves HTTP");

    let asked = health(&["--config", &config]);
    assert_eq!(asked.status.code(), Some(0), "{}", text(&asked.stderr));
    let [other, _] = certificate("other");
    let asked = health(&["--config", &file("stranger", &lines(&other))]);
    let told = text(&asked.stderr);
    assert_eq!(asked.status.code(), Some(1), "{told}");
    assert!(told.contains("another certificate"), "{told}");
    let asked = run(&["health", &format!("https://127.0.0.1:{port}")]);
    assert_eq!(asked.status.code(), Some(1), "no authority of this system knows it");
}

#[test]
fn the_health_of_a_relay_without_http_cannot_be_asked() {
    let config = file("no-http", "[http]\nlisten = \"off\"\n");
    let asked = run(&["health", "--config", &config]);
    let told = text(&asked.stderr);
    assert_eq!(asked.status.code(), Some(2), "{told}");
    assert!(told.contains("http.listen"), "{told}");
}

#[test]
fn the_health_of_a_relay_that_does_not_answer_is_a_failure() {
    let asked = run(&["health", "http://127.0.0.1:9"]);
    assert_eq!(asked.status.code(), Some(1));
    assert!(text(&asked.stderr).contains("127.0.0.1:9 does not answer"));
}
