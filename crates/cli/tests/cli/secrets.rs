//! Passphrases are shown nowhere, and names of others command no terminal.

use crate::program::{Folder, Program, free_port, rows, run};

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

#[test]
fn a_stream_id_of_a_stranger_breaks_no_line_and_no_row() {
    let folder = Folder::new("stranger-text");
    let [stats, metrics, json] = ["s.csv", "m.csv", "s.json"].map(|name| folder.file(name));
    // A line break, a terminal's sequence, marks of direction, HTML, and a cell of a table.
    let id = "a%0Ab%1B%5B2J%E2%80%AE%D8%9C%E2%81%A6%3Cscript%3E%22%2C%3D1%2B1";
    for format in ["csv", "json"] {
        let port = free_port();
        let file = if format == "csv" { &stats } else { &json };
        let mut receiver = Program::start(&[
            "receive",
            &format!("srt://:{port}"),
            "-v",
            "--enable-metrics",
            "--metricsfile",
            &metrics,
            "--statsfile",
            file,
            "--statsformat",
            format,
        ]);
        receiver.wait_for("listening");
        let call = format!("srt://127.0.0.1:{port}?streamid={id}");
        let sent = run(&["generate", &call, "--num", "20", "-v"], b"");
        assert_eq!(sent.code, Some(0), "{}", sent.stderr);
        let received = receiver.end();
        for told in [sent.stderr, received.stderr] {
            assert!(told.contains("script"), "{told}");
            let free = |letter: char| letter.is_control() && letter != '\n';
            assert!(!told.contains(free), "{told}");
            assert!(!told.contains(['\u{202e}', '\u{61c}', '\u{2066}']), "{told}");
            assert!(told.lines().all(|line| !line.starts_with('b')), "{told}");
        }
    }
    for file in [&stats, &metrics] {
        // Each row has as many cells as the header.
        assert!(!rows(&std::fs::read_to_string(file).expect("rows")).is_empty());
    }
    for line in std::fs::read_to_string(&json).expect("rows").lines() {
        serde_json::from_str::<serde_json::Value>(line).expect("it is JSON");
    }
    let page = folder.file("page.html");
    let plotted = run(&["plot", &stats, "-o", &page], b"");
    assert_eq!(plotted.code, Some(0), "{}", plotted.stderr);
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(!page.contains("<script>\","), "no element of a stranger");
}
