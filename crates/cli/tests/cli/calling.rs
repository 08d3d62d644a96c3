//! How commands call, wait, call again and end.

use std::fs;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use crate::program::{Folder, Program, free_port, run};

/// Less than the buffers of a pipe, so that the whole of it waits.
static A_PIPE: [u8; 40_000] = [7; 40_000];

#[test]
fn a_recording_beside_a_listener_that_nobody_calls_has_the_whole_pipe() {
    let folder = Folder::new("calling-nobody");
    let recording = folder.file("rec.bin");
    let listener = format!("srt://127.0.0.1:{}?mode=listener", free_port());
    let ended = run(&["route", "-", &listener, &recording], &A_PIPE);
    assert_eq!(fs::read(recording).unwrap(), A_PIPE);
    assert_eq!(ended.code, Some(4), "{}", ended.stderr);
    for told in ["- begins without srt://", "nobody called until the end", "were missed"] {
        assert!(ended.stderr.contains(told), "{told}: {}", ended.stderr);
    }
    assert!(!ended.stderr.contains("the others go on"), "{}", ended.stderr);
}

#[test]
fn a_recording_beside_an_absent_peer_has_the_whole_pipe_and_file() {
    let folder = Folder::new("calling-absent");
    let [file, recording] = ["in.bin", "rec.bin"].map(|name| folder.file(name));
    fs::write(&file, A_PIPE).unwrap();
    let call = format!("srt://127.0.0.1:{}?conntimeo=300ms", free_port());
    for source in ["-", &file] {
        let args = ["route", source, &call, &recording, "--reconnect", "--overwrite"];
        let ended = run(&args, &A_PIPE);
        assert_eq!(fs::read(&recording).unwrap(), A_PIPE, "{source}");
        assert_eq!(ended.code, Some(4), "{source}: {}", ended.stderr);
        let begun = format!("{source} begins without srt://");
        assert!(ended.stderr.contains(&begun), "{}", ended.stderr);
        assert!(ended.stderr.contains("no answer within 300 ms"), "{}", ended.stderr);
        assert!(ended.stderr.contains("were missed"), "{}", ended.stderr);
    }
}

#[test]
fn tries_that_fail_at_once_are_a_second_apart_in_every_command() {
    let in_use = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = in_use.local_addr().unwrap().port();
    let folder = Folder::new("calling-paced");
    let listen = format!("srt://127.0.0.1:{port}?mode=listener");
    let call = format!("srt://127.0.0.1:{}?mode=caller&bind=127.0.0.1:{port}", free_port());
    let source = format!("udp://127.0.0.1:{}", free_port());
    for args in [
        &["receive", &listen][..],
        &["generate", &call],
        &["route", &source, &listen],
        &["route", &source, &listen, "--viewers", "2"],
        &["file", "receive", &listen, &folder.file("in")],
    ] {
        let start = Instant::now();
        let mut program = Program::start(&[args, &["--reconnect", "-v"]].concat());
        program.wait_for("try 3 begins");
        let time = start.elapsed();
        assert!(time >= Duration::from_secs(2), "{args:?}: three tries in {time:?}");
        program.kill();
    }
}

#[test]
fn a_wrong_passphrase_is_told_and_tried_rarely() {
    let port = free_port();
    let mut receiver = Program::start(&[
        "receive",
        &format!("srt://127.0.0.1:{port}?mode=listener&passphrase=0123456789"),
    ]);
    receiver.wait_for("listening");
    let call = format!("srt://127.0.0.1:{port}?passphrase=9876543210");
    let start = Instant::now();
    let mut caller = Program::start(&["generate", &call, "--reconnect"]);
    caller.wait_for("trying again in 2 s");
    caller.wait_for("trying again in 4 s");
    assert!(start.elapsed() >= Duration::from_secs(2));
}

#[test]
fn nobody_there_until_the_time_is_over_is_code_4() {
    let folder = Folder::new("calling-time");
    let file = folder.file("in.bin");
    fs::write(&file, A_PIPE).unwrap();
    let call = format!("srt://127.0.0.1:{}", free_port());
    let listen = format!("srt://127.0.0.1:{}?mode=listener", free_port());
    let recording = folder.file("rec.bin");
    for args in [
        &["receive", &call][..],
        &["receive", &listen],
        &["route", &file, &call],
        &["route", &file, &listen],
        &["route", &call, &recording],
        &["route", &call, &recording, "--reconnect"],
        &["route", &file, &call, "--reconnect"],
    ] {
        let ended = run(&[args, &["--duration", "500ms"]].concat(), b"");
        assert_eq!(ended.code, Some(4), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("until the end"), "{args:?}: {}", ended.stderr);
    }
}

#[test]
fn nothing_from_udp_until_the_time_is_over_is_code_4() {
    let folder = Folder::new("calling-udp");
    let source = format!("udp://127.0.0.1:{}", free_port());
    let recording = folder.file("rec.bin");
    for args in [&["receive", &source][..], &["route", &source, &recording]] {
        let ended = run(&[args, &["--duration", "300ms"]].concat(), b"");
        assert_eq!(ended.code, Some(4), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("nothing arrived until the end"), "{}", ended.stderr);
    }
}

