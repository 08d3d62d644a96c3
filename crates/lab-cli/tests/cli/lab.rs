//! Plans are shown, run, resumed, run in parts, and reported.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder of a test's own, with a small plan in it.
struct Folder(PathBuf);

/// A small plan: four runs of two seconds.
const PLAN: &str = include_str!("tiny.toml");

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("punctual-lab-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder can be made");
        fs::write(path.join("tiny.toml"), PLAN).expect("a file can be written");
        Self(path)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).expect("the file is there")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_punctual-lab"));
        command.args(arguments).current_dir(&self.0).stdin(Stdio::null());
        command
    }

    fn lab(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the program starts")
    }

    /// The output of a command that succeeds.
    fn told(&self, arguments: &[&str]) -> String {
        let output = self.lab(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// The messages of a command, and its exit code.
    fn refused(&self, arguments: &[&str]) -> (String, i32) {
        let output = self.lab(arguments);
        (String::from_utf8(output.stderr).expect("text"), output.status.code().expect("it ended"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn plans_are_listed_and_shown() {
    let folder = Folder::new("show");
    let list = folder.told(&["list"]);
    assert!(list.contains("srt-retransmission") && list.contains("srt-4g"), "{list}");
    let shown = folder.told(&["show", "tiny.toml"]);
    for text in ["tiny: Loss and latency", "0%, 5%", "4 runs on sim, 2 repeats each"] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    assert_eq!(folder.told(&["show", "tiny.toml", "--text"]), PLAN);
    let (told, code) = folder.refused(&["show", "srt-retransmision"]);
    assert!(told.contains("did you mean `srt-retransmission`?") && code == 2, "{told}");
}

#[test]
fn a_run_prints_a_summary_and_writes_results_and_a_report() {
    let folder = Folder::new("run");
    let summary = folder.told(&["run", "tiny.toml", "-o", "out"]);
    let lines: Vec<&str> = summary.lines().collect();
    assert!(lines[0].contains("loss") && lines[0].contains("Overhead (%)"), "{summary}");
    assert_eq!(lines.len(), 3, "{summary}");
    assert!(lines[2].contains(" to "), "no interval: {summary}");
    let rows = folder.read("out/results.csv");
    assert!(rows.starts_with("run,experiment,backend,repeat,seed,status,"));
    assert_eq!(rows.lines().count(), 5);
    assert_eq!(folder.read("out/plan.toml"), PLAN);
    assert!(folder.read("out/meta.json").contains("\"plan\": \"tiny\""));
    let report = folder.read("out/report.html");
    assert!(report.contains("Loss and latency") && report.contains("<svg"));
    assert_eq!(folder.told(&["report", "out"]), summary);
    assert_eq!(folder.read("out/report.html"), report);
    let markdown = folder.told(&["report", "out", "--format", "markdown"]);
    assert!(markdown.starts_with("# Loss and latency\n\nWritten by `punctual lab"), "{markdown}");
    assert!(markdown.contains("- Runs of each combination: 2."), "{markdown}");
    assert!(markdown.contains("**Means over repeats"), "{markdown}");
}

#[test]
fn values_of_the_plan_can_be_replaced() {
    let folder = Folder::new("set");
    let set = ["run", "tiny.toml", "-o", "out", "--set", "loss=[\"1%\",\"2%\",\"3%\"]"];
    folder.told(&[&set[..], &["--set", "latency=33ms", "--repeats", "1"]].concat());
    let rows = folder.read("out/results.csv");
    assert_eq!(rows.lines().count(), 4);
    let header: Vec<&str> = rows.lines().next().unwrap().split(',').collect();
    let place = header.iter().position(|name| *name == "latency_ms").unwrap();
    assert!(rows.lines().skip(1).all(|row| row.split(',').nth(place) == Some("33")));
}

#[test]
fn an_error_in_a_plan_has_its_line_and_a_suggestion() {
    let folder = Folder::new("mistake");
    fs::write(folder.0.join("key.toml"), PLAN.replace("bitrate =", "bitrat =")).unwrap();
    let (told, code) = folder.refused(&["run", "key.toml"]);
    assert_eq!(code, 2);
    assert!(told.contains("key.toml:5: unknown key `bitrat` in [stream]; did you mean"), "{told}");
    fs::write(folder.0.join("value.toml"), PLAN.replace("1Mbps", "1Mbsp")).unwrap();
    let (told, code) = folder.refused(&["run", "value.toml"]);
    assert_eq!(code, 2);
    assert!(told.contains("value.toml:5: `bitrate` is `1Mbsp`; it must be a bit rate"), "{told}");
    for (arguments, part) in [
        (["--set", "latencyy=3ms"], "did you mean `latency`?"),
        (["--set", "latency"], "must be KEY=VALUE"),
        (["--backend", "simm"], "'simm'"),
        (["--shard", "5/4"], "`5/4` is no shard"),
        (["--jobs", "0"], "`0` must be 1 or more"),
    ] {
        let (told, code) = folder.refused(&[&["run", "tiny.toml"], &arguments[..]].concat());
        assert!(told.contains(part) && code == 2, "{code} {told}");
    }
    assert!(!folder.0.join("tiny").exists(), "nothing is written before all is understood");
}

#[test]
fn a_misspelt_name_of_a_figure_is_an_error_before_anything_runs() {
    let folder = Folder::new("name");
    fs::write(folder.0.join("x.toml"), PLAN.replace("x = \"loss\"", "x = \"lss\"")).unwrap();
    let (told, code) = folder.refused(&["run", "x.toml"]);
    assert_eq!(code, 2);
    assert!(told.contains("no parameter, metric or column `lss`; did you mean `loss`?"), "{told}");
    assert!(told.contains("| x = \"lss\""), "{told}");
    assert!(!folder.0.join("tiny").exists(), "nothing ran");
}

#[test]
fn a_run_that_failed_is_said_at_the_end_and_by_the_exit_code() {
    let folder = Folder::new("failed");
    let deaf = PLAN.replace("[\"0\", \"5%\"]", "[\"0\", \"100%\"]");
    fs::write(folder.0.join("tiny.toml"), deaf).unwrap();
    let output = folder.lab(&["run", "tiny.toml", "-o", "out"]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    let last = told.lines().last().unwrap();
    assert!(last.contains("2 of 4 runs failed; ") && last.contains("no answer"), "{told}");
    assert!(folder.read("out/report.html").contains("2 of 4 runs did not end well"));
    let (told, code) = folder.refused(&["report", "out"]);
    assert!(told.contains("2 of 4 runs failed; ") && code == 1, "{told}");
    for part in ["1", "2"] {
        let (told, code) =
            folder.refused(&["run", "tiny.toml", "-o", part, "--shard", &format!("{part}/2")]);
        assert!(code == 0 || told.contains("runs failed"), "{code} {told}");
    }
    let (told, code) = folder.refused(&["merge", "1", "2", "-o", "merged"]);
    assert!(told.contains("2 of 4 runs failed") && code == 1, "{told}");
}

#[test]
fn results_do_not_depend_on_jobs_or_parts() {
    let folder = Folder::new("parts");
    folder.told(&["run", "tiny.toml", "-o", "one", "--jobs", "1"]);
    folder.told(&["run", "tiny.toml", "-o", "four", "--jobs", "4"]);
    for part in ["1", "2", "3"] {
        let shard = format!("{part}/3");
        folder.told(&["run", "tiny.toml", "-o", part, "--shard", &shard, "--no-report"]);
        assert!(!folder.0.join(part).join("report.html").exists());
    }
    folder.told(&["merge", "1", "2", "3", "-o", "merged"]);
    let whole = folder.read("one/results.csv");
    assert!(whole == folder.read("four/results.csv"));
    assert!(whole == folder.read("merged/results.csv"));
    assert!(folder.read("one/report.html") == folder.read("merged/report.html"));
}

#[test]
fn an_interrupted_sweep_is_resumed_to_the_same_results() {
    let folder = Folder::new("resume");
    folder.told(&["run", "tiny.toml", "-o", "whole"]);
    folder.told(&["run", "tiny.toml", "-o", "cut"]);
    let whole = folder.read("whole/results.csv");
    // The program ended in the middle of the third row.
    let start = whole.match_indices('\n').nth(2).unwrap().0;
    fs::write(folder.0.join("cut/results.partial.csv"), &whole[..start + 40]).unwrap();
    fs::remove_file(folder.0.join("cut/results.csv")).unwrap();
    let (told, code) = folder.refused(&["run", "tiny.toml", "-o", "cut"]);
    assert!(told.contains("--resume goes on with them") && code == 1, "{told}");
    let output = folder.lab(&["run", "tiny.toml", "-o", "cut", "--resume"]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("4 runs, 2 of which were there already"), "{told}");
    assert!(whole == folder.read("cut/results.csv"));
    assert!(!folder.0.join("cut/results.partial.csv").exists());
}

#[cfg(unix)]
#[test]
fn ctrl_c_leaves_a_folder_that_can_be_resumed() {
    let folder = Folder::new("interrupt");
    let long = ["--set", "duration=30s", "--repeats", "30"];
    let run = [&["run", "tiny.toml", "-o", "out", "--no-report"], &long[..]].concat();
    let mut child = folder.command(&run).stderr(Stdio::piped()).spawn().unwrap();
    let partial = folder.0.join("out/results.partial.csv");
    let rows = |path: &Path| fs::read_to_string(path).map_or(0, |text| text.lines().count());
    while rows(&partial) < 3 && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    interop::send(child.id(), interop::Signal::INT);
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("interrupted after") && told.contains("--resume goes on"), "{told}");
    assert!(rows(&partial) >= 3);
    folder.told(&[&run[..], &["--resume"]].concat());
    assert_eq!(folder.read("out/results.csv").lines().count(), 61);
    assert!(!partial.exists());
}

#[test]
fn programs_that_are_not_installed_are_named() {
    let folder = Folder::new("external");
    let external = "[external]\nsender = \"no-such-program {feed}\"\n\
                    receiver = \"no-such-receiver {port}\"\n";
    fs::write(folder.0.join("tiny.toml"), format!("{PLAN}\n{external}")).unwrap();
    let (told, code) = folder.refused(&["run", "tiny.toml", "--backend", "external"]);
    assert!(told.contains("`no-such-receiver` is not installed") && code == 1, "{told}");
}

#[test]
fn results_hold_no_passphrase_and_can_be_reported_and_merged() {
    let folder = Folder::new("passphrase");
    let hush = "hush, hush, hush";
    let plan =
        PLAN.replace("[options]\n", &format!("[options]\npassphrase = [\"\", \"{hush}\"]\n"));
    fs::write(folder.0.join("secret.toml"), plan).unwrap();
    for part in ["1", "2"] {
        folder.told(&["run", "secret.toml", "-o", part, "--shard", &format!("{part}/2")]);
        folder.told(&["report", part]);
    }
    let summary = folder.told(&["merge", "1", "2", "-o", "whole"]);
    assert!(summary.contains('…') && !summary.contains("hush"), "{summary}");
    assert_eq!(folder.read("whole/results.csv").lines().count(), 9);
    let set = format!("passphrase={hush}");
    folder.told(&["run", "secret.toml", "-o", "set", "--set", &set]);
    folder.told(&["merge", "set", "-o", "again"]);
    for name in ["1", "2", "whole", "set", "again"] {
        for file in ["plan.toml", "meta.json", "results.csv", "report.html"] {
            let text = folder.read(&format!("{name}/{file}"));
            assert!(!text.contains("hush"), "{name}/{file}: {text}");
        }
    }
    let several = "passphrase=[\"hush, hush, hush\", \"hash, hash, hash\"]";
    let (told, code) = folder.refused(&["run", "secret.toml", "-o", "out", "--set", several]);
    assert!(told.contains("may be one passphrase") && code == 2, "{told}");
}

#[test]
fn a_sweep_does_not_begin_if_its_report_would_replace_another_page() {
    let folder = Folder::new("sweep-files");
    fs::write(folder.0.join("report.html"), "mine\n").unwrap();
    let (told, code) = folder.refused(&["run", "retransmission-policies", "-o", "."]);
    assert!(told.contains("report.html exists already") && code == 2, "{told}");
    assert_eq!(folder.read("report.html"), "mine\n");
}

#[test]
fn figures_are_drawn_as_images_and_replace_only_images() {
    let folder = Folder::new("images");
    folder.told(&["run", "tiny.toml", "-o", "out"]);
    folder.told(&["report", "out", "--format", "svg"]);
    let figures = folder.0.join("out/figures");
    let svg = fs::read_dir(&figures).unwrap().next().expect("there is one").unwrap().path();
    let svg = svg.to_str().expect("text");
    for _ in 0..2 {
        let output = folder.lab(&["png", svg, "-o", "images", "--width", "300"]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        if told.contains("no font was found") {
            return interop::skip("no font is installed");
        }
        assert!(output.status.success(), "{told}");
    }
    let image = fs::read_dir(folder.0.join("images")).unwrap().next().unwrap().unwrap().path();
    assert!(fs::read(&image).unwrap().starts_with(b"\x89PNG"));
    fs::write(&image, "mine\n").unwrap();
    let (told, code) = folder.refused(&["png", svg, "-o", "images"]);
    assert!(told.contains("is no figure of Punctual's") && code == 2, "{told}");
    let (told, code) = folder.refused(&["png", "tiny.toml"]);
    assert!(told.contains("tiny.toml is no SVG figure of Punctual's") && code == 2, "{told}");
}
