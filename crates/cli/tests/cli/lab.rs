//! Commands of the program `punctual-lab`, which this one starts.

use std::fs;
use std::process::{Command, Output};
use std::sync::LazyLock;

use crate::program::{Folder, run};

/// The text of a small plan: four runs of two seconds. `punctual-lab` is there to run it.
pub(crate) fn plan() -> &'static str {
    LazyLock::force(&LAB);
    include_str!("../../../lab-cli/tests/cli/tiny.toml")
}

/// `punctual-lab` beside the program, which is there after `cargo test --workspace`.
static LAB: LazyLock<()> = LazyLock::new(interop::build_punctual_lab);

/// A folder with this program in it, alone.
fn alone(test: &str) -> Folder {
    let folder = Folder::new(test);
    shell("cp \"$0\" \"$1\"", &[env!("CARGO_BIN_EXE_punctual"), &folder.file("punctual")]);
    folder
}

/// Makes a program by a shell: while another test starts a process, that has all files which this
/// one writes, and the system runs no program that is open for writing.
fn shell(script: &str, args: &[&str]) {
    let mut shell = Command::new("/bin/sh");
    let status = shell.args(["-c", script]).args(args).env("PATH", "/usr/bin:/bin").status();
    assert!(status.expect("there is a shell").success());
}

/// Puts a program at `path` that prints `name`, its arguments, and ends with the code 7.
fn put(path: &str, name: &str) {
    let text = format!("#!/bin/sh\necho {name} \"$@\"\nexit 7\n");
    shell("printf %s \"$1\" > \"$0\" && chmod +x \"$0\"", &[path, &text]);
}

fn run_in(folder: &Folder, path: &str, args: &[&str]) -> Output {
    let mut command = Command::new(folder.file("punctual"));
    command.args(args).env("PATH", path).output().expect("it starts")
}

#[test]
fn the_lab_beside_the_program_comes_before_the_one_in_path() {
    let (folder, others) = (alone("lab-beside"), Folder::new("lab-in-path"));
    let path = format!("{}:/usr/bin:/bin", others.file(""));
    put(&others.file("punctual-lab"), "in-path");
    let told = |args: &[&str]| {
        let output = run_in(&folder, &path, args);
        assert_eq!(output.status.code(), Some(7), "{args:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    assert_eq!(told(&["-q", "lab", "run", "a b", "--help"]), "in-path -q run a b --help\n");
    assert_eq!(told(&["model", "--rtt", "1s"]), "in-path model --rtt 1s\n");
    put(&folder.file("punctual-lab"), "beside");
    assert_eq!(told(&["lab", "list"]), "beside list\n");
    assert_eq!(told(&["help", "lab", "run"]), "beside help run\n");
    assert_eq!(told(&["latency", "-h"]), "beside latency -h\n");
}

#[test]
fn a_missing_lab_is_told_in_one_line_with_the_way_to_get_it() {
    let folder = alone("lab-missing");
    let rows = folder.file("rows.csv");
    fs::write(&rows, "Time,msRTT\n0,1\n1000,2\n2000,1\n").unwrap();
    for args in [
        &["lab", "list"][..],
        &["model", "--rtt", "1s"],
        &["latency"],
        &["plot", &rows, "--format", "png"],
    ] {
        let output = run_in(&folder, "/nowhere", args);
        let told = String::from_utf8(output.stderr).expect("text");
        assert_eq!((output.status.code(), told.lines().count()), (Some(1), 1), "{args:?}: {told}");
        assert!(told.contains("`cargo install --path crates/lab-cli` installs it"), "{told}");
    }
    assert!(!fs::exists(folder.file("rows.figures")).unwrap());
}

#[test]
fn the_lab_does_its_commands_and_draws_images() {
    plan();
    assert!(run(&["lab", "list"], b"").text().contains("srt-retransmission"));
    let ended = run(&["lab", "show", "srt-4gg"], b"");
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("did you mean `srt-4g`?"), "{}", ended.stderr);
    let latency = ["latency", "--rtt", "40ms", "--loss", "5%", "--target", "1e-6"];
    assert!(run(&latency, b"").text().contains("Punctual at both ends"));

    let folder = Folder::new("lab-images");
    let (rows, out) = (folder.file("rows.csv"), folder.file("out"));
    fs::write(&rows, "Time,msRTT\n0,1\n1000,2\n2000,1\n").unwrap();
    let plot = ["plot", &rows, "--format", "png", "--width", "300", "-o", &out];
    let ended = run(&plot, b"");
    if ended.stderr.contains("no font was found") {
        return interop::skip("no font is installed");
    }
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let image = fs::read_dir(&out).unwrap().next().expect("there is one").unwrap().path();
    assert!(image.ends_with("01-round-trip-time.png"), "{image:?}");
    fs::write(&image, "mine\n").unwrap();
    let ended = run(&plot, b"");
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("is no figure of Punctual's"), "{}", ended.stderr);
}
