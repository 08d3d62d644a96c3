//! Files that are there already: no option that names a file to write destroys one.

use std::fs;

use crate::program::{Folder, Program, free_port, run};

/// A file of somebody, which must stay as it is.
const KEPT: &str = "time,value\n1,2\n";

#[test]
fn every_option_that_names_a_file_keeps_the_one_that_is_there() {
    let folder = Folder::new("written");
    let file = |name: &str| folder.file(name);
    fs::write(file("rows.csv"), "Timepoint,Time,SocketID,msRTT\nnow,1,1,2\n").unwrap();
    let listener = format!("srt://:{}", free_port());
    for args in [
        &["generate", "udp://127.0.0.1:9", "--num", "1", "--statsfile"][..],
        &["generate", "udp://127.0.0.1:9", "--num", "1", "--statsformat", "json", "--statsfile"],
        &["generate", "udp://127.0.0.1:9", "--num", "1", "--quicstats"],
        &["receive", &listener, "--enable-metrics", "--metricsfile"],
        &["receive", &listener, "--statsfile"],
        &["route", "udp://127.0.0.1:9", "udp://127.0.0.1:10", "--statsfile"],
        &["file", "send", &file("rows.csv"), "srt://127.0.0.1:9", "--statsfile"],
        &["file", "receive", &listener, &file("in"), "--statsfile"],
    ] {
        let kept = file("kept");
        fs::write(&kept, KEPT).unwrap();
        let ended = run(&[args, &[&kept]].concat(), b"");
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("kept exists already"), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("name another file"), "{args:?}: {}", ended.stderr);
        assert_eq!(fs::read_to_string(&kept).unwrap(), KEPT, "{args:?}");
    }
}

#[test]
fn a_report_replaces_only_a_report() {
    let folder = Folder::new("reports");
    let rows = folder.file("rows.csv");
    let text = "Timepoint,Time,SocketID,msRTT\n\
                2026-01-02T03:04:05.000000+0000,1000,1,20\n\
                2026-01-02T03:04:06.000000+0000,2000,1,21\n";
    fs::write(&rows, text).unwrap();
    let html = folder.file("rows.html");
    for _ in 0..2 {
        let ended = run(&["plot", &rows], b"");
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(fs::read_to_string(&html).unwrap().starts_with("<!doctype html>"));
    }
    fs::write(&html, "<!doctype html>\n<p>mine</p>\n").unwrap();
    let ended = run(&["plot", &rows], b"");
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("is no report of Punctual's"), "{}", ended.stderr);
    // The measurement that it reads.
    let ended = run(&["plot", &rows, "-o", &rows], b"");
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("used twice"), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(&rows).unwrap(), text);
}

#[test]
fn a_figure_replaces_only_a_figure() {
    let folder = Folder::new("figure-files");
    let rows = folder.file("rows.csv");
    fs::write(
        &rows,
        "Timepoint,Time,SocketID,msRTT\n\
                      2026-01-02T03:04:05.000000+0000,1000,1,20\n\
                      2026-01-02T03:04:06.000000+0000,2000,1,21\n",
    )
    .unwrap();
    let figures = folder.file("figures");
    let plot = ["plot", &rows, "--format", "svg", "-o", &figures];
    for _ in 0..2 {
        assert_eq!(run(&plot, b"").code, Some(0));
    }
    let first = fs::read_dir(&figures).unwrap().next().expect("there is a figure").unwrap().path();
    fs::write(&first, KEPT).unwrap();
    let ended = run(&plot, b"");
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(&first).unwrap(), KEPT);
}

#[test]
fn no_file_is_used_twice_by_one_command() {
    let folder = Folder::new("used-twice");
    let new = folder.file("new.ts");
    let uri = format!("srt://127.0.0.1:{}?mode=listener", free_port());
    for args in [
        &["route", &uri, &new, "--statsfile", &new][..],
        &["route", &uri, "-", "--statsfile", "-"],
        &["generate", &new, "--num", "1", "--statsfile", &new],
        &["receive", &uri, "--statsfile", &new, "--quicstats", &new],
        &["receive", &uri, "--enable-metrics", "--metricsfile", &new, "--statsfile", &new],
        &["receive", &uri, "--enable-metrics", "--statsfile", "-"],
    ] {
        let ended = run(args, b"");
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("used twice by this command"), "{args:?}: {}", ended.stderr);
        assert!(!fs::exists(&new).unwrap() || fs::read(&new).unwrap().starts_with(b"Timepoint"));
        let _ = fs::remove_file(&new);
    }
    let devices = ["--statsfile", "/dev/null", "--quicstats", "/dev/null"];
    let ended =
        run(&[&["generate", "udp://127.0.0.1:9", "--num", "1"][..], &devices].concat(), b"");
    assert_eq!(ended.code, Some(0), "several may write to a device: {}", ended.stderr);
}

#[test]
fn a_source_is_not_emptied_for_statistics() {
    let folder = Folder::new("emptied-source");
    let source = folder.file("rec.ts");
    let packet: Vec<u8> = std::iter::once(0x47).chain(std::iter::repeat_n(0xff, 187)).collect();
    let content = packet.repeat(100);
    fs::write(&source, &content).unwrap();
    let ended = run(&["route", &source, "udp://127.0.0.1:9", "--statsfile", &source], b"");
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert_eq!(fs::read(&source).unwrap(), content);
}

#[test]
fn a_clip_of_the_demonstration_replaces_no_other_recording() {
    let folder = Folder::new("demo-files");
    fs::write(folder.file("srt.ts"), KEPT).unwrap();
    let demo = Program::start(&["-q", "demo", "--output", &folder.file("")]);
    let ended = demo.end();
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("is no clip of Punctual's"), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(folder.file("srt.ts")).unwrap(), KEPT);
}
