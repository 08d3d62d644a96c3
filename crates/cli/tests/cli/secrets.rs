//! Passphrases are shown nowhere, and names of others command no terminal.

use crate::program::run;

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
