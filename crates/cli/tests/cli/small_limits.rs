//! Small limits of the system: few descriptors, little memory, disks that are full or cannot be
//! written. The program does what it can within them, and gives the reason for the rest.

use std::net::SocketAddr;
use std::process::Command;

use punctual::{Config, Port, PortConfig};

use crate::files::contents;
use crate::program::{Ended, Folder, Program, free_port, run};

/// A program that sees a disk of its own, mounted at `place` with these options.
fn on_disk(place: &str, options: &str, args: &[&str]) -> Program {
    let script = format!(
        "mount -t tmpfs -o {options} none '{place}' && exec '{}' \"$@\"",
        env!("CARGO_BIN_EXE_punctual")
    );
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", &script, "sh"]).args(args).env_remove("RUST_LOG");
    Program::spawn(command)
}

/// Whether disks can be mounted here; says that the test is skipped if not.
fn can_mount() -> bool {
    let mut mount = Command::new("unshare");
    mount.args(["-rm", "mount", "-t", "tmpfs", "none", "/mnt"]);
    let can = mount.output().is_ok_and(|output| output.status.success());
    if !can {
        interop::skip("user namespaces and mounts are not allowed");
    }
    can
}

fn uri(port: u16) -> String {
    format!("srt://127.0.0.1:{port}")
}

#[track_caller]
fn assert_failed(ended: &Ended, reason: &str) {
    let Ended { code, stderr, .. } = ended;
    assert_eq!(*code, Some(1), "{stderr}");
    assert!(stderr.contains(reason) && !stderr.contains("panicked"), "{stderr}");
}

#[test]
fn a_disk_that_cannot_be_written_is_told_at_the_start() {
    if !can_mount() {
        return;
    }
    let folder = Folder::new("read-only");
    let (disk, listen) = (folder.file("disk"), format!("srt://:{}", free_port()));
    std::fs::create_dir(&disk).expect("a folder");
    let [recording, rows] = ["a.ts", "a.csv"].map(|name| format!("{disk}/{name}"));
    let reason = "Read-only file system";
    for args in [&["route", &listen, &recording][..], &["receive", &listen, "--statsfile", &rows]] {
        let ended = on_disk(&disk, "ro", args).end();
        assert_failed(&ended, reason);
        assert_eq!(ended.stderr.matches(&disk).count(), 1, "{}", ended.stderr);
    }
    // Files are refused one by one, at both ends.
    let port = free_port();
    let mut receiver = on_disk(&disk, "ro", &["file", "receive", &format!("srt://:{port}"), &disk]);
    receiver.wait_for("listening");
    let source = folder.file("source");
    std::fs::write(&source, "a file").expect("a file");
    let sent = run(&["file", "send", &source, &uri(port)], b"");
    assert_failed(&sent, "source: at the other end: Read-only file system");
    assert_failed(&receiver.end(), "source: not taken: Read-only file system");
}

#[test]
fn a_disk_of_64_kilobytes_keeps_what_fits_and_both_ends_say_the_rest() {
    if !can_mount() {
        return;
    }
    let folder = Folder::new("small-disk");
    let (disk, source) = (folder.file("disk"), folder.file("source"));
    std::fs::create_dir(&disk).expect("a folder");
    std::fs::write(&source, contents(200_000, 1)).expect("a file");
    let (port, reason) = (free_port(), "No space left on device");
    let listen = format!("srt://:{port}");
    let mut receiver = on_disk(&disk, "size=64k", &["file", "receive", &listen, &disk]);
    receiver.wait_for("listening");
    let sent = run(&["file", "send", &source, &uri(port)], b"");
    assert_failed(&sent, "the peer could not write the received data");
    let received = receiver.end();
    assert_failed(&received, reason);
    assert!(received.stderr.contains("where the next transfer goes on"), "{}", received.stderr);

    let (recording, port) = (format!("{disk}/a.ts"), free_port());
    let listen = format!("srt://:{port}");
    let mut receiver = on_disk(&disk, "size=64k", &["route", &listen, &recording]);
    receiver.wait_for("listening");
    let sent = run(&["generate", &uri(port), "--num", "500", "--sendrate", "4Mbps"], b"");
    assert_failed(&sent, "closed by the peer");
    let received = receiver.end();
    assert_failed(&received, &format!("punctual: {recording}: {reason}"));
}

#[test]
fn hundreds_of_files_and_callers_need_few_descriptors() {
    const FEW: &str = "ulimit -n 64";
    let folder = Folder::new("descriptors");
    let (source, target) = (folder.file("source"), folder.file("target"));
    std::fs::create_dir(&source).expect("a folder");
    for number in 0..300 {
        std::fs::write(format!("{source}/{number}"), contents(100 * number, 1)).expect("a file");
    }
    let port = free_port();
    let mut receiver =
        Program::start_after(FEW, &["file", "receive", &format!("srt://:{port}"), &target]);
    receiver.wait_for("listening");
    let sent = Program::start_after(FEW, &["file", "send", &source, &uri(port)]).end();
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    assert_eq!(receiver.end().code, Some(0));
    let arrived = std::fs::read_dir(&target).expect("a folder").count();
    assert_eq!(arrived, 300);

    let port = free_port();
    let listen = format!("srt://:{port}");
    let args = ["receive", &listen, "--concurrent-streams", "200", "--enable-metrics"];
    let mut receiver = Program::start_after(FEW, &args);
    receiver.wait_for("listening");
    assert_eq!(callers(port, 200), 200);
    receiver.wait_for("more callers connected");
    let ended = receiver.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

/// Calls as often, from one port, and then ends all connections. Returns how many were taken.
fn callers(port: u16, count: usize) -> usize {
    let remote = SocketAddr::from(([127, 0, 0, 1], port));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let port = Port::bind(PortConfig::default()).await.expect("a port");
        let mut taken = Vec::new();
        for _ in 0..count {
            taken.extend(port.connect(remote, Config::default()).await);
        }
        for socket in &taken {
            let _ = socket.close().await;
        }
        taken.len()
    })
}

#[test]
fn a_program_without_descriptors_says_so() {
    const NONE: &str = "Too many open files (`ulimit -n` raises the limit)";
    let listen = format!("srt://:{}", free_port());
    let (mut failed, mut listened) = (0, 0);
    for limit in 6..20 {
        let limit = format!("ulimit -n {limit}");
        let mut program = Program::start_after(&limit, &["receive", &listen]);
        if program.wait_for_one_of(&[NONE, "listening"]) == NONE {
            assert_failed(&program.end(), NONE);
            failed += 1;
        } else {
            program.interrupt();
            program.end();
            listened += 1;
        }
    }
    assert!(failed > 0 && listened > 0, "{failed} failed and {listened} listened");
}

#[test]
fn a_stream_needs_little_memory() {
    // Addresses, of which the allocator reserves many more than it uses.
    const LITTLE: &str = "ulimit -v 200000";
    let port = free_port();
    let listen = format!("srt://:{port}");
    let mut receiver = Program::start_after(LITTLE, &["receive", &listen]);
    receiver.wait_for("listening");
    let args = ["generate", &uri(port), "--num", "2000", "--sendrate", "20Mbps"];
    let sent = Program::start_after(LITTLE, &args).end();
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    let received = receiver.end();
    assert_eq!(received.code, Some(0), "{}", received.stderr);
    assert!(received.stderr.contains("received 2000 messages"), "{}", received.stderr);
}
