//! The house rules that no other tool holds, as tests over the sources.

mod circles;
mod lengths;
mod names;
mod options;
mod prose;
mod structure;
mod verbs;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::shell::{cargo, root};

/// rustfmt holds the width of Rust code, but not of comments and nothing of other languages.
#[test]
fn lines_are_at_most_100_characters_wide() {
    assert_tidy(&["rs"], |text, report| {
        let mut in_example = false;
        for (number, line) in numbered(text) {
            let comment = line.trim_start().starts_with("//");
            in_example = comment && in_example ^ line.contains("```");
            if comment && !in_example && line.chars().count() > 100 && !line.contains("://") {
                report(number, "more than 100 characters wide");
            }
        }
    });
    assert_tidy(&["c", "h", "sh"], |text, report| {
        for (number, line) in numbered(text) {
            if line.chars().count() > 100 {
                report(number, "more than 100 characters wide");
            }
        }
    });
}

#[test]
fn lines_end_cleanly() {
    assert_tidy(&["rs", "toml", "c", "h", "sh", "md"], |text, report| {
        for (number, line) in numbered(text) {
            if line.ends_with([' ', '\t', '\r']) {
                report(number, "white space at the end");
            }
            if line.contains('\t') {
                report(number, "a tab");
            }
        }
        if !text.ends_with('\n') || text.ends_with("\n\n") {
            report(text.lines().count(), "a file ends with one line break");
        }
    });
}

#[test]
fn files_are_at_most_1000_lines_long_without_their_tests() {
    assert_tidy(&["rs", "c"], |text, report| {
        let lines = numbered(text).count();
        if lines > 1000 {
            report(lines, "more than 1,000 lines");
        }
    });
}

#[test]
fn functions_are_at_most_100_lines_long() {
    assert_tidy(&["rs"], |text, report| {
        for (number, length) in functions(text) {
            if length > 100 {
                report(number, &format!("a function of {length} lines; about 70 is the aim"));
            }
        }
    });
}

#[test]
fn names_of_tests_are_at_most_70_characters_long() {
    assert_tidy(&["rs"], |text, report| {
        for (number, name) in tests(text) {
            if name.len() > 70 {
                report(number, &format!("a test's name of {} characters", name.len()));
            }
        }
    });
}

#[test]
fn names_of_tests_begin_with_no_pronoun() {
    let pronouns = ["it", "they", "this", "what", "which", "who", "whose", "why"];
    assert_tidy(&["rs"], |text, report| {
        for (number, name) in tests(text) {
            let first = name.split('_').next().unwrap_or_default();
            if pronouns.contains(&first) {
                report(
                    number,
                    &format!("a test's name that begins with `{first}`: name the thing"),
                );
            }
        }
    });
}

#[test]
fn nothing_is_left_for_later() {
    // Spelled in two parts, or this file would not pass its own test.
    let marks =
        [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("HA", "CK")];
    assert_tidy(&["rs", "toml", "c", "h", "sh", "md"], |text, report| {
        for (number, line) in text.lines().enumerate() {
            if let Some(mark) = marks.iter().find(|mark| line.contains(**mark)) {
                report(number + 1, &format!("{mark}: do it now or write an issue"));
            }
        }
    });
}

#[test]
fn exceptions_from_lints_are_expected_and_reasoned() {
    assert_tidy(&["rs"], |text, report| {
        for (number, line) in text.lines().enumerate() {
            let line = line.trim_start();
            if line.starts_with("#[allow(") || line.starts_with("#![allow(") {
                report(number + 1, "write #[expect(.., reason = \"..\")] instead of allow");
            }
        }
        for (start, _) in text.match_indices("[expect(") {
            let before = text[..start].lines().next_back().unwrap_or_default().trim_start();
            let end = text[start..].find(")]").map_or(text.len(), |length| start + length);
            let is_attribute = before == "#" || before == "#!";
            if is_attribute && !text[start..end].contains("reason = \"") {
                report(line_of(text, start), "an expectation without a reason");
            }
        }
    });
}

#[test]
fn public_names_are_exported_one_by_one() {
    assert_tidy(&["rs"], |text, report| {
        for (number, line) in numbered(text) {
            let line = line.trim_start();
            if line.starts_with("pub use ") && line.contains('*') {
                report(number, "a glob re-export");
            }
        }
    });
}

