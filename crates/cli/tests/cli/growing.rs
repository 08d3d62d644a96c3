//! Files that another program still writes.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::thread::sleep;
use std::time::Duration;

use crate::program::{Folder, Program, free_port, run};

const CLIP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/clip.ts");

fn append(path: &str, bytes: &[u8]) {
    let mut file = OpenOptions::new().append(true).create(true).open(path).expect("it is opened");
    file.write_all(bytes).expect("it is written");
}

#[test]
fn a_file_that_grows_is_followed_until_its_marker_exists() {
    let folder = Folder::new("growing-marker");
    let [file, marker, copy] = ["in.bin", "in.done", "out.bin"].map(|name| folder.file(name));
    append(&file, b"begin");
    let uri = format!("file://{file}?grow=wait&marker={marker}");
    let route = Program::start(&["route", &uri, &copy]);
    let mut written = b"begin".to_vec();
    for number in 0..50_u8 {
        let part = vec![number; 1_000 + usize::from(number)];
        append(&file, &part);
        written.extend(part);
        sleep(Duration::from_millis(2));
    }
    append(&marker, b"");
    let ended = route.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(fs::read(copy).unwrap() == written);
}

#[test]
fn a_recording_that_grows_is_streamed_by_its_clock_to_its_idle_end() {
    let folder = Folder::new("growing-idle");
    let (port, file, copy) = (free_port(), folder.file("in.ts"), folder.file("out.ts"));
    let clip = &fs::read(CLIP).unwrap()[..400 * 188];
    // Too little to see that it is a transport stream.
    append(&file, &clip[..100]);
    let listen = format!("srt://127.0.0.1:{port}?mode=listener&transtype=stream");
    let mut receiver = Program::start(&["route", &listen, &copy]);
    receiver.wait_for("listening");
    let uri = format!("file://{file}?grow=wait&maxidle=500ms");
    let call = format!("srt://127.0.0.1:{port}?transtype=stream");
    let sender = Program::start(&["route", &uri, &call]);
    for part in clip[100..].chunks(5_000) {
        append(&file, part);
        sleep(Duration::from_millis(5));
    }
    let ended = sender.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!ended.stderr.contains("WARN"), "{}", ended.stderr);
    receiver.end().text();
    assert!(fs::read(copy).unwrap() == clip);
}

#[test]
fn a_file_that_grows_ends_at_its_size_and_after_its_time() {
    let folder = Folder::new("growing-size");
    let (file, copy) = (folder.file("in.bin"), folder.file("out.bin"));
    append(&file, &[7; 10_000]);
    let uri = format!("file://{file}?grow=wait&maxsize=4KiB");
    run(&["route", &uri, "-"], b"").text();
    let ended = run(&["route", &format!("file://{file}?grow=wait&maxtime=300ms"), &copy], b"");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(fs::read(copy).unwrap(), [7; 10_000]);
    assert_eq!(run(&["route", &uri, "-"], b"").stdout, [7; 4_096]);
}

#[test]
fn wrong_keys_of_files_are_explained() {
    let folder = Folder::new("growing-wrong");
    let file = folder.file("in.ts");
    append(&file, &[7; 1_000]);
    let growing = format!("file://{file}?grow=wait");
    for (args, expected) in [
        (&[&format!("{file}?grow=wait"), "-"][..], "for keys write `file://"),
        (&[&format!("file://{file}?grow=soon"), "-"], "it must be wait or no"),
        (&[&format!("file://{file}?maxidle=2s"), "-"], "add `grow=wait`"),
        (&[&growing, "udp://127.0.0.1:9", "--loop"], "repeats a whole file"),
        (&["-", &growing], "is for a file that is read"),
    ] {
        let ended = run(&[&["route"], args].concat(), b"");
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{args:?}: {}", ended.stderr);
    }
}
