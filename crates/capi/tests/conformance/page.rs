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
        let _ = write!(page, "\n{}\n\n", group.reason);
        page.push_str(
            "| Program | Function | Situation | libsrt | Punctual |\n|---|---|---|---|---|\n",
        );
        for key in group.keys() {
            line(&mut page, &key, comparison);
        }
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
         Small C programs call every function of libsrt's C interface in many situations. Each \
         call prints a row: the returned value, the error, the socket's state and its readiness. \
         The programs run on Debian's libsrt {LIBSRT} and on Punctual's C library, and each row is \
         the same on both or listed here. The test that compares them writes this page: \
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

fn line(page: &mut String, key: &Key, comparison: &Comparison) {
    let pair = comparison.row(key);
    let libsrt = shown(pair.and_then(|pair| pair.libsrt.as_ref()));
    let ours = shown(pair.and_then(|pair| pair.ours.as_ref()));
    let Key { program, function, situation } = key;
    let cells = [program, function, situation, &libsrt, &ours].map(|text| cell(text));
    let _ = writeln!(page, "| {} |", cells.join(" | "));
}

/// A text that does not end its cell.
fn cell(text: &str) -> String {
    text.replace("|", "\\|")
}