#[test]
fn unsafe_code_is_forbidden_except_at_the_borders() {
    // To the system, and to C.
    let borders = ["crates/io", "crates/capi"].map(|it| root().join(it));
    let mut problems = String::new();
    for file in files(&["rs"]) {
        let crate_root = file.ends_with("src/lib.rs") || file.ends_with("src/main.rs");
        let at_border = borders.iter().any(|border| file.starts_with(border));
        let text = fs::read_to_string(&file).unwrap();
        if crate_root && !at_border && !text.contains("#![forbid(unsafe_code)]") {
            let _ = writeln!(problems, "{}: does not forbid unsafe code", shown(&file));
        }
    }
    assert!(problems.is_empty(), "\n{problems}");
}

/// The clock of the day may be set at any time, and streams, files, probes and links do not notice:
/// they go by the monotonic clock. The clock of the day serves what people read, payloads and
/// metrics of two hosts, which have no other clock in common, and the ages of datagrams that the
/// kernel stamps with it, which are left out if they cannot be right. Tokens of a relay's callers
/// end by it, since other hosts sign them.
#[test]
fn the_clock_of_the_day_is_read_in_few_places() {
    let places = [
        "crates/capi/src/log/line.rs",
        "crates/cli/src/generate/payload.rs",
        "crates/cli/src/receive/measure.rs",
        "crates/cli/src/stats.rs",
        "crates/io/src/udp/arrival.rs",
        "crates/program/src/log.rs",
        "crates/relay-access/src/access.rs",
        "crates/relay-access/tests/relay_access/main.rs",
        "crates/relay-hooks/src/deliveries.rs",
        "crates/relay-http/tests/http/stand_in.rs",
        "crates/relay-server/src/wall.rs",
        "interop/src/tap.rs",
    ];
    let reads = ["SystemTime::now", "UNIX_EPOCH.elapsed", "ClockId::Realtime", "CLOCK_REALTIME"];
    let rules = Path::new(file!()).file_name();
    let found: Vec<_> = files(&["rs"])
        .into_iter()
        .filter(|file| file.file_name() != rules)
        .filter(|file| {
            let text = fs::read_to_string(file).unwrap();
            numbered(&text).any(|(_, line)| reads.iter().any(|read| line.contains(read)))
        })
        .map(|file| shown(&file))
        .collect();
    assert_eq!(found, places);
}

/// The ends of streams serve any program: they know no command line, do not print, and name no
/// option of a program in messages.
#[test]
fn the_ends_of_streams_know_no_command() {
    let ends = root().join("crates/ends");
    let manifest = fs::read_to_string(ends.join("Cargo.toml")).expect("it is there");
    let mut problems = String::new();
    for above in ["clap", "punctual-program", "punctual-cli"] {
        if manifest.contains(above) {
            let _ = writeln!(problems, "crates/ends depends on {above}");
        }
    }
    for file in files(&["rs"]).into_iter().filter(|file| file.starts_with(ends.join("src"))) {
        let text = fs::read_to_string(&file).expect("it is there");
        for (line, text) in numbered(&text).filter(|(_, text)| !text.trim().starts_with("//")) {
            let names_option = text.match_indices("--").any(|(place, _)| {
                text[place + 2..].starts_with(|next: char| next.is_ascii_lowercase())
            });
            if names_option || text.contains("println!") || text.contains("print!(") {
                let _ = writeln!(problems, "{}:{line}: it is the program's", shown(&file));
            }
        }
    }
    assert!(problems.is_empty(), "\n{problems}");
}

/// A future is polled by a runtime: polled once with a waker that does nothing, it may lose a
/// wake-up. A type that can do without waiting has a verb for it.
#[test]
fn no_product_code_polls_with_a_waker_that_does_nothing() {
    let mut problems = String::new();
    for file in files(&["rs"]).into_iter().filter(|file| {
        let place = shown(file);
        place.starts_with("crates/") && place.contains("/src/")
    }) {
        let text = fs::read_to_string(&file).expect("it is there");
        for (line, _) in numbered(&text).filter(|(_, text)| text.contains("Waker::noop")) {
            let _ = writeln!(problems, "{}:{line}: a waker that does nothing", shown(&file));
        }
    }
    assert!(problems.is_empty(), "\n{problems}");
}