#[test]
fn a_command_that_a_signal_ends_while_nobody_is_there_has_code_0() {
    let listen = format!("srt://127.0.0.1:{}?mode=listener", free_port());
    let mut receiver = Program::start(&["receive", &listen]);
    receiver.wait_for("listening");
    receiver.interrupt();
    assert_eq!(receiver.end().code, Some(0));
}

#[test]
fn a_sender_says_that_its_peer_was_gone_at_the_end_of_the_stream() {
    let port = free_port();
    let mut receiver =
        Program::start(&["receive", &format!("srt://127.0.0.1:{port}?mode=listener")]);
    receiver.wait_for("listening");
    let call = format!("srt://127.0.0.1:{port}");
    let args = ["generate", &call, "--sendrate", "2Mbps", "--duration", "3s"];
    let mut generator = Program::start(&args);
    generator.wait_for("connected");
    // Killed, it says no goodbye, and the idle timeout of 5 s is longer than the stream.
    receiver.kill();
    let ended = generator.end();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("no longer answered at the end"), "{}", ended.stderr);
}

#[test]
fn a_connection_says_how_it_is_encrypted() {
    for (keys, told) in [
        ("", "not encrypted"),
        ("&passphrase=0123456789", "encrypted with AES-128-CTR"),
        ("&passphrase=0123456789&pbkeylen=32&cryptomode=2", "encrypted with AES-256-GCM"),
    ] {
        let port = free_port();
        let end = |mode: &str| format!("srt://127.0.0.1:{port}?mode={mode}{keys}");
        let mut receiver = Program::start(&["receive", &end("listener")]);
        receiver.wait_for("listening");
        let sent = run(&["generate", &end("caller"), "--num", "1"], b"");
        assert_eq!(sent.code, Some(0), "{}", sent.stderr);
        assert!(sent.stderr.contains(&format!("), {told}")), "{keys}: {}", sent.stderr);
        let received = receiver.end().stderr;
        assert!(received.contains(&format!("), {told}")), "{keys}: {received}");
    }
}

#[test]
fn an_empty_passphrase_does_not_connect_in_the_clear() {
    let ended = run(&["generate", "srt://127.0.0.1:9?passphrase=", "--num", "1"], b"");
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("leave the key out"), "{}", ended.stderr);
}

#[test]
fn a_live_stream_without_a_rate_has_one_and_a_file_has_none() {
    let folder = Folder::new("calling-rate");
    let live = format!("udp://127.0.0.1:{}", free_port());
    let start = Instant::now();
    let ended = run(&["generate", &live, "--num", "200"], b"");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("sending at 5 Mb/s: --sendrate"), "{}", ended.stderr);
    assert!(start.elapsed() >= Duration::from_millis(400), "200 messages of 1316 bytes");
    let ended = run(&["generate", &folder.file("out.bin"), "--num", "10000"], b"");
    assert!(!ended.stderr.contains("sending at"), "{}", ended.stderr);
    assert!(
        !run(&["generate", &live, "--num", "9", "--sendrate", "0"], b"").stderr.contains("at 5")
    );
}

#[test]
fn a_pipe_that_is_faster_than_its_clock_is_warned_of() {
    let folder = Folder::new("calling-haste");
    let clip = include_bytes!("../../../../assets/clip.ts");
    let receiver = format!("udp://127.0.0.1:{}", free_port());
    let ended = run(&["route", "-", &receiver], clip);
    assert!(ended.stderr.contains("add `--pace pcr`"), "{}", ended.stderr);
    let ended = run(&["route", "-", &folder.file("copy.ts")], clip);
    assert!(!ended.stderr.contains("--pace pcr"), "{}", ended.stderr);
}

/// Runs a shell script in a network with nothing but loopback, where the name `cam` has an address
/// of either family; `None` if that is not allowed here.
#[cfg(target_os = "linux")]
fn with_a_name_of_two_families(script: &str) -> Option<std::process::Output> {
    let folder = Folder::new("calling-names");
    let hosts = folder.file("hosts");
    fs::write(&hosts, "127.0.0.1 cam\n::1 cam\n").expect("the folder is writable");
    let enter = format!("ip link set lo up && mount --bind {hosts} /etc/hosts");
    let shell = |script: &str| {
        let mut shell = std::process::Command::new("unshare");
        shell.args(["-mn", "sh", "-c", script]).env("P", env!("CARGO_BIN_EXE_punctual"));
        shell.output()
    };
    match shell(&enter) {
        Ok(output) if output.status.success() => {
            Some(shell(&format!("{enter} && {{ {script}; }}")).expect("it ran a moment ago"))
        }
        _ => {
            interop::skip("a network namespace needs root, `unshare` and `ip`");
            None
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_of_two_families_is_called_at_the_one_that_answers() {
    for address in ["[::1]", "127.0.0.1"] {
        for (listener, caller) in [
            (format!("srt://{address}:5001?mode=listener"), "srt://cam:5001"),
            (format!("tcp://{address}:5001?listen"), "tcp://cam:5001"),
        ] {
            // A call is repeated until the listener is there; TCP's is not.
            let script = format!(
                "$P receive '{listener}' & \
                 $P generate '{caller}' --num 9 --reconnect --maxconns 1; code=$?; wait; exit $code"
            );
            let Some(output) = with_a_name_of_two_families(&script) else { return };
            let told = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{caller} at {address}: {told}");
            assert!(told.contains("received 9 messages"), "{caller} at {address}: {told}");
        }
    }
}
