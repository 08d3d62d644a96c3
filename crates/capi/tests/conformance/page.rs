use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::LIBSRT;
use crate::comparison::{Comparison, shown};
use crate::differences::Accepted;
use crate::rows::Key;

/// The text of the page about both libraries.
pub(crate) fn write(comparison: &Comparison, accepted: &Accepted) -> String {
    let mut page = String::new();
    introduction(&mut page);
    counts(&mut page, comparison);
    page.push_str("\n## Accepted differences\n");
    if accepted.groups.is_empty() {
        page.push_str("\nThere are none.\n");
    }
    for group in &accepted.groups {
        let rows = group.keys().count();
        let rows = if rows == 1 { "1 row".to_owned() } else { format!("{rows} rows") };
        let _ = write!(page, "\n{} ({rows})\n\n", group.reason);
        page.push_str(
            "| Program | Function | Situation | libsrt | Punctual |\n|---|---|---|---|---|\n",
        );
        lines(&mut page, group.keys(), comparison);
    }
    page
}

/// Writes the page if `PUNCTUAL_WRITE_PAGES` is `1`, and otherwise checks that it is current.
///
/// # Panics
///
/// If the page cannot be written, or if it is not current.
pub(crate) fn check(page: &str) {
    let path = path();
    if env::var("PUNCTUAL_WRITE_PAGES").as_deref() == Ok("1") {
        return fs::write(&path, page).expect("the page can be written");
    }
    let current = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        current == page,
        "docs/c-conformance.md is out of date: PUNCTUAL_WRITE_PAGES=1 cargo test -p punctual-capi \
         --test conformance"
    );
}

fn path() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.expect("the crate lies in crates/ of the workspace").join("docs/c-conformance.md")
}

fn introduction(page: &mut String) {
    let _ = write!(
        page,
        "# The C library's conformance\n\n\
         Small programs call every function of libsrt's C interface in many situations. Each \
         call prints a row: the returned value, the error, the socket's state and its readiness. \
         The programs run on Debian's libsrt {LIBSRT} and on Punctual's C library, and each row is \
         the same on both or listed here, with the reason. A line stands for all situations with \
         the same answers. The program bonding is about groups of links, which Debian's libsrt \
         does not have: its rows are compared with a record of libsrt 1.5.5, built with bonding. \
         The test that compares them writes this page: \
         [how to run it](../crates/capi/conformance/README.md).\n\n"
    );
}

fn counts(page: &mut String, comparison: &Comparison) {
    page.push_str("| Program | Rows | Equal | Accepted differences |\n|---|---:|---:|---:|\n");
    let (mut all, mut all_different) = (0, 0);
    for (program, (rows, different)) in comparison.counts() {
        let _ = writeln!(page, "| {program} | {rows} | {} | {different} |", rows - different);
        all += rows;
        all_different += different;
    }
    let equal = all - all_different;
    let _ = writeln!(page, "| **all** | {all} | {equal} | {all_different} |");
}

/// A line for each function and pair of answers, with all situations in which they occur.
fn lines(page: &mut String, keys: impl Iterator<Item = Key>, comparison: &Comparison) {
    let mut lines: Vec<([String; 4], Vec<String>)> = Vec::new();
    for key in keys {
        let pair = comparison.row(&key);
        let libsrt = shown(pair.and_then(|pair| pair.libsrt.as_ref()));
        let ours = shown(pair.and_then(|pair| pair.ours.as_ref()));
        let same = [key.program, key.function, libsrt, ours];
        match lines.iter_mut().find(|(other, _)| *other == same) {
            Some((_, situations)) => situations.push(key.situation),
            None => lines.push((same, vec![key.situation])),
        }
    }
    for ([program, function, libsrt, ours], situations) in lines {
        let situations = joined(&situations);
        let cells = [program, function, situations, libsrt, ours].map(|text| cell(&text));
        let _ = writeln!(page, "| {} |", cells.join(" | "));
    }
}

/// All situations; a beginning up to a comma that several share is named once.
fn joined(situations: &[String]) -> String {
    let mut text = String::new();
    let mut beginning = "";
    for situation in situations {
        match situation.split_once(", ") {
            Some((same, end)) if same == beginning => text.push_str(&format!(" / {end}")),
            split => {
                let separator = if text.is_empty() { "" } else { "; " };
                text.push_str(separator);
                text.push_str(situation);
                beginning = split.map_or("", |(first, _)| first);
            }
        }
    }
    text
}

#[test]
fn situations_that_begin_alike_name_their_beginning_once() {
    let situations = ["closed", "MSS, fresh", "MSS, bound, again", "FC, fresh"].map(str::to_owned);
    assert_eq!(joined(&situations), "closed; MSS, fresh / bound, again; FC, fresh");
}

/// A text that does not end its cell.
fn cell(text: &str) -> String {
    text.replace("|", "\\|")
}