#[test]
fn every_crate_takes_the_workspace_lints() {
    let mut problems = String::new();
    for file in files(&["toml"]) {
        let text = fs::read_to_string(&file).unwrap();
        let member = file.ends_with("Cargo.toml") && !text.contains("[workspace]");
        if member && !text.contains("[lints]\nworkspace = true") {
            let _ = writeln!(problems, "{}: no [lints] workspace = true", shown(&file));
        }
    }
    assert!(problems.is_empty(), "\n{problems}");
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut problems = String::new();
    for file in files(&["md"]) {
        let text = fs::read_to_string(&file).unwrap();
        for (start, _) in text.match_indices("](") {
            let target = text[start + 2..].split(')').next().unwrap_or_default();
            let path = target.split('#').next().unwrap_or_default();
            let here = file.parent().expect("a file lies in a folder");
            if !path.is_empty() && !path.contains("://") && !here.join(path).exists() {
                let line = line_of(&text, start);
                let _ = writeln!(problems, "{}:{line}: no such file: {path}", shown(&file));
            }
        }
    }
    assert!(problems.is_empty(), "\n{problems}");
}

/// ARCHITECTURE's table of crates has each crate of the workspace, with the crates of ours that it
/// depends on.
#[test]
fn the_table_of_crates_is_that_of_cargo_metadata() {
    let page = fs::read_to_string(root().join("docs/ARCHITECTURE.md")).expect("the page is there");
    let written: BTreeMap<String, BTreeSet<String>> = page
        .lines()
        .filter_map(|line| {
            let [_, path, _, dependencies, _] = line.split('|').collect::<Vec<_>>()[..] else {
                return None;
            };
            let path = path.trim().strip_prefix('`')?.strip_suffix('`')?;
            let names = dependencies.trim().split(", ").filter(|name| *name != "–");
            Some((path.to_owned(), names.map(str::to_owned).collect()))
        })
        .collect();
    let arguments = ["metadata", "--no-deps", "--offline", "--format-version=1"];
    let output = cargo(arguments).output().expect("cargo can be run");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    assert_eq!(written, crates_of(&metadata));
}

/// The workspace's crates by their paths, each with the short names of its dependencies among them.
fn crates_of(metadata: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let packages = metadata["packages"].as_array().expect("a list of packages");
    let path_of = |package: &Value| {
        let manifest = package["manifest_path"].as_str().expect("a path");
        let folder = Path::new(manifest).parent().expect("a folder");
        folder.strip_prefix(root()).expect("below the root").display().to_string()
    };
    let names: BTreeMap<&str, String> = packages
        .iter()
        .map(|package| {
            let path = path_of(package);
            let short = path.strip_prefix("crates/").unwrap_or(&path).to_owned();
            (package["name"].as_str().expect("a name"), short)
        })
        .collect();
    let dependencies = |package: &Value| {
        let all = package["dependencies"].as_array().expect("a list of dependencies");
        let normal = all.iter().filter(|dependency| dependency["kind"].is_null());
        normal.filter_map(|it| names.get(it["name"].as_str()?).cloned()).collect()
    };
    packages.iter().map(|package| (path_of(package), dependencies(package))).collect()
}

#[test]
fn the_option_page_has_every_option() {
    // An option reads `name / with_name: Type = default, …`.
    assert_documented("crates/proto/src/config/mod.rs", "docs/options.md", |line| {
        Some(line.split_once(" / with_")?.0.trim())
    });
}

#[test]
fn the_statistics_page_has_every_statistic() {
    // A statistic reads `name: type,`, within a list of a macro.
    assert_documented("crates/proto/src/statistics.rs", "docs/statistics.md", |line| {
        let (name, _) = line.strip_prefix("        ")?.strip_suffix(',')?.split_once(": ")?;
        name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_').then_some(name)
    });
}

