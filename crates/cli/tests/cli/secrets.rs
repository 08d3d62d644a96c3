//! Passphrases are shown nowhere, and names of others command no terminal.

use crate::program::{Program, free_port, run};

#[test]
fn a_passphrase_in_uris_is_pointed_out_once_and_shown_never() {
    let uris = ["srt://127.0.0.1:9?passphrase=hush%2C+hush&conntimeo=100&grouptype=backup"; 2];
    let output = run(&[&["generate", "--duration", "1s"], &uris[..]].concat(), b"");
    let told = output.stderr;
    assert_eq!(told.matches("list of processes").count(), 1, "{told}");
    assert!(told.contains("`passphrase-file=PATH`"), "{told}");
    assert!(told.contains("passphrase=…") && !told.contains("hush"), "{told}");
}

#[test]
fn secrets_in_stream_ids_are_shown_at_neither_end() {
    for (id, shown) in [
        ("#!::r=live/a,u=ann,s=hush,m=publish", "#!::r=live/a,u=ann,s=…,m=publish"),
        ("publish:live/a:ann:hush", "publish:live/a:ann:…"),
    ] {
        let port = free_port();
        let mut receiver =
            Program::start(&["receive", &format!("srt://127.0.0.1:{port}?mode=listener"), "-v"]);
        receiver.wait_for("listening");
        let call = format!("srt://127.0.0.1:{port}?streamid={id}");
        let sent = run(&["generate", &call, "--num", "1", "-v"], b"");
        let received = receiver.end();
        for told in [sent.stderr, received.stderr] {
            assert!(!told.contains("hush"), "{told}");
            assert!(told.contains(&format!("stream ID `{shown}`")), "{told}");
        }
    }
}

#[test]
fn a_name_of_several_lines_stays_in_one() {
    let name = "no\nsuch\u{1b}[2J\u{202e}.ts";
    let output = run(&["route", name, "-"], b"");
    let told = output.stderr;
    assert!(
        told.contains("no\\nsuch\\u{1b}[2J\\u{202e}.ts: No such file or directory\n"),
        "{told}"
    );
    assert!(!told.contains('\u{1b}') && !told.contains("os error"), "{told}");
    assert!(told.lines().all(|line| !line.starts_with("such")), "{told}");
}
