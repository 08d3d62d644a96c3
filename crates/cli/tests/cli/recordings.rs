//! Files that streams are written to: nothing is lost that was there before.

use std::fs;

use crate::program::{Folder, Program, free_port, run};

/// Sends 20 messages of 1000 bytes to the listener at `port`.
fn send_to(port: u16) {
    let uri = format!("srt://127.0.0.1:{port}");
    let ended = run(&["generate", &uri, "--num", "20", "--msgsize", "1000"], b"");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn a_recording_that_exists_is_kept_and_both_flags_are_told() {
    let folder = Folder::new("recording-kept");
    let recording = folder.file("rec.ts");
    fs::write(&recording, "precious").unwrap();
    for args in [
        &["route", &format!("srt://:{}", free_port()), &recording][..],
        &["generate", &recording, "--num", "5"],
    ] {
        let ended = run(args, b"");
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(ended.stderr.contains(&recording), "{}", ended.stderr);
        let told = ended.stderr.contains("--overwrite") && ended.stderr.contains("--append");
        assert!(told, "{}", ended.stderr);
        assert_eq!(fs::read(&recording).unwrap(), b"precious");
    }
}

#[test]
fn a_listener_without_callers_leaves_the_recording_as_it_was() {
    let folder = Folder::new("recording-nobody");
    let (old, new) = (folder.file("old.ts"), folder.file("new.ts"));
    fs::write(&old, "precious").unwrap();
    for recording in [&old, &new] {
        let uri = format!("srt://:{}", free_port());
        let mut route = Program::start(&["route", &uri, recording, "--overwrite"]);
        route.wait_for("listening");
        route.interrupt();
        assert_eq!(route.end().code, Some(0));
    }
    assert_eq!(fs::read(&old).unwrap(), b"precious");
    assert!(!fs::exists(&new).unwrap());
}

#[test]
fn overwrite_replaces_a_recording_and_append_goes_on_behind_it() {
    let folder = Folder::new("recording-flags");
    let recording = folder.file("rec.ts");
    fs::write(&recording, "before").unwrap();
    for (flag, before) in [("--append", 6), ("--overwrite", 0)] {
        let port = free_port();
        let mut route = Program::start(&["route", &format!("srt://:{port}"), &recording, flag]);
        route.wait_for("listening");
        send_to(port);
        assert_eq!(route.end().code, Some(0));
        assert_eq!(fs::metadata(&recording).unwrap().len(), before + 20_000, "{flag}");
    }
}

#[test]
fn the_same_file_at_both_ends_is_refused() {
    let folder = Folder::new("recording-same");
    let (file, link) = (folder.file("self.ts"), folder.file("link.ts"));
    fs::write(&file, "precious").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    for args in [
        &["route", &file, &file, "--overwrite"][..],
        &["route", &file, &link, "--append"],
        &["route", "udp://127.0.0.1:9", &file, &link, "--overwrite"],
    ] {
        let ended = run(args, b"");
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("both ends, or twice"), "{}", ended.stderr);
        assert_eq!(fs::read(&file).unwrap(), b"precious");
    }
}