/// Asserts that `page` has, as code, every name that `name_in` finds in a line of `source`, and
/// every name of libsrt's that its documentation gives in brackets.
#[track_caller]
fn assert_documented(source: &str, page: &str, name_in: fn(&str) -> Option<&str>) {
    let code = fs::read_to_string(root().join(source)).unwrap();
    let page_text = fs::read_to_string(root().join(page)).unwrap();
    let ours: Vec<&str> = code.lines().filter_map(name_in).collect();
    let libsrts: Vec<&str> = code.lines().filter_map(bracketed).collect();
    assert!(ours.len() > 20 && libsrts.len() > 20, "{source} reads differently now");
    let names = ours.iter().chain(&libsrts);
    let missing: Vec<_> = names.filter(|name| !page_text.contains(&format!("`{name}"))).collect();
    assert!(missing.is_empty(), "{page} lacks {missing:?} of {source}");
}

/// The name in `/// … \[name\]`: in brackets that rustdoc is not to take for a link.
fn bracketed(line: &str) -> Option<&str> {
    let comment = line.trim_start().strip_prefix("///")?;
    Some(comment.split_once("\\[")?.1.split_once("\\]")?.0)
}

/// Runs `check` over every file with one of these extensions and fails with all that it reported.
#[track_caller]
fn assert_tidy(extensions: &[&str], check: impl Fn(&str, &mut dyn FnMut(usize, &str))) {
    let mut problems = String::new();
    let files = files(extensions);
    assert!(!files.is_empty(), "the sources were not found");
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        check(&text, &mut |line, problem| {
            let _ = writeln!(problems, "{}:{line}: {problem}", shown(&file));
        });
    }
    assert!(problems.is_empty(), "\n{problems}");
}

/// The lines of a source file down to its tests, numbered from one.
fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_tests = |line: &&str| *line == "mod tests {";
    text.lines().take_while(move |line| !is_tests(line)).enumerate().map(|(i, l)| (i + 1, l))
}

/// The line and the name of each test function: the first function after each test attribute.
fn tests(text: &str) -> Vec<(usize, &str)> {
    let mut is_test = false;
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let code = line.trim_start();
        is_test |= ["#[test]", "#[tokio::test"].iter().any(|mark| code.starts_with(mark));
        let code = code.strip_prefix("async ").unwrap_or(code);
        let name = code.strip_prefix("fn ").and_then(|rest| rest.split(['(', '<']).next());
        if let Some(name) = name.filter(|_| is_test) {
            found.push((number + 1, name));
            is_test = false;
        }
    }
    found
}

/// First line and length of each function that has a body, tests included. Relies on rustfmt: a
/// function ends at the first closing brace as far to the right as its head, and a head over
/// several lines without a body ends with `);` or `) -> T;`.
fn functions(text: &str) -> Vec<(usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let head = code.split('(').next().unwrap_or_default();
        if code.starts_with("//")
            || code.contains("fn $")
            || !head.split_whitespace().any(|word| word == "fn")
        {
            continue;
        }
        let closing = format!("{}}}", &line[..line.len() - code.len()]);
        if line.ends_with([';', '}']) {
            continue;
        }
        let ends = |line: &&str| {
            **line == closing || line.trim_start().starts_with(")") && line.ends_with(';')
        };
        match lines[start..].iter().position(ends) {
            Some(length) if lines[start + length] == closing => found.push((start + 1, length + 1)),
            _ => {}
        }
    }
    found
}

fn line_of(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

fn shown(file: &Path) -> String {
    file.strip_prefix(root()).unwrap_or(file).display().to_string()
}

/// Every file of the repository with one of these extensions, built and hidden folders left out.
/// A file without an extension that starts with `#!` is a shell script.
fn files(extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                let skipped = (name.starts_with('.') && name != ".ci" && name != ".cargo")
                    || ["target", "corpus", "artifacts", "snapshots"].contains(&name.as_str());
                if !skipped {
                    folders.push(path);
                }
                continue;
            }
            let extension = match path.extension() {
                Some(extension) => extension.to_string_lossy().into_owned(),
                None if is_script(&path) => "sh".to_owned(),
                None => continue,
            };
            if extensions.contains(&extension.as_str()) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn is_script(path: &Path) -> bool {
    fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"#!"))
}
